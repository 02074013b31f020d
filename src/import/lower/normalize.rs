//! Normalisation by mean and variance: batch, instance, group and layer norm.

use crate::dense::{DType, Value};
use crate::error::Result;
use crate::func::Func;
use crate::graph::{Arg, Expr, Gather, Moments};
use crate::import::constant::Constant;

use super::elementwise::{Target, expression};
use super::emit::Emit;
use super::item::{Call, Item, Lowered, Rows};
use super::pixel;
use super::view::View;

pub(super) fn batch(emit: &mut Emit, call: &Call<'_>) -> Lowered {
    let Item::Rows(rows) = call.data()? else {
        return Ok(None);
    };
    let op = call.op();
    let trains = op.int("training_mode").unwrap_or(0) != 0 || (1..5).any(|i| call.wants(i));
    if trains || op.int("spatial") == Some(0) {
        return Ok(None);
    }
    let mut vectors = Vec::with_capacity(4);
    for i in 1..5 {
        match call.floats(i)? {
            Some(vector) => vectors.push(vector),
            None => return Ok(None),
        }
    }
    let [scale, bias, mean, variance] = [0, 1, 2, 3].map(|i| &vectors[i]);
    let epsilon = f64::from(op.float("epsilon").unwrap_or(1e-5));
    let c = rows.dims[1] as usize;
    let mut a = Vec::with_capacity(c);
    let mut b = Vec::with_capacity(c);
    for i in 0..c {
        let at = |v: &[f32]| v.get(i).copied().map(f64::from).unwrap_or_default();
        let factor = at(scale) / (at(variance) + epsilon).sqrt();
        a.push(factor as f32);
        b.push((at(bias) - at(mean) * factor) as f32);
    }
    let mut tail = Expr::default();
    let (a, b) = (tail.vector(a), tail.vector(b));
    tail.push(Func::MulAdd, &[Arg::Input(0), a, b]);
    let operands = vec![rows.operand.clone()];
    let kind = (DType::F32, rows.dims);
    let made = emit.pointwise(call.name(), &call.label(0), tail, operands, vec![], kind)?;
    Ok(Some(vec![made.into()]))
}

/// A normalisation by mean and variance of groups of channels over the image.
struct Norm {
    groups: u64,
    epsilon: f32,
    /// Per channel, or per element where layer norm has it so.
    scale: Option<Item>,
    bias: Option<Item>,
}

impl Norm {
    /// `(x − mean) · (scale / √(variance + epsilon)) + bias`.
    fn lower(&self, emit: &mut Emit, call: &Call<'_>, rows: &Rows) -> Result<Option<Rows>> {
        let (name, label) = (call.name(), call.label(0));
        let groups = self.groups;
        let moments = emit.gather(name, rows, Gather::Moments(Moments { groups }))?;
        let part = |emit: &mut Emit, suffix: &str, index: i64| {
            let label = format!("{label}.{suffix}");
            let index = Item::Known(Constant::Value(Value::i64(&[1], vec![index]).into()));
            let axis = [("axis", crate::dense::Attr::Int(2))];
            emit.compute(
                name,
                &label,
                "Gather",
                &axis,
                vec![Item::Whole(moments), index],
            )
        };
        let mean = part(emit, "mean", 0)?;
        let variance = part(emit, "variance", 1)?;
        let number = |x: f32| Item::Known(Constant::Value(Value::f32(&[], vec![x]).into()));
        let args = vec![Item::Whole(variance), number(self.epsilon)];
        let label_of = format!("{label}.deviation");
        let sum = emit.compute(name, &label_of, "Add", &[], args)?;
        let deviation = emit.compute(name, &label_of, "Sqrt", &[], vec![Item::Whole(sum)])?;
        let c = rows.dims[1];
        let vector = |item: &Option<Item>| -> Result<Option<Vec<f32>>> {
            let Some(Item::Known(constant)) = item else {
                return Ok(None);
            };
            let value = constant.value()?;
            match &value.data {
                crate::dense::Data::F32(values) if values.len() as u64 == c => {
                    Ok(Some(values.clone()))
                }
                _ => Ok(None),
            }
        };
        // channel vectors go into the expression, what else there is follows it
        let (scale, bias) = (vector(&self.scale)?, vector(&self.bias)?);
        let numerator = match &scale {
            Some(values) => Item::Known(Constant::Value(
                Value::f32(&[1, c, 1], values.clone()).into(),
            )),
            None => number(1.0),
        };
        let args = vec![numerator, Item::Whole(deviation)];
        let factor = emit.compute(name, &format!("{label}.factor"), "Div", &[], args)?;
        let mut tail = Expr::default();
        let centred = tail.push(Func::Sub, &[Arg::Input(0), Arg::Whole(0)]);
        let shift = bias
            .clone()
            .filter(|_| scale.is_some() || self.scale.is_none());
        let folded = shift.is_some();
        match shift {
            Some(values) => {
                let shift = tail.vector(values);
                tail.push(Func::MulAdd, &[centred, Arg::Whole(1), shift])
            }
            None => tail.push(Func::Mul, &[centred, Arg::Whole(1)]),
        };
        let operands = vec![rows.operand.clone()];
        let kind = (rows.dtype, rows.dims);
        let made = emit.pointwise(name, &label, tail, operands, vec![mean, factor], kind)?;
        let mut item = Item::Rows(made);
        let rest = [
            (self.scale.as_ref().filter(|_| scale.is_none()), Func::Mul),
            (self.bias.as_ref().filter(|_| !folded), Func::Add),
        ];
        for (operand, func) in rest {
            let Some(operand) = operand else { continue };
            let target = Target {
                name,
                label: &label,
                dtype: rows.dtype,
                dims: &rows.dims,
            };
            let next = expression(emit, target, &[&item, operand], |e, x| {
                e.push(func, x);
            })?;
            match next {
                Some(next) => item = next,
                None => return Ok(None),
            }
        }
        match item {
            Item::Rows(rows) => Ok(Some(rows)),
            _ => Ok(None),
        }
    }
}

