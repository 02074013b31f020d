//! Maximum and mean over a window.

use std::ops::Range;

use super::arch::parts::Part;
use super::arch::{Isa, Kernel, Simd};
use super::{Cols, Grid, Input, Out, Run, Tail, channel_runs};

/// What a pool makes of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pooling {
    /// The maximum of the elements inside the image; NaN where one is.
    Max,
    /// Their sum, kernel row by kernel row, divided by how many count.
    Mean,
}

/// Makes all rows of `out`: for each element the maximum or mean over `input`'s taps × `cols`'. The
/// divisor of a mean is its row's of `row_counts` times its column's of `col_counts`.
#[expect(clippy::too_many_arguments, reason = "what the op has")]
pub fn pool(
    isa: Isa,
    pooling: Pooling,
    row_counts: &[u32],
    col_counts: &[u32],
    input: &Input<'_>,
    cols: &Cols,
    tail: &Tail<'_>,
    out: &mut Out<'_, '_>,
) {
    let (rows, width, channels) = (out.rows.len(), out.width(), out.channels);
    let work = rows * width * channels * input.taps * cols.taps;
    let grid = Grid::choose([rows, width, 1], channels, 1, work);
    out.for_parts(grid, |part| {
        isa.run(Job {
            pooling,
            row_counts,
            col_counts,
            input,
            cols,
            tail,
            channels,
            part,
        });
    });
}

struct Job<'a> {
    pooling: Pooling,
    row_counts: &'a [u32],
    col_counts: &'a [u32],
    input: &'a Input<'a>,
    cols: &'a Cols,
    tail: &'a Tail<'a>,
    channels: usize,
    part: Part<'a>,
}

impl Kernel for Job<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        for row in self.part.rows() {
            let cols = self.part.cols();
            for x in cols.clone() {
                self.pixel(s, row, x);
            }
            self.tail
                .apply(s, row, cols.clone(), self.part.pixels(row, cols));
        }
    }
}

impl Job<'_> {
    #[inline(always)]
    fn pixel<S: Simd>(&mut self, s: S, row: usize, x: usize) {
        let count = s.splat((self.row_counts[row] * self.col_counts[x]) as f32);
        let window = Window {
            input: self.input,
            cols: self.cols,
            row,
            x,
        };
        let pixel = self.part.pixels(row, x..x + 1);
        debug_assert_eq!(pixel.len(), self.channels);
        for run in channel_runs(self.input) {
            for c in (0..run.channels).step_by(S::LANES) {
                let at = run.at(c, S::LANES.min(run.channels - c));
                let value = match self.pooling {
                    Pooling::Max => window.max(s, &run, &at),
                    Pooling::Mean => s.div(window.sum(s, &run, &at), count),
                };
                s.store_partial(value, &mut pixel[run.to + c..run.to + c + at.len()]);
            }
        }
    }
}

/// The pixels that one output pixel reads.
struct Window<'a> {
    input: &'a Input<'a>,
    cols: &'a Cols,
    row: usize,
    x: usize,
}

impl Window<'_> {
    #[inline(always)]
    fn max<S: Simd>(&self, s: S, run: &Run<'_>, at: &Range<usize>) -> S::F32 {
        let mut most = s.splat(f32::NEG_INFINITY);
        self.each(run, |pixel| {
            let v = s.load_partial(&pixel[at.clone()]);
            // a NaN stays: it is not equal to itself
            most = s.select(s.eq(most, most), s.select(s.lt(v, most), most, v), most);
        });
        most
    }

    #[inline(always)]
    fn sum<S: Simd>(&self, s: S, run: &Run<'_>, at: &Range<usize>) -> S::F32 {
        let mut sum = s.splat(0.0);
        self.each(run, |pixel| {
            sum = s.add(sum, s.load_partial(&pixel[at.clone()]))
        });
        sum
    }

    /// Calls `f` with each pixel of the window that is inside the image.
    #[inline(always)]
    fn each<'p>(&self, run: &Run<'p>, mut f: impl FnMut(&'p [f32])) {
        for k in 0..self.input.taps {
            let Some(line) = run.rows[self.row * self.input.taps + k] else {
                continue;
            };
            for j in 0..self.cols.taps {
                if let Some(column) = self.cols.tap(self.x, j) {
                    f(&line[column * run.stride..(column + 1) * run.stride]);
                }
            }
        }
    }
}
