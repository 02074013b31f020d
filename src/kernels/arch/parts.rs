//! Output rows cut into parts that threads write at the same time.

use std::marker::PhantomData;
use std::ops::Range;

use rayon::prelude::*;

use super::super::{Grid, Out};

/// A cuboid of the output (rows, columns, channels) that nobody else writes.
#[derive(Debug)]
pub(crate) struct Part<'a> {
    out: Rows<'a>,
    rows: Range<usize>,
    cols: Range<usize>,
    channels: Range<usize>,
}

/// Columns `first`, `first + step`, …
#[derive(Debug, Clone, Copy)]
pub(crate) struct Columns {
    pub(crate) first: usize,
    pub(crate) step: usize,
}

/// The rows of an [`Out`], shared by its parts.
#[derive(Debug, Clone, Copy)]
struct Rows<'a> {
    /// Each points to a row; rows do not overlap.
    rows: *const *mut [f32],
    /// Channels of a pixel.
    channels: usize,
    _rows: PhantomData<&'a mut [f32]>,
}

// SAFETY: it is used through parts alone, which write disjoint elements.
unsafe impl Send for Rows<'_> {}
// SAFETY: as above.
unsafe impl Sync for Rows<'_> {}

impl Out<'_, '_> {
    /// Columns of the rows.
    pub(crate) fn width(&self) -> usize {
        self.rows.first().map_or(0, |row| row.len() / self.channels)
    }

    /// Calls `f` on each part of the grid, in parallel.
    ///
    /// # Panics
    ///
    /// Where the rows are not equally long.
    pub(crate) fn for_parts(&mut self, grid: Grid, f: impl Fn(Part<'_>) + Sync) {
        let all = 0..self.channels;
        self.for_parts_of(grid, all, &mut [], 0, |part, _| f(part));
    }

    /// Calls `f` on each part of the grid over some channels, in parallel, each with `each` floats of
    /// `scratch`.
    ///
    /// # Panics
    ///
    /// Where the rows are not equally long, or there are fewer floats.
    pub(crate) fn for_parts_of(
        &mut self,
        grid: Grid,
        channels: Range<usize>,
        scratch: &mut [f32],
        each: usize,
        f: impl Fn(Part<'_>, &mut [f32]) + Sync,
    ) {
        let (rows, width) = (self.rows.len(), self.width());
        let len = width * self.channels;
        let even = self.rows.iter().all(|row| row.len() == len);
        assert!(even, "output rows of different lengths");
        assert!(channels.end <= self.channels, "channels");
        let out = Rows {
            rows: self.rows.as_mut_ptr().cast_const().cast(),
            channels: self.channels,
            _rows: PhantomData,
        };
        let blocks = channels.len().div_ceil(grid.block);
        let run = |i: usize, scratch: &mut [f32]| {
            let at = Grid::range(blocks, i / (grid.cols * grid.rows), grid.channels);
            let at = at.start * grid.block..channels.len().min(at.end * grid.block);
            let part = Part {
                out,
                rows: grid.pixels(0, rows, i / grid.cols % grid.rows),
                cols: grid.pixels(1, width, i % grid.cols),
                channels: channels.start + at.start..channels.start + at.end,
            };
            f(part, scratch);
        };
        let parts = grid.cols * grid.rows * grid.channels;
        if parts == 1 {
            return run(0, &mut scratch[..each]);
        }
        if each == 0 {
            let all = (0..parts).into_par_iter().with_max_len(1);
            return all.for_each(|i| run(i, &mut []));
        }
        let scratch = scratch[..parts * each].par_chunks_exact_mut(each);
        let all = scratch.enumerate().with_max_len(1);
        all.for_each(|(i, scratch)| run(i, scratch));
    }
}

impl Part<'_> {
    /// Its rows.
    pub(crate) fn rows(&self) -> Range<usize> {
        self.rows.clone()
    }

    /// Its columns.
    pub(crate) fn cols(&self) -> Range<usize> {
        self.cols.clone()
    }

    /// Its channels.
    pub(crate) fn channels(&self) -> Range<usize> {
        self.channels.clone()
    }

    /// Channels of the output's pixels.
    pub(crate) fn total(&self) -> usize {
        self.out.channels
    }

    /// The part's channels of some of its columns, in one of its rows.
    ///
    /// # Panics
    ///
    /// Where that is outside the part, or of more than a column where the part does not have all
    /// channels.
    #[inline(always)]
    pub(crate) fn pixels(&mut self, row: usize, cols: Range<usize>) -> &mut [f32] {
        let count = cols.len();
        let inside = self.rows.contains(&row)
            && self.cols.start <= cols.start
            && cols.start <= cols.end
            && cols.end <= self.cols.end;
        let whole = count <= 1 || self.channels.len() == self.out.channels;
        assert!(inside && whole, "outside the part");
        let first = cols.start * self.out.channels + self.channels.start;
        // SAFETY: the row is one of the output's and as long as all are, so the elements are inside
        // it; they are this part's alone, and borrowed with it. The table of rows is only read.
        unsafe {
            let row = (*self.out.rows.add(row)).cast::<f32>();
            std::slice::from_raw_parts_mut(row.add(first), count * self.channels.len())
        }
    }

    /// Where the first of `count` pixels of a row has its first channel of `channels` (counted in
    /// all of the output's), and how many floats it is from a pixel to the next. Those channels of
    /// those pixels can be written while the part is borrowed.
    ///
    /// # Panics
    ///
    /// Where that is outside the part.
    #[inline(always)]
    pub(super) fn lattice(
        &mut self,
        row: usize,
        cols: Columns,
        count: usize,
        channels: Range<usize>,
    ) -> (*mut f32, usize) {
        let last = cols.first + (count - 1) * cols.step;
        let inside = self.rows.contains(&row)
            && self.cols.start <= cols.first
            && last < self.cols.end
            && self.channels.start <= channels.start
            && channels.end <= self.channels.end;
        assert!(inside, "outside the part");
        let first = cols.first * self.out.channels + channels.start;
        // SAFETY: the row is one of the output's, and the first pixel is inside it.
        let at = unsafe { (*self.out.rows.add(row)).cast::<f32>().add(first) };
        (at, cols.step * self.out.channels)
    }
}
