//! Element-wise ops on images, with ONNX's broadcasting.

use std::sync::Arc;

use crate::dense::{self, Attr, DType, Data, Value};
use crate::error::Result;
use crate::func::Func;
use crate::graph::{Arg, Expr, Op, Operand, TensorId, Window};
use crate::import::constant::Constant;

use super::emit::Emit;
use super::item::{Call, Item, Lowered, Rows, made_up};
use super::view::View;

/// Where an expression goes: the node's name, its output's name, type and lengths.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) name: &'a str,
    pub(super) label: &'a str,
    pub(super) dtype: DType,
    pub(super) dims: &'a [u64],
}

/// Row operands that a `Sum` or `Max` may have in strips.
const AT_ONCE: usize = 8;

pub(super) fn lower(emit: &mut Emit, call: &Call<'_>) -> Lowered {
    let args = call.args.iter().flatten().collect::<Vec<_>>();
    if args.len()
        != call
            .args
            .iter()
            .rposition(Option::is_some)
            .map_or(0, |i| i + 1)
    {
        return clip(emit, call); // an absent input before a given one: only Clip has that
    }
    let kind = call.op().kind.as_str();
    match kind {
        "Clip" => clip(emit, call),
        "Sum" | "Mean" | "Max" | "Min" => variadic(emit, call, &args),
        "Cast" if call.dtype() == DType::Bool => to(emit, call, &args, |e, x| {
            let zero = e.push(Func::Equal, &[x[0], Arg::Scalar(0.0)]);
            e.push(Func::Not, &[zero]);
        }),
        "Pow" if args.len() == 2 && scalar(args[1])? == Some(2.0) => {
            to(emit, call, &args[..1], |e, x| {
                e.push(Func::Mul, &[x[0], x[0]]);
            })
        }
        _ => match dense::func(call.op()) {
            Some(func) if func.arity() == args.len() => to(emit, call, &args, |e, x| {
                e.push(func, x);
            }),
            _ => Ok(None),
        },
    }
}

fn to(
    emit: &mut Emit,
    call: &Call<'_>,
    args: &[&Item],
    build: impl Fn(&mut Expr, &[Arg]),
) -> Lowered {
    let target = Target {
        name: call.name(),
        label: &call.label(0),
        dtype: call.dtype(),
        dims: call.dims(),
    };
    let item = expression(emit, target, args, build)?;
    Ok(item.map(|item| vec![item]))
}

fn clip(emit: &mut Emit, call: &Call<'_>) -> Lowered {
    let Some(Func::Clip { mut lo, mut hi }) = dense::func(call.op()) else {
        return Ok(None);
    };
    if call.unknown(1) || call.unknown(2) {
        return Ok(None);
    }
    if let Some(values) = call.floats(1)? {
        lo = values.first().copied().unwrap_or(lo);
    }
    if let Some(values) = call.floats(2)? {
        hi = values.first().copied().unwrap_or(hi);
    }
    to(emit, call, &[call.data()?], |e, x| {
        e.push(Func::Clip { lo, hi }, x);
    })
}

fn variadic(emit: &mut Emit, call: &Call<'_>, args: &[&Item]) -> Lowered {
    let func = match call.op().kind.as_str() {
        "Max" => Func::Max,
        "Min" => Func::Min,
        _ => Func::Add,
    };
    if args.len() > AT_ONCE {
        return Ok(None);
    }
    let count = args.len() as f32;
    let mean = call.op().kind == "Mean" && args.len() > 1;
    to(emit, call, args, |e, x| {
        let mut all = x[0];
        for &next in &x[1..] {
            all = e.push(func, &[all, next]);
        }
        if mean {
            e.push(Func::Div, &[all, Arg::Scalar(count)]);
        }
    })
}

/// The one number that an item is known to be.
fn scalar(item: &Item) -> Result<Option<f32>> {
    match item {
        Item::Known(constant) if constant.dims().iter().product::<u64>() == 1 => {
            Ok(floats(&*constant.value()?).first().copied())
        }
        _ => Ok(None),
    }
}

fn floats(value: &Value) -> Vec<f32> {
    match &value.data {
        Data::F32(values) => values.clone(),
        Data::I64(values) => values.iter().map(|&x| x as f32).collect(),
        Data::I32(values) => values.iter().map(|&x| x as f32).collect(),
        Data::U8(values) | Data::Bool(values) => values.iter().map(|&x| x.into()).collect(),
    }
}

