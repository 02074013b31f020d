//! Moving rows and columns: slices, padding, depth to space and back.

use crate::error::Result;
use crate::graph::{Border, Op, Window};
use crate::import::constant::Constant;

use super::emit::Emit;
use super::item::{Call, Item, Lowered, Rows};

/// One tap that reads `start + o · step`.
fn moved(start: i64, step: u64, border: Border) -> Window {
    Window::Taps {
        kernel: 1,
        stride: step,
        dilation: 1,
        pad: -start,
        border,
    }
}

/// Positions `start, start + step, …` of `rows` along `axis` (2 or 3); positions outside are zeros.
pub(super) fn take(
    emit: &mut Emit,
    (name, label): (&str, &str),
    rows: &Rows,
    axis: usize,
    (start, step, len): (i64, u64, u64),
) -> Result<Rows> {
    let mut dims = rows.dims;
    dims[axis] = len;
    let window = moved(start, step, Border::Fill);
    let (rows_window, cols) = match axis {
        2 => (window, Window::Same),
        _ => (Window::Same, window),
    };
    let op = Op::Pad {
        rows: rows_window,
        cols,
        value: 0.0,
    };
    emit.strip(name, label, op, rows, dims)
}

/// Where a slice of one axis starts, and its step.
#[derive(Clone, Copy)]
struct Cut {
    start: i64,
    step: i64,
}

pub(super) fn slice(emit: &mut Emit, call: &Call<'_>) -> Lowered {
    let (Item::Rows(rows), Some(to)) = (call.data()?, call.image()) else {
        return Ok(None);
    };
    let list = |name: &str, i: usize| -> Result<Option<Vec<i64>>> {
        match call.op().ints(name) {
            Some(list) if call.op().opset < 10 => Ok(Some(list.to_vec())),
            _ => call.ints(i),
        }
    };
    let Some(starts) = list("starts", 1)? else {
        return Ok(None);
    };
    let axes = list("axes", 3)?.unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = list("steps", 4)?.unwrap_or_else(|| vec![1; starts.len()]);
    let mut cuts = [Cut { start: 0, step: 1 }; 4];
    for ((&start, &axis), &step) in starts.iter().zip(&axes).zip(&steps) {
        let axis = call.axis_of(axis, 4)?;
        let len = rows.dims[axis] as i64;
        let start = if start < 0 {
            start.saturating_add(len)
        } else {
            start
        };
        let last = if step < 0 { len - 1 } else { len };
        cuts[axis] = Cut {
            start: start.clamp(0, last),
            step,
        };
    }
    let [batch, channels, ..] = cuts;
    let backwards = cuts[2..].iter().any(|cut| cut.step < 1);
    if backwards || batch.step != 1 || to[0] != rows.dims[0] || to.contains(&0) {
        return Ok(None);
    }
    let (name, label) = (call.name(), &call.label(0));
    let mut rows = rows.clone();
    let full = |cut: Cut, axis: usize, rows: &Rows| {
        (cut.start, cut.step) == (0, 1) && to[axis] == rows.dims[axis]
    };
    if !full(channels, 1, &rows) {
        // inside the image, as the output's length says
        let channel = |i: u64| (channels.start + i as i64 * channels.step) as u64;
        rows = emit.channels(name, label, &rows, (0..to[1]).map(channel))?;
    }
    let [down, across] = [2, 3].map(|axis| {
        let (cut, whole) = (cuts[axis], full(cuts[axis], axis, &rows));
        let step = if to[axis] == 1 { 1 } else { cut.step as u64 };
        if whole {
            Window::Same
        } else {
            moved(cut.start, step, Border::Fill)
        }
    });
    if (&down, &across) != (&Window::Same, &Window::Same) {
        let op = Op::Pad {
            rows: down,
            cols: across,
            value: 0.0,
        };
        let dims = [rows.dims[0], rows.dims[1], to[2], to[3]];
        rows = emit.strip(name, label, op, &rows, dims)?;
    }
    Ok(Some(vec![rows.into()]))
}

pub(super) fn pad(emit: &mut Emit, call: &Call<'_>) -> Lowered {
    let (Some(to), Some(rows)) = (call.image(), emit.image(call.data()?)?) else {
        return Ok(None);
    };
    let border = match call.op().str("mode").unwrap_or("constant") {
        "constant" => Border::Fill,
        "reflect" => Border::Reflect,
        "edge" => Border::Edge,
        _ => return Ok(None),
    };
    let by_attribute = call.op().opset < 11;
    let given = match call.op().ints("pads") {
        Some(pads) if by_attribute => Some(pads.to_vec()),
        _ => call.ints(1)?,
    };
    let Some(given) = given else {
        return Ok(None);
    };
    let value = match call.known(2) {
        _ if by_attribute => call.op().float("value").unwrap_or(0.0),
        None if call.unknown(2) => return Ok(None),
        None => 0.0,
        Some(Constant::Value(value)) if value.dtype() != crate::dense::DType::F32 => 0.0,
        Some(_) => call
            .floats(2)?
            .and_then(|v| v.first().copied())
            .unwrap_or(0.0),
    };
    let axes = match call.ints(3)? {
        Some(axes) if !by_attribute => axes,
        _ if call.unknown(3) => return Ok(None),
        _ => vec![0, 1, 2, 3],
    };
    let mut before = [0; 4];
    let mut after = [0; 4];
    for (i, &axis) in axes.iter().enumerate() {
        let axis = call.axis_of(axis, 4)?;
        before[axis] = given.get(i).copied().unwrap_or(0);
        after[axis] = given.get(i + axes.len()).copied().unwrap_or(0);
    }
    if before[..2] != [0; 2] || after[..2] != [0; 2] {
        return Ok(None);
    }
    // a mirror behind a crop must not reach back over it
    let reaches = |axis: usize| {
        let kept = rows.dims[axis] as i64 + before[axis].min(0) + after[axis].min(0);
        let crops = before[axis].min(after[axis]) < 0;
        crops && before[axis].max(after[axis]) >= kept
    };
    if border == Border::Reflect && (reaches(2) || reaches(3)) {
        return Ok(None);
    }
    let [rows_window, cols] = [2, 3].map(|axis| match (before[axis], after[axis]) {
        (0, 0) => Window::Same,
        (before, _) => moved(-before, 1, border),
    });
    let op = Op::Pad {
        rows: rows_window,
        cols,
        value,
    };
    let made = emit.strip(call.name(), &call.label(0), op, &rows, to)?;
    Ok(Some(vec![made.into()]))
}

pub(super) fn shuffle(emit: &mut Emit, call: &Call<'_>) -> Lowered {
    let (Some(to), Some(rows)) = (call.image(), emit.image(call.data()?)?) else {
        return Ok(None);
    };
    let block = call.op().int("blocksize").unwrap_or(1).max(1) as u64;
    let crd = call.op().str("mode") == Some("CRD");
    let (name, label) = (call.name(), &call.label(0));
    if call.op().kind == "DepthToSpace" {
        let op = Op::DepthToSpace { block, crd };
        return Ok(Some(vec![emit.strip(name, label, op, &rows, to)?.into()]));
    }
    let mut made = emit.strip(name, label, Op::SpaceToDepth { block }, &rows, to)?;
    if crd {
        let (c, places) = (rows.dims[1], block * block);
        let order = (0..c).flat_map(|i| (0..places).map(move |place| place * c + i));
        made = emit.channels(name, label, &made, order)?;
    }
    Ok(Some(vec![made.into()]))
}
