//! The plan: how a graph is run within a budget, decided before any work.
//!
//! ```text
//!  Graph ─ sweep::phases ─▶ phases ─ candidates of (strip, panels)
//!     each: windows (columns of each panel) ─ delay ─ live (slots) ─ weights ─ place (arena) ─ cost
//!  the fastest that fits the budget ─ live over the full height ─ check ─▶ SafePlan
//! ```
//!
//! A plan holds no rows: which rows a turn makes follows from [`crate::sweep::Fronts`], so its size
//! does not depend on the image's height. A runtime decides nothing about memory; it can only be
//! given a [`SafePlan`], which nothing but [`check()`] constructs.

mod build;
mod check;
mod cost;
mod delay;
pub(crate) mod footprint;
mod lag;
mod live;
mod panels;
mod place;
mod simulate;
mod windows;

pub use build::{Planner, plan};
pub use check::{SafePlan, check};
pub use lag::lags;
pub use panels::Panels;
pub use place::{Request, load, place};
pub use simulate::simulate;

use std::ops::Range;

use serde::Serialize;

use crate::graph::{NodeId, TensorId};
use crate::sweep::{Pace, Sweep};

/// Columns that belong to one panel alone start at multiples of this: statistics are summed in
/// blocks of so many columns, and a block must not be cut.
pub const COLUMN_BLOCK: u64 = 64;

/// Alignment of every buffer in the arena, in bytes: a cache line, and a vector of any level.
pub const ALIGN: u64 = 64;

/// What the planner is asked for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Options {
    /// The most bytes of resident memory; `None` for no limit.
    pub memory: Option<u64>,
    /// Threads that will run it, at least 1.
    pub threads: usize,
    /// Rows that the largest source advances in a turn; `None` to choose.
    pub strip: Option<u64>,
    /// Panels that the width is cut into; `None` to choose.
    pub panels: Option<u64>,
    /// Bytes that sources and sinks hold.
    pub io_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            memory: None,
            threads: 1,
            strip: None,
            panels: None,
            io_bytes: 0,
        }
    }
}

/// A place in the arena: an index into [`Plan::buffers`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct MemId(pub u32);

impl MemId {
    /// As an index.
    pub fn at(self) -> usize {
        self.0 as usize
    }
}

/// What a buffer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub enum Class {
    /// Packed weights of a node.
    Weights,
    /// Slots for rows that come and go.
    Rows,
    /// All rows of a tensor that another phase reads.
    Stored,
    /// A whole tensor.
    Whole,
    /// Sums of a gather.
    Sums,
    /// What a step works in, and leaves nothing in: one for all steps of a sweep.
    Workspace,
}

/// Bytes that live from one instruction of [`Plan::script`] to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Buffer {
    /// What it is for, by the name of its tensor or node.
    pub name: String,
    /// What it holds.
    pub class: Class,
    /// Its size.
    pub bytes: u64,
    /// Index of its [`Instr::Alloc`].
    pub birth: usize,
    /// Index of its [`Instr::Free`].
    pub death: usize,
    /// Where in the arena it is, in bytes.
    pub offset: u64,
}

/// An instruction of the script, which is run once from start to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Instr {
    /// From here on the buffer's bytes are its own.
    Alloc {
        /// Which.
        mem: MemId,
    },
    /// From here on the buffer's bytes may be another's.
    Free {
        /// Which.
        mem: MemId,
    },
    /// Reads a node's weights and packs them into their buffer.
    Pack {
        /// The node.
        node: NodeId,
    },
    /// Runs an op over whole tensors.
    Dense {
        /// The node.
        node: NodeId,
    },
    /// Runs the sweep of a phase: for each batch item and panel all turns.
    Sweep {
        /// Index into [`Plan::phases`].
        phase: usize,
    },
}

