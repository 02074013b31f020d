//! Whole tensors in the arena, as the typed views that [`crate::dense`] works on.

use super::arena::{Arena, Scratch};
use crate::dense::{self, DType, DataMut, DataRef, View, ViewMut};
use crate::error::{Error, Result};
use crate::graph::{Graph, Node, NodeId, Op, TensorId};
use crate::plan::Plan;

/// Runs a dense node.
pub(super) fn run(graph: &Graph, plan: &Plan, arena: &mut Arena, id: NodeId) -> Result<()> {
    let node = graph.node(id);
    let Op::Dense(op) = &node.op else {
        return Ok(());
    };
    let placed = node
        .whole
        .iter()
        .flatten()
        .filter_map(|t| plan.tensor_mem[t.at()]);
    let shared: Vec<_> = placed.map(|mem| plan.range(mem)).collect();
    let range = |t: &TensorId| {
        plan.tensor_mem[t.at()]
            .map(|mem| plan.range(mem))
            .ok_or_else(|| missing(graph, *t))
    };
    let exclusive = node.outputs.iter().map(range).collect::<Result<Vec<_>>>()?;
    let (shared, exclusive) = arena.views(&shared, &exclusive, &mut Scratch::default())?;
    let views = whole_views(graph, plan, node, &shared)?;
    let mut outputs: Vec<ViewMut<'_>> = (node.outputs.iter().zip(exclusive))
        .map(|(t, bytes)| {
            let tensor = graph.tensor(*t);
            ViewMut {
                dims: &tensor.dims,
                data: typed_mut(tensor.dtype, bytes),
            }
        })
        .collect();
    dense::run(op, &views, &mut outputs).map_err(|e| e.at_node(&node.name))
}

/// Views of a node's whole operands: constants, and tensors whose bytes come in `placed`, in order.
pub(super) fn whole_views<'a>(
    graph: &'a Graph,
    plan: &Plan,
    node: &Node,
    placed: &[&'a [u8]],
) -> Result<Vec<Option<View<'a>>>> {
    let mut placed = placed.iter();
    let view = |id: &Option<TensorId>| {
        let Some(id) = id else { return Ok(None) };
        if plan.tensor_mem[id.at()].is_none() {
            return constant(graph, *id).map(Some);
        }
        let tensor = graph.tensor(*id);
        let bytes = placed.next().ok_or_else(|| missing(graph, *id))?;
        Ok(Some(View {
            dims: &tensor.dims,
            data: typed(tensor.dtype, bytes),
        }))
    };
    node.whole.iter().map(view).collect()
}

/// A whole tensor, out of the arena's `bytes` or a constant.
pub(super) fn view<'a>(
    graph: &'a Graph,
    plan: &Plan,
    bytes: &'a [u8],
    id: TensorId,
) -> Result<View<'a>> {
    match plan.tensor_mem[id.at()] {
        None => constant(graph, id),
        Some(mem) => {
            let tensor = graph.tensor(id);
            Ok(View {
                dims: &tensor.dims,
                data: typed(tensor.dtype, &bytes[plan.range(mem)]),
            })
        }
    }
}

fn constant(graph: &Graph, id: TensorId) -> Result<View<'_>> {
    let found = graph.constants.iter().find(|(c, _)| *c == id);
    found
        .map(|(_, value)| value.view())
        .ok_or_else(|| missing(graph, id))
}

fn missing(graph: &Graph, id: TensorId) -> Error {
    Error::Plan(format!(
        "whole tensor `{}` has no place",
        graph.tensor(id).name
    ))
}

fn typed(dtype: DType, bytes: &[u8]) -> DataRef<'_> {
    match dtype {
        DType::F32 => DataRef::F32(bytemuck::cast_slice(bytes)),
        DType::I64 => DataRef::I64(bytemuck::cast_slice(bytes)),
        DType::I32 => DataRef::I32(bytemuck::cast_slice(bytes)),
        DType::U8 => DataRef::U8(bytes),
        DType::Bool => DataRef::Bool(bytes),
    }
}

/// The bytes of a tensor that is written, as its type.
pub(super) fn typed_mut(dtype: DType, bytes: &mut [u8]) -> DataMut<'_> {
    match dtype {
        DType::F32 => DataMut::F32(bytemuck::cast_slice_mut(bytes)),
        DType::I64 => DataMut::I64(bytemuck::cast_slice_mut(bytes)),
        DType::I32 => DataMut::I32(bytemuck::cast_slice_mut(bytes)),
        DType::U8 => DataMut::U8(bytes),
        DType::Bool => DataMut::Bool(bytes),
    }
}

/// The bytes of a tensor.
pub(super) fn bytes_of(data: DataRef<'_>) -> &[u8] {
    match data {
        DataRef::F32(v) => bytemuck::cast_slice(v),
        DataRef::I64(v) => bytemuck::cast_slice(v),
        DataRef::I32(v) => bytemuck::cast_slice(v),
        DataRef::U8(v) | DataRef::Bool(v) => v,
    }
}
