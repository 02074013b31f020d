//! Functions over vectors: polynomials in fused multiply-adds, one source for every level.
//!
//! Largest errors against f64 over four million f32 of every size, in units of the last place: exp and
//! erf 1.0, log 0.8, pow 1.0, sine and cosine 1.5, sigmoid 2.3, tanh 2.5, softplus 2.6, mish 3.7, where
//! the result is not below the normal range; the tests hold them. At infinities, NaN and zeros they
//! give what C does.

use super::arch::Simd;

/// `e^(x + lo)` as `(1 + p) · 2^n`, `lo` much smaller than `x`: Cody–Waite reduction by multiples of
/// ln 2, and a polynomial for the rest. Arguments beyond the range of results are brought to its ends.
#[inline(always)]
fn exp_parts<S: Simd>(s: S, x: S::F32, lo: S::F32) -> (S::F32, S::I32) {
    let x = s.min(s.splat(89.0), s.max(s.splat(-104.0), x));
    let n = s.round(s.mul(x, s.splat(std::f32::consts::LOG2_E)));
    // the first step is exact
    let r = s.fma(n, s.splat(-std::f32::consts::LN_2), x);
    let r = s.add(s.fma(n, s.splat(1.904_654_3e-9), r), lo);
    let q = polynomial(s, r, &EXP);
    (s.fma(s.mul(r, r), q, r), s.to_int(n))
}

/// `(e^r − 1 − r) / r²` for `|r| ≤ ln 2 / 2`, highest power first.
const EXP: [f32; 6] = [
    1.987_569_1e-4,
    1.398_199_9e-3,
    8.333_452e-3,
    4.166_579_6e-2,
    1.666_666_5e-1,
    0.5,
];

/// The polynomial with these coefficients, highest power first.
#[inline(always)]
fn polynomial<S: Simd, const N: usize>(s: S, x: S::F32, coefficients: &[f32; N]) -> S::F32 {
    let mut p = s.splat(coefficients[0]);
    for &c in &coefficients[1..] {
        p = s.fma(p, x, s.splat(c));
    }
    p
}

/// `2^n` for `n` in −126..=127.
#[inline(always)]
fn two_to<S: Simd>(s: S, n: S::I32) -> S::F32 {
    s.of_bits(s.int_shl(s.int_add(n, s.int_splat(127)), 23))
}

/// `y` with the sign of `x`, where `y` has that already or none.
#[inline(always)]
fn with_sign<S: Simd>(s: S, y: S::F32, x: S::F32) -> S::F32 {
    let sign = s.int_and(s.bits(x), s.int_splat(i32::MIN));
    s.of_bits(s.int_or(s.bits(y), sign))
}

/// `y`, or `x` where that is NaN.
#[inline(always)]
fn or_nan<S: Simd>(s: S, y: S::F32, x: S::F32) -> S::F32 {
    s.select(s.eq(x, x), y, x)
}

/// `e^(x + lo)`, scaled in two steps so that results below the normal range round once.
#[inline(always)]
fn exp_sum<S: Simd>(s: S, x: S::F32, lo: S::F32) -> S::F32 {
    let (p, n) = exp_parts(s, x, lo);
    let half = s.int_sar(n, 1);
    let y = s.mul(s.add(p, s.splat(1.0)), two_to(s, half));
    s.mul(y, two_to(s, s.int_sub(n, half)))
}

/// `e^x`.
#[inline(always)]
pub(super) fn exp<S: Simd>(s: S, x: S::F32) -> S::F32 {
    or_nan(s, exp_sum(s, x, s.splat(0.0)), x)
}

/// `e^x − 1` for `x ≤ 0`.
#[inline(always)]
pub(super) fn exp_m1<S: Simd>(s: S, x: S::F32) -> S::F32 {
    // below −87 the result is −1 to the last bit
    let (p, n) = exp_parts(s, s.max(s.splat(-87.0), x), s.splat(0.0));
    let scale = two_to(s, n);
    // x itself where it is so small that its square vanishes, −0 included
    let y = s.fma(scale, p, s.sub(scale, s.splat(1.0)));
    let y = s.select(s.eq(p, x), x, y);
    or_nan(s, y, x)
}

/// `(m, e)` with `x = m · 2^e` and `m` in `[√½, √2)`, for finite `x > 0`.
#[inline(always)]
fn split<S: Simd>(s: S, x: S::F32) -> (S::F32, S::F32) {
    let tiny = s.lt(x, s.splat(f32::MIN_POSITIVE));
    let bits = s.bits(s.select(tiny, s.mul(x, s.splat(8_388_608.0)), x));
    let e = s.int_sar(s.int_sub(bits, s.int_splat(0x3f35_04f3)), 23);
    let m = s.of_bits(s.int_sub(bits, s.int_shl(e, 23)));
    let shift = s.select(tiny, s.splat(23.0), s.splat(0.0));
    (m, s.sub(s.of_int(e), shift))
}

