//! Proof that a plan is safe to run, from its own data and the graph's windows alone.
//!
//! Nothing here is shared with the passes that make plans: what they decided is read from the plan,
//! every number it claims is worked out again in another way, and the only window arithmetic is
//! [`crate::graph::Axis`]. All turns of every sweep are proved, each stepped or known to be one that
//! was, in memory that does not grow with the image.
//!
//! ```text
//!  steps    the sweeps compute the graph: every node, every operand, every output, nothing else
//!  order    within a turn, nothing runs before what it needs has ended
//!  turns    over all turns: caps hold, rows that are read exist, slots suffice, fronts reach the end
//!  panels   windows hold every column that is read; what leaves the sweep is given exactly once
//!  buffers  every buffer belongs to one owner, is big enough, is aligned; the sum is in the budget
//!  script   everything is made before it is read and alive while it is used; no two lives overlap
//! ```
//!
//! What is proved of a turn holds for a runtime that starts its instructions in their order, waits
//! for those in `after` to end before each, and for all of them before the next turn.

mod buffers;
mod order;
mod panels;
mod script;
mod span;
mod steps;
mod turns;

use super::{PhasePlan, Plan};
use crate::error::Result;
use crate::graph::Graph;
use crate::sweep::Work;

/// The error that says why a plan is rejected.
macro_rules! fault {
    ($($why:tt)+) => {
        $crate::error::Error::Plan(format!($($why)+))
    };
}
/// Rejects the plan, for a reason, unless a statement holds.
macro_rules! ensure {
    ($holds:expr, $($why:tt)+) => {
        if !$holds {
            return Err($crate::plan::check::fault!($($why)+));
        }
    };
}
use {ensure, fault};

/// A plan that [`check`] accepted: the only kind a runtime takes.
#[derive(Debug, Clone, PartialEq)]
pub struct SafePlan(Plan);

impl SafePlan {
    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.0
    }
}

/// Accepts `plan` for `graph`.
///
/// # Errors
/// [`crate::Error::Plan`] saying what is wrong, with the step, tensor or buffer and the numbers.
pub fn check(graph: &Graph, plan: Plan) -> Result<SafePlan> {
    steps::check(graph, &plan)?;
    for (number, phase) in plan.phases.iter().enumerate() {
        let sweep = Sweeping {
            graph,
            phase,
            number,
        };
        order::check(&sweep)?;
        turns::check(&sweep)?;
        panels::check(&sweep)?;
    }
    buffers::check(graph, &plan)?;
    script::check(graph, &plan)?;
    Ok(SafePlan(plan))
}

/// A phase that is being checked, and what messages call its parts.
#[derive(Clone, Copy)]
struct Sweeping<'a> {
    graph: &'a Graph,
    phase: &'a PhasePlan,
    number: usize,
}

impl Sweeping<'_> {
    /// Step `s`, for a message.
    fn step(&self, s: usize) -> String {
        let graph = self.graph;
        let what = match self.phase.sweep.steps[s].work {
            Work::Load(k) => match graph.inputs.get(k) {
                Some(&id) => format!("load of `{}`", graph.tensor(id).name),
                None => format!("load of input {k}"),
            },
            Work::Recall => "recall".into(),
            Work::Node(id) => match graph.nodes.get(id.at()) {
                Some(node) => format!("`{}`", node.name),
                None => format!("node {}", id.0),
            },
            Work::Save(k) => format!("save of output {k}"),
        };
        format!("phase {}, step {s} ({what})", self.number)
    }

    /// The tensor `rows` of the sweep, for a message.
    fn rows(&self, rows: usize) -> String {
        let tensor = self.graph.tensor(self.phase.sweep.rows[rows].tensor);
        format!("phase {}, rows of `{}`", self.number, tensor.name)
    }
}
