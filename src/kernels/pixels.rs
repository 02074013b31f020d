//! The frame of the kernels that make whole pixels: how their output is cut, and when the tail is
//! applied.

use std::ops::Range;

use super::arch::parts::Part;
use super::arch::{Isa, Kernel, Simd};
use super::{Grid, Out, Tail};

/// What makes pixels of output rows.
pub(super) trait Pixels: Sync {
    /// Makes columns `cols` of row `row` of the call, with all channels, in `to`. Implementations
    /// must be `#[inline(always)]`.
    fn make<S: Simd>(&self, s: S, row: usize, cols: Range<usize>, to: &mut [f32]);
}

/// Makes all rows of `out`, about `each` operations an element, then applies the tail.
pub(super) fn fill(
    isa: Isa,
    pixels: &impl Pixels,
    each: usize,
    tail: &Tail<'_>,
    out: &mut Out<'_, '_>,
) {
    let (rows, width, channels) = (out.rows.len(), out.width(), out.channels);
    let work = rows * width * channels * each;
    let grid = Grid::choose([rows, width, 1], channels, 1, work);
    out.for_parts(grid, |part| isa.run(Fill { pixels, tail, part }));
}

/// Floats that are made before the tail is applied to them.
const BLOCK: usize = 1 << 13;

struct Fill<'a, P> {
    pixels: &'a P,
    tail: &'a Tail<'a>,
    part: Part<'a>,
}

impl<P: Pixels> Kernel for Fill<'_, P> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        let cols = self.part.cols();
        let step = (BLOCK / self.part.total()).max(1);
        for row in self.part.rows() {
            for first in cols.clone().step_by(step) {
                let block = first..cols.end.min(first + step);
                let to = self.part.pixels(row, block.clone());
                self.pixels.make(s, row, block.clone(), to);
                self.tail.apply_part(s, row, block, &mut self.part);
            }
        }
    }
}