/// The natural logarithm: exponent and a mantissa near 1, a polynomial (Cephes).
#[inline(always)]
pub(super) fn log<S: Simd>(s: S, x: S::F32) -> S::F32 {
    let (m, e) = split(s, x);
    let f = s.sub(m, s.splat(1.0));
    let z = s.mul(f, f);
    let mut y = s.mul(s.mul(polynomial(s, f, &LOG), f), z);
    y = s.fma(e, s.splat(-1.904_654_3e-9), y);
    y = s.fma(s.splat(-0.5), z, y);
    y = s.fma(e, s.splat(std::f32::consts::LN_2), s.add(f, y));
    let y = s.select(s.lt(x, s.splat(f32::INFINITY)), y, x);
    let y = s.select(s.eq(x, s.splat(0.0)), s.splat(f32::NEG_INFINITY), y);
    s.select(s.lt(x, s.splat(0.0)), s.splat(f32::NAN), y)
}

/// `(log(1 + f) − f + f² / 2) / f³`, highest power first.
const LOG: [f32; 9] = [
    7.037_683_6e-2,
    -1.151_461e-1,
    1.167_699_87e-1,
    -1.242_014_1e-1,
    1.424_932_3e-1,
    -1.666_805_7e-1,
    2.000_071_5e-1,
    -2.499_999_4e-1,
    3.333_333e-1,
];

/// `log(1 + x)` for `x ≥ 0`: the rounding of the sum is made up for (Kahan).
#[inline(always)]
fn log_1p<S: Simd>(s: S, x: S::F32) -> S::F32 {
    let one = s.splat(1.0);
    let u = s.add(one, x);
    let d = s.sub(u, one);
    let y = s.div(s.mul(log(s, u), x), s.select(s.eq(d, s.splat(0.0)), one, d));
    s.select(s.eq(d, s.splat(0.0)), x, y)
}

/// `log x` as a sum of two, the second a correction, for finite `x > 0`: `2 atanh(q)` with
/// `q = (m − 1) / (m + 1)` and its cube carried in two parts.
#[inline(always)]
fn log_parts<S: Simd>(s: S, x: S::F32) -> (S::F32, S::F32) {
    let (m, e) = split(s, x);
    let f = s.sub(m, s.splat(1.0));
    let inverse = s.div(s.splat(1.0), s.add(m, s.splat(1.0)));
    let q = s.mul(f, inverse);
    // f − q · (m + 1), with m + 1 taken apart as f + 2
    let rest = s.fma(s.neg(q), f, s.fma(q, s.splat(-2.0), f));
    let q_lo = s.mul(rest, inverse);
    let z = s.mul(q, q);
    let z_lo = s.fma(q, s.add(q_lo, q_lo), s.fma(q, q, s.neg(z)));
    let cube = s.mul(z, q);
    let cube_lo = s.fma(z, q_lo, s.fma(z_lo, q, s.fma(z, q, s.neg(cube))));
    let c = polynomial(s, z, &ATANH);
    let tail = s.fma(c, cube, s.fma(c, cube_lo, q_lo));
    let hi = s.fma(e, s.splat(std::f32::consts::LN_2), s.add(q, q));
    let lost = s.sub(s.add(q, q), s.fma(e, s.splat(-std::f32::consts::LN_2), hi));
    let lo = s.fma(e, s.splat(-1.904_654_3e-9), s.fma(s.splat(2.0), tail, lost));
    let sum = s.add(hi, lo);
    (sum, s.add(s.sub(hi, sum), lo))
}

/// `(atanh(q) − q) / q³` in `q²`, highest power first: the series.
const ATANH: [f32; 5] = [1.0 / 11.0, 1.0 / 9.0, 1.0 / 7.0, 1.0 / 5.0, 1.0 / 3.0];

/// `x^y`, as C's `powf`: for negative `x` where `y` is an integer, 1 where `x` is 1 or `y` is 0.
#[inline(always)]
pub(super) fn pow<S: Simd>(s: S, x: S::F32, y: S::F32) -> S::F32 {
    let (zero, one, inf) = (s.splat(0.0), s.splat(1.0), s.splat(f32::INFINITY));
    let a = s.abs(x);
    let (hi, lo) = log_parts(s, a);
    let hi = s.select(s.eq(a, zero), s.neg(inf), s.select(s.lt(a, inf), hi, a));
    let product = s.mul(hi, y);
    let rest = s.fma(lo, y, s.fma(hi, y, s.neg(product)));
    // beyond this range the result is 0 or infinite, and the rest may be NaN
    let exact = s.lt(s.abs(product), s.splat(200.0));
    let size = exp_sum(s, product, s.select(exact, rest, zero));
    let whole = s.eq(s.floor(y), y);
    let half = s.mul(y, s.splat(0.5));
    let odd = s.both(whole, s.not(s.eq(s.floor(half), half)));
    let signed = s.select(odd, with_sign(s, size, x), size);
    // what is negative and finite has no power that is not whole
    let none = s.both(s.not(whole), s.both(s.lt(x, zero), s.lt(s.neg(inf), x)));
    let value = s.select(none, s.splat(f32::NAN), signed);
    let value = or_nan(s, or_nan(s, value, y), x);
    let endless = s.both(s.eq(a, one), s.eq(s.abs(y), inf));
    s.select(
        s.either(endless, s.either(s.eq(y, zero), s.eq(x, one))),
        one,
        value,
    )
}

