//! Ops that read or write where another tensor's numbers point.

use super::args::{Element, Input, Inputs, Ready, bad, ensure, for_type, unsupported};
use super::shape::{Walk, axis, strides};
use super::{DType, Op};
use crate::error::Result;

/// Fails unless `x` holds integers.
fn must_be_ints(x: &Input<'_>) -> Result<()> {
    match x.dtype {
        DType::I64 | DType::I32 => Ok(()),
        other => unsupported(format!("indices must be i64 or i32, not {other:?}")),
    }
}

/// `index` counted from the front, among `n`.
fn place(index: i64, n: usize) -> Result<usize> {
    let i = if index < 0 {
        index.saturating_add(n as i64)
    } else {
        index
    };
    ensure((0..n as i64).contains(&i), || {
        format!("index {index} is not one of {n}")
    })?;
    Ok(i as usize)
}

pub(super) fn gather(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let (x, index) = (inputs.get(0)?, inputs.get(1)?);
    must_be_ints(index)?;
    let at = axis(op.int("axis").unwrap_or(0), x.dims.len())?;
    let (before, after) = (&x.dims[..at], &x.dims[at + 1..]);
    let dims = [before, &index.dims, after].concat();
    let (n, outer, inner) = (
        x.dims[at],
        before.iter().product::<usize>(),
        after.iter().product::<usize>(),
    );
    let dtype = x.dtype;
    Ready::one(dtype, dims, move |inputs, y| {
        let index = inputs.get(1)?.ints("indices")?;
        for_type!(dtype, T => {
            let x = inputs.get(0)?.all::<T>()?;
            let mut rest = y.all::<T>()?;
            for o in 0..outer {
                for &i in &index {
                    let from = (o * n + place(i, n)?) * inner;
                    let (row, after) = rest.split_at_mut(inner);
                    row.copy_from_slice(&x[from..from + inner]);
                    rest = after;
                }
            }
        });
        Ok(())
    })
}

/// Calls `f` with each place in a tensor of `index.dims`, and the place in one of `dims` whose
/// coordinate along axis `at` is replaced by the index that stands there.
fn along(
    index: &Input<'_>,
    dims: &[usize],
    at: usize,
    mut f: impl FnMut(usize, usize),
) -> Result<()> {
    let mut from = strides(dims);
    let across = from[at];
    from[at] = 0;
    let ints = index.ints("indices")?;
    let walk = Walk::new(&index.dims, [&from]);
    let (mut k, [step]) = (0, walk.step());
    for [start] in walk.runs() {
        for i in 0..walk.len() as isize {
            let row = start + i * step;
            f(
                k,
                (row + place(ints[k], dims[at])? as isize * across) as usize,
            );
            k += 1;
        }
    }
    Ok(())
}

/// Fails unless `index` fits into `dims` along every axis but `at`.
fn must_fit(index: &Input<'_>, dims: &[usize], at: usize) -> Result<()> {
    must_be_ints(index)?;
    let fits = index.dims.len() == dims.len()
        && (0..dims.len()).all(|k| k == at || index.dims[k] <= dims[k]);
    ensure(fits, || {
        format!("indices of {:?} do not fit into {dims:?}", index.dims)
    })
}

pub(super) fn gather_elements(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let (x, index) = (inputs.get(0)?, inputs.get(1)?);
    let at = axis(op.int("axis").unwrap_or(0), x.dims.len())?;
    must_fit(index, &x.dims, at)?;
    let dtype = x.dtype;
    Ready::one(dtype, index.dims.clone(), move |inputs, y| {
        let x = inputs.get(0)?;
        for_type!(dtype, T => {
            let (from, y) = (x.all::<T>()?, y.all::<T>()?);
            along(inputs.get(1)?, &x.dims, at, |k, place| y[k] = from[place])
        })
    })
}

/// How an update joins what it falls on.
fn reduction<T: Element>(op: &str) -> Result<fn(T, T) -> T> {
    // small integers wrap, so they are computed in i64; f32 is exact enough in f64
    fn with<T: Element>(a: T, b: T, wide: fn(f64, f64) -> f64, int: fn(i64, i64) -> i64) -> T {
        if T::FLOAT {
            T::from_f64(wide(a.to_f64(), b.to_f64()))
        } else {
            T::from_i64(int(a.to_i64(), b.to_i64()))
        }
    }
    Ok(match op {
        "none" => |_, b| b,
        "add" => |a, b| with(a, b, |a, b| a + b, i64::wrapping_add),
        "mul" => |a, b| with(a, b, |a, b| a * b, i64::wrapping_mul),
        "min" => |a, b| if b < a { b } else { a },
        "max" => |a, b| if b > a { b } else { a },
        _ => return unsupported(format!("reduction {op}")),
    })
}

