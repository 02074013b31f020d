//! Ops that move elements and change none.

use super::args::{Input, Inputs, Ready, bad, ensure, for_type, unsupported};
use super::shape::{axes, axis, broadcast, copy_strided, strides, strides_in};
use super::{DType, Op};
use crate::error::Result;

/// An output of lengths `dims` that is input 0, read from `start` on along `walk`: lengths (in
/// whose order the output is filled) and strides.
fn strided(
    x: &Input<'_>,
    dims: Vec<usize>,
    start: isize,
    walk: (Vec<usize>, Vec<isize>),
) -> Result<Ready> {
    let dtype = x.dtype;
    Ready::one(dtype, dims, move |inputs, y| {
        for_type!(dtype, T => {
            copy_strided::<T>(&walk.0, inputs.get(0)?.all()?, start, &walk.1, y.all()?);
        });
        Ok(())
    })
}

/// Input 0 under other lengths.
fn renamed(x: &Input<'_>, dims: Vec<usize>) -> Result<Ready> {
    strided(x, dims, 0, (vec![x.len()], vec![1]))
}

pub(super) fn identity(_: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let x = inputs.get(0)?;
    renamed(x, x.dims.clone())
}

/// `Dropout` where it drops nothing; the second output is a mask of `true`.
pub(super) fn dropout(_: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let x = inputs.get(0)?;
    let drops = match inputs.opt(1) {
        Some(ratio) => ratio.floats("ratio")? != [0.0],
        None => true,
    };
    if let Some(training) = inputs.opt(2).filter(|_| drops)
        && training.truth("training_mode")?
    {
        return unsupported("training_mode must be false");
    }
    let dtype = x.dtype;
    let outputs = vec![(dtype, x.dims.clone()), (DType::Bool, x.dims.clone())];
    Ready::many(outputs, move |inputs, y| {
        for_type!(dtype, T => y[0].all::<T>()?.copy_from_slice(inputs.get(0)?.all()?));
        if let Some(mask) = y.get_mut(1) {
            mask.all::<u8>()?.fill(1);
        }
        Ok(())
    })
}

pub(super) fn transpose(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let x = inputs.get(0)?;
    let rank = x.dims.len();
    let perm = match op.ints("perm") {
        Some(perm) => axes(perm, rank)?,
        None => (0..rank).rev().collect(),
    };
    ensure(perm.len() == rank, || {
        format!("perm {perm:?} does not permute {rank} axes")
    })?;
    let from = strides(&x.dims);
    let dims: Vec<usize> = perm.iter().map(|&k| x.dims[k]).collect();
    let walk = perm.iter().map(|&k| from[k]).collect();
    strided(x, dims.clone(), 0, (dims, walk))
}

pub(super) fn reshape(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let x = inputs.get(0)?;
    let Some(shape) = inputs.ints(op, "shape", 1)? else {
        return bad("input 1, the shape, is missing");
    };
    let keeps_zero = op.int("allowzero").unwrap_or(0) != 0;
    let mut dims = Vec::with_capacity(shape.len());
    let mut open = None;
    for (k, &d) in shape.iter().enumerate() {
        dims.push(match d {
            -1 if open.is_none() => {
                open = Some(k);
                1
            }
            0 if !keeps_zero && k < x.dims.len() => x.dims[k],
            0 if !keeps_zero => return bad(format!("{shape:?} copies an axis that is not there")),
            0.. => d as usize,
            _ => return bad(format!("{shape:?} is no shape")),
        });
    }
    let known = dims.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
    if let (Some(k), Some(known)) = (open, known) {
        ensure(known > 0 && x.len().is_multiple_of(known), || {
            format!("{:?} does not fill {shape:?}", x.dims)
        })?;
        dims[k] = x.len() / known;
    }
    let fills = dims.iter().try_fold(1usize, |n, &d| n.checked_mul(d)) == Some(x.len());
    ensure(fills, || format!("{:?} does not fill {shape:?}", x.dims))?;
    renamed(x, dims)
}

pub(super) fn flatten(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let x = inputs.get(0)?;
    let rank = x.dims.len();
    let at = match op.int("axis").unwrap_or(1) {
        a if a == rank as i64 => rank,
        a => axis(a, rank)?,
    };
    let rows = x.dims[..at].iter().product();
    renamed(x, vec![rows, x.dims[at..].iter().product()])
}

pub(super) fn squeeze(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let x = inputs.get(0)?;
    let gone = match inputs.ints(op, "axes", 1)? {
        Some(list) => axes(&list, x.dims.len())?,
        None => (0..x.dims.len()).filter(|&k| x.dims[k] == 1).collect(),
    };
    ensure(gone.iter().all(|&k| x.dims[k] == 1), || {
        format!("axes {gone:?} of {:?} are not all of length 1", x.dims)
    })?;
    let left = (0..x.dims.len()).filter(|k| !gone.contains(k));
    renamed(x, left.map(|k| x.dims[k]).collect())
}

