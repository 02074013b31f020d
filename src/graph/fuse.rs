//! Fusion: passes over a graph that leave less to do, and the same outputs.

use std::collections::HashMap;

use super::{
    Arg, Border, Conv, Expr, Graph, Inst, Layout, Node, Op, Operand, Side, TensorId, Window,
};
use crate::error::Result;
use crate::func::Func;

/// Extra row operands of a node, at most: each is read, and kept, beside what the op reads.
const MOST_EXTRAS: usize = 4;
/// Whole operands of a tail, at most.
const MOST_WHOLE: usize = 8;
/// Instructions of a tail, at most.
const MOST_CODE: usize = 64;
/// Values of a tail that are alive at a time, at most: what kernels keep in registers.
const MOST_ALIVE: usize = 8;

/// Folds padding and batch norms into convolutions, and chains of element-wise ops into the nodes
/// before them; drops what no output needs.
///
/// # Errors
/// None today; the graph is rebuilt and its tensors are checked again.
pub fn fuse(mut graph: Graph) -> Result<Graph> {
    drop_unused(&mut graph)?;
    pads_into_convs(&mut graph);
    tails_into_producers(&mut graph);
    factors_into_convs(&mut graph);
    drop_unused(&mut graph)?;
    Ok(graph)
}

/// Who makes and who reads each tensor.
struct Uses {
    made_by: Vec<Option<usize>>,
    /// Nodes that read it, and one more where it is an output.
    readers: Vec<i32>,
}

impl Uses {
    fn of(graph: &Graph) -> Self {
        let mut uses = Uses {
            made_by: vec![None; graph.tensors.len()],
            readers: vec![0; graph.tensors.len()],
        };
        for (at, node) in graph.nodes.iter().enumerate() {
            for output in &node.outputs {
                uses.made_by[output.at()] = Some(at);
            }
            uses.count(node, 1);
        }
        for output in &graph.outputs {
            uses.readers[output.at()] += 1;
        }
        uses
    }

    /// Counts a node as a reader, or (−1) no longer.
    fn count(&mut self, node: &Node, by: i32) {
        let mut read: Vec<TensorId> = node.reads().collect();
        read.sort_unstable();
        read.dedup();
        for tensor in read {
            self.readers[tensor.at()] += by;
        }
    }

    /// The node whose output only one node reads, and reads as a whole: `operand`.
    fn only_for(&self, graph: &Graph, operand: &Operand) -> Option<(usize, TensorId)> {
        let [segment] = operand.0.as_slice() else {
            return None;
        };
        let tensor = graph.tensor(segment.tensor);
        let all = tensor.layout == Layout::Rows && segment.channels == (0..tensor.c());
        let at = self.made_by[segment.tensor.at()]?;
        (all && self.readers[segment.tensor.at()] == 1).then_some((at, segment.tensor))
    }
}

/// A pad that only a convolution reads becomes the convolution's own.
fn pads_into_convs(graph: &mut Graph) {
    let uses = Uses::of(graph);
    for at in 0..graph.nodes.len() {
        let node = &graph.nodes[at];
        if !matches!(node.op, Op::Conv(_)) {
            continue;
        }
        let Some((source, padded)) = uses.only_for(graph, &node.operands[0]) else {
            continue;
        };
        let pad = &graph.nodes[source];
        let Op::Pad { value, .. } = pad.op else {
            continue;
        };
        if !pad.tail.is_identity() {
            continue;
        }
        let join = |side: Side| {
            let output = graph.tensor(node.outputs[0]).len(side);
            let lengths = [graph.tensor(padded).len(side), output];
            let image = graph.tensor(pad.operands[0].0[0].tensor).len(side);
            joined(
                &pad.op.window(side),
                &node.op.window(side),
                image,
                lengths,
                value,
            )
        };
        let (Some(down), Some(across)) = (join(Side::Rows), join(Side::Cols)) else {
            continue;
        };
        let (operand, name) = (
            pad.operands[0].clone(),
            format!("{}+{}", pad.name, node.name),
        );
        let node = &mut graph.nodes[at];
        if let Op::Conv(Conv { rows, cols, .. }) = &mut node.op {
            (*rows, *cols) = (down, across);
            node.operands[0] = operand;
            node.name = name;
        }
    }
}

