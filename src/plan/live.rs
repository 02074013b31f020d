//! How many rows of each tensor are alive: the sizes of the pools of slots.

use super::{ALIGN, TurnInstr};
use crate::sweep::{Fronts, Pace, Rows, Sweep};

/// What a sweep keeps alive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Usage {
    /// For each pool, the most slots taken at any step of any turn.
    pub(super) slots: Vec<u64>,
    /// Turns that it took.
    pub(super) turns: u64,
    /// For each of the sweep's rows, the most rows that outlive a turn (its carry).
    pub(super) carry: Vec<u64>,
}

/// The pools of a sweep: which pool each tensor's rows are in (`None` for stored tensors), and the
/// bytes of a slot. Tensors share a pool whose rows have nearly equal bytes (windows of a panel, and
/// of convolutions without padding, differ by a few columns): down to 7/8 of the slot.
pub(super) fn pools(sweep: &Sweep, row_bytes: &[u64]) -> (Vec<Option<usize>>, Vec<u64>) {
    let slotted = || {
        sweep
            .rows
            .iter()
            .zip(row_bytes)
            .filter(|(rows, _)| !rows.stored)
    };
    let mut sizes: Vec<u64> = slotted()
        .map(|(_, &bytes)| bytes.next_multiple_of(ALIGN))
        .collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    sizes.dedup_by(|smaller, slot| *smaller >= *slot / 8 * 7);
    let of = |(rows, &bytes): (&Rows, &u64)| {
        let fits = sizes.iter().rposition(|&slot| slot >= bytes);
        if rows.stored { None } else { fits }
    };
    (sweep.rows.iter().zip(row_bytes).map(of).collect(), sizes)
}

/// The super-turn: every step in order, and after each the rows that it was the last to need.
pub(super) fn super_turn(sweep: &Sweep) -> Vec<TurnInstr> {
    let mut turn = Vec::new();
    let mut exec_of = vec![0; sweep.steps.len()];
    for (s, step) in sweep.steps.iter().enumerate() {
        let mut after: Vec<usize> = step
            .reads
            .iter()
            .map(|r| exec_of[sweep.rows[r.rows].maker])
            .collect();
        after.sort_unstable();
        after.dedup();
        exec_of[s] = turn.len();
        turn.push(TurnInstr::Exec { step: s, after });
        let touched = step.reads.iter().map(|r| r.rows).chain(step.makes);
        let mut ended: Vec<usize> = touched.filter(|&r| last_toucher(sweep, r) == s).collect();
        ended.sort_unstable();
        ended.dedup();
        for rows in ended {
            if !sweep.rows[rows].stored {
                let readers = sweep.rows[rows].readers.iter().map(|&(step, _)| step);
                let mut after: Vec<usize> = readers
                    .chain([sweep.rows[rows].maker])
                    .map(|s| exec_of[s])
                    .collect();
                after.sort_unstable();
                after.dedup();
                turn.push(TurnInstr::Drop { rows, after });
            }
        }
    }
    turn
}

/// The last step of a turn that reads or makes `rows`.
fn last_toucher(sweep: &Sweep, rows: usize) -> usize {
    let rows = &sweep.rows[rows];
    rows.readers
        .iter()
        .map(|&(step, _)| step)
        .chain([rows.maker])
        .max()
        .unwrap_or(0)
}

/// How many turns are stepped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limit {
    /// Until every step has moved, and a few turns more: a lower bound that is nearly always exact.
    Settled,
    /// All of them.
    Done,
}

/// Turns that [`Limit::Settled`] adds once every step has moved, besides those in which the slowest
/// step makes two rows.
const SETTLE: u64 = 16;

/// Steps a sweep and counts the slots.
pub(super) fn usage(
    sweep: &Sweep,
    pace: &[Pace],
    strip: u64,
    pool: &[Option<usize>],
    pools: usize,
    limit: Limit,
) -> Usage {
    let turn = super_turn(sweep);
    let slowest = sweep.steps.iter().map(|s| s.ratio.rows_for(2)).max();
    let settle = SETTLE + slowest.unwrap_or(0).div_ceil(strip.max(1));
    let mut left = settle;
    let mut fronts = Fronts::new(sweep, pace, strip);
    let mut alive = vec![0u64; sweep.rows.len()];
    let mut taken = vec![0u64; pools];
    let mut usage = Usage {
        slots: vec![0; pools],
        turns: 0,
        carry: vec![0; sweep.rows.len()],
    };
    while !fronts.done() && left > 0 {
        for instr in &turn {
            match instr {
                TurnInstr::Exec { step, .. } => {
                    let made = fronts.advance(*step);
                    let slotted = |rows: usize| Some((rows, pool[rows]?));
                    if let Some((rows, p)) = sweep.steps[*step].makes.and_then(slotted) {
                        alive[rows] += made.end - made.start;
                        taken[p] += made.end - made.start;
                        usage.slots[p] = usage.slots[p].max(taken[p]);
                    }
                }
                TurnInstr::Drop { rows, .. } => {
                    let front = fronts.front(*rows);
                    let kept = front - fronts.tail(*rows).min(front);
                    if let Some(p) = pool[*rows] {
                        taken[p] -= alive[*rows] - kept;
                    }
                    alive[*rows] = kept;
                    usage.carry[*rows] = usage.carry[*rows].max(kept);
                }
            }
        }
        fronts.end_turn();
        if limit == Limit::Done {
            fronts.leap();
        }
        let moving = |s: usize| fronts.passed(s) > 0 || sweep.steps[s].height == 0;
        if limit == Limit::Settled && (left < settle || (0..sweep.steps.len()).all(moving)) {
            left -= 1;
        }
    }
    usage.turns = fronts.turn();
    usage
}
