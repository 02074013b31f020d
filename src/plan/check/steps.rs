//! That the sweeps compute the graph: every node, with its own operands, and every output.

use super::super::{Home, Plan};
use super::{Sweeping, ensure, fault};
use crate::error::Result;
use crate::graph::{Axis, Graph, Layout, Op, Side, Window};
use crate::sweep::Work;

pub(super) fn check(graph: &Graph, plan: &Plan) -> Result<()> {
    let mut seen = Seen {
        runs: vec![Vec::new(); graph.nodes.len()],
        saves: vec![0; graph.outputs.len()],
    };
    for (number, phase) in plan.phases.iter().enumerate() {
        let at = Sweeping {
            graph,
            phase,
            number,
        };
        rows(&at)?;
        for s in 0..phase.sweep.steps.len() {
            step(&at, s, &mut seen)?;
        }
    }
    for (node, runs) in graph.nodes.iter().zip(&seen.runs) {
        match node.op {
            // the script runs those
            Op::Dense(_) => {}
            Op::Gather(_) => ensure!(
                runs.len() == 1,
                "`{}` gathers in {} phases",
                node.name,
                runs.len()
            ),
            _ => ensure!(!runs.is_empty(), "`{}` is in no phase", node.name),
        }
    }
    for (k, (&id, &saves)) in graph.outputs.iter().zip(&seen.saves).enumerate() {
        let tensor = graph.tensor(id);
        let due = usize::from(tensor.layout == Layout::Rows);
        ensure!(
            saves == due,
            "output {k} (`{}`) is saved {saves} times, not {due}",
            tensor.name
        );
    }
    Ok(())
}

/// What the sweeps do of the graph.
struct Seen {
    /// The phases that each node runs in.
    runs: Vec<Vec<usize>>,
    /// How often each output is saved.
    saves: Vec<usize>,
}

/// The tensors of a sweep, and who makes and reads them.
fn rows(at: &Sweeping<'_>) -> Result<()> {
    let (graph, phase) = (at.graph, at.phase);
    let sweep = &phase.sweep;
    let counts = [
        ("paces", phase.pace.len(), sweep.steps.len()),
        ("homes", phase.homes.len(), sweep.rows.len()),
        ("carries", phase.carry.len(), sweep.rows.len()),
    ];
    for (what, got, want) in counts {
        ensure!(
            got == want,
            "phase {} has {got} {what}, not {want}",
            at.number
        );
    }
    let mut readers = vec![Vec::new(); sweep.rows.len()];
    for (s, step) in sweep.steps.iter().enumerate() {
        for (k, read) in step.reads.iter().enumerate() {
            ensure!(
                read.rows < readers.len(),
                "{} reads rows {}, which are none",
                at.step(s),
                read.rows
            );
            readers[read.rows].push((s, k));
        }
    }
    for (k, (rows, readers)) in sweep.rows.iter().zip(&readers).enumerate() {
        ensure!(
            rows.tensor.at() < graph.tensors.len(),
            "phase {}: no tensor {}",
            at.number,
            rows.tensor.0
        );
        let (name, tensor) = (at.rows(k), graph.tensor(rows.tensor));
        ensure!(
            tensor.layout == Layout::Rows && tensor.dims.len() == 4,
            "{name} are not kept as rows"
        );
        let items = graph.tensor(sweep.rows[0].tensor).n();
        ensure!(
            tensor.n() == items,
            "{name} have {} batch items in a sweep of {items}",
            tensor.n()
        );
        let made = sweep
            .steps
            .get(rows.maker)
            .is_some_and(|m| m.makes == Some(k));
        ensure!(made, "{name} are not made by step {}", rows.maker);
        let mut said = rows.readers.clone();
        said.sort_unstable();
        ensure!(
            said == *readers,
            "{name} are read by {readers:?}, not by {said:?}"
        );
        let fits = match phase.homes[k] {
            Home::Slots(pool) => !rows.stored && pool < phase.pools.len(),
            Home::Stored(_) => rows.stored,
        };
        ensure!(
            fits,
            "{name} are at {:?}, stored: {}",
            phase.homes[k],
            rows.stored
        );
    }
    Ok(())
}