/// `values` of groups, for each of their channels.
fn per_channel(values: Vec<f32>, c: u64) -> Item {
    let each = (c as usize / values.len().max(1)).max(1);
    let all: Vec<f32> = values
        .iter()
        .flat_map(|&x| std::iter::repeat_n(x, each))
        .collect();
    let value = Value::f32(&[all.len() as u64], all);
    Item::Known(Constant::Value(value.into()))
}

pub(super) fn instance(emit: &mut Emit, call: &Call<'_>) -> Lowered {
    let (rows, groups, view): (_, _, Option<&View>) = match call.data()? {
        Item::Rows(rows) => (rows, rows.dims[1], None),
        // a group norm, written so
        Item::View(view) => match view.channel_groups() {
            Some(groups) => (&view.rows, groups, Some(view)),
            None => return Ok(None),
        },
        _ => return Ok(None),
    };
    let (Some(scale), Some(bias)) = (call.floats(1)?, call.floats(2)?) else {
        return Ok(None);
    };
    let c = rows.dims[1];
    let norm = Norm {
        groups,
        epsilon: call.op().float("epsilon").unwrap_or(1e-5),
        scale: Some(per_channel(scale, c)),
        bias: Some(per_channel(bias, c)),
    };
    let Some(rows) = norm.lower(emit, call, rows)? else {
        return Ok(None);
    };
    Ok(Some(vec![match view {
        Some(view) => Item::View(view.of(rows)),
        None => rows.into(),
    }]))
}

pub(super) fn group(emit: &mut Emit, call: &Call<'_>) -> Lowered {
    let Item::Rows(rows) = call.data()? else {
        return Ok(None);
    };
    let (Some(scale), Some(bias)) = (call.floats(1)?, call.floats(2)?) else {
        return Ok(None);
    };
    let c = rows.dims[1];
    let groups = call.op().int("num_groups").unwrap_or(0);
    let groups = u64::try_from(groups).ok().filter(|&g| g > 0 && c % g == 0);
    let Some(groups) = groups else {
        return Err(call.bad(format!("its groups do not divide {c} channels")));
    };
    let norm = Norm {
        groups,
        epsilon: call.op().float("epsilon").unwrap_or(1e-5),
        scale: Some(per_channel(scale, c)),
        bias: Some(per_channel(bias, c)),
    };
    let rows = norm.lower(emit, call, rows)?;
    Ok(rows.map(|rows| vec![rows.into()]))
}

/// Layer norm over channels, height and width: one group of all channels.
pub(super) fn layer(emit: &mut Emit, call: &Call<'_>) -> Lowered {
    let Item::Rows(rows) = call.data()? else {
        return pixel::layer_norm(emit, call);
    };
    if call.axis("axis", -1, 4)? != 1 || call.wants(1) || call.wants(2) {
        return Ok(None);
    }
    let norm = Norm {
        groups: 1,
        epsilon: call.op().float("epsilon").unwrap_or(1e-5),
        scale: call.arg(1).cloned(),
        bias: call.arg(2).cloned(),
    };
    let rows = norm.lower(emit, call, rows)?;
    Ok(rows.map(|rows| vec![rows.into()]))
}
