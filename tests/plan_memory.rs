//! What planning itself keeps resident.

mod common;

use stripmill::exec::peak_resident_memory;
use stripmill::import::Model;
use stripmill::plan::{Options, Planner};

use common::{absent, shared};

/// A suite of one test, since the figure is the process's: at 100,000 × 100,000 pixels, in the most
/// panels that there can be, a deep network is planned in 16 MB.
#[test]
fn planning_a_huge_image_takes_little_memory() {
    let Some(folder) = shared() else { return };
    let file = folder.join("models/realesrgan-x4plus-anime-6b.onnx");
    if !file.is_file() {
        return absent(&format!("no {}", file.display()));
    }
    let graph = Model::open(&file).and_then(|m| m.graph_at(100_000, 100_000));
    let graph = graph.expect("a model");
    let options = Options {
        panels: Some(u64::MAX),
        ..Options::default()
    };
    let plan = Planner::new(&graph, &options).and_then(|p| p.plan());
    let plan = plan.expect("a plan");
    assert_eq!(plan.plan().phases[0].panels.len(), 6250);
    let peak = peak_resident_memory().expect("a number");
    assert!(peak < 16_000_000, "{peak} bytes");
}
