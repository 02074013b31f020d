//! Trained networks: near ONNX Runtime's outputs, and the same bits however they run.
//!
//! Every run covers each strip height, panel count, thread count and level once per network;
//! `STRIPMILL_FULL=1` runs all combinations.

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use stripmill::dense::Value;
use stripmill::graph::Graph;
use stripmill::import::Model;
use stripmill::kernels::Isa;

use common::compare::bits_differ;
use common::rng::Rng;
use common::run::{How, as_f32, run_graph};
use common::{read_npy, say, shared, validate};

/// What is known of a network besides its file: the multiple its lengths must be of, the least
/// length, and what its outputs may be off, relative to the largest (absolute where it is negative).
struct Net {
    name: &'static str,
    multiple: u64,
    least: u64,
    tolerance: f64,
}

const fn net(name: &'static str, multiple: u64, least: u64, tolerance: f64) -> Net {
    Net {
        name,
        multiple,
        least,
        tolerance,
    }
}

const NETS: [Net; 15] = [
    net("realesr-animevideov3-x4", 1, 5, 1e-5),
    net("realesr-animevideov3-x2", 1, 5, 1e-5),
    net("realesrgan-x4plus-anime-6b", 1, 5, 2e-5),
    net("waifu2x-upconv7-photo-scale2x", 1, 17, 1e-5),
    net("waifu2x-cunet-noise1-scale2x", 2, 42, 1e-5),
    net("waifu2x-cunet-noise1", 4, 64, 1e-5),
    net("realcugan-se-up2x-conservative", 2, 42, 1e-5),
    net("realcugan-nose-up2x-no-denoise", 2, 42, 1e-5),
    // steep sigmoids: absolute
    net("ppocr-v4-det", 32, 32, -1e-4),
    net("demosaicnet-xtrans", 1, 27, 1e-5),
    net("mtcnn-pnet", 1, 13, 1e-5),
    net("oidn-rt-ldr", 16, 16, 1e-5),
    net("oidn-rt-ldr-small", 16, 16, 1e-5),
    net("oidn-rt-hdr-alb-nrm", 16, 16, 1e-5),
    net("upscalerjs-esrgan-slim-x4", 1, 5, 2e-5),
];

const STRIPS: [Option<u64>; 7] = [
    Some(1),
    Some(2),
    Some(3),
    Some(5),
    Some(8),
    Some(16),
    Some(u64::MAX),
];

fn full() -> bool {
    std::env::var_os("STRIPMILL_FULL").is_some()
}

struct Models {
    folder: PathBuf,
    refs: Json,
}

impl Models {
    fn open() -> Option<Self> {
        let folder = shared()?.join("models");
        let text = std::fs::read_to_string(folder.join("ref/refs.json")).unwrap();
        let refs = serde_json::from_str(&text).unwrap();
        Some(Models { folder, refs })
    }

    fn cases(&self, net: &Net) -> &Vec<Json> {
        self.refs["models"][net.name]["cases"].as_array().unwrap()
    }

    fn graph(&self, net: &Net, dims: &[u64]) -> Graph {
        let model = Model::open(self.folder.join(format!("{}.onnx", net.name))).unwrap();
        let name = self.cases(net)[0]["input_name"].as_str().unwrap();
        let graph = model.graph(&[(name, dims.to_vec())]).unwrap();
        validate::validate(&graph);
        graph
    }

    /// Channels of the network's input.
    fn channels(&self, net: &Net) -> u64 {
        self.cases(net)[0]["input_shape"][1].as_u64().unwrap()
    }

    fn npy(&self, name: &Json) -> Value {
        let (dims, values) = read_npy(
            &Path::new(&self.folder)
                .join("ref")
                .join(name.as_str().unwrap()),
        );
        Value::f32(&dims, values)
    }
}

#[test]
fn every_network_is_in_the_table() {
    let Some(models) = Models::open() else { return };
    let known: Vec<&str> = NETS.iter().map(|n| n.name).collect();
    for name in models.refs["models"].as_object().unwrap().keys() {
        assert!(known.contains(&name.as_str()), "{name}");
    }
}

