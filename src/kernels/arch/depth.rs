//! The register tile of a depthwise convolution.

use super::Simd;

/// Vectors of channels.
const V: usize = 2;

/// Sums of `P` pixels × `V` vectors of channels, kept in registers.
pub(crate) struct DepthTile<S: Simd, const P: usize> {
    s: S,
    /// Channels, at most `V` vectors of them.
    lanes: usize,
    sums: [[S::F32; V]; P],
}

/// Elements of a row: pixels `step` apart, of each taps `tap` apart.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) step: usize,
    pub(crate) tap: usize,
    pub(crate) taps: usize,
}

impl<S: Simd, const P: usize> DepthTile<S, P> {
    /// All pixels begin with the bias, which has as many channels as the tile.
    #[inline(always)]
    pub(crate) fn new(s: S, bias: &[f32]) -> Self {
        let lanes = bias.len();
        assert!(lanes <= V * S::LANES);
        let mut first = [s.splat(0.0); V];
        for (v, first) in first.iter_mut().enumerate() {
            *first = s.load_partial(&bias[lanes.min(v * S::LANES)..]);
        }
        DepthTile {
            s,
            lanes,
            sums: [first; P],
        }
    }

    /// Adds `x[p · step + k · tap + c] · weights[k · channels + c]` to channel `c` of pixel `p`, for
    /// each tap `k`.
    #[inline(always)]
    pub(crate) fn add(&mut self, x: &[f32], at: Spread, weights: &[f32], channels: usize) {
        let Spread { step, tap, taps } = at;
        assert!(taps > 0);
        let x = &x[..(P - 1) * step + (taps - 1) * tap + self.lanes];
        let weights = &weights[..(taps - 1) * channels + self.lanes];
        for k in 0..taps {
            // SAFETY: both slices were cut to what is read.
            unsafe {
                let w = self.load(weights.as_ptr().add(k * channels));
                let x = x.as_ptr().add(k * tap);
                for p in 0..P {
                    let x = self.load(x.add(p * step));
                    for v in 0..V {
                        self.sums[p][v] = self.s.fma(x[v], w[v], self.sums[p][v]);
                    }
                }
            }
        }
    }

    /// # Safety
    ///
    /// `lanes` elements can be read.
    #[inline(always)]
    unsafe fn load(&self, from: *const f32) -> [S::F32; V] {
        let mut vectors = [self.s.splat(0.0); V];
        for (v, vector) in vectors.iter_mut().enumerate() {
            let first = self.lanes.min(v * S::LANES);
            let lanes = (self.lanes - first).min(S::LANES);
            // SAFETY: by the function's contract.
            let from = unsafe { std::slice::from_raw_parts(from.add(first), lanes) };
            *vector = self.s.load_partial(from);
        }
        vectors
    }

    /// Writes pixel `p` to `to[p · step..]`.
    #[inline(always)]
    pub(crate) fn store(&self, to: &mut [f32], step: usize) {
        let to = &mut to[..(P - 1) * step + self.lanes];
        for p in 0..P {
            for v in 0..V {
                let first = self.lanes.min(v * S::LANES);
                let lanes = (self.lanes - first).min(S::LANES);
                // SAFETY: the slice was cut to what is written.
                let to = unsafe {
                    let to = to.as_mut_ptr().add(p * step + first);
                    std::slice::from_raw_parts_mut(to, lanes)
                };
                self.s.store_partial(self.sums[p][v], to);
            }
        }
    }
}
