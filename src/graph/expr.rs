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

    /// How many values are alive at a time, at most. An instruction's value may stand where an operand
    /// was that it uses last.
    pub fn alive(&self) -> usize {
        let mut last = vec![0; self.code.len()];
        for (i, inst) in self.code.iter().enumerate() {
            for arg in &inst.args[..inst.func.arity()] {
                if let Arg::Value(v) = arg {
                    last[*v as usize] = i;
                }
            }
        }
        let alive = |i: usize| last[..i].iter().filter(|&&l| l > i).count() + 1;
        (0..self.code.len()).map(alive).max().unwrap_or(0)
    }

    /// Removes the first instruction: what used its value uses input 0.
    pub(super) fn drop_first(&mut self) {
        self.code.remove(0);
        let args = self.code.iter_mut().flat_map(|inst| &mut inst.args);
        for arg in args {
            *arg = match *arg {
                Arg::Value(0) => Arg::Input(0),
                Arg::Value(v) => Arg::Value(v - 1),
                other => other,
            };
        }
    }

    /// Removes the vectors that no instruction names.
    pub(super) fn drop_unused_vectors(&mut self) {
        let old = std::mem::take(&mut self.vectors);
        let mut places = vec![None; old.len()];
        for inst in &mut self.code {
            for arg in &mut inst.args[..inst.func.arity()] {
                if let Arg::Channel(k) = arg {
                    let at = *k as usize;
                    *k = *places[at].get_or_insert_with(|| {
                        self.vectors.push(old[at].clone());
                        self.vectors.len() as u32 - 1
                    });
                }
            }
        }
    }
}
