//! Arithmetic of shapes: axes, strides, broadcasting, and walking several tensors at once.

use super::args::{bad, ensure};
use crate::error::Result;

/// `axis` counted from the front, among `rank`.
pub(super) fn axis(axis: i64, rank: usize) -> Result<usize> {
    let rank = rank as i64;
    ensure((-rank..rank).contains(&axis), || {
        format!("axis {axis} is not one of {rank}")
    })?;
    Ok((if axis < 0 { axis + rank } else { axis }) as usize)
}

/// Distinct `axes` counted from the front, among `rank`.
pub(super) fn axes(axes: &[i64], rank: usize) -> Result<Vec<usize>> {
    let list = axes
        .iter()
        .map(|&a| axis(a, rank))
        .collect::<Result<Vec<_>>>()?;
    let distinct = (1..list.len()).all(|i| !list[..i].contains(&list[i]));
    ensure(distinct, || format!("axes {axes:?} name one twice"))?;
    Ok(list)
}

/// Elements of a row-major tensor between neighbours along each axis.
pub(super) fn strides(dims: &[usize]) -> Vec<isize> {
    let mut strides = vec![1; dims.len()];
    for k in (1..dims.len()).rev() {
        strides[k - 1] = strides[k] * dims[k].max(1) as isize;
    }
    strides
}

/// The lengths of `a` and `b` broadcast against each other.
pub(super) fn broadcast(a: &[usize], b: &[usize]) -> Result<Vec<usize>> {
    let rank = a.len().max(b.len());
    let length = |dims: &[usize], k: usize| match (k + dims.len()).checked_sub(rank) {
        Some(k) => dims[k],
        None => 1,
    };
    (0..rank)
        .map(|k| match (length(a, k), length(b, k)) {
            (1, n) | (n, 1) => Ok(n),
            (m, n) if m == n => Ok(n),
            _ => bad(format!("{a:?} and {b:?} do not broadcast")),
        })
        .collect()
}

/// Fails unless `dims` broadcasts to `whole` without changing it.
pub(super) fn must_broadcast_to(dims: &[usize], whole: &[usize]) -> Result<()> {
    ensure(broadcast(dims, whole).is_ok_and(|d| d == whole), || {
        format!("{dims:?} does not broadcast to {whole:?}")
    })
}

/// Strides that read a tensor of `dims` as if it had been broadcast to `whole`.
pub(super) fn strides_in(dims: &[usize], whole: &[usize]) -> Vec<isize> {
    let mut all = vec![0; whole.len() - dims.len()];
    let own = strides(dims);
    all.extend(
        dims.iter()
            .zip(own)
            .map(|(&d, s)| if d == 1 { 0 } else { s }),
    );
    all
}

/// A shape that N tensors are walked over in row-major order, each with strides of its own. Its
/// innermost axis is a run; neighbouring axes that all tensors see as one are merged.
pub(super) struct Walk<const N: usize> {
    dims: Vec<usize>,
    steps: Vec<[isize; N]>,
}

impl<const N: usize> Walk<N> {
    pub(super) fn new(dims: &[usize], strides: [&[isize]; N]) -> Self {
        let mut walk = Walk {
            dims: Vec::with_capacity(dims.len()),
            steps: Vec::with_capacity(dims.len()),
        };
        for (k, &n) in dims.iter().enumerate() {
            let step = strides.map(|s| s[k]);
            match (walk.dims.last_mut(), walk.steps.last_mut()) {
                _ if n == 1 => {}
                (Some(outer), Some(above)) if *above == step.map(|s| s * n as isize) => {
                    *outer *= n;
                    *above = step;
                }
                _ => {
                    walk.dims.push(n);
                    walk.steps.push(step);
                }
            }
        }
        if walk.dims.is_empty() {
            walk.dims.push(1);
            walk.steps.push([1; N]);
        }
        walk
    }

