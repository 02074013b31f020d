//! Random graphs: the same bits for every strip, panel, thread and level of instructions; near a
//! naive f64 reference; fronts that reach their heights; memory that does not depend on the height.
//!
//! A failure prints its seed and the least part of the graph that fails too. `STRIPMILL_SEEDS`
//! (`from..to`) runs other seeds than the few of every run.

mod common;

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use common::compare::{bits_differ, error};
use common::random_graph::{self, random_graph, random_inputs};
use common::run::{How, panels, plan_graph, run_engine, run_graph};
use common::shrink::{describe, smallest};
use common::{panic_message, reference, say, validate};
use stripmill::Error;
use stripmill::dense::Value;
use stripmill::exec::Engine;
use stripmill::graph::{Graph, Layout, TensorId, Window, fuse};
use stripmill::io::Access;
use stripmill::kernels::Isa;
use stripmill::plan::{self, Options};
use stripmill::sweep::Fronts;

/// What f32 arithmetic may differ from f64, relative to the largest value of a tensor.
const TOLERANCE: f64 = 3e-5;

fn seeds(few: Range<u64>) -> Range<u64> {
    let Ok(asked) = std::env::var("STRIPMILL_SEEDS") else {
        return few;
    };
    let (from, to) = asked.split_once("..").expect("STRIPMILL_SEEDS is from..to");
    from.parse().unwrap()..to.parse().unwrap()
}

/// The graph of a seed: small, or low and wide enough for several panels.
fn graph(seed: u64, jumps: bool) -> Option<Graph> {
    let wide = seed.is_multiple_of(3);
    let options = random_graph::Options {
        h: 3 + seed % 21 / if wide { 2 } else { 1 },
        w: if wide {
            65 + seed * 13 % 150
        } else {
            3 + seed * 7 % 23
        },
        jumps,
        ..random_graph::Options::default()
    };
    random_graph(seed, options)
}

/// Fails with the least part of `graph` that has a fault; a panic is one.
fn report(seed: u64, graph: &Graph, mut fault: impl FnMut(&Graph) -> Option<String>) {
    let mut fault = |graph: &Graph| {
        let result = catch_unwind(AssertUnwindSafe(|| fault(graph)));
        result.unwrap_or_else(|panic| Some(format!("panic: {}", panic_message(&*panic))))
    };
    if let Some(why) = fault(graph) {
        let least = smallest(graph, |part| fault(part).is_some());
        let least_why = fault(&least).unwrap_or(why);
        panic!("seed {seed}: {least_why}\n{}", describe(&least));
    }
}

#[test]
fn outputs_are_near_the_reference() {
    let mut worst: f64 = 0.0;
    let mut graphs = 0;
    for seed in seeds(0..200) {
        let Some(graph) = graph(seed, false) else {
            continue;
        };
        validate::validate(&graph);
        graphs += 1;
        report(seed, &graph, |graph| {
            let inputs = random_inputs(graph, seed);
            let expected = reference::evaluate(graph, &inputs).unwrap();
            let outputs = match run_graph(graph, &inputs, How::row_by_row()) {
                Ok(outputs) => outputs,
                Err(e) => return Some(e.to_string()),
            };
            let pairs = graph.outputs.iter().zip(&outputs);
            let mut fault = None;
            for (id, output) in pairs {
                let (error, place) = error(output, &expected[id]);
                worst = worst.max(error);
                if error > TOLERANCE {
                    fault = Some(format!(
                        "{error:e} off at {place:?} of {}",
                        graph.tensor(*id).name
                    ));
                }
            }
            fault
        });
    }
    say(&format!("{graphs} graphs, at most {worst:e} off"));
}

#[test]
fn bits_depend_on_nothing_but_the_graph() {
    let (mut graphs, mut runs, mut in_panels) = (0, 0, 0);
    for seed in seeds(1000..1200) {
        let Some(graph) = graph(seed, true) else {
            continue;
        };
        graphs += 1;
        report(seed, &graph, |graph| {
            let inputs = random_inputs(graph, seed);
            let run = |how: How| run_graph(graph, &inputs, how);
            let untiled = match run(How::untiled()) {
                Ok(outputs) => outputs,
                Err(e) => return Some(e.to_string()),
            };
            ways(seed).into_iter().find_map(|how| {
                runs += 1;
                let plan = plan_graph(graph, how).ok()?;
                in_panels += usize::from(panels(&plan) > 1);
                match run(how) {
                    Ok(outputs) => {
                        bits_differ(&untiled, &outputs).map(|why| format!("{how:?}: {why}"))
                    }
                    Err(e) => Some(format!("{how:?}: {e}")),
                }
            })
        });
    }
    say(&format!(
        "{graphs} graphs, {runs} runs, {in_panels} of them in panels"
    ));
}

