//! The script: everything is made before it is read and alive while it is used, and no two buffers
//! are alive in the same bytes.
//!
//! A runtime packs all weights when a plan is opened and may then run the script more than once. It
//! writes whole inputs before the first op and reads whole outputs after the last.

use std::collections::BTreeMap;

use super::super::{Class, Home, Instr, MemId, Plan};
use super::{ensure, fault};
use crate::error::Result;
use crate::graph::{Gather, Graph, Layout, NodeId, Op, TensorId};
use crate::sweep::Work;

pub(super) fn check(graph: &Graph, plan: &Plan) -> Result<()> {
    let mut walk = Walk::new(graph, plan);
    for (now, instr) in plan.script.iter().enumerate() {
        match *instr {
            Instr::Alloc { mem } => walk.alloc(mem, now)?,
            Instr::Free { mem } => walk.free(mem, now)?,
            Instr::Pack { node } => walk.pack(node)?,
            Instr::Dense { node } => walk.dense(node)?,
            Instr::Sweep { phase } => walk.sweep(phase)?,
        }
    }
    walk.end()
}

/// Where a buffer is in its life.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Life {
    Unborn,
    Alive,
    Freed,
}

/// What is known between two instructions.
struct Walk<'a> {
    graph: &'a Graph,
    plan: &'a Plan,
    life: Vec<Life>,
    /// First byte of each buffer that is alive, to its number.
    arena: BTreeMap<u64, usize>,
    /// Nodes whose weights are packed, or that ran over whole tensors.
    ran: Vec<bool>,
    swept: Vec<bool>,
    /// Tensors of which everything exists in memory.
    complete: Vec<bool>,
}

impl<'a> Walk<'a> {
    fn new(graph: &'a Graph, plan: &'a Plan) -> Self {
        let mut complete = vec![false; graph.tensors.len()];
        for (id, _) in &graph.constants {
            complete[id.at()] = true;
        }
        for id in &graph.inputs {
            complete[id.at()] = graph.tensor(*id).layout == Layout::Whole;
        }
        Walk {
            graph,
            plan,
            life: vec![Life::Unborn; plan.buffers.len()],
            arena: BTreeMap::new(),
            ran: vec![false; graph.nodes.len()],
            swept: vec![false; plan.phases.len()],
            complete,
        }
    }

    fn alloc(&mut self, mem: MemId, now: usize) -> Result<()> {
        let m = mem.at();
        ensure!(
            self.life.get(m) == Some(&Life::Unborn),
            "instruction {now} allocates buffer {m}, which is none or was"
        );
        let buffer = &self.plan.buffers[m];
        let name = &buffer.name;
        ensure!(
            buffer.birth == now,
            "buffer `{name}` is born at {}, and allocated at {now}",
            buffer.birth
        );
        self.life[m] = Life::Alive;
        if buffer.bytes == 0 {
            return Ok(());
        }
        let end = buffer.offset + buffer.bytes;
        if let Some((_, &below)) = self.arena.range(..end).next_back() {
            let other = &self.plan.buffers[below];
            let apart = other.offset + other.bytes <= buffer.offset;
            ensure!(
                apart,
                "buffers `{name}` ({} bytes from {}) and `{}` ({} bytes from {}) overlap",
                buffer.bytes,
                buffer.offset,
                other.name,
                other.bytes,
                other.offset
            );
        }
        self.arena.insert(buffer.offset, m);
        Ok(())
    }

    fn free(&mut self, mem: MemId, now: usize) -> Result<()> {
        let m = mem.at();
        ensure!(
            self.life.get(m) == Some(&Life::Alive),
            "instruction {now} frees buffer {m}, which is not alive"
        );
        let buffer = &self.plan.buffers[m];
        ensure!(
            buffer.death == now,
            "buffer `{}` dies at {}, and is freed at {now}",
            buffer.name,
            buffer.death
        );
        self.life[m] = Life::Freed;
        if buffer.bytes > 0 {
            self.arena.remove(&buffer.offset);
        }
        Ok(())
    }

    fn pack(&mut self, id: NodeId) -> Result<()> {
        let node = self
            .graph
            .nodes
            .get(id.at())
            .ok_or_else(|| fault!("no node {} to pack", id.0))?;
        ensure!(
            matches!(node.op, Op::Conv(_)),
            "`{}` has no weights to pack",
            node.name
        );
        ensure!(
            !std::mem::replace(&mut self.ran[id.at()], true),
            "`{}` is packed twice",
            node.name
        );
        let dense = |(n, ran): (&crate::graph::Node, &bool)| *ran && matches!(n.op, Op::Dense(_));
        let begun = self.swept.contains(&true) || self.graph.nodes.iter().zip(&self.ran).any(dense);
        ensure!(
            !begun,
            "`{}` is packed after the first op has run",
            node.name
        );
        self.own(id)
    }

    fn dense(&mut self, id: NodeId) -> Result<()> {
        let node = self
            .graph
            .nodes
            .get(id.at())
            .filter(|n| matches!(n.op, Op::Dense(_)));
        let node = node.ok_or_else(|| fault!("node {} is none over whole tensors", id.0))?;
        self.inputs()?;
        ensure!(
            !std::mem::replace(&mut self.ran[id.at()], true),
            "`{}` runs twice",
            node.name
        );
        for &read in node.whole.iter().flatten() {
            self.read(read, &node.name)?;
        }
        for &made in &node.outputs {
            self.placed(made, &node.name)?;
            ensure!(
                !self.complete[made.at()],
                "`{}` makes a tensor that exists",
                node.name
            );
            self.complete[made.at()] = true;
        }
        Ok(())
    }

