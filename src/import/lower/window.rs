//! Convolution and pooling.

use crate::error::Result;
use crate::graph::{Border, Conv, Op, Pool, PoolKind, Window};

use super::emit::Emit;
use super::item::{Call, Lowered, Rows};

/// Strides, dilations and padding of a windowed op along height and width.
struct Geometry {
    kernel: [u64; 2],
    stride: [u64; 2],
    dilation: [u64; 2],
    /// Before and after the image; negative where positions of it are skipped.
    pads: [[i64; 2]; 2],
}

impl Geometry {
    fn new(call: &Call<'_>, kernel: [u64; 2], from: [u64; 4], to: [u64; 4]) -> Result<Self> {
        let positive = |name| -> Result<[u64; 2]> {
            let pair = call.pair(name, 1)?;
            match pair.map(u64::try_from) {
                [Ok(a @ 1..), Ok(b @ 1..)] => Ok([a, b]),
                _ => Err(call.bad(format!("its {name} {pair:?} must be 1 or more"))),
            }
        };
        if kernel.iter().any(|&k| k == 0 || k >= 1 << 31) {
            return Err(call.bad(format!("its kernel {kernel:?} makes no sense")));
        }
        let (stride, dilation) = (positive("strides")?, positive("dilations")?);
        let pads = pads(call, [kernel, stride, dilation], from, to)?;
        Ok(Geometry {
            kernel,
            stride,
            dilation,
            pads,
        })
    }

    fn taps(&self, side: usize) -> Window {
        Window::Taps {
            kernel: self.kernel[side],
            stride: self.stride[side],
            dilation: self.dilation[side],
            pad: self.pads[side][0],
            border: Border::Fill,
        }
    }

    fn transposed(&self, side: usize) -> Window {
        Window::Transposed {
            kernel: self.kernel[side],
            stride: self.stride[side],
            dilation: self.dilation[side],
            pad: self.pads[side][0],
        }
    }
}

/// Padding before and after the image along height and width.
fn pads(
    call: &Call<'_>,
    [kernel, stride, dilation]: [[u64; 2]; 3],
    from: [u64; 4],
    to: [u64; 4],
) -> Result<[[i64; 2]; 2]> {
    let op = call.op();
    let transposed = op.kind == "ConvTranspose";
    let auto = op.str("auto_pad").unwrap_or("NOTSET");
    let sized = transposed && op.ints("output_shape").is_some();
    if auto == "NOTSET" && !sized {
        return match op.ints("pads").unwrap_or(&[0; 4]) {
            [t, l, b, r] if [t, l, b, r].iter().all(|p| p.unsigned_abs() < 1 << 31) => {
                Ok([[*t, *b], [*l, *r]])
            }
            other => Err(call.bad(format!("its pads {other:?} must be four sensible numbers"))),
        };
    }
    let extra = call.pair("output_padding", 0)?;
    let side = |i: usize| {
        let reach = ((kernel[i] - 1) * dilation[i]) as i64 + 1;
        let (from, to, stride) = (from[i + 2] as i64, to[i + 2] as i64, stride[i] as i64);
        let total = match auto {
            "VALID" if !sized => 0,
            _ if transposed => (from - 1) * stride + extra[i] + reach - to,
            _ => ((to - 1) * stride + reach - from).max(0),
        };
        // the odd one goes to the end, except where told otherwise; a transposed convolution of a
        // given size counts as told otherwise
        let small = total.div_euclid(2);
        let upper = auto == "SAME_UPPER";
        if upper {
            [small, total - small]
        } else {
            [total - small, small]
        }
    };
    Ok([side(0), side(1)])
}

/// The image that a windowed op reads and the lengths of what it makes.
fn ends(emit: &mut Emit, call: &Call<'_>) -> Result<Option<(Rows, [u64; 4])>> {
    let Some(to) = call.image() else {
        return Ok(None);
    };
    let rows = emit.image(call.data()?)?;
    Ok(rows.map(|rows| (rows, to)))
}

pub(super) fn conv(emit: &mut Emit, call: &Call<'_>) -> Lowered {
    convolution(emit, call, Geometry::taps)
}

pub(super) fn conv_transpose(emit: &mut Emit, call: &Call<'_>) -> Lowered {
    convolution(emit, call, Geometry::transposed)
}

fn convolution(
    emit: &mut Emit,
    call: &Call<'_>,
    window: impl Fn(&Geometry, usize) -> Window,
) -> Lowered {
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
    let geometry = Geometry::new(call, [kh, kw], rows.dims, to)?;
    let name = call.node.inputs.get(1).map_or("", String::as_str);
    let conv = Conv {
        weight: emit.weight(name, weight)?,
        scale: None,
        bias: call.floats(2)?,
        cout: to[1],
        groups: call.op().int("group").unwrap_or(1) as u64,
        rows: window(&geometry, 0),
        cols: window(&geometry, 1),
    };
    let made = emit.strip(call.name(), &call.label(0), Op::Conv(conv), &rows, to)?;
    Ok(Some(vec![made.into()]))
}

pub(super) fn pool(emit: &mut Emit, call: &Call<'_>) -> Lowered {
    if call.wants(1) {
        return Ok(None);
    }
    let Some((rows, to)) = ends(emit, call)? else {
        return Ok(None);
    };
    let kernel = call.pair("kernel_shape", 0)?.map(|k| k as u64);
    let geometry = Geometry::new(call, kernel, rows.dims, to)?;
    let kind = match call.op().kind.as_str() {
        "MaxPool" => PoolKind::Max,
        _ if call.op().int("count_include_pad").unwrap_or(0) == 0 => PoolKind::Mean,
        _ => PoolKind::MeanPadded {
            after: geometry.pads.map(|[_, after]| after.max(0) as u64),
        },
    };
    let pool = Pool {
        kind,
        rows: geometry.taps(0),
        cols: geometry.taps(1),
    };
    let made = emit.strip(call.name(), &call.label(0), Op::Pool(pool), &rows, to)?;
    Ok(Some(vec![made.into()]))
}
