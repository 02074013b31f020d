//! The super-turn, paces, turns and carries.

use stripmill::plan::{Home, PhasePlan, TurnInstr};

use super::Faults;

impl Faults<'_> {
    pub(super) fn turns(&mut self) {
        for (p, phase) in self.phases() {
            self.instructions(p, phase);
            self.waits(p, phase);
            self.paces(p, phase);
            self.add_in(p, "a carry too many", |q| q.carry.push(0));
            let execs = (0..phase.turn.len()).collect::<Vec<_>>();
            for (k, _) in phase
                .sweep
                .rows
                .iter()
                .enumerate()
                .filter(|(_, rows)| rows.stored)
            {
                let stored = TurnInstr::Drop {
                    rows: k,
                    after: execs.clone(),
                };
                self.add_in(p, &format!("stored rows {k} are dropped"), |q| {
                    q.turn.push(stored)
                });
            }
            self.add_in(p, "a turn more", |q| q.turns += 1);
            if phase.turns > 0 {
                self.add_in(p, "a turn less", |q| q.turns -= 1);
                self.add_in(p, "no end of turns", |q| q.turns = u64::MAX);
            }
            for k in 0..phase.carry.len() {
                self.add_in(p, &format!("rows {k} carry one more, it says"), |q| {
                    q.carry[k] += 1
                });
            }
        }
    }

    fn instructions(&mut self, p: usize, phase: &PhasePlan) {
        for i in 0..phase.turn.len() {
            self.add_in(p, &format!("turn: {i} is missing"), |q| {
                q.turn.remove(i);
                for instr in &mut q.turn {
                    after(instr).retain(|&a| a != i);
                    after(instr)
                        .iter_mut()
                        .filter(|a| **a > i)
                        .for_each(|a| *a -= 1);
                }
            });
            self.add_in(p, &format!("turn: {i} twice"), |q| {
                q.turn.push(q.turn[i].clone())
            });
            if i > 0 {
                // the order of two neighbours matters where one waits for the other
                let waits = ended(&phase.turn, i).contains(&(i - 1));
                if waits {
                    self.add_in(p, &format!("turn: {} after {i}", i - 1), |q| {
                        q.turn.swap(i - 1, i)
                    });
                    self.add_in(
                        p,
                        &format!("turn: {} after {i}, waits told right", i - 1),
                        |q| {
                            q.turn.swap(i - 1, i);
                            for a in q.turn.iter_mut().flat_map(after) {
                                *a = if *a == i {
                                    i - 1
                                } else if *a == i - 1 {
                                    i
                                } else {
                                    *a
                                };
                            }
                        },
                    );
                }
            }
            let none = usize::MAX;
            self.add_in(
                p,
                &format!("turn: {i} is of something that is none"),
                |q| match &mut q.turn[i] {
                    TurnInstr::Exec { step, .. } => *step = none,
                    TurnInstr::Drop { rows, .. } => *rows = none,
                },
            );
        }
    }

    fn waits(&mut self, p: usize, phase: &PhasePlan) {
        for i in 0..phase.turn.len() {
            let waits = after(&mut phase.turn[i].clone()).clone();
            for (k, &wait) in waits.iter().enumerate() {
                let others = waits.iter().filter(|&&w| w != wait);
                // one that follows from another wait can be left out
                let implied = others
                    .into_iter()
                    .any(|&w| ended(&phase.turn, w).contains(&wait));
                if !implied {
                    self.add_in(p, &format!("turn: {i} does not wait for {wait}"), |q| {
                        after(&mut q.turn[i]).remove(k);
                    });
                }
                self.add_in(p, &format!("turn: {i} waits for itself, not {wait}"), |q| {
                    after(&mut q.turn[i])[k] = i
                });
                self.add_in(
                    p,
                    &format!("turn: {i} waits for nothing, not {wait}"),
                    |q| {
                        after(&mut q.turn[i])[k] = usize::MAX;
                    },
                );
            }
        }
    }

    fn paces(&mut self, p: usize, phase: &PhasePlan) {
        let sweep = &phase.sweep;
        for (s, pace) in phase.pace.iter().enumerate() {
            self.add_in(p, &format!("step {s} has a cap one higher"), |q| {
                q.pace[s].cap += 1
            });
            self.add_in(p, &format!("step {s} has a cap one lower"), |q| {
                q.pace[s].cap -= 1
            });
            self.add_in(p, &format!("step {s} has half its grain"), |q| {
                q.pace[s].grain /= 2
            });
            self.add_in(p, &format!("step {s} has its grid at its grain"), |q| {
                q.pace[s].offset = pace.grain
            });
            // twice the grain leaves an even cap a cap
            if !pace.cap.is_multiple_of(2 * pace.grain) {
                self.add_in(p, &format!("step {s} has twice its grain"), |q| {
                    q.pace[s].grain *= 2
                });
            }
            // a step that waits for the end of its input leaves all of it alive; an input that it
            // does not read from the first row on may be dropped before
            let waits = sweep.steps[s]
                .reads
                .iter()
                .any(|read| match phase.homes[read.rows] {
                    Home::Slots(pool) => {
                        read.axis.tail(0) == 0 && read.axis.input > phase.pools[pool].slots
                    }
                    Home::Stored(_) => false,
                });
            if waits {
                self.add_in(p, &format!("step {s} waits for the end"), |q| {
                    q.pace[s].delay = u64::MAX
                });
            }
        }
        // a single source sets the number of turns, unless more of them flush the sweep than one row
        // less in the last strip
        let sources = sweep.steps.iter().filter(|s| s.is_source()).count();
        if sources == 1 {
            let s = sweep
                .steps
                .iter()
                .position(|s| s.is_source())
                .expect("counted");
            self.add_in(p, "the source is a strip late", |q| {
                q.pace[s].delay += q.strip
            });
        }
        self.add_in(p, "a strip one higher", |q| q.strip += 1);
        self.add_in(p, "a strip one lower", |q| q.strip -= 1);
        // the planner keeps delays only where the pools together are smaller for them
        if phase.pace.iter().any(|pace| pace.delay > 0) {
            self.add_in(p, "no delays", |q| {
                q.pace.iter_mut().for_each(|pace| pace.delay = 0)
            });
        }
        self.add_in(p, "a pace too many", |q| {
            q.pace.extend(q.pace.last().copied())
        });
    }
}

fn after(instr: &mut TurnInstr) -> &mut Vec<usize> {
    match instr {
        TurnInstr::Exec { after, .. } | TurnInstr::Drop { after, .. } => after,
    }
}

/// The instructions that have ended when instruction `i` starts.
fn ended(turn: &[TurnInstr], i: usize) -> Vec<usize> {
    let direct = after(&mut turn[i].clone()).clone();
    let mut all = direct.clone();
    for a in direct {
        all.extend(ended(turn, a));
    }
    all
}
