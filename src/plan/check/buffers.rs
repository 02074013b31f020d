//! Buffers: each belongs to one owner, is as big as what it holds, and is inside the arena; and the
//! sums that the plan states are right and within the budget.

use super::super::{ALIGN, COLUMN_BLOCK, Class, Home, MemId, Plan, footprint};
use super::{ensure, fault};
use crate::error::Result;
use crate::graph::{Gather, Graph, Layout, Op, WeightSource};
use crate::sweep::{Step, Work};

pub(super) fn check(graph: &Graph, plan: &Plan) -> Result<()> {
    let counts = (plan.node_mem.len(), plan.tensor_mem.len());
    let due = (graph.nodes.len(), graph.tensors.len());
    ensure!(
        counts == due,
        "buffers of {counts:?} nodes and tensors, not {due:?}"
    );
    for buffer in &plan.buffers {
        let (name, offset, bytes) = (&buffer.name, buffer.offset, buffer.bytes);
        ensure!(
            offset.is_multiple_of(ALIGN),
            "buffer `{name}` starts at byte {offset}, which is not aligned"
        );
        let inside = offset
            .checked_add(bytes)
            .is_some_and(|end| end <= plan.arena_bytes);
        ensure!(
            inside,
            "buffer `{name}` has {bytes} bytes from {offset} in an arena of {}",
            plan.arena_bytes
        );
    }
    owners(graph, plan)?;
    homes(graph, plan)?;
    peak(graph, plan)
}

/// Every buffer is what exactly one node, tensor or pool holds, and of its size.
fn owners(graph: &Graph, plan: &Plan) -> Result<()> {
    let mut owned = vec![false; plan.buffers.len()];
    let mut claim = |mem: MemId, owner: &str, class: Class, fits: &dyn Fn(u64) -> bool| {
        let buffer = plan
            .buffers
            .get(mem.at())
            .ok_or_else(|| fault!("{owner} is in buffer {}, which is none", mem.0))?;
        let again = std::mem::replace(&mut owned[mem.at()], true);
        ensure!(
            !again,
            "buffer {} (`{}`) is another's and {owner}'s",
            mem.0,
            buffer.name
        );
        ensure!(
            buffer.class == class,
            "buffer {} of {owner} is {:?}, not {class:?}",
            mem.0,
            buffer.class
        );
        ensure!(
            fits(buffer.bytes),
            "buffer {} of {owner} has {} bytes",
            mem.0,
            buffer.bytes
        );
        Ok(())
    };
    for (node, mem) in graph.nodes.iter().zip(&plan.node_mem) {
        let name = format!("node `{}`", node.name);
        match (&node.op, mem) {
            (Op::Conv(_), Some(mem)) => {
                // what the kernels take is theirs to say
                let packed = footprint::packed_bytes(graph, node);
                claim(*mem, &name, Class::Weights, &|bytes| bytes == packed)?;
            }
            (Op::Gather(Gather::Mean | Gather::Max | Gather::Moments(_)), Some(mem)) => {
                // three f64 for each block of columns and channel
                let from = graph.tensor(node.operands[0].0[0].tensor);
                let sums = from
                    .w()
                    .div_ceil(COLUMN_BLOCK)
                    .saturating_mul(node.operands[0].channels());
                claim(*mem, &name, Class::Sums, &|bytes| {
                    bytes == sums.saturating_mul(24)
                })?;
            }
            (_, Some(mem)) => return Err(fault!("{name} needs no buffer, and has {}", mem.0)),
            (_, None) => {}
        }
    }
    for (tensor, mem) in graph.tensors.iter().zip(&plan.tensor_mem) {
        let class = match tensor.layout {
            Layout::Rows => Class::Stored,
            Layout::Whole => Class::Whole,
        };
        if let Some(mem) = mem {
            claim(
                *mem,
                &format!("tensor `{}`", tensor.name),
                class,
                &|bytes| bytes == tensor.bytes(),
            )?;
        }
    }
    for (p, phase) in plan.phases.iter().enumerate() {
        for (k, pool) in phase.pools.iter().enumerate() {
            let least = u128::from(pool.slots) * u128::from(pool.slot_bytes);
            let fits = |bytes: u64| u128::from(bytes) >= least;
            claim(
                pool.mem,
                &format!("phase {p}, pool {k} of {least} bytes"),
                Class::Rows,
                &fits,
            )?;
        }
    }
    for (p, phase) in plan.phases.iter().enumerate() {
        let bytes = |step: &Step| match step.work {
            // what the kernels take is theirs to say
            Work::Node(id) => {
                footprint::workspace_bytes(graph, graph.node(id), plan.options.threads)
            }
            _ => 0,
        };
        let least = phase.sweep.steps.iter().map(bytes).max().unwrap_or(0);
        if let Some(mem) = phase.workspace {
            let name = format!("phase {p}, a workspace of {least} bytes");
            claim(mem, &name, Class::Workspace, &|bytes| bytes >= least)?;
        }
        ensure!(
            phase.workspace.is_some() || least == 0,
            "phase {p} works in {least} bytes, and has none"
        );
    }
    for (buffer, owned) in plan.buffers.iter().zip(owned) {
        ensure!(owned, "buffer `{}` belongs to nothing", buffer.name);
    }
    Ok(())
}

/// Stored rows are at home in their tensor's buffer.
fn homes(graph: &Graph, plan: &Plan) -> Result<()> {
    for (p, phase) in plan.phases.iter().enumerate() {
        for (rows, home) in phase.sweep.rows.iter().zip(&phase.homes) {
            if let Home::Stored(mem) = *home {
                let name = &graph.tensor(rows.tensor).name;
                let own = plan.tensor_mem[rows.tensor.at()] == Some(mem);
                ensure!(
                    own,
                    "phase {p}: rows of `{name}` are stored in buffer {}, which is not theirs",
                    mem.0
                );
            }
        }
    }
    Ok(())
}

/// The parts of the peak that follow from the plan, and their sum.
fn peak(graph: &Graph, plan: &Plan) -> Result<()> {
    let peak = &plan.peak;
    ensure!(
        peak.arena == plan.arena_bytes,
        "an arena of {} bytes counts {}",
        plan.arena_bytes,
        peak.arena
    );
    ensure!(
        peak.io == plan.options.io_bytes,
        "{} bytes of io count {}",
        plan.options.io_bytes,
        peak.io
    );
    let whole = graph
        .constants
        .iter()
        .map(|(id, _)| graph.tensor(*id).bytes());
    let inline = graph.weights.iter().map(|w| match &w.source {
        WeightSource::Inline(values) => std::mem::size_of_val(values.as_slice()) as u64,
        WeightSource::File { .. } => 0,
    });
    let constants = whole.chain(inline).try_fold(0u64, u64::checked_add);
    let counted = constants.is_some_and(|bytes| peak.constants >= bytes);
    ensure!(
        counted,
        "constants of {constants:?} bytes count {}",
        peak.constants
    );
    let parts = [
        peak.program,
        peak.threads,
        peak.constants,
        peak.io,
        peak.arena,
    ];
    let total = parts.into_iter().try_fold(0u64, u64::checked_add);
    ensure!(total.is_some(), "a peak of {parts:?} bytes is no number");
    if let (Some(total), Some(memory)) = (total, plan.options.memory) {
        ensure!(
            total <= memory,
            "a peak of {total} bytes is above the budget of {memory}"
        );
    }
    Ok(())
}