/// An instruction of the super-turn, which is run every turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum TurnInstr {
    /// Advances a step: takes slots for the rows it makes and makes them.
    Exec {
        /// Index into [`Sweep::steps`].
        step: usize,
        /// Instructions of this turn that must have ended before, by index.
        after: Vec<usize>,
    },
    /// Gives back the slots of rows that no step reads any more.
    Drop {
        /// Index into [`Sweep::rows`].
        rows: usize,
        /// Instructions of this turn that must have ended before, by index.
        after: Vec<usize>,
    },
}

/// Where the rows of a tensor are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Home {
    /// In slots of pool `_`, handed out as rows come.
    Slots(usize),
    /// In a buffer that has a place for every row of every batch item, full width.
    Stored(MemId),
}

/// Slots of equal size that several tensors share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pool {
    /// Its buffer.
    pub mem: MemId,
    /// Bytes of a slot, a multiple of [`ALIGN`].
    pub slot_bytes: u64,
    /// How many slots.
    pub slots: u64,
}

/// A range of columns that is swept on its own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Panel {
    /// The columns of each of [`Sweep::rows`] that exist while the panel is swept.
    pub windows: Vec<Range<u64>>,
    /// For each step that gives rows out of the sweep (a save, a gather, a stored tensor): the columns
    /// that are this panel's own; empty for the others.
    pub owned: Vec<Range<u64>>,
}

/// A phase with all decisions made.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PhasePlan {
    /// What moves.
    pub sweep: Sweep,
    /// Rows that the largest source advances in a turn.
    pub strip: u64,
    /// How fast each step goes.
    pub pace: Vec<Pace>,
    /// The panels, left to right.
    pub panels: Panels,
    /// Where each of [`Sweep::rows`] is.
    pub homes: Vec<Home>,
    /// The pools of slots.
    pub pools: Vec<Pool>,
    /// Where steps work, if any of them needs room.
    pub workspace: Option<MemId>,
    /// The super-turn.
    pub turn: Vec<TurnInstr>,
    /// Turns of one panel.
    pub turns: u64,
    /// For each of [`Sweep::rows`], the most rows that outlive a turn.
    pub carry: Vec<u64>,
}

/// Predicted resident bytes at the peak, by what they are for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Peak {
    /// Code, runtime and graph, before any row is touched.
    pub program: u64,
    /// Stacks and scratch of the threads.
    pub threads: u64,
    /// Constants that the graph holds.
    pub constants: u64,
    /// What sources and sinks hold.
    pub io: u64,
    /// The arena.
    pub arena: u64,
}

impl Peak {
    /// The sum.
    pub fn total(&self) -> u64 {
        self.program + self.threads + self.constants + self.io + self.arena
    }
}

/// How a graph is run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    /// Version of this format.
    pub version: u32,
    /// What was asked for.
    pub options: Options,
    /// The phases.
    pub phases: Vec<PhasePlan>,
    /// Everything that is placed in the arena.
    pub buffers: Vec<Buffer>,
    /// The order of work.
    pub script: Vec<Instr>,
    /// The buffer of each node's packed weights, of each gather's sums.
    pub node_mem: Vec<Option<MemId>>,
    /// The buffer of each whole tensor that is not a constant.
    pub tensor_mem: Vec<Option<MemId>>,
    /// Size of the arena.
    pub arena_bytes: u64,
    /// Predicted peak.
    pub peak: Peak,
    /// Predicted seconds, from the first row in to the last row out.
    pub seconds: f64,
}

impl Plan {
    /// The bytes of the arena that buffer `mem` has.
    pub fn range(&self, mem: MemId) -> Range<usize> {
        let buffer = &self.buffers[mem.at()];
        buffer.offset as usize..(buffer.offset + buffer.bytes) as usize
    }

    /// Turns of all phases and panels, for one batch item.
    pub fn turns(&self) -> u64 {
        self.phases
            .iter()
            .map(|p| p.turns * p.panels.len() as u64)
            .sum()
    }

    /// The tensor behind `rows` of phase `p`.
    pub fn tensor_of(&self, p: usize, rows: usize) -> TensorId {
        self.phases[p].sweep.rows[rows].tensor
    }
}
