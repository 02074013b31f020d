//! What happened when: one event for each step of each turn, written by the simulator and by the
//! runtimes alike, so that a prediction can be laid over a run.

use std::ops::Range;

use serde::Serialize;

/// A step that advanced.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Event {
    /// Index of the phase.
    pub phase: usize,
    /// Batch item.
    pub item: u64,
    /// Index of the panel.
    pub panel: usize,
    /// Turn of the sweep.
    pub turn: u64,
    /// Index of the step in the phase's sweep.
    pub step: usize,
    /// Rows that it passed over.
    pub rows: Range<u64>,
    /// Seconds from the start of the run to the start of the step.
    pub start: f64,
    /// Seconds that it took.
    pub seconds: f64,
}

/// Takes events in order of time.
pub type Tracer<'a> = &'a mut (dyn FnMut(Event) + Send);
