//! Predicted seconds. Fixed rates of an ordinary machine, so that plans are reproducible.

use super::{Panel, PhasePlan};
use crate::graph::{Graph, Op};
use crate::sweep::{Step, Sweep, Work};

/// Multiply-adds per second and thread of a convolution, times two.
const FLOPS: f64 = 90e9;
/// Bytes per second of rows that stay in the last cache level, all threads.
const CACHE_BYTES: f64 = 80e9;
/// Bytes per second of rows that do not.
const MEMORY_BYTES: f64 = 16e9;
/// What the last cache level holds of rows and weights, in bytes.
const CACHE: u64 = 16 << 20;
/// Seconds that a step costs in a turn, whatever it does.
const STEP: f64 = 4e-6;

/// Seconds of one phase of a graph of `n` batch items.
pub(super) fn seconds(graph: &Graph, phase: &PhasePlan, threads: usize) -> f64 {
    let sweep = &phase.sweep;
    let rows: u64 = phase.pools.iter().map(|p| p.slot_bytes * p.slots).sum();
    let items = sweep.rows.iter().map(|r| graph.tensor(r.tensor).n()).max().unwrap_or(0) as f64;
    let mut total = 0.0;
    for panel in &phase.panels {
        total += phase.turns as f64 * sweep.steps.len() as f64 * STEP;
        for (s, step) in sweep.steps.iter().enumerate() {
            let passes = step.height.div_ceil(phase.pace[s].cap.max(1)) as f64;
            let weights = weight_bytes(graph, step) as f64 * passes;
            let moved = moved(graph, sweep, panel, step) as f64 * step.height as f64;
            let rate = if rows + weight_bytes(graph, step) > CACHE { MEMORY_BYTES } else { CACHE_BYTES };
            let compute = flops(graph, sweep, panel, step) * step.height as f64 / (FLOPS * threads as f64);
            total += compute.max((weights + moved) / rate);
        }
    }
    total * items
}

/// Bytes of rows read and written for one row of a step.
fn moved(graph: &Graph, sweep: &Sweep, panel: &Panel, step: &Step) -> u64 {
    let width = |rows: usize| panel.windows[rows].end - panel.windows[rows].start;
    let bytes = |rows: usize| 4 * width(rows) * graph.tensor(sweep.rows[rows].tensor).c();
    step.reads.iter().map(|r| bytes(r.rows)).sum::<u64>() + step.makes.map_or(0, bytes)
}

/// Floating-point operations for one row of a step.
fn flops(graph: &Graph, sweep: &Sweep, panel: &Panel, step: &Step) -> f64 {
    let (Work::Node(node), Some(rows)) = (step.work, step.makes) else { return 0.0 };
    let window = &panel.windows[rows];
    let pixels = (window.end - window.start) as f64;
    match &graph.node(node).op {
        Op::Conv(conv) => {
            let taps = graph.weights[conv.weight].len() as f64;
            // a transposed convolution uses one in stride × stride taps for a pixel
            let share = step.reads[0].axis.stride_share() * step.reads[0].cols.stride_share();
            2.0 * pixels * taps * share
        }
        _ => 2.0 * pixels * graph.tensor(sweep.rows[rows].tensor).c() as f64,
    }
}

fn weight_bytes(graph: &Graph, step: &Step) -> u64 {
    let Work::Node(node) = step.work else { return 0 };
    match &graph.node(node).op {
        Op::Conv(conv) => 4 * graph.weights[conv.weight].len(),
        _ => 0,
    }
}
