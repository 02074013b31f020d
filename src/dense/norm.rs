//! Normalisations, their statistics in f64; and the softmax family.

use super::args::{Input, Inputs, Ready, bad, ensure, unsupported};
use super::reduce::log_sum_exp;
use super::shape::{Groups, Walk, axes, axis, must_broadcast_to, strides_in};
use super::{DType, Op};
use crate::error::Result;

/// Mean and (biased) variance.
fn moments(x: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let n = x.clone().count() as f64;
    let mean = x.clone().sum::<f64>() / n;
    let variance = x.map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
    (mean, variance)
}

/// Brings each of the `groups` of `x` to mean 0 and variance 1, `epsilon` being added to the
/// variance; `seen` gets each group's mean and inverse deviation.
fn standardise(
    groups: &Groups,
    x: &[f32],
    epsilon: f64,
    y: &mut [f32],
    mut seen: impl FnMut(usize, f64, f64),
) {
    for (i, group) in groups.each().enumerate() {
        let (mean, variance) = moments(group.clone().map(|at| f64::from(x[at])));
        let inverse = 1.0 / (variance + epsilon).sqrt();
        for at in group {
            y[at] = ((f64::from(x[at]) - mean) * inverse) as f32;
        }
        seen(i, mean, inverse);
    }
}

/// `y · scale + bias`, both read along `y` of lengths `dims` with strides of their own.
fn affine(
    y: &mut [f32],
    dims: &[usize],
    scale: (&[f32], &[isize]),
    bias: Option<(&[f32], &[isize])>,
) {
    let (bias, along) = bias.unwrap_or((&[0.0], &[]));
    let along = if along.is_empty() {
        vec![0; dims.len()]
    } else {
        along.to_vec()
    };
    let walk = Walk::new(dims, [scale.1, &along]);
    let (n, step) = (walk.len(), walk.step());
    for (row, at) in y.chunks_exact_mut(n.max(1)).zip(walk.runs()) {
        for (i, y) in row.iter_mut().enumerate() {
            let place = |k: usize| (at[k] + i as isize * step[k]) as usize;
            *y = *y * scale.0[place(0)] + bias[place(1)];
        }
    }
}

/// Lengths and strides of `dims` seen as `[n, groups, channels of a group, all the rest]`.
fn grouped(dims: &[usize], groups: usize) -> [usize; 4] {
    [
        dims[0],
        groups,
        dims[1] / groups,
        dims[2..].iter().product(),
    ]
}

/// Fails unless inputs `from` and on are f32 vectors of `n`, one for each channel.
fn must_be_vectors(inputs: &Inputs<'_>, which: std::ops::Range<usize>, n: usize) -> Result<()> {
    for i in which {
        let v = inputs.f32(i)?;
        ensure(v.dims == [n], || {
            format!("input {i} is {:?}, not [{n}]", v.dims)
        })?;
    }
    Ok(())
}

/// Input 0, which must be f32 with a batch and a channel axis.
fn channelled<'a, 'b>(inputs: &'b Inputs<'a>) -> Result<&'b Input<'a>> {
    let x = inputs.f32(0)?;
    ensure(x.dims.len() >= 2, || {
        format!("takes 2 axes or more, not {:?}", x.dims)
    })?;
    Ok(x)
}

fn epsilon(op: &Op) -> f64 {
    f64::from(op.float("epsilon").unwrap_or(1e-5))
}

/// `BatchNormalization` by the statistics it is given.
pub(super) fn batch(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let x = inputs.f32(0)?;
    if op.int("training_mode").unwrap_or(0) != 0 || op.int("spatial") == Some(0) {
        return unsupported("only inference over channels (training_mode 0, spatial 1)");
    }
    let Some(&channels) = x.dims.get(1).or(x.dims.first()) else {
        return bad("does not take numbers");
    };
    must_be_vectors(inputs, 1..5, channels)?;
    let plane: usize = x.dims.iter().skip(2).product();
    let epsilon = epsilon(op);
    Ready::one(DType::F32, x.dims.clone(), move |inputs, y| {
        let x = inputs.get(0)?.all::<f32>()?;
        let vector = |i: usize| inputs.get(i)?.all::<f32>();
        let (scale, bias, mean, var) = (vector(1)?, vector(2)?, vector(3)?, vector(4)?);
        let planes = y.all::<f32>()?.chunks_exact_mut(plane);
        for (p, (y, x)) in planes.zip(x.chunks_exact(plane)).enumerate() {
            let wide = |v: &[f32]| f64::from(v[p % channels]);
            let scale = wide(scale) / (wide(var) + epsilon).sqrt();
            let (mean, bias) = (wide(mean), wide(bias));
            for (y, &x) in y.iter_mut().zip(x) {
                *y = ((f64::from(x) - mean) * scale + bias) as f32;
            }
        }
        Ok(())
    })
}

