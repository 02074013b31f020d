//! Random element-wise tails whose values stay tame: what is divided by, or has its logarithm
//! taken, is kept away from 0, and only bounded values are multiplied.

use stripmill::func::Func;
use stripmill::graph::{Arg, Expr, Operand, TensorId};

use super::{Builder, Rows};

const SMOOTH: [Func; 27] = [
    Func::Relu,
    Func::Relu,
    Func::LeakyRelu(0.2),
    Func::Elu(0.7),
    Func::Selu {
        alpha: 1.67,
        gamma: 1.05,
    },
    Func::Celu(1.3),
    Func::HardSigmoid {
        alpha: 0.2,
        beta: 0.5,
    },
    Func::HardSwish,
    Func::Clip { lo: -0.5, hi: 1.0 },
    Func::Clip { lo: 0.0, hi: 6.0 },
    Func::Sigmoid,
    Func::Tanh,
    Func::Softplus,
    Func::Softsign,
    Func::Erf,
    Func::Gelu,
    Func::GeluTanh,
    Func::Mish,
    Func::Swish(1.7),
    Func::Abs,
    Func::Neg,
    Func::Sin,
    Func::Cos,
    Func::Exp,
    Func::Log,
    Func::Sqrt,
    Func::Reciprocal,
];

const JUMPS: [Func; 12] = [
    Func::Floor,
    Func::Ceil,
    Func::Round,
    Func::Sign,
    Func::Not,
    Func::ThresholdedRelu(0.3),
    Func::Greater,
    Func::LessOrEqual,
    Func::Equal,
    Func::And,
    Func::Xor,
    Func::Where,
];

/// `(x − whole 0) / sqrt(whole 1 + 0.1)`.
pub(super) fn normalise() -> Expr {
    let mut expr = Expr::default();
    let centred = expr.push(Func::Sub, &[Arg::Input(0), Arg::Whole(0)]);
    let variance = expr.push(Func::Add, &[Arg::Whole(1), Arg::Scalar(0.1)]);
    let deviation = expr.push(Func::Sqrt, &[variance]);
    expr.push(Func::Div, &[centred, deviation]);
    expr
}

type Tail = (Expr, Vec<Operand>, Vec<Option<TensorId>>);

impl Builder {
    /// A tail for a node that makes `to`, with its operands.
    pub(super) fn tail(&mut self, to: &Rows) -> Tail {
        let mut all: Tail = Default::default();
        let length = self.rng.one(&[0, 0, 1, 1, 2, 3, 5]);
        let mut now = Arg::Input(0);
        for _ in 0..length {
            now = self.instruction(to, now, &mut all);
        }
        all
    }

    fn instruction(&mut self, to: &Rows, x: Arg, all: &mut Tail) -> Arg {
        match self.rng.below(10) {
            0..4 => {
                let func = self.rng.one(&SMOOTH);
                let x = tame(&mut all.0, func, x);
                all.0.push(func, &[x])
            }
            4 if self.options.jumps => {
                let func = self.rng.one(&JUMPS);
                let more = [self.argument(to, all), self.argument(to, all)];
                let args = [x, more[0], more[1]];
                all.0.push(func, &args[..func.arity()])
            }
            4 => {
                let y = self.argument(to, all);
                let larger = all.0.push(Func::Greater, &[x, y]);
                all.0.push(Func::Where, &[larger, x, y])
            }
            5 => {
                let y = self.argument(to, all);
                let gate = all.0.push(Func::Sigmoid, &[y]);
                all.0.push(Func::Mul, &[x, gate])
            }
            6 => {
                let factors = self.rng.values(to.c, 1.0);
                let a = all.0.vector(factors);
                let b = self.argument(to, all);
                all.0.push(Func::MulAdd, &[x, a, b])
            }
            7 => {
                let y = self.argument(to, all);
                let y = all.0.push(Func::Abs, &[y]);
                let y = all.0.push(Func::Add, &[y, Arg::Scalar(1.0)]);
                let func = self.rng.one(&[Func::Div, Func::Pow]);
                if func == Func::Pow {
                    let x = tame(&mut all.0, Func::Log, x);
                    let y = all.0.push(Func::Min, &[y, Arg::Scalar(2.5)]);
                    let x = all.0.push(Func::Min, &[x, Arg::Scalar(2.0)]);
                    all.0.push(func, &[x, y])
                } else {
                    all.0.push(func, &[x, y])
                }
            }
            8 => {
                let slopes = self.rng.values(to.c, 0.5);
                let slopes = all.0.vector(slopes);
                all.0.push(Func::PRelu, &[x, slopes])
            }
            _ => {
                let y = self.argument(to, all);
                let func = self
                    .rng
                    .one(&[Func::Add, Func::Add, Func::Sub, Func::Min, Func::Max]);
                let args = if self.rng.chance(0.5) { [x, y] } else { [y, x] };
                all.0.push(func, &args)
            }
        }
    }

