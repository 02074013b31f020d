//! Depthwise convolution: each channel has a kernel of its own.
//!
//! A register tile holds adjacent pixels × two vectors of channels. It begins with the bias and takes
//! the kernel's rows, then its columns. Taps outside the image are left out.

use std::ops::Range;

use super::arch::depth::{DepthTile, Spread};
use super::arch::parts::Part;
use super::arch::{Isa, Kernel, Simd};
use super::{Cols, Grid, Input, Out, Tail};
use crate::Result;

/// Floats that [`pack_depthwise`] writes for `channels` channels of `kh × kw` taps.
pub fn depthwise_len(channels: usize, kh: usize, kw: usize) -> usize {
    (kh * kw + 1) * channels
}

/// Packs weights `[channels, 1, kh, kw]` as `[ky][kx][channel]`, then the biases. `scale`
/// multiplies each channel's weights. `read` gives the floats from a place in the weights on.
///
/// # Panics
///
/// Where `out` is not [`depthwise_len`] long.
pub fn pack_depthwise(
    channels: usize,
    kh: usize,
    kw: usize,
    scale: Option<&[f32]>,
    bias: Option<&[f32]>,
    read: &mut dyn FnMut(u64, &mut [f32]) -> Result<()>,
    out: &mut [f32],
) -> Result<()> {
    assert_eq!(out.len(), depthwise_len(channels, kh, kw), "packed weights");
    let taps = kh * kw;
    let (weights, biases) = out.split_at_mut(taps * channels);
    let each = (1 << 14) / taps.max(1);
    let mut scratch = vec![0.0; each.max(1) * taps];
    for first in (0..channels).step_by(each.max(1)) {
        let n = each.max(1).min(channels - first);
        read((first * taps) as u64, &mut scratch[..n * taps])?;
        for (c, kernel) in (first..).zip(scratch[..n * taps].chunks_exact(taps)) {
            for (tap, weight) in kernel.iter().enumerate() {
                weights[tap * channels + c] = weight * scale.map_or(1.0, |scale| scale[c]);
            }
        }
    }
    match bias {
        Some(bias) => biases.copy_from_slice(bias),
        None => biases.fill(0.0),
    }
    Ok(())
}

/// Pixels of the largest tile: each needs a pointer, and there are 16 registers for those.
const TILE: usize = 8;

/// Makes all rows of `out`, of as many channels as the input has, with weights that
/// [`pack_depthwise`] packed. Row tap `ky` of the input meets kernel row `ky`, and column tap `kx`
/// kernel column `kx`.
///
/// # Panics
///
/// Where slices are shorter than the tables say.
#[expect(clippy::too_many_arguments, reason = "the operands of one operation")]
pub fn depthwise(
    isa: Isa,
    weights: &[f32],
    kh: usize,
    kw: usize,
    input: &Input<'_>,
    cols: &Cols,
    tail: &Tail<'_>,
    out: &mut Out<'_, '_>,
) {
    let channels = out.channels;
    assert_eq!(
        weights.len(),
        depthwise_len(channels, kh, kw),
        "packed weights"
    );
    assert_eq!((input.taps, cols.taps), (kh, kw), "taps");
    assert!(cols.dilation >= 0, "taps from right to left");
    let read: usize = input.segments.iter().map(|s| s.channels).sum();
    assert_eq!(read, channels, "input channels");
    let (rows, width) = (out.rows.len(), out.width());
    let grid = Grid::choose(
        [rows, width, 1],
        channels,
        TILE,
        rows * width * kh * kw * channels,
    );
    out.for_parts(grid, |part| {
        isa.run(Job {
            weights,
            input,
            cols,
            tail,
            part,
        });
    });
}

/// A part of the output.
struct Job<'a> {
    weights: &'a [f32],
    input: &'a Input<'a>,
    cols: &'a Cols,
    tail: &'a Tail<'a>,
    part: Part<'a>,
}

impl Kernel for Job<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        let cols = self.part.cols();
        let clamp = |x: usize| x.clamp(cols.start, cols.end);
        let regular = clamp(self.cols.regular.start)..clamp(self.cols.regular.end);
        for x in (cols.start..regular.start).chain(regular.end..cols.end) {
            for row in self.part.rows() {
                s.run(Edge {
                    job: &mut self,
                    row,
                    x,
                });
            }
            self.finish(s, x..x + 1);
        }
        let mut x = regular.start;
        while x < regular.end {
            let end = x + self.tile(s, x, regular.end - x);
            self.finish(s, x..end);
            x = end;
        }
    }
}

/// Channels that are made of all rows before the next: what the rows share stays in the first cache.
const CHUNK: usize = 128;

