//! What the sweeps are: steps, reads and tensors, against the graph.

use stripmill::graph::{Axis, NodeId, TensorId, Window};
use stripmill::plan::{Panel, PhasePlan, TurnInstr};
use stripmill::sweep::Work;

use super::Faults;

impl Faults<'_> {
    pub(super) fn sweeps(&mut self) {
        for (p, phase) in self.phases() {
            self.steps(p, phase);
            self.reads(p, phase);
            self.tensors(p, phase);
            self.add_in(p, "a sweep one row higher", |q| q.sweep.height += 1);
        }
        self.add("a phase too few".into(), |p| drop(p.phases.pop()));
    }

    fn steps(&mut self, p: usize, phase: &PhasePlan) {
        for (s, step) in phase.sweep.steps.iter().enumerate() {
            self.add_in(p, &format!("step {s} passes a row more"), |q| {
                q.sweep.steps[s].height += 1
            });
            self.add_in(p, &format!("step {s} passes a row less"), |q| {
                q.sweep.steps[s].height -= 1
            });
            self.add_in(p, &format!("step {s} has no ratio"), |q| {
                q.sweep.steps[s].ratio.den = 0
            });
            // the ratio sets the cap, which may be one row for both or at the height already
            let due = (2 * u128::from(phase.strip) * u128::from(step.ratio.num))
                .div_ceil(step.ratio.den.into());
            if due.min(step.height.into()) > phase.pace[s].cap.into() {
                self.add_in(p, &format!("step {s} goes twice as fast"), |q| {
                    q.sweep.steps[s].ratio.num *= 2
                });
            }
            let far = usize::MAX;
            for work in [
                Work::Load(far),
                Work::Save(far),
                Work::Node(NodeId(u32::MAX)),
                Work::Recall,
            ] {
                if work != step.work {
                    self.add_in(p, &format!("step {s} is {work:?}"), |q| {
                        q.sweep.steps[s].work = work
                    });
                }
            }
            for other in 0..phase.sweep.steps.len() {
                let work = phase.sweep.steps[other].work;
                if work != step.work {
                    self.add_in(p, &format!("step {s} does the work of {other}"), |q| {
                        q.sweep.steps[s].work = work
                    });
                }
            }
            self.add_in(p, &format!("step {s} is missing"), |q| {
                drop(q.sweep.steps.remove(s))
            });
            match step.makes {
                Some(_) => self.add_in(p, &format!("step {s} makes nothing"), |q| {
                    q.sweep.steps[s].makes = None
                }),
                None => self.add_in(p, &format!("step {s} makes rows"), |q| {
                    q.sweep.steps[s].makes = Some(0)
                }),
            }
            self.add_in(p, &format!("step {s} makes what is none"), |q| {
                q.sweep.steps[s].makes = Some(far)
            });
            if step.makes.is_none() {
                self.add_in(p, &format!("step {s} is missing without a trace"), |q| {
                    without_sink(q, s)
                });
            }
        }
    }

    fn reads(&mut self, p: usize, phase: &PhasePlan) {
        for (s, step) in phase.sweep.steps.iter().enumerate() {
            for (k, read) in step.reads.iter().enumerate() {
                let name = format!("step {s}, read {k}");
                for (n, axis) in others(&read.axis).into_iter().enumerate() {
                    self.add_in(p, &format!("{name}: other rows {n}"), |q| {
                        q.sweep.steps[s].reads[k].axis = axis
                    });
                }
                for (n, axis) in others(&read.cols).into_iter().enumerate() {
                    self.add_in(p, &format!("{name}: other columns {n}"), |q| {
                        q.sweep.steps[s].reads[k].cols = axis
                    });
                }
                for rows in (0..phase.sweep.rows.len())
                    .chain([usize::MAX])
                    .filter(|&r| r != read.rows)
                {
                    self.add_in(p, &format!("{name}: of {rows}"), |q| {
                        q.sweep.steps[s].reads[k].rows = rows
                    });
                }
                self.add_in(p, &format!("{name} is missing"), |q| {
                    let _ = q.sweep.steps[s].reads.remove(k);
                });
                let twice = read.clone();
                self.add_in(p, &format!("{name} twice"), |q| {
                    q.sweep.steps[s].reads.push(twice)
                });
            }
        }
    }

    fn tensors(&mut self, p: usize, phase: &PhasePlan) {
        let steps = phase.sweep.steps.len();
        for (k, rows) in phase.sweep.rows.iter().enumerate() {
            for maker in (0..steps).chain([usize::MAX]).filter(|&m| m != rows.maker) {
                self.add_in(p, &format!("rows {k} are made by {maker}"), |q| {
                    q.sweep.rows[k].maker = maker
                });
            }
            for r in 0..rows.readers.len() {
                self.add_in(p, &format!("rows {k} lack a reader"), |q| {
                    q.sweep.rows[k].readers.remove(r);
                });
                self.add_in(p, &format!("rows {k} have a reader twice"), |q| {
                    let again = q.sweep.rows[k].readers[r];
                    q.sweep.rows[k].readers.push(again);
                });
            }
            self.add_in(p, &format!("rows {k} are stored, or not"), |q| {
                q.sweep.rows[k].stored ^= true
            });
            for t in (0..self.graph.tensors.len() as u32)
                .chain([u32::MAX])
                .filter(|&t| t != rows.tensor.0)
            {
                self.add_in(p, &format!("rows {k} are tensor {t}"), |q| {
                    q.sweep.rows[k].tensor = TensorId(t)
                });
            }
            self.add_in(p, &format!("rows {k} are missing"), |q| {
                drop(q.sweep.rows.remove(k))
            });
        }
    }
}

