//! What one row (or column) of a tensor depends on: the receptive field.

use std::ops::Range;

use super::{Axis, Graph, Layout, Op, Operand, Side, TensorId};

/// What some rows (or columns) of a tensor depend on of another tensor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reach {
    /// By way of windows; empty where there is no such way.
    pub window: Range<u64>,
    /// All of it, by way of an op that gathers a whole tensor.
    pub whole: bool,
}

/// What row (or column) `at` of `output` depends on, for each of the graph's inputs.
pub fn reach(graph: &Graph, output: TensorId, side: Side, at: u64) -> Vec<Reach> {
    let mut seen = vec![Reach::default(); graph.tensors.len()];
    seen[output.at()].window = at..at + 1;
    for node in graph.nodes.iter().rev() {
        let mut out = Reach::default();
        for id in &node.outputs {
            out.widen(&seen[id.at()]);
        }
        if out == Reach::default() {
            continue;
        }
        let all = matches!(node.op, Op::Gather(_));
        for (k, operand) in node.operands.iter().chain(&node.extras).enumerate() {
            let read = if all {
                Reach {
                    window: 0..0,
                    whole: true,
                }
            } else {
                Reach {
                    window: read(&graph.axis(node, k, side), &out.window),
                    whole: out.whole,
                }
            };
            see(&mut seen, operand, &read);
        }
        for id in node.whole.iter().flatten() {
            seen[id.at()].whole = true;
        }
    }
    graph
        .inputs
        .iter()
        .map(|id| seen[id.at()].clone())
        .collect()
}

/// The receptive field of a tensor: the most rows (or columns) of an input that one of its own
/// depends on, in the middle of the image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// By way of windows.
    pub len: u64,
    /// Whether an end of the input cut it: in a larger image it may be larger.
    pub cut: bool,
    /// All of the input, by way of an op that gathers a whole tensor.
    pub whole: bool,
}

/// The receptive field of `output`, for each of the graph's inputs.
pub fn receptive_field(graph: &Graph, output: TensorId, side: Side) -> Vec<Field> {
    /// Positions that are looked at: strides make one differ from the next.
    const POSITIONS: u64 = 64;
    let len = graph.tensor(output).len(side);
    let middle = len.saturating_sub(POSITIONS) / 2;
    let mut fields = vec![
        Field {
            len: 0,
            cut: false,
            whole: false
        };
        graph.inputs.len()
    ];
    for at in middle..len.min(middle + POSITIONS) {
        for ((seen, field), &input) in reach(graph, output, side, at)
            .iter()
            .zip(&mut fields)
            .zip(&graph.inputs)
        {
            let tensor = graph.tensor(input);
            let end = if tensor.layout == Layout::Rows {
                tensor.len(side)
            } else {
                u64::MAX
            };
            field.len = field.len.max(seen.window.end - seen.window.start);
            field.cut |=
                !seen.window.is_empty() && (seen.window.start == 0 || seen.window.end == end);
            field.whole |= seen.whole;
        }
    }
    fields
}

impl Reach {
    fn widen(&mut self, other: &Reach) {
        self.whole |= other.whole;
        self.window = match (self.window.is_empty(), other.window.is_empty()) {
            (true, _) => other.window.clone(),
            (_, true) => self.window.clone(),
            _ => self.window.start.min(other.window.start)..self.window.end.max(other.window.end),
        };
    }
}

fn see(seen: &mut [Reach], operand: &Operand, read: &Reach) {
    for segment in &operand.0 {
        seen[segment.tensor.at()].widen(read);
    }
}

/// All that outputs `out` read, taps without weight left out. Of many outputs those in the middle read
/// no more than those near the ends.
fn read(axis: &Axis, out: &Range<u64>) -> Range<u64> {
    const ENDS: u64 = 64;
    let (low, high) = (
        out.start.saturating_add(ENDS).min(out.end),
        out.end.saturating_sub(ENDS).max(out.start),
    );
    let ends = (out.start..low).chain(high.max(low)..out.end);
    let taps = ends.flat_map(|o| {
        (0..axis.taps())
            .filter(move |&k| axis.weight(o, k) != 0.0)
            .map(move |k| (o, k))
    });
    let positions = taps.filter_map(|(o, k)| axis.tap(o, k));
    positions
        .map(|i| i..i + 1)
        .reduce(|a, b| a.start.min(b.start)..a.end.max(b.end))
        .unwrap_or(0..0)
}
