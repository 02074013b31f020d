//! Reductions over whole images: gathered as the sweep passes.

use crate::dense::{Attr, DType};
use crate::error::Result;
use crate::func::Func;
use crate::graph::{Arg, Border, Conv, Expr, Gather, Op, Window};

use super::emit::Emit;
use super::item::{Call, Item, Lowered, Rows};
use crate::dense::Value;
use crate::import::constant::Constant;

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
    let (Item::Rows(rows), Some(way)) = (call.data()?, Way::of(&call.op().kind)) else {
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
        .map(|axis| call.axis_of(axis, 4))
        .collect::<Result<Vec<_>>>()?;
    axes.sort_unstable();
    let (name, label) = (call.name(), call.label(0));
    if axes == [1] && matches!(call.op().kind.as_str(), "ReduceMean" | "ReduceSum") {
        return over_channels(emit, call, rows, way.sum);
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
    if call.op().int("keepdims").unwrap_or(1) == 0 {
        id = emit.reshape(&label, Item::Whole(id), call.dims())?;
    }
    Ok(Some(vec![Item::Whole(id)]))
}

/// The sum or mean over the channels of each pixel: a convolution with ones.
fn over_channels(emit: &mut Emit, call: &Call<'_>, rows: &Rows, sum: bool) -> Lowered {
    if call.op().int("keepdims").unwrap_or(1) == 0 {
        return Ok(None);
    }
    let [n, c, h, w] = rows.dims;
    let tap = Window::Taps {
        kernel: 1,
        stride: 1,
        dilation: 1,
        pad: 0,
        border: Border::Fill,
    };
    let ones = Value::f32(&[1, c, 1, 1], vec![1.0; c as usize]);
    let conv = Conv {
        weight: emit.weight(call.name(), &Constant::new(call.name(), ones))?,
        scale: (!sum).then(|| vec![1.0 / c as f32]),
        bias: None,
        cout: 1,
        groups: 1,
        rows: tap.clone(),
        cols: tap,
    };
    let made = emit.strip(
        call.name(),
        &call.label(0),
        Op::Conv(conv),
        rows,
        [n, 1, h, w],
    )?;
    Ok(Some(vec![made.into()]))
}
