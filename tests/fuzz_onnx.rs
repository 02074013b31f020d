//! Damaged model files: an error, or a graph, but never a panic, a hang or a huge allocation.

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use prost::Message;
use stripmill::Result as Checked;
use stripmill::exec::Engine;
use stripmill::import::Model;
use stripmill::io::Access;
use stripmill::kernels::Isa;
use stripmill::plan::{self, Options};

use common::random_graph::random_inputs;
use common::rng::Rng;
use common::run::run_engine;
use common::{pb, say, shared};

/// What opening and planning a small damaged model may take.
const SECONDS: u64 = 5;
/// Bytes that the process may come to hold.
const MEMORY: u64 = 1 << 30;

/// A small network with an op of every kind that reads attributes and constants.
fn small_model() -> Vec<u8> {
    use pb::{Node, Tensor, ValueInfo};
    let mut rng = Rng::new(5);
    let mut init = Vec::new();
    let mut weight = |name: &str, dims: &[i64]| {
        let values = rng.values(dims.iter().product::<i64>() as u64, 0.5);
        init.push(Tensor::f32(name, dims, &values));
    };
    weight("w1", &[8, 3, 3, 3]);
    weight("b1", &[8]);
    weight("w2", &[8, 4, 2, 2]);
    weight("slope", &[4, 1, 1]);
    weight("w3", &[8, 1, 3, 3]);
    weight("bn_scale", &[8]);
    weight("bn_bias", &[8]);
    weight("bn_mean", &[8]);
    init.push(Tensor::f32("bn_var", &[8], &[1.0; 8]));
    init.push(Tensor::i64("pads", &[8], &[0, 0, 1, 2, 0, 0, -1, 1]));
    init.push(Tensor::f32("scales", &[4], &[1.0, 1.0, 1.5, 2.0]));
    init.push(Tensor::i64("starts", &[2], &[1, -9]));
    init.push(Tensor::i64("ends", &[2], &[i64::MAX, -1]));
    init.push(Tensor::i64("axes", &[2], &[2, 3]));
    init.push(Tensor::i64("shape", &[3], &[0, 4, -1]));
    init.push(Tensor::i64("one", &[1], &[1]));
    let node = vec![
        Node::new("Conv", &["x", "w1", "b1"], &["a"])
            .ints("kernel_shape", &[3, 3])
            .ints("strides", &[2, 2])
            .ints("pads", &[1, 1, 1, 1]),
        Node::new(
            "BatchNormalization",
            &["a", "bn_scale", "bn_bias", "bn_mean", "bn_var"],
            &["b"],
        )
        .float("epsilon", 1e-3),
        Node::new("Conv", &["b", "w3"], &["c"])
            .str("auto_pad", "SAME_UPPER")
            .int("group", 8),
        Node::new("ConvTranspose", &["c", "w2"], &["d"]).ints("strides", &[2, 2]),
        Node::new("PRelu", &["d", "slope"], &["e"]),
        Node::new("Pad", &["e", "pads"], &["f"]).str("mode", "reflect"),
        Node::new("Resize", &["f", "", "scales"], &["g"])
            .str("mode", "linear")
            .str("coordinate_transformation_mode", "align_corners"),
        Node::new("Slice", &["g", "starts", "ends", "axes"], &["h"]),
        Node::new("MaxPool", &["h"], &["i"])
            .ints("kernel_shape", &[3, 2])
            .ints("strides", &[2, 1])
            .int("ceil_mode", 1),
        Node::new("GlobalAveragePool", &["i"], &["j"]),
        Node::new("Mul", &["i", "j"], &["k"]),
        Node::new("Reshape", &["k", "shape"], &["l"]),
        Node::new("Shape", &["k"], &["m"]),
        Node::new("Reshape", &["l", "m"], &["n"]),
        Node::new("Unsqueeze", &["l", "one"], &["o"]),
        Node::new("DepthToSpace", &["n"], &["y"]).int("blocksize", 2),
    ];
    pb::Model::new(pb::Graph {
        node,
        name: Some("small".into()),
        initializer: init,
        input: vec![ValueInfo::f32("x", &[1, 3, -1, -1])],
        output: vec![
            ValueInfo::f32("y", &[1, 1, -1, -1]),
            ValueInfo::f32("o", &[1, 1, 4, -1]),
        ],
    })
    .encode_to_vec()
}