/// The planner's own choice at the least budget: it works, a byte less does not, and the bits stay.
#[test]
fn the_least_budget_is_enough() {
    let mut graphs = 0;
    for seed in seeds(4000..4100) {
        let Some(graph) = graph(seed, true) else {
            continue;
        };
        graphs += 1;
        report(seed, &graph, |graph| {
            let inputs = random_inputs(graph, seed);
            let threads = 1 + seed as usize % 3;
            let budget = |memory: Option<u64>| Options {
                memory,
                threads,
                ..Options::default()
            };
            let options = budget(None);
            let least = plan::Planner::new(graph, &options).unwrap().least_budget();
            match plan::plan(graph, &budget(Some(least - 1))) {
                Err(Error::Budget { least: named, .. }) if named == least => {}
                Err(e) => return Some(format!("{least} bytes are the least, but: {e}")),
                Ok(_) => return Some(format!("{least} bytes are the least, but less does")),
            }
            let plan = match plan::plan(graph, &budget(Some(least))) {
                Ok(plan) => plan,
                Err(e) => return Some(format!("{least} bytes are the least, but: {e}")),
            };
            let untiled = run_graph(graph, &inputs, How::untiled()).unwrap();
            let isa = How::untiled().isa;
            let mut engine = Engine::new(graph.clone(), plan, isa).unwrap();
            // Nothing of a run is left for the next.
            let others = random_inputs(graph, seed + 1);
            run_engine(&mut engine, &others, Access::Anywhere).unwrap();
            let outputs = run_engine(&mut engine, &inputs, Access::Anywhere).unwrap();
            bits_differ(&untiled, &outputs)
        });
    }
    say(&format!("{graphs} graphs"));
}

/// Fusion changes what is computed how, not what comes out.
#[test]
fn fusion_keeps_the_outputs() {
    let (mut before, mut after) = (0, 0);
    for seed in seeds(6000..6200) {
        let Some(graph) = graph(seed, false) else {
            continue;
        };
        report(seed, &graph, |graph| {
            let inputs = random_inputs(graph, seed);
            let expected = reference::evaluate(graph, &inputs).unwrap();
            let fused = match fuse(graph.clone()) {
                Ok(fused) => fused,
                Err(e) => return Some(e.to_string()),
            };
            validate::validate(&fused);
            before += graph.nodes.len();
            after += fused.nodes.len();
            let names = |graph: &Graph, ids: &[TensorId]| -> Vec<String> {
                ids.iter()
                    .map(|&id| graph.tensor(id).name.clone())
                    .collect()
            };
            if names(graph, &graph.outputs) != names(&fused, &fused.outputs)
                || names(graph, &graph.inputs) != names(&fused, &fused.inputs)
            {
                return Some("inputs or outputs have other names".into());
            }
            let values = reference::evaluate(&fused, &inputs).unwrap();
            let outputs = match run_graph(&fused, &inputs, How::row_by_row()) {
                Ok(outputs) => outputs,
                Err(e) => return Some(e.to_string()),
            };
            let pairs = graph.outputs.iter().zip(&fused.outputs).zip(&outputs);
            pairs.into_iter().find_map(|((id, fused_id), output)| {
                let exact = Value::f32(
                    &output.dims,
                    values[fused_id].iter().map(|&v| v as f32).collect(),
                );
                let name = &graph.tensor(*id).name;
                for (what, value) in [("computed in f64", &exact), ("run", output)] {
                    let (error, place) = error(value, &expected[id]);
                    if error > TOLERANCE {
                        let fused = describe(&fused);
                        return Some(format!(
                            "{what}: {error:e} off at {place:?} of {name}\n{fused}\n"
                        ));
                    }
                }
                None
            })
        });
    }
    say(&format!("{before} nodes before, {after} after"));
    assert!(after < before);
}

/// Ways to run: every strip height, panel count, thread count and level comes up in a few seeds.
fn ways(seed: u64) -> Vec<How> {
    let pick = |all: &[u64], k: u64| all[((seed + k) % all.len() as u64) as usize];
    let mut ways = vec![How::row_by_row()];
    for k in 0..4 {
        ways.push(How {
            strip: Some(pick(&[1, 2, 3, 5, 8, 16, u64::MAX], 2 * k)),
            panels: Some(pick(&[1, 2, 3, 7], k)),
            threads: pick(&[1, 2, 3], k) as usize,
            ..How::untiled()
        });
    }
    for isa in Isa::ALL {
        if isa.available() {
            ways.push(How {
                strip: Some(pick(&[1, 4, u64::MAX], isa as u64)),
                isa,
                ..How::untiled()
            });
        }
    }
    ways
}

