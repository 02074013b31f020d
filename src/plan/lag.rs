//! How far each tensor stays behind the source.

use super::PhasePlan;
use crate::sweep::Fronts;

/// Turns that are looked at once every step has moved.
const SETTLE: u64 = 16;

/// For each tensor of the phase's sweep, the most rows of the largest source that it stays behind
/// while the source moves.
pub fn lags(phase: &PhasePlan) -> Vec<u64> {
    let sweep = &phase.sweep;
    let mut fronts = Fronts::new(sweep, &phase.pace, phase.strip);
    let mut lags = vec![0; sweep.rows.len()];
    let mut left = SETTLE;
    while !fronts.done() && left > 0 {
        for step in 0..sweep.steps.len() {
            fronts.advance(step);
        }
        fronts.end_turn();
        let source = fronts.turn().saturating_mul(phase.strip);
        if source >= sweep.height {
            break;
        }
        for (rows, lag) in lags.iter_mut().enumerate() {
            let ratio = sweep.steps[sweep.rows[rows].maker].ratio;
            let front = (fronts.front(rows) as f64 / ratio.value()) as u64;
            *lag = source.saturating_sub(front).max(*lag);
        }
        if (0..sweep.steps.len()).all(|s| fronts.passed(s) > 0 || sweep.steps[s].height == 0) {
            left -= 1;
        }
    }
    lags
}
