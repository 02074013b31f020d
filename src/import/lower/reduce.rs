//! Reductions over whole images: gathered as the sweep passes.

use crate::dense::{Attr, DType, Value};
use crate::error::Result;
use crate::func::Func;
use crate::graph::{Arg, Expr, Gather};

use crate::import::constant::Constant;

use super::emit::Emit;
use super::item::{Call, Item, Lowered};
use super::pixel;
use super::view::View;

pub(super) fn global_pool(emit: &mut Emit, call: &Call<'_>) -> Lowered {
    let Item::Rows(rows) = call.data()? else {
        return Ok(None);
    };
    let kind = match call.op().kind.as_str() {
        "GlobalMaxPool" => Gather::Max,
        _ => Gather::Mean,
    };
    let id = emit.gather(call.name(), rows, kind)?;
    Ok(Some(vec![Item::Whole(id)]))
}

/// A reduction as a mean or maximum, with what is done before and after.
struct Way {
    before: Option<Func>,
    gather: Gather,
    /// Whether the mean is multiplied by the number of elements.
    sum: bool,
    after: Option<&'static str>,
}

impl Way {
    fn of(kind: &str) -> Option<Way> {
        let way = |before, gather, sum, after| {
            Some(Way {
                before,
                gather,
                sum,
                after,
            })
        };
        match kind {
            "ReduceMean" => way(None, Gather::Mean, false, None),
            "ReduceSum" => way(None, Gather::Mean, true, None),
            "ReduceMax" => way(None, Gather::Max, false, None),
            "ReduceMin" => way(Some(Func::Neg), Gather::Max, false, Some("Neg")),
            "ReduceL1" => way(Some(Func::Abs), Gather::Mean, true, None),
            "ReduceSumSquare" => way(Some(Func::Mul), Gather::Mean, true, None),
            "ReduceL2" => way(Some(Func::Mul), Gather::Mean, true, Some("Sqrt")),
            _ => None,
        }
    }
}

pub(super) fn reduce(emit: &mut Emit, call: &Call<'_>) -> Lowered {
    // the axes of an image that is seen in another order are its own in that order
    let (rows, order) = match call.data()? {
        Item::Rows(rows) => (rows, [0, 1, 2, 3]),
        Item::View(view) => match view.order() {
            Some(order) => (&view.rows, order),
            None => return Ok(None),
        },
        _ => return Ok(None),
    };
    let Some(way) = Way::of(&call.op().kind) else {
        return Ok(None);
    };
    if call.unknown(1) || rows.dtype != DType::F32 {
        return Ok(None);
    }
    let given = match call.op().ints("axes") {
        Some(axes) => Some(axes.to_vec()),
        None => call.ints(1)?.filter(|axes| !axes.is_empty()),
    };
    if given.is_none() && call.op().int("noop_with_empty_axes").unwrap_or(0) != 0 {
        return Ok(None);
    }
    let mut axes = given
        .unwrap_or_else(|| vec![0, 1, 2, 3])
        .into_iter()
        .map(|axis| Ok(order[call.axis_of(axis, 4)?]))
        .collect::<Result<Vec<_>>>()?;
    axes.sort_unstable();
    let (name, label) = (call.name(), call.label(0));
    let keeps = call.op().int("keepdims").unwrap_or(1) != 0;
    if axes == [1] && keeps && matches!(call.op().kind.as_str(), "ReduceMean" | "ReduceSum") {
        let made = pixel::sum(emit, (name, &label), rows, !way.sum)?;
        let turned = View::new(made.clone()).transpose(&order);
        let turned = matches!(call.data()?, Item::View(_)).then_some(Item::View(turned));
        return Ok(Some(vec![turned.unwrap_or(made.into())]));
    }
    let Some(others) = axes.strip_suffix(&[2, 3]) else {
        return Ok(None);
    };
    let mut rows = rows.clone();
    if let Some(func) = way.before {
        let mut tail = Expr::default();
        tail.push(func, &[Arg::Input(0); 2][..func.arity()]);
        let operands = vec![rows.operand.clone()];
        let kind = (DType::F32, rows.dims);
        rows = emit.pointwise(
            name,
            &format!("{label}.terms"),
            tail,
            operands,
            vec![],
            kind,
        )?;
    }
    let mut id = emit.gather(name, &rows, way.gather)?;
    if !others.is_empty() {
        // channels count alike: the mean of their means, the largest of their maxima
        let kind = if way.gather == Gather::Max {
            "ReduceMax"
        } else {
            "ReduceMean"
        };
        let list = others.iter().map(|&a| a as i64).collect::<Vec<_>>();
        let list = Value::i64(&[list.len() as u64], list);
        let args = vec![Item::Whole(id), Item::Known(Constant::Value(list.into()))];
        id = emit.compute(name, &label, kind, &[("keepdims", Attr::Int(1))], args)?;
    }
    if way.sum {
        let count: u64 = axes.iter().map(|&axis| rows.dims[axis]).product();
        let count = Value::f32(&[], vec![count as f32]);
        let args = vec![Item::Whole(id), Item::Known(Constant::Value(count.into()))];
        id = emit.compute(name, &label, "Mul", &[], args)?;
    }
    if let Some(kind) = way.after {
        id = emit.compute(name, &label, kind, &[], vec![Item::Whole(id)])?;
    }
    if keeps && order != [0, 1, 2, 3] {
        let order = Attr::Ints(order.iter().map(|&axis| axis as i64).collect());
        let args = vec![Item::Whole(id)];
        id = emit.compute(name, &label, "Transpose", &[("perm", order)], args)?;
    } else if !keeps {
        id = emit.reshape(&label, Item::Whole(id), call.dims())?;
    }
    Ok(Some(vec![Item::Whole(id)]))
}
