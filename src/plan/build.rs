//! From a graph to a checked plan: the list of passes.

use std::ops::Range;

use super::live::{self, Limit};
use super::windows::panels;
use super::{
    Buffer, Class, Home, Instr, MemId, Options, Panel, Peak, PhasePlan, Plan, Pool, Request, SafePlan, cost, delay,
    footprint, place,
};
use crate::error::{Error, Result};
use crate::graph::{Graph, Layout, NodeId, Op, TensorId};
use crate::sweep::{Pace, Phase, Rows, Work, phases};

/// The format version of [`Plan`].
const VERSION: u32 = 1;

/// Plans `graph`: the fastest strips and panels whose predicted peak is within the budget.
///
/// # Errors
/// [`Error::Budget`] naming the least that works; [`Error::Usage`] for options that make no sense.
pub fn plan(graph: &Graph, options: &Options) -> Result<SafePlan> {
    if options.threads == 0 || options.strip == Some(0) || options.panels == Some(0) {
        return Err(Error::Usage("threads, strip and panels must be at least 1".into()));
    }
    let planner = Planner { graph, options, phases: phases(graph)? };
    let candidates = planner.candidates();
    let mut drafts: Vec<(Choice, Draft)> =
        candidates.iter().map(|&choice| (choice, planner.draft(choice, Limit::Settled))).collect();
    drafts.sort_by(|a, b| a.1.seconds.total_cmp(&b.1.seconds).then(a.1.peak.total().cmp(&b.1.peak.total())));
    let budget = options.memory.unwrap_or(u64::MAX);
    for (choice, draft) in &drafts {
        if draft.peak.total() <= budget {
            let full = planner.draft(*choice, Limit::Done);
            if full.peak.total() <= budget {
                return super::check(graph, planner.finish(full, None));
            }
        }
    }
    Err(Error::Budget { budget, least: planner.least(&drafts) })
}

/// The least budget that works for `graph`.
///
/// # Errors
/// As [`plan`], but never [`Error::Budget`].
pub fn least_budget(graph: &Graph, options: &Options) -> Result<u64> {
    let planner = Planner { graph, options, phases: phases(graph)? };
    let candidates = planner.candidates();
    let drafts: Vec<_> = candidates.iter().map(|&choice| (choice, planner.draft(choice, Limit::Settled))).collect();
    Ok(planner.least(&drafts))
}

/// What the search decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Choice {
    strip: u64,
    panels: u64,
}

/// A plan that is not yet checked, with its price.
struct Draft {
    phases: Vec<PhasePlan>,
    buffers: Vec<Buffer>,
    script: Vec<Instr>,
    node_mem: Vec<Option<MemId>>,
    tensor_mem: Vec<Option<MemId>>,
    arena_bytes: u64,
    peak: Peak,
    seconds: f64,
}

struct Planner<'a> {
    graph: &'a Graph,
    options: &'a Options,
    phases: Vec<Phase>,
}

