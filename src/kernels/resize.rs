//! Interpolation: each output element a weighted sum over a few rows and columns.

use super::arch::parts::Part;
use super::arch::{Isa, Kernel, Simd};
use super::{Grid, Input, Out, Tail, channel_runs};

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
pub fn resize(
    isa: Isa,
    row_weights: &[f32],
    cols: &ColWeights<'_>,
    input: &Input<'_>,
    tail: &Tail<'_>,
    out: &mut Out<'_, '_>,
) {
    let (rows, width, channels) = (out.rows.len(), out.width(), out.channels);
    let work = rows * width * channels * input.taps * cols.taps;
    let grid = Grid::choose([rows, width, 1], channels, 1, work);
    out.for_parts(grid, |part| {
        isa.run(Job {
            row_weights,
            cols,
            input,
            tail,
            part,
        })
    });
}

struct Job<'a> {
    row_weights: &'a [f32],
    cols: &'a ColWeights<'a>,
    input: &'a Input<'a>,
    tail: &'a Tail<'a>,
    part: Part<'a>,
}

impl Kernel for Job<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        let copies = self.input.taps == 1 && self.cols.taps == 1;
        for row in self.part.rows() {
            let cols = self.part.cols();
            for x in cols.clone() {
                if copies {
                    self.copy(row, x)
                } else {
                    self.pixel(s, row, x)
                }
            }
            self.tail
                .apply(s, row, cols.clone(), self.part.pixels(row, cols));
        }
    }
}

impl Job<'_> {
    #[inline(always)]
    fn copy(&mut self, row: usize, x: usize) {
        let column = self.cols.index[x] as usize;
        let pixel = self.part.pixels(row, x..x + 1);
        for run in channel_runs(self.input) {
            if let Some(line) = run.rows[row] {
                let from = column * run.stride + run.first;
                pixel[run.to..run.to + run.channels]
                    .copy_from_slice(&line[from..from + run.channels]);
            }
        }
    }

    #[inline(always)]
    fn pixel<S: Simd>(&mut self, s: S, row: usize, x: usize) {
        let taps = self.input.taps;
        let index = &self.cols.index[x * self.cols.taps..(x + 1) * self.cols.taps];
        let weight = &self.cols.weight[x * self.cols.taps..(x + 1) * self.cols.taps];
        let pixel = self.part.pixels(row, x..x + 1);
        for run in channel_runs(self.input) {
            let mut c = 0;
            while c < run.channels {
                let lanes = S::LANES.min(run.channels - c);
                let mut sum = s.splat(0.0);
                for k in 0..taps {
                    let Some(line) = run.rows[row * taps + k] else {
                        continue;
                    };
                    let mut across = s.splat(0.0);
                    for (j, (&column, &w)) in index.iter().zip(weight).enumerate() {
                        let from = column as usize * run.stride + run.first + c;
                        let v = s.load_partial(&line[from..from + lanes]);
                        across = if j == 0 {
                            s.mul(s.splat(w), v)
                        } else {
                            s.fma(s.splat(w), v, across)
                        };
                    }
                    let w = s.splat(self.row_weights[row * taps + k]);
                    sum = if k == 0 {
                        s.mul(w, across)
                    } else {
                        s.fma(w, across, sum)
                    };
                }
                s.store_partial(sum, &mut pixel[run.to + c..run.to + c + lanes]);
                c += lanes;
            }
        }
    }
}
