//! `MatMul` and `Gemm`.

use rayon::prelude::*;

use super::args::{Element, Input, Inputs, Ready, bad, ensure, for_type, unsupported};
use super::shape::{Walk, broadcast, must_broadcast_to, strides_in};
use super::{DType, Op};
use crate::error::Result;

/// A matrix in memory: its elements, and the strides down its rows and along its columns.
struct Matrix<'a, T> {
    elements: &'a [T],
    down: usize,
    along: usize,
}

/// Products summed in the order of the inner axis; the sums start at `y`.
fn add_product<T: Element>(
    a: &Matrix<'_, T>,
    b: &Matrix<'_, T>,
    inner: usize,
    columns: usize,
    y: &mut [T],
) {
    y.par_chunks_mut(columns).enumerate().for_each(|(i, y)| {
        let row = |k: usize| a.elements[i * a.down + k * a.along];
        if b.along == 1 {
            for k in 0..inner {
                let (scale, b) = (row(k), &b.elements[k * b.down..][..columns]);
                for (y, &b) in y.iter_mut().zip(b) {
                    *y = y.plus_product(scale, b);
                }
            }
        } else {
            // a few columns at once, so that their sums need not wait for each other
            for (block, y) in y.chunks_mut(8).enumerate() {
                for k in 0..inner {
                    for (j, y) in y.iter_mut().enumerate() {
                        let b = b.elements[(8 * block + j) * b.along + k * b.down];
                        *y = y.plus_product(row(k), b);
                    }
                }
            }
        }
    });
}

/// `MatMul`, over all leading axes; a vector is a row on the left and a column on the right.
pub(super) fn matmul(_: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let (a, b) = (inputs.get(0)?, inputs.get(1)?);
    let dtype = a.dtype;
    b.must_be(dtype)?;
    if dtype == DType::Bool {
        return unsupported("does not take booleans");
    }
    let split = |x: &Input<'_>, vector: fn(usize) -> [usize; 2]| match x.dims[..] {
        [] => bad("does not take numbers"),
        [n] => Ok((vec![], vector(n))),
        [ref batch @ .., m, n] => Ok((batch.to_vec(), [m, n])),
    };
    let (batch_a, [rows, inner]) = split(a, |n| [1, n])?;
    let (batch_b, [inner_b, columns]) = split(b, |n| [n, 1])?;
    ensure(inner == inner_b, || {
        format!("{:?} times {:?}: inner lengths differ", a.dims, b.dims)
    })?;
    let batch = broadcast(&batch_a, &batch_b)?;
    let mut dims = batch.clone();
    dims.extend((a.dims.len() > 1).then_some(rows));
    dims.extend((b.dims.len() > 1).then_some(columns));
    Ready::one(dtype, dims, move |inputs, y| {
        let strides = [strides_in(&batch_a, &batch), strides_in(&batch_b, &batch)];
        let walk = Walk::new(&batch, [&strides[0], &strides[1]]);
        for_type!(dtype, T => {
            let (a, b) = (inputs.get(0)?.all::<T>()?, inputs.get(1)?.all::<T>()?);
            let mut blocks = y.all::<T>()?.chunks_exact_mut(rows * columns);
            for at in walk.runs() {
                for i in 0..walk.len() as isize {
                    let place = |k: usize| (at[k] + i * walk.step()[k]) as usize;
                    let a = Matrix {
                        elements: &a[place(0) * rows * inner..][..rows * inner],
                        down: inner,
                        along: 1,
                    };
                    let b = Matrix {
                        elements: &b[place(1) * inner * columns..][..inner * columns],
                        down: columns,
                        along: 1,
                    };
                    if let Some(y) = blocks.next() {
                        y.fill(T::default());
                        add_product(&a, &b, inner, columns, y);
                    }
                }
            }
        });
        Ok(())
    })
}

/// `Gemm`: `alpha · A · B + beta · C`.
pub(super) fn gemm(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let (a, b) = (inputs.f32(0)?, inputs.f32(1)?);
    let flag = |name| op.int(name).unwrap_or(0) != 0;
    let (turn_a, turn_b) = (flag("transA"), flag("transB"));
    let sides = |x: &Input<'_>, turned: bool| match x.dims[..] {
        [m, n] if turned => Ok([n, m]),
        [m, n] => Ok([m, n]),
        _ => bad(format!("takes matrices, not {:?}", x.dims)),
    };
    let ([rows, inner], [inner_b, columns]) = (sides(a, turn_a)?, sides(b, turn_b)?);
    ensure(inner == inner_b, || {
        format!("{:?} times {:?}: inner lengths differ", a.dims, b.dims)
    })?;
    let dims = vec![rows, columns];
    if inputs.opt(2).is_some() {
        must_broadcast_to(&inputs.f32(2)?.dims, &dims)?;
    }
    let (alpha, beta) = (
        op.float("alpha").unwrap_or(1.0),
        op.float("beta").unwrap_or(1.0),
    );
    Ready::one(DType::F32, dims.clone(), move |inputs, y| {
        let matrix = |i: usize, turned: bool| {
            let x = inputs.get(i)?;
            let (down, along) = if turned {
                (1, x.dims[1])
            } else {
                (x.dims[1], 1)
            };
            let elements = x.all::<f32>()?;
            Ok(Matrix {
                elements,
                down,
                along,
            })
        };
        let y = y.all::<f32>()?;
        y.fill(0.0);
        add_product(&matrix(0, turn_a)?, &matrix(1, turn_b)?, inner, columns, y);
        if alpha != 1.0 {
            y.iter_mut().for_each(|y| *y *= alpha);
        }
        if let Some(c) = inputs.opt(2) {
            let strides = strides_in(&c.dims, &dims);
            let (c, walk) = (c.all::<f32>()?, Walk::new(&dims, [&strides]));
            y.iter_mut()
                .zip(walk.places(0))
                .for_each(|(y, at)| *y += beta * c[at]);
        }
        Ok(())
    })
}
