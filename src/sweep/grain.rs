//! Grains: rows and columns that are made together, and the grids on which they stand.
//!
//! Winograd tiles stand on a grid of their own in each tensor, fixed by the model and the input's
//! size: where a tensor's front is when those of the sources are at a round row.
//!
//! ```text
//!             turn s       turn s + 1           4 rows a turn, grains of 4
//!  source   ┊· · · ·┊     ┊· · · ·┊
//!  conv      ·┊· · · ·┊    lags one: its grid is one row up, so that a turn of 4 rows
//!  conv      · ·┊· · · ·┊  makes one whole grain of every tensor, and none waits
//! ```

use std::ops::Range;

use serde::Serialize;

use super::{Ratio, Sweep, Work};
use crate::graph::{Graph, Op, Side};

/// Rows, or columns, that are made together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct Grain {
    /// How many, at least 1.
    pub size: u64,
    /// A row at which a grain starts, less than the size. The image's ends may cut one.
    pub offset: u64,
}

impl Grain {
    /// Rows of the grain that holds row `x` which are before it.
    pub fn before(self, x: u64) -> u64 {
        (x + self.size - self.offset) % self.size
    }

    /// The whole grains that hold `range`, which is in `0..len`.
    pub fn cover(self, range: Range<u64>, len: u64) -> Range<u64> {
        let start = range.start.saturating_sub(self.before(range.start));
        let beyond = self.before(range.end);
        let after = if beyond == 0 { 0 } else { self.size - beyond };
        start..range.end.saturating_add(after).min(len)
    }
}

/// The grains of a step along rows and columns, not yet anchored.
pub(super) fn sizes(graph: &Graph, work: Work) -> [Grain; 2] {
    let grain = |size| Grain { size, offset: 0 };
    let [rows, cols] = match work {
        Work::Node(id) => match &graph.node(id).op {
            Op::Conv(conv) => [conv.tile; 2],
            // a row of blocks is made column by column, but each block whole
            Op::DepthToSpace { block, .. } => [1, *block],
            _ => [1, 1],
        },
        _ => [1, 1],
    };
    [grain(rows), grain(cols)]
}

/// Source rows between which fronts repeat, at most: beyond it grids are only nearly in step.
const MOST: u64 = 1 << 16;

/// Anchors the grids of a sweep's convolutions along one axis.
pub(super) fn anchor(graph: &Graph, sweep: &mut Sweep, scales: &[Vec<Ratio>; 2], side: Side) {
    let axis = side as usize;
    let tensor = |sweep: &Sweep, rows: usize| sweep.rows[rows].tensor;
    let scale = |sweep: &Sweep, rows: usize| scales[axis][tensor(sweep, rows).at()];
    let sources = sweep.steps.iter().filter(|s| s.is_source());
    let largest = sources
        .filter_map(|s| s.makes)
        .map(|rows| {
            (
                scale(sweep, rows),
                graph.tensor(tensor(sweep, rows)).len(side),
            )
        })
        .max_by(|a, b| a.0.value().total_cmp(&b.0.value()));
    let Some((largest, len)) = largest else {
        return;
    };
    let ratio = |sweep: &Sweep, rows: usize| {
        let ratio = scale(sweep, rows).times(largest.inverse());
        ratio.unwrap_or(Ratio::new(1, 1))
    };
    let most = sweep.steps.iter().map(|s| s.grains[axis].size).max();
    let period = (0..sweep.rows.len()).fold(most.unwrap_or(1), |period, rows| {
        let den = ratio(sweep, rows).den * most.unwrap_or(1);
        let least = den / super::gcd(den.into(), period.into()) as u64;
        period
            .checked_mul(least)
            .filter(|&p| p <= MOST)
            .unwrap_or(period)
    });
    let round = len / 2 / period * period;
    let mut front = vec![0; sweep.steps.len()];
    for s in 0..sweep.steps.len() {
        let step = &sweep.steps[s];
        let reads = step.reads.iter().map(|read| {
            let axis = if side == Side::Rows {
                &read.axis
            } else {
                &read.cols
            };
            axis.ready(front[sweep.rows[read.rows].maker], 0, axis.output)
        });
        front[s] = match (reads.min(), step.makes) {
            (None, Some(rows)) => ratio(sweep, rows).ceil_of(round),
            (ready, _) => ready.unwrap_or(0),
        };
        if matches!(step.work, Work::Node(id) if matches!(graph.node(id).op, Op::Conv(_))) {
            let grain = &mut sweep.steps[s].grains[axis];
            grain.offset = front[s] % grain.size;
        }
    }
}