    /// Another operand: a number, a vector, a row operand, a whole operand or an earlier value.
    fn argument(&mut self, to: &Rows, (expr, extras, whole): &mut Tail) -> Arg {
        match self.rng.below(8) {
            0 => Arg::Scalar(self.rng.unit()),
            1 => {
                let values = self.rng.values(to.c, 1.0);
                expr.vector(values)
            }
            2 if !expr.code.is_empty() => Arg::Value(self.rng.below(expr.code.len() as u64) as u32),
            3 | 4 if !self.whole.is_empty() => {
                let id = self.rng.one(&self.whole);
                let dims = &self.graph.tensor(id).dims;
                if (dims[0] == 1 || dims[0] == to.n) && (dims[1] == 1 || dims[1] == to.c) {
                    whole.push(Some(id));
                    Arg::Whole(whole.len() as u32 - 1)
                } else {
                    Arg::Input(0)
                }
            }
            _ => match self.extra(to) {
                Some(extra) => {
                    extras.push(extra);
                    Arg::Input(extras.len() as u32)
                }
                None => Arg::Scalar(self.rng.unit()),
            },
        }
    }

    /// A row operand of the output's height, its width or 1, its channels or 1.
    fn extra(&mut self, to: &Rows) -> Option<Operand> {
        let fits = |t: &&Rows| {
            t.n == to.n
                && t.h == to.h
                && t.scale[0] == to.scale[0]
                && (t.w == 1 || t.w == to.w && t.scale[1] == to.scale[1])
        };
        let all: Vec<Rows> = self.rows.iter().filter(fits).cloned().collect();
        if all.is_empty() {
            return None;
        }
        let last = all.len() as u64 - 1;
        let from = &all[self.rng.one(&[last, self.rng.clone().below(last + 1)]) as usize];
        if from.c >= to.c && self.rng.chance(0.8) {
            let start = self.rng.below(from.c - to.c + 1);
            return Some(Operand(vec![from.part(start..start + to.c)]));
        }
        // Two tensors side by side have together as many channels.
        if from.c < to.c && self.rng.chance(0.5) {
            let rest = to.c - from.c;
            let beside = all.iter().find(|t| t.same_size(from) && t.c >= rest);
            if let Some(beside) = beside {
                return Some(Operand(vec![from.whole(), beside.part(0..rest)]));
            }
        }
        let channel = self.rng.below(from.c);
        Some(Operand(vec![from.part(channel..channel + 1)]))
    }
}

/// `x` brought to where `func` is well conditioned.
fn tame(expr: &mut Expr, func: Func, x: Arg) -> Arg {
    match func {
        Func::Exp => expr.push(Func::Clip { lo: -3.0, hi: 2.0 }, &[x]),
        Func::Log | Func::Sqrt | Func::Reciprocal => {
            let x = expr.push(Func::Abs, &[x]);
            expr.push(Func::Add, &[x, Arg::Scalar(0.4)])
        }
        _ => x,
    }
}
