//! Ops that join elements along axes: reductions, arguments of extremes, sorting, running sums.

use std::cmp::Ordering;

use super::args::{Element, Inputs, Ready, bad, ensure, for_type, unsupported};
use super::shape::{Groups, axes, axis};
use super::{DType, Op};
use crate::error::Result;

/// `dims` after a reduction along `gone`.
fn reduced(dims: &[usize], gone: &[usize], keep: bool) -> Vec<usize> {
    let length = |(k, &n)| match gone.contains(&k) {
        true => keep.then_some(1),
        false => Some(n),
    };
    dims.iter().enumerate().filter_map(length).collect()
}

/// `ReduceSum` and its like.
pub(super) fn reduce(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let x = inputs.get(0)?;
    let rank = x.dims.len();
    let along = match inputs.ints(op, "axes", 1)? {
        Some(list) if !list.is_empty() => axes(&list, rank)?,
        _ if op.int("noop_with_empty_axes").unwrap_or(0) != 0 => vec![],
        _ => (0..rank).collect(),
    };
    let keep = op.int("keepdims").unwrap_or(1) != 0;
    join(&op.kind["Reduce".len()..], inputs, along, keep)
}

/// `GlobalAveragePool` and `GlobalMaxPool`.
pub(super) fn global_pool(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let rank = inputs.f32(0)?.dims.len();
    let kind = match op.kind.as_str() {
        "GlobalMaxPool" => "Max",
        _ => "Mean",
    };
    join(kind, inputs, (2..rank).collect(), true)
}

/// How a group of elements becomes one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Join {
    Sum,
    Mean,
    Max,
    Min,
    Prod,
    L1,
    L2,
    LogSum,
    LogSumExp,
    SumSquare,
}

/// Input 0 with the elements along some axes joined as `kind` says.
fn join(kind: &str, inputs: &Inputs<'_>, along: Vec<usize>, keep: bool) -> Result<Ready> {
    let x = inputs.get(0)?;
    let join = match kind {
        "Sum" => Join::Sum,
        "Mean" => Join::Mean,
        "Max" => Join::Max,
        "Min" => Join::Min,
        "Prod" => Join::Prod,
        "L1" => Join::L1,
        "L2" => Join::L2,
        "LogSum" => Join::LogSum,
        "LogSumExp" => Join::LogSumExp,
        _ => Join::SumSquare,
    };
    let dtype = x.dtype;
    if dtype == DType::Bool && !matches!(join, Join::Max | Join::Min) {
        return unsupported("does not take booleans");
    }
    let dims = reduced(&x.dims, &along, keep);
    Ready::one(dtype, dims, move |inputs, y| {
        let x = inputs.get(0)?;
        let groups = Groups::new(&x.dims, &along);
        for_type!(dtype, T => {
            let x = x.all::<T>()?;
            for (y, group) in y.all::<T>()?.iter_mut().zip(groups.each()) {
                let wide = group.clone().map(|at| x[at].to_f64());
                let whole = || integers(join, group.map(|at| x[at].to_i64()));
                *y = match if T::FLOAT { None } else { whole() } {
                    Some(joined) => T::from_i64(joined),
                    None => T::from_f64(floats(join, wide)),
                };
            }
        });
        if dtype == DType::Bool {
            // the least and largest of nothing are not bytes' but booleans'
            y.all::<u8>()?
                .iter_mut()
                .for_each(|y| *y = u8::from(*y != 0));
        }
        Ok(())
    })
}

/// The joined value of integers, where it is one itself.
fn integers(join: Join, mut x: impl Iterator<Item = i64>) -> Option<i64> {
    Some(match join {
        Join::Sum => x.fold(0, i64::wrapping_add),
        Join::Prod => x.fold(1, i64::wrapping_mul),
        Join::L1 => x.fold(0, |sum, x| sum.wrapping_add(x.wrapping_abs())),
        Join::SumSquare => x.fold(0, |sum, x| sum.wrapping_add(x.wrapping_mul(x))),
        Join::Max => x.next().map(|first| x.fold(first, i64::max))?,
        Join::Min => x.next().map(|first| x.fold(first, i64::min))?,
        _ => return None,
    })
}

/// The joined value of numbers, accumulated in f64 in their order.
fn floats(join: Join, x: impl Iterator<Item = f64> + Clone) -> f64 {
    let larger = |a: f64, b: f64| if b > a || b.is_nan() { b } else { a };
    let smaller = |a: f64, b: f64| if b < a || b.is_nan() { b } else { a };
    // not `sum`, which is -0.0 for nothing
    let sum = |f: fn(f64) -> f64| x.clone().fold(0.0, |sum, x| sum + f(x));
    match join {
        Join::Sum => sum(|x| x),
        Join::Mean => sum(|x| x) / x.clone().count() as f64,
        Join::Max => x.fold(f64::NEG_INFINITY, larger),
        Join::Min => x.fold(f64::INFINITY, smaller),
        Join::Prod => x.product(),
        Join::L1 => sum(f64::abs),
        Join::L2 => sum(|x| x * x).sqrt(),
        Join::LogSum => sum(|x| x).ln(),
        Join::LogSumExp => log_sum_exp(x),
        Join::SumSquare => sum(|x| x * x),
    }
}

