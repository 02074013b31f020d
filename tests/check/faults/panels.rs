//! Windows and owned columns.

use std::ops::Range;

use stripmill::graph::{Gather, Op};
use stripmill::plan::{Panel, PhasePlan};
use stripmill::sweep::Work;

use super::Faults;

impl Faults<'_> {
    pub(super) fn panels(&mut self) {
        for (p, phase) in self.phases() {
            for (k, panel) in phase.panels.iter().enumerate() {
                self.windows(p, phase, k, &panel);
                self.owned(p, k, &panel);
            }
            for k in 1..phase.panels.len() {
                self.add_among(p, &format!("panel {} after {k}", k - 1), |q| {
                    q.swap(k - 1, k)
                });
                self.blocks(p, phase, k);
            }
            for (k, panel) in phase.panels.iter().enumerate() {
                // only in a phase without a sweep there is nothing to own
                if panel.owned.iter().any(|o| !o.is_empty()) {
                    self.add_among(p, &format!("panel {k} twice"), |q| {
                        q.insert(k, q[k].clone())
                    });
                }
                self.add_among(p, &format!("panel {k} is missing"), |q| drop(q.remove(k)));
            }
        }
    }

    /// The base plan with a change of the panels of phase `p`.
    fn add_among(&mut self, p: usize, what: &str, change: impl FnOnce(&mut Vec<Panel>)) {
        self.add_in(p, what, |phase| {
            let mut panels = phase.panels.iter().collect();
            change(&mut panels);
            phase.panels = panels.into_iter().collect();
        });
    }

    fn windows(&mut self, p: usize, phase: &PhasePlan, k: usize, panel: &Panel) {
        for (r, window) in panel.windows.iter().enumerate() {
            let name = format!("panel {k}, rows {r}");
            let width = self.graph.tensor(phase.sweep.rows[r].tensor).w();
            self.add_among(p, &format!("{name}: beyond the width"), |q| {
                q[k].windows[r].end = width + 1
            });
            if window.is_empty() {
                continue;
            }
            // a column that nobody reads or gives is not missed
            if used(phase, panel, r, window.start) {
                self.add_among(p, &format!("{name}: no first column"), |q| {
                    q[k].windows[r].start += 1
                });
            }
            if used(phase, panel, r, window.end - 1) {
                self.add_among(p, &format!("{name}: no last column"), |q| {
                    q[k].windows[r].end -= 1
                });
            }
        }
        if !panel.windows.is_empty() {
            self.add_among(p, &format!("panel {k} lacks a window"), |q| {
                let _ = q[k].windows.pop();
            });
        }
    }

    fn owned(&mut self, p: usize, k: usize, panel: &Panel) {
        for (s, owned) in panel.owned.iter().enumerate() {
            let name = format!("panel {k}, step {s}");
            let mut set = |what: &str, to: Range<u64>| {
                self.add_among(p, &format!("{name}: {what}"), |q| q[k].owned[s] = to);
            };
            if owned.is_empty() {
                set("owns a column", 7..8);
                continue;
            }
            set("is moved right", owned.start + 1..owned.end + 1);
            set("lacks its first column", owned.start + 1..owned.end);
            set("lacks its last column", owned.start..owned.end - 1);
            set("owns a column more", owned.start..owned.end + 1);
            set("owns nothing", 0..0);
        }
    }

    /// A boundary between two panels inside a block of columns. For a save any boundary would do.
    fn blocks(&mut self, p: usize, phase: &PhasePlan, k: usize) {
        for (s, step) in phase.sweep.steps.iter().enumerate() {
            let Work::Node(id) = step.work else { continue };
            if !matches!(self.graph.node(id).op, Op::Gather(kind) if kind != Gather::Whole) {
                continue;
            }
            let panels: Vec<Panel> = phase.panels.iter().collect();
            let (before, at) = (&panels[k - 1].owned[s], panels[k].owned[s].start);
            if before.is_empty() || at != before.end {
                continue;
            }
            self.add_among(
                p,
                &format!("step {s}: panel {k} starts inside a block"),
                |q| {
                    q[k - 1].owned[s].end = at + 1;
                    q[k].owned[s].start = at + 1;
                },
            );
        }
    }
}

/// Whether column `x` of `rows` is loaded in order, given out of the sweep, read by some tap, or among
/// those that a runtime gives to a kernel.
fn used(phase: &PhasePlan, panel: &Panel, rows: usize, x: u64) -> bool {
    let sweep = &phase.sweep;
    let maker = sweep.rows[rows].maker;
    let in_order = phase.panels.len() == 1 && matches!(sweep.steps[maker].work, Work::Load(_));
    let read = |&(s, k): &(usize, usize)| {
        let step = &sweep.steps[s];
        let out = step
            .makes
            .map_or(&panel.owned[s], |made| &panel.windows[made])
            .clone();
        let cols = &step.reads[k].cols;
        let given = !out.is_empty() && cols.span(&out).contains(&x);
        given
            || out
                .into_iter()
                .any(|o| (0..cols.taps()).any(|t| cols.tap(o, t) == Some(x)))
    };
    in_order || panel.owned[maker].contains(&x) || sweep.rows[rows].readers.iter().any(read)
}
