//! Predicted seconds. Fixed rates of an ordinary machine, so that plans are reproducible.

use crate::graph::{Graph, Op};
use crate::sweep::{Pace, Step, Sweep, Work};

/// Multiply-adds per second and thread of a convolution, times two.
const FLOPS: f64 = 105e9;
/// What the transforms of Winograd tiles cost for each channel and point, in the same operations.
const TRANSFORM: f64 = 12.0;
/// Bytes per second of rows that stay in the last cache level, all threads.
const CACHE_BYTES: f64 = 80e9;
/// Bytes per second of rows that do not.
const MEMORY_BYTES: f64 = 16e9;
/// What the last cache level holds of rows and weights, in bytes.
const CACHE: u64 = 16 << 20;
/// Seconds that a step costs in a turn, whatever it does.
const STEP: f64 = 4e-6;

/// What the seconds of a sweep depend on, besides the graph.
pub(super) struct Load<'a> {
    pub(super) sweep: &'a Sweep,
    pub(super) pace: &'a [Pace],
    /// Columns of each of the sweep's rows: of one panel, or of all together.
    pub(super) widths: &'a [u64],
    /// How many panels those are.
    pub(super) panels: u64,
    /// Bytes of all pools.
    pub(super) pools: u64,
    pub(super) threads: usize,
}

impl Load<'_> {
    /// Seconds of the whole sweep of one batch item.
    pub(super) fn seconds(&self, graph: &Graph) -> f64 {
        let step = |s: usize| {
            let (height, cap) = (self.sweep.steps[s].height, self.pace[s].cap.max(1));
            let full = (height / cap) as f64 * self.step(graph, s, cap);
            full + if height % cap > 0 {
                self.step(graph, s, height % cap)
            } else {
                0.0
            }
        };
        (0..self.sweep.steps.len()).map(step).sum()
    }

    /// Seconds that step `s` takes for `made` of its rows: the longer of arithmetic and traffic, and a
    /// fixed cost.
    pub(super) fn step(&self, graph: &Graph, s: usize, made: u64) -> f64 {
        let step = &self.sweep.steps[s];
        let weights = weight_bytes(graph, step);
        let rate = if self.pools + weights > CACHE {
            MEMORY_BYTES
        } else {
            CACHE_BYTES
        };
        let compute = self.compute(graph, step, made) / self.threads as f64;
        let traffic = (weights * self.panels + self.moved(graph, step) * made) as f64 / rate;
        compute.max(traffic) + STEP * self.panels as f64
    }

    /// Bytes of rows read and written for one row of a step.
    fn moved(&self, graph: &Graph, step: &Step) -> u64 {
        let bytes =
            |rows: usize| 4 * self.widths[rows] * graph.tensor(self.sweep.rows[rows].tensor).c();
        step.reads.iter().map(|r| bytes(r.rows)).sum::<u64>() + step.makes.map_or(0, bytes)
    }

    /// Seconds of one thread for `made` rows of a step, were all in its cache.
    fn compute(&self, graph: &Graph, step: &Step, made: u64) -> f64 {
        let (Work::Node(node), Some(rows)) = (step.work, step.makes) else {
            return 0.0;
        };
        let pixels = (self.widths[rows] * made) as f64;
        let flops = match &graph.node(node).op {
            Op::Conv(conv) if conv.tile > 1 => {
                let weight = &graph.weights[conv.weight];
                let (cin, cout) = (weight.dims[1] as f64, conv.cout as f64);
                let points = ((conv.tile + 2) * (conv.tile + 2)) as f64;
                let tiles = pixels / (conv.tile * conv.tile) as f64;
                let products = tiles * points * cin * cout * 2.0;
                let transforms = tiles * points * TRANSFORM * (cin + cout);
                let weights = self.panels as f64 * points * TRANSFORM / 4.0 * cin * cout;
                return (products + transforms + weights) / FLOPS;
            }
            Op::Conv(conv) => {
                let taps = graph.weights[conv.weight].len() as f64;
                // a transposed convolution uses one in stride × stride taps for a pixel
                let share = step.reads[0].axis.stride_share() * step.reads[0].cols.stride_share();
                2.0 * pixels * taps * share
            }
            _ => 2.0 * pixels * graph.tensor(self.sweep.rows[rows].tensor).c() as f64,
        };
        flops / FLOPS
    }
}

fn weight_bytes(graph: &Graph, step: &Step) -> u64 {
    let Work::Node(node) = step.work else {
        return 0;
    };
    match &graph.node(node).op {
        Op::Conv(conv) => 4 * graph.weights[conv.weight].len(),
        _ => 0,
    }
}