impl Planner<'_> {
    /// Strips of 1 row to all, panels of the full width down to one block of columns, each about
    /// half as much again as the one before.
    fn candidates(&self) -> Vec<Choice> {
        let height = self.phases.iter().map(|p| p.sweep.height).max().unwrap_or(0).max(1);
        let rows = self.phases.iter().flat_map(|p| &p.sweep.rows);
        let width = rows.map(|r| self.graph.tensor(r.tensor).w()).max().unwrap_or(0).max(1);
        let blocks = width.div_ceil(super::COLUMN_BLOCK);
        let strips = self.options.strip.map_or_else(|| ladder(height), |s| vec![s.min(height)]);
        let panels = self.options.panels.map_or_else(|| ladder(blocks), |p| vec![p.min(blocks)]);
        let pairs = strips.iter().flat_map(|&strip| panels.iter().map(move |&panels| Choice { strip, panels }));
        pairs.collect()
    }

    fn least(&self, drafts: &[(Choice, Draft)]) -> u64 {
        let mut by_size: Vec<&(Choice, Draft)> = drafts.iter().collect();
        by_size.sort_by_key(|(_, d)| d.peak.total());
        let mut least = u64::MAX;
        for (choice, draft) in by_size {
            // a draft over few turns never needs more than over all
            if draft.peak.total() >= least {
                break;
            }
            least = least.min(self.draft(*choice, Limit::Done).peak.total());
        }
        least
    }

    fn draft(&self, choice: Choice, limit: Limit) -> Draft {
        let mut layout = Layouts::new(self.graph);
        let mut plans = Vec::with_capacity(self.phases.len());
        layout.pack_weights();
        for phase in &self.phases {
            for &node in &phase.dense {
                layout.dense(node);
            }
            plans.push(self.phase(phase, choice, limit, &mut layout));
        }
        let (script, buffers, arena_bytes) = layout.script();
        let peak = Peak {
            program: footprint::PROGRAM + footprint::graph_bytes(self.graph),
            threads: footprint::THREAD * self.options.threads as u64,
            constants: footprint::constant_bytes(self.graph),
            io: self.options.io_bytes,
            arena: arena_bytes,
        };
        let seconds = plans.iter().map(|p| cost::seconds(self.graph, p, self.options.threads)).sum();
        let (node_mem, tensor_mem) = (layout.node_mem, layout.tensor_mem);
        Draft { phases: plans, buffers, script, node_mem, tensor_mem, arena_bytes, peak, seconds }
    }

    fn phase(&self, phase: &Phase, choice: Choice, limit: Limit, layout: &mut Layouts<'_>) -> PhasePlan {
        let sweep = phase.sweep.clone();
        let panels = panels(self.graph, &sweep, choice.panels);
        let strip = choice.strip.min(sweep.height.max(1));
        let row_bytes: Vec<u64> = (0..sweep.rows.len()).map(|k| row_bytes(self.graph, &sweep.rows[k], k, &panels)).collect();
        let (pool_of, slot_bytes) = live::pools(&sweep, &row_bytes);
        let mut pace = sweep.pace(strip);
        delay::delay(&sweep, &row_bytes, &mut pace);
        let usage = self.better_pace(&sweep, strip, &mut pace, &pool_of, &slot_bytes, limit);
        let homes = layout.homes(&sweep.rows, &pool_of);
        let turn = live::super_turn(&sweep);
        let mems = layout.sweep(&sweep, &slot_bytes, &usage.slots);
        let pools = (mems.into_iter().zip(slot_bytes).zip(usage.slots))
            .map(|((mem, slot_bytes), slots)| Pool { mem, slot_bytes, slots })
            .collect();
        PhasePlan { sweep, strip, pace, panels, homes, pools, turn, turns: usage.turns, carry: usage.carry }
    }

    /// Keeps the delays where they save memory, and drops them where they do not.
    fn better_pace(
        &self,
        sweep: &crate::sweep::Sweep,
        strip: u64,
        pace: &mut Vec<Pace>,
        pool_of: &[Option<usize>],
        slot_bytes: &[u64],
        limit: Limit,
    ) -> live::Usage {
        let usage = |pace: &[Pace]| live::usage(sweep, pace, strip, pool_of, slot_bytes.len(), limit);
        let late = usage(pace);
        if pace.iter().all(|p| p.delay == 0) {
            return late;
        }
        let prompt_pace = sweep.pace(strip);
        let prompt = live::usage(sweep, &prompt_pace, strip, pool_of, slot_bytes.len(), Limit::Settled);
        let settled = live::usage(sweep, pace, strip, pool_of, slot_bytes.len(), Limit::Settled);
        let bytes = |u: &live::Usage| u.slots.iter().zip(slot_bytes).map(|(s, b)| s * b).sum::<u64>();
        if bytes(&settled) <= bytes(&prompt) {
            return late;
        }
        *pace = prompt_pace;
        usage(pace)
    }

    fn finish(&self, draft: Draft, least: Option<u64>) -> Plan {
        Plan {
            version: VERSION,
            options: self.options.clone(),
            phases: draft.phases,
            buffers: draft.buffers,
            script: draft.script,
            node_mem: draft.node_mem,
            tensor_mem: draft.tensor_mem,
            arena_bytes: draft.arena_bytes,
            peak: draft.peak,
            seconds: draft.seconds,
            least,
        }
    }
}

/// 1, 2, 3, 4, 6, 8, 12, … up to `most`, and `most`.
fn ladder(most: u64) -> Vec<u64> {
    let powers = (0..63).map(|k| 1u64 << k).take_while(|&p| p < most);
    let mut steps: Vec<u64> = powers.flat_map(|p| [p, p + p / 2]).filter(|&s| s < most).collect();
    steps.push(most);
    steps.dedup();
    steps
}

/// Bytes of a row of `rows`, in the widest panel.
fn row_bytes(graph: &Graph, rows: &Rows, k: usize, panels: &[Panel]) -> u64 {
    let width = panels.iter().map(|p| p.windows[k].end - p.windows[k].start).max().unwrap_or(0);
    4 * width * graph.tensor(rows.tensor).c()
}

/// Buffers as they come up, with the work that first and last uses each.
struct Layouts<'a> {
    graph: &'a Graph,
    work: Vec<Instr>,
    buffers: Vec<(Buffer, Range<usize>)>,
    node_mem: Vec<Option<MemId>>,
    tensor_mem: Vec<Option<MemId>>,
}

impl<'a> Layouts<'a> {
    fn new(graph: &'a Graph) -> Self {
        let (node_mem, tensor_mem) = (vec![None; graph.nodes.len()], vec![None; graph.tensors.len()]);
        Layouts { graph, work: Vec::new(), buffers: Vec::new(), node_mem, tensor_mem }
    }

