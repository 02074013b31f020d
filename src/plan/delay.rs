//! Delays: making rows late where they are small and early where they shrink saves carry.
//!
//! In a steady sweep, row `o` of a step of `ratio` rows per source row is made when the source is at
//! `o / ratio + lag`. A reader whose windows start `d` rows back keeps a row until
//! `lag(reader) − d / ratio`, so the carried bytes are linear in the lags:
//!
//! ```text
//!  carry = Σ tensors  bytes per source row · (max over readers (lag − d / ratio) − lag of the maker)
//! ```
//!
//! Each lag has a least value (its inputs') and a greatest (its readers'). Moving one at a time to
//! the end where the sum is smaller, from the last step to the first until nothing changes, finds
//! the delays of branches that wait for others.

use crate::graph::Axis;
use crate::sweep::{Pace, Ratio, Sweep};

/// Passes over all steps before the search stops.
const PASSES: usize = 8;

/// Sets the delays of `pace`. `row_bytes` are the bytes of a row of each of the sweep's rows.
pub(super) fn delay(sweep: &Sweep, row_bytes: &[u64], pace: &mut [Pace]) {
    let mut lags = Lags::new(sweep, row_bytes);
    for _ in 0..PASSES {
        let moved = (0..sweep.steps.len()).rev().filter(|&s| lags.improve(s));
        if moved.count() == 0 {
            break;
        }
    }
    for (s, pace) in pace.iter_mut().enumerate() {
        let slack = (lags.lag[s] - lags.least(s)) * sweep.steps[s].ratio.value();
        // the small amount forgives rounding in the sums above
        let rows = (slack + 1e-6).floor().max(0.0) as u64;
        pace.delay = rows / pace.grain * pace.grain;
    }
}

struct Lags<'a> {
    sweep: &'a Sweep,
    /// Bytes per source row of each of the sweep's rows; 0 where delays save nothing.
    weight: Vec<f64>,
    /// Source rows that each step stays behind.
    lag: Vec<f64>,
    /// For each step and read: source rows before its own time that the last row it reads is made,
    /// and that the first row it reads is dropped.
    reach: Vec<Vec<(f64, f64)>>,
}

impl<'a> Lags<'a> {
    fn new(sweep: &'a Sweep, row_bytes: &[u64]) -> Self {
        let maker = |rows: usize| sweep.steps[sweep.rows[rows].maker].ratio;
        let weight = (sweep.rows.iter().zip(row_bytes).enumerate())
            .map(|(k, (rows, &bytes))| {
                if rows.stored {
                    0.0
                } else {
                    bytes as f64 * maker(k).value()
                }
            })
            .collect();
        let reach = (sweep.steps.iter())
            .map(|step| {
                step.reads
                    .iter()
                    .map(|r| reach(&r.axis, step.ratio, maker(r.rows)))
                    .collect()
            })
            .collect();
        let mut lags = Lags {
            sweep,
            weight,
            lag: vec![0.0; sweep.steps.len()],
            reach,
        };
        for s in 0..sweep.steps.len() {
            lags.lag[s] = lags.least(s);
        }
        lags
    }

    /// The lag that the inputs of step `s` allow.
    fn least(&self, s: usize) -> f64 {
        let reads = self.sweep.steps[s].reads.iter().zip(&self.reach[s]);
        reads
            .map(|(r, reach)| self.lag[self.sweep.rows[r.rows].maker] + reach.0)
            .fold(0.0, f64::max)
    }

    /// When a row of `rows` is dropped, but for reader `but`.
    fn dropped(&self, rows: usize, but: usize) -> f64 {
        let readers = self.sweep.rows[rows]
            .readers
            .iter()
            .filter(|(s, _)| *s != but);
        readers
            .map(|&(s, k)| self.lag[s] + self.reach[s][k].1)
            .fold(f64::MIN, f64::max)
    }

    /// Moves step `s` to its latest time where that carries fewer bytes.
    fn improve(&mut self, s: usize) -> bool {
        let Some(made) = self.sweep.steps[s].makes else {
            return false;
        };
        let least = self.least(s);
        let readers = self.sweep.rows[made].readers.iter();
        let most = readers
            .map(|&(r, k)| self.lag[r] - self.reach[r][k].0)
            .fold(f64::MAX, f64::min);
        if most >= 1e12 || most <= least {
            return self.settle(s, least);
        }
        let bytes = |lag: f64| {
            let reads = self.sweep.steps[s].reads.iter().zip(&self.reach[s]);
            let inputs = reads
                .map(|(r, reach)| self.weight[r.rows] * self.dropped(r.rows, s).max(lag + reach.1));
            inputs.sum::<f64>() - self.weight[made] * lag
        };
        let best = if bytes(most) < bytes(least) - 1e-6 {
            most
        } else {
            least
        };
        self.settle(s, best)
    }

    fn settle(&mut self, s: usize, lag: f64) -> bool {
        let moved = (self.lag[s] - lag).abs() > 1e-6;
        self.lag[s] = lag;
        moved
    }
}

/// How far, in source rows, a step's row is behind the last input row it needs and the first it
/// keeps, taken at the middle of the image.
fn reach(axis: &Axis, step: Ratio, input: Ratio) -> (f64, f64) {
    let o = axis.output / 2;
    let time = (o + 1) as f64 / step.value();
    let needs = axis.needs(o) as f64 / input.value() - time;
    let keeps = time - axis.tail((o + 1).min(axis.output)) as f64 / input.value();
    (needs, keeps)
}
