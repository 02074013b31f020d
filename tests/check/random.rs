//! Plans of random graphs, and paces of any kind.

use stripmill::plan::{ALIGN, Home, Options, PhasePlan, Plan, TurnInstr, check, plan};
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

/// Turns that repeat are leapt over, by the planner's count and by the checker: both must come to what
/// stepping every turn comes to.
#[test]
fn leaps_come_to_what_every_turn_comes_to() {
    let graphs = [
        nets::chain(1, 2003, 70),
        nets::unet(1, 2400, 72),
        nets::sources(1, 1800, 120),
        nets::upscale(1, 1500, 70),
        nets::squeeze(1, 1100, 70),
        nets::barrier(1, 1300, 70),
    ];
    let (mut turns, mut stepped) = (0, 0);
    for (g, graph) in graphs.iter().enumerate() {
        for strip in [1, 2, 3, 8] {
            let options = Options {
                strip: Some(strip),
                panels: Some(1),
                ..Options::default()
            };
            let safe = plan(graph, &options).expect("a plan");
            let mut all = safe.plan().clone();
            settle(&mut all);
            for (leapt, all) in safe.plan().phases.iter().zip(&all.phases) {
                let name = format!("graph {g}, strip {strip}");
                assert_eq!(leapt.turns, all.turns, "{name}");
                assert_eq!(leapt.carry, all.carry, "{name}");
                assert_eq!(leapt.pools, all.pools, "{name}");
            }
            let mut rng = Rng::new(strip);
            for round in 0..4 {
                let mut all = safe.plan().clone();
                for pace in all.phases.iter_mut().flat_map(|phase| &mut phase.pace) {
                    let grain = rng.one(&[1, 1, 2, 4]);
                    *pace = Pace {
                        grain,
                        offset: rng.below(grain),
                        cap: pace.cap.next_multiple_of(grain),
                        delay: rng.one(&[0, 0, 1, 9]),
                    };
                }
                settle(&mut all);
                let name = format!("graph {g}, strip {strip}, round {round}");
                check(graph, all.clone()).unwrap_or_else(|e| panic!("{name}: {e}"));
                turns += all.turns();
                stepped += all.phases.iter().map(stepped_turns).sum::<u64>();
                for (p, phase) in all.phases.iter().enumerate() {
                    for k in 0..phase.pools.len() {
                        let mut tight = all.clone();
                        tight.phases[p].pools[k].slots -= 1;
                        check(graph, tight).expect_err("a slot too few");
                    }
                }
            }
        }
    }
    say(&format!("{stepped} of {turns} turns were stepped"));
    assert!(stepped < turns / 2);
}

/// Turns that are left to step where fronts leap.
fn stepped_turns(phase: &PhasePlan) -> u64 {
    let mut fronts = Fronts::new(&phase.sweep, &phase.pace, phase.strip);
    let mut stepped = 0;
    while !fronts.done() {
        for s in 0..phase.sweep.steps.len() {
            fronts.advance(s);
        }
        fronts.end_turn();
        fronts.leap();
        stepped += 1;
    }
    assert_eq!(fronts.turn(), phase.turns);
    stepped
}

/// Makes turns, carries and slots those of the paces, every turn stepped, and places buffers anew.
fn settle(plan: &mut Plan) {
    for phase in &mut plan.phases {
        let mut fronts = Fronts::new(&phase.sweep, &phase.pace, phase.strip);
        let mut alive = vec![0; phase.sweep.rows.len()];
        phase.carry.fill(0);
        phase.pools.iter_mut().for_each(|pool| pool.slots = 0);
        while !fronts.done() {
            for instr in &phase.turn {
                match *instr {
                    TurnInstr::Exec { step, .. } => {
                        let made = fronts.advance(step);
                        if let Some(rows) = phase.sweep.steps[step].makes {
                            alive[rows] += made.end - made.start;
                        }
                    }
                    TurnInstr::Drop { rows, .. } => {
                        let front = fronts.front(rows);
                        alive[rows] = front - fronts.tail(rows).min(front);
                        phase.carry[rows] = phase.carry[rows].max(alive[rows]);
                    }
                }
                for (k, pool) in phase.pools.iter_mut().enumerate() {
                    let inside = alive.iter().zip(&phase.homes);
                    let inside = inside.filter(|(_, home)| **home == Home::Slots(k));
                    pool.slots = pool.slots.max(inside.map(|(alive, _)| alive).sum());
                }
            }
            fronts.end_turn();
        }
        phase.turns = fronts.turn();
        for pool in &phase.pools {
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
