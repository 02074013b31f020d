//! The reference and the random graphs themselves: known answers, and the variety of what is drawn.

mod common;

use std::collections::BTreeMap;

use common::random_graph::{Options, random_graph, random_inputs};
use common::{reference, say, shrink, validate};

#[test]
fn random_graphs_are_valid_and_varied() {
    let mut ops: BTreeMap<String, usize> = BTreeMap::new();
    let (mut graphs, mut nodes, mut largest) = (0, 0, 0f64);
    for seed in 0..600 {
        let h = 5 + seed % 23;
        let w = 4 + seed * 7 % 19;
        let options = Options {
            h,
            w,
            jumps: seed % 4 == 0,
            ..Options::default()
        };
        let Some(graph) = random_graph(seed, options) else {
            continue;
        };
        validate::validate(&graph);
        graphs += 1;
        nodes += graph.nodes.len();
        for node in &graph.nodes {
            let name = format!("{:?}", node.op);
            let name = name.split(['(', ' ']).next().unwrap().to_owned();
            *ops.entry(name).or_default() += 1;
        }
        if seed % 3 == 1 {
            let inputs = random_inputs(&graph, seed);
            let values = reference::evaluate(&graph, &inputs).unwrap();
            for (id, value) in &values {
                for &v in value {
                    assert!(
                        v.is_finite() && v.abs() < 1e3,
                        "seed {seed}: {v} in {}\n{}",
                        graph.tensor(*id).name,
                        shrink::describe(&graph)
                    );
                    largest = largest.max(v.abs());
                }
            }
        }
    }
    say(&format!(
        "{graphs} graphs of {nodes} nodes, values up to {largest}: {ops:?}"
    ));
    assert!(graphs > 500, "{graphs} graphs");
    for op in [
        "Conv",
        "Pool",
        "Resize",
        "Pad",
        "DepthToSpace",
        "SpaceToDepth",
        "Pointwise",
    ] {
        assert!(ops[op] > 20, "{op}: {ops:?}");
    }
    for op in ["Softmax", "Lrn", "Gather", "Spread", "Dense"] {
        assert!(ops[op] > 10, "{op}: {ops:?}");
    }
}
