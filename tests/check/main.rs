//! The checker: it accepts what the planner makes, and rejects every plan with a fault.

#[path = "../common/mod.rs"]
mod common;
mod faults;
mod nets;
mod random;

use stripmill::graph::Graph;
use stripmill::plan::{Options, Plan, check, plan};

/// A graph's name, the graph and a valid plan for it.
struct Case {
    name: String,
    graph: Graph,
    plan: Plan,
}

/// Plans of several graphs: one row a turn, a few, all; one panel and three.
fn cases() -> Vec<Case> {
    let graphs = [
        ("chain", nets::chain(2, 41, 200)),
        ("unet", nets::unet(2, 40, 200)),
        ("sources", nets::sources(1, 36, 240)),
        ("upscale", nets::upscale(1, 24, 150)),
        ("squeeze", nets::squeeze(2, 20, 190)),
        ("barrier", nets::barrier(1, 20, 130)),
        ("tall", nets::chain(1, 500, 70)),
    ];
    let mut cases = Vec::new();
    for (name, graph) in graphs {
        for (strip, panels) in [(1, 1), (5, 3), (u64::MAX, 2)] {
            let options = Options {
                strip: Some(strip),
                panels: Some(panels),
                memory: Some(1 << 30),
                ..Options::default()
            };
            let name = format!("{name}, strip {strip}, panels {panels}");
            let safe = plan(&graph, &options).unwrap_or_else(|e| panic!("{name}: {e}"));
            cases.push(Case {
                name,
                graph: graph.clone(),
                plan: safe.plan().clone(),
            });
        }
    }
    cases
}

#[test]
fn every_single_fault_is_rejected() {
    let (mut made, mut survivors) = (0, Vec::new());
    for case in cases() {
        let again = check(&case.graph, case.plan.clone());
        assert!(again.is_ok(), "{}: {again:?}", case.name);
        for fault in faults::faults(&case.graph, &case.plan) {
            made += 1;
            if check(&case.graph, fault.plan).is_ok() {
                survivors.push(format!("{}: {}", case.name, fault.what));
            }
        }
    }
    common::say(&format!(
        "rejected {} of {made} single-fault mutations",
        made - survivors.len()
    ));
    assert!(survivors.is_empty(), "accepted:\n{}", survivors.join("\n"));
}

/// A plan for one graph is none for another, however alike.
#[test]
fn plans_are_of_their_graph() {
    let options = Options {
        strip: Some(3),
        panels: Some(2),
        ..Options::default()
    };
    let base = nets::squeeze(2, 20, 190);
    let safe = plan(&base, &options).expect("a plan");
    let reject = |what: &str, change: &dyn Fn(&mut Graph)| {
        let mut other = base.clone();
        change(&mut other);
        assert!(check(&other, safe.plan().clone()).is_err(), "{what}");
    };
    reject("a node less", &|g| drop(g.nodes.pop()));
    reject("a node more", &|g| g.nodes.push(g.nodes[0].clone()));
    reject("an output more", &|g| g.outputs.push(g.outputs[0]));
    reject("an output less", &|g| {
        let _ = g.outputs.remove(0);
    });
    reject("no inputs", &|g| g.inputs.clear());
    for k in 0..base.tensors.len() {
        let name = &base.tensors[k].name;
        for d in 0..base.tensors[k].dims.len() {
            // a sweep's batch items are those of its tensors
            reject(&format!("{name} is longer along {d}"), &|g| {
                g.tensors[k].dims[d] += 1;
            });
        }
    }
}

#[test]
#[ignore = "a time, not a promise: run it in release"]
fn turns_are_stepped_in_time() {
    let mut net = nets::Net::new();
    let mut x = net.input([1, 3, 100_000, 100_000]);
    for _ in 0..148 {
        x = net.conv(&[x], 16, 3, 1);
    }
    let chain = net.done(&[x]);
    let unet = nets::unet(1, 100_000, 100_000);
    for (name, graph, panels) in [
        ("chain", &chain, 1),
        ("chain", &chain, 1000),
        ("unet", &unet, 1),
    ] {
        let options = Options {
            strip: Some(1),
            panels: Some(panels),
            ..Options::default()
        };
        let safe = plan(graph, &options).expect("a plan");
        let phase = &safe.plan().phases[0];
        let (turns, steps) = (phase.turns, phase.sweep.steps.len());
        let plan = safe.plan().clone();
        let start = std::time::Instant::now();
        check(graph, plan).expect("a safe plan");
        let seconds = start.elapsed().as_secs_f64();
        common::say(&format!(
            "{name}: {turns} turns of {steps} steps, {panels} panels: {seconds:.3} s"
        ));
    }
}
