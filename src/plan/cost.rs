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

/// Seconds of one phase.
pub(super) fn seconds(graph: &Graph, phase: &PhasePlan, threads: usize) -> f64 {
    let items = phase.sweep.rows.iter().map(|r| graph.tensor(r.tensor).n()).max().unwrap_or(0) as f64;
    let each = |panel: &Panel| {
        let steps = 0..phase.sweep.steps.len();
        let step = |s: usize| {
            let (height, cap) = (phase.sweep.steps[s].height, phase.pace[s].cap.max(1));
            let full = (height / cap) as f64 * step(graph, phase, panel, s, cap, threads);
            full + if height % cap > 0 { step(graph, phase, panel, s, height % cap, threads) } else { 0.0 }
        };
        steps.map(step).sum::<f64>()
    };
    items * phase.panels.iter().map(each).sum::<f64>()
}

/// Seconds that step `s` takes for `made` of its rows in `panel`: the longer of arithmetic and
/// traffic, and a fixed cost.
pub(super) fn step(graph: &Graph, phase: &PhasePlan, panel: &Panel, s: usize, made: u64, threads: usize) -> f64 {
    let (sweep, step) = (&phase.sweep, &phase.sweep.steps[s]);
    let rows: u64 = phase.pools.iter().map(|p| p.slot_bytes * p.slots).sum();
    let weights = weight_bytes(graph, step);
    let rate = if rows + weights > CACHE { MEMORY_BYTES } else { CACHE_BYTES };
    let compute = flops(graph, sweep, panel, step) * made as f64 / (FLOPS * threads as f64);
    let traffic = (weights + moved(graph, sweep, panel, step) * made) as f64 / rate;
    compute.max(traffic) + STEP
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