pub(super) fn instance(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let channels = channelled(inputs)?.dims[1];
    must_be_vectors(inputs, 1..3, channels)?;
    in_groups(op, inputs, channels, [0, 1, 0, 0])
}

/// `GroupNormalization`, whose scale and bias are the groups' in operator set 18, and the
/// channels' since 21.
pub(super) fn group(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let channels = channelled(inputs)?.dims[1];
    let groups = match op.int("num_groups").map(usize::try_from) {
        Some(Ok(g)) if g > 0 && channels.is_multiple_of(g) => g,
        g => return bad(format!("{channels} channels in num_groups {g:?}")),
    };
    if op.opset < 21 {
        must_be_vectors(inputs, 1..3, groups)?;
        in_groups(op, inputs, groups, [0, 1, 0, 0])
    } else {
        must_be_vectors(inputs, 1..3, channels)?;
        in_groups(op, inputs, groups, [0, (channels / groups) as isize, 1, 0])
    }
}

/// Standardises groups of channels, then scales by vectors read with strides along [`grouped`].
fn in_groups(op: &Op, inputs: &Inputs<'_>, groups: usize, vector: [isize; 4]) -> Result<Ready> {
    let x = inputs.get(0)?;
    let epsilon = epsilon(op);
    Ready::one(DType::F32, x.dims.clone(), move |inputs, y| {
        let x = inputs.get(0)?;
        let dims = grouped(&x.dims, groups);
        let (x, y) = (x.all::<f32>()?, y.all::<f32>()?);
        standardise(&Groups::new(&dims, &[2, 3]), x, epsilon, y, |_, _, _| {});
        let (scale, bias) = (inputs.get(1)?.all()?, inputs.get(2)?.all()?);
        affine(y, &dims, (scale, &vector), Some((bias, &vector)));
        Ok(())
    })
}

/// `LayerNormalization`, with means and inverse deviations as further outputs.
pub(super) fn layer(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let x = inputs.f32(0)?;
    let dims = x.dims.clone();
    let first = axis(op.int("axis").unwrap_or(-1), dims.len())?;
    for i in 1..3 {
        if i == 1 || inputs.opt(i).is_some() {
            must_broadcast_to(&inputs.f32(i)?.dims, &dims)?;
        }
    }
    let epsilon = epsilon(op);
    let mut each = dims.clone();
    each[first..].fill(1);
    let outputs = vec![
        (DType::F32, dims.clone()),
        (DType::F32, each.clone()),
        (DType::F32, each),
    ];
    Ready::many(outputs, move |inputs, outputs| {
        let (y, seen) = outputs.split_at_mut(1);
        let y = y[0].all::<f32>()?;
        let along: Vec<usize> = (first..dims.len()).collect();
        let mut moments = seen.iter_mut().map(|s| s.all::<f32>());
        let mut mean = moments.next().transpose()?;
        let mut inverse = moments.next().transpose()?;
        let x = inputs.get(0)?.all()?;
        standardise(&Groups::new(&dims, &along), x, epsilon, y, |i, m, d| {
            for (to, value) in [(&mut mean, m), (&mut inverse, d)] {
                if let Some(to) = to {
                    to[i] = value as f32;
                }
            }
        });
        let read = |v: &Input<'_>| strides_in(&v.dims, &dims);
        let scale = inputs.get(1)?;
        let bias = inputs.opt(2).map(|b| Ok((b.all()?, read(b)))).transpose()?;
        let bias = bias.as_ref().map(|(b, along)| (*b, &along[..]));
        affine(y, &dims, (scale.all()?, &read(scale)), bias);
        Ok(())
    })
}