    fn sweep(&mut self, p: usize) -> Result<()> {
        let fresh = self.swept.get(p) == Some(&false);
        ensure!(fresh, "phase {p} is none, or is swept twice");
        self.swept[p] = true;
        self.inputs()?;
        let phase = &self.plan.phases[p];
        for (k, pool) in phase.pools.iter().enumerate() {
            self.alive(pool.mem, &format!("phase {p}, pool {k}"))?;
        }
        if let Some(mem) = phase.workspace {
            self.alive(mem, &format!("phase {p}"))?;
        }
        let mut made = Vec::new();
        for step in &phase.sweep.steps {
            let stored = step
                .makes
                .filter(|&rows| matches!(phase.homes[rows], Home::Stored(_)));
            let stored = stored.map(|rows| phase.sweep.rows[rows].tensor);
            if let Some(tensor) = stored {
                self.placed(tensor, "a sweep that stores it")?;
            }
            match step.work {
                Work::Recall => {
                    let tensor = stored
                        .ok_or_else(|| fault!("phase {p} recalls rows that are not stored"))?;
                    self.read(tensor, "a recall")?;
                }
                Work::Node(id) => {
                    let node = self.graph.node(id);
                    for &read in node.whole.iter().flatten() {
                        self.read(read, &node.name)?;
                    }
                    match node.op {
                        Op::Conv(_) => {
                            ensure!(
                                self.ran[id.at()],
                                "`{}` runs before its weights are packed",
                                node.name
                            );
                            self.own(id)?;
                        }
                        Op::Gather(kind) => {
                            if kind != Gather::Whole {
                                self.own(id)?;
                            }
                            self.placed(node.outputs[0], &node.name)?;
                            made.push(node.outputs[0]);
                        }
                        _ => {}
                    }
                    made.extend(stored);
                }
                Work::Load(_) | Work::Save(_) => made.extend(stored),
            }
        }
        for tensor in made {
            self.complete[tensor.at()] = true;
        }
        Ok(())
    }

    /// What must have happened, and what must still be there, when the script is over.
    fn end(&self) -> Result<()> {
        for (p, swept) in self.swept.iter().enumerate() {
            ensure!(swept, "phase {p} is never swept");
        }
        for (node, ran) in self.graph.nodes.iter().zip(&self.ran) {
            let due = matches!(node.op, Op::Conv(_) | Op::Dense(_));
            ensure!(*ran || !due, "`{}` is never packed or run", node.name);
        }
        for (buffer, life) in self.plan.buffers.iter().zip(&self.life) {
            ensure!(
                *life == Life::Freed,
                "buffer `{}` is not allocated and freed",
                buffer.name
            );
        }
        let work = |i: &Instr| !matches!(i, Instr::Alloc { .. } | Instr::Free { .. });
        let last = self.plan.script.iter().rposition(work).unwrap_or(0);
        for buffer in self
            .plan
            .buffers
            .iter()
            .filter(|b| b.class == Class::Weights)
        {
            ensure!(
                buffer.death > last,
                "weights `{}` are freed before the last op has run",
                buffer.name
            );
        }
        for &id in self
            .graph
            .outputs
            .iter()
            .filter(|id| self.graph.tensor(**id).layout == Layout::Whole)
        {
            let name = &self.graph.tensor(id).name;
            ensure!(self.complete[id.at()], "output `{name}` is never made");
            let kept = self.plan.tensor_mem[id.at()]
                .is_none_or(|mem| self.plan.buffers[mem.at()].death > last);
            ensure!(kept, "output `{name}` is freed before the last op has run");
        }
        Ok(())
    }

    /// Before the first op, every whole input has its place.
    fn inputs(&self) -> Result<()> {
        for &id in &self.graph.inputs {
            let unborn = self.plan.tensor_mem[id.at()]
                .is_some_and(|mem| self.life[mem.at()] == Life::Unborn);
            ensure!(
                !unborn,
                "input `{}` has no place before the first op",
                self.graph.tensor(id).name
            );
        }
        Ok(())
    }

    fn alive(&self, mem: MemId, user: &str) -> Result<()> {
        let name = &self.plan.buffers[mem.at()].name;
        ensure!(
            self.life[mem.at()] == Life::Alive,
            "{user} uses buffer `{name}`, which is not alive"
        );
        Ok(())
    }

    /// The buffer of node `id` is alive.
    fn own(&self, id: NodeId) -> Result<()> {
        let node = self.graph.node(id);
        let mem =
            self.plan.node_mem[id.at()].ok_or_else(|| fault!("`{}` has no buffer", node.name))?;
        self.alive(mem, &node.name)
    }

    /// The buffer of tensor `id` is alive.
    fn placed(&self, id: TensorId, user: &str) -> Result<()> {
        let none = || {
            fault!(
                "`{}`, which {user} uses, has no buffer",
                self.graph.tensor(id).name
            )
        };
        self.alive(self.plan.tensor_mem[id.at()].ok_or_else(none)?, user)
    }

    /// Tensor `id` can be read: it is a constant, or all of it was made and is still there.
    fn read(&self, id: TensorId, user: &str) -> Result<()> {
        let name = &self.graph.tensor(id).name;
        ensure!(
            self.complete[id.at()],
            "{user} reads `{name}` before it is made"
        );
        let constant = self.graph.constants.iter().any(|(c, _)| *c == id);
        ensure!(
            !constant || self.plan.tensor_mem[id.at()].is_none(),
            "constant `{name}` has a buffer"
        );
        if constant {
            Ok(())
        } else {
            self.placed(id, user)
        }
    }
}
