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