pub(super) fn unsqueeze(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let x = inputs.get(0)?;
    let Some(list) = inputs.ints(op, "axes", 1)? else {
        return bad("axes are missing");
    };
    let rank = x.dims.len() + list.len();
    let new = axes(&list, rank)?;
    let mut old = x.dims.iter();
    let length = |k| match new.contains(&k) {
        true => 1,
        false => old.next().copied().unwrap_or(1),
    };
    renamed(x, (0..rank).map(length).collect())
}

pub(super) fn expand(_: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let x = inputs.get(0)?;
    let shape = lengths(&inputs.get(1)?.ints("shape")?)?;
    let dims = broadcast(&x.dims, &shape)?;
    let walk = strides_in(&x.dims, &dims);
    strided(x, dims.clone(), 0, (dims, walk))
}

/// `shape` as lengths.
pub(super) fn lengths(shape: &[i64]) -> Result<Vec<usize>> {
    let length = |&d: &i64| usize::try_from(d).ok();
    match shape.iter().map(length).collect() {
        Some(dims) => Ok(dims),
        None => bad(format!("{shape:?} is no shape")),
    }
}

pub(super) fn tile(_: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let x = inputs.get(0)?;
    let repeats = lengths(&inputs.get(1)?.ints("repeats")?)?;
    ensure(repeats.len() == x.dims.len(), || {
        format!("{repeats:?} does not repeat {:?}", x.dims)
    })?;
    let (mut dims, mut walk) = (vec![], (vec![], vec![]));
    for ((&d, &r), s) in x.dims.iter().zip(&repeats).zip(strides(&x.dims)) {
        match d.checked_mul(r) {
            Some(n) => dims.push(n),
            None => return bad(format!("{repeats:?} repeats too often")),
        }
        walk.0.extend([r, d]);
        walk.1.extend([0, s]);
    }
    strided(x, dims, 0, walk)
}

pub(super) fn depth_to_space(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let x = inputs.get(0)?;
    let (b, [n, c, h, w]) = block(op, x)?;
    let deep = c / b.saturating_mul(b);
    ensure(c == deep * b * b, || {
        format!("{c} channels are no multiple of {b} x {b}")
    })?;
    // input axes: n, then the channel's three parts, then h and w
    let (parts, walk) = match op.str("mode").unwrap_or("DCR") {
        "DCR" => ([n, b, b, deep, h, w], [0, 3, 4, 1, 5, 2]),
        "CRD" => ([n, deep, b, b, h, w], [0, 1, 4, 2, 5, 3]),
        mode => return bad(format!("mode {mode} is not DCR or CRD")),
    };
    let from = strides(&parts);
    let walk = (
        walk.iter().map(|&k| parts[k]).collect(),
        walk.iter().map(|&k| from[k]).collect(),
    );
    strided(x, vec![n, deep, h * b, w * b], 0, walk)
}

pub(super) fn space_to_depth(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let x = inputs.get(0)?;
    let (b, [n, c, h, w]) = block(op, x)?;
    ensure(h.is_multiple_of(b) && w.is_multiple_of(b), || {
        format!("{h} x {w} is no multiple of {b}")
    })?;
    let parts = [n, c, h / b, b, w / b, b];
    let from = strides(&parts);
    let walk = match op.str("mode").unwrap_or("DCR") {
        "DCR" => [0, 3, 5, 1, 2, 4],
        "CRD" => [0, 1, 3, 5, 2, 4],
        mode => return bad(format!("mode {mode} is not DCR or CRD")),
    };
    let walk = (
        walk.iter().map(|&k| parts[k]).collect(),
        walk.iter().map(|&k| from[k]).collect(),
    );
    let deep = c.saturating_mul(b).saturating_mul(b);
    strided(x, vec![n, deep, h / b, w / b], 0, walk)
}

/// `blocksize`, and the four lengths of `x`.
fn block(op: &Op, x: &Input<'_>) -> Result<(usize, [usize; 4])> {
    let Ok(dims) = <[usize; 4]>::try_from(&x.dims[..]) else {
        return bad(format!("takes 4 axes, not {:?}", x.dims));
    };
    match op.int("blocksize") {
        Some(b @ 1..=0xffff) => Ok((b as usize, dims)),
        b => bad(format!("blocksize {b:?} is out of range")),
    }
}

