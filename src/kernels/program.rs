//! Element-wise programs: chains of functions, with registers for what is alive at a time.

use crate::error::{Error, Result};
use crate::func::Func;

/// A compiled chain of functions.
#[derive(Debug, Clone, Default)]
pub struct Program {
    code: Vec<Inst>,
    vectors: Vec<Vec<f32>>,
    /// Registers that values go to before the last.
    registers: usize,
}

/// An operand of a program's instruction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ProgramArg {
    /// Input 0 is the kernel's result, input `k > 0` the tail's extra operand `k − 1`.
    Input(u32),
    /// The value of an earlier instruction (once compiled: what a register holds).
    Reg(u32),
    /// The same number everywhere.
    Scalar(f32),
    /// The element's channel in vector `_`.
    Channel(u32),
    /// The element's channel in the tail's whole operand `_`.
    Whole(u32),
}

/// An instruction of a compiled program.
#[derive(Debug, Clone, Copy)]
pub(super) struct Inst {
    pub(super) func: Func,
    pub(super) args: [ProgramArg; 3],
    /// The register that the value goes to, except the last instruction's. It may be that of an
    /// operand, which is not read again.
    pub(super) to: usize,
}

/// Values that can be alive at a time.
pub(super) const REGISTERS: usize = 16;

impl Program {
    /// Gives each value a register: the program's values are numbered by instruction, and the last
    /// one is the result.
    ///
    /// # Errors
    ///
    /// Where an operand is not there yet, or more values are alive at a time than there are
    /// registers.
    pub fn compile(code: &[(Func, [ProgramArg; 3])], vectors: Vec<Vec<f32>>) -> Result<Self> {
        let mut last_use = vec![0; code.len()];
        for (i, (func, args)) in code.iter().enumerate() {
            for arg in &args[..func.arity()] {
                let missing = match *arg {
                    ProgramArg::Reg(k) if (k as usize) < i => {
                        last_use[k as usize] = i;
                        None
                    }
                    ProgramArg::Reg(k) => Some(format!("value {k} is used before it is made")),
                    ProgramArg::Channel(k) if k as usize >= vectors.len() => {
                        Some(format!("there is no vector {k}"))
                    }
                    _ => None,
                };
                if let Some(why) = missing {
                    return Err(Error::model("", why));
                }
            }
        }
        let mut owners: Vec<usize> = Vec::new();
        let mut register = vec![0; code.len()];
        let mut compiled = Vec::with_capacity(code.len());
        for (i, &(func, mut args)) in code.iter().enumerate() {
            args[func.arity()..].fill(ProgramArg::Scalar(0.0));
            for arg in &mut args {
                if let ProgramArg::Reg(k) = arg {
                    *k = register[*k as usize] as u32;
                }
            }
            let to = owners.iter().position(|&value| last_use[value] <= i);
            let to = to.unwrap_or(owners.len());
            if i + 1 < code.len() {
                owners.resize(owners.len().max(to + 1), 0);
                owners[to] = i;
                register[i] = to;
            }
            compiled.push(Inst { func, args, to });
        }
        if owners.len() > REGISTERS {
            return Err(Error::model(
                "",
                format!(
                    "{} values of a chain are alive at a time: {REGISTERS} is the most",
                    owners.len()
                ),
            ));
        }
        Ok(Program {
            code: compiled,
            vectors,
            registers: owners.len(),
        })
    }

    /// Whether it does nothing.
    pub fn is_empty(&self) -> bool {
        self.code.is_empty()
    }

    pub(super) fn code(&self) -> &[Inst] {
        &self.code
    }

    pub(super) fn vectors(&self) -> &[Vec<f32>] {
        &self.vectors
    }

    /// How many registers it needs.
    pub(super) fn registers(&self) -> usize {
        self.registers
    }
}