/// The logistic function.
#[inline(always)]
pub(super) fn sigmoid<S: Simd>(s: S, x: S::F32) -> S::F32 {
    let one = s.splat(1.0);
    let e = exp(s, s.neg(s.abs(x)));
    let top = s.select(s.lt(x, s.splat(0.0)), e, one);
    s.div(top, s.add(one, e))
}

/// The hyperbolic tangent, by `e^(−2|x|) − 1`.
#[inline(always)]
pub(super) fn tanh<S: Simd>(s: S, x: S::F32) -> S::F32 {
    let e = exp_m1(s, s.mul(s.abs(x), s.splat(-2.0)));
    let y = s.div(s.abs(e), s.add(e, s.splat(2.0)));
    or_nan(s, with_sign(s, y, x), x)
}

/// The error function: minimax polynomials on two ranges.
#[inline(always)]
pub(super) fn erf<S: Simd>(s: S, x: S::F32) -> S::F32 {
    let t = s.abs(x);
    let far = s.fma(polynomial(s, t, &ERF_FAR), t, s.neg(t));
    // beyond 4 the result is 1, and the polynomial no longer holds
    let far = s.select(s.lt(t, s.splat(4.0)), s.neg(exp_m1(s, far)), s.splat(1.0));
    let near = s.fma(polynomial(s, s.mul(x, x), &ERF_NEAR), x, x);
    let y = s.select(s.lt(s.splat(0.927_734_4), t), with_sign(s, far, x), near);
    or_nan(s, y, x)
}

/// `log(1 − erf(t)) / t + 1` for `t` in 0.92..4, highest power first.
const ERF_FAR: [f32; 7] = [
    -1.728_534_7e-5,
    3.831_971_3e-4,
    -3.883_964_4e-3,
    2.425_462_2e-2,
    -1.067_778_8e-1,
    -6.348_467e-1,
    -1.287_175_1e-1,
];

/// `erf(x) / x − 1` in `x²` for `|x| ≤ 0.92`, highest power first.
const ERF_NEAR: [f32; 6] = [
    -5.967_617e-4,
    4.991_194_2e-3,
    -2.676_813_5e-2,
    1.128_199_3e-1,
    -3.761_253_4e-1,
    1.283_791_7e-1,
];

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

/// The sine.
#[inline(always)]
pub(super) fn sin<S: Simd>(s: S, x: S::F32) -> S::F32 {
    circular(s, x, 0, f64::sin)
}

/// The cosine.
#[inline(always)]
pub(super) fn cos<S: Simd>(s: S, x: S::F32) -> S::F32 {
    circular(s, x, 1, f64::cos)
}

/// Beyond this the reduction by multiples of π/2 is too coarse.
const LARGE: f32 = 30_000.0;

/// The sine of `x + quarters · π/2`; what is [`LARGE`] lane by lane, by `of`.
#[inline(always)]
fn circular<S: Simd>(s: S, x: S::F32, quarters: i32, of: fn(f64) -> f64) -> S::F32 {
    let n = s.round(s.mul(x, s.splat(std::f32::consts::FRAC_2_PI)));
    let mut r = x;
    for part in HALF_PI {
        r = s.fma(n, s.splat(-part), r);
    }
    // −0 is lost on the way
    let r = s.select(s.eq(n, s.splat(0.0)), x, r);
    let z = s.mul(r, r);
    let sine = with_sign(s, s.fma(s.mul(polynomial(s, z, &SIN), z), r, r), r);
    let cosine = s.fma(polynomial(s, z, &COS), z, s.splat(1.0));
    let quadrant = s.int_add(s.to_int(n), s.int_splat(quarters));
    let is = |bit| s.int_eq(s.int_and(quadrant, s.int_splat(bit)), s.int_splat(bit));
    let y = s.select(is(1), cosine, sine);
    let y = s.select(is(2), s.neg(y), y);
    let (mut lanes, mut values) = ([0.0; 16], [0.0; 16]);
    s.store(x, &mut lanes[..S::LANES]);
    if lanes.iter().any(|x| x.abs() > LARGE || x.is_nan()) {
        s.store(y, &mut values[..S::LANES]);
        for (y, &x) in values.iter_mut().zip(&lanes) {
            if x.abs() > LARGE || x.is_nan() {
                *y = of(f64::from(x)) as f32;
            }
        }
        return s.load(&values[..S::LANES]);
    }
    y
}

/// π/2 in parts.
const HALF_PI: [f32; 3] = [std::f32::consts::FRAC_PI_2, -4.371_139e-8, -1.715_124_5e-15];

/// `(sin r / r − 1) / r²` in `r²` for `|r| ≤ π/4`, highest power first (Cephes).
const SIN: [f32; 3] = [-1.951_529_6e-4, 8.332_161e-3, -1.666_665_5e-1];

/// `(cos r − 1) / r²` in `r²`, highest power first (Cephes).
const COS: [f32; 4] = [2.443_315_7e-5, -1.388_731_6e-3, 4.166_664_6e-2, -0.5];
