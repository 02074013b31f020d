//! The scalar functions over vectors.
//!
//! Each macro hands its functions to a loop, as an expression of the operands and not as a closure: a
//! closure that is not inlined would be compiled without the level's instructions.

use super::arch::Simd;
use super::operand::Source;
use crate::func::Func;

/// Loops over a function of one operand: `each!(x: 0 => value)`.
#[rustfmt::skip] // nested macros: each run of rustfmt would indent them further
macro_rules! unary {
    ($s:ident, $func:expr, $each:ident) => {{
        use crate::func::Func::*;
        use crate::kernels::math;
        let s = $s;
        let zero = s.splat(0.0);
        let one = s.splat(1.0);
        macro_rules! with {
            ($x:ident, $value:expr) => {
                $each!($x: 0 => $value)
            };
        }
        match $func {
            Relu => with!(x, s.max(zero, x)),
            LeakyRelu(a) => with!(x, s.select(s.lt(x, zero), s.mul(x, s.splat(a)), x)),
            Elu(a) => with!(x, {
                let low = s.mul(s.splat(a), math::exp_m1(s, x));
                s.select(s.lt(x, zero), low, x)
            }),
            Selu { alpha, gamma } => with!(x, {
                let low = s.mul(s.splat(alpha), math::exp_m1(s, x));
                s.mul(s.splat(gamma), s.select(s.lt(zero, x), x, low))
            }),
            Celu(a) => with!(x, {
                let low = math::exp_m1(s, s.min(zero, s.div(x, s.splat(a))));
                s.add(s.max(zero, x), s.min(zero, s.mul(s.splat(a), low)))
            }),
            ThresholdedRelu(a) => with!(x, s.select(s.lt(s.splat(a), x), x, zero)),
            HardSigmoid { alpha, beta } => {
                with!(
                    x,
                    s.min(one, s.max(zero, s.fma(x, s.splat(alpha), s.splat(beta))))
                )
            }
            HardSwish => with!(x, {
                let gate = s.fma(x, s.splat(1.0 / 6.0), s.splat(0.5));
                s.mul(x, s.min(one, s.max(zero, gate)))
            }),
            Clip { lo, hi } => with!(x, s.min(s.splat(hi), s.max(s.splat(lo), x))),
            Sigmoid => with!(x, math::sigmoid(s, x)),
            Tanh => with!(x, math::tanh(s, x)),
            Softplus => with!(x, math::softplus(s, x)),
            Softsign => with!(x, s.div(x, s.add(one, s.abs(x)))),
            Erf => with!(x, math::erf(s, x)),
            Gelu => with!(x, {
                let half = s.mul(x, s.splat(0.5));
                s.fma(
                    half,
                    math::erf(s, s.mul(x, s.splat(std::f32::consts::FRAC_1_SQRT_2))),
                    half,
                )
            }),
            GeluTanh => with!(x, {
                let half = s.mul(x, s.splat(0.5));
                let cube = s.mul(s.mul(x, x), x);
                let inner = s.mul(s.splat(0.797_884_6), s.fma(s.splat(0.044_715), cube, x));
                s.fma(half, math::tanh(s, inner), half)
            }),
            Mish => with!(x, math::mish(s, x)),
            Swish(a) => with!(x, s.mul(x, math::sigmoid(s, s.mul(s.splat(a), x)))),
            Exp => with!(x, math::exp(s, x)),
            Log => with!(x, math::log(s, x)),
            Sqrt => with!(x, s.sqrt(x)),
            Reciprocal => with!(x, s.div(one, x)),
            Abs => with!(x, s.abs(x)),
            Neg => with!(x, s.neg(x)),
            Floor => with!(x, s.floor(x)),
            Ceil => with!(x, s.ceil(x)),
            Round => with!(x, s.round(x)),
            Sign => with!(x, {
                let sign = s.select(s.lt(x, zero), s.splat(-1.0), x);
                s.select(s.lt(zero, x), one, sign)
            }),
            Sin => with!(x, math::sin(s, x)),
            Cos => with!(x, math::cos(s, x)),
            Not => with!(x, s.select(s.eq(x, zero), one, zero)),
            _ => with!(x, x),
        }
    }};
}

/// Loops over a function of two operands: `each!(x: 0, y: 1 => value)`.
#[rustfmt::skip] // nested macros: each run of rustfmt would indent them further
macro_rules! binary {
    ($s:ident, $func:expr, $each:ident) => {{
        use crate::func::Func::*;
        use crate::kernels::math;
        let s = $s;
        let zero = s.splat(0.0);
        let one = s.splat(1.0);
        macro_rules! with {
            ($x:ident, $y:ident, $value:expr) => {
                $each!($x: 0, $y: 1 => $value)
            };
        }
        macro_rules! truth {
            ($x:ident, $y:ident, $mask:expr) => {
                with!($x, $y, s.select($mask, one, zero))
            };
        }
        match $func {
            Add => with!(x, y, s.add(x, y)),
            Sub => with!(x, y, s.sub(x, y)),
            Mul => with!(x, y, s.mul(x, y)),
            Div => with!(x, y, s.div(x, y)),
            Min => with!(x, y, s.select(s.eq(y, y), s.min(y, x), y)),
            Max => with!(x, y, s.select(s.eq(y, y), s.max(y, x), y)),
            Pow => with!(x, y, math::pow(s, x, y)),
            PRelu => with!(x, y, s.select(s.lt(x, zero), s.mul(x, y), x)),
            Greater => truth!(x, y, s.lt(y, x)),
            GreaterOrEqual => truth!(x, y, s.le(y, x)),
            Less => truth!(x, y, s.lt(x, y)),
            LessOrEqual => truth!(x, y, s.le(x, y)),
            Equal => truth!(x, y, s.eq(x, y)),
            And => truth!(x, y, s.not(s.either(s.eq(x, zero), s.eq(y, zero)))),
            Or => truth!(x, y, s.not(s.both(s.eq(x, zero), s.eq(y, zero)))),
            Xor => truth!(x, y, {
                let (a, b) = (s.eq(x, zero), s.eq(y, zero));
                s.both(s.either(a, b), s.not(s.both(a, b)))
            }),
            _ => with!(x, _y, x),
        }
    }};
}

/// Loops over a function of three operands: `each!(x: 0, y: 1, z: 2 => value)`.
macro_rules! ternary {
    ($s:ident, $func:expr, $each:ident) => {{
        let s = $s;
        match $func {
            crate::func::Func::Where => {
                $each!(x: 0, y: 1, z: 2 => s.select(s.eq(x, s.splat(0.0)), z, y))
            }
            _ => $each!(x: 0, y: 1, z: 2 => s.fma(x, y, z)),
        }
    }};
}

/// `func` of `args`, element by element.
#[inline(always)]
pub(super) fn evaluate<S: Simd>(s: S, func: Func, args: [Source<'_>; 3], out: &mut [f32]) {
    macro_rules! each {
        ($($x:ident: $k:literal),+ => $value:expr) => {
            for (i, out) in out.chunks_mut(S::LANES).enumerate() {
                $(let $x = load(s, args[$k], i * S::LANES, out);)+
                let v = $value;
                if out.len() == S::LANES {
                    s.store(v, out);
                } else {
                    s.store_partial(v, out);
                }
            }
        };
    }
    match func.arity() {
        1 => unary!(s, func, each),
        2 => binary!(s, func, each),
        _ => ternary!(s, func, each),
    }
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
