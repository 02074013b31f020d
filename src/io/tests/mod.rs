//! Files against naive computations over whole images, and hostile files.

mod border;
mod corrupt;
mod memory;
mod npy;
mod output;
mod png;
mod spool;

use std::path::{Path, PathBuf};

use super::*;

/// A small generator of reproducible numbers.
pub(super) struct Rng(u64);

impl Rng {
    pub(super) fn new(seed: u64) -> Self {
        Rng(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// Bytes that deflate neither refuses nor swallows.
    pub(super) fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| (self.next() >> 40) as u8).collect()
    }

    pub(super) fn floats(&mut self, n: u64) -> Vec<f32> {
        (0..n)
            .map(|_| (self.below(2001) as f32 - 1000.0) / 256.0)
            .collect()
    }
}

/// A folder on a disk: the system's folder for temporary files may be kept in memory.
pub(super) fn folder() -> tempfile::TempDir {
    let exe = std::env::current_exe().unwrap();
    tempfile::tempdir_in(exe.parent().unwrap()).unwrap()
}

pub(super) fn shape(n: u64, c: u64, h: u64, w: u64) -> ImageShape {
    ImageShape { n, c, h, w }
}

/// All of `source` as `[n][h][w][c]`, read in order, `at_once` rows in a call.
pub(super) fn read_in_order(source: &mut dyn RowSource, at_once: u64) -> Result<Vec<f32>> {
    let ImageShape { n, c, h, w } = source.shape();
    let mut all = vec![f32::MIN; (n * c * h * w) as usize];
    let mut rows = all.chunks_exact_mut((w * c) as usize);
    for item in 0..n {
        for y in (0..h).step_by(at_once as usize) {
            let mut part: Vec<&mut [f32]> =
                rows.by_ref().take(at_once.min(h - y) as usize).collect();
            source.read(item, y, 0..w, &mut part)?;
        }
    }
    Ok(all)
}

/// All of `source` as `[n][h][w][c]`, read in panels of `width` columns, from the last to the first
/// and from bottom to top.
pub(super) fn read_anywhere(source: &mut dyn RowSource, at_once: u64, width: u64) -> Vec<f32> {
    let ImageShape { n, c, h, w } = source.shape();
    let mut all = vec![f32::MIN; (n * c * h * w) as usize];
    let starts = |len: u64, step: u64| (0..len.div_ceil(step)).rev().map(move |i| i * step);
    for item in (0..n).rev() {
        for x in starts(w, width) {
            let cols = x..w.min(x + width);
            for y in starts(h, at_once) {
                let mut part: Vec<&mut [f32]> = all
                    .chunks_exact_mut((w * c) as usize)
                    .skip((item * h + y) as usize)
                    .take(at_once.min(h - y) as usize)
                    .map(|row| &mut row[(cols.start * c) as usize..(cols.end * c) as usize])
                    .collect();
                source.read(item, y, cols.clone(), &mut part).unwrap();
            }
        }
    }
    all
}

/// Gives `all`, `[n][h][w][c]`, to `sink` in order.
pub(super) fn write_in_order(
    sink: &mut dyn RowSink,
    shape: ImageShape,
    all: &[f32],
    at_once: u64,
) -> Result<()> {
    let ImageShape { n, c, h, w } = shape;
    let rows: Vec<&[f32]> = all.chunks_exact((w * c) as usize).collect();
    for item in 0..n {
        for y in (0..h).step_by(at_once as usize) {
            let first = (item * h + y) as usize;
            let last = first + at_once.min(h - y) as usize;
            sink.write(item, y, 0..w, &rows[first..last])?;
        }
    }
    Ok(())
}

/// Gives `all`, `[n][h][w][c]`, to `sink` in panels, from the last to the first.
pub(super) fn write_anywhere(
    sink: &mut dyn RowSink,
    shape: ImageShape,
    all: &[f32],
    width: u64,
) -> Result<()> {
    let ImageShape { n, c, h, w } = shape;
    for item in (0..n).rev() {
        for x in (0..w.div_ceil(width)).rev().map(|i| i * width) {
            let cols = x..w.min(x + width);
            for y in (0..h).rev() {
                let row = &all[((item * h + y) * w * c) as usize..];
                let part = &row[(cols.start * c) as usize..(cols.end * c) as usize];
                sink.write(item, y, cols.clone(), &[part])?;
            }
        }
    }
    Ok(())
}

/// `[n][c][h][w]` as `[n][h][w][c]`.
pub(super) fn interleaved(planar: &[f32], shape: ImageShape) -> Vec<f32> {
    let ImageShape { n, c, h, w } = shape;
    let mut out = Vec::new();
    for item in 0..n {
        for y in 0..h {
            for x in 0..w {
                for k in 0..c {
                    out.push(planar[(((item * c + k) * h + y) * w + x) as usize]);
                }
            }
        }
    }
    out
}

/// The names in a folder.
pub(super) fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

pub(super) fn same_bits(a: &[f32], b: &[f32]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
}

/// Writes `bytes` to `name` in `folder`.
pub(super) fn file(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

/// The message of an error that must be there.
pub(super) fn message<T>(result: Result<T>) -> String {
    match result {
        Ok(_) => panic!("no error"),
        Err(e) => e.to_string(),
    }
}
