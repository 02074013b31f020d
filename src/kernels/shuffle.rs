//! Kernels that move elements: pad and crop, depth to space, space to depth.

use std::ops::Range;

use super::arch::{Isa, Simd};
use super::operand::copy;
use super::pixels::{Pixels, fill};
use super::{Cols, Input, Out, Tail, channel_runs};

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
    let pixels = Pad { value, input, cols };
    fill(isa, &pixels, 1, tail, out);
}

struct Pad<'a> {
    value: f32,
    input: &'a Input<'a>,
    cols: &'a Cols,
}

impl Pixels for Pad<'_> {
    #[inline(always)]
    fn make<S: Simd>(&self, _: S, row: usize, cols: Range<usize>, to: &mut [f32]) {
        let channels = to.len() / cols.len();
        for run in channel_runs(self.input) {
            let line = run.rows[row];
            // columns whose pixels are adjacent on both sides
            let regular = &self.cols.regular;
            let adjacent = run.channels == channels && run.stride == channels;
            let run_of = match line {
                Some(line) if adjacent && self.cols.stride == 1 => {
                    let (start, end) = (
                        regular.start.clamp(cols.start, cols.end),
                        regular.end.clamp(cols.start, cols.end),
                    );
                    if start < end {
                        let from = (self.cols.first + start - regular.start) * channels;
                        let to =
                            &mut to[(start - cols.start) * channels..(end - cols.start) * channels];
                        to.copy_from_slice(&line[from..from + to.len()]);
                    }
                    start..end.max(start)
                }
                _ => cols.start..cols.start,
            };
            for x in (cols.start..run_of.start).chain(run_of.end..cols.end) {
                let pixel = &mut to[(x - cols.start) * channels..];
                let to = &mut pixel[run.to..run.to + run.channels];
                match line.zip(self.cols.tap(x, 0)) {
                    Some((line, column)) => {
                        let from = column * run.stride + run.first;
                        copy(&line[from..from + run.channels], to);
                    }
                    None => to.fill(self.value),
                }
            }
        }
    }
}

/// Channels to pixels. Row `r` is row `sub_rows[r]` of its block; the window's first column is column
/// `first` of its block, which is the first of the input's window.
#[expect(clippy::too_many_arguments, reason = "the operands of one operation")]
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
    let pixels = DepthToSpace {
        block,
        crd,
        input,
        sub_rows,
        first,
    };
    fill(isa, &pixels, 1, tail, out);
}

struct DepthToSpace<'a> {
    block: usize,
    crd: bool,
    input: &'a Input<'a>,
    sub_rows: &'a [usize],
    first: usize,
}

impl Pixels for DepthToSpace<'_> {
    #[inline(always)]
    fn make<S: Simd>(&self, _: S, row: usize, cols: Range<usize>, to: &mut [f32]) {
        let channels = to.len() / cols.len();
        let block = self.block;
        for run in channel_runs(self.input) {
            let Some(line) = run.rows[row] else { continue };
            let mut column = (self.first + cols.start) / block;
            let mut sub = (self.first + cols.start) % block;
            for pixel in to.chunks_exact_mut(channels) {
                let line = &line[column * run.stride + run.first..][..run.channels];
                let sub_pixel = self.sub_rows[row] * block + sub;
                // channel c of the output is channel `start + c · step` of the input
                let (start, step) = if self.crd {
                    (sub_pixel, block * block)
                } else {
                    (sub_pixel * channels, 1)
                };
                let skip = run.to.saturating_sub(start).div_ceil(step);
                let from = (start + skip * step).saturating_sub(run.to);
                let pixel = pixel.get_mut(skip..).unwrap_or_default();
                let line = line.get(from..).unwrap_or_default();
                if step == 1 {
                    let n = pixel.len().min(line.len());
                    copy(&line[..n], &mut pixel[..n]);
                } else {
                    for (to, from) in pixel.iter_mut().zip(line.chunks(step)) {
                        *to = from[0];
                    }
                }
                sub += 1;
                if sub == block {
                    (sub, column) = (0, column + 1);
                }
            }
        }
    }
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
    let pixels = SpaceToDepth {
        block,
        input,
        first,
    };
    fill(isa, &pixels, 1, tail, out);
}

struct SpaceToDepth<'a> {
    block: usize,
    input: &'a Input<'a>,
    first: usize,
}

impl Pixels for SpaceToDepth<'_> {
    #[inline(always)]
    fn make<S: Simd>(&self, _: S, row: usize, cols: Range<usize>, to: &mut [f32]) {
        let block = self.block;
        let deep = to.len() / cols.len();
        let channels = deep / (block * block);
        for run in channel_runs(self.input) {
            for (k, line) in run.rows[row * block..][..block].iter().enumerate() {
                let Some(line) = line else { continue };
                for (x, pixel) in cols.clone().zip(to.chunks_exact_mut(deep)) {
                    let column = self.first + x * block;
                    let parts = pixel[k * block * channels..][..block * channels]
                        .chunks_exact_mut(channels)
                        .enumerate();
                    for (j, part) in parts {
                        let from = (column + j) * run.stride + run.first;
                        let to = &mut part[run.to..run.to + run.channels];
                        copy(&line[from..from + run.channels], to);
                    }
                }
            }
        }
    }
}
