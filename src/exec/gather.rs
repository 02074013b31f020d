//! Gathers: rows of a sweep into a whole tensor, or into sums that end as one.

use std::ops::Range;

use super::arena::{Arena, Scratch};
use super::dense::typed_mut;
use super::step::RowTable;
use crate::dense::DataMut;
use crate::error::{Error, Result};
use crate::graph::{Gather, Graph, Node, NodeId, Op};
use crate::kernels::gather::{self as sums, Row, STATE, Sum};
use crate::plan::Plan;

/// The bytes that a gather fills as rows come: its sums, or the tensor itself.
pub(super) fn target(plan: &Plan, node: &Node, id: NodeId) -> Option<Range<usize>> {
    let mem = match node.op {
        Op::Gather(Gather::Whole) => plan.tensor_mem[node.outputs[0].at()],
        _ => plan.node_mem[id.at()],
    };
    mem.map(|mem| plan.range(mem))
}

/// Gathers rows `made`, columns `cols`. `tables` and `shared` hold them, by segment.
#[expect(clippy::too_many_arguments, reason = "one call, from one place")]
pub(super) fn rows(
    graph: &Graph,
    node: &Node,
    kind: Gather,
    item: u64,
    made: &Range<u64>,
    cols: &Range<u64>,
    tables: &[RowTable],
    shared: &[&[u8]],
    target: &mut [u8],
) -> Result<()> {
    let total = node.operands[0].channels() as usize;
    let mut at = 0;
    for (segment, table) in node.operands[0].0.iter().zip(tables) {
        let channels = (segment.channels.end - segment.channels.start) as usize;
        let stride = graph.tensor(segment.tensor).c() as usize;
        let first = segment.channels.start as usize;
        for y in made.clone() {
            let row: &[f32] = bytemuck::cast_slice(shared[table.of(y)]);
            let row = Row {
                row,
                stride,
                first,
                channels,
                x0: cols.start as usize,
                fresh: y == 0,
            };
            match kind {
                Gather::Whole => {
                    let tensor = graph.tensor(node.outputs[0]);
                    let plane = (tensor.h() * tensor.w()) as usize;
                    let start = ((item * tensor.c()) as usize + at) * plane
                        + (y * tensor.w() + cols.start) as usize;
                    scatter(&row, typed_mut(tensor.dtype, target), start, plane);
                }
                Gather::Max => {
                    sums::accumulate(Sum::Max, &row, bytemuck::cast_slice_mut(target), total, at)
                }
                Gather::Mean | Gather::Moments(_) => {
                    sums::accumulate(
                        Sum::Moments,
                        &row,
                        bytemuck::cast_slice_mut(target),
                        total,
                        at,
                    );
                }
            }
        }
        at += channels;
    }
    Ok(())
}

/// Pixels to planes that are `plane` elements apart, from `start` on.
fn scatter(row: &Row<'_>, out: DataMut<'_>, start: usize, plane: usize) {
    fn each<T>(row: &Row<'_>, out: &mut [T], start: usize, plane: usize, to: impl Fn(f32) -> T) {
        for c in 0..row.channels {
            let line = &mut out[start + c * plane..];
            for (v, pixel) in line.iter_mut().zip(row.row.chunks_exact(row.stride)) {
                *v = to(pixel[row.first + c]);
            }
        }
    }
    match out {
        DataMut::F32(out) => each(row, out, start, plane, |v| v),
        DataMut::I64(out) => each(row, out, start, plane, |v| v as i64),
        DataMut::I32(out) => each(row, out, start, plane, |v| v as i32),
        DataMut::U8(out) => each(row, out, start, plane, |v| v as u8),
        DataMut::Bool(out) => each(row, out, start, plane, |v| u8::from(v != 0.0)),
    }
}

/// Ends the sums of batch item `item`: the gather's result.
pub(super) fn finish(
    graph: &Graph,
    plan: &Plan,
    arena: &mut Arena,
    id: NodeId,
    kind: Gather,
    item: u64,
) -> Result<()> {
    let node = graph.node(id);
    if kind == Gather::Whole {
        return Ok(());
    }
    let none = || Error::Plan(format!("gather `{}` has no place", node.name));
    let state = target(plan, node, id).ok_or_else(none)?;
    let result = plan.tensor_mem[node.outputs[0].at()]
        .map(|mem| plan.range(mem))
        .ok_or_else(none)?;
    let (state, mut result) = arena.views(&[state], &[result], &mut Scratch::default())?;
    let state: &[f64] = bytemuck::cast_slice(state[0]);
    let result: &mut [f32] = bytemuck::cast_slice_mut(result.pop().ok_or_else(none)?);
    let from = graph.tensor(node.operands[0].0[0].tensor);
    let total = node.operands[0].channels() as usize;
    debug_assert_eq!(state.len() % (STATE * total), 0);
    let channels = item as usize * total..(item as usize + 1) * total;
    match kind {
        Gather::Whole => {}
        Gather::Max => {
            for (c, v) in result[channels].iter_mut().enumerate() {
                *v = sums::maximum(state, total, c);
            }
        }
        Gather::Mean => {
            for (c, v) in result[channels].iter_mut().enumerate() {
                *v = sums::moments(state, total, c..c + 1, from.h(), from.w()).0 as f32;
            }
        }
        Gather::Moments(moments) => {
            let each = total / moments.groups as usize;
            let pairs = &mut result[2 * channels.start..2 * channels.end];
            for (group, pairs) in pairs.chunks_mut(2 * each).enumerate() {
                let (mean, variance) = sums::moments(
                    state,
                    total,
                    group * each..(group + 1) * each,
                    from.h(),
                    from.w(),
                );
                for pair in pairs.chunks_mut(2) {
                    (pair[0], pair[1]) = (mean as f32, variance as f32);
                }
            }
        }
    }
    Ok(())
}
