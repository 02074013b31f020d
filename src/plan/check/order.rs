//! Order within a turn: nothing runs before what it needs has ended.
//!
//! ```text
//!  Exec load ◀── Exec conv ◀── Exec save        an arrow is an entry of `after`; a read needs a way
//!      ▲             ▲  ▲          ▲            along arrows to its maker, a drop to all readers
//!      └─ Drop input ┘  └─ Drop x ─┘
//! ```

use super::super::TurnInstr;
use super::{Sweeping, ensure};
use crate::error::Result;

pub(super) fn check(at: &Sweeping<'_>) -> Result<()> {
    let (sweep, turn) = (&at.phase.sweep, &at.phase.turn);
    let mut exec: Vec<Option<usize>> = vec![None; sweep.steps.len()];
    let mut drop: Vec<Option<usize>> = vec![None; sweep.rows.len()];
    let mut ended = Ended::default();
    for (i, instr) in turn.iter().enumerate() {
        let (name, after, slot) = match instr {
            TurnInstr::Exec { step, after } => {
                ensure!(*step < exec.len(), "phase {}: no step {step}", at.number);
                (at.step(*step), after, &mut exec[*step])
            }
            TurnInstr::Drop { rows, after } => {
                ensure!(*rows < drop.len(), "phase {}: no rows {rows}", at.number);
                (
                    format!("{}: the drop", at.rows(*rows)),
                    after,
                    &mut drop[*rows],
                )
            }
        };
        let again = slot.replace(i);
        ensure!(again.is_none(), "{name} is in the turn twice");
        for &a in after {
            ensure!(
                a < i,
                "{name} is instruction {i} and waits for {a}, which is not before it"
            );
        }
        ended.push(after);
    }
    for (s, step) in sweep.steps.iter().enumerate() {
        let i = exec[s];
        ensure!(i.is_some(), "{} is not in the turn", at.step(s));
        for read in &step.reads {
            let maker = sweep.rows[read.rows].maker;
            let waits = i.zip(exec[maker]).is_some_and(|(i, m)| ended.before(i, m));
            ensure!(
                waits,
                "{} does not wait for {}, whose rows it reads",
                at.step(s),
                at.step(maker)
            );
        }
    }
    for (k, rows) in sweep.rows.iter().enumerate() {
        if rows.stored {
            ensure!(drop[k].is_none(), "{} are stored and dropped", at.rows(k));
            continue;
        }
        ensure!(drop[k].is_some(), "{} are never dropped", at.rows(k));
        for step in rows.readers.iter().map(|&(s, _)| s).chain([rows.maker]) {
            let waits = drop[k]
                .zip(exec[step])
                .is_some_and(|(i, e)| ended.before(i, e));
            ensure!(
                waits,
                "{} are dropped without waiting for {}",
                at.rows(k),
                at.step(step)
            );
        }
    }
    Ok(())
}

/// For each instruction, which others have ended when it starts: a bit each.
#[derive(Default)]
struct Ended(Vec<Vec<u64>>);

impl Ended {
    /// Adds an instruction that waits for `after`, all of them added before.
    fn push(&mut self, after: &[usize]) {
        let mut bits = vec![0u64; self.0.len() / 64 + 1];
        for &a in after {
            for (all, known) in bits.iter_mut().zip(&self.0[a]) {
                *all |= known;
            }
            bits[a / 64] |= 1 << (a % 64);
        }
        self.0.push(bits);
    }

    /// Whether instruction `earlier` has ended when `i` starts.
    fn before(&self, i: usize, earlier: usize) -> bool {
        self.0[i]
            .get(earlier / 64)
            .is_some_and(|bits| bits >> (earlier % 64) & 1 == 1)
    }
}
