//! Valid plans with one fault each.
//!
//! A change that can leave a plan valid is made only where it cannot: each generator says why its
//! changes are faults, and by which rule others are left out.

mod buffers;
mod panels;
mod script;
mod sweep;
mod turns;

use stripmill::graph::Graph;
use stripmill::plan::{PhasePlan, Plan};

/// A plan with a fault, and what the fault is.
pub(crate) struct Fault {
    pub(crate) what: String,
    pub(crate) plan: Plan,
}

/// All faults of all kinds.
pub(crate) fn faults(graph: &Graph, base: &Plan) -> Vec<Fault> {
    let mut faults = Faults {
        graph,
        base,
        made: Vec::new(),
    };
    faults.buffers();
    faults.script();
    faults.turns();
    faults.sweeps();
    faults.panels();
    faults.made
}

struct Faults<'a> {
    graph: &'a Graph,
    base: &'a Plan,
    made: Vec<Fault>,
}

impl<'a> Faults<'a> {
    /// The base plan with a change.
    fn add(&mut self, what: String, change: impl FnOnce(&mut Plan)) {
        let mut plan = self.base.clone();
        change(&mut plan);
        assert!(plan != *self.base, "{what}: nothing has changed");
        self.made.push(Fault { what, plan });
    }

    /// The base plan with a change of phase `p`.
    fn add_in(&mut self, p: usize, what: &str, change: impl FnOnce(&mut PhasePlan)) {
        self.add(format!("phase {p}: {what}"), |plan| {
            change(&mut plan.phases[p])
        });
    }

    fn phases(&self) -> impl Iterator<Item = (usize, &'a PhasePlan)> + use<'a> {
        self.base.phases.iter().enumerate()
    }
}
