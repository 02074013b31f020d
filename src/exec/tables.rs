//! The column tables of a step in one panel: [`crate::graph::Axis`] written out for the kernels.

use std::ops::Range;

use crate::graph::Axis;
use crate::kernels::{Cols, Phase};
use crate::sweep::Grain;

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

/// The tiles of a Winograd convolution, of `grain` columns each, that make columns `out`.
pub(super) fn tiles(axis: &Axis, grain: Grain, out: &Range<u64>, from: u64) -> Cols {
    let patches: Vec<Vec<Option<u64>>> = patches(axis, grain, out).collect();
    let linear = |patch: &[Option<u64>]| {
        patch
            .windows(2)
            .all(|pair| matches!(pair, [Some(a), Some(b)] if a + 1 == *b))
    };
    let first = patches.iter().position(|p| linear(p));
    let first = first.unwrap_or(patches.len());
    let regular = patches[first..].iter().take_while(|p| linear(p)).count();
    let end = first + regular;
    let edge = |patch: &Vec<Option<u64>>| {
        let tap = |i: &Option<u64>| i.map_or(-1, |i| i as i32 - from as i32);
        patch.iter().map(tap).collect::<Vec<_>>()
    };
    let start = patches.get(first).and_then(|p| p[0]).unwrap_or(from);
    Cols {
        taps: grain.size as usize + 2,
        regular: first..end,
        first: (start - from) as usize,
        stride: grain.size as usize,
        dilation: 1,
        edges: patches[..first]
            .iter()
            .chain(&patches[end..])
            .flat_map(edge)
            .collect(),
    }
}

/// For each tile that makes some of outputs `out`, the inputs under it: those that its outputs in
/// the image read, and zeros elsewhere.
pub(super) fn patches<'a>(
    axis: &'a Axis,
    grain: Grain,
    out: &'a Range<u64>,
) -> impl Iterator<Item = Vec<Option<u64>>> + use<'a> {
    let first = out.start as i64 - grain.before(out.start) as i64;
    let tiles = (first..out.end as i64).step_by(grain.size as usize);
    tiles.map(move |start| {
        let input = |t: i64| {
            let inside = |k: &i64| {
                let o = start + t - k;
                (0..grain.size as i64).contains(&(t - k)) && (0..axis.output as i64).contains(&o)
            };
            let k = (0..3).find(inside)?;
            axis.tap((start + t - k) as u64, k as u64)
        };
        (0..grain.size as i64 + 2).map(input).collect()
    })
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
