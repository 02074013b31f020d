//! Functions over the channels of each pixel: softmax and local response normalisation.

use std::ops::Range;

use super::arch::{Isa, Simd};
use super::operand::{CHUNK, Span, gather};
use super::pixels::{Pixels, fill};
use super::{Extra, Input, Out, Tail, math};

/// Softmax over each pixel's channels (`log`: its logarithm): relative to the maximum, summed by
/// ascending channel.
pub fn softmax(isa: Isa, log: bool, input: &Input<'_>, tail: &Tail<'_>, out: &mut Out<'_, '_>) {
    let input = whole(input);
    fill(isa, &Softmax { log, input }, 8, tail, out);
}

/// `input` as a row operand that has the output's columns.
fn whole<'a>(input: &Input<'a>) -> Extra<'a> {
    Extra {
        input: *input,
        width: usize::MAX,
    }
}

/// Channels `channel..channel + channels` of a pixel.
#[inline(always)]
fn span(row: usize, column: usize, channels: Range<usize>, total: usize) -> Span {
    Span {
        row,
        column,
        pixels: 1,
        channel: channels.start,
        channels: channels.len(),
        total,
    }
}

struct Softmax<'a> {
    log: bool,
    input: Extra<'a>,
}

impl Pixels for Softmax<'_> {
    #[inline(always)]
    fn make<S: Simd>(&self, s: S, row: usize, cols: Range<usize>, to: &mut [f32]) {
        let channels = to.len() / cols.len();
        for (x, pixel) in cols.zip(to.chunks_exact_mut(channels)) {
            gather(&self.input, &span(row, x, 0..channels, channels), pixel);
            normalise(s, self.log, pixel);
        }
    }
}

/// The softmax of `pixel`, in its place.
#[inline(always)]
fn normalise<S: Simd>(s: S, log: bool, pixel: &mut [f32]) {
    let larger = |a: f32, b: f32| if b > a || b.is_nan() { b } else { a };
    let most = pixel
        .iter()
        .fold(f32::NEG_INFINITY, |most, &v| larger(most, v));
    let mut sum = 0.0;
    for part in pixel.chunks_mut(S::LANES) {
        let shifted = s.sub(s.load_partial(part), s.splat(most));
        let mut powers = [0.0; 16];
        s.store(math::exp(s, shifted), &mut powers[..S::LANES]);
        let powers = &powers[..part.len()];
        for power in powers {
            sum += power;
        }
        if log {
            s.store_partial(shifted, part);
        } else {
            part.copy_from_slice(powers);
        }
    }
    let sum = s.splat(sum);
    let log_sum = if log { math::log(s, sum) } else { sum };
    for part in pixel.chunks_mut(S::LANES) {
        let v = s.load_partial(part);
        let v = if log {
            s.sub(v, log_sum)
        } else {
            s.div(v, sum)
        };
        s.store_partial(v, part);
    }
}

/// Local response normalisation: `x / (bias + alpha / size · Σ x²)^beta`, summed over the `size`
/// channels around each by ascending channel.
#[expect(clippy::too_many_arguments, reason = "the operands of one operation")]
pub fn lrn(
    isa: Isa,
    size: usize,
    alpha: f32,
    beta: f32,
    bias: f32,
    input: &Input<'_>,
    tail: &Tail<'_>,
    out: &mut Out<'_, '_>,
) {
    let pixels = Lrn {
        size,
        scale: alpha / size as f32,
        beta,
        bias,
        input: whole(input),
    };
    fill(isa, &pixels, size + 16, tail, out);
}

struct Lrn<'a> {
    size: usize,
    scale: f32,
    beta: f32,
    bias: f32,
    input: Extra<'a>,
}

impl Pixels for Lrn<'_> {
    #[inline(always)]
    fn make<S: Simd>(&self, s: S, row: usize, cols: Range<usize>, to: &mut [f32]) {
        let total = to.len() / cols.len();
        let before = (self.size - 1) / 2;
        let mut room = [0.0; CHUNK];
        for (x, pixel) in cols.zip(to.chunks_exact_mut(total)) {
            for (i, part) in pixel.chunks_mut(CHUNK).enumerate() {
                let first = i * CHUNK;
                let sums = &mut room[..part.len()];
                sums.fill(0.0);
                for k in 0..self.size {
                    // the elements `k − before` channels further, as far as there are such
                    let start = (first + k).max(before) - before;
                    let end = (first + part.len() + k).saturating_sub(before).min(total);
                    if start < end {
                        let near = &mut part[..end - start];
                        gather(&self.input, &span(row, x, start..end, total), near);
                        let skip = before.saturating_sub(first + k);
                        add_squares(s, near, &mut sums[skip..]);
                    }
                }
                let here = span(row, x, first..first + part.len(), total);
                gather(&self.input, &here, part);
                for (x, sum) in part.chunks_mut(S::LANES).zip(sums.chunks(S::LANES)) {
                    let sum = s.load_partial(sum);
                    let norm = s.fma(sum, s.splat(self.scale), s.splat(self.bias));
                    let y = s.div(s.load_partial(x), math::pow(s, norm, s.splat(self.beta)));
                    s.store_partial(y, x);
                }
            }
        }
    }
}

/// Adds the square of each of `x` to the sum in its place.
#[inline(always)]
fn add_squares<S: Simd>(s: S, x: &[f32], sums: &mut [f32]) {
    for (x, sum) in x.chunks(S::LANES).zip(sums.chunks_mut(S::LANES)) {
        let (v, sum_here) = (s.load_partial(x), s.load_partial(sum));
        let n = x.len();
        s.store_partial(s.fma(v, v, sum_here), &mut sum[..n]);
    }
}
