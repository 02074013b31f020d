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

/// What a sweep cut into panels costs by.
pub(super) struct Cut {
    /// How many panels there are.
    pub(super) panels: u64,
    /// For each of the sweep's rows, the columns of the widest window.
    pub(super) widest: Vec<u64>,
    /// The same of all windows together.
    pub(super) total: Vec<u64>,
}

impl Cut {
    /// Of `sweep` cut into `count` panels.
    pub(super) fn new(graph: &Graph, sweep: &Sweep, count: u64) -> Self {
        let none = vec![0; sweep.rows.len()];
        let mut cut = Cut {
            panels: 0,
            widest: none.clone(),
            total: none,
        };
        for panel in panels(graph, sweep, count) {
            cut.panels += 1;
            for (k, window) in panel.windows.iter().enumerate() {
                let width = window.end - window.start;
                cut.widest[k] = cut.widest[k].max(width);
                cut.total[k] += width;
            }
        }
        cut
    }
}

/// `sweep` cut into `count` panels; fewer where some would own nothing.
pub(super) fn panels<'a>(
    graph: &'a Graph,
    sweep: &'a Sweep,
    count: u64,
) -> impl Iterator<Item = Panel> + use<'a> {
    let gives = (0..sweep.steps.len()).filter(|&s| gives(sweep, s));
    let widths: Vec<u64> = gives.map(|s| width(graph, sweep, s)).collect();
    let owns = move |p: u64| {
        widths
            .iter()
            .any(|&w| cut(w, p, count) < cut(w, p + 1, count))
    };
    // one owns all there is, or nothing leaves the sweep: untiled, with whole rows of sources
    let alone = (0..count).filter(|&p| owns(p)).nth(1).is_none();
    let count = if alone { 1 } else { count };
    let cuts = (0..count).filter(move |&p| alone || owns(p));
    cuts.map(move |p| panel(graph, sweep, p, count))
}

fn panel(graph: &Graph, sweep: &Sweep, p: u64, count: u64) -> Panel {
    let mut windows: Vec<Range<u64>> = vec![0..0; sweep.rows.len()];
    let mut owned: Vec<Range<u64>> = vec![0..0; sweep.steps.len()];
    for (s, step) in sweep.steps.iter().enumerate().rev() {
        let width = || width(graph, sweep, s);
        if gives(sweep, s) {
            owned[s] = cut(width(), p, count)..cut(width(), p + 1, count);
        }
        let mut out = owned[s].clone();
        if let Some(rows) = step.makes {
            out = hull(&out, &windows[rows]);
            out = match step.work {
                // a source that goes in order gives whole rows
                Work::Load(_) if count == 1 => 0..width(),
                _ if out.is_empty() => out,
                _ => step.grains[1].cover(out, width()),
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

/// Columns of what step `s` passes over.
fn width(graph: &Graph, sweep: &Sweep, s: usize) -> u64 {
    let step = &sweep.steps[s];
    match step.makes {
        Some(rows) => graph.tensor(sweep.rows[rows].tensor).w(),
        None => step.reads[0].cols.output,
    }
}

/// Whether rows of step `s` leave the sweep.
fn gives(sweep: &Sweep, s: usize) -> bool {
    let step = &sweep.steps[s];
    let recalled = step.work == Work::Recall;
    step.makes
        .is_none_or(|rows| sweep.rows[rows].stored && !recalled)
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