pub(super) fn mean_variance(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let x = inputs.f32(0)?;
    let along = axes(op.ints("axes").unwrap_or(&[0, 2, 3]), x.dims.len())?;
    Ready::one(DType::F32, x.dims.clone(), move |inputs, y| {
        let (x, y) = (inputs.get(0)?, y.all::<f32>()?);
        let groups = Groups::new(&x.dims, &along);
        let x = x.all::<f32>()?;
        for group in groups.each() {
            let (mean, variance) = moments(group.clone().map(|at| f64::from(x[at])));
            for at in group {
                // ONNX adds its epsilon to the deviation here
                y[at] = ((f64::from(x[at]) - mean) / (variance.sqrt() + 1e-9)) as f32;
            }
        }
        Ok(())
    })
}

/// `LpNormalization`; a vector of zeros stays one.
pub(super) fn lp(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let x = inputs.f32(0)?;
    let along = axis(op.int("axis").unwrap_or(-1), x.dims.len())?;
    let p = op.int("p").unwrap_or(2);
    ensure(p == 1 || p == 2, || format!("p is {p}, neither 1 nor 2"))?;
    Ready::one(DType::F32, x.dims.clone(), move |inputs, y| {
        let (x, y) = (inputs.get(0)?, y.all::<f32>()?);
        let groups = Groups::new(&x.dims, &[along]);
        let x = x.all::<f32>()?;
        for group in groups.each() {
            let wide = group.clone().map(|at| f64::from(x[at]));
            let norm = match p {
                1 => wide.map(f64::abs).sum::<f64>(),
                _ => wide.map(|x| x * x).sum::<f64>().sqrt(),
            };
            for at in group {
                let divisor = if norm == 0.0 { 1.0 } else { norm };
                y[at] = (f64::from(x[at]) / divisor) as f32;
            }
        }
        Ok(())
    })
}

/// Local response normalisation over neighbouring channels.
pub(super) fn lrn(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let x = channelled(inputs)?;
    let Some(size @ 1..=0xffff_ffff) = op.int("size") else {
        return bad("size is missing or out of range");
    };
    let size = size as usize;
    let float = |name, default| f64::from(op.float(name).unwrap_or(default));
    let (alpha, beta, bias) = (
        float("alpha", 1e-4),
        float("beta", 0.75),
        float("bias", 1.0),
    );
    let channels = x.dims[1];
    let plane: usize = x.dims[2..].iter().product();
    Ready::one(DType::F32, x.dims.clone(), move |inputs, y| {
        let x = inputs.get(0)?.all::<f32>()?;
        for (i, y) in y.all::<f32>()?.iter_mut().enumerate() {
            let (p, at) = (i / plane, i % plane);
            let (first, c) = (p - p % channels, p % channels);
            let near = c.saturating_sub((size - 1) / 2)..(c + size / 2 + 1).min(channels);
            let squares = near.map(|c| f64::from(x[(first + c) * plane + at]).powi(2));
            let sum = squares.sum::<f64>();
            *y = (f64::from(x[i]) / (bias + alpha / size as f64 * sum).powf(beta)) as f32;
        }
        Ok(())
    })
}

/// `Softmax`, `LogSoftmax` and `Hardmax`: along one axis since operator set 13, before it along all
/// axes from one on.
pub(super) fn softmax(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let x = inputs.f32(0)?;
    let rank = x.dims.len();
    let along: Vec<usize> = if op.opset < 13 {
        match op.int("axis").unwrap_or(1) {
            a if a == rank as i64 => vec![],
            a => (axis(a, rank)?..rank).collect(),
        }
    } else {
        vec![axis(op.int("axis").unwrap_or(-1), rank)?]
    };
    let kind = op.kind.clone();
    Ready::one(DType::F32, x.dims.clone(), move |inputs, y| {
        let (x, y) = (inputs.get(0)?, y.all::<f32>()?);
        let groups = Groups::new(&x.dims, &along);
        let x = x.all::<f32>()?;
        for group in groups.each() {
            let log_sum = log_sum_exp(group.clone().map(|at| f64::from(x[at])));
            match kind.as_str() {
                "Softmax" => group.for_each(|at| y[at] = (f64::from(x[at]) - log_sum).exp() as f32),
                "LogSoftmax" => group.for_each(|at| y[at] = (f64::from(x[at]) - log_sum) as f32),
                _ => {
                    let largest = |a: usize, b: usize| if x[b] > x[a] { b } else { a };
                    let hot = group.clone().reduce(largest);
                    group.for_each(|at| y[at] = f32::from(u8::from(Some(at) == hot)));
                }
            }
        }
        Ok(())
    })
}
