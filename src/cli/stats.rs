//! What runs took, for `--stats`.

use serde::Serialize;
use stripmill::exec;
use stripmill::kernels::Isa;
use stripmill::plan::Plan;

/// What `run` and `bench` both tell, besides how long it took.
#[derive(Debug, Serialize)]
pub(super) struct Stats {
    /// Opening, planning and packing.
    open_seconds: f64,
    predicted_seconds: f64,
    pub(super) peak_rss_bytes: Option<u64>,
    predicted_peak_bytes: u64,
    arena_bytes: u64,
    /// The budget, given or found.
    memory_bytes: Option<u64>,
    /// Turns in which the largest source advances, in the phase that has most.
    strips: u64,
    /// Of the phase that has most.
    panels: usize,
    phases: usize,
    threads: usize,
    isa: &'static str,
    /// From and to storage, rows kept for the time being included.
    pub(super) bytes_read: u64,
    pub(super) bytes_written: u64,
}

impl Stats {
    /// Of all that the process has done so far.
    pub(super) fn new(plan: &Plan, took: &exec::Stats, open_seconds: f64, isa: Isa) -> Self {
        let strips = plan
            .phases
            .iter()
            .map(|p| p.sweep.height.div_ceil(p.strip.max(1)));
        let panels = plan.phases.iter().map(|p| p.panels.len());
        Stats {
            open_seconds,
            predicted_seconds: plan.seconds,
            peak_rss_bytes: exec::peak_resident_memory(),
            predicted_peak_bytes: plan.peak.total(),
            arena_bytes: plan.arena_bytes,
            memory_bytes: plan.options.memory,
            strips: strips.max().unwrap_or(0),
            panels: panels.max().unwrap_or(0),
            phases: plan.phases.len(),
            threads: plan.options.threads,
            isa: isa.name(),
            bytes_read: took.bytes_read,
            bytes_written: took.bytes_written,
        }
    }
}
