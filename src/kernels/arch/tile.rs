//! Register tiles: what convolutions spend their time in.

use std::marker::PhantomData;
use std::ops::Range;

use super::Simd;
use super::parts::{Columns, Part};

/// `n` adjacent floats of each of `P` pixels.
pub(crate) struct Runs<'a, const P: usize> {
    at: [*const f32; P],
    n: usize,
    _floats: PhantomData<&'a [f32]>,
}

impl<'a, const P: usize> Runs<'a, P> {
    /// Pixels `step` apart.
    #[inline(always)]
    pub(crate) fn even(x: &'a [f32], step: usize, n: usize) -> Self {
        let x = &x[..(P - 1) * step + n];
        let mut at = [x.as_ptr(); P];
        for (p, at) in at.iter_mut().enumerate() {
            *at = x[p * step..].as_ptr();
        }
        Runs {
            at,
            n,
            _floats: PhantomData,
        }
    }

    /// Pixels anywhere.
    #[inline(always)]
    pub(crate) fn each(x: &[&'a [f32]; P], n: usize) -> Self {
        let mut at = [x[0].as_ptr(); P];
        for (x, at) in x.iter().zip(&mut at) {
            *at = x[..n].as_ptr();
        }
        Runs {
            at,
            n,
            _floats: PhantomData,
        }
    }

    /// Where the runs begin: [`Self::len`] floats of each can be read.
    #[inline(always)]
    pub(super) fn at(&self) -> [*const f32; P] {
        self.at
    }

    /// Floats of each run.
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.n
    }
}

/// Sums of `P` pixels × some output channels, kept in registers.
pub(crate) trait Sums<S: Simd, const P: usize> {
    /// Sums with this bias, over weights whose rows are `pitch` apart.
    fn new(s: S, bias: &[f32], pitch: usize) -> Self;

    /// Adds the products of the pixels' channels and a tap's weights from `channel` on.
    fn add(&mut self, x: &Runs<'_, P>, weights: &[f32], channel: usize);

    /// Writes the sums of the first `count` pixels to `channels` of `cols`.
    fn store(
        self,
        to: &mut Part<'_>,
        row: usize,
        cols: Columns,
        count: usize,
        channels: Range<usize>,
    );
}

impl<S: Simd, const P: usize, const V: usize> Tile<S, P, V> {
    /// Sums that begin with zero.
    #[inline(always)]
    pub(crate) fn zero(s: S, pitch: usize) -> Self {
        assert!(pitch >= V * S::LANES);
        Tile {
            s,
            pitch,
            sums: [[s.splat(0.0); V]; P],
        }
    }

    /// Writes all sums, a pixel's from `p · step` on.
    #[inline(always)]
    pub(crate) fn write(self, to: &mut [f32], step: usize) {
        let to = &mut to[..(P - 1) * step + V * S::LANES];
        for (p, sums) in self.sums.iter().enumerate() {
            for (v, &sum) in sums.iter().enumerate() {
                // SAFETY: the slice was cut to the last pixel's last vector.
                let to = unsafe {
                    let at = to.as_mut_ptr().add(p * step + v * S::LANES);
                    std::slice::from_raw_parts_mut(at, S::LANES)
                };
                self.s.store(sum, to);
            }
        }
    }
}

/// What lanes hold, and so the order of weights and of sums.
pub(crate) trait Layout {
    /// The sums of this layout.
    type Sums<S: Simd, const P: usize>: Sums<S, P>;
}

/// Lanes are output channels, `V` vectors of them. Weights are `[channel][lane]`. Every sum is one
/// chain of fused multiply-adds that begins with the bias.
pub(crate) struct Lanes<const V: usize>;

impl<const V: usize> Layout for Lanes<V> {
    type Sums<S: Simd, const P: usize> = Tile<S, P, V>;
}

/// The sums of [`Lanes`].
pub(crate) struct Tile<S: Simd, const P: usize, const V: usize> {
    s: S,
    pitch: usize,
    sums: [[S::F32; V]; P],
}

impl<S: Simd, const P: usize, const V: usize> Sums<S, P> for Tile<S, P, V> {
    #[inline(always)]
    fn new(s: S, bias: &[f32], pitch: usize) -> Self {
        assert!(pitch >= V * S::LANES);
        let mut first = [s.splat(0.0); V];
        for (v, first) in first.iter_mut().enumerate() {
            *first = s.load(&bias[v * S::LANES..]);
        }
        Tile {
            s,
            pitch,
            sums: [first; P],
        }
    }

    #[inline(always)]
    fn add(&mut self, x: &Runs<'_, P>, weights: &[f32], channel: usize) {
        let (s, n, pitch) = (self.s, x.n, self.pitch);
        if n == 0 {
            return;
        }
        let weights = &weights[channel * pitch..][..(n - 1) * pitch + V * S::LANES];
        for i in 0..n {
            let mut w = [s.splat(0.0); V];
            for (v, w) in w.iter_mut().enumerate() {
                // SAFETY: the slice was cut to `V` vectors of the last of `n` rows.
                let lanes = unsafe {
                    let at = weights.as_ptr().add(i * pitch + v * S::LANES);
                    std::slice::from_raw_parts(at, S::LANES)
                };
                *w = s.load(lanes);
            }
            for (sums, pixel) in self.sums.iter_mut().zip(&x.at) {
                // SAFETY: each run has `n` floats.
                let x = s.splat(unsafe { *pixel.add(i) });
                for (sum, &w) in sums.iter_mut().zip(&w) {
                    *sum = s.fma(x, w, *sum);
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
        let n = channels.len();
        assert!(n <= V * S::LANES && count <= P);
        let (to, step) = to.lattice(row, cols, count, channels);
        for (p, sums) in self.sums.iter().enumerate() {
            for (v, &sum) in sums.iter().enumerate() {
                let lanes = n.saturating_sub(v * S::LANES).min(S::LANES);
                if p < count {
                    // SAFETY: `n` channels of `count` pixels, `step` apart, can be written.
                    let to = unsafe {
                        let at = to.add(p * step + v * S::LANES);
                        std::slice::from_raw_parts_mut(at, lanes)
                    };
                    self.s.store_partial(sum, to);
                }
            }
        }
    }
}