/// The window of a convolution and a pad before it, where one window can say it: `lengths` are the
/// padded image's and the output's.
fn joined(
    pad: &Window,
    conv: &Window,
    image: u64,
    lengths: [u64; 2],
    value: f32,
) -> Option<Window> {
    let [padded, output] = lengths.map(|len| len as i64);
    let &Window::Taps {
        kernel,
        stride,
        dilation,
        pad: own,
        border: Border::Fill,
    } = conv
    else {
        return None;
    };
    let (before, border) = match pad {
        Window::Same => return Some(conv.clone()),
        Window::Taps {
            stride: 1,
            pad,
            border,
            ..
        } => (*pad, *border),
        _ => return None,
    };
    let last = (output - 1) * stride as i64 - own + ((kernel - 1) * dilation) as i64;
    let inside = own <= 0 && last < padded;
    let grows = before >= 0 && padded - before >= image as i64;
    let holds = match border {
        Border::Fill => value == 0.0 && (inside || grows),
        Border::Edge | Border::Reflect => inside,
    };
    holds.then_some(Window::Taps {
        kernel,
        stride,
        dilation,
        pad: own + before,
        border,
    })
}

/// Element-wise nodes become the tail of the node that makes what only they read.
fn tails_into_producers(graph: &mut Graph) {
    let mut uses = Uses::of(graph);
    for at in 0..graph.nodes.len() {
        while let Some((source, merged)) = absorbed(graph, &uses, at) {
            uses.count(&graph.nodes[source], -1);
            uses.count(&graph.nodes[at], -1);
            uses.count(&merged, 1);
            graph.nodes[at] = merged;
            graph.nodes[source].clear();
        }
    }
}

/// Node `at` merged into the last of the nodes that can take it, which node that is.
fn absorbed(graph: &Graph, uses: &Uses, at: usize) -> Option<(usize, Node)> {
    let node = &graph.nodes[at];
    if node.op != Op::Pointwise {
        return None;
    }
    let operands = || node.operands.iter().chain(&node.extras);
    let dims = &graph.tensor(node.outputs[0]).dims;
    let latest = node.reads().filter_map(|t| uses.made_by[t.at()]).max();
    let bytes = |ids: &mut dyn Iterator<Item = TensorId>| -> u64 {
        ids.map(|id| graph.tensor(id).bytes()).sum()
    };
    let mut candidates: Vec<(usize, TensorId)> = operands()
        .filter_map(|operand| uses.only_for(graph, operand))
        .filter(|&(source, tensor)| {
            let whole = |o: &Operand| uses.only_for(graph, o).is_some();
            let reads = |o: &&Operand| o.0.iter().any(|s| s.tensor == tensor);
            // a node that would wait for another operand must not keep more than it makes
            let waits = latest.is_some_and(|latest| latest > source);
            let keeps = bytes(&mut graph.nodes[source].reads());
            graph.nodes[source].op.in_strips()
                && (!waits || keeps <= graph.tensor(tensor).bytes())
                && graph.tensor(tensor).dims == *dims
                && operands().filter(reads).all(whole)
        })
        .collect();
    candidates.sort_unstable();
    candidates.into_iter().rev().find_map(|(source, tensor)| {
        let merged = merge(&graph.nodes[source], node, tensor);
        let fits = merged.tail.code.len() <= MOST_CODE
            && merged.extras.len() <= MOST_EXTRAS
            && merged.whole.len() <= MOST_WHOLE
            && merged.tail.alive() <= MOST_ALIVE;
        fits.then_some((source, merged))
    })
}

