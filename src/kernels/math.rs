//! Functions over vectors: polynomials in fused multiply-adds, one source for every level.
//!
//! Errors against f64, in units of the last place, are tested: exp, log, erf, tanh and sigmoid stay
//! within 3.

use super::arch::Simd;

/// `e^x`: Cody–Waite reduction, a polynomial of degree 6, scaled in two steps so that results below the
/// normal range round once.
#[inline(always)]
pub(super) fn exp<S: Simd>(s: S, x: S::F32) -> S::F32 {
    let clamped = s.min(s.splat(89.0), s.max(s.splat(-104.0), x));
    let n = s.round(s.mul(clamped, s.splat(std::f32::consts::LOG2_E)));
    let r = s.fma(n, s.splat(-0.693_359_4), clamped);
    let r = s.fma(n, s.splat(2.121_944_4e-4), r);
    let mut p = s.splat(1.987_569_1e-4);
    for c in [
        1.398_199_9e-3,
        8.333_452e-3,
        4.166_579_6e-2,
        1.666_666_5e-1,
        0.5,
    ] {
        p = s.fma(p, r, s.splat(c));
    }
    let p = s.add(s.fma(p, s.mul(r, r), r), s.splat(1.0));
    let n = s.to_int(n);
    let half = s.int_sar(n, 1);
    let two_to = |k| s.of_bits(s.int_shl(s.int_add(k, s.int_splat(127)), 23));
    let y = s.mul(s.mul(p, two_to(half)), two_to(s.int_sub(n, half)));
    s.select(s.eq(x, x), y, x)
}

/// The natural logarithm: exponent and a mantissa near 1, a polynomial of degree 9 (Cephes).
#[inline(always)]
pub(super) fn log<S: Simd>(s: S, x: S::F32) -> S::F32 {
    let tiny = s.lt(x, s.splat(f32::MIN_POSITIVE));
    let scaled = s.select(tiny, s.mul(x, s.splat(8_388_608.0)), x);
    let bits = s.bits(scaled);
    // the mantissa in [√½, √2)
    let offset = s.int_sub(bits, s.int_splat(0x3f35_04f3));
    let e = s.int_sar(offset, 23);
    let m = s.of_bits(s.int_sub(bits, s.int_shl(e, 23)));
    let e = s.sub(s.of_int(e), s.select(tiny, s.splat(23.0), s.splat(0.0)));
    let f = s.sub(m, s.splat(1.0));
    let mut p = s.splat(7.037_683_6e-2);
    for c in [
        -1.151_461e-1,
        1.167_699_87e-1,
        -1.242_014_1e-1,
        1.424_932_3e-1,
        -1.666_805_7e-1,
        2.000_071_5e-1,
        -2.499_999_4e-1,
        3.333_333e-1,
    ] {
        p = s.fma(p, f, s.splat(c));
    }
    let z = s.mul(f, f);
    let mut y = s.mul(s.mul(p, f), z);
    y = s.fma(e, s.splat(-2.121_944_4e-4), y);
    y = s.fma(s.splat(-0.5), z, y);
    y = s.fma(e, s.splat(0.693_359_4), s.add(f, y));
    let y = s.select(s.eq(x, s.splat(f32::INFINITY)), x, y);
    let y = s.select(s.eq(x, s.splat(0.0)), s.splat(f32::NEG_INFINITY), y);
    let y = s.select(s.lt(x, s.splat(0.0)), s.splat(f32::NAN), y);
    s.select(s.eq(x, x), y, x)
}

/// `log(1 + x)` for `x ≥ 0`: the rounding of the sum is made up for (Kahan).
#[inline(always)]
fn log_1p<S: Simd>(s: S, x: S::F32) -> S::F32 {
    let one = s.splat(1.0);
    let u = s.add(one, x);
    let d = s.sub(u, one);
    let y = s.div(s.mul(log(s, u), x), s.select(s.eq(d, s.splat(0.0)), one, d));
    s.select(s.eq(d, s.splat(0.0)), x, y)
}

