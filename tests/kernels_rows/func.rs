//! Every scalar function on every level, against f64: how many units in the last place it is off, over
//! numbers of every size, and what it makes of special ones.

use stripmill::func::Func;
use stripmill::kernels::{Extra, Input, Isa, Out, Program, ProgramArg, Segment, Tail, pointwise};

/// `func` of each triple of operands.
fn apply(isa: Isa, func: Func, operands: [&[f32]; 3]) -> Vec<f32> {
    let args = [0, 1, 2].map(ProgramArg::Input);
    let program = Program::compile(&[(func, args)], Vec::new()).unwrap();
    let rows = operands.map(|v| [Some(v)]);
    let segments = rows.each_ref().map(|rows| {
        [Segment {
            rows,
            stride: 1,
            first: 0,
            channels: 1,
        }]
    });
    let inputs = segments
        .each_ref()
        .map(|segments| Input { segments, taps: 1 });
    let width = operands[0].len();
    let extras = [inputs[1], inputs[2]].map(|input| Extra { input, width });
    let tail = Tail {
        program: &program,
        extras: &extras,
        whole: &[],
    };
    let mut to = vec![0.0; width];
    let mut out = Out {
        rows: &mut [&mut to],
        channels: 1,
    };
    pointwise(isa, &inputs[0], &tail, &mut out);
    to
}

/// The same on all levels; the bits must agree.
fn everywhere(func: Func, operands: [&[f32]; 3]) -> Vec<f32> {
    let base = apply(Isa::Portable, func, operands);
    for isa in Isa::ALL.into_iter().filter(|isa| isa.available()) {
        let got = apply(isa, func, operands);
        for (i, (a, b)) in got.iter().zip(&base).enumerate() {
            let same = a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
            let x = operands.map(|v| v[i]);
            assert!(
                same,
                "{func:?} of {x:?}: {a} on {}, {b} on portable",
                isa.name()
            );
        }
    }
    base
}

/// How many units in the last place of `want`, as an f32, `got` is off.
fn units(got: f32, want: f64) -> f64 {
    let near = want as f32;
    if got == near || got.is_nan() && near.is_nan() {
        return 0.0;
    }
    let exponent = want.abs().log2().floor().clamp(-126.0, 127.0);
    (f64::from(got) - want).abs() / (exponent - 23.0).exp2()
}

/// Numbers of every sign and size: each `step`-th of all.
fn numbers(step: usize) -> Vec<f32> {
    (0..=u32::MAX)
        .step_by(step)
        .map(f32::from_bits)
        .filter(|x| !x.is_nan())
        .collect()
}

/// A function in f64.
type Exact = fn(f64) -> f64;

const INF: f32 = f32::INFINITY;
const SPECIAL: [f32; 22] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    2.0,
    -2.0,
    3.0,
    -3.0,
    0.5,
    -0.5,
    2.5,
    -2.5,
    1e-40,
    -1e-40,
    1e38,
    -1e38,
    16_777_216.0,
    -33_554_434.0,
    f32::MAX,
    INF,
    -INF,
    f32::NAN,
];

/// Maclaurin's series, good to 1e-9 where the result is not yet 1 in f32.
fn erf(x: f64) -> f64 {
    if x.abs() > 4.2 {
        return x.signum();
    }
    let (mut sum, mut term) = (0.0, x);
    for n in 0..120 {
        sum += term / f64::from(2 * n + 1);
        term *= -x * x / f64::from(n + 1);
    }
    sum * 2.0 / std::f64::consts::PI.sqrt()
}

fn sigmoid(x: f64) -> f64 {
    if x < 0.0 {
        x.exp() / (1.0 + x.exp())
    } else {
        1.0 / (1.0 + (-x).exp())
    }
}

fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// The smooth functions, with what they are and how far off they may be, in units. Those that are x
/// times a small number are held to it where that is not below the normal range.
fn smooth() -> Vec<(Func, Exact, f64)> {
    vec![
        (Func::Exp, f64::exp, 1.0),
        (Func::Log, f64::ln, 1.0),
        (Func::Sigmoid, sigmoid, 3.0),
        (Func::Tanh, f64::tanh, 3.0),
        (Func::Softplus, softplus, 3.0),
        (Func::Erf, erf, 1.0),
        (Func::Sin, f64::sin, 1.5),
        (Func::Cos, f64::cos, 1.5),
        (Func::Mish, |x| x * softplus(x).tanh(), 4.0),
        (Func::Swish(1.0), |x| x * sigmoid(x), 3.0),
        (Func::Softsign, |x| x / (1.0 + x.abs()), 1.5),
        (
            Func::Elu(1.0),
            |x| if x < 0.0 { x.exp_m1() } else { x },
            1.5,
        ),
        (Func::Sqrt, f64::sqrt, 0.5),
        (Func::Reciprocal, |x| 1.0 / x, 0.5),
    ]
}

#[test]
fn smooth_functions_are_off_by_few_units() {
    let x = numbers(16_411);
    for (func, is, most) in smooth() {
        let got = everywhere(func, [&x, &x, &x]);
        let product = matches!(func, Func::Mish | Func::Swish(_));
        let off = |(&x, &y): (&f32, &f32)| (units(y, is(f64::from(x))), x);
        let worst = x
            .iter()
            .zip(&got)
            .filter(|(x, _)| !product || **x > -80.0)
            .map(off);
        let worst = worst.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
        assert!(
            worst.0 <= most,
            "{func:?} is off by {} units at {}",
            worst.0,
            worst.1
        );
    }
}

#[test]
fn functions_that_cancel_are_off_by_little() {
    let x = numbers(65_543);
    let cases: [(Func, Exact); 4] = [
        (Func::Gelu, |x| x * 0.5 * (1.0 + erf(x / 2f64.sqrt()))),
        (Func::GeluTanh, |x| {
            let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x);
            x * 0.5 * (1.0 + inner.tanh())
        }),
        (
            Func::Selu {
                alpha: 1.5,
                gamma: 1.1,
            },
            |x| {
                let gamma = f64::from(1.1f32);
                gamma * if x > 0.0 { x } else { 1.5 * x.exp_m1() }
            },
        ),
        (Func::Celu(0.7), |x| {
            let a = f64::from(0.7f32);
            x.max(0.0) + (a * (x / a).exp_m1()).min(0.0)
        }),
    ];
    for (func, is) in cases {
        let got = everywhere(func, [&x, &x, &x]);
        for (&x, &y) in x.iter().zip(&got).filter(|(x, _)| x.is_finite()) {
            let want = is(f64::from(x));
            let error = (f64::from(y) - want).abs();
            let scale = f64::from(x).abs().max(want.abs());
            let near = error <= 4e-7 * scale || error < 1e-38 || y == want as f32;
            assert!(near, "{func:?} of {x}: {y}, not {want}");
        }
    }
}

#[test]
fn powers_are_off_by_few_units() {
    let bases: Vec<f32> = numbers(9_000_011).into_iter().chain(SPECIAL).collect();
    let near_one = (0..400).map(|i| 1.0 + (i - 200) as f32 * 1e-3);
    let bases: Vec<f32> = bases.into_iter().chain(near_one).collect();
    let exponents: Vec<f32> = numbers(40_000_003)
        .into_iter()
        .chain([
            0.5,
            1.0 / 3.0,
            2.0,
            3.0,
            -1.0,
            -0.75,
            2.2,
            7.0,
            17.3,
            -40.0,
            88.5,
            1000.0,
        ])
        .collect();
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for &a in &bases {
        for &b in &exponents {
            x.push(a);
            y.push(b);
        }
    }
    let got = everywhere(Func::Pow, [&x, &y, &y]);
    let mut worst = (0.0, 0.0, 0.0);
    for ((&x, &y), &got) in x.iter().zip(&y).zip(&got) {
        let off = units(got, f64::from(x).powf(f64::from(y)));
        if off > worst.0 || off.is_nan() {
            worst = (off, x, y);
        }
    }
    assert!(
        worst.0 <= 2.0,
        "{} ^ {} is off by {} units",
        worst.1,
        worst.2,
        worst.0
    );
}