pub(super) fn concat(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let all = inputs.every()?;
    let Some(at) = op.int("axis") else {
        return bad("attribute `axis` is missing");
    };
    let first = all[0];
    let at = axis(at, first.dims.len())?;
    let mut dims = first.dims.clone();
    for x in &all[1..] {
        x.must_be(first.dtype)?;
        let agrees =
            x.dims.len() == dims.len() && (0..dims.len()).all(|k| k == at || x.dims[k] == dims[k]);
        ensure(agrees, || {
            format!("{:?} does not go with {dims:?} along axis {at}", x.dims)
        })?;
        dims[at] += x.dims[at];
    }
    let (dtype, outer) = (first.dtype, dims[..at].iter().product());
    Ready::one(dtype, dims, move |inputs, y| {
        for_type!(dtype, T => {
            let mut rest = y.all::<T>()?;
            let parts = inputs.every()?;
            let parts = parts.iter().map(|x| Ok((x.all::<T>()?, x.len() / outer)));
            let parts = parts.collect::<Result<Vec<_>>>()?;
            for o in 0..outer {
                for (x, n) in &parts {
                    let (row, after) = rest.split_at_mut(*n);
                    row.copy_from_slice(&x[o * n..(o + 1) * n]);
                    rest = after;
                }
            }
        });
        Ok(())
    })
}

/// `Split`. Without lengths it needs `num_outputs`, which operator sets before 18 leave to the
/// number of the node's outputs.
pub(super) fn split(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let x = inputs.get(0)?;
    let at = axis(op.int("axis").unwrap_or(0), x.dims.len())?;
    let whole = x.dims[at];
    let parts = match (inputs.ints(op, "split", 1)?, op.int("num_outputs")) {
        (Some(parts), _) => lengths(&parts)?,
        (None, Some(n)) if n > 0 && n as usize <= whole.max(1) => {
            let each = whole.div_ceil(n as usize);
            let part = |i| each.min(whole.saturating_sub(i * each));
            (0..n as usize).map(part).collect()
        }
        (None, n) => return bad(format!("{whole} elements cannot be split into {n:?}")),
    };
    let sum = parts.iter().try_fold(0usize, |n, &d| n.checked_add(d));
    ensure(sum == Some(whole), || {
        format!("parts of {parts:?} do not add up to {whole}")
    })?;
    let dims = |&n: &usize| {
        let mut dims = x.dims.clone();
        dims[at] = n;
        (x.dtype, dims)
    };
    let (dtype, from) = (x.dtype, strides(&x.dims));
    Ready::many(parts.iter().map(dims).collect(), move |inputs, y| {
        let mut start = 0;
        for (y, &n) in y.iter_mut().zip(&parts) {
            let mut dims = inputs.get(0)?.dims.clone();
            dims[at] = n;
            for_type!(dtype, T => {
                copy_strided::<T>(&dims, inputs.get(0)?.all()?, start, &from, y.all()?);
            });
            start += n as isize * from[at];
        }
        Ok(())
    })
}

pub(super) fn slice(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let x = inputs.get(0)?;
    let list = |name, i| inputs.ints(op, name, i);
    let (Some(starts), Some(ends)) = (list("starts", 1)?, list("ends", 2)?) else {
        return bad("starts or ends are missing");
    };
    let which = match list("axes", 3)? {
        Some(which) => axes(&which, x.dims.len())?,
        None => axes(&(0..starts.len() as i64).collect::<Vec<_>>(), x.dims.len())?,
    };
    let steps = list("steps", 4)?.unwrap_or_else(|| vec![1; starts.len()]);
    let n = which.len();
    ensure([starts.len(), ends.len(), steps.len()] == [n; 3], || {
        "starts, ends, axes and steps must be equally many".into()
    })?;
    let (mut dims, mut walk, mut origin) = (x.dims.clone(), strides(&x.dims), 0);
    for (i, k) in which.into_iter().enumerate() {
        ensure(steps[i] != 0, || "a step is 0".into())?;
        // in i128: starts and ends may be as large as i64 goes, to mean all of the axis
        let (d, step) = (x.dims[k] as i128, i128::from(steps[i]));
        let bounds = if step > 0 { (0, d) } else { (-1, d - 1) };
        let place = |p: i64, least: i128| {
            let p = i128::from(p);
            (if p < 0 { p + d } else { p }).clamp(least, bounds.1.max(least))
        };
        let (start, end) = (place(starts[i], 0.min(bounds.1)), place(ends[i], bounds.0));
        let span = if step > 0 { end - start } else { start - end };
        let taken = (span.max(0) as u128).div_ceil(step.unsigned_abs()) as usize;
        dims[k] = taken;
        origin += start.max(0) as isize * walk[k];
        // the step of a single element is never taken, and may be huge
        walk[k] *= if taken > 1 { step as isize } else { 1 };
    }
    strided(x, dims.clone(), origin, (dims, walk))
}
