//! The recurrence of fronts: which rows a turn makes.
//!
//! Away from the ends of the image a turn depends on where fronts stand to each other alone, so that
//! turns repeat, some rows further down, once all fronts have moved evenly:
//!
//! ```text
//!  fill         mark    now                                          drain
//!  ├────────────┼───────┼───────┬───────┬───────┬───────┬──────┬──────┤
//!                └ seen ┘└───────── leapt over ────────┘
//! ```

use std::ops::Range;

use serde::Serialize;

use super::{Step, Sweep};

/// How fast a step goes: at most `cap` rows a turn, in whole grains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct Pace {
    /// Rows that are made together, at least 1.
    pub grain: u64,
    /// A row at which a grain starts, less than `grain`.
    pub offset: u64,
    /// Most rows in one turn, a multiple of the grain.
    pub cap: u64,
    /// Rows that it stays behind what its inputs allow, until they end; for a source, rows that it
    /// stays behind its schedule.
    pub delay: u64,
}

impl Sweep {
    /// The pace of every step at `strip` rows of the largest source a turn, without delays.
    pub fn pace(&self, strip: u64) -> Vec<Pace> {
        let at = |s: &Step| Pace {
            grain: s.grains[0].size,
            offset: s.grains[0].offset,
            cap: s
                .ratio
                .ceil_of(strip)
                .clamp(1, s.height.max(1))
                .next_multiple_of(s.grains[0].size),
            delay: 0,
        };
        self.steps.iter().map(at).collect()
    }
}

/// The fronts of a sweep, turn by turn.
#[derive(Debug, Clone)]
pub struct Fronts<'a> {
    sweep: &'a Sweep,
    pace: &'a [Pace],
    strip: u64,
    turn: u64,
    /// Rows that each step has passed.
    passed: Vec<u64>,
    behind: usize,
    /// An earlier turn, and what had passed before it.
    mark: (u64, Vec<u64>),
}

impl<'a> Fronts<'a> {
    /// Before the first turn.
    pub fn new(sweep: &'a Sweep, pace: &'a [Pace], strip: u64) -> Self {
        let behind = sweep.steps.iter().filter(|s| s.height > 0).count();
        Fronts {
            sweep,
            pace,
            strip,
            turn: 0,
            passed: vec![0; sweep.steps.len()],
            behind,
            mark: (0, Vec::new()),
        }
    }

    /// Whether every step has passed all its rows.
    pub fn done(&self) -> bool {
        self.behind == 0
    }

    /// The turn that is being made.
    pub fn turn(&self) -> u64 {
        self.turn
    }

    /// Rows that step `i` has passed.
    pub fn passed(&self, i: usize) -> u64 {
        self.passed[i]
    }

    /// How many rows of [`Sweep::rows`] `rows` exist.
    pub fn front(&self, rows: usize) -> u64 {
        self.passed[self.sweep.rows[rows].maker]
    }

    /// Advances step `i`, whose inputs have advanced in this turn, and returns the rows it makes.
    pub fn advance(&mut self, i: usize) -> Range<u64> {
        let (step, pace, from) = (&self.sweep.steps[i], &self.pace[i], self.passed[i]);
        if from >= step.height {
            return from..from;
        }
        let mut to = if step.is_source() {
            let schedule = (self.turn + 1).saturating_mul(self.strip);
            step.ratio
                .ceil_of(schedule)
                .saturating_sub(pace.delay)
                .min(from + pace.cap)
        } else {
            let mut to = from.saturating_add(pace.cap);
            let held = step.reads.iter().any(|r| self.front(r.rows) < r.axis.input);
            let delay = if held { pace.delay } else { 0 };
            for read in &step.reads {
                let ready = read
                    .axis
                    .ready(self.front(read.rows), from, to.saturating_add(delay));
                to = to.min(ready.saturating_sub(delay).max(from));
            }
            to
        };
        to = to.clamp(from, step.height);
        if to < step.height {
            // below the first whole grain there is none
            to = to.saturating_sub((to + pace.grain - pace.offset) % pace.grain.max(1));
            to = to.max(from);
        }
        self.passed[i] = to;
        if to == step.height {
            self.behind -= 1;
        }
        from..to
    }

    /// Ends the turn.
    pub fn end_turn(&mut self) {
        self.turn += 1;
    }

    /// Leaps over turns to come, if each is one of the turns since an earlier call again, further
    /// down: with as many rows made, and as many kept. Called at every turn, it looks at few.
    pub fn leap(&mut self) {
        // twice as far each time, so that the period of the strides and strips is a divisor in the end
        if self.turn < 2 * self.mark.0.max(3) {
            return;
        }
        let turns = self.turn - self.mark.0;
        let steps = 0..self.mark.1.len();
        let times = steps.map(|i| self.repeats(i, turns)).min().unwrap_or(0);
        for (passed, mark) in self.passed.iter_mut().zip(&self.mark.1) {
            *passed += times * (*passed - mark);
        }
        self.turn += times * turns;
        self.mark = (self.turn, self.passed.clone());
    }

    /// How often step `i` can make again what it made in the last `turns`, the turns since the mark,
    /// if all others do.
    fn repeats(&self, i: usize, turns: u64) -> u64 {
        let (step, pace, mark) = (&self.sweep.steps[i], &self.pace[i], &self.mark.1);
        let by = |i: usize| self.passed[i] - mark[i];
        let (rows, due) = (
            u128::from(by(i)),
            u128::from(turns) * u128::from(self.strip),
        );
        let scheduled = due * u128::from(step.ratio.num) == rows * u128::from(step.ratio.den);
        if rows == 0 || !by(i).is_multiple_of(pace.grain) || step.is_source() && !scheduled {
            return 0;
        }
        let even = step.reads.iter().map(|read| {
            let maker = self.sweep.rows[read.rows].maker;
            read.axis.repeats(by(i), by(maker))
        });
        let start = even.clone().map(|e| e.start).max().unwrap_or(0);
        // no turn may come to the last row: what has ended is ready at once
        let end = even
            .map(|e| e.end)
            .min()
            .unwrap_or(u64::MAX)
            .min(step.height - 1);
        if mark[i] < start {
            return 0;
        }
        let ahead = pace.cap.saturating_add(pace.delay);
        end.saturating_sub(ahead).saturating_sub(self.passed[i]) / by(i)
    }

    /// The first row of `rows` that a step still reads, as far as the steps have passed by now; its
    /// height where none does.
    pub fn tail(&self, rows: usize) -> u64 {
        let readers = &self.sweep.rows[rows].readers;
        let tail = |&(step, read): &(usize, usize)| {
            self.sweep.steps[step].reads[read]
                .axis
                .tail(self.passed[step])
        };
        readers.iter().map(tail).min().unwrap_or(u64::MAX)
    }
}
