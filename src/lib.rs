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