/// An expression over `args`, broadcast: rows if one of them is an image of the result's lengths and
/// the others can stand beside it; else none.
pub(super) fn expression(
    emit: &mut Emit,
    target: Target<'_>,
    args: &[&Item],
    build: impl Fn(&mut Expr, &[Arg]),
) -> Result<Option<Item>> {
    if !matches!(target.dtype, DType::F32 | DType::Bool) {
        return Ok(None);
    }
    if let Some(view) = args.iter().find_map(|arg| match arg {
        Item::View(view) => Some(view),
        _ => None,
    }) {
        return through(emit, target, args, view, build);
    }
    let Ok(dims) = <[u64; 4]>::try_from(target.dims) else {
        return Ok(None);
    };
    let is_full = |item: &&&Item| matches!(item, Item::Rows(rows) if rows.dims == dims);
    let any_rows = args.iter().any(|a| matches!(a, Item::Rows(_)));
    let main = match args.iter().find(is_full) {
        Some(Item::Rows(rows)) => Some(rows.clone()),
        // an image that is broadcast against a whole tensor of the result's lengths
        _ if any_rows => {
            let full = args.iter().find(|a| emit.shape(a).1 == dims);
            full.map(|item| emit.rows(item)).transpose()?.flatten()
        }
        _ => None,
    };
    let Some(main) = main else {
        return Ok(None);
    };
    let mut gathering = Gathering {
        dims,
        tail: Expr::default(),
        operands: vec![main.operand],
        whole: Vec::new(),
    };
    let mut inputs = Vec::with_capacity(args.len());
    for arg in args {
        match gathering.arg(emit, target, arg)? {
            Some(input) => inputs.push(input),
            None => return Ok(None),
        }
    }
    let Gathering {
        mut tail,
        operands,
        whole,
        ..
    } = gathering;
    build(&mut tail, &inputs);
    let kind = (target.dtype, dims);
    let rows = emit.pointwise(target.name, target.label, tail, operands, whole, kind)?;
    Ok(Some(rows.into()))
}

/// An expression over images that are all seen the same way, and what can stand beside them: over the
/// images themselves.
fn through(
    emit: &mut Emit,
    target: Target<'_>,
    args: &[&Item],
    view: &View,
    build: impl Fn(&mut Expr, &[Arg]),
) -> Result<Option<Item>> {
    let order = view.order().filter(|_| target.dims.len() == 4);
    let mut inner = Vec::with_capacity(args.len());
    for &arg in args {
        let own = match (arg, &order) {
            (Item::View(other), None) if other.is_like(view) => Some(other.rows.clone().into()),
            (Item::View(other), Some(_)) if other.order() == order => {
                Some(other.rows.clone().into())
            }
            (Item::View(_) | Item::Rows(_), _) => None,
            (item, Some(order)) => in_image_order(emit, item, order)?,
            (Item::Known(_), None) => scalar(arg)?.map(known_scalar),
            _ => None,
        };
        match own {
            Some(item) => inner.push(item),
            None => return Ok(None),
        }
    }
    let mut dims = view.rows.dims;
    for (axis, &len) in order.iter().flatten().zip(target.dims) {
        dims[*axis] = len;
    }
    let inner: Vec<&Item> = inner.iter().collect();
    let own = Target {
        dims: &dims,
        ..target
    };
    let made = expression(emit, own, &inner, build)?;
    Ok(made.map(|item| match (item, order) {
        (Item::Rows(rows), Some(order)) => Item::View(View::new(rows).transpose(&order)),
        (Item::Rows(rows), None) => Item::View(view.of(rows)),
        (other, _) => other,
    }))
}

fn known_scalar(x: f32) -> Item {
    Item::Known(Constant::Value(Value::f32(&[], vec![x]).into()))
}

/// `item`, which is broadcast against an image seen in `order`, in the image's own order.
fn in_image_order(emit: &mut Emit, item: &Item, order: &[usize; 4]) -> Result<Option<Item>> {
    let (_, dims) = emit.shape(item);
    let Some(dims) = aligned(&dims) else {
        return Ok(None);
    };
    let mut back = [0; 4];
    for (i, &axis) in order.iter().enumerate() {
        back[axis] = i as i64;
    }
    let attrs = [("perm", Attr::Ints(back.to_vec()))];
    match item {
        Item::Known(constant) => {
            let value = constant.value()?;
            let view = dense::View {
                dims: &dims,
                data: value.view().data,
            };
            let turned = dense::eval(&made_up("Transpose", attrs), &[Some(view)])?;
            let turned = turned.into_iter().next();
            Ok(turned.map(|value| Item::Known(Constant::new("", value))))
        }
        _ => {
            let label = "broadcast";
            let item = Item::Whole(emit.reshape(label, item.clone(), &dims)?);
            let id = emit.compute(label, label, "Transpose", &attrs, vec![item])?;
            Ok(Some(Item::Whole(id)))
        }
    }
}

