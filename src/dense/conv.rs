//! `Conv` and `ConvTranspose`, along any number of axes.

use rayon::prelude::*;

use super::args::{Input, Inputs, Ready, bad, ensure};
use super::window::{AutoPad, Sliding, given, per_axis};
use super::{DType, Op};
use crate::error::Result;

/// Groups of channels, and how many channels a group reads and makes.
#[derive(Debug, Clone, Copy)]
struct Channels {
    groups: usize,
    read: usize,
    made: usize,
}

impl Channels {
    fn all_made(&self) -> usize {
        self.groups * self.made
    }
}

/// Checks what `Conv` and `ConvTranspose` share: ranks, groups, the window's size, the bias.
/// `of_weight` says how many channels one of so many groups reads and makes, by the weight's
/// lengths, if they fit.
fn channels(
    op: &Op,
    inputs: &Inputs<'_>,
    of_weight: impl Fn(&[usize], usize) -> Option<(usize, usize)>,
) -> Result<Channels> {
    let (x, w) = (inputs.f32(0)?, inputs.f32(1)?);
    let (xd, wd) = (&x.dims, &w.dims);
    ensure(xd.len() >= 3 && xd.len() == wd.len(), || {
        format!("input {xd:?} and weight {wd:?} need equally many axes, 3 or more")
    })?;
    let groups = usize::try_from(op.int("group").unwrap_or(1)).unwrap_or(0);
    let split = if groups == 0 {
        None
    } else {
        of_weight(wd, groups)
    };
    let Some((read, made)) = split.filter(|(read, _)| read.checked_mul(groups) == Some(xd[1]))
    else {
        return bad(format!(
            "weight {wd:?} in {groups} groups does not fit input {xd:?}"
        ));
    };
    if let Some(kernel) = op.ints("kernel_shape").filter(|k| !k.is_empty()) {
        let same = kernel.iter().copied().eq(wd[2..].iter().map(|&d| d as i64));
        ensure(same, || {
            format!("kernel_shape {kernel:?} is not the weight's, {wd:?}")
        })?;
    }
    if inputs.opt(2).is_some() {
        let b = inputs.f32(2)?;
        ensure(b.dims == [groups * made], || {
            format!("bias {:?} for {} channels", b.dims, groups * made)
        })?;
    }
    Ok(Channels { groups, read, made })
}

/// Fills each output plane with its bias, then calls `f` with it, each input plane that it depends
/// on, and the taps that join the two: those of the weight's kernel number `kernel(m, r)`, for
/// output channel `m` and the `r`-th channel that its group reads.
fn planes(
    inputs: &Inputs<'_>,
    y: &mut [f32],
    c: Channels,
    kernel: impl Fn(usize, usize) -> usize + Sync,
    f: impl Fn(&mut [f32], &[f32], &[f32]) + Sync,
) -> Result<()> {
    let (x, w): (&Input<'_>, _) = (inputs.get(0)?, inputs.get(1)?);
    let plane: usize = x.dims[2..].iter().product();
    let taps: usize = w.dims[2..].iter().product();
    let bias = inputs.opt(2).map(Input::all::<f32>).transpose()?;
    let (batch, x, w) = (x.dims[0], x.all::<f32>()?, w.all::<f32>()?);
    let size = y.len() / (batch * c.all_made());
    y.par_chunks_mut(size).enumerate().for_each(|(p, y)| {
        let (item, m) = (p / c.all_made(), p % c.all_made());
        y.fill(bias.map_or(0.0, |b| b[m]));
        for r in 0..c.read {
            let from = (item * c.groups + m / c.made) * c.read + r;
            let k = kernel(m, r) * taps;
            f(y, &x[from * plane..][..plane], &w[k..][..taps]);
        }
    });
    Ok(())
}

pub(super) fn conv(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let c = channels(op, inputs, |w, groups| {
        w[0].is_multiple_of(groups).then_some((w[1], w[0] / groups))
    })?;
    let (x, w) = (inputs.get(0)?, inputs.get(1)?);
    let sliding = Sliding::new(op, &w.dims[2..], &x.dims[2..])?;
    let dims = [&[x.dims[0], c.all_made()], &sliding.positions[..]].concat();
    Ready::one(DType::F32, dims, move |inputs, y| {
        let kernel = |m, r| m * c.read + r;
        planes(inputs, y.all()?, c, kernel, |y, x, w| {
            sliding.meet(|m| {
                let (w, y) = (w[m.tap], &mut y[m.position..][..m.count]);
                if m.step == 1 {
                    let x = &x[m.place..][..m.count];
                    y.iter_mut().zip(x).for_each(|(y, x)| *y += w * x);
                } else {
                    let x = x[m.place..].iter().step_by(m.step);
                    y.iter_mut().zip(x).for_each(|(y, x)| *y += w * x);
                }
            });
        })
    })
}

pub(super) fn conv_transpose(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let c = channels(op, inputs, |w, groups| {
        w[0].is_multiple_of(groups).then_some((w[0] / groups, w[1]))
    })?;
    let (x, w) = (inputs.get(0)?, inputs.get(1)?);
    let sliding = transposed(op, &w.dims[2..], &x.dims[2..])?;
    let dims = [&[x.dims[0], c.all_made()], &sliding.over[..]].concat();
    Ready::one(DType::F32, dims, move |inputs, y| {
        let kernel = |m, r| (m / c.made * c.read + r) * c.made + m % c.made;
        planes(inputs, y.all()?, c, kernel, |y, x, w| {
            sliding.meet(|m| {
                let (w, x) = (w[m.tap], &x[m.position..][..m.count]);
                let y = y[m.place..].iter_mut().step_by(m.step);
                y.zip(x).for_each(|(y, x)| *y += w * x);
            });
        })
    })
}

/// The windows of a transposed convolution slide over its output, and their positions are its
/// input of lengths `x`.
pub(super) fn transposed(op: &Op, sizes: &[usize], x: &[usize]) -> Result<Sliding> {
    let n = sizes.len();
    let same = AutoPad::of(op)?;
    let mut windows = given(op, sizes)?;
    let extra = per_axis(op, "output_padding", n, 0)?;
    let wanted = match (op.ints("output_shape"), same) {
        (Some(shape), _) if shape.len() >= n => {
            shape[shape.len() - n..].iter().map(|&d| Some(d)).collect()
        }
        (None, AutoPad::Upper | AutoPad::Lower) => {
            let scaled = |k: usize| (x[k] as i64).checked_mul(windows[k].stride);
            (0..n).map(scaled).collect()
        }
        (None, _) => vec![None; n],
        (Some(shape), _) => return bad(format!("output_shape {shape:?} is too short")),
    };
    let mut over = Vec::with_capacity(n);
    for (k, w) in windows.iter_mut().enumerate() {
        let positions = (x[k] as i64 - 1).max(0);
        let spread = positions.checked_mul(w.stride).unwrap_or(i64::MAX / 2);
        let full = spread.saturating_add(w.extent() + extra[k]);
        let length = match wanted[k] {
            Some(length) => {
                (w.before, w.after) = same.halves(full.saturating_sub(length).max(0));
                length
            }
            None => full - w.before - w.after,
        };
        match usize::try_from(length) {
            Ok(length) if length < 1 << 40 => over.push(length),
            _ => return bad(format!("output length {length} along axis {k}")),
        }
    }
    Ok(Sliding {
        windows,
        over,
        positions: x.to_vec(),
    })
}
