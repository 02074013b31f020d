//! Plans of random graphs, and paces of any kind.

use stripmill::plan::{ALIGN, Home, Options, Plan, TurnInstr, check, plan};
use stripmill::sweep::{Fronts, Pace};

use crate::common::random_graph::{self, random_graph};
use crate::common::rng::Rng;
use crate::common::say;
use crate::{cases, nets};

#[test]
fn plans_of_random_graphs_are_accepted() {
    let (mut planned, mut refused) = (0, Vec::new());
    for seed in 0..400 {
        let mut rng = Rng::new(seed);
        let (h, w) = (rng.within(1, 40) as u64, rng.within(1, 300) as u64);
        let options = random_graph::Options {
            h,
            w,
            jumps: true,
            ..Default::default()
        };
        let Some(graph) = random_graph(seed, options) else {
            continue;
        };
        for (strip, panels) in [(1, 1), (3, 4), (7, 2), (u64::MAX, 1)] {
            let options = Options {
                strip: Some(strip),
                panels: Some(panels),
                ..Options::default()
            };
            planned += 1;
            if let Err(e) = plan(&graph, &options) {
                refused.push(format!("seed {seed}, strip {strip}, panels {panels}: {e}"));
            }
        }
    }
    say(&format!(
        "accepted {} of {planned} plans of random graphs",
        planned - refused.len()
    ));
    assert!(
        refused.is_empty() && planned > 500,
        "{}",
        refused.join("\n")
    );
}

/// The checker steps turns by its own hand: with any grains, grids and delays it must come to the
/// same turns and carries as the fronts that a runtime steps.
#[test]
fn paces_of_any_kind_are_stepped_alike() {
    let mut rng = Rng::new(7);
    let mut turns = 0;
    for case in cases() {
        for round in 0..8 {
            let mut plan = case.plan.clone();
            for phase in &mut plan.phases {
                for (step, pace) in phase.sweep.steps.iter().zip(&mut phase.pace) {
                    let grain = rng.one(&[1, 1, 2, 3, 4, 8]);
                    let cap = pace.cap.next_multiple_of(grain);
                    let delay = rng.one(&[0, 0, 1, 5, step.height, u64::MAX]);
                    let delay = if step.is_source() {
                        delay.min(9)
                    } else {
                        delay
                    };
                    *pace = Pace {
                        grain,
                        offset: rng.below(grain),
                        cap,
                        delay,
                    };
                }
            }
            settle(&mut plan);
            turns += plan.turns();
            let result = check(&case.graph, plan);
            assert!(result.is_ok(), "{}, round {round}: {result:?}", case.name);
        }
    }
    assert!(turns > 1000);
}

/// A pace with whole grains is a valid one; the same cap with half the grain is not, and neither is a
/// half cap.
#[test]
fn half_a_grain_is_rejected() {
    let graph = nets::chain(1, 41, 70);
    let options = Options {
        strip: Some(1),
        panels: Some(1),
        ..Options::default()
    };
    let base = plan(&graph, &options).expect("a plan");
    for s in 0..base.plan().phases[0].pace.len() {
        let mut coarse = base.plan().clone();
        coarse.phases[0].pace[s] = Pace {
            grain: 4,
            offset: 1,
            cap: 4,
            delay: 0,
        };
        settle(&mut coarse);
        check(&graph, coarse.clone()).expect("whole grains");
        let mut half = coarse.clone();
        half.phases[0].pace[s].grain = 2;
        check(&graph, half).expect_err("half a grain");
        let mut half = coarse;
        half.phases[0].pace[s].cap = 2;
        check(&graph, half).expect_err("half a cap");
    }
}

/// Makes turns and carries those of the paces, with slots for every row, and places buffers anew.
fn settle(plan: &mut Plan) {
    for phase in &mut plan.phases {
        let mut fronts = Fronts::new(&phase.sweep, &phase.pace, phase.strip);
        phase.carry.fill(0);
        while !fronts.done() {
            for instr in &phase.turn {
                match *instr {
                    TurnInstr::Exec { step, .. } => drop(fronts.advance(step)),
                    TurnInstr::Drop { rows, .. } => {
                        let front = fronts.front(rows);
                        let alive = front - fronts.tail(rows).min(front);
                        phase.carry[rows] = phase.carry[rows].max(alive);
                    }
                }
            }
            fronts.end_turn();
        }
        phase.turns = fronts.turn();
        for (k, pool) in phase.pools.iter_mut().enumerate() {
            let inside = phase
                .sweep
                .rows
                .iter()
                .zip(&phase.homes)
                .filter(|(_, home)| **home == Home::Slots(k));
            pool.slots = inside
                .map(|(rows, _)| phase.sweep.steps[rows.maker].height)
                .sum();
            plan.buffers[pool.mem.at()].bytes = pool.slots * pool.slot_bytes;
        }
    }
    plan.arena_bytes = 0;
    for buffer in &mut plan.buffers {
        buffer.offset = plan.arena_bytes;
        plan.arena_bytes += buffer.bytes.next_multiple_of(ALIGN);
    }
    plan.peak.arena = plan.arena_bytes;
    plan.options.memory = None;
}
