//! Interpolation: each output element a weighted sum over a few rows and columns.

use std::ops::Range;

use super::arch::{Isa, Simd};
use super::operand::copy;
use super::pixels::{Pixels, fill};
use super::{Input, Out, Run, Tail, channel_runs};

/// Which input columns each output column reads, with what weights: `taps` of each.
#[derive(Debug, Clone, Copy)]
pub struct ColWeights<'a> {
    /// Taps of each output column.
    pub taps: usize,
    /// Input columns within the window.
    pub index: &'a [u32],
    /// Their weights.
    pub weight: &'a [f32],
}

/// Makes all rows of `out`: `Σ rows weight · (Σ columns weight · x)`, taps ascending, each sum begun
/// with a product and continued by fused multiply-adds. `row_weights` has `input.taps` for each row.
/// Where there is one tap both ways its weights are 1, and pixels are copied.
pub fn resize(
    isa: Isa,
    row_weights: &[f32],
    cols: &ColWeights<'_>,
    input: &Input<'_>,
    tail: &Tail<'_>,
    out: &mut Out<'_, '_>,
) {
    if input.taps == 1 && cols.taps == 1 {
        let index = cols.index;
        fill(isa, &Nearest { index, input }, 1, tail, out);
    } else {
        let pixels = Weighted {
            row_weights,
            cols,
            input,
        };
        fill(isa, &pixels, input.taps * cols.taps, tail, out);
    }
}

struct Nearest<'a> {
    index: &'a [u32],
    input: &'a Input<'a>,
}

impl Pixels for Nearest<'_> {
    #[inline(always)]
    fn make<S: Simd>(&self, _: S, row: usize, cols: Range<usize>, to: &mut [f32]) {
        let channels = to.len() / cols.len();
        for run in channel_runs(self.input) {
            let Some(line) = run.rows[row] else { continue };
            let pixels = to.chunks_exact_mut(channels);
            for (pixel, &column) in pixels.zip(&self.index[cols.clone()]) {
                let from = column as usize * run.stride + run.first;
                let to = &mut pixel[run.to..run.to + run.channels];
                copy(&line[from..from + run.channels], to);
            }
        }
    }
}

struct Weighted<'a> {
    row_weights: &'a [f32],
    cols: &'a ColWeights<'a>,
    input: &'a Input<'a>,
}

impl Pixels for Weighted<'_> {
    #[inline(always)]
    fn make<S: Simd>(&self, s: S, row: usize, cols: Range<usize>, to: &mut [f32]) {
        let channels = to.len() / cols.len();
        let rows = row * self.input.taps..(row + 1) * self.input.taps;
        let taps = self.cols.taps;
        for (x, pixel) in cols.zip(to.chunks_exact_mut(channels)) {
            let sum = Sum {
                rows: rows.clone(),
                row_weights: &self.row_weights[rows.clone()],
                columns: &self.cols.index[x * taps..(x + 1) * taps],
                weights: &self.cols.weight[x * taps..(x + 1) * taps],
            };
            for run in channel_runs(self.input) {
                let to = &mut pixel[run.to..run.to + run.channels];
                let wide = 4 * S::LANES;
                let whole = to.len() / wide * wide;
                let (groups, rest) = to.split_at_mut(whole);
                for (i, to) in groups.chunks_exact_mut(wide).enumerate() {
                    let load = |pixel: &[f32], v: usize| s.load(&pixel[v * S::LANES..]);
                    let sums = sum.of(s, &run, run.first + i * wide, load);
                    let sums: [S::F32; 4] = sums;
                    for (v, sum) in sums.iter().enumerate() {
                        s.store(*sum, &mut to[v * S::LANES..]);
                    }
                }
                for (i, to) in rest.chunks_mut(S::LANES).enumerate() {
                    let load = |pixel: &[f32], _| s.load_partial(&pixel[..to.len()]);
                    let at = run.first + whole + i * S::LANES;
                    let [sum] = sum.of(s, &run, at, load);
                    s.store_partial(sum, to);
                }
            }
        }
    }
}

/// What one output pixel sums.
struct Sum<'a> {
    rows: Range<usize>,
    row_weights: &'a [f32],
    columns: &'a [u32],
    weights: &'a [f32],
}

impl Sum<'_> {
    /// The sums of `V` vectors, of which `load` takes each from a pixel's float `at` on.
    #[inline(always)]
    fn of<S: Simd, const V: usize>(
        &self,
        s: S,
        run: &Run<'_>,
        at: usize,
        load: impl Fn(&[f32], usize) -> S::F32,
    ) -> [S::F32; V] {
        let mut sums = [s.splat(0.0); V];
        let lines = run.rows[self.rows.clone()].iter().zip(self.row_weights);
        for (k, (line, &row_weight)) in lines.enumerate() {
            let Some(line) = line else { continue };
            let mut across = [s.splat(0.0); V];
            for (j, (&column, &weight)) in self.columns.iter().zip(self.weights).enumerate() {
                let pixel = &line[column as usize * run.stride + at..];
                for (v, across) in across.iter_mut().enumerate() {
                    *across = term(s, j, s.splat(weight), load(pixel, v), *across);
                }
            }
            for (sum, across) in sums.iter_mut().zip(across) {
                *sum = term(s, k, s.splat(row_weight), across, *sum);
            }
        }
        sums
    }
}

/// `sum` with term `i`, which the first one begins.
#[inline(always)]
fn term<S: Simd>(s: S, i: usize, weight: S::F32, v: S::F32, sum: S::F32) -> S::F32 {
    if i == 0 {
        s.mul(weight, v)
    } else {
        s.fma(weight, v, sum)
    }
}
