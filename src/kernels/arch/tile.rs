//! The register tile: what convolutions spend their time in.

use std::ops::Range;

use super::Simd;
use super::parts::{Columns, Part};

/// Sums of `P` pixels × `V` vectors of channels, kept in registers.
///
/// Every sum is one chain of fused multiply-adds, in the order of the calls.
pub(crate) struct Tile<S: Simd, const P: usize, const V: usize> {
    s: S,
    sums: [[S::F32; V]; P],
}

impl<S: Simd, const P: usize, const V: usize> Tile<S, P, V> {
    /// Channels of the tile.
    pub(crate) const CHANNELS: usize = V * S::LANES;

    /// All pixels begin with the bias.
    #[inline(always)]
    pub(crate) fn new(s: S, bias: &[f32]) -> Self {
        let mut first = [s.splat(0.0); V];
        for (v, first) in first.iter_mut().enumerate() {
            *first = s.load(&bias[v * S::LANES..]);
        }
        Tile {
            s,
            sums: [first; P],
        }
    }

    /// Adds `Σ x[p · step + i] · weights[i · block + c]` over `i < n` to channel `c` of pixel `p`.
    #[inline(always)]
    pub(crate) fn add_even(
        &mut self,
        x: &[f32],
        step: usize,
        n: usize,
        weights: &[f32],
        block: usize,
    ) {
        assert!(n > 0 && block >= Self::CHANNELS);
        let x = &x[..(P - 1) * step + n];
        let weights = &weights[..(n - 1) * block + Self::CHANNELS];
        let mut pixels = [x.as_ptr(); P];
        for (p, pixel) in pixels.iter_mut().enumerate() {
            *pixel = x[p * step..].as_ptr();
        }
        // SAFETY: both slices were cut to what is read: `x` at `p · step + i` and the weights at
        // `i · block` and the tile's channels from there, for `p < P` and `i < n`.
        unsafe { self.add(pixels, n, weights.as_ptr(), block) }
    }

    /// Adds `Σ x[p][i] · weights[i · block + c]` over `i < n` to channel `c` of pixel `p`.
    #[inline(always)]
    pub(crate) fn add_each(&mut self, x: &[&[f32]; P], n: usize, weights: &[f32], block: usize) {
        assert!(n > 0 && block >= Self::CHANNELS);
        let weights = &weights[..(n - 1) * block + Self::CHANNELS];
        let mut pixels = [x[0].as_ptr(); P];
        for (p, pixel) in pixels.iter_mut().enumerate() {
            *pixel = x[p][..n].as_ptr();
        }
        // SAFETY: each pixel was cut to `n` elements, and the weights as in `add_even`.
        unsafe { self.add(pixels, n, weights.as_ptr(), block) }
    }

    /// The sums of all pixels over `i < n`.
    ///
    /// # Safety
    ///
    /// `n` elements of each pixel can be read, and `CHANNELS` weights at `i · block` for `i < n`.
    #[inline(always)]
    unsafe fn add(&mut self, pixels: [*const f32; P], n: usize, weights: *const f32, block: usize) {
        let s = self.s;
        for i in 0..n {
            let mut w = [s.splat(0.0); V];
            for (v, w) in w.iter_mut().enumerate() {
                // SAFETY: lanes of a vector of the tile's channels at `i · block`.
                let lanes = unsafe {
                    let at = weights.add(i * block + v * S::LANES);
                    std::slice::from_raw_parts(at, S::LANES)
                };
                *w = s.load(lanes);
            }
            for (sums, pixel) in self.sums.iter_mut().zip(&pixels) {
                // SAFETY: `i < n` elements of each pixel can be read.
                let x = s.splat(unsafe { *pixel.add(i) });
                for (sum, &w) in sums.iter_mut().zip(&w) {
                    *sum = s.fma(x, w, *sum);
                }
            }
        }
    }

    /// Writes the sums to `to`: of pixel `p`, channels `channels` at column `col + p · step`.
    #[inline(always)]
    pub(crate) fn store(
        self,
        to: &mut Part<'_>,
        row: usize,
        cols: Columns,
        channels: Range<usize>,
    ) {
        let n = channels.len();
        assert!(n <= Self::CHANNELS);
        let (to, step) = to.lattice(row, cols, P, channels);
        for p in 0..P {
            for v in 0..V {
                let lanes = n.saturating_sub(v * S::LANES).min(S::LANES);
                // SAFETY: `n` channels of each of `P` pixels, `step` apart, can be written.
                let to = unsafe {
                    std::slice::from_raw_parts_mut(to.add(p * step + v * S::LANES), lanes)
                };
                self.s.store_partial(self.sums[p][v], to);
            }
        }
    }
}