/// `source` with `node` as its tail; `tensor` is what joins them.
fn merge(source: &Node, node: &Node, tensor: TensorId) -> Node {
    let mut merged = Node {
        name: format!("{}+{}", source.name, node.name),
        outputs: node.outputs.clone(),
        ..source.clone()
    };
    let (result, first) = match source.tail.code.len() {
        0 => (Arg::Input(0), 0),
        n => (Arg::Value(n as u32 - 1), n as u32),
    };
    let inputs: Vec<Arg> = node
        .operands
        .iter()
        .chain(&node.extras)
        .map(|operand| {
            if operand.0[0].tensor == tensor {
                return result;
            }
            if merged.op == Op::Pointwise && *operand == merged.operands[0] {
                return Arg::Input(0);
            }
            Arg::Input(find_or_push(&mut merged.extras, operand) + 1)
        })
        .collect();
    let whole: Vec<u32> = node
        .whole
        .iter()
        .map(|w| find_or_push(&mut merged.whole, w))
        .collect();
    let vectors = merged.tail.vectors.len() as u32;
    merged
        .tail
        .vectors
        .extend(node.tail.vectors.iter().cloned());
    merged
        .tail
        .code
        .extend(node.tail.code.iter().map(|inst| Inst {
            args: inst.args.map(|arg| match arg {
                Arg::Input(i) => inputs.get(i as usize).copied().unwrap_or(arg),
                Arg::Value(v) => Arg::Value(v + first),
                Arg::Channel(k) => Arg::Channel(k + vectors),
                Arg::Whole(w) => Arg::Whole(whole.get(w as usize).copied().unwrap_or(w)),
                Arg::Scalar(_) => arg,
            }),
            ..*inst
        }));
    merged
}

fn find_or_push<T: Clone + PartialEq>(list: &mut Vec<T>, item: &T) -> u32 {
    let found = list.iter().position(|x| x == item);
    let at = found.unwrap_or_else(|| {
        list.push(item.clone());
        list.len() - 1
    });
    at as u32
}

/// What a convolution's tail first multiplies with and adds goes into its weights and bias.
fn factors_into_convs(graph: &mut Graph) {
    for node in &mut graph.nodes {
        let Op::Conv(conv) = &mut node.op else {
            continue;
        };
        while let Some((factor, shift)) = first_factor(&node.tail, conv.cout as usize) {
            let old = conv.bias.take().unwrap_or_else(|| vec![0.0; factor.len()]);
            let bias = old.iter().zip(&factor).zip(&shift);
            let bias: Vec<f32> = bias
                .map(|((&old, a), b)| (f64::from(old) * a + b) as f32)
                .collect();
            conv.bias = Some(bias).filter(|bias| bias.iter().any(|&b| b != 0.0));
            if factor.iter().any(|&a| a != 1.0) {
                let old = conv.scale.take().unwrap_or_else(|| vec![1.0; factor.len()]);
                let scale = old.iter().zip(&factor);
                conv.scale = Some(scale.map(|(&old, a)| (f64::from(old) * a) as f32).collect());
            }
            node.tail.drop_first();
        }
    }
}

/// If all that a tail does with input 0 is to multiply it with and add constants first: those.
fn first_factor(tail: &Expr, channels: usize) -> Option<(Vec<f64>, Vec<f64>)> {
    let first = tail.code.first()?;
    let args = |inst: &Inst| inst.args[..inst.func.arity()].to_vec();
    let uses = tail
        .code
        .iter()
        .flat_map(args)
        .filter(|a| *a == Arg::Input(0))
        .count();
    if uses != 1 {
        return None;
    }
    let constant = |arg: &Arg| match arg {
        Arg::Scalar(x) => Some(vec![f64::from(*x); channels]),
        Arg::Channel(k) => {
            let vector = tail.vectors.get(*k as usize)?;
            let wide: Vec<f64> = vector.iter().map(|&x| x.into()).collect();
            (wide.len() == channels).then_some(wide)
        }
        _ => None,
    };
    let same = |x: f64| vec![x; channels];
    let (ones, zeros) = (same(1.0), same(0.0));
    let x = Arg::Input(0);
    match (first.func, &args(first)[..]) {
        (Func::Mul, [a, b]) if *a == x => Some((constant(b)?, zeros)),
        (Func::Mul, [a, b]) if *b == x => Some((constant(a)?, zeros)),
        (Func::Add, [a, b]) if *a == x => Some((ones, constant(b)?)),
        (Func::Add, [a, b]) if *b == x => Some((ones, constant(a)?)),
        (Func::Sub, [a, b]) if *a == x => {
            Some((ones, constant(b)?.into_iter().map(|b| -b).collect()))
        }
        (Func::MulAdd, [a, b, c]) if *a == x => Some((constant(b)?, constant(c)?)),
        _ => None,
    }
}

