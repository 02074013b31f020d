//! ONNX files to graphs: trained networks at several sizes, and what stays out of strips.

mod common;

use std::collections::BTreeMap;

use stripmill::graph::{Graph, Op};
use stripmill::import::Model;

use common::{say, shared};

/// Lengths of what runs over whole tensors.
fn dense_nodes(graph: &Graph) -> Vec<(String, String, Vec<u64>)> {
    let nodes = graph.nodes.iter().filter_map(|node| match &node.op {
        Op::Dense(op) => {
            let dims = graph.tensor(node.outputs[0]).dims.clone();
            Some((node.name.clone(), op.kind.clone(), dims))
        }
        _ => None,
    });
    nodes.collect()
}

fn summary(graph: &Graph) -> String {
    let mut counts = BTreeMap::new();
    for node in &graph.nodes {
        let name = format!("{:?}", node.op);
        let end = name.find([' ', '(', '{']).unwrap_or(name.len());
        *counts.entry(name[..end].to_owned()).or_insert(0) += 1;
    }
    format!("{} nodes: {counts:?}", graph.nodes.len())
}

#[test]
fn trained_networks_run_in_strips() {
    let Some(shared) = shared() else { return };
    let folder = shared.join("models");
    let refs = std::fs::read_to_string(folder.join("ref/refs.json")).unwrap();
    let refs: serde_json::Value = serde_json::from_str(&refs).unwrap();
    for (name, model) in refs["models"].as_object().unwrap() {
        let file = folder.join(model["file"].as_str().unwrap());
        if !file.exists() {
            continue;
        }
        let start = std::time::Instant::now();
        let opened = Model::open(&file).unwrap();
        let opening = start.elapsed();
        assert!(opened.unsupported().is_empty());
        for case in model["cases"].as_array().unwrap() {
            let dims = |v: &serde_json::Value| -> Vec<u64> {
                v.as_array()
                    .unwrap()
                    .iter()
                    .map(|d| d.as_u64().unwrap())
                    .collect()
            };
            let input = opened.inputs()[0].name.clone();
            let start = std::time::Instant::now();
            let graph = opened
                .graph(&[(&input, dims(&case["input_shape"]))])
                .unwrap();
            let building = start.elapsed();
            for output in case["outputs"].as_array().unwrap() {
                let at = opened
                    .outputs()
                    .iter()
                    .position(|o| output["name"] == o.name.as_str());
                let tensor = graph.tensor(graph.outputs[at.unwrap()]);
                assert_eq!(tensor.dims, dims(&output["shape"]), "{name}");
                assert_eq!(output["name"], tensor.name.as_str());
            }
            say(&format!(
                "{name}: opened in {opening:?}, built in {building:?}, {}",
                summary(&graph)
            ));
            for (node, kind, dims) in dense_nodes(&graph) {
                say(&format!("    {kind} {node} {dims:?}"));
                assert!(
                    dims.len() == 4 && dims[2..] == [1, 1],
                    "{name}: {kind} {node} {dims:?}"
                );
            }
        }
    }
}