#[test]
fn outputs_are_near_the_references() {
    let Some(models) = Models::open() else { return };
    let mut faults = Vec::new();
    for net in &NETS {
        for case in models.cases(net) {
            let input = models.npy(&case["input"]);
            let graph = models.graph(net, &input.dims);
            let how = How {
                strip: Some(8),
                threads: 2,
                ..How::untiled()
            };
            let made = run_graph(&graph, std::slice::from_ref(&input), how).unwrap();
            let names = graph
                .outputs
                .iter()
                .map(|&id| graph.tensor(id).name.as_str());
            let made: BTreeMap<&str, Value> = names.zip(made).collect();
            for output in case["outputs"].as_array().unwrap() {
                let expected = models.npy(&output["file"]);
                let made = &made[output["name"].as_str().unwrap()];
                assert_eq!(made.dims, expected.dims);
                let off = (as_f32(made).iter().zip(&as_f32(&expected)))
                    .map(|(a, b)| f64::from((a - b).abs()))
                    .fold(
                        0.0,
                        |m, d| if d.is_nan() { f64::INFINITY } else { d.max(m) },
                    );
                let largest = output["max_abs"].as_f64().unwrap();
                let most = if net.tolerance < 0.0 {
                    -net.tolerance
                } else {
                    net.tolerance * largest
                };
                let line = format!(
                    "{} {:?}: {off:.2e} off, {most:.2e} allowed",
                    net.name,
                    &input.dims[2..]
                );
                say(&line);
                if off > most {
                    faults.push(line);
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Runs `net` at a size in several ways and holds all outputs to the first's bits.
fn same_bits(models: &Models, net: &Net, h: u64, w: u64, ways: &[How]) {
    let round = |len: u64| len.max(net.least).next_multiple_of(net.multiple);
    let dims = [1, models.channels(net), round(h), round(w)];
    let graph = models.graph(net, &dims);
    let values = Rng::new(h * 1000 + w).values(dims.iter().product(), 0.5);
    let input = Value::f32(&dims, values.iter().map(|v| v + 0.5).collect());
    let first = run_graph(&graph, std::slice::from_ref(&input), How::untiled()).unwrap();
    for &how in ways {
        let outputs = run_graph(&graph, std::slice::from_ref(&input), how).unwrap();
        if let Some(why) = bits_differ(&first, &outputs) {
            panic!("{} at {dims:?}, {how:?}: {why}", net.name);
        }
    }
}

#[test]
fn strips_and_threads_change_no_bit() {
    let Some(models) = Models::open() else { return };
    for net in &NETS {
        let ways = STRIPS.iter().enumerate().flat_map(|(k, &strip)| {
            let threads = if full() {
                vec![1, 2, 3]
            } else {
                vec![k % 3 + 1]
            };
            threads.into_iter().map(move |threads| How {
                strip,
                threads,
                ..How::untiled()
            })
        });
        same_bits(&models, net, 37, 29, &ways.collect::<Vec<_>>());
    }
}

#[test]
fn panels_change_no_bit() {
    let Some(models) = Models::open() else { return };
    for (k, net) in NETS.iter().enumerate() {
        let mut ways = Vec::new();
        for (p, panels) in [2, 3, 7].into_iter().enumerate() {
            let strips = if full() {
                &STRIPS[..]
            } else {
                &STRIPS[(k + 2 * p) % 7..][..1]
            };
            for (s, &strip) in strips.iter().enumerate() {
                ways.push(How {
                    strip,
                    panels: Some(panels),
                    threads: (p + s) % 3 + 1,
                    ..How::untiled()
                });
            }
        }
        same_bits(&models, net, 11, 453, &ways);
    }
}

#[test]
fn levels_change_no_bit() {
    let Some(models) = Models::open() else { return };
    for net in &NETS {
        let ways = [Isa::Avx2, Isa::Avx512]
            .into_iter()
            .filter(|isa| isa.available());
        let ways: Vec<How> = ways
            .map(|isa| How {
                strip: Some(3),
                threads: 2,
                isa,
                ..How::untiled()
            })
            .collect();
        same_bits(&models, net, 23, 31, &ways);
    }
}

/// Portable code emulates fused multiply-add: only the smallest images, and only cheap networks
/// unless all is asked for.
#[test]
fn the_portable_level_changes_no_bit() {
    let Some(models) = Models::open() else { return };
    let cheap = ["mtcnn-pnet", "ppocr-v4-det", "oidn-rt-ldr-small"];
    for net in &NETS {
        if full() || cheap.contains(&net.name) {
            let how = How {
                strip: Some(4),
                threads: 2,
                isa: Isa::Portable,
                ..How::untiled()
            };
            same_bits(&models, net, 7, 5, &[how]);
        }
    }
}