/// Drops nodes that no output needs, then tensors, weights and vectors that no node needs.
fn drop_unused(graph: &mut Graph) -> Result<()> {
    let mut wanted = vec![false; graph.tensors.len()];
    for id in graph.outputs.iter().chain(&graph.inputs) {
        wanted[id.at()] = true;
    }
    let mut nodes: Vec<Node> = Vec::with_capacity(graph.nodes.len());
    for node in std::mem::take(&mut graph.nodes).into_iter().rev() {
        if node.outputs.iter().any(|o| wanted[o.at()]) {
            for id in node.reads().chain(node.outputs.iter().copied()) {
                wanted[id.at()] = true;
            }
            nodes.push(node);
        }
    }
    nodes.reverse();
    let tensors = std::mem::take(&mut graph.tensors);
    let mut ids: Vec<Option<TensorId>> = Vec::with_capacity(tensors.len());
    for (tensor, wanted) in tensors.into_iter().zip(wanted) {
        ids.push(if wanted {
            Some(graph.add_tensor(tensor)?)
        } else {
            None
        });
    }
    let moved = |id: TensorId| ids[id.at()].unwrap_or(id);
    for node in &mut nodes {
        node.rename(moved);
        node.tail.drop_unused_vectors();
    }
    for id in graph.inputs.iter_mut().chain(&mut graph.outputs) {
        *id = moved(*id);
    }
    let constants = std::mem::take(&mut graph.constants).into_iter();
    graph.constants = constants
        .filter_map(|(id, value)| ids[id.at()].map(|id| (id, value)))
        .collect();
    let mut weights = Vec::new();
    let mut places = HashMap::new();
    for node in &mut nodes {
        if let Op::Conv(conv) = &mut node.op {
            conv.weight = *places.entry(conv.weight).or_insert_with(|| {
                weights.push(graph.weights[conv.weight].clone());
                weights.len() - 1
            });
        }
    }
    (graph.weights, graph.nodes) = (weights, nodes);
    Ok(())
}

impl Node {
    /// Every tensor that it reads.
    fn reads(&self) -> impl Iterator<Item = TensorId> + '_ {
        let operands = self.operands.iter().chain(&self.extras);
        let rows = operands.flat_map(|o| o.0.iter().map(|s| s.tensor));
        rows.chain(self.whole.iter().flatten().copied())
    }

    /// Names every tensor anew.
    fn rename(&mut self, new: impl Fn(TensorId) -> TensorId) {
        for operand in self.operands.iter_mut().chain(&mut self.extras) {
            for segment in &mut operand.0 {
                segment.tensor = new(segment.tensor);
            }
        }
        for id in self.whole.iter_mut().flatten().chain(&mut self.outputs) {
            *id = new(*id);
        }
    }

    /// Makes it a node that reads and makes nothing.
    fn clear(&mut self) {
        *self = Node {
            name: String::new(),
            op: Op::Pointwise,
            operands: Vec::new(),
            tail: Expr::default(),
            extras: Vec::new(),
            whole: Vec::new(),
            outputs: Vec::new(),
        };
    }
}
