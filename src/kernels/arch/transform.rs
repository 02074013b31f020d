//! Winograd's transforms between pixels and points, a vector of channels at a time.

use std::mem::MaybeUninit;
use std::ops::Range;

use super::super::points::Points;
use super::Simd;
use super::parts::{Columns, Part};

/// Input pixels under a tile: `T × T` of them, zeros where they are outside the image.
pub(crate) struct Patch<'a, const T: usize> {
    /// The input rows.
    pub(crate) rows: [Option<&'a [f32]>; T],
    /// The input columns.
    pub(crate) cols: [Option<usize>; T],
    /// Floats from a pixel to the next.
    pub(crate) stride: usize,
    /// The channels that are read.
    pub(crate) channels: Range<usize>,
}

impl<const T: usize> Patch<'_, T> {
    /// Where the channels of the pixel in row `i` and column `j` of the patch are.
    #[inline(always)]
    fn pixel(&self, i: usize, j: usize) -> Option<&[f32]> {
        let at = self.cols[j]? * self.stride + self.channels.start;
        Some(&self.rows[i]?[at..at + self.channels.len()])
    }

    /// Writes point `t` of channel `c` to `to[t · pitch + c]`.
    #[inline(always)]
    pub(crate) fn transform<S: Simd, P: Points<M, T>, const M: usize>(
        &self,
        s: S,
        to: &mut [f32],
        pitch: usize,
    ) {
        let n = self.channels.len();
        let to = &mut to[..(T * T - 1) * pitch + n];
        let mut at = [[std::ptr::null(); T]; T];
        for (i, row) in at.iter_mut().enumerate() {
            for (j, at) in row.iter_mut().enumerate() {
                if let Some(pixel) = self.pixel(i, j) {
                    *at = pixel.as_ptr();
                }
            }
        }
        for c in (0..n).step_by(S::LANES) {
            let lanes = S::LANES.min(n - c);
            // not cleared: that would cost as much as the transform
            let mut half = [[MaybeUninit::<S::F32>::uninit(); T]; T];
            for j in 0..T {
                let mut d = [s.splat(0.0); T];
                for (d, row) in d.iter_mut().zip(&at) {
                    if !row[j].is_null() {
                        // SAFETY: it points to `n` channels of a pixel.
                        let x = unsafe { std::slice::from_raw_parts(row[j].add(c), lanes) };
                        *d = load(s, x);
                    }
                }
                for (half, v) in half.iter_mut().zip(P::input(s, d)) {
                    half[j].write(v);
                }
            }
            for (i, half) in half.iter().enumerate() {
                // SAFETY: each column wrote its element of every row.
                let half = half.map(|v| unsafe { v.assume_init() });
                for (j, v) in P::input(s, half).into_iter().enumerate() {
                    let at = (i * T + j) * pitch + c;
                    // SAFETY: `to` was cut to `n` channels of the last point.
                    let to =
                        unsafe { std::slice::from_raw_parts_mut(to.as_mut_ptr().add(at), lanes) };
                    store(s, v, to);
                }
            }
        }
    }
}

/// Loads a vector, or a part of one.
#[inline(always)]
fn load<S: Simd>(s: S, from: &[f32]) -> S::F32 {
    if from.len() == S::LANES {
        s.load(from)
    } else {
        s.load_partial(from)
    }
}

/// Stores a vector, or a part of one.
#[inline(always)]
fn store<S: Simd>(s: S, v: S::F32, to: &mut [f32]) {
    if to.len() == S::LANES {
        s.store(v, to);
    } else {
        s.store_partial(v, to);
    }
}