impl Job<'_> {
    /// Makes at most `most` regular columns from `first` on; gives how many.
    #[inline(always)]
    fn tile<S: Simd>(&mut self, s: S, first: usize, most: usize) -> usize {
        macro_rules! heights {
            ($($p:literal)+) => {$(
                if $p <= S::TILE && $p <= most {
                    s.run(Tile::<$p> { job: self, first });
                    return $p;
                }
            )+};
        }
        heights!(8 6 4 2 1);
        unreachable!("a tile of no pixels")
    }

    /// Applies the tail to some columns of all rows.
    #[inline(always)]
    fn finish<S: Simd>(&mut self, s: S, cols: Range<usize>) {
        for row in self.part.rows() {
            self.tail.apply_part(s, row, cols.clone(), &mut self.part);
        }
    }

    /// Channels of a pixel.
    fn channels(&self) -> usize {
        self.weights.len() / (self.input.taps * self.cols.taps + 1)
    }
}

/// `P` regular columns, of all rows, with all channels.
struct Tile<'a, 'b, const P: usize> {
    job: &'a mut Job<'b>,
    first: usize,
}

impl<const P: usize> Kernel for Tile<'_, '_, P> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Tile { job, first } = self;
        let (input, cols, channels) = (job.input, job.cols, job.channels());
        let (weights, biases) = job.weights.split_at(job.weights.len() - channels);
        let column = cols.first + (first - cols.regular.start) * cols.stride;
        let mut base = 0;
        for segment in input.segments {
            let spread = Spread {
                step: cols.stride * segment.stride,
                tap: cols.dilation.unsigned_abs() * segment.stride,
                taps: cols.taps,
            };
            let from = column * segment.stride + segment.first;
            for chunk in (0..segment.channels).step_by(CHUNK) {
                let end = segment.channels.min(chunk + CHUNK);
                for row in job.part.rows() {
                    let rows = &segment.rows[row * input.taps..][..input.taps];
                    let out = job.part.pixels(row, first..first + P);
                    let vectors = Vectors {
                        rows,
                        from,
                        spread,
                        weights,
                        biases,
                        base,
                        channels,
                    };
                    for c in (chunk..end).step_by(2 * S::LANES) {
                        if end - c >= 2 * S::LANES {
                            vectors.make::<S, P>(s, c, 2 * S::LANES, out);
                        } else {
                            vectors.make::<S, P>(s, c, end - c, out);
                        }
                    }
                }
            }
            base += segment.channels;
        }
    }
}

/// A segment's part of a row of a tile.
struct Vectors<'a> {
    rows: &'a [Option<&'a [f32]>],
    /// Where in a row the first pixel's first tap has the first channel.
    from: usize,
    spread: Spread,
    weights: &'a [f32],
    biases: &'a [f32],
    /// Channels of the segments before.
    base: usize,
    channels: usize,
}

impl Vectors<'_> {
    /// Makes channels `c..c + n` of the segment, at most two vectors.
    #[inline(always)]
    fn make<S: Simd, const P: usize>(&self, s: S, c: usize, n: usize, out: &mut [f32]) {
        let at = self.base + c;
        let mut tile = DepthTile::<S, P>::new(s, &self.biases[at..][..n]);
        for (ky, x) in self.rows.iter().enumerate() {
            if let Some(x) = x {
                let weights = &self.weights[ky * self.spread.taps * self.channels + at..];
                tile.add(&x[self.from + c..], self.spread, weights, self.channels);
            }
        }
        tile.store(&mut out[at..], self.channels);
    }
}

/// A pixel with taps outside the image or unevenly spaced.
struct Edge<'a, 'b> {
    job: &'a mut Job<'b>,
    row: usize,
    x: usize,
}

impl Kernel for Edge<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Edge { job, row, x } = self;
        let (input, cols, channels) = (job.input, job.cols, job.channels());
        let (weights, biases) = job.weights.split_at(job.weights.len() - channels);
        let out = job.part.pixels(row, x..x + 1);
        let mut base = 0;
        for segment in input.segments {
            for c in (0..segment.channels).step_by(S::LANES) {
                let n = S::LANES.min(segment.channels - c);
                let mut sum = s.load_partial(&biases[base + c..][..n]);
                for ky in 0..input.taps {
                    let Some(from) = segment.rows[row * input.taps + ky] else {
                        continue;
                    };
                    for kx in 0..cols.taps {
                        let Some(column) = cols.tap(x, kx) else {
                            continue;
                        };
                        let from = &from[column * segment.stride + segment.first + c..][..n];
                        let tap = (ky * cols.taps + kx) * channels;
                        let weights = &weights[tap + base + c..][..n];
                        sum = s.fma(s.load_partial(from), s.load_partial(weights), sum);
                    }
                }
                s.store_partial(sum, &mut out[base + c..][..n]);
            }
            base += segment.channels;
        }
    }
}
