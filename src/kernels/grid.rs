//! How a step is cut into parts, one for each thread.

use std::ops::Range;

/// Into how many parts the output is cut, along each axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Grid {
    /// Ranges of rows.
    pub(crate) rows: usize,
    /// Ranges of columns.
    pub(crate) cols: usize,
    /// Ranges of blocks of channels.
    pub(crate) channels: usize,
    /// Channels of a block, which is not cut.
    pub(crate) block: usize,
    /// Rows and columns of a tile, which is not cut.
    pub(crate) tile: usize,
    /// Rows and columns of the first tile that are before the output's first.
    pub(crate) before: [usize; 2],
}

/// Operations that are done sooner than another thread has woken.
pub(super) const TINY: usize = 20_000;

impl Grid {
    /// The cut that takes the current pool least time, for an output of `rows × cols` pixels of
    /// `blocks` blocks of `block` channels that takes `work` operations. Columns are cut first: a
    /// thread then finds in its cache what it wrote for the step before. A register tile has `tile`
    /// pixels of a row; each costs as much as two more.
    pub(crate) fn choose(
        [rows, cols, blocks]: [usize; 3],
        block: usize,
        tile: usize,
        work: usize,
    ) -> Grid {
        let threads = if work < TINY {
            1
        } else {
            rayon::current_num_threads()
        };
        let mut best = (
            usize::MAX,
            Grid {
                rows: 1,
                cols: 1,
                channels: 1,
                block,
                tile: 1,
                before: [0, 0],
            },
        );
        for down in 1..=threads.min(rows) {
            for deep in 1..=(threads / down).min(blocks) {
                let along = (threads / (down * deep)).clamp(1, cols.max(1));
                let width = cols.div_ceil(along);
                let tiles = width + 2 * width.div_ceil(tile);
                let time = rows.div_ceil(down) * tiles * blocks.div_ceil(deep);
                if time < best.0 {
                    best = (
                        time,
                        Grid {
                            rows: down,
                            cols: along,
                            channels: deep,
                            ..best.1
                        },
                    );
                }
            }
        }
        best.1
    }

    /// Part `i` of `n` of a range that is cut evenly.
    pub(crate) fn range(len: usize, i: usize, n: usize) -> Range<usize> {
        i * len / n..(i + 1) * len / n
    }

    /// Part `i` of the `len` rows (`axis` 0) or columns (1).
    pub(crate) fn pixels(&self, axis: usize, len: usize, i: usize) -> Range<usize> {
        let (before, parts) = (self.before[axis], [self.rows, self.cols][axis]);
        let tiles = Grid::range((before + len).div_ceil(self.tile), i, parts);
        let pixel = |tile: usize| (tile * self.tile).saturating_sub(before).min(len);
        pixel(tiles.start)..pixel(tiles.end)
    }
}
