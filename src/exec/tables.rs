//! The column tables of a step in one panel: [`crate::graph::Axis`] written out for the kernels.

use std::ops::Range;

use crate::graph::Axis;
use crate::kernels::{Cols, Phase};

/// Tables of a windowed step that makes columns `out`, from a row that starts at column `from`.
pub(super) fn phases(axis: &Axis, out: &Range<u64>, from: u64) -> Vec<Phase> {
    use crate::graph::Window::Transposed;
    let step = match axis.window {
        Transposed { stride, .. } => stride,
        _ => 1,
    };
    let starts = out.start..out.end.min(out.start + step);
    let phase = |x0: u64| {
        let taps: Vec<u64> = (0..axis.taps())
            .filter(|&k| axis.position(x0, k).is_some())
            .collect();
        let columns: Vec<u64> = (x0..out.end).step_by(step as usize).collect();
        Phase {
            start: (x0 - out.start) as usize,
            step: step as usize,
            count: columns.len(),
            cols: cols(axis, &columns, &taps, from),
            taps: taps.into_iter().map(|k| k as usize).collect(),
        }
    };
    starts.map(phase).collect()
}

/// The table of a step whose columns all use the same taps.
pub(super) fn plain(axis: &Axis, out: &Range<u64>, from: u64) -> Cols {
    let taps: Vec<u64> = (0..axis.taps()).collect();
    cols(axis, &out.clone().collect::<Vec<_>>(), &taps, from)
}

/// The table of output columns `columns`, evenly spaced, with kernel columns `taps`.
fn cols(axis: &Axis, columns: &[u64], taps: &[u64], from: u64) -> Cols {
    let at = |x: u64, k: u64| axis.position(x, k).unwrap_or(-1);
    let spaced = |a: i64, b: i64| if a == b { 0 } else { b - a };
    let inside = |&x: &u64| {
        let range = 0..axis.input as i64;
        taps.first().is_none_or(|&k| range.contains(&at(x, k)))
            && taps.last().is_none_or(|&k| range.contains(&at(x, k)))
    };
    let first = columns.iter().position(inside).unwrap_or(columns.len());
    let end = columns
        .iter()
        .rposition(inside)
        .map_or(first, |last| last + 1);
    let (stride, dilation) = match (columns, taps) {
        ([x, y, ..], [k, ..]) => (spaced(at(*x, *k), at(*y, *k)), 0),
        _ => (1, 0),
    };
    let dilation = match (columns, taps) {
        ([x, ..], [k, l, ..]) => spaced(at(*x, *k), at(*x, *l)),
        _ => dilation,
    };
    let edge = |&x: &u64| {
        let tap = move |&k: &u64| axis.tap(x, k).map_or(-1, |i| i as i32 - from as i32);
        taps.iter().map(tap).collect::<Vec<_>>()
    };
    let start = columns
        .get(first)
        .zip(taps.first())
        .map_or(0, |(&x, &k)| at(x, k).max(0) as u64);
    Cols {
        taps: taps.len(),
        regular: first..end,
        first: start.saturating_sub(from) as usize,
        stride: stride.max(0) as usize,
        dilation: dilation as isize,
        edges: columns[..first]
            .iter()
            .chain(&columns[end..])
            .flat_map(edge)
            .collect(),
    }
}

/// Positions and weights of a resize's columns.
pub(super) fn weights(axis: &Axis, out: &Range<u64>, from: u64) -> (usize, Vec<u32>, Vec<f32>) {
    let taps = axis.taps();
    let pairs = out.clone().flat_map(|x| (0..taps).map(move |k| (x, k)));
    let index = pairs
        .clone()
        .map(|(x, k)| axis.tap(x, k).unwrap_or(0).saturating_sub(from) as u32)
        .collect();
    (
        taps as usize,
        index,
        pairs.map(|(x, k)| axis.weight(x, k)).collect(),
    )
}

/// How many columns (or rows) of a mean count.
pub(super) fn counts(axis: &Axis, out: Range<u64>, after: Option<u64>) -> Vec<u32> {
    let inside = |o: u64| {
        (0..axis.taps())
            .filter(|&k| axis.tap(o, k).is_some())
            .count() as u32
    };
    out.map(|o| after.map_or_else(|| inside(o), |after| axis.counted(o, after) as u32))
        .collect()
}