#[derive(Default)]
struct Tally {
    tried: u64,
    refused: u64,
    planned: u64,
}

/// Opens and plans what `bytes` say; panics on a panic or where it takes long.
fn open(bytes: &[u8], path: &Path, input: &str, dims: &[u64], what: &str, tally: &mut Tally) {
    std::fs::write(path, bytes).unwrap();
    let start = Instant::now();
    let result: Result<Checked<()>, _> = catch_unwind(AssertUnwindSafe(|| {
        let graph = Model::open(path)?.graph(&[(input, dims.to_vec())])?;
        let options = Options {
            memory: Some(256 << 20),
            ..Options::default()
        };
        let plan = plan::plan(&graph, &options)?;
        // What is small enough also runs, whatever it computes by now.
        if plan.plan().arena_bytes < 1 << 20 {
            let inputs = random_inputs(&graph, 1);
            let mut engine = Engine::new(graph, plan, Isa::detect()?)?;
            run_engine(&mut engine, &inputs, Access::Anywhere)?;
        }
        Ok(())
    }));
    tally.tried += 1;
    match result {
        Ok(Ok(())) => tally.planned += 1,
        Ok(Err(_)) => tally.refused += 1,
        Err(_) => {
            let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz-fault.onnx");
            std::fs::write(&kept, bytes).unwrap();
            panic!("{what}: a panic; the file is {}", kept.display());
        }
    }
    let took = start.elapsed();
    assert!(took < Duration::from_secs(SECONDS), "{what}: {took:?}");
}

/// Bytes of address space that the process has mapped at most.
fn address_space() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmPeak:")).unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib << 10
}

fn damage(bytes: &[u8], input: &str, dims: &[u64], seeds: u64, tally: &mut Tally) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.onnx");
    open(bytes, &path, input, dims, "whole", tally);
    assert_eq!(tally.planned, 1, "the model itself must be good");
    for seed in 0..seeds {
        let mut rng = Rng::new(seed);
        let mut bad = bytes.to_vec();
        let what = match seed % 4 {
            0 => {
                bad.truncate(rng.below(bytes.len() as u64) as usize);
                "truncated"
            }
            1 => {
                for _ in 0..1 + rng.below(3) {
                    let at = rng.below(bad.len() as u64 * 8);
                    bad[(at / 8) as usize] ^= 1 << (at % 8);
                }
                "bits flipped"
            }
            2 => {
                for _ in 0..1 + rng.below(4) {
                    let at = rng.below(bad.len() as u64) as usize;
                    bad[at] = rng.one(&[0, 1, 0x7F, 0x80, 0xFF, 0x08, 0x12]);
                }
                "bytes replaced"
            }
            _ => {
                let from = rng.below(bad.len() as u64) as usize;
                let count = (1 + rng.below(16) as usize).min(bad.len() - from);
                let part = bad[from..from + count].to_vec();
                let at = rng.below(bad.len() as u64) as usize;
                if rng.chance(0.5) {
                    bad.splice(at..at, part);
                } else {
                    bad.drain(from..from + count);
                }
                "bytes moved"
            }
        };
        open(
            &bad,
            &path,
            input,
            dims,
            &format!("seed {seed}, {what}"),
            tally,
        );
    }
}

#[test]
fn damaged_models_give_errors() {
    let before = address_space();
    let mut tally = Tally::default();
    damage(&small_model(), "x", &[1, 3, 21, 18], 6000, &mut tally);
    say(&format!(
        "{} files: {} refused, {} still models; {} MiB more at most",
        tally.tried,
        tally.refused,
        tally.planned,
        (address_space() - before) >> 20
    ));
    assert!(tally.refused > tally.tried / 3);
    assert!(address_space() - before < MEMORY);
}

#[test]
fn damaged_trained_models_give_errors() {
    let Some(shared) = shared() else { return };
    let mut tally = Tally::default();
    let bytes = std::fs::read(shared.join("models/mtcnn-pnet.onnx")).unwrap();
    damage(&bytes, "input", &[1, 3, 29, 23], 800, &mut tally);
    say(&format!(
        "{} files: {} refused, {} still models",
        tally.tried, tally.refused, tally.planned
    ));
}