#[test]
fn powers_of_special_numbers_are_those_of_c() {
    let pairs = SPECIAL.iter().flat_map(|&a| SPECIAL.map(|b| (a, b)));
    let (x, y): (Vec<f32>, Vec<f32>) = pairs.unzip();
    let got = everywhere(Func::Pow, [&x, &y, &y]);
    for ((&x, &y), &got) in x.iter().zip(&y).zip(&got) {
        let want = f64::from(x).powf(f64::from(y)) as f32;
        let sign = got == 0.0 && got.is_sign_negative() != want.is_sign_negative();
        assert!(
            units(got, f64::from(want)) <= 2.0 && !sign,
            "{x} ^ {y}: {got}, not {want}"
        );
    }
}

/// The functions that are exact, as plain Rust.
fn exact(func: Func, [x, y, z]: [f32; 3]) -> f32 {
    let truth = |t: bool| if t { 1.0 } else { 0.0 };
    match func {
        Func::Relu if x < 0.0 => 0.0,
        Func::LeakyRelu(a) if x < 0.0 => a * x,
        Func::ThresholdedRelu(a) => {
            if x > a {
                x
            } else {
                0.0
            }
        }
        Func::HardSigmoid { alpha, beta } => {
            let v = x.mul_add(alpha, beta);
            if v.is_nan() { v } else { v.clamp(0.0, 1.0) }
        }
        Func::HardSwish => {
            let v = x.mul_add(1.0 / 6.0, 0.5);
            x * if v.is_nan() { v } else { v.clamp(0.0, 1.0) }
        }
        Func::Clip { lo, hi } => {
            if x < lo {
                lo
            } else if x > hi {
                hi
            } else {
                x
            }
        }
        Func::Abs => x.abs(),
        Func::Neg => -x,
        Func::Floor => x.floor(),
        Func::Ceil => x.ceil(),
        Func::Round => x.round_ties_even(),
        Func::Sign => {
            if x > 0.0 {
                1.0
            } else if x < 0.0 {
                -1.0
            } else {
                x
            }
        }
        Func::Not => truth(x == 0.0),
        Func::Add => x + y,
        Func::Sub => x - y,
        Func::Mul => x * y,
        Func::Div => x / y,
        Func::Min => {
            if x.is_nan() || y.is_nan() {
                f32::NAN
            } else if y < x {
                y
            } else {
                x
            }
        }
        Func::Max => {
            if x.is_nan() || y.is_nan() {
                f32::NAN
            } else if y > x {
                y
            } else {
                x
            }
        }
        Func::PRelu if x < 0.0 => x * y,
        Func::Greater => truth(x > y),
        Func::GreaterOrEqual => truth(x >= y),
        Func::Less => truth(x < y),
        Func::LessOrEqual => truth(x <= y),
        Func::Equal => truth(x == y),
        Func::And => truth(x != 0.0 && y != 0.0),
        Func::Or => truth(x != 0.0 || y != 0.0),
        Func::Xor => truth((x != 0.0) != (y != 0.0)),
        Func::Where => {
            if x != 0.0 {
                y
            } else {
                z
            }
        }
        Func::MulAdd => x.mul_add(y, z),
        _ => x,
    }
}

