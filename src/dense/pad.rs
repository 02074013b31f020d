//! `Pad`: each axis is cropped, then padded.

use super::Op;
use super::args::{Element, Inputs, Ready, bad, ensure, for_type, unsupported};
use super::shape::{axes, strides};
use crate::error::Result;

/// What a pad puts outside an axis.
#[derive(Debug, Clone, Copy)]
enum Outside {
    Constant,
    Reflect,
    Edge,
    Wrap,
}

/// An axis that is cropped and then padded.
#[derive(Debug, Clone, Copy)]
struct PadAxis {
    /// The first input element that is kept, and how many are.
    first: usize,
    kept: usize,
    /// Elements put before the kept ones, and the output's length.
    before: usize,
    out: usize,
}

impl PadAxis {
    fn new(length: usize, before: i64, after: i64, outside: Outside) -> Result<Self> {
        let gone = |pad: i64| pad.min(0).unsigned_abs() as usize;
        let put = |pad: i64| pad.max(0) as usize;
        let kept = length.checked_sub(gone(before).saturating_add(gone(after)));
        let Some(kept) = kept else {
            return bad(format!("pads {before} and {after} take more than {length}"));
        };
        let out = kept.saturating_add(put(before)).saturating_add(put(after));
        ensure(
            kept > 0 || out == 0 || matches!(outside, Outside::Constant),
            || "there is nothing to reflect or repeat in an empty axis".into(),
        )?;
        Ok(PadAxis {
            first: gone(before),
            kept,
            before: put(before),
            out,
        })
    }

    /// The input element that output element `o` copies, or none where it is the constant.
    fn source(&self, o: usize, outside: Outside) -> Option<usize> {
        let n = self.kept as i64;
        let i = o as i64 - self.before as i64;
        let i = match outside {
            _ if (0..n).contains(&i) => i,
            Outside::Constant => return None,
            Outside::Edge => i.clamp(0, n - 1),
            Outside::Wrap => i.rem_euclid(n),
            Outside::Reflect if n == 1 => 0,
            Outside::Reflect => {
                let i = i.rem_euclid(2 * (n - 1));
                i.min(2 * (n - 1) - i)
            }
        };
        Some(self.first + i as usize)
    }
}

pub(super) fn pad(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let x = inputs.get(0)?;
    let rank = x.dims.len();
    let outside = match op.str("mode").unwrap_or("constant") {
        "constant" => Outside::Constant,
        "reflect" => Outside::Reflect,
        "edge" => Outside::Edge,
        "wrap" => Outside::Wrap,
        mode => return unsupported(format!("mode {mode}")),
    };
    let Some(pads) = inputs.ints(op, "pads", 1)? else {
        return bad("pads are missing");
    };
    let which = match inputs.opt(3) {
        Some(list) => axes(&list.ints("axes")?, rank)?,
        None => (0..rank).collect(),
    };
    ensure(pads.len() == 2 * which.len(), || {
        format!("{} pads for {} axes", pads.len(), which.len())
    })?;
    let value = inputs.opt(2);
    if let Some(value) = value {
        value.must_be(x.dtype)?;
        ensure(value.len() <= 1, || {
            "constant_value is not one number".into()
        })?;
    }
    let attr = op.float("value").unwrap_or(0.0);
    let mut plan = Vec::with_capacity(rank);
    for (k, &d) in x.dims.iter().enumerate() {
        let (before, after) = match which.iter().position(|&w| w == k) {
            Some(i) => (pads[i], pads[i + which.len()]),
            None => (0, 0),
        };
        plan.push(PadAxis::new(d, before, after, outside)?);
    }
    let (dtype, from) = (x.dtype, strides(&x.dims));
    let dims = plan.iter().map(|a| a.out).collect();
    Ready::one(dtype, dims, move |inputs, y| {
        for_type!(dtype, T => {
            let value = match inputs.opt(2).map(|v| v.all::<T>()).transpose()? {
                Some([value]) => *value,
                _ => T::from_f64(f64::from(attr)),
            };
            pad_axes(&plan, &from, inputs.get(0)?.all()?, y.all()?, outside, value);
        });
        Ok(())
    })
}

/// Fills `y` along the outermost of `axes`, and within it along the others.
fn pad_axes<T: Copy>(
    axes: &[PadAxis],
    strides: &[isize],
    x: &[T],
    y: &mut [T],
    outside: Outside,
    value: T,
) {
    let Some(axis) = axes.first() else {
        y.copy_from_slice(&x[..1]);
        return;
    };
    let inner = y.len() / axis.out;
    for (o, y) in y.chunks_exact_mut(inner).enumerate() {
        match axis.source(o, outside) {
            Some(i) if axes.len() == 1 => y[0] = x[i],
            Some(i) => {
                // an empty axis further in leaves nothing to copy, only to fill
                let x = x.get(i * strides[0] as usize..).unwrap_or_default();
                pad_axes(&axes[1..], &strides[1..], x, y, outside, value);
            }
            None => y.fill(value),
        }
    }
}
