//! What is made of a graph once, before rows flow: packed weights and compiled tails.

use crate::error::Result;
use crate::graph::{Arg, Graph, Node, NodeId, Op};
use crate::kernels::{self, Program, ProgramArg};
use crate::plan::footprint::{conv_shape, is_depthwise};

/// Packs the weights of convolution `id` into `out`.
pub(super) fn pack(graph: &Graph, id: NodeId, out: &mut [f32]) -> Result<()> {
    let node = graph.node(id);
    let Op::Conv(conv) = &node.op else {
        return Ok(());
    };
    let weight = &graph.weights[conv.weight];
    let shape = conv_shape(graph, conv);
    let (scale, bias) = (conv.scale.as_deref(), conv.bias.as_deref());
    let mut read = |from: u64, part: &mut [f32]| weight.read(from, part);
    if is_depthwise(&shape) {
        kernels::pack_depthwise(shape.cin, shape.kh, shape.kw, scale, bias, &mut read, out)
    } else {
        kernels::pack_conv(&shape, scale, bias, &mut read, out)
    }
}

/// Compiles a node's tail.
pub(super) fn program(node: &Node) -> Result<Program> {
    let arg = |arg: Arg| match arg {
        Arg::Input(k) => ProgramArg::Input(k),
        Arg::Value(k) => ProgramArg::Reg(k),
        Arg::Scalar(v) => ProgramArg::Scalar(v),
        Arg::Channel(k) => ProgramArg::Channel(k),
        Arg::Whole(k) => ProgramArg::Whole(k),
    };
    let code: Vec<_> = node
        .tail
        .code
        .iter()
        .map(|inst| (inst.func, inst.args.map(arg)))
        .collect();
    Program::compile(&code, node.tail.vectors.clone()).map_err(|e| e.at_node(&node.name))
}
