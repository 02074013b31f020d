//! Bytes that are known before anything is planned: packed weights, sums of gathers, the program.

use super::COLUMN_BLOCK;
use crate::graph::{Conv, Gather, Graph, Node, Op, WeightSource};
use crate::kernels;

/// Resident bytes of the program before any row is touched: code, runtime, allocator. How much of the
/// code is mapped at once is up to the system: this is 0.9 MiB above what was seen.
pub(super) const PROGRAM: u64 = 7 << 20;
/// Resident bytes of a thread: stack and the allocator's arena.
pub(super) const THREAD: u64 = 128 << 10;

/// Bytes that a node's tables and names take, with its tensors and its share of the plan.
const NODE: u64 = 4 << 10;

/// The heap that the graph itself takes, without constants.
pub(super) fn graph_bytes(graph: &Graph) -> u64 {
    NODE * graph.nodes.len() as u64
}

/// Bytes of constants that the graph holds in memory.
pub(super) fn constant_bytes(graph: &Graph) -> u64 {
    let whole: u64 = graph
        .constants
        .iter()
        .map(|(id, _)| graph.tensor(*id).bytes())
        .sum();
    let inline = graph.weights.iter().map(|w| match &w.source {
        WeightSource::Inline(values) => 4 * values.len() as u64,
        WeightSource::File { .. } => 0,
    });
    whole + inline.sum::<u64>()
}

/// The shape that the convolution kernels are packed for.
pub(crate) fn conv_shape(graph: &Graph, conv: &Conv) -> kernels::ConvShape {
    let dims = &graph.weights[conv.weight].dims;
    let transposed = matches!(conv.rows, crate::graph::Window::Transposed { .. });
    let cin = if transposed {
        dims[0]
    } else {
        dims[1] * conv.groups
    };
    kernels::ConvShape {
        cout: conv.cout as usize,
        cin: cin as usize,
        groups: conv.groups as usize,
        kh: dims[2] as usize,
        kw: dims[3] as usize,
        transposed,
    }
}

/// Whether every output channel reads one input channel of its own.
pub(crate) fn is_depthwise(shape: &kernels::ConvShape) -> bool {
    !shape.transposed && shape.groups == shape.cin && shape.cout == shape.cin && shape.groups > 1
}

/// Bytes of the packed weights of `node`; 0 where it has none.
pub(super) fn packed_bytes(graph: &Graph, node: &Node) -> u64 {
    let Op::Conv(conv) = &node.op else { return 0 };
    let shape = conv_shape(graph, conv);
    let floats = if is_depthwise(&shape) {
        kernels::depthwise_len(shape.cin, shape.kh, shape.kw)
    } else {
        kernels::packed_len(&shape)
    };
    4 * floats as u64
}

/// Bytes that `node` works in, on so many threads.
pub(super) fn workspace_bytes(graph: &Graph, node: &Node, threads: usize) -> u64 {
    match &node.op {
        Op::Conv(conv) if conv.tile > 1 => {
            let shape = conv_shape(graph, conv);
            4 * kernels::winograd_len(&shape, conv.tile as usize, threads) as u64
        }
        _ => 0,
    }
}

/// Bytes of the sums of a gather: for each batch item, block of columns and channel three f64.
pub(super) fn sum_bytes(graph: &Graph, node: &Node) -> u64 {
    let Op::Gather(gather) = &node.op else {
        return 0;
    };
    if *gather == Gather::Whole {
        return 0;
    }
    let from = graph.tensor(node.operands[0].0[0].tensor);
    24 * from.w().div_ceil(COLUMN_BLOCK) * node.operands[0].channels()
}