/// The logistic function.
#[inline(always)]
pub(super) fn sigmoid<S: Simd>(s: S, x: S::F32) -> S::F32 {
    let one = s.splat(1.0);
    s.div(one, s.add(one, exp(s, s.neg(x))))
}

/// The hyperbolic tangent: a polynomial near 0 (Cephes), by the exponential elsewhere.
#[inline(always)]
pub(super) fn tanh<S: Simd>(s: S, x: S::F32) -> S::F32 {
    let (one, two, a) = (s.splat(1.0), s.splat(2.0), s.abs(x));
    let z = s.mul(x, x);
    let mut p = s.splat(-5.704_988_7e-3);
    for c in [
        2.063_908_8e-2,
        -5.373_971_5e-2,
        1.333_144_2e-1,
        -3.333_328e-1,
    ] {
        p = s.fma(p, z, s.splat(c));
    }
    let near = s.fma(s.mul(p, z), x, x);
    let far = s.sub(one, s.div(two, s.add(exp(s, s.mul(two, a)), one)));
    let far = s.select(s.lt(x, s.splat(0.0)), s.neg(far), far);
    let y = s.select(s.lt(a, s.splat(0.625)), near, far);
    s.select(s.eq(x, x), y, x)
}

/// The error function: minimax polynomials on two ranges.
#[inline(always)]
pub(super) fn erf<S: Simd>(s: S, x: S::F32) -> S::F32 {
    let t = s.abs(x);
    let z = s.mul(x, x);
    let r = s.fma(s.splat(-1.728_534_7e-5), t, s.splat(3.831_971_3e-4));
    let u = s.fma(s.splat(-3.883_964_4e-3), t, s.splat(2.425_462_2e-2));
    let mut far = s.fma(r, z, u);
    for c in [-1.067_778_8e-1, -6.348_467e-1, -1.287_175_1e-1] {
        far = s.fma(far, t, s.splat(c));
    }
    let far = s.fma(far, t, s.neg(t));
    // beyond 4 the result is 1, and the polynomial no longer holds
    let far = s.select(
        s.lt(t, s.splat(4.0)),
        s.sub(s.splat(1.0), exp(s, far)),
        s.splat(1.0),
    );
    let far = s.select(s.lt(x, s.splat(0.0)), s.neg(far), far);
    let mut near = s.splat(-5.967_617e-4);
    for c in [
        4.991_194_2e-3,
        -2.676_813_5e-2,
        1.128_199_3e-1,
        -3.761_253_4e-1,
        1.283_791_7e-1,
    ] {
        near = s.fma(near, z, s.splat(c));
    }
    let near = s.fma(near, x, x);
    let y = s.select(s.lt(s.splat(0.927_734_4), t), far, near);
    s.select(s.eq(x, x), y, x)
}

/// `log(1 + e^x)`.
#[inline(always)]
pub(super) fn softplus<S: Simd>(s: S, x: S::F32) -> S::F32 {
    let rest = log_1p(s, exp(s, s.neg(s.abs(x))));
    s.add(s.max(s.splat(0.0), x), rest)
}

/// `x · tanh(softplus(x))`, by `(e² + 2e) / (e² + 2e + 2)` with `e = e^x`.
#[inline(always)]
pub(super) fn mish<S: Simd>(s: S, x: S::F32) -> S::F32 {
    let e = exp(s, s.min(s.splat(30.0), x));
    let n = s.mul(e, s.add(e, s.splat(2.0)));
    s.mul(x, s.div(n, s.add(n, s.splat(2.0))))
}

/// `f` of each lane, in f64: for functions that are rare, and hard to do well in f32.
#[inline(always)]
pub(super) fn lanes<S: Simd>(s: S, x: S::F32, y: S::F32, f: impl Fn(f64, f64) -> f64) -> S::F32 {
    let (mut a, mut b) = ([0.0; 16], [0.0; 16]);
    s.store(x, &mut a[..S::LANES]);
    s.store(y, &mut b[..S::LANES]);
    for (a, b) in a.iter_mut().zip(b) {
        *a = f(f64::from(*a), f64::from(b)) as f32;
    }
    s.load(&a[..S::LANES])
}