    /// How many elements a run has.
    pub(super) fn len(&self) -> usize {
        *self.dims.last().unwrap_or(&1)
    }

    /// Elements between neighbours of a run, in each tensor.
    pub(super) fn step(&self) -> [isize; N] {
        *self.steps.last().unwrap_or(&[1; N])
    }

    /// Where each run starts in each tensor, counted from the walk's first element.
    pub(super) fn runs(&self) -> Runs<'_, N> {
        Runs {
            walk: self,
            index: vec![0; self.dims.len() - 1],
            at: [0; N],
            left: if self.len() == 0 {
                0
            } else {
                self.dims[..self.dims.len() - 1].iter().product()
            },
        }
    }
}

/// See [`Walk::runs`].
#[derive(Clone)]
pub(super) struct Runs<'a, const N: usize> {
    walk: &'a Walk<N>,
    index: Vec<usize>,
    at: [isize; N],
    left: usize,
}

impl<const N: usize> Iterator for Runs<'_, N> {
    type Item = [isize; N];

    fn next(&mut self) -> Option<[isize; N]> {
        self.left = self.left.checked_sub(1)?;
        let now = self.at;
        for k in (0..self.index.len()).rev() {
            let (n, step) = (self.walk.dims[k], self.walk.steps[k]);
            self.index[k] += 1;
            let wrapped = self.index[k] == n;
            let moves = if wrapped { 1 - n as isize } else { 1 };
            for (at, step) in self.at.iter_mut().zip(step) {
                *at += moves * step;
            }
            if !wrapped {
                break;
            }
            self.index[k] = 0;
        }
        Some(now)
    }
}

impl Walk<1> {
    /// Every place along the walk, counted from `start`.
    pub(super) fn places(&self, start: usize) -> impl Iterator<Item = usize> + Clone + '_ {
        let (n, [step]) = (self.len() as isize, self.step());
        self.runs().flat_map(move |[at]| {
            let first = start as isize + at;
            (0..n).map(move |i| (first + i * step) as usize)
        })
    }
}

/// The elements of a tensor in groups: in one are those that differ only along some axes.
pub(super) struct Groups {
    /// The first member of each group, in row-major order.
    firsts: Walk<1>,
    /// The members, counted from the first.
    members: Walk<1>,
}

impl Groups {
    /// Groups along `axes` of a tensor of `dims`.
    pub(super) fn new(dims: &[usize], axes: &[usize]) -> Self {
        let all = strides(dims);
        let walk = |along: bool| {
            let picked = || (0..dims.len()).filter(|k| axes.contains(k) == along);
            let lengths: Vec<usize> = picked().map(|k| dims[k]).collect();
            let strides: Vec<isize> = picked().map(|k| all[k]).collect();
            Walk::new(&lengths, [&strides])
        };
        Groups {
            firsts: walk(false),
            members: walk(true),
        }
    }

    /// Places of the members of each group.
    pub(super) fn each(&self) -> impl Iterator<Item = impl Iterator<Item = usize> + Clone + '_> {
        self.firsts
            .places(0)
            .map(|first| self.members.places(first))
    }
}

/// Copies into `y`, row-major of `dims`, the elements of `x` that stand at `start` and along
/// `strides` from there.
pub(super) fn copy_strided<T: Copy>(
    dims: &[usize],
    x: &[T],
    start: isize,
    strides: &[isize],
    y: &mut [T],
) {
    let walk = Walk::new(dims, [strides]);
    let (n, [step]) = (walk.len(), walk.step());
    if n == 0 {
        return;
    }
    for (row, [at]) in y.chunks_exact_mut(n).zip(walk.runs()) {
        let at = start + at;
        match step {
            0 => row.fill(x[at as usize]),
            1 => row.copy_from_slice(&x[at as usize..at as usize + n]),
            _ => {
                for (i, y) in row.iter_mut().enumerate() {
                    *y = x[(at + i as isize * step) as usize];
                }
            }
        }
    }
}
