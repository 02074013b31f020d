//! All turns of a sweep, stepped by the rules that [`crate::sweep`] states and its own hand.
//!
//! ```text
//!            dropped        front           a row is made once, is alive while some window may
//!  rows   ░░░░░░░│▓▓▓▓▓▓▓▓▓▓▓│              still read it, and has a slot as long
//!                 └─ reads ─┘
//! ```
//!
//! Turns are stepped until they repeat. Where all fronts and all dropped rows of a turn are those of
//! an earlier one, further down by rows that windows, grains and schedules do not tell apart, the
//! turns between them were stepped for all that follow, as long as nothing comes near an end.

use std::ops::Range;

use super::super::{Home, TurnInstr};
use super::span::Span;
use super::{Sweeping, ensure};
use crate::error::Result;
use crate::graph::Axis;
use crate::sweep::Ratio;

pub(super) fn check(at: &Sweeping<'_>) -> Result<()> {
    paces(at)?;
    let phase = at.phase;
    let mut run = Run::new(*at);
    let mut turn = 0;
    while turn < phase.turns {
        ensure!(
            run.behind > 0,
            "phase {} ends after {turn} turns, not {}",
            at.number,
            phase.turns
        );
        for instr in &phase.turn {
            match *instr {
                TurnInstr::Exec { step, .. } => run.exec(step, turn)?,
                TurnInstr::Drop { rows, .. } => run.drop(rows)?,
            }
        }
        turn = run.leap(turn + 1);
    }
    for (s, step) in phase.sweep.steps.iter().enumerate() {
        let (passed, turns) = (run.passed[s], phase.turns);
        ensure!(
            passed == step.height,
            "{} has {passed} rows of {} after {turns} turns",
            at.step(s),
            step.height
        );
    }
    for (k, (&said, &most)) in phase.carry.iter().zip(&run.carry).enumerate() {
        ensure!(
            said == most,
            "{}: at most {most} outlive a turn, not {said}",
            at.rows(k)
        );
    }
    Ok(())
}

/// Strips, grains and caps.
fn paces(at: &Sweeping<'_>) -> Result<()> {
    let (phase, sweep) = (at.phase, &at.phase.sweep);
    let sources = sweep.steps.iter().filter(|s| s.reads.is_empty());
    let height = sources
        .map(|s| {
            ceil(
                s.height,
                Ratio {
                    num: s.ratio.den,
                    den: s.ratio.num,
                },
            )
        })
        .max()
        .unwrap_or(0);
    ensure!(
        u128::from(sweep.height) == height,
        "phase {} is {height} rows high, not {}",
        at.number,
        sweep.height
    );
    let strip = phase.strip;
    let fits = (1..=sweep.height.max(1)).contains(&strip);
    ensure!(
        fits,
        "phase {}: a strip of {strip} rows in a sweep of {}",
        at.number,
        sweep.height
    );
    for (s, (step, pace)) in sweep.steps.iter().zip(&phase.pace).enumerate() {
        let (grain, own) = (pace.grain, step.grains[0]);
        ensure!(
            pace.offset < grain
                && grain.is_multiple_of(own.size)
                && pace.offset % own.size == own.offset,
            "{}: grains of {grain} rows from row {}, not of {} from {}",
            at.step(s),
            pace.offset,
            own.size,
            own.offset
        );
        let due = ceil(strip, step.ratio).clamp(1, u128::from(step.height.max(1)));
        let cap = due.next_multiple_of(u128::from(grain));
        ensure!(
            u128::from(pace.cap) == cap,
            "{} has a cap of {} rows, not {cap}",
            at.step(s),
            pace.cap
        );
    }
    Ok(())
}

/// `⌈x · ratio⌉`.
fn ceil(x: u64, ratio: Ratio) -> u128 {
    (u128::from(x) * u128::from(ratio.num)).div_ceil(u128::from(ratio.den))
}

/// One read of a step.
struct Reader<'a> {
    rows: usize,
    axis: &'a Axis,
    span: Span<'a>,
    /// How many outputs the rows that exist allow, and how many rows allow one more.
    ready: u64,
    next: u64,
    /// The first row that outputs still to come read.
    keeps: u64,
}

impl Reader<'_> {
    /// How many rows allow an output more than `ready`; no number does once all are.
    fn needs(&self) -> u64 {
        if self.ready < self.axis.output {
            self.axis.needs(self.ready)
        } else {
            u64::MAX
        }
    }
}