/// `ScatterElements`, and `Scatter` as it was called first.
pub(super) fn scatter_elements(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let (x, index, updates) = (inputs.get(0)?, inputs.get(1)?, inputs.get(2)?);
    let at = axis(op.int("axis").unwrap_or(0), x.dims.len())?;
    must_fit(index, &x.dims, at)?;
    updates.must_be(x.dtype)?;
    ensure(updates.dims == index.dims, || {
        format!(
            "updates of {:?} for indices of {:?}",
            updates.dims, index.dims
        )
    })?;
    let join = op.str("reduction").unwrap_or("none").to_string();
    reduction::<f32>(&join)?;
    let dtype = x.dtype;
    Ready::one(dtype, x.dims.clone(), move |inputs, y| {
        let x = inputs.get(0)?;
        for_type!(dtype, T => {
            let (updates, y, join) = (inputs.get(2)?.all()?, y.all()?, reduction::<T>(&join)?);
            y.copy_from_slice(x.all()?);
            along(inputs.get(1)?, &x.dims, at, |k, place| {
                y[place] = join(y[place], updates[k]);
            })
        })
    })
}

/// Where each index tuple of `index` (along its last axis, after `batch` shared axes) points in a
/// tensor of `dims`: the first element of a block.
fn tuples(index: &Input<'_>, dims: &[usize], batch: usize) -> Result<Vec<usize>> {
    let n = index.dims.last().copied().unwrap_or(0);
    let ints = index.ints("indices")?;
    let from = strides(dims);
    let count: usize = index.dims[..index.dims.len() - 1].iter().product();
    let each: usize = index.dims[batch..index.dims.len() - 1].iter().product();
    let block: usize = dims[batch..].iter().product();
    (0..count)
        .map(|t| {
            let mut at = t / each * block;
            for (j, &i) in ints[t * n..(t + 1) * n].iter().enumerate() {
                at += place(i, dims[batch + j])? * from[batch + j] as usize;
            }
            Ok(at)
        })
        .collect()
}

pub(super) fn gather_nd(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let (x, index) = (inputs.get(0)?, inputs.get(1)?);
    must_be_ints(index)?;
    let batch = usize::try_from(op.int("batch_dims").unwrap_or(0)).unwrap_or(usize::MAX);
    let (tail, whole) = block_shape(x, index, batch)?;
    let dims = [&index.dims[..index.dims.len() - 1], &tail].concat();
    let (dtype, n) = (x.dtype, tail.iter().product::<usize>());
    Ready::one(dtype, dims, move |inputs, y| {
        for_type!(dtype, T => {
            let (x, y) = (inputs.get(0)?.all::<T>()?, y.all::<T>()?);
            let places = tuples(inputs.get(1)?, &whole, batch)?;
            for (row, at) in y.chunks_exact_mut(n).zip(places) {
                row.copy_from_slice(&x[at..at + n]);
            }
        });
        Ok(())
    })
}

/// The lengths of the block that an index tuple picks from `x`, and of `x`.
fn block_shape(x: &Input<'_>, index: &Input<'_>, batch: usize) -> Result<(Vec<usize>, Vec<usize>)> {
    let (rank, last) = (x.dims.len(), index.dims.last().copied());
    let fits = last.is_some_and(|n| batch < index.dims.len() && n <= rank.saturating_sub(batch))
        && batch <= rank
        && index.dims[..batch] == x.dims[..batch];
    match last {
        Some(n) if fits => Ok((x.dims[batch + n..].to_vec(), x.dims.clone())),
        _ => bad(format!(
            "indices of {:?} do not fit {:?} with {batch} batch axes",
            index.dims, x.dims
        )),
    }
}

pub(super) fn scatter_nd(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let (x, index, updates) = (inputs.get(0)?, inputs.get(1)?, inputs.get(2)?);
    must_be_ints(index)?;
    updates.must_be(x.dtype)?;
    let (tail, whole) = block_shape(x, index, 0)?;
    let expected = [&index.dims[..index.dims.len() - 1], &tail].concat();
    ensure(updates.dims == expected, || {
        format!("updates of {:?} where {expected:?} is needed", updates.dims)
    })?;
    let join = op.str("reduction").unwrap_or("none").to_string();
    reduction::<f32>(&join)?;
    let (dtype, n) = (x.dtype, tail.iter().product::<usize>());
    Ready::one(dtype, x.dims.clone(), move |inputs, y| {
        for_type!(dtype, T => {
            let (updates, y, join) = (inputs.get(2)?.all()?, y.all()?, reduction::<T>(&join)?);
            y.copy_from_slice(inputs.get(0)?.all()?);
            let places = tuples(inputs.get(1)?, &whole, 0)?;
            for (row, at) in updates.chunks_exact(n).zip(places) {
                for (y, &u) in y[at..at + n].iter_mut().zip(row) {
                    *y = join(*y, u);
                }
            }
        });
        Ok(())
    })
}
