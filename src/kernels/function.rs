//! The scalar functions over vectors.

use super::arch::Simd;
use super::math;
use super::operand::Source;
use crate::func::Func;

/// `func` of `args`, element by element.
#[inline(always)]
pub(super) fn evaluate<S: Simd>(s: S, func: Func, args: [Source<'_>; 3], out: &mut [f32]) {
    use Func::*;
    // Each loop has its function's expression in it, and not as a closure: a closure that is not
    // inlined would be compiled without the level's instructions.
    macro_rules! each {
        (|$x:ident| $value:expr) => { each!([$x 0] $value) };
        (|$x:ident, $y:ident| $value:expr) => { each!([$x 0, $y 1] $value) };
        (|$x:ident, $y:ident, $z:ident| $value:expr) => { each!([$x 0, $y 1, $z 2] $value) };
        ([$($x:ident $k:literal),+] $value:expr) => {
            for (i, out) in out.chunks_mut(S::LANES).enumerate() {
                $(let $x = load(s, args[$k], i * S::LANES, out);)+
                store(s, $value, out);
            }
        };
    }
    let (zero, one, half) = (s.splat(0.0), s.splat(1.0), s.splat(0.5));
    match func {
        Relu => each!(|x| s.max(zero, x)),
        LeakyRelu(a) => each!(|x| s.select(s.lt(x, zero), s.mul(x, s.splat(a)), x)),
        Elu(a) => each!(|x| {
            let low = s.mul(s.splat(a), math::exp_m1(s, x));
            s.select(s.lt(x, zero), low, x)
        }),
        Selu { alpha, gamma } => each!(|x| {
            let low = s.mul(s.splat(alpha), math::exp_m1(s, x));
            s.mul(s.splat(gamma), s.select(s.lt(zero, x), x, low))
        }),
        Celu(a) => each!(|x| {
            let low = math::exp_m1(s, s.min(zero, s.div(x, s.splat(a))));
            s.add(s.max(zero, x), s.min(zero, s.mul(s.splat(a), low)))
        }),
        ThresholdedRelu(a) => each!(|x| s.select(s.lt(s.splat(a), x), x, zero)),
        HardSigmoid { alpha, beta } => {
            each!(|x| between(s, s.fma(x, s.splat(alpha), s.splat(beta)), zero, one))
        }
        HardSwish => {
            each!(|x| s.mul(x, between(s, s.fma(x, s.splat(1.0 / 6.0), half), zero, one)))
        }
        Clip { lo, hi } => each!(|x| between(s, x, s.splat(lo), s.splat(hi))),
        Sigmoid => each!(|x| math::sigmoid(s, x)),
        Tanh => each!(|x| math::tanh(s, x)),
        Softplus => each!(|x| math::softplus(s, x)),
        Softsign => each!(|x| s.div(x, s.add(one, s.abs(x)))),
        Erf => each!(|x| math::erf(s, x)),
        Gelu => each!(|x| {
            let scaled = s.mul(x, s.splat(std::f32::consts::FRAC_1_SQRT_2));
            let x = s.mul(x, half);
            s.fma(x, math::erf(s, scaled), x)
        }),
        GeluTanh => each!(|x| {
            let cube = s.mul(s.mul(x, x), x);
            let inner = s.fma(s.splat(0.044_715), cube, x);
            let x = s.mul(x, half);
            s.fma(x, math::tanh(s, s.mul(s.splat(0.797_884_6), inner)), x)
        }),
        Mish => each!(|x| math::mish(s, x)),
        Swish(a) => each!(|x| s.mul(x, math::sigmoid(s, s.mul(s.splat(a), x)))),
        Exp => each!(|x| math::exp(s, x)),
        Log => each!(|x| math::log(s, x)),
        Sqrt => each!(|x| s.sqrt(x)),
        Reciprocal => each!(|x| s.div(one, x)),
        Abs => each!(|x| s.abs(x)),
        Neg => each!(|x| s.neg(x)),
        Floor => each!(|x| s.floor(x)),
        Ceil => each!(|x| s.ceil(x)),
        Round => each!(|x| s.round(x)),
        Sign => each!(|x| {
            let low = s.select(s.lt(x, zero), s.splat(-1.0), x);
            s.select(s.lt(zero, x), one, low)
        }),
        Sin => each!(|x| math::sin(s, x)),
        Cos => each!(|x| math::cos(s, x)),
        Not => each!(|x| truth(s, s.eq(x, zero))),
        Identity => each!(|x| x),
        Add => each!(|x, y| s.add(x, y)),
        Sub => each!(|x, y| s.sub(x, y)),
        Mul => each!(|x, y| s.mul(x, y)),
        Div => each!(|x, y| s.div(x, y)),
        Min => each!(|x, y| s.select(s.eq(y, y), s.min(y, x), y)),
        Max => each!(|x, y| s.select(s.eq(y, y), s.max(y, x), y)),
        Pow => each!(|x, y| math::pow(s, x, y)),
        PRelu => each!(|x, y| s.select(s.lt(x, zero), s.mul(x, y), x)),
        Greater => each!(|x, y| truth(s, s.lt(y, x))),
        GreaterOrEqual => each!(|x, y| truth(s, s.le(y, x))),
        Less => each!(|x, y| truth(s, s.lt(x, y))),
        LessOrEqual => each!(|x, y| truth(s, s.le(x, y))),
        Equal => each!(|x, y| truth(s, s.eq(x, y))),
        And => each!(|x, y| truth(s, s.not(s.either(s.eq(x, zero), s.eq(y, zero))))),
        Or => each!(|x, y| truth(s, s.not(s.both(s.eq(x, zero), s.eq(y, zero))))),
        Xor => each!(|x, y| {
            let (a, b) = (s.eq(x, zero), s.eq(y, zero));
            truth(s, s.both(s.either(a, b), s.not(s.both(a, b))))
        }),
        Where => each!(|x, y, z| s.select(s.eq(x, zero), z, y)),
        MulAdd => each!(|x, y, z| s.fma(x, y, z)),
    }
}

/// 1 where the mask holds, else 0.
#[inline(always)]
fn truth<S: Simd>(s: S, mask: S::Mask) -> S::F32 {
    s.select(mask, s.splat(1.0), s.splat(0.0))
}

/// `v`, or the end that it is beyond; NaN where it is NaN.
#[inline(always)]
fn between<S: Simd>(s: S, v: S::F32, lo: S::F32, hi: S::F32) -> S::F32 {
    s.min(hi, s.max(lo, v))
}

/// A vector of an operand, of which `here` are the elements that are replaced.
#[inline(always)]
fn load<S: Simd>(s: S, arg: Source<'_>, at: usize, here: &[f32]) -> S::F32 {
    let line = match arg {
        Source::Splat(v) => return s.splat(v),
        Source::Line(line) => &line[at..at + here.len()],
        Source::Here => here,
    };
    if line.len() == S::LANES {
        s.load(line)
    } else {
        s.load_partial(line)
    }
}

/// Writes as much of a vector as `to` has room for, in one go where that is all.
#[inline(always)]
fn store<S: Simd>(s: S, v: S::F32, to: &mut [f32]) {
    if to.len() == S::LANES {
        s.store(v, to);
    } else {
        s.store_partial(v, to);
    }
}
