//! Maximum and mean over a window.

use std::ops::Range;

use super::arch::{Isa, Simd};
use super::pixels::{Pixels, fill};
use super::{Cols, Input, Out, Run, Tail, channel_runs};

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
#[expect(clippy::too_many_arguments, reason = "the operands of one operation")]
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
    let each = input.taps * cols.taps;
    match pooling {
        Pooling::Max => fill(isa, &Max { input, cols }, each, tail, out),
        Pooling::Mean => {
            let mean = Mean {
                row_counts,
                col_counts,
                input,
                cols,
            };
            fill(isa, &mean, each, tail, out);
        }
    }
}

struct Max<'a> {
    input: &'a Input<'a>,
    cols: &'a Cols,
}

impl Pixels for Max<'_> {
    #[inline(always)]
    fn make<S: Simd>(&self, s: S, row: usize, cols: Range<usize>, to: &mut [f32]) {
        let channels = to.len() / cols.len();
        let least = s.splat(f32::NEG_INFINITY);
        for (x, pixel) in cols.zip(to.chunks_exact_mut(channels)) {
            let window = Window::new(self.input, self.cols, row, x);
            window.reduce(s, least, pixel, |most, v| {
                // a NaN stays: it is not equal to itself
                s.select(s.eq(most, most), s.select(s.lt(v, most), most, v), most)
            });
        }
    }
}

struct Mean<'a> {
    row_counts: &'a [u32],
    col_counts: &'a [u32],
    input: &'a Input<'a>,
    cols: &'a Cols,
}

impl Pixels for Mean<'_> {
    #[inline(always)]
    fn make<S: Simd>(&self, s: S, row: usize, cols: Range<usize>, to: &mut [f32]) {
        let channels = to.len() / cols.len();
        for (x, pixel) in cols.zip(to.chunks_exact_mut(channels)) {
            let window = Window::new(self.input, self.cols, row, x);
            window.reduce(s, s.splat(0.0), pixel, |sum, v| s.add(sum, v));
            let count = u64::from(self.row_counts[row]) * u64::from(self.col_counts[x]);
            let count = s.splat(count as f32);
            for part in pixel.chunks_mut(S::LANES) {
                s.store_partial(s.div(s.load_partial(part), count), part);
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
    /// The first tap's column where the column is regular.
    regular: Option<usize>,
}

impl<'a> Window<'a> {
    #[inline(always)]
    fn new(input: &'a Input<'a>, cols: &'a Cols, row: usize, x: usize) -> Self {
        let inside = cols.regular.contains(&x);
        let regular = inside.then(|| cols.first + (x - cols.regular.start) * cols.stride);
        Window {
            input,
            cols,
            row,
            x,
            regular,
        }
    }

    /// The column of tap `k`, if it is inside the image.
    #[inline(always)]
    fn column(&self, k: usize) -> Option<usize> {
        match self.regular {
            Some(first) => Some(first.wrapping_add_signed(k as isize * self.cols.dilation)),
            None => self.cols.tap(self.x, k),
        }
    }

    /// Each channel of the window's pixels, row by row, taken by `add` into what begins as `start`.
    #[inline(always)]
    fn reduce<S: Simd>(
        &self,
        s: S,
        start: S::F32,
        to: &mut [f32],
        add: impl Fn(S::F32, S::F32) -> S::F32,
    ) {
        for run in channel_runs(self.input) {
            let to = &mut to[run.to..run.to + run.channels];
            let wide = 4 * S::LANES;
            let whole = to.len() / wide * wide;
            let (groups, rest) = to.split_at_mut(whole);
            for (i, to) in groups.chunks_exact_mut(wide).enumerate() {
                let mut values = [start; 4];
                self.each(&run, run.first + i * wide, |pixel| {
                    for (v, value) in values.iter_mut().enumerate() {
                        *value = add(*value, s.load(&pixel[v * S::LANES..]));
                    }
                });
                for (v, value) in values.iter().enumerate() {
                    s.store(*value, &mut to[v * S::LANES..]);
                }
            }
            for (i, to) in rest.chunks_mut(S::LANES).enumerate() {
                let mut value = start;
                self.each(&run, run.first + whole + i * S::LANES, |pixel| {
                    value = add(value, s.load_partial(&pixel[..to.len()]));
                });
                s.store_partial(value, to);
            }
        }
    }

    /// Calls `f` with the window's pixels that are inside the image, from float `at` of each on.
    #[inline(always)]
    fn each<'p>(&self, run: &Run<'p>, at: usize, mut f: impl FnMut(&'p [f32])) {
        let taps = self.input.taps;
        for line in run.rows[self.row * taps..][..taps].iter().flatten() {
            for k in 0..self.cols.taps {
                if let Some(column) = self.column(k) {
                    f(&line[column * run.stride + at..]);
                }
            }
        }
    }
}
