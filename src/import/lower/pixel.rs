//! Ops over the channels of each pixel: sums, products with a matrix, softmax, layer norm, LRN.

use crate::dense::{DType, Data, Value};
use crate::error::Result;
use crate::func::Func;
use crate::graph::{Arg, Border, Conv, Expr, Op, Window};
use crate::import::constant::Constant;

use super::emit::Emit;
use super::item::{Call, Item, Lowered, Rows};

/// A convolution of one tap: `weight` is `[cout, cin, 1, 1]`.
fn mix(
    emit: &mut Emit,
    (name, label): (&str, &str),
    rows: &Rows,
    (cout, weight): (u64, Vec<f32>),
    scale: Option<f32>,
) -> Result<Rows> {
    let tap = Window::Taps {
        kernel: 1,
        stride: 1,
        dilation: 1,
        pad: 0,
        border: Border::Fill,
    };
    let [n, c, h, w] = rows.dims;
    let weight = Constant::new(name, Value::f32(&[cout, c, 1, 1], weight));
    let conv = Conv {
        weight: emit.weight(name, &weight)?,
        scale: scale.map(|scale| vec![scale; cout as usize]),
        bias: None,
        cout,
        groups: 1,
        rows: tap.clone(),
        cols: tap,
        tile: 1,
    };
    emit.strip(name, label, Op::Conv(conv), rows, [n, cout, h, w])
}

/// The sum over the channels of each pixel, or their mean.
pub(super) fn sum(emit: &mut Emit, names: (&str, &str), rows: &Rows, mean: bool) -> Result<Rows> {
    let c = rows.dims[1];
    let ones = (1, vec![1.0; c as usize]);
    mix(emit, names, rows, ones, mean.then_some(1.0 / c as f32))
}

/// `MatMul` of an image whose channels are the last dimension with a known matrix.
pub(super) fn matmul(emit: &mut Emit, call: &Call<'_>) -> Lowered {
    let (Item::View(view), Some(matrix)) = (call.data()?, call.known(1)) else {
        return Ok(None);
    };
    let last = view.dims.len().checked_sub(1);
    let &[k, m] = matrix.dims() else {
        return Ok(None);
    };
    if view.channel_dim() != last || view.rows.dims[1] != k {
        return Ok(None);
    }
    let value = matrix.value()?;
    let Data::F32(values) = &value.data else {
        return Ok(None);
    };
    let at = |i: usize| values[i % k as usize * m as usize + i / k as usize];
    let weight = (m, (0..values.len()).map(at).collect());
    let names = (call.name(), call.label(0));
    let made = mix(emit, (names.0, &names.1), &view.rows, weight, None)?;
    Ok(Some(vec![Item::View(view.of(made))]))
}

/// Layer norm of each pixel: the channels are the last dimension of the image as it is seen.
pub(super) fn layer_norm(emit: &mut Emit, call: &Call<'_>) -> Lowered {
    let Item::View(view) = call.data()? else {
        return Ok(None);
    };
    let rank = view.dims.len();
    let over = call.axis("axis", -1, rank)?;
    if view.channel_dim() != Some(over) || over + 1 != rank || call.wants(1) || call.wants(2) {
        return Ok(None);
    }
    if call.unknown(1) || call.unknown(2) {
        return Ok(None);
    }
    let (name, label) = (call.name(), call.label(0));
    let rows = &view.rows;
    let part = |suffix: &str| format!("{label}.{suffix}");
    let kind = (DType::F32, rows.dims);
    let mean = sum(emit, (name, &part("mean")), rows, true)?;
    let mut tail = Expr::default();
    tail.push(Func::Sub, &[Arg::Input(0), Arg::Input(1)]);
    let operands = vec![rows.operand.clone(), mean.operand];
    let centred = emit.pointwise(name, &part("centred"), tail, operands, vec![], kind)?;
    let mut tail = Expr::default();
    tail.push(Func::Mul, &[Arg::Input(0), Arg::Input(0)]);
    let operands = vec![centred.operand.clone()];
    let squares = emit.pointwise(name, &part("squares"), tail, operands, vec![], kind)?;
    let variance = sum(emit, (name, &part("variance")), &squares, true)?;
    let epsilon = call.op().float("epsilon").unwrap_or(1e-5);
    let mut tail = Expr::default();
    let deviation = tail.push(Func::Add, &[Arg::Input(1), Arg::Scalar(epsilon)]);
    let deviation = tail.push(Func::Sqrt, &[deviation]);
    let mut result = tail.push(Func::Div, &[Arg::Input(0), deviation]);
    for (i, func) in [(1, Func::Mul), (2, Func::Add)] {
        let Some(values) = call.floats(i)? else {
            continue;
        };
        let operand = match values.as_slice() {
            [one] => Arg::Scalar(*one),
            _ => tail.vector(values),
        };
        result = tail.push(func, &[result, operand]);
    }
    let operands = vec![centred.operand, variance.operand];
    let made = emit.pointwise(name, &label, tail, operands, vec![], kind)?;
    Ok(Some(vec![Item::View(view.of(made))]))
}

pub(super) fn lrn(emit: &mut Emit, call: &Call<'_>) -> Lowered {
    let Item::Rows(rows) = call.data()? else {
        return Ok(None);
    };
    let op = call.op();
    let float = |name, default| op.float(name).unwrap_or(default);
    let lrn = Op::Lrn {
        size: u64::try_from(op.int("size").unwrap_or(1))
            .unwrap_or(1)
            .max(1),
        alpha: float("alpha", 1e-4),
        beta: float("beta", 0.75),
        bias: float("bias", 1.0),
    };
    let made = emit.strip(call.name(), &call.label(0), lrn, rows, rows.dims)?;
    Ok(Some(vec![made.into()]))
}

pub(super) fn softmax(emit: &mut Emit, call: &Call<'_>) -> Lowered {
    let op = call.op();
    let log = op.kind == "LogSoftmax";
    let softmax = Op::Softmax { log };
    let (name, label) = (call.name(), &call.label(0));
    // before operator set 13 all dimensions from the axis on count as one
    let flat = op.opset < 13;
    let default = if flat { 1 } else { -1 };
    let made = match call.data()? {
        Item::Rows(rows) => {
            let over = call.axis("axis", default, 4)?;
            if over != 1 || (flat && rows.dims[2..] != [1, 1]) {
                return Ok(None);
            }
            emit.strip(name, label, softmax, rows, rows.dims)?.into()
        }
        Item::View(view) if !flat => {
            let over = call.axis("axis", default, view.dims.len())?;
            if view.channel_dim() != Some(over) {
                return Ok(None);
            }
            Item::View(view.of(emit.strip(name, label, softmax, &view.rows, view.rows.dims)?))
        }
        _ => return Ok(None),
    };
    Ok(Some(vec![made]))
}
