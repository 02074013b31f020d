//! The scalar functions that expressions are made of: a name for each, with its parameters.
//!
//! [`crate::graph`] writes chains of them, [`crate::kernels`] runs the chains over rows with
//! vectors, and [`crate::dense`] runs them one at a time over whole tensors.

/// A function of one, two or three f32 values.
///
/// Truth values are 1.0 and 0.0. `Min` and `Max` keep the first operand where the two compare
/// equal and give NaN where either is NaN.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
#[allow(
    missing_docs,
    reason = "each name is the ONNX operator's, and its parameters are ONNX's"
)]
pub enum Func {
    // one operand
    Relu,
    LeakyRelu(f32),
    Elu(f32),
    Selu {
        alpha: f32,
        gamma: f32,
    },
    Celu(f32),
    ThresholdedRelu(f32),
    HardSigmoid {
        alpha: f32,
        beta: f32,
    },
    HardSwish,
    Clip {
        lo: f32,
        hi: f32,
    },
    Sigmoid,
    Tanh,
    Softplus,
    Softsign,
    Erf,
    Gelu,
    GeluTanh,
    Mish,
    /// `x · sigmoid(alpha · x)`.
    Swish(f32),
    Exp,
    Log,
    Sqrt,
    Reciprocal,
    Abs,
    Neg,
    Floor,
    Ceil,
    /// Half to even.
    Round,
    Sign,
    Sin,
    Cos,
    Not,
    /// The operand itself.
    Identity,
    // two operands
    Add,
    Sub,
    Mul,
    Div,
    Min,
    Max,
    Pow,
    /// `x` where `x ≥ 0`, else `x · slope`.
    PRelu,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    Equal,
    And,
    Or,
    Xor,
    // three operands
    /// The second operand where the first is not 0, else the third.
    Where,
    /// `x · a + b` in one rounding (a fused multiply-add).
    MulAdd,
}

impl Func {
    /// How many operands the function takes.
    pub fn arity(self) -> usize {
        use Func::*;
        match self {
            Where | MulAdd => 3,
            Add | Sub | Mul | Div | Min | Max | Pow | PRelu | Greater | GreaterOrEqual | Less
            | LessOrEqual | Equal | And | Or | Xor => 2,
            _ => 1,
        }
    }
}
