//! Pooling over windows, along any number of axes.

use super::args::{Element, Inputs, Ready, bad, ensure, for_type, unsupported};
use super::movement::lengths;
use super::window::Sliding;
use super::{DType, Op};
use crate::error::Result;

/// The windows of a pooling, and the lengths of its output.
fn sliding(op: &Op, inputs: &Inputs<'_>) -> Result<(Sliding, Vec<usize>)> {
    let x = inputs.get(0)?;
    ensure(x.dims.len() >= 3, || {
        format!("takes 3 axes or more, not {:?}", x.dims)
    })?;
    let Some(kernel) = op.ints("kernel_shape") else {
        return bad("attribute `kernel_shape` is missing");
    };
    let sliding = Sliding::new(op, &lengths(kernel)?, &x.dims[2..])?;
    let dims = [&x.dims[..2], &sliding.positions].concat();
    Ok((sliding, dims))
}

/// `MaxPool`, and where it found each maximum: the first of equals.
pub(super) fn max_pool(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let (sliding, dims) = sliding(op, inputs)?;
    let dtype = inputs.get(0)?.dtype;
    if dtype == DType::Bool {
        return unsupported("does not take booleans");
    }
    let columns_first = op.int("storage_order").unwrap_or(0) != 0;
    let outputs = vec![(dtype, dims.clone()), (DType::I64, dims)];
    Ready::many(outputs, move |inputs, outputs| {
        let (y, rest) = outputs.split_at_mut(1);
        let mut found = rest.first_mut().map(|i| i.all::<i64>()).transpose()?;
        let (size, plane) = (sliding.len(), sliding.plane());
        for_type!(dtype, T => {
            let x = inputs.get(0)?.all::<T>()?;
            for (p, y) in y[0].all::<T>()?.chunks_exact_mut(size).enumerate() {
                let x = &x[p * plane..][..plane];
                let mut found = found.as_mut().map(|f| &mut f[p * size..][..size]);
                y.fill(T::from_f64(f64::NEG_INFINITY));
                if let Some(found) = &mut found {
                    found.fill(-1);
                }
                sliding.meet(|m| {
                    for i in 0..m.count {
                        let (to, from) = (m.position + i, m.place + i * m.step);
                        let first = found.as_ref().is_some_and(|f| f[to] < 0);
                        if first || x[from] > y[to] || x[from].is_nan() {
                            y[to] = x[from];
                            if let Some(found) = &mut found {
                                found[to] = from as i64;
                            }
                        }
                    }
                });
                for found in found.into_iter().flatten().filter(|f| **f >= 0) {
                    if columns_first {
                        *found = column_major(*found as usize, &sliding.over) as i64;
                    }
                    *found += (p * plane) as i64;
                }
            }
        });
        Ok(())
    })
}

/// The place in a column-major plane of lengths `dims` of what stands at `place` of a row-major one.
fn column_major(mut place: usize, dims: &[usize]) -> usize {
    let mut stride: usize = dims.iter().product();
    let mut at = 0;
    for &n in dims.iter().rev() {
        stride /= n;
        at += place % n * stride;
        place /= n;
    }
    at
}

pub(super) fn average_pool(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let (sliding, dims) = sliding(op, inputs)?;
    inputs.f32(0)?;
    let padded = op.int("count_include_pad").unwrap_or(0) != 0;
    Ready::one(DType::F32, dims, move |inputs, y| {
        let axes = sliding
            .windows
            .iter()
            .zip(&sliding.over)
            .zip(&sliding.positions);
        let counts = axes.map(|((w, &n), &positions)| {
            let count = |p| w.count(p, n, padded).max(1) as f32;
            (0..positions).map(count).collect::<Vec<f32>>()
        });
        let counts: Vec<Vec<f32>> = counts.collect();
        let finish = |position: usize, sum: f32| {
            let mut place = position;
            let mut count = 1.0;
            for along in counts.iter().rev() {
                count *= along[place % along.len()];
                place /= along.len();
            }
            sum / count
        };
        sums(&sliding, inputs, y.all()?, |x| x, finish)
    })
}

pub(super) fn lp_pool(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let (sliding, dims) = sliding(op, inputs)?;
    inputs.f32(0)?;
    let p = op.int("p").unwrap_or(2);
    ensure(p > 0, || format!("p is {p}"))?;
    let p = p as f32;
    Ready::one(DType::F32, dims, move |inputs, y| {
        let power = |x: f32| x.abs().powf(p);
        sums(&sliding, inputs, y.all()?, power, |_, sum| {
            sum.powf(1.0 / p)
        })
    })
}

/// Sums `each` element over the windows, and finishes each sum given its position.
fn sums(
    sliding: &Sliding,
    inputs: &Inputs<'_>,
    y: &mut [f32],
    each: impl Fn(f32) -> f32,
    finish: impl Fn(usize, f32) -> f32,
) -> Result<()> {
    let (size, plane) = (sliding.len(), sliding.plane());
    let x = inputs.get(0)?.all::<f32>()?;
    for (p, y) in y.chunks_exact_mut(size).enumerate() {
        let x = &x[p * plane..][..plane];
        y.fill(0.0);
        sliding.meet(|m| {
            let x = x[m.place..].iter().step_by(m.step);
            let y = &mut y[m.position..][..m.count];
            y.iter_mut().zip(x).for_each(|(y, &x)| *y += each(x));
        });
        for (position, y) in y.iter_mut().enumerate() {
            *y = finish(position, *y);
        }
    }
    Ok(())
}