/// One step: what it passes over, makes and reads, as the graph has it.
fn step(at: &Sweeping<'_>, s: usize, seen: &mut Seen) -> Result<()> {
    let (graph, sweep) = (at.graph, &at.phase.sweep);
    let (step, name) = (&sweep.steps[s], at.step(s));
    let none = || fault!("{name} is not of this graph");
    let made = step
        .makes
        .map(|k| sweep.rows.get(k).ok_or_else(none))
        .transpose()?;
    // the tensor it passes over, whether it makes it, and what it reads
    let (passed, makes, reads) = match step.work {
        Work::Load(k) => (*graph.inputs.get(k).ok_or_else(none)?, true, Vec::new()),
        Work::Recall => (made.ok_or_else(none)?.tensor, true, Vec::new()),
        Work::Node(id) => {
            let node = graph.nodes.get(id.at()).ok_or_else(none)?;
            let runs = &mut seen.runs[id.at()];
            ensure!(
                runs.last() != Some(&at.number),
                "{name} is in its phase twice"
            );
            runs.push(at.number);
            let mut reads = Vec::new();
            for (k, operand) in node.operands.iter().chain(&node.extras).enumerate() {
                let (rows, cols) = (
                    graph.axis(node, k, Side::Rows),
                    graph.axis(node, k, Side::Cols),
                );
                reads.extend(
                    operand
                        .0
                        .iter()
                        .map(|s| (s.tensor, rows.clone(), cols.clone())),
                );
            }
            match node.op {
                Op::Dense(_) => return Err(none()),
                Op::Gather(_) => (node.operands[0].0[0].tensor, false, reads),
                _ => (node.outputs[0], true, reads),
            }
        }
        Work::Save(k) => {
            let id = *graph.outputs.get(k).ok_or_else(none)?;
            seen.saves[k] += 1;
            let same = |side| {
                let len = graph.tensor(id).len(side);
                Axis {
                    window: Window::Same,
                    input: len,
                    output: len,
                }
            };
            ensure!(
                graph.tensor(id).layout == Layout::Rows,
                "{name}: the output is not kept as rows"
            );
            (id, false, vec![(id, same(Side::Rows), same(Side::Cols))])
        }
    };
    let tensor = graph.tensor(passed);
    // Winograd tiles are whole, down and across, and so are blocks across
    let grains = match step.work {
        Work::Node(id) => match &graph.node(id).op {
            Op::Conv(conv) => [conv.tile; 2],
            Op::DepthToSpace { block, .. } => [1, *block],
            _ => [1; 2],
        },
        _ => [1; 2],
    };
    ensure!(
        step.grains.map(|g| g.size) == grains && step.grains.iter().all(|g| g.offset < g.size),
        "{name} makes {:?} together, not {grains:?}",
        step.grains
    );
    let right = match (made, step.makes) {
        (Some(rows), Some(_)) => makes && rows.tensor == passed && rows.maker == s,
        _ => !makes,
    };
    ensure!(
        right,
        "{name} does not move the front of `{}` alone",
        tensor.name
    );
    ensure!(
        step.height == tensor.h(),
        "{name} passes {} rows of {}",
        step.height,
        tensor.h()
    );
    ensure!(
        step.ratio.num > 0 && step.ratio.den > 0,
        "{name} has no ratio"
    );
    ensure!(
        step.reads.len() == reads.len(),
        "{name} has {} reads, not {}",
        step.reads.len(),
        reads.len()
    );
    for (k, (read, (id, rows, cols))) in step.reads.iter().zip(&reads).enumerate() {
        let from = graph.tensor(*id);
        let got = &sweep.rows[read.rows];
        ensure!(
            got.tensor == *id,
            "{name}, read {k}: `{}`, not `{}`",
            graph.tensor(got.tensor).name,
            from.name
        );
        ensure!(
            read.axis == *rows,
            "{name}, read {k}: rows by {:?}, not {rows:?}",
            read.axis
        );
        ensure!(
            read.cols == *cols,
            "{name}, read {k}: columns by {:?}, not {cols:?}",
            read.cols
        );
        let lengths = (rows.input, cols.input) == (from.h(), from.w());
        ensure!(
            lengths,
            "{name}, read {k}: `{}` has not the lengths of its operand",
            from.name
        );
        let passes = (rows.output, cols.output) == (tensor.h(), tensor.w());
        ensure!(
            passes,
            "{name}, read {k}: its window is not over `{}`",
            tensor.name
        );
    }
    Ok(())
}
