//! Runs a plan without running it: the events that a run would write, at predicted times.

use super::cost::Load;
use super::{Plan, TurnInstr};
use crate::graph::Graph;
use crate::sweep::Fronts;
use crate::trace::{Event, Tracer};

/// Gives the events of a run of `plan` to `trace` and returns its predicted seconds. Ops over whole
/// tensors are not predicted: their time is 0.
pub fn simulate(graph: &Graph, plan: &Plan, trace: Tracer<'_>) -> f64 {
    let mut now = 0.0;
    for (p, phase) in plan.phases.iter().enumerate() {
        let items = phase
            .sweep
            .rows
            .iter()
            .map(|r| graph.tensor(r.tensor).n())
            .max()
            .unwrap_or(0);
        for item in 0..items {
            for (k, panel) in phase.panels.iter().enumerate() {
                let load = Load {
                    sweep: &phase.sweep,
                    pace: &phase.pace,
                    widths: &panel
                        .windows
                        .iter()
                        .map(|w| w.end - w.start)
                        .collect::<Vec<_>>(),
                    panels: 1,
                    pools: phase.pools.iter().map(|p| p.slot_bytes * p.slots).sum(),
                    threads: plan.options.threads,
                };
                let mut fronts = Fronts::new(&phase.sweep, &phase.pace, phase.strip);
                while !fronts.done() {
                    for instr in &phase.turn {
                        let TurnInstr::Exec { step, .. } = *instr else {
                            continue;
                        };
                        let rows = fronts.advance(step);
                        if rows.is_empty() {
                            continue;
                        }
                        let seconds = load.step(graph, step, rows.end - rows.start);
                        trace(Event {
                            phase: p,
                            item,
                            panel: k,
                            turn: fronts.turn(),
                            step,
                            rows,
                            start: now,
                            seconds,
                        });
                        now += seconds;
                    }
                    fronts.end_turn();
                }
            }
        }
    }
    now
}