/// How far a sweep was before a turn.
#[derive(Clone)]
struct Place {
    turn: u64,
    passed: Vec<u64>,
    dropped: Vec<u64>,
}

/// A sweep between two instructions.
struct Run<'a> {
    at: Sweeping<'a>,
    readers: Vec<Reader<'a>>,
    /// Which of `readers` each step has.
    of_step: Vec<Range<usize>>,
    /// Which of `readers` read each tensor.
    of_rows: Vec<Vec<usize>>,
    /// Rows that each step has passed.
    passed: Vec<u64>,
    /// Steps that have not passed all.
    behind: usize,
    /// Rows of each tensor that exist.
    front: Vec<u64>,
    /// Rows of each tensor that were dropped.
    dropped: Vec<u64>,
    /// Slots of each pool that are taken.
    taken: Vec<u64>,
    /// The most rows of each tensor that outlived a turn.
    carry: Vec<u64>,
    /// An earlier place, that later ones are held against.
    mark: Place,
}

impl<'a> Run<'a> {
    fn new(at: Sweeping<'a>) -> Self {
        let sweep = &at.phase.sweep;
        let (mut readers, mut of_step) = (Vec::new(), Vec::new());
        let mut of_rows = vec![Vec::new(); sweep.rows.len()];
        for step in &sweep.steps {
            let first = readers.len();
            for read in &step.reads {
                of_rows[read.rows].push(readers.len());
                let (axis, span) = (&read.axis, Span::new(&read.axis));
                let mut reader = Reader {
                    rows: read.rows,
                    axis,
                    span,
                    ready: 0,
                    next: 0,
                    keeps: axis.tail(0),
                };
                reader.next = reader.needs();
                readers.push(reader);
            }
            of_step.push(first..readers.len());
        }
        Run {
            at,
            readers,
            of_step,
            of_rows,
            passed: vec![0; sweep.steps.len()],
            behind: sweep.steps.iter().filter(|s| s.height > 0).count(),
            front: vec![0; sweep.rows.len()],
            dropped: vec![0; sweep.rows.len()],
            taken: vec![0; at.phase.pools.len()],
            carry: vec![0; sweep.rows.len()],
            mark: Place {
                turn: 0,
                passed: vec![0; sweep.steps.len()],
                dropped: vec![0; sweep.rows.len()],
            },
        }
    }

    fn exec(&mut self, s: usize, turn: u64) -> Result<()> {
        let at = self.at;
        let (step, from) = (&at.phase.sweep.steps[s], self.passed[s]);
        let to = self.advanced(s, turn);
        if to == from {
            return Ok(());
        }
        for reader in &mut self.readers[self.of_step[s].clone()] {
            let alive = self.dropped[reader.rows]..self.front[reader.rows];
            if let Some(reads) = reader.span.of(&(from..to)) {
                let exist = alive.start <= reads.start && reads.end <= alive.end;
                ensure!(
                    exist,
                    "{}, turn {turn}: {reads:?} are read, {alive:?} are alive",
                    at.rows(reader.rows)
                );
            }
            reader.keeps = reader.axis.tail(to);
        }
        self.passed[s] = to;
        self.behind -= usize::from(to == step.height);
        let Some(rows) = step.makes else {
            return Ok(());
        };
        self.front[rows] = to;
        if let Home::Slots(pool) = at.phase.homes[rows] {
            let (taken, slots) = (&mut self.taken[pool], at.phase.pools[pool].slots);
            *taken += to - from;
            ensure!(
                *taken <= slots,
                "{}, turn {turn}: {taken} slots are taken of {slots}",
                at.rows(rows)
            );
        }
        Ok(())
    }

