//! Kernels that move elements: pad and crop, depth to space, space to depth.

use super::arch::parts::Part;
use super::arch::{Isa, Kernel, Simd};
use super::{Cols, Grid, Input, Out, Tail, channel_runs};

/// Moves pixels: column `x` is the one that `cols` says (one tap), `value` where it or the row is
/// outside.
pub fn pad(
    isa: Isa,
    value: f32,
    input: &Input<'_>,
    cols: &Cols,
    tail: &Tail<'_>,
    out: &mut Out<'_, '_>,
) {
    shuffle(isa, tail, out, |row, x, pixel| {
        let column = cols.tap(x, 0);
        for run in channel_runs(input) {
            let to = &mut pixel[run.to..run.to + run.channels];
            match run.rows[row].zip(column) {
                Some((line, column)) => {
                    let from = column * run.stride + run.first;
                    to.copy_from_slice(&line[from..from + run.channels]);
                }
                None => to.fill(value),
            }
        }
    });
}

/// Channels to pixels. Row `r` is row `sub_rows[r]` of its block; the window's first column is column
/// `first` of its block, which is the first of the input's window.
#[expect(clippy::too_many_arguments, reason = "what the op has")]
pub fn depth_to_space(
    isa: Isa,
    block: usize,
    crd: bool,
    input: &Input<'_>,
    sub_rows: &[usize],
    first: usize,
    tail: &Tail<'_>,
    out: &mut Out<'_, '_>,
) {
    let channels = out.channels;
    shuffle(isa, tail, out, |row, x, pixel| {
        let (column, sub) = (
            (first + x) / block,
            sub_rows[row] * block + (first + x) % block,
        );
        // channel c of the output is channel `start + c · step` of the input
        let (start, step) = if crd {
            (sub, block * block)
        } else {
            (sub * channels, 1)
        };
        for run in channel_runs(input) {
            let Some(line) = run.rows[row] else { continue };
            let line = &line[column * run.stride + run.first..][..run.channels];
            let skip = run.to.saturating_sub(start).div_ceil(step);
            for (c, v) in pixel.iter_mut().enumerate().skip(skip) {
                match line.get(start + c * step - run.to) {
                    Some(from) => *v = *from,
                    None => break,
                }
            }
        }
    });
}

/// Pixels to channels: `input` has `block` row taps, and the window's first pixel begins at the input
/// window's column `first`.
pub fn space_to_depth(
    isa: Isa,
    block: usize,
    input: &Input<'_>,
    first: usize,
    tail: &Tail<'_>,
    out: &mut Out<'_, '_>,
) {
    let channels: usize = input.segments.iter().map(|s| s.channels).sum();
    shuffle(isa, tail, out, |row, x, pixel| {
        for run in channel_runs(input) {
            for (sub, to) in pixel.chunks_exact_mut(channels).enumerate() {
                let column = first + x * block + sub % block;
                if let Some(line) = run.rows[row * block + sub / block] {
                    let from = column * run.stride + run.first;
                    to[run.to..run.to + run.channels]
                        .copy_from_slice(&line[from..from + run.channels]);
                }
            }
        }
    });
}

/// Makes each pixel of `out` by `pixel(row, column, pixel)`, then the tail.
pub(super) fn shuffle(
    isa: Isa,
    tail: &Tail<'_>,
    out: &mut Out<'_, '_>,
    pixel: impl Fn(usize, usize, &mut [f32]) + Sync,
) {
    let (rows, width, channels) = (out.rows.len(), out.width(), out.channels);
    let grid = Grid::choose([rows, width, 1], channels, 1, rows * width * channels);
    out.for_parts(grid, |mut part| {
        for row in part.rows() {
            let cols = part.cols();
            for (x, to) in cols
                .clone()
                .zip(part.pixels(row, cols).chunks_exact_mut(channels))
            {
                pixel(row, x, to);
            }
        }
        isa.run(Finish { tail, part });
    });
}

/// Applies a tail to a part that holds an op's result.
struct Finish<'a> {
    tail: &'a Tail<'a>,
    part: Part<'a>,
}

impl Kernel for Finish<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        for row in self.part.rows() {
            let cols = self.part.cols();
            self.tail
                .apply(s, row, cols.clone(), self.part.pixels(row, cols));
        }
    }
}
