//! Choosing and joining: concatenation, splits, tiles. Along the channels they are free.

use crate::error::Result;
use crate::func::Func;
use crate::graph::{Arg, Expr, Op, Operand, Window};

use super::emit::Emit;
use super::item::{Call, Item, Lowered, Rows};
use super::space::take;

/// Channels that are named one by one, at most.
const MOST_CHANNELS: u64 = 1 << 16;
/// Images that are joined along rows or columns in strips, at most.
const MOST_PARTS: usize = 8;

pub(super) fn concat(emit: &mut Emit, call: &Call<'_>) -> Lowered {
    let Some(to) = call.image() else {
        return Ok(None);
    };
    let items: Vec<&Item> = call.args.iter().flatten().collect();
    let axis = call.axis("axis", 1, 4)?;
    let any_rows = items.iter().any(|item| matches!(item, Item::Rows(_)));
    if !any_rows || axis == 0 || to.contains(&0) {
        return Ok(None);
    }
    if let [item] = items.as_slice() {
        return Ok(Some(vec![(*item).clone()]));
    }
    if axis > 1 && items.len() > MOST_PARTS {
        return Ok(None);
    }
    let mut parts = Vec::with_capacity(items.len());
    for item in items {
        if emit.shape(item).1[axis] == 0 {
            continue;
        }
        match emit.rows(item)? {
            Some(rows) => parts.push(rows),
            None => return Ok(None),
        }
    }
    let rows = match axis {
        1 => join(&parts, to),
        _ => lay(emit, call, &parts, axis, to)?,
    };
    Ok(Some(vec![rows.into()]))
}

/// Images side by side along the channels.
fn join(parts: &[Rows], dims: [u64; 4]) -> Rows {
    let segments = parts.iter().flat_map(|rows| rows.operand.0.iter().cloned());
    Rows {
        operand: Operand(segments.collect()),
        dims,
        dtype: parts[0].dtype,
    }
}

/// Images one after the other along the rows or columns: each with zeros around it, added up.
fn lay(
    emit: &mut Emit,
    call: &Call<'_>,
    parts: &[Rows],
    axis: usize,
    dims: [u64; 4],
) -> Result<Rows> {
    let (name, label) = (call.name(), call.label(0));
    let mut operands = Vec::with_capacity(parts.len());
    let mut start = 0;
    for rows in parts {
        let label = format!("{label}.part");
        let place = (-(start as i64), 1, dims[axis]);
        operands.push(take(emit, (name, &label), rows, axis, place)?.operand);
        start += rows.dims[axis];
    }
    let mut sum = Expr::default();
    let mut all = Arg::Input(0);
    for i in 1..operands.len() as u32 {
        all = sum.push(Func::Add, &[all, Arg::Input(i)]);
    }
    emit.pointwise(
        name,
        &label,
        sum,
        operands,
        Vec::new(),
        (parts[0].dtype, dims),
    )
}

pub(super) fn split(emit: &mut Emit, call: &Call<'_>) -> Lowered {
    let Item::Rows(rows) = call.data()? else {
        return Ok(None);
    };
    let axis = call.axis("axis", 0, 4)?;
    if axis == 0 || call.outs.iter().any(|(_, dims)| dims.contains(&0)) {
        return Ok(None);
    }
    let mut parts = Vec::with_capacity(call.outs.len());
    let mut start = 0;
    for (i, (_, dims)) in call.outs.iter().enumerate() {
        let (name, label, len) = (call.name(), &call.label(i), dims[axis]);
        let part = match axis {
            1 => emit.channels(name, label, rows, start..start + len)?,
            _ => take(emit, (name, label), rows, axis, (start as i64, 1, len))?,
        };
        start += len;
        parts.push(part.into());
    }
    Ok(Some(parts))
}

/// `Gather` of channels.
pub(super) fn gather(emit: &mut Emit, call: &Call<'_>) -> Lowered {
    let (Item::Rows(rows), Some(to)) = (call.data()?, call.image()) else {
        return Ok(None);
    };
    let indices = call
        .ints(1)?
        .filter(|list| list.len() as u64 <= MOST_CHANNELS);
    let (Some(indices), 1) = (indices, call.axis("axis", 0, 4)?) else {
        return Ok(None);
    };
    let c = rows.dims[1];
    let mut list = Vec::with_capacity(indices.len());
    for index in indices {
        match u64::try_from(if index < 0 {
            index.saturating_add(c as i64)
        } else {
            index
        }) {
            Ok(channel) if channel < c => list.push(channel),
            _ => return Err(call.bad(format!("channel {index} is outside of {c}"))),
        }
    }
    if to != [rows.dims[0], list.len() as u64, rows.dims[2], rows.dims[3]] || list.is_empty() {
        return Ok(None);
    }
    let rows = emit.channels(call.name(), &call.label(0), rows, list)?;
    Ok(Some(vec![rows.into()]))
}

pub(super) fn expand(emit: &mut Emit, call: &Call<'_>) -> Lowered {
    let (_, from) = emit.shape(call.data()?);
    let (Ok(from), Some(to)) = (<[u64; 4]>::try_from(from), call.image()) else {
        return Ok(None);
    };
    if matches!(call.data()?, Item::Known(_)) {
        return Ok(None);
    }
    repeat(emit, call, from, to)
}

pub(super) fn tile(emit: &mut Emit, call: &Call<'_>) -> Lowered {
    let (Item::Rows(rows), Some(to)) = (call.data()?, call.image()) else {
        return Ok(None);
    };
    let rows = rows.clone();
    let grows: Vec<usize> = (0..4).filter(|&axis| rows.dims[axis] != to[axis]).collect();
    match grows.as_slice() {
        [axis @ (2 | 3)] if rows.dims[*axis] > 1 && !to.contains(&0) => {
            let times = (to[*axis] / rows.dims[*axis]) as usize;
            if times > MOST_PARTS {
                return Ok(None);
            }
            let parts = vec![rows; times];
            let rows = lay(emit, call, &parts, *axis, to)?;
            Ok(Some(vec![rows.into()]))
        }
        _ => repeat(emit, call, rows.dims, to),
    }
}

/// Repeats channels as a whole, and single rows and columns.
fn repeat(emit: &mut Emit, call: &Call<'_>, from: [u64; 4], to: [u64; 4]) -> Lowered {
    let stretches = |axis: usize| from[axis] == to[axis] || from[axis] == 1;
    if from[0] != to[0]
        || !stretches(2)
        || !stretches(3)
        || to.contains(&0)
        || to[1] > MOST_CHANNELS
    {
        return Ok(None);
    }
    if to[2..] == [1, 1] && !matches!(call.data()?, Item::Rows(_)) {
        return Ok(None);
    }
    let Some(mut rows) = emit.rows(call.data()?)? else {
        return Ok(None);
    };
    let (name, label) = (call.name(), &call.label(0));
    if to[2..] != from[2..] {
        let window = |axis: usize| match to[axis] / from[axis] {
            1 => Window::Same,
            factor => Window::Repeat { factor },
        };
        let op = Op::Resize {
            rows: window(2),
            cols: window(3),
        };
        let dims = [from[0], from[1], to[2], to[3]];
        rows = emit.strip(name, label, op, &rows, dims)?;
    }
    if to[1] != from[1] {
        rows = emit.channels(name, label, &rows, (0..to[1]).map(|i| i % from[1]))?;
    }
    Ok(Some(vec![rows.into()]))
}
