//! Panels: which columns of each tensor a panel needs.
//!
//! ```text
//!            own columns of panel 1
//!  output   ........|########|........      what a panel gives out is its own
//!  conv     .......|##########|.......      what that reads grows backwards through the graph
//!  input    ......|############|......      by the windows of the columns: the overlap is redone
//! ```

use std::ops::Range;

use super::{COLUMN_BLOCK, Panel};
use crate::graph::Graph;
use crate::sweep::{Sweep, Work};

/// A sweep's panels, and for each of its rows the columns of the widest and of all together.
pub(super) struct Cut {
    pub(super) panels: Vec<Panel>,
    pub(super) widest: Vec<u64>,
    pub(super) total: Vec<u64>,
}

impl Cut {
    /// `sweep` cut into `count` panels; fewer where some would own nothing.
    pub(super) fn new(graph: &Graph, sweep: &Sweep, count: u64) -> Self {
        let all = (0..count).map(|p| panel(graph, sweep, p, count));
        let mut panels: Vec<Panel> = all
            .filter(|p| p.owned.iter().any(|o| !o.is_empty()))
            .collect();
        if panels.len() <= 1 {
            // one owns all there is, or nothing leaves the sweep: untiled, with whole rows of sources
            panels = vec![panel(graph, sweep, 0, 1)];
        }
        let widths = |k: usize| {
            panels
                .iter()
                .map(move |p| p.windows[k].end - p.windows[k].start)
        };
        let rows = 0..sweep.rows.len();
        let widest = rows.clone().map(|k| widths(k).max().unwrap_or(0)).collect();
        let total = rows.map(|k| widths(k).sum()).collect();
        Cut {
            panels,
            widest,
            total,
        }
    }
}

fn panel(graph: &Graph, sweep: &Sweep, p: u64, count: u64) -> Panel {
    let mut windows: Vec<Range<u64>> = vec![0..0; sweep.rows.len()];
    let mut owned: Vec<Range<u64>> = vec![0..0; sweep.steps.len()];
    for (s, step) in sweep.steps.iter().enumerate().rev() {
        let width = match step.makes {
            Some(rows) => graph.tensor(sweep.rows[rows].tensor).w(),
            None => step.reads[0].cols.output,
        };
        let gives = match (step.makes, step.work) {
            (None, _) => true,
            (Some(rows), Work::Node(_) | Work::Load(_)) => sweep.rows[rows].stored,
            (Some(_), _) => false,
        };
        if gives {
            owned[s] = cut(width, p, count)..cut(width, p + 1, count);
        }
        let mut out = owned[s].clone();
        if let Some(rows) = step.makes {
            out = hull(&out, &windows[rows]);
            out = match step.work {
                // a source that goes in order gives whole rows
                Work::Load(_) if count == 1 => 0..width,
                _ if out.is_empty() => out,
                _ => step.grains[1].cover(out, width),
            };
            windows[rows] = out.clone();
        }
        if out.is_empty() {
            continue;
        }
        for read in &step.reads {
            windows[read.rows] = hull(&windows[read.rows], &read.cols.span(&out));
        }
    }
    Panel { windows, owned }
}

/// Where panel `p` of `count` starts along `width` columns.
fn cut(width: u64, p: u64, count: u64) -> u64 {
    if p >= count {
        return width;
    }
    let even = (u128::from(width) * u128::from(p) / u128::from(count)) as u64;
    ((even + COLUMN_BLOCK / 2) / COLUMN_BLOCK * COLUMN_BLOCK).min(width)
}

fn hull(a: &Range<u64>, b: &Range<u64>) -> Range<u64> {
    match (a.is_empty(), b.is_empty()) {
        (true, _) => b.clone(),
        (_, true) => a.clone(),
        _ => a.start.min(b.start)..a.end.max(b.end),
    }
}
