//! What a [`Func`] is: of f32 values, and of integers.

use super::Op;
use super::args::{bad, unsupported};
use crate::error::Result;
use crate::func::Func;

/// `func` of `x`, of which it uses as many as it has operands. Transcendental functions are
/// evaluated in f64 and rounded once.
#[inline]
pub fn scalar(func: Func, x: [f32; 3]) -> f32 {
    let [a, b, c] = x;
    let truth = |t: bool| f32::from(u8::from(t));
    let wide = |f: fn(f64) -> f64| f(f64::from(a)) as f32;
    match func {
        Func::Relu if a < 0.0 => 0.0,
        Func::Relu => a,
        Func::LeakyRelu(alpha) => prelu(a, alpha),
        Func::Elu(alpha) => elu(a, alpha, 1.0),
        Func::Selu { alpha, gamma } => elu(a, alpha, gamma),
        Func::Celu(alpha) if a < 0.0 => {
            let (x, alpha) = (f64::from(a), f64::from(alpha));
            (alpha * (x / alpha).exp_m1()) as f32
        }
        Func::Celu(_) => a,
        Func::ThresholdedRelu(alpha) if a > alpha => a,
        Func::ThresholdedRelu(_) => 0.0,
        Func::HardSigmoid { alpha, beta } => clip(a * alpha + beta, 0.0, 1.0),
        Func::HardSwish => a * clip(a * (1.0 / 6.0) + 0.5, 0.0, 1.0),
        Func::Clip { lo, hi } => clip(a, lo, hi),
        Func::Sigmoid => wide(sigmoid),
        Func::Tanh => wide(f64::tanh),
        Func::Softplus => wide(softplus),
        Func::Softsign => wide(|x| x / (1.0 + x.abs())),
        Func::Erf => wide(libm::erf),
        // 1 + erf(t) = erfc(-t), without its cancellation
        Func::Gelu => wide(|x| 0.5 * x * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2)),
        // 0.5 · (1 + tanh t) = sigmoid(2 t)
        Func::GeluTanh => wide(|x| {
            let t = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x);
            x * sigmoid(2.0 * t)
        }),
        Func::Mish => wide(|x| x * softplus(x).tanh()),
        Func::Swish(alpha) => {
            let x = f64::from(a);
            (x * sigmoid(f64::from(alpha) * x)) as f32
        }
        Func::Exp => wide(f64::exp),
        Func::Log => wide(f64::ln),
        Func::Sqrt => a.sqrt(),
        Func::Reciprocal => 1.0 / a,
        Func::Abs => a.abs(),
        Func::Neg => -a,
        Func::Floor => a.floor(),
        Func::Ceil => a.ceil(),
        Func::Round => a.round_ties_even(),
        Func::Sign if a > 0.0 => 1.0,
        Func::Sign if a < 0.0 => -1.0,
        // a zero or NaN is its own sign
        Func::Sign => a,
        Func::Sin => wide(f64::sin),
        Func::Cos => wide(f64::cos),
        Func::Not => truth(a == 0.0),
        Func::Identity => a,
        Func::Add => a + b,
        Func::Sub => a - b,
        Func::Mul => a * b,
        Func::Div => a / b,
        Func::Min if b < a || b.is_nan() => b,
        Func::Max if b > a || b.is_nan() => b,
        Func::Min | Func::Max => a,
        Func::Pow => f64::from(a).powf(f64::from(b)) as f32,
        Func::PRelu => prelu(a, b),
        Func::Greater => truth(a > b),
        Func::GreaterOrEqual => truth(a >= b),
        Func::Less => truth(a < b),
        Func::LessOrEqual => truth(a <= b),
        Func::Equal => truth(a == b),
        Func::And => truth(a != 0.0 && b != 0.0),
        Func::Or => truth(a != 0.0 || b != 0.0),
        Func::Xor => truth((a != 0.0) != (b != 0.0)),
        Func::Where if a != 0.0 => b,
        Func::Where => c,
        Func::MulAdd => a.mul_add(b, c),
    }
}

fn prelu(x: f32, slope: f32) -> f32 {
    if x < 0.0 { x * slope } else { x }
}

fn elu(x: f32, alpha: f32, gamma: f32) -> f32 {
    let gamma = f64::from(gamma);
    if x < 0.0 {
        (gamma * f64::from(alpha) * f64::from(x).exp_m1()) as f32
    } else {
        (gamma * f64::from(x)) as f32
    }
}

