//! Convolution and pooling.

use crate::dense;
use crate::error::Result;
use crate::graph::{Border, Conv, Op, Pool, PoolKind, Window};

use super::emit::Emit;
use super::item::{Call, Lowered, Rows};

/// The image that a windowed op reads and the lengths of what it makes.
fn ends(emit: &mut Emit, call: &Call<'_>) -> Result<Option<(Rows, [u64; 4])>> {
    let Some(to) = call.image() else {
        return Ok(None);
    };
    let rows = emit.image(call.data()?)?;
    Ok(rows.map(|rows| (rows, to)))
}

/// The windows of a convolution along height and width, or of a pooling.
fn windows(call: &Call<'_>, size: [u64; 2], from: &Rows) -> Result<[dense::Window; 2]> {
    let windows = dense::windows(call.op(), &size, &from.dims[2..])?;
    let two: Option<[_; 2]> = windows.try_into().ok();
    two.ok_or_else(|| call.bad("its window must have a height and a width"))
}

fn taps(window: dense::Window) -> Window {
    Window::Taps {
        kernel: window.size as u64,
        stride: window.stride as u64,
        dilation: window.dilation as u64,
        pad: window.before,
        border: Border::Fill,
    }
}

fn transposed(window: dense::Window) -> Window {
    Window::Transposed {
        kernel: window.size as u64,
        stride: window.stride as u64,
        dilation: window.dilation as u64,
        pad: window.before,
    }
}

/// `Conv` and `ConvTranspose`.
pub(super) fn convolution(emit: &mut Emit, call: &Call<'_>) -> Lowered {
    let Some(weight) = call.known(1) else {
        return Ok(None);
    };
    if call.unknown(2) {
        return Ok(None);
    }
    let Some((rows, to)) = ends(emit, call)? else {
        return Ok(None);
    };
    let [_, _, kh, kw] = *weight.dims() else {
        return Err(call.bad("its weights must have four dimensions"));
    };
    let both = windows(call, [kh, kw], &rows)?;
    let [down, across] = match call.op().kind.as_str() {
        "Conv" => both.map(taps),
        _ => both.map(transposed),
    };
    let name = call.node.inputs.get(1).map_or("", String::as_str);
    let conv = Conv {
        weight: emit.weight(name, weight)?,
        scale: None,
        bias: call.floats(2)?,
        cout: to[1],
        groups: call.op().int("group").unwrap_or(1) as u64,
        rows: down,
        cols: across,
        tile: 1,
    };
    let made = emit.strip(call.name(), &call.label(0), Op::Conv(conv), &rows, to)?;
    Ok(Some(vec![made.into()]))
}

/// `MaxPool` and `AveragePool`.
pub(super) fn pool(emit: &mut Emit, call: &Call<'_>) -> Lowered {
    if call.wants(1) {
        return Ok(None);
    }
    let Some((rows, to)) = ends(emit, call)? else {
        return Ok(None);
    };
    let size = match call.op().ints("kernel_shape") {
        Some(&[h, w]) if h > 0 && w > 0 => [h as u64, w as u64],
        _ => return Err(call.bad("its kernel_shape must be two numbers")),
    };
    let both = windows(call, size, &rows)?;
    let kind = match call.op().kind.as_str() {
        "MaxPool" => PoolKind::Max,
        _ if call.op().int("count_include_pad").unwrap_or(0) == 0 => PoolKind::Mean,
        _ => PoolKind::MeanPadded {
            after: both.map(|window| window.after.max(0) as u64),
        },
    };
    let [down, across] = both.map(taps);
    let pool = Pool {
        kind,
        rows: down,
        cols: across,
    };
    let made = emit.strip(call.name(), &call.label(0), Op::Pool(pool), &rows, to)?;
    Ok(Some(vec![made.into()]))
}
