//! The register tile of a convolution with few output channels.

use std::ops::Range;

use super::Simd;
use super::parts::{Columns, Part};
use super::tile::{Layout, Runs, Sums};

/// Lanes are input channels: channel `i` of a call goes to lane `i mod 16`, on every level. Weights
/// are `[output channel][channel]`. Every lane is one chain of fused multiply-adds; at the end lanes
/// 8 apart are added, then 4, 2 and 1 apart, then the bias.
pub(crate) struct Dots<const C: usize>;

impl<const C: usize> Layout for Dots<C> {
    type Sums<S: Simd, const P: usize> = DotTile<S, P, C>;
}

/// Lanes of a sum.
const LANES: usize = 16;

/// The sums of [`Dots`]: `P` pixels × `C` output channels, each of one vector or two.
pub(crate) struct DotTile<S: Simd, const P: usize, const C: usize> {
    s: S,
    pitch: usize,
    bias: [f32; C],
    sums: [[[S::F32; 2]; C]; P],
}

impl<S: Simd, const P: usize, const C: usize> DotTile<S, P, C> {
    /// Half `half` of `n ≤ 16` floats and zeros.
    ///
    /// # Safety
    ///
    /// `n` floats can be read.
    #[inline(always)]
    unsafe fn load(&self, from: *const f32, half: usize, n: usize) -> S::F32 {
        let first = n.min(half * S::LANES);
        let lanes = (n - first).min(S::LANES);
        // SAFETY: by the function's contract.
        let from = unsafe { std::slice::from_raw_parts(from.add(first), lanes) };
        self.s.load_partial(from)
    }

    /// Adds `n ≤ 16` channels of each pixel, with the weights of each output channel.
    ///
    /// # Safety
    ///
    /// `n` floats can be read from each pointer on.
    #[inline(always)]
    unsafe fn step(&mut self, x: [*const f32; P], weights: [*const f32; C], n: usize) {
        for half in 0..LANES / S::LANES {
            let mut w = [self.s.splat(0.0); C];
            for (w, from) in w.iter_mut().zip(weights) {
                // SAFETY: by the function's contract.
                *w = unsafe { self.load(from, half, n) };
            }
            for (p, from) in x.into_iter().enumerate() {
                // SAFETY: by the function's contract.
                let x = unsafe { self.load(from, half, n) };
                for (sum, &w) in self.sums[p].iter_mut().zip(&w) {
                    sum[half] = self.s.fma(x, w, sum[half]);
                }
            }
        }
    }
}

impl<S: Simd, const P: usize, const C: usize> Sums<S, P> for DotTile<S, P, C> {
    #[inline(always)]
    fn new(s: S, bias: &[f32], pitch: usize) -> Self {
        const { assert!(LANES == S::LANES || LANES == 2 * S::LANES) };
        let mut first = [0.0; C];
        first.copy_from_slice(&bias[..C]);
        DotTile {
            s,
            pitch,
            bias: first,
            sums: [[[s.splat(0.0); 2]; C]; P],
        }
    }

    #[inline(always)]
    fn add(&mut self, x: &Runs<'_, P>, weights: &[f32], channel: usize) {
        let (n, pitch) = (x.len(), self.pitch);
        let weights = &weights[channel..][..(C - 1) * pitch + n];
        let whole = n - n % LANES;
        for from in (0..n).step_by(LANES) {
            let (mut x, mut w) = (x.at(), [weights.as_ptr(); C]);
            // SAFETY: each run has `n` floats, and the weights were cut to `n` of the last output
            // channel.
            unsafe {
                for x in &mut x {
                    *x = x.add(from);
                }
                for (c, w) in w.iter_mut().enumerate() {
                    *w = w.add(c * pitch + from);
                }
                if from < whole {
                    self.step(x, w, LANES);
                } else {
                    self.step(x, w, n - whole);
                }
            }
        }
    }

    #[inline(always)]
    fn store(
        self,
        to: &mut Part<'_>,
        row: usize,
        cols: Columns,
        count: usize,
        channels: Range<usize>,
    ) {
        assert!(channels.len() == C && count <= P);
        let (to, step) = to.lattice(row, cols, count, channels);
        for (p, sums) in self.sums.iter().enumerate() {
            for (c, sum) in sums.iter().enumerate() {
                let mut lanes = [0.0; LANES];
                for half in 0..LANES / S::LANES {
                    self.s.store(sum[half], &mut lanes[half * S::LANES..]);
                }
                for width in [8, 4, 2, 1] {
                    let (low, high) = lanes.split_at_mut(width);
                    low.iter_mut().zip(high).for_each(|(a, b)| *a += *b);
                }
                if p < count {
                    // SAFETY: `C` channels of `count` pixels, `step` apart, can be written.
                    unsafe { *to.add(p * step + c) = lanes[0] + self.bias[c] };
                }
            }
        }
    }
}
