//! Smaller graphs: what leads to given tensors, and the least part that still fails.

use std::collections::{BTreeMap, BTreeSet};

use stripmill::graph::{Graph, Node, TensorId};

/// Every tensor that `node` reads.
pub fn reads(node: &Node) -> Vec<TensorId> {
    let rows = node.operands.iter().chain(&node.extras);
    let rows = rows.flat_map(|o| o.0.iter().map(|s| s.tensor));
    rows.chain(node.whole.iter().flatten().copied()).collect()
}

/// The part of `graph` that makes `outputs`, with its tensors numbered anew.
pub fn ancestors(graph: &Graph, outputs: &[TensorId]) -> Graph {
    let mut needed: BTreeSet<TensorId> = outputs.iter().copied().collect();
    let mut nodes: Vec<Node> = Vec::new();
    for node in graph.nodes.iter().rev() {
        if node.outputs.iter().any(|id| needed.contains(id)) {
            needed.extend(reads(node));
            needed.extend(&node.outputs);
            nodes.push(node.clone());
        }
    }
    nodes.reverse();
    let mut to: BTreeMap<TensorId, TensorId> = BTreeMap::new();
    let mut part = Graph {
        weights: graph.weights.clone(),
        ..Graph::default()
    };
    for &id in &needed {
        let tensor = graph.tensor(id).clone();
        to.insert(id, part.add_tensor(tensor).expect("a tensor of a graph"));
    }
    for node in &mut nodes {
        let rows = node.operands.iter_mut().chain(&mut node.extras);
        for segment in rows.flat_map(|o| &mut o.0) {
            segment.tensor = to[&segment.tensor];
        }
        for id in node.whole.iter_mut().flatten().chain(&mut node.outputs) {
            *id = to[id];
        }
    }
    part.nodes = nodes;
    let kept = |ids: &[TensorId]| ids.iter().filter_map(|id| to.get(id).copied()).collect();
    part.inputs = kept(&graph.inputs);
    part.outputs = kept(outputs);
    let constants = graph.constants.iter();
    part.constants = constants
        .filter_map(|(id, value)| Some((*to.get(id)?, value.clone())))
        .collect();
    part
}

/// The least part of a failing `graph` that fails too: up to the first node whose outputs do.
pub fn smallest(graph: &Graph, mut fails: impl FnMut(&Graph) -> bool) -> Graph {
    let mut parts = graph
        .nodes
        .iter()
        .map(|node| ancestors(graph, &node.outputs));
    parts
        .find(|part| fails(part))
        .unwrap_or_else(|| graph.clone())
}

/// A graph in a few lines, to read in a report.
pub fn describe(graph: &Graph) -> String {
    use std::fmt::Write;
    let mut text = String::new();
    let name = |id: TensorId| {
        let tensor = graph.tensor(id);
        format!("{}{:?}", tensor.name, tensor.dims)
    };
    let operand = |o: &stripmill::graph::Operand| {
        let parts = o.0.iter();
        let parts = parts.map(|s| format!("{}@{:?}", name(s.tensor), s.channels));
        parts.collect::<Vec<_>>().join(" | ")
    };
    let ids = |ids: &[TensorId]| {
        ids.iter()
            .map(|&id| name(id))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let _ = writeln!(text, "inputs  {}", ids(&graph.inputs));
    for node in &graph.nodes {
        let mut op = format!("{:?}", node.op);
        if op.len() > 700 {
            op.truncate(700);
            op.push('…');
        }
        let _ = writeln!(text, "{}: {} = {op}", node.name, ids(&node.outputs));
        for o in &node.operands {
            let _ = writeln!(text, "    of {}", operand(o));
        }
        for inst in &node.tail.code {
            let args = &inst.args[..inst.func.arity()];
            let _ = writeln!(text, "    then {:?} {args:?}", inst.func);
        }
        for o in &node.extras {
            let _ = writeln!(text, "    with {}", operand(o));
        }
        let whole: Vec<TensorId> = node.whole.iter().flatten().copied().collect();
        if !whole.is_empty() {
            let _ = writeln!(text, "    whole {}", ids(&whole));
        }
    }
    let _ = write!(text, "outputs {}", ids(&graph.outputs));
    text
}
