//! Depthwise convolution: each channel has a kernel of its own.
//!
//! A register tile holds adjacent pixels × one vector of channels. It begins with the bias and takes
//! the kernel's rows, then its columns. Taps outside the image are left out.

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

/// Pixels of the largest tile.
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
        let tiles = cols.len().div_ceil(TILE);
        for row in self.part.rows() {
            for tile in 0..tiles {
                let first = cols.start + tile * cols.len() / tiles;
                let last = cols.start + (tile + 1) * cols.len() / tiles;
                self.tile(s, row, first, last - first);
            }
            self.tail.apply_part(s, row, cols.clone(), &mut self.part);
        }
    }
}

impl Job<'_> {
    #[inline(always)]
    fn tile<S: Simd>(&mut self, s: S, row: usize, first: usize, pixels: usize) {
        macro_rules! tiles {
            ($($n:literal)+) => {
                match pixels {
                    $($n => s.run(Tile::<$n> { job: self, row, first }),)+
                    _ => unreachable!("a tile of {pixels} pixels"),
                }
            };
        }
        tiles!(1 2 3 4 5 6 7 8);
    }
}

/// A tile of `P` pixels, with all channels.
struct Tile<'a, 'b, const P: usize> {
    job: &'a mut Job<'b>,
    row: usize,
    first: usize,
}

impl<const P: usize> Kernel for Tile<'_, '_, P> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Tile { job, row, first } = self;
        let (input, cols) = (job.input, job.cols);
        let channels = job.weights.len() / (input.taps * cols.taps + 1);
        let (weights, biases) = job.weights.split_at(job.weights.len() - channels);
        let out = job.part.pixels(row, first..first + P);
        let mut base = 0;
        for segment in input.segments {
            for c in (0..segment.channels).step_by(S::LANES) {
                let n = S::LANES.min(segment.channels - c);
                let mut sums = [s.load_partial(&biases[base + c..][..n]); P];
                for ky in 0..input.taps {
                    let Some(x) = segment.rows[row * input.taps + ky] else {
                        continue;
                    };
                    for kx in 0..cols.taps {
                        let tap = (ky * cols.taps + kx) * channels;
                        let w = s.load_partial(&weights[tap + base + c..][..n]);
                        for (p, sum) in sums.iter_mut().enumerate() {
                            if let Some(column) = cols.tap(first + p, kx) {
                                let at = column * segment.stride + segment.first + c;
                                *sum = s.fma(s.load_partial(&x[at..][..n]), w, *sum);
                            }
                        }
                    }
                }
                for (p, sum) in sums.iter().enumerate() {
                    s.store_partial(*sum, &mut out[p * channels + base + c..][..n]);
                }
            }
            base += segment.channels;
        }
    }
}