/// `lo` wins over a smaller `x`, then `hi` over a larger; NaN stays.
pub(super) fn clip<T: PartialOrd>(x: T, lo: T, hi: T) -> T {
    let x = if x < lo { lo } else { x };
    if x > hi { hi } else { x }
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// `func` of integers or booleans, for those functions that ONNX defines on them. Computed modulo
/// 2^64, so that the result is right modulo the width of every smaller type.
#[inline]
pub(super) fn integer(func: Func, x: [i64; 3]) -> Result<i64> {
    let [a, b, c] = x;
    Ok(match func {
        Func::Identity => a,
        Func::Relu => a.max(0),
        Func::Abs => a.wrapping_abs(),
        Func::Neg => a.wrapping_neg(),
        Func::Sign => a.signum(),
        Func::Not => i64::from(a == 0),
        Func::Add => a.wrapping_add(b),
        Func::Sub => a.wrapping_sub(b),
        Func::Mul => a.wrapping_mul(b),
        Func::Div if b == 0 => return bad(format!("{a} is divided by 0")),
        Func::Div => a.wrapping_div(b),
        Func::Min => a.min(b),
        Func::Max => a.max(b),
        Func::Pow => power(a, b),
        Func::PRelu if a < 0 => a.wrapping_mul(b),
        Func::PRelu => a,
        Func::Greater => i64::from(a > b),
        Func::GreaterOrEqual => i64::from(a >= b),
        Func::Less => i64::from(a < b),
        Func::LessOrEqual => i64::from(a <= b),
        Func::Equal => i64::from(a == b),
        Func::And => i64::from(a != 0 && b != 0),
        Func::Or => i64::from(a != 0 || b != 0),
        Func::Xor => i64::from((a != 0) != (b != 0)),
        Func::Where if a != 0 => b,
        Func::Where => c,
        _ => return unsupported("needs f32, not integers"),
    })
}

/// A negative exponent truncates towards 0, as every integer division does.
fn power(base: i64, exponent: i64) -> i64 {
    if exponent < 0 {
        return match base {
            1 => 1,
            -1 if exponent % 2 == 0 => 1,
            -1 => -1,
            _ => 0,
        };
    }
    let (mut result, mut square, mut left) = (1i64, base, exponent);
    while left > 0 {
        if left % 2 == 1 {
            result = result.wrapping_mul(square);
        }
        square = square.wrapping_mul(square);
        left /= 2;
    }
    result
}

/// The function that `op` applies to each element, if it is that kind of operator and its
/// parameters are attributes. (`Clip` has inputs for them since operator set 11, and becomes
/// [`Func::Clip`] without bounds here if it has no attributes.)
pub fn func(op: &Op) -> Option<Func> {
    let float = |name, default| op.float(name).unwrap_or(default);
    Some(match op.kind.as_str() {
        "Relu" => Func::Relu,
        "LeakyRelu" => Func::LeakyRelu(float("alpha", 0.01)),
        "Elu" => Func::Elu(float("alpha", 1.0)),
        "Selu" => Func::Selu {
            alpha: float("alpha", 1.673_263_2),
            gamma: float("gamma", 1.050_701),
        },
        "Celu" => Func::Celu(float("alpha", 1.0)),
        "ThresholdedRelu" => Func::ThresholdedRelu(float("alpha", 1.0)),
        "HardSigmoid" => Func::HardSigmoid {
            alpha: float("alpha", 0.2),
            beta: float("beta", 0.5),
        },
        "HardSwish" => Func::HardSwish,
        "Clip" => Func::Clip {
            lo: float("min", f32::NEG_INFINITY),
            hi: float("max", f32::INFINITY),
        },
        "Sigmoid" => Func::Sigmoid,
        "Tanh" => Func::Tanh,
        "Softplus" => Func::Softplus,
        "Softsign" => Func::Softsign,
        "Erf" => Func::Erf,
        "Gelu" if op.str("approximate") == Some("tanh") => Func::GeluTanh,
        "Gelu" => Func::Gelu,
        "Mish" => Func::Mish,
        "Swish" => Func::Swish(float("alpha", 1.0)),
        "Exp" => Func::Exp,
        "Log" => Func::Log,
        "Sqrt" => Func::Sqrt,
        "Reciprocal" => Func::Reciprocal,
        "Abs" => Func::Abs,
        "Neg" => Func::Neg,
        "Floor" => Func::Floor,
        "Ceil" => Func::Ceil,
        "Round" => Func::Round,
        "Sign" => Func::Sign,
        "Sin" => Func::Sin,
        "Cos" => Func::Cos,
        "Not" => Func::Not,
        "Add" => Func::Add,
        "Sub" => Func::Sub,
        "Mul" => Func::Mul,
        "Div" => Func::Div,
        "Min" => Func::Min,
        "Max" => Func::Max,
        "Pow" => Func::Pow,
        "PRelu" => Func::PRelu,
        "Greater" => Func::Greater,
        "GreaterOrEqual" => Func::GreaterOrEqual,
        "Less" => Func::Less,
        "LessOrEqual" => Func::LessOrEqual,
        "Equal" => Func::Equal,
        "And" => Func::And,
        "Or" => Func::Or,
        "Xor" => Func::Xor,
        "Where" => Func::Where,
        _ => return None,
    })
}