/// Steps every sweep and holds each row made against what it reads, by the reference's own idea of
/// windows: those rows exist and none has been dropped.
#[test]
fn fronts_end_at_their_heights() {
    let mut turns = 0;
    for seed in seeds(2000..2400) {
        let Some(graph) = graph(seed, true) else {
            continue;
        };
        let strip = [1, 1, 2, 3, 5, 8][seed as usize % 6];
        report(seed, &graph, |graph| {
            let how = How {
                strip: Some(strip),
                ..How::untiled()
            };
            let plan = match plan_graph(graph, how) {
                Ok(plan) => plan,
                Err(e) => return Some(e.to_string()),
            };
            for phase in &plan.plan().phases {
                let sweep = &phase.sweep;
                let mut fronts = Fronts::new(sweep, &phase.pace, phase.strip);
                let reads: Vec<Vec<Vec<Vec<u64>>>> = (sweep.steps.iter())
                    .map(|s| {
                        s.reads
                            .iter()
                            .map(|r| reference::positions(&r.axis))
                            .collect()
                    })
                    .collect();
                let mut dropped = vec![0; sweep.rows.len()];
                let mut left = 3 * sweep.height + 2000;
                while !fronts.done() {
                    for (i, step) in sweep.steps.iter().enumerate() {
                        let made = fronts.advance(i);
                        if made.end - made.start > phase.pace[i].cap {
                            return Some(format!("step {i} makes {made:?} in a turn"));
                        }
                        for (read, of) in step.reads.iter().zip(&reads[i]) {
                            let alive = dropped[read.rows]..fronts.front(read.rows);
                            let gone = (made.clone())
                                .flat_map(|o| &of[o as usize])
                                .find(|row| !alive.contains(row));
                            if let Some(row) = gone {
                                let name = &graph.tensor(sweep.rows[read.rows].tensor).name;
                                return Some(format!(
                                    "{:?} makes {made:?} but row {row} of {name} is not in {alive:?}",
                                    step.work
                                ));
                            }
                        }
                    }
                    for (rows, dropped) in dropped.iter_mut().enumerate() {
                        *dropped = fronts.tail(rows).min(fronts.front(rows)).max(*dropped);
                    }
                    fronts.end_turn();
                    turns += 1;
                    left -= 1;
                    if left == 0 {
                        return Some(format!("turn {} and no end", fronts.turn()));
                    }
                }
                for (i, step) in sweep.steps.iter().enumerate() {
                    if fronts.passed(i) != step.height {
                        return Some(format!(
                            "step {i} ends at {} of {}",
                            fronts.passed(i),
                            step.height
                        ));
                    }
                }
                if fronts.turn() != phase.turns {
                    return Some(format!("{} turns, {} planned", fronts.turn(), phase.turns));
                }
            }
            None
        });
    }
    say(&format!("{turns} turns"));
}

/// The same network at ten times the height carries the same rows in the same slots. A resize by a
/// fraction makes rows at an uneven pace, and a turn of ten times as many may be a little worse.
#[test]
fn memory_does_not_depend_on_the_height() {
    let (mut compared, mut uneven) = (0, 0);
    for seed in seeds(3000..3150) {
        let fractions = seed % 2 == 0;
        // A multiple of most strides, high enough to fill every lag.
        let h = 2592;
        let of = |h: u64| {
            let options = random_graph::Options {
                h,
                w: 9,
                fractions,
                jumps: true,
                barriers: false,
            };
            random_graph(seed, options)
        };
        let (Some(low), Some(high)) = (of(h), of(10 * h)) else {
            continue;
        };
        if !alike(&low, &high) {
            uneven += 1;
            continue;
        }
        // A region cut out of the image starts at a share of the height: its lag grows with it. A
        // tensor of few rows may never fill its lag at the lower height.
        let rows = low.tensors.iter().filter(|t| t.layout == Layout::Rows);
        let least = rows.map(|t| t.h()).min().unwrap_or(0);
        if least < 64 || format!("{:?}", low.nodes).contains("TfCropAndResize") {
            continue;
        }
        compared += 1;
        let how = How {
            strip: Some([1, 2, 4, 6][seed as usize % 4]),
            ..How::untiled()
        };
        let plans = [&low, &high].map(|g| plan_graph(g, how).unwrap());
        for (low_phase, high_phase) in plans[0].plan().phases.iter().zip(&plans[1].plan().phases) {
            let fraction = |g: &Graph| format!("{:?}", g.nodes).contains("Interp");
            let uneven = fraction(&low);
            let pairs = low_phase.pools.iter().map(|p| p.slots);
            for (a, b) in pairs.zip(high_phase.pools.iter().map(|p| p.slots)) {
                let more = if uneven { 2 + a / 4 } else { 0 };
                assert!(
                    a.abs_diff(b) <= more,
                    "seed {seed}: {a} slots at {h} rows, {b} at {}\n{}",
                    10 * h,
                    describe(&low)
                );
            }
            if !uneven {
                assert_eq!(
                    low_phase.carry,
                    high_phase.carry,
                    "seed {seed}\n{}",
                    describe(&low)
                );
            }
        }
    }
    say(&format!("{compared} networks compared, {uneven} not alike"));
    assert!(compared > 4 * uneven);
}

/// Whether two graphs are the same network at two heights.
fn alike(a: &Graph, b: &Graph) -> bool {
    let same_window = |a: &Window, b: &Window| match (a, b) {
        (Window::Interp(a), Window::Interp(b)) => (a.mode, a.coordinate) == (b.mode, b.coordinate),
        _ => a == b,
    };
    a.nodes.len() == b.nodes.len()
        && a.nodes.iter().zip(&b.nodes).all(|(a, b)| {
            use stripmill::graph::Side::Rows;
            std::mem::discriminant(&a.op) == std::mem::discriminant(&b.op)
                && same_window(&a.op.window(Rows), &b.op.window(Rows))
                && a.operands == b.operands
                && a.extras == b.extras
        })
}