    /// How many rows step `s` has passed after its advance in `turn`.
    fn advanced(&mut self, s: usize, turn: u64) -> u64 {
        let (step, pace) = (&self.at.phase.sweep.steps[s], &self.at.phase.pace[s]);
        let from = self.passed[s];
        let allowed = if step.reads.is_empty() {
            let largest = u64::saturating_mul(turn + 1, self.at.phase.strip);
            let due = ceil(largest, step.ratio).min(u128::from(u64::MAX)) as u64;
            due.saturating_sub(pace.delay)
        } else {
            let (mut ready, mut ended) = (step.height, true);
            for reader in &mut self.readers[self.of_step[s].clone()] {
                let front = self.front[reader.rows];
                while reader.next <= front {
                    reader.ready += 1;
                    reader.next = reader.needs();
                }
                ready = ready.min(reader.ready);
                ended &= front == reader.axis.input;
            }
            if ended {
                ready
            } else {
                ready.saturating_sub(pace.delay)
            }
        };
        let to = allowed.min(from.saturating_add(pace.cap)).min(step.height);
        if to == step.height || pace.grain == 1 {
            return to.max(from);
        }
        // only whole grains, but for the last
        let whole = |rows: u64| pace.offset + rows / pace.grain * pace.grain;
        to.checked_sub(pace.offset).map_or(0, whole).max(from)
    }

    fn drop(&mut self, rows: usize) -> Result<()> {
        let front = self.front[rows];
        // what nobody reads goes at once
        let keeps = self.of_rows[rows].iter().map(|&r| self.readers[r].keeps);
        let tail = keeps.fold(front, u64::min);
        let dropped = self.dropped[rows];
        ensure!(
            dropped <= tail,
            "{}: row {tail} is needed, {dropped} are dropped",
            self.at.rows(rows)
        );
        if let Home::Slots(pool) = self.at.phase.homes[rows] {
            self.taken[pool] -= tail - dropped;
        }
        self.dropped[rows] = tail;
        self.carry[rows] = self.carry[rows].max(front - tail);
        Ok(())
    }

    /// Passes over turns that were stepped in all but their place, `turn` being the next; returns the
    /// one after them.
    fn leap(&mut self, turn: u64) -> u64 {
        // ever more turns are held against those since the mark, so that their cycle is among them
        if turn < 2 * self.mark.turn.max(3) {
            return turn;
        }
        let turns = turn - self.mark.turn;
        let moves = self.passed.iter().zip(&self.mark.passed);
        let by: Vec<u64> = moves.map(|(now, mark)| now - mark).collect();
        let times = self.cycles(turns, &by);
        for (s, step) in self.at.phase.sweep.steps.iter().enumerate() {
            self.passed[s] += times * by[s];
            if let Some(rows) = step.makes {
                self.front[rows] = self.passed[s];
                if let Home::Slots(_) = self.at.phase.homes[rows] {
                    self.dropped[rows] += times * by[s];
                }
            }
            for reader in &mut self.readers[self.of_step[s].clone()] {
                reader.ready = self.passed[s];
                reader.next = reader.needs();
                reader.keeps = reader.axis.tail(self.passed[s]);
            }
        }
        self.mark = Place {
            turn: turn + times * turns,
            passed: self.passed.clone(),
            dropped: self.dropped.clone(),
        };
        self.mark.turn
    }

    /// How often the last `turns`, which moved each step by so many rows, come again just so.
    fn cycles(&self, turns: u64, by: &[u64]) -> u64 {
        let phase = self.at.phase;
        let mut times = u64::MAX;
        for (s, (step, pace)) in phase.sweep.steps.iter().zip(&phase.pace).enumerate() {
            let strips = u128::from(turns) * u128::from(phase.strip);
            let due = strips * u128::from(step.ratio.num);
            let late = due != u128::from(by[s]) * u128::from(step.ratio.den);
            if by[s] == 0 || !by[s].is_multiple_of(pace.grain) || step.reads.is_empty() && late {
                return 0;
            }
            // a tensor that is complete is not waited for, so that none may be
            let (mut start, mut end) = (0, step.height - 1);
            for reader in &self.readers[self.of_step[s].clone()] {
                let maker = phase.sweep.rows[reader.rows].maker;
                let even = reader.axis.repeats(by[s], by[maker]);
                (start, end) = (start.max(even.start), end.min(even.end));
            }
            if self.mark.passed[s] < start {
                return 0;
            }
            let reach = self.passed[s].saturating_add(pace.cap);
            let left = end.saturating_sub(reach.saturating_add(pace.delay));
            times = times.min(left / by[s]);
        }
        let alike = |(r, home): (usize, &Home)| {
            let dropped = self.dropped[r] - self.mark.dropped[r];
            matches!(home, Home::Stored(_)) || dropped == by[phase.sweep.rows[r].maker]
        };
        let alike = phase.homes.iter().enumerate().all(alike);
        if alike { times } else { 0 }
    }
}
