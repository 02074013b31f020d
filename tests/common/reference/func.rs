//! The scalar functions as ONNX defines them, in f64.

use stripmill::func::Func;

pub(super) fn apply(func: Func, [x, y, z]: [f64; 3]) -> f64 {
    use Func::*;
    let truth = |b: bool| f64::from(u8::from(b));
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let softplus = |x: f64| x.max(0.0) + (-x.abs()).exp().ln_1p();
    match func {
        Relu => x.max(0.0),
        LeakyRelu(a) => leaky(x, a.into()),
        PRelu => leaky(x, y),
        Elu(a) if x < 0.0 => f64::from(a) * x.exp_m1(),
        Elu(_) => x,
        Selu { alpha, gamma } if x <= 0.0 => f64::from(gamma) * f64::from(alpha) * x.exp_m1(),
        Selu { gamma, .. } => f64::from(gamma) * x,
        Celu(a) => x.max(0.0) + (f64::from(a) * (x / f64::from(a)).exp_m1()).min(0.0),
        ThresholdedRelu(a) if x > a.into() => x,
        ThresholdedRelu(_) => 0.0,
        HardSigmoid { alpha, beta } => (f64::from(alpha) * x + f64::from(beta)).clamp(0.0, 1.0),
        HardSwish => x * (x / 6.0 + 0.5).clamp(0.0, 1.0),
        Clip { lo, hi } => x.max(lo.into()).min(hi.into()),
        Sigmoid => sigmoid(x),
        Tanh => x.tanh(),
        Softplus => softplus(x),
        Softsign => x / (1.0 + x.abs()),
        Erf => erf(x),
        Gelu => 0.5 * x * (1.0 + erf(x / 2f64.sqrt())),
        GeluTanh => {
            let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3));
            0.5 * x * (1.0 + inner.tanh())
        }
        Mish => x * softplus(x).tanh(),
        Swish(a) => x * sigmoid(f64::from(a) * x),
        Exp => x.exp(),
        Log => x.ln(),
        Sqrt => x.sqrt(),
        Reciprocal => 1.0 / x,
        Abs => x.abs(),
        Neg => -x,
        Floor => x.floor(),
        Ceil => x.ceil(),
        Round => x.round_ties_even(),
        Sign if x == 0.0 => 0.0,
        Sign => x.signum(),
        Sin => x.sin(),
        Cos => x.cos(),
        Not => truth(x == 0.0),
        Identity => x,
        Add => x + y,
        Sub => x - y,
        Mul => x * y,
        Div => x / y,
        Min => x.min(y),
        Max => x.max(y),
        Pow => x.powf(y),
        Greater => truth(x > y),
        GreaterOrEqual => truth(x >= y),
        Less => truth(x < y),
        LessOrEqual => truth(x <= y),
        Equal => truth(x == y),
        And => truth(x != 0.0 && y != 0.0),
        Or => truth(x != 0.0 || y != 0.0),
        Xor => truth((x != 0.0) != (y != 0.0)),
        Where if x != 0.0 => y,
        Where => z,
        MulAdd => x * y + z,
    }
}

fn leaky(x: f64, slope: f64) -> f64 {
    if x < 0.0 { slope * x } else { x }
}

/// The error function: its Taylor series near 0, Laplace's continued fraction beyond.
pub(super) fn erf(x: f64) -> f64 {
    let a = x.abs();
    let scale = 2.0 / std::f64::consts::PI.sqrt();
    let positive = if a < 3.0 {
        let (mut term, mut sum) = (a, a);
        for n in 1..120 {
            term *= -a * a / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        scale * sum
    } else {
        let fraction = (1..60).rev().fold(0.0, |f, n| f64::from(n) / 2.0 / (a + f));
        1.0 - scale / 2.0 * (-a * a).exp() / (a + fraction)
    };
    positive.copysign(x)
}
