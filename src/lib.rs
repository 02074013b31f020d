//! Runs convolutional networks on images bigger than memory: in strips, within a hard memory
//! budget, with the same bits as the untiled run.
//!
//! ```text
//!  model.onnx ─ import ─▶ Graph ─ sweep ─▶ phases ─ plan ─▶ SafePlan ─ exec ─▶ rows out
//!                        (sized)          of steps         (checked)    ▲
//!                                                                 io: rows in
//! ```
//!
//! The rooms, from the bottom up; each imports only those before it, and a test checks that:
//!
//! - [`error`]: the one error type. [`func`]: names of scalar functions.
//! - [`dense`]: every op over whole tensors; folds constants, and runs what cannot be in strips.
//! - [`graph`]: what is computed; which rows an output row reads.
//! - [`kernels`], [`io`]: row kernels; row sources and sinks. They know no graph and no plan.
//! - [`import`]: ONNX files to graphs, lowered and fused.
//! - [`sweep`]: a graph cut into phases of steps, and the recurrence of fronts.
//! - [`trace`]: events, written by the simulator and by runs alike.
//! - [`plan`]: strips, panels, slots and places within a budget; the checker; the simulator.
//! - [`exec`]: runs a checked plan on the CPU.
//!
//! Two things differ from the usual shape of such a crate. Ops over whole tensors have a room of
//! their own ([`dense`]), below the graph, since folding constants needs them before there is one.
//! And `plan` may ask `kernels` how long packed weights are, so that the formula stands once.

pub mod dense;
pub mod error;
pub mod exec;
pub mod func;
pub mod graph;
pub mod import;
pub mod io;
pub mod kernels;
pub mod plan;
pub mod sweep;
pub mod trace;

pub use error::{Error, Result};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