/// `ln Σ exp x`, safe from overflow.
pub(super) fn log_sum_exp(x: impl Iterator<Item = f64> + Clone) -> f64 {
    let top = x.clone().fold(f64::NEG_INFINITY, f64::max);
    if top.is_infinite() {
        return top;
    }
    top + x.map(|x| (x - top).exp()).sum::<f64>().ln()
}

/// `ArgMax` and `ArgMin`; of equals the first, or with `select_last_index` the last.
pub(super) fn arg(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let x = inputs.get(0)?;
    let along = axis(op.int("axis").unwrap_or(0), x.dims.len())?;
    ensure(x.dims[along] > 0, || {
        format!("axis {along} of {:?} is empty", x.dims)
    })?;
    let keep = op.int("keepdims").unwrap_or(1) != 0;
    let last = op.int("select_last_index").unwrap_or(0) != 0;
    let wanted = match op.kind.as_str() {
        "ArgMin" => Ordering::Less,
        _ => Ordering::Greater,
    };
    let (dtype, dims) = (x.dtype, reduced(&x.dims, &[along], keep));
    Ready::one(DType::I64, dims, move |inputs, y| {
        let x = inputs.get(0)?;
        let groups = Groups::new(&x.dims, &[along]);
        for_type!(dtype, T => {
            let x = x.all::<T>()?;
            for (y, group) in y.all::<i64>()?.iter_mut().zip(groups.each()) {
                let mut best: Option<T> = None;
                for (i, at) in group.enumerate() {
                    let order = best.map(|best| compare(x[at], best));
                    let wins = order.is_none_or(|o| o == wanted || (last && o.is_eq()));
                    if wins {
                        (best, *y) = (Some(x[at]), i as i64);
                    }
                }
            }
        });
        Ok(())
    })
}

/// The order of two elements; NaN is larger than any number.
fn compare<T: Element>(a: T, b: T) -> Ordering {
    a.partial_cmp(&b)
        .unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// `TopK`: values and where they stood, the best first; of equals the first.
pub(super) fn top_k(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let x = inputs.get(0)?;
    let along = axis(op.int("axis").unwrap_or(-1), x.dims.len())?;
    let n = x.dims[along];
    let k = match (op.int("k"), inputs.opt(1)) {
        (Some(k), _) => k,
        (None, Some(k)) => k.ints("k")?.first().copied().unwrap_or(-1),
        (None, None) => -1,
    };
    if k < 0 || k as u64 > n as u64 {
        return bad(format!("k is {k}, of {n} elements"));
    }
    let largest = op.int("largest").unwrap_or(1) != 0;
    let (dtype, mut dims) = (x.dtype, x.dims.clone());
    dims[along] = k as usize;
    let outputs = vec![(dtype, dims.clone()), (DType::I64, dims.clone())];
    Ready::many(outputs, move |inputs, outputs| {
        let x = inputs.get(0)?;
        let from = Groups::new(&x.dims, &[along]);
        let to = Groups::new(&dims, &[along]);
        let (values, places) = outputs.split_at_mut(1);
        let mut places = places.first_mut().map(|p| p.all::<i64>()).transpose()?;
        for_type!(dtype, T => {
            let (x, y) = (x.all::<T>()?, values[0].all::<T>()?);
            for (from, to) in from.each().zip(to.each()) {
                let mut best: Vec<(usize, usize)> = from.enumerate().collect();
                best.sort_by(|a, b| {
                    let order = compare(x[a.1], x[b.1]);
                    if largest { order.reverse() } else { order }
                });
                for ((i, at), to) in best.into_iter().zip(to) {
                    y[to] = x[at];
                    if let Some(places) = &mut places {
                        places[to] = i as i64;
                    }
                }
            }
        });
        Ok(())
    })
}

pub(super) fn cum_sum(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let x = inputs.get(0)?;
    let along = axis(inputs.get(1)?.int("axis")?, x.dims.len())?;
    if x.dtype == DType::Bool {
        return unsupported("does not take booleans");
    }
    let flag = |name| op.int(name).unwrap_or(0) != 0;
    let (exclusive, reverse) = (flag("exclusive"), flag("reverse"));
    let dtype = x.dtype;
    Ready::one(dtype, x.dims.clone(), move |inputs, y| {
        let x = inputs.get(0)?;
        let groups = Groups::new(&x.dims, &[along]);
        for_type!(dtype, T => {
            let (x, y) = (x.all::<T>()?, y.all::<T>()?);
            for group in groups.each() {
                let mut places: Vec<usize> = group.collect();
                if reverse {
                    places.reverse();
                }
                let mut sum = T::default();
                for at in places {
                    let before = sum;
                    sum = sum.plus_product(x[at], T::from_i64(1));
                    y[at] = if exclusive { before } else { sum };
                }
            }
        });
        Ok(())
    })
}
