//! Chains of element-wise functions: what is applied to a row's values in one pass.

use serde::Serialize;

use crate::func::Func;

/// A straight-line program over one element at a time. Instruction `i` defines value `i`; the last
/// instruction's value is the result (an empty program gives input 0 unchanged).
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Expr {
    /// The instructions, in order.
    pub code: Vec<Inst>,
    /// Constant vectors, one value per channel, that [`Arg::Channel`] names.
    pub vectors: Vec<Vec<f32>>,
}

/// One instruction of an [`Expr`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Inst {
    /// What is computed.
    pub func: Func,
    /// Operands; the first `func.arity()` count, the others are ignored.
    pub args: [Arg; 3],
}

/// An operand of an [`Inst`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub enum Arg {
    /// Input 0 is the node's own result (for [`super::Op::Pointwise`]: its first operand); input
    /// `k > 0` is extra operand `k − 1`: the same row, column and channel of another tensor. An
    /// extra operand of one channel stands for every channel; one of width 1 for every column.
    Input(u32),
    /// The value of an earlier instruction.
    Value(u32),
    /// The same number everywhere.
    Scalar(f32),
    /// This element's channel in `vectors[_]`.
    Channel(u32),
    /// This element's channel (and batch item) in the node's whole operand `_`, which holds
    /// `[n, c]`, `[1, c]`, `[n, 1]` or `[1, 1]` values in that order.
    Whole(u32),
}

impl Expr {
    /// Appends an instruction and returns its value.
    pub fn push(&mut self, func: Func, args: &[Arg]) -> Arg {
        debug_assert_eq!(args.len(), func.arity());
        let mut all = [Arg::Scalar(0.0); 3];
        all[..args.len()].copy_from_slice(args);
        self.code.push(Inst { func, args: all });
        Arg::Value(self.code.len() as u32 - 1)
    }

    /// Adds a constant vector and returns the operand that names it.
    pub fn vector(&mut self, values: Vec<f32>) -> Arg {
        self.vectors.push(values);
        Arg::Channel(self.vectors.len() as u32 - 1)
    }

    /// Whether the result is input 0 unchanged.
    pub fn is_identity(&self) -> bool {
        self.code.is_empty()
    }
}