#[test]
fn exact_functions_are_exact() {
    use Func::*;
    let funcs = [
        Relu,
        LeakyRelu(0.1),
        ThresholdedRelu(1.5),
        HardSigmoid {
            alpha: 0.2,
            beta: 0.5,
        },
        HardSwish,
        Clip { lo: -1.5, hi: 2.25 },
        Abs,
        Neg,
        Floor,
        Ceil,
        Round,
        Sign,
        Not,
        Identity,
        Add,
        Sub,
        Mul,
        Div,
        Min,
        Max,
        PRelu,
        Greater,
        GreaterOrEqual,
        Less,
        LessOrEqual,
        Equal,
        And,
        Or,
        Xor,
        Where,
        MulAdd,
    ];
    let n = SPECIAL.len();
    let pick = |k: usize| (0..n * n * n).map(move |i| SPECIAL[i / n.pow(k as u32) % n]);
    let operands = [0, 1, 2].map(|k| pick(k).collect::<Vec<f32>>());
    let operands = operands.each_ref().map(Vec::as_slice);
    for func in funcs {
        let got = everywhere(func, operands);
        for (i, got) in got.into_iter().enumerate() {
            let x = operands.map(|v| v[i]);
            let want = exact(func, x);
            let same = got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan();
            assert!(same, "{func:?} of {x:?}: {got}, not {want}");
        }
    }
}

#[test]
fn special_numbers() {
    let nan = f32::NAN;
    let cases = [
        (Func::Exp, INF, INF),
        (Func::Exp, -INF, 0.0),
        (Func::Exp, 88.8, INF),
        (Func::Exp, -104.1, 0.0),
        (Func::Exp, 0.0, 1.0),
        (Func::Exp, -0.0, 1.0),
        (Func::Exp, nan, nan),
        (Func::Log, 0.0, -INF),
        (Func::Log, -0.0, -INF),
        (Func::Log, -1.0, nan),
        (Func::Log, INF, INF),
        (Func::Log, 1.0, 0.0),
        (Func::Log, -INF, nan),
        (Func::Log, nan, nan),
        (Func::Tanh, INF, 1.0),
        (Func::Tanh, -INF, -1.0),
        (Func::Tanh, -0.0, -0.0),
        (Func::Tanh, nan, nan),
        (Func::Sigmoid, INF, 1.0),
        (Func::Sigmoid, -INF, 0.0),
        (Func::Sigmoid, 0.0, 0.5),
        (Func::Sigmoid, nan, nan),
        (Func::Erf, INF, 1.0),
        (Func::Erf, -INF, -1.0),
        (Func::Erf, nan, nan),
        (Func::Erf, -0.0, -0.0),
        (Func::Softplus, INF, INF),
        (Func::Softplus, -INF, 0.0),
        (Func::Softplus, nan, nan),
        (Func::Elu(1.0), -INF, -1.0),
        (Func::Elu(1.0), INF, INF),
        (Func::Elu(1.0), -0.0, -0.0),
        (Func::Elu(1.0), nan, nan),
        (Func::Celu(1.0), INF, INF),
        (Func::Celu(1.0), nan, nan),
        (
            Func::Selu {
                alpha: 1.0,
                gamma: 1.0,
            },
            INF,
            INF,
        ),
        (
            Func::Selu {
                alpha: 1.0,
                gamma: 1.0,
            },
            nan,
            nan,
        ),
        (Func::Sin, INF, nan),
        (Func::Cos, -INF, nan),
        (Func::Sin, nan, nan),
        (Func::Sin, -0.0, -0.0),
        (Func::Cos, 0.0, 1.0),
        (Func::Mish, INF, INF),
        (Func::Mish, nan, nan),
        (Func::Sqrt, -1.0, nan),
        (Func::Sqrt, -0.0, -0.0),
        (Func::Reciprocal, -0.0, -INF),
    ];
    for (func, x, want) in cases {
        let got = everywhere(func, [&[x], &[x], &[x]])[0];
        let same = got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan();
        assert!(same, "{func:?} of {x}: {got}, not {want}");
    }
}
