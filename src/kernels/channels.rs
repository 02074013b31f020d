//! Functions over the channels of each pixel: softmax and local response normalisation.

use super::arch::parts::Part;
use super::arch::{Isa, Kernel, Simd};
use super::{Grid, Input, Out, Tail, channel_runs, math};

/// Softmax over each pixel's channels (`log`: its logarithm): relative to the maximum, summed by
/// ascending channel.
pub fn softmax(isa: Isa, log: bool, input: &Input<'_>, tail: &Tail<'_>, out: &mut Out<'_, '_>) {
    let (rows, width, channels) = (out.rows.len(), out.width(), out.channels);
    let grid = Grid::choose([rows, width, 1], channels, 1, rows * width * channels * 8);
    out.for_parts(grid, |part| {
        isa.run(Softmax {
            log,
            input,
            tail,
            part,
        })
    });
}

struct Softmax<'a> {
    log: bool,
    input: &'a Input<'a>,
    tail: &'a Tail<'a>,
    part: Part<'a>,
}

impl Kernel for Softmax<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        for row in self.part.rows() {
            let cols = self.part.cols();
            for x in cols.clone() {
                let pixel = self.part.pixels(row, x..x + 1);
                copy(self.input, row, x, pixel);
                softmax_of(s, self.log, pixel);
            }
            self.tail
                .apply(s, row, cols.clone(), self.part.pixels(row, cols));
        }
    }
}

/// Copies the operand's channels of a pixel.
#[inline(always)]
fn copy(input: &Input<'_>, row: usize, x: usize, pixel: &mut [f32]) {
    for run in channel_runs(input) {
        if let Some(line) = run.rows[row] {
            let from = x * run.stride + run.first;
            pixel[run.to..run.to + run.channels].copy_from_slice(&line[from..from + run.channels]);
        }
    }
}

#[inline(always)]
fn softmax_of<S: Simd>(s: S, log: bool, pixel: &mut [f32]) {
    let most = pixel.iter().fold(
        f32::NEG_INFINITY,
        |m, &v| if v > m || v.is_nan() { v } else { m },
    );
    let mut sum = 0.0;
    for part in pixel.chunks_mut(S::LANES) {
        let shifted = s.sub(s.load_partial(part), s.splat(most));
        let mut powers = [0.0; 16];
        s.store(math::exp(s, shifted), &mut powers[..S::LANES]);
        let powers = &powers[..part.len()];
        sum = powers.iter().fold(sum, |a, b| a + b);
        if log {
            s.store_partial(shifted, part);
        } else {
            part.copy_from_slice(powers);
        }
    }
    let mut whole = [0.0; 16];
    s.store(math::log(s, s.splat(sum)), &mut whole[..S::LANES]);
    for part in pixel.chunks_mut(S::LANES) {
        let v = s.load_partial(part);
        let v = if log {
            s.sub(v, s.splat(whole[0]))
        } else {
            s.div(v, s.splat(sum))
        };
        s.store_partial(v, part);
    }
}

/// Local response normalisation: `x / (bias + alpha / size · Σ x²)^beta` over `size` channels around
/// each, in f64.
#[expect(clippy::too_many_arguments, reason = "what the op has")]
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
    let element = |row: usize, x: usize, c: usize| {
        channel_runs(input)
            .find(|run| (run.to..run.to + run.channels).contains(&c))
            .map_or(0.0, |run| {
                run.rows[row].map_or(0.0, |line| {
                    f64::from(line[x * run.stride + run.first + c - run.to])
                })
            })
    };
    super::shuffle::shuffle(isa, tail, out, |row, x, pixel| {
        let channels = pixel.len();
        for (c, v) in pixel.iter_mut().enumerate() {
            let window = c.saturating_sub((size - 1) / 2)..(c + size / 2 + 1).min(channels);
            let squares: f64 = window.map(|k| element(row, x, k).powi(2)).sum();
            let norm = f64::from(bias) + f64::from(alpha) / size as f64 * squares;
            *v = (element(row, x, c) / norm.powf(f64::from(beta))) as f32;
        }
    });
}
