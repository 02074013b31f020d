//! What the test suites share: a naive reference, random graphs, and one way to run a graph.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "every suite is a crate of its own and uses a part of this one"
)]

pub mod compare;
pub mod pb;
pub mod random_graph;
pub mod reference;
pub mod rng;
pub mod run;
pub mod shrink;
pub mod validate;

use std::path::PathBuf;

/// The folder of shared models, or `None` where there is none (an error where `CI` is set).
pub fn shared() -> Option<PathBuf> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared");
    let folder = std::env::var_os("STRIPMILL_SHARED").map_or(beside, PathBuf::from);
    if folder.is_dir() {
        return Some(folder);
    }
    absent(&format!("no folder {}", folder.display()));
    None
}

/// Says that a test is skipped; where `CI` is set nothing may be skipped.
pub fn absent(why: &str) {
    assert!(std::env::var_os("CI").is_none(), "{why}");
    say(&format!("skipped: {why}"));
}

/// A line of a test's report.
#[allow(
    clippy::print_stdout,
    reason = "figures and reasons belong into the test's output"
)]
pub fn say(line: &str) {
    println!("{line}");
}

/// An f32 array from a `.npy` file (version 1 to 3, little-endian, C order).
pub fn read_npy(path: &std::path::Path) -> (Vec<u64>, Vec<f32>) {
    let bytes = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    assert_eq!(&bytes[..6], b"\x93NUMPY");
    let (start, len) = if bytes[6] == 1 {
        (10, u16::from_le_bytes([bytes[8], bytes[9]]) as usize)
    } else {
        let len = u32::from_le_bytes(bytes[8..12].try_into().unwrap());
        (12, len as usize)
    };
    let header = std::str::from_utf8(&bytes[start..start + len]).unwrap();
    assert!(
        header.contains("'<f4'") && header.contains("False"),
        "{header}"
    );
    let shape = header.split_once("'shape': (").unwrap().1;
    let dims: Vec<u64> = shape[..shape.find(')').unwrap()]
        .split(',')
        .filter_map(|d| d.trim().parse().ok())
        .collect();
    let values: Vec<f32> = bytes[start + len..]
        .chunks_exact(4)
        .map(|b| f32::from_le_bytes(b.try_into().unwrap()))
        .collect();
    assert_eq!(values.len() as u64, dims.iter().product::<u64>());
    (dims, values)
}

/// What a caught panic said.
pub fn panic_message(panic: &dyn std::any::Any) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or(panic.downcast_ref::<&str>().copied());
    text.unwrap_or("?").to_owned()
}