/// The operands of an expression as they are found.
struct Gathering {
    dims: [u64; 4],
    tail: Expr,
    operands: Vec<Operand>,
    whole: Vec<TensorId>,
}

impl Gathering {
    /// `item` as an operand, if it can stand beside an image of `dims`.
    fn arg(&mut self, emit: &mut Emit, target: Target<'_>, item: &Item) -> Result<Option<Arg>> {
        let (dtype, own) = emit.shape(item);
        let Some(dims) = aligned(&own) else {
            return Ok(None);
        };
        let [n, c, h, w] = self.dims;
        let pixel =
            dims[2..] == [1, 1] && (dims[0] == n || dims[0] == 1) && (dims[1] == c || dims[1] == 1);
        let beside = dims[0] == n
            && (dims[1] == c || dims[1] == 1)
            && (dims[2] == h || dims[2] == 1)
            && (dims[3] == w || dims[3] == 1);
        match item {
            Item::Known(constant) if dims == [1; 4] => {
                let values = floats(&*constant.value()?);
                Ok(values.first().map(|&x| Arg::Scalar(x)))
            }
            Item::Known(constant) if pixel && dims[0] == 1 => {
                Ok(Some(self.tail.vector(floats(&*constant.value()?))))
            }
            Item::Rows(rows) if dims[2] == h && beside => Ok(Some(self.row(rows))),
            _ if pixel => {
                let mut id = emit.whole(item)?;
                let label = format!("{}.vector", target.label);
                if dtype != DType::F32 {
                    let float = [("to", Attr::Int(1))];
                    id =
                        emit.compute(target.name, &label, "Cast", &float, vec![Item::Whole(id)])?;
                }
                if own.first() != Some(&dims[0]) {
                    id = emit.reshape(&label, Item::Whole(id), &dims)?;
                }
                Ok(Some(self.vector(id)))
            }
            Item::View(_) => Ok(None),
            _ if beside && matches!(dtype, DType::F32 | DType::Bool) => {
                let item = if own.len() == 4 {
                    item.clone()
                } else if let Item::Known(constant) = item {
                    let value = constant.value()?;
                    let data = value.data.clone();
                    Item::Known(Constant::Value(Arc::new(Value {
                        dims: dims.to_vec(),
                        data,
                    })))
                } else {
                    Item::Whole(emit.reshape(target.label, item.clone(), &dims)?)
                };
                let Some(mut rows) = emit.rows(&item)? else {
                    return Ok(None);
                };
                if rows.dims[2] != h {
                    let label = format!("{}.column", target.label);
                    let op = Op::Resize {
                        rows: Window::Repeat { factor: h },
                        cols: Window::Same,
                    };
                    let [n, c, _, w] = rows.dims;
                    rows = emit.strip(target.name, &label, op, &rows, [n, c, h, w])?;
                }
                Ok(Some(self.row(&rows)))
            }
            _ => Ok(None),
        }
    }

    fn row(&mut self, rows: &Rows) -> Arg {
        let found = self.operands.iter().position(|o| *o == rows.operand);
        let at = found.unwrap_or_else(|| {
            self.operands.push(rows.operand.clone());
            self.operands.len() - 1
        });
        Arg::Input(at as u32)
    }

    fn vector(&mut self, id: TensorId) -> Arg {
        let found = self.whole.iter().position(|w| *w == id);
        let at = found.unwrap_or_else(|| {
            self.whole.push(id);
            self.whole.len() - 1
        });
        Arg::Whole(at as u32)
    }
}

/// Lengths with ones in front, as broadcasting aligns them with an image's.
fn aligned(dims: &[u64]) -> Option<[u64; 4]> {
    let mut all = [1; 4];
    all.get_mut(4usize.checked_sub(dims.len())?..)?
        .copy_from_slice(dims);
    Some(all)
}