/// Transforms the taps of a kernel for one input channel and all lanes of a block: tap `k` of lane
/// `l` is `from[k · tap + l]`, and its point `t` goes to `to[t · pitch + l]`.
#[inline(always)]
pub(crate) fn taps<S: Simd, P: Points<M, T>, const M: usize, const T: usize>(
    s: S,
    from: &[f32],
    tap: usize,
    to: &mut [f32],
    pitch: usize,
    width: usize,
) {
    let (from, to) = (
        &from[..8 * tap + width],
        &mut to[..(T * T - 1) * pitch + width],
    );
    for lane in (0..width).step_by(S::LANES) {
        let mut half = [[s.splat(0.0); 3]; T];
        for kx in 0..3 {
            let mut g = [s.splat(0.0); 3];
            for (ky, g) in g.iter_mut().enumerate() {
                *g = s.load(&from[(3 * ky + kx) * tap + lane..]);
            }
            for (half, v) in half.iter_mut().zip(P::taps(s, g)) {
                half[kx] = v;
            }
        }
        for (i, half) in half.iter().enumerate() {
            for (j, v) in P::taps(s, *half).into_iter().enumerate() {
                s.store(v, &mut to[(i * T + j) * pitch + lane..]);
            }
        }
    }
}

/// Output pixels of a tile.
pub(crate) struct Target {
    /// The output row and column of the tile's first pixel, before the first of the call where the
    /// tile sticks out.
    pub(crate) first: [isize; 2],
    /// The output channels.
    pub(crate) channels: Range<usize>,
}

impl Target {
    /// Makes the tile's pixels that are in the part. Point `t` of channel `c` is `from[t · pitch + c]`.
    #[inline(always)]
    pub(crate) fn transform<S: Simd, P: Points<M, T>, const M: usize, const T: usize>(
        &self,
        s: S,
        from: &[f32],
        pitch: usize,
        bias: &[f32],
        part: &mut Part<'_>,
    ) {
        let n = self.channels.len();
        let padded = n.next_multiple_of(S::LANES);
        let (from, bias) = (&from[..(T * T - 1) * pitch + padded], &bias[..padded]);
        let inside = |first: isize, range: Range<usize>| {
            let clamp = |at: usize| (at as isize - first).clamp(0, M as isize) as usize;
            clamp(range.start)..clamp(range.end)
        };
        let rows = inside(self.first[0], part.rows());
        let cols = inside(self.first[1], part.cols());
        if rows.is_empty() || cols.is_empty() {
            return;
        }
        let mut to = [(std::ptr::null_mut::<f32>(), 0); M];
        for row in rows.clone() {
            let at = |first: isize, k: usize| (first + k as isize) as usize;
            let columns = Columns {
                first: at(self.first[1], cols.start),
                step: 1,
            };
            to[row] = part.lattice(
                at(self.first[0], row),
                columns,
                cols.len(),
                self.channels.clone(),
            );
        }
        for lane in (0..n).step_by(S::LANES) {
            let lanes = S::LANES.min(n - lane);
            let mut half = [[MaybeUninit::<S::F32>::uninit(); T]; M];
            for j in 0..T {
                let mut m = [s.splat(0.0); T];
                for (i, m) in m.iter_mut().enumerate() {
                    // SAFETY: `from` was cut to whole vectors of the last point.
                    *m = s.load(unsafe {
                        let at = from.as_ptr().add((i * T + j) * pitch + lane);
                        std::slice::from_raw_parts(at, S::LANES)
                    });
                }
                for (half, v) in half.iter_mut().zip(P::output(s, m)) {
                    half[j].write(v);
                }
            }
            let bias = s.load(&bias[lane..]);
            for row in rows.clone() {
                let (to, step) = to[row];
                // SAFETY: each column wrote its element of every row.
                let half = half[row].map(|v| unsafe { v.assume_init() });
                let sums = P::output(s, half);
                for (k, col) in cols.clone().enumerate() {
                    // SAFETY: `lattice` gave `n` channels of these pixels, `step` apart.
                    let to =
                        unsafe { std::slice::from_raw_parts_mut(to.add(k * step + lane), lanes) };
                    store(s, s.add(sums[col], bias), to);
                }
            }
        }
    }
}
