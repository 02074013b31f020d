//! Runs of several sizes in one process.

mod common;

use stripmill::dense::Value;
use stripmill::exec::peak_resident_memory;
use stripmill::import::Model;

use common::rng::Rng;
use common::run::{How, run_graph};

/// A suite of one test, since the figure is the process's: once every size has been run, running
/// them again takes no more memory.
#[test]
fn runs_of_other_sizes_leave_nothing_behind() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/models/denoise-double.onnx");
    let model = Model::open(file).expect("a model");
    let runs = |rounds: u64| {
        for seed in 0..rounds {
            for (h, w) in [(300, 400), (90, 700), (411, 203)] {
                let graph = model.graph_at(h, w).expect("a graph");
                let image = Rng::new(seed).values(3 * h * w, 1.0);
                let how = How {
                    strip: None,
                    threads: 2,
                    ..How::untiled()
                };
                run_graph(&graph, &[Value::f32(&[1, 3, h, w], image)], how).expect("a run");
            }
        }
        peak_resident_memory().expect("a number")
    };
    let first = runs(2);
    let later = runs(10);
    // what the allocator keeps of small pieces
    assert!(later <= first + (1 << 20), "{first} grew to {later}");
}