/// Axes that are not `axis`.
fn others(axis: &Axis) -> Vec<Axis> {
    let mut all = vec![
        Axis {
            input: axis.input + 1,
            ..axis.clone()
        },
        Axis {
            output: axis.output - 1,
            ..axis.clone()
        },
    ];
    let mut window = |window: Window| {
        all.push(Axis {
            window,
            ..axis.clone()
        })
    };
    match axis.window.clone() {
        Window::Taps {
            kernel,
            stride,
            dilation,
            pad,
            border,
        } => {
            window(Window::Taps {
                kernel: kernel + 1,
                stride,
                dilation,
                pad,
                border,
            });
            window(Window::Taps {
                kernel,
                stride: stride + 1,
                dilation,
                pad,
                border,
            });
            window(Window::Taps {
                kernel,
                stride,
                dilation: dilation + 1,
                pad,
                border,
            });
            window(Window::Taps {
                kernel,
                stride,
                dilation,
                pad: pad + 1,
                border,
            });
            window(Window::Taps {
                kernel,
                stride,
                dilation,
                pad: pad - 1,
                border,
            });
        }
        Window::Transposed {
            kernel,
            stride,
            dilation,
            pad,
        } => {
            window(Window::Transposed {
                kernel,
                stride,
                dilation,
                pad: pad + 1,
            });
            window(Window::Transposed {
                kernel: kernel - 1,
                stride,
                dilation,
                pad,
            });
        }
        Window::Repeat { factor } => window(Window::Repeat { factor: factor + 1 }),
        Window::Same => window(Window::Repeat { factor: 1 }),
        Window::Interp(_) => window(Window::Same),
    }
    all
}

/// Removes step `s`, which makes nothing, from everything that names steps.
fn without_sink(phase: &mut PhasePlan, s: usize) {
    let down = |step: &mut usize| *step -= usize::from(*step > s);
    phase.sweep.steps.remove(s);
    phase.pace.remove(s);
    let without = |mut panel: Panel| {
        panel.owned.remove(s);
        panel
    };
    phase.panels = phase.panels.iter().map(without).collect();
    for rows in &mut phase.sweep.rows {
        rows.readers.retain(|r| r.0 != s);
        rows.readers.iter_mut().for_each(|r| down(&mut r.0));
        down(&mut rows.maker);
    }
    let is = |instr: &TurnInstr| matches!(instr, TurnInstr::Exec { step, .. } if *step == s);
    let at = phase
        .turn
        .iter()
        .position(is)
        .expect("every step is in the turn");
    phase.turn.remove(at);
    for instr in &mut phase.turn {
        if let TurnInstr::Exec { step, .. } = instr {
            down(step);
        }
        let (TurnInstr::Exec { after, .. } | TurnInstr::Drop { after, .. }) = instr;
        after.retain(|&a| a != at);
        after.iter_mut().for_each(|a| *a -= usize::from(*a > at));
    }
}
