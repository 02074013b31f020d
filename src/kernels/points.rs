//! Winograd's minimal filtering along one axis, `F(m, 3)`: `m` outputs of a kernel of 3 taps with
//! `m + 2` multiplications, by evaluating polynomials at points and interpolating (Winograd 1980;
//! Lavin and Gray, "Fast algorithms for convolutional neural networks", 2015).
//!
//! ```text
//!  outputs = Aᵀ [ (G · taps) ⊙ (Bᵀ · inputs) ]      applied down the rows, then along the columns
//! ```
//!
//! The points are 0, pairs ±p, and infinity. With `q(x²)` the product of all `x² − p²`:
//!
//! - `Bᵀ` has the coefficients of `q` (point 0), of `x · q` (infinity), and for ±p of
//!   `(x² ± p·x) · q / (x² − p²)`, whose even and odd parts serve both signs;
//! - `G` evaluates at the point and divides by its differences from the others;
//! - `Aᵀ` has the powers of the points.
//!
//! The points decide the rounding error.

use super::arch::Simd;

/// Points, by which `M` outputs are made of `T = M + 2` products.
pub(crate) trait Points<const M: usize, const T: usize>: Copy + Send + Sync {
    /// The positive point of each pair; the first `M / 2` count.
    const PAIRS: [f32; 3];

    /// `Bᵀ · inputs`.
    #[inline(always)]
    fn input<S: Simd>(s: S, d: [S::F32; T]) -> [S::F32; T] {
        let pairs = &Self::PAIRS[..M / 2];
        let sum = |q: [f32; 4], n: usize, first: usize| {
            let mut sum = d[first + 2 * n];
            for k in (0..n).rev() {
                sum = s.fma(d[first + 2 * k], s.splat(q[k]), sum);
            }
            sum
        };
        let all = product(pairs, usize::MAX);
        let mut v = d;
        v[0] = sum(all, M / 2, 0);
        v[T - 1] = sum(all, M / 2, 1);
        for (k, &p) in pairs.iter().enumerate() {
            let others = product(pairs, k);
            let (even, odd) = (sum(others, M / 2 - 1, 2), sum(others, M / 2 - 1, 1));
            v[1 + 2 * k] = s.fma(odd, s.splat(p), even);
            v[2 + 2 * k] = s.fma(odd, s.splat(-p), even);
        }
        v
    }

    /// `G · taps`.
    #[inline(always)]
    fn taps<S: Simd>(s: S, [g0, g1, g2]: [S::F32; 3]) -> [S::F32; T] {
        let pairs = &Self::PAIRS[..M / 2];
        let mut u = [g2; T];
        u[0] = s.mul(g0, s.splat(1.0 / product(pairs, usize::MAX)[0]));
        for (k, &p) in pairs.iter().enumerate() {
            let others = product(pairs, k);
            let mut differences = 0.0;
            for q in others[..M / 2].iter().rev() {
                differences = differences * p * p + q;
            }
            let even = s.fma(g2, s.splat(p * p), g0);
            let scale = s.splat(1.0 / (2.0 * p * p * differences));
            u[1 + 2 * k] = s.mul(s.fma(g1, s.splat(p), even), scale);
            u[2 + 2 * k] = s.mul(s.fma(g1, s.splat(-p), even), scale);
        }
        u
    }

    /// `Aᵀ · products`.
    #[inline(always)]
    fn output<S: Simd>(s: S, m: [S::F32; T]) -> [S::F32; M] {
        let pairs = &Self::PAIRS[..M / 2];
        let mut out = [m[0]; M];
        let mut sums = [[m[0]; 2]; 3];
        for (k, sums) in sums[..M / 2].iter_mut().enumerate() {
            let (plus, minus) = (m[1 + 2 * k], m[2 + 2 * k]);
            *sums = [s.add(plus, minus), s.sub(plus, minus)];
        }
        let mut powers = [1.0f32; 3];
        for (i, out) in out.iter_mut().enumerate() {
            let mut sum = s.mul(sums[0][i % 2], s.splat(powers[0]));
            for k in 1..M / 2 {
                sum = s.fma(sums[k][i % 2], s.splat(powers[k]), sum);
            }
            if i == 0 {
                sum = s.add(sum, m[0]);
            }
            if i == M - 1 {
                sum = s.add(sum, m[T - 1]);
            }
            *out = sum;
            for (power, p) in powers.iter_mut().zip(pairs) {
                *power *= p;
            }
        }
        out
    }
}

/// The coefficients in `x²` of the product of `x² − p²` over all pairs but one, lowest first.
#[inline(always)]
fn product(pairs: &[f32], but: usize) -> [f32; 4] {
    let mut q = [1.0, 0.0, 0.0, 0.0];
    for (k, &p) in pairs.iter().enumerate() {
        if k != but {
            for i in (0..4).rev() {
                q[i] = if i > 0 { q[i - 1] } else { 0.0 } - p * p * q[i];
            }
        }
    }
    q
}

/// `F(4, 3)`: less than twice the rounding error of direct sums.
#[derive(Debug, Clone, Copy)]
pub(crate) struct F4;

impl Points<4, 6> for F4 {
    const PAIRS: [f32; 3] = [0.75, 1.5, 0.0];
}

/// `F(6, 3)`: fewer products, and about eight times the rounding error of direct sums.
#[derive(Debug, Clone, Copy)]
pub(crate) struct F6;

impl Points<6, 8> for F6 {
    const PAIRS: [f32; 3] = [1.0, 2.0, 0.5];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::arch::{Isa, Kernel};

    /// One output against its sum, on numbers that leave nothing to rounding but a few bits.
    struct Filter;

    impl Kernel for Filter {
        type Output = ();

        fn run<S: Simd>(self, s: S) {
            check::<S, F4, 4, 6>(s);
            check::<S, F6, 6, 8>(s);
        }
    }

    fn check<S: Simd, P: Points<M, T>, const M: usize, const T: usize>(s: S) {
        for case in 0..50 {
            let number = |k: usize| ((case * 31 + k * 17) % 23) as f32 - 11.0;
            let mut d = [s.splat(0.0); T];
            for (k, d) in d.iter_mut().enumerate() {
                *d = s.splat(number(k));
            }
            let taps = [number(30), number(31), number(32)];
            let (v, u) = (P::input(s, d), P::taps(s, taps.map(|g| s.splat(g))));
            let mut m = v;
            for (m, u) in m.iter_mut().zip(u) {
                *m = s.mul(*m, u);
            }
            for (i, out) in P::output(s, m).into_iter().enumerate() {
                let mut got = [0.0; 16];
                s.store(out, &mut got);
                let sum: f32 = (0..3).map(|k| number(i + k) * taps[k]).sum();
                assert!((got[0] - sum).abs() < 2e-3, "{i}: {} is not {sum}", got[0]);
            }
        }
    }

    #[test]
    fn products_at_points_are_a_filter() {
        for isa in Isa::ALL.into_iter().filter(|isa| isa.available()) {
            isa.run(Filter);
        }
    }
}