    fn add(&mut self, name: &str, class: Class, bytes: u64) -> MemId {
        let now = self.work.len();
        let buffer = Buffer { name: name.into(), class, bytes, birth: 0, death: 0, offset: 0 };
        self.buffers.push((buffer, now..now + 1));
        MemId(self.buffers.len() as u32 - 1)
    }

    /// The buffer is used by the work that is being added.
    fn touch(&mut self, mem: MemId) {
        let life = &mut self.buffers[mem.at()].1;
        life.end = life.end.max(self.work.len() + 1);
    }

    fn touch_tensor(&mut self, id: TensorId) {
        if let Some(mem) = self.tensor_mem[id.at()] {
            self.touch(mem);
        }
    }

    fn add_tensor(&mut self, id: TensorId, class: Class) -> MemId {
        let tensor = self.graph.tensor(id);
        let mem = self.add(&tensor.name, class, tensor.bytes());
        self.tensor_mem[id.at()] = Some(mem);
        mem
    }

    fn pack_weights(&mut self) {
        for (k, node) in self.graph.nodes.iter().enumerate() {
            let bytes = footprint::packed_bytes(self.graph, node);
            if bytes > 0 {
                let mem = self.add(&node.name, Class::Weights, bytes);
                self.node_mem[k] = Some(mem);
                self.work.push(Instr::Pack { node: NodeId(k as u32) });
            }
        }
        for &id in &self.graph.inputs {
            if self.graph.tensor(id).layout == Layout::Whole {
                self.add_tensor(id, Class::Whole);
            }
        }
    }

    fn dense(&mut self, id: NodeId) {
        let node = self.graph.node(id);
        for &output in &node.outputs {
            self.add_tensor(output, Class::Whole);
        }
        for &input in node.whole.iter().flatten() {
            self.touch_tensor(input);
        }
        self.work.push(Instr::Dense { node: id });
    }

    /// Where the rows of a sweep are; stored tensors get their buffers.
    fn homes(&mut self, rows: &[Rows], pool_of: &[Option<usize>]) -> Vec<Home> {
        let home = |(rows, pool): (&Rows, &Option<usize>)| match *pool {
            Some(pool) => Home::Slots(pool),
            None => {
                let known = self.tensor_mem[rows.tensor.at()];
                let mem = known.unwrap_or_else(|| self.add_tensor(rows.tensor, Class::Stored));
                self.touch(mem);
                Home::Stored(mem)
            }
        };
        rows.iter().zip(pool_of).map(home).collect()
    }

    /// The pools of a sweep, and the sums and results of its gathers.
    fn sweep(&mut self, sweep: &crate::sweep::Sweep, slot_bytes: &[u64], slots: &[u64]) -> Vec<MemId> {
        let phase = self.work.iter().filter(|w| matches!(w, Instr::Sweep { .. })).count();
        for step in &sweep.steps {
            let Work::Node(id) = step.work else { continue };
            let node = self.graph.node(id);
            if matches!(node.op, Op::Gather(_)) {
                self.add_tensor(node.outputs[0], Class::Whole);
                let bytes = footprint::sum_bytes(self.graph, node);
                if bytes > 0 {
                    self.node_mem[id.at()] = Some(self.add(&node.name, Class::Sums, bytes));
                }
            }
            for &input in node.whole.iter().flatten() {
                self.touch_tensor(input);
            }
            if let Some(mem) = self.node_mem[id.at()] {
                self.touch(mem);
            }
        }
        let pools = slot_bytes.iter().zip(slots);
        let mems = pools.map(|(bytes, slots)| self.add(&format!("rows of {bytes} bytes"), Class::Rows, bytes * slots));
        let mems = mems.collect();
        self.work.push(Instr::Sweep { phase });
        mems
    }

    /// Places the buffers and writes the script around the work.
    fn script(&mut self) -> (Vec<Instr>, Vec<Buffer>, u64) {
        let end = self.work.len();
        for &id in &self.graph.outputs {
            if let (Layout::Whole, Some(mem)) = (self.graph.tensor(id).layout, self.tensor_mem[id.at()]) {
                self.buffers[mem.at()].1.end = end;
            }
        }
        let requests: Vec<Request> =
            self.buffers.iter().map(|(b, life)| Request { bytes: b.bytes, life: life.clone() }).collect();
        let (offsets, arena) = place(&requests);
        let mut script = Vec::with_capacity(end + 2 * requests.len());
        for (now, work) in self.work.iter().enumerate() {
            for (k, request) in requests.iter().enumerate() {
                if request.life.start == now {
                    self.buffers[k].0.birth = script.len();
                    script.push(Instr::Alloc { mem: MemId(k as u32) });
                }
            }
            script.push(*work);
            for (k, request) in requests.iter().enumerate() {
                if request.life.end == now + 1 {
                    self.buffers[k].0.death = script.len();
                    script.push(Instr::Free { mem: MemId(k as u32) });
                }
            }
        }
        let placed = self.buffers.drain(..).zip(offsets);
        (script, placed.map(|((b, _), offset)| Buffer { offset, ..b }).collect(), arena)
    }
}
