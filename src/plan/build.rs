//! From a graph to a checked plan: the list of passes.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;

use super::live::{self, Limit};
use super::windows::{self, Cut};
use super::{
    Buffer, Class, Home, Instr, MemId, Options, Panels, Peak, PhasePlan, Plan, Pool, Request,
    SafePlan, cost, delay, footprint, place,
};
use crate::error::{Error, Result};
use crate::graph::{Graph, Layout, NodeId, Op, TensorId};
use crate::sweep::{Pace, Phase, Rows, Sweep, Work, phases};

/// The format version of [`Plan`].
const VERSION: u32 = 1;

/// Plans `graph`: the fastest strips and panels whose predicted peak is within the budget.
///
/// # Errors
/// As [`Planner::new`] and [`Planner::plan`].
pub fn plan(graph: &Graph, options: &Options) -> Result<SafePlan> {
    Planner::new(graph, options)?.plan()
}

/// Time that is given up for memory: predictions are no more exact than this.
const SLACK: f64 = 1.03;

/// Among those nearly as fast as the fastest: the fewest panels, since files that go in order must be
/// spooled for more than one, then the least bytes.
fn best(prices: &[Price]) -> Option<usize> {
    let fastest = prices.iter().map(|p| p.seconds).min_by(f64::total_cmp)?;
    let near = (0..prices.len()).filter(|&k| prices[k].seconds <= fastest * SLACK);
    near.min_by_key(|&k| {
        (
            prices[k].choice.panels,
            prices[k].bytes,
            prices[k].choice.strip,
        )
    })
}

/// What the search decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Choice {
    strip: u64,
    panels: u64,
}

/// What a choice costs, from a few turns: the bytes are a lower bound that is nearly always exact.
#[derive(Debug, Clone, Copy)]
struct Price {
    choice: Choice,
    bytes: u64,
    seconds: f64,
}

/// A plan that is not yet checked.
struct Draft {
    phases: Vec<PhasePlan>,
    buffers: Vec<Buffer>,
    script: Vec<Instr>,
    node_mem: Vec<Option<MemId>>,
    tensor_mem: Vec<Option<MemId>>,
    peak: Peak,
    seconds: f64,
}

impl Draft {
    fn plan(self, options: &Options) -> Plan {
        Plan {
            version: VERSION,
            options: options.clone(),
            phases: self.phases,
            buffers: self.buffers,
            script: self.script,
            node_mem: self.node_mem,
            tensor_mem: self.tensor_mem,
            arena_bytes: self.peak.arena,
            peak: self.peak,
            seconds: self.seconds,
        }
    }
}

/// What a graph's plans would cost, and the plans themselves.
pub struct Planner<'a> {
    graph: &'a Graph,
    options: &'a Options,
    phases: Vec<Phase>,
    prices: Vec<Price>,
    /// The last count for each phase, strip and whether there are delays: panels of another width
    /// mostly have the same pools.
    counted: RefCell<HashMap<(usize, u64, bool), Counted>>,
}

/// Slots, and what they depend on.
struct Counted {
    pace: Vec<Pace>,
    pool_of: Vec<Option<usize>>,
    usage: live::Usage,
}

impl<'a> Planner<'a> {
    /// Prices every choice of strips and panels.
    ///
    /// # Errors
    /// [`Error::Usage`] for options that make no sense; [`Error::Model`] where a tensor is read before
    /// it is made.
    pub fn new(graph: &'a Graph, options: &'a Options) -> Result<Self> {
        if options.threads == 0 || options.strip == Some(0) || options.panels == Some(0) {
            return Err(Error::Usage(
                "threads, strip and panels must be at least 1".into(),
            ));
        }
        let mut planner = Planner {
            graph,
            options,
            phases: phases(graph)?,
            prices: Vec::new(),
            counted: RefCell::default(),
        };
        planner.prices = planner.price();
        Ok(planner)
    }

    /// The plan of the fastest choice within the budget.
    ///
    /// # Errors
    /// [`Error::Budget`] naming the least that works.
    pub fn plan(&self) -> Result<SafePlan> {
        let budget = self.options.memory.unwrap_or(u64::MAX);
        let mut prices = self.prices.clone();
        prices.retain(|p| p.bytes <= budget);
        while let Some(k) = best(&prices) {
            let draft = self.draft(prices.swap_remove(k).choice);
            if draft.peak.total() <= budget {
                return super::check(self.graph, draft.plan(self.options));
            }
        }
        Err(Error::Budget {
            budget,
            least: self.least_budget(),
        })
    }

    /// The least budget that works, whatever the budget is.
    pub fn least_budget(&self) -> u64 {
        let mut prices = self.prices.clone();
        prices.sort_by_key(|p| p.bytes);
        let mut least = u64::MAX;
        for Price { choice, bytes, .. } in prices {
            if bytes >= least {
                break;
            }
            let draft = self.sketch(choice.strip, &self.cuts(choice.panels), Limit::Done);
            least = least.min(draft.peak.total());
        }
        least
    }

    /// Strips of 1 row to all, panels of the full width down to one block of columns, each about
    /// half as much again as the one before.
    fn price(&self) -> Vec<Price> {
        let height = self
            .phases
            .iter()
            .map(|p| p.sweep.height)
            .max()
            .unwrap_or(0)
            .max(1);
        let rows = self.phases.iter().flat_map(|p| &p.sweep.rows);
        let width = rows
            .map(|r| self.graph.tensor(r.tensor).w())
            .max()
            .unwrap_or(0)
            .max(1);
        let blocks = width.div_ceil(super::COLUMN_BLOCK);
        let strips = self
            .options
            .strip
            .map_or_else(|| ladder(height), |s| vec![s.min(height)]);
        let panels = self
            .options
            .panels
            .map_or_else(|| ladder(blocks), |p| vec![p.min(blocks)]);
        let mut prices = Vec::with_capacity(strips.len() * panels.len());
        for &panels in &panels {
            let cuts = self.cuts(panels);
            for &strip in &strips {
                let draft = self.sketch(strip, &cuts, Limit::Settled);
                let choice = Choice { strip, panels };
                prices.push(Price {
                    choice,
                    bytes: draft.peak.total(),
                    seconds: draft.seconds,
                });
            }
        }
        prices
    }

    fn cuts(&self, panels: u64) -> Vec<Cut> {
        self.phases
            .iter()
            .map(|p| Cut::new(self.graph, &p.sweep, panels))
            .collect()
    }

    /// All of a plan.
    fn draft(&self, choice: Choice) -> Draft {
        let cuts = self.cuts(choice.panels);
        let mut draft = self.sketch(choice.strip, &cuts, Limit::Done);
        for (plan, Phase { sweep, .. }) in draft.phases.iter_mut().zip(&self.phases) {
            plan.sweep = sweep.clone();
            plan.panels = windows::panels(self.graph, sweep, choice.panels).collect();
        }
        draft
    }

    /// A plan without its sweeps and panels.
    fn sketch(&self, strip: u64, cuts: &[Cut], limit: Limit) -> Draft {
        let mut layout = Layouts::new(self.graph, self.options.threads);
        layout.pack_weights();
        let mut seconds = 0.0;
        let mut plans = Vec::with_capacity(self.phases.len());
        for (p, (phase, cut)) in self.phases.iter().zip(cuts).enumerate() {
            for &node in &phase.dense {
                layout.dense(node);
            }
            let plan = self.phase(p, strip, cut, limit, &mut layout);
            let load = cost::Load {
                sweep: &phase.sweep,
                pace: &plan.pace,
                widths: &cut.total,
                panels: cut.panels,
                pools: plan.pools.iter().map(|p| p.slot_bytes * p.slots).sum(),
                threads: self.options.threads,
            };
            let items = phase
                .sweep
                .rows
                .iter()
                .map(|r| self.graph.tensor(r.tensor).n())
                .max()
                .unwrap_or(0);
            seconds += load.seconds(self.graph) * items as f64;
            plans.push(plan);
        }
        let (node_mem, tensor_mem) = (layout.node_mem.clone(), layout.tensor_mem.clone());
        let requests = layout.requests();
        let (script, buffers, arena) = match limit {
            Limit::Settled => (Vec::new(), Vec::new(), super::load(&requests)),
            Limit::Done => layout.script(&requests),
        };
        let peak = Peak {
            program: footprint::PROGRAM + footprint::graph_bytes(self.graph),
            threads: footprint::THREAD * self.options.threads as u64,
            constants: footprint::constant_bytes(self.graph),
            io: self.options.io_bytes,
            arena,
        };
        Draft {
            phases: plans,
            buffers,
            script,
            node_mem,
            tensor_mem,
            peak,
            seconds,
        }
    }

    fn phase(
        &self,
        p: usize,
        strip: u64,
        cut: &Cut,
        limit: Limit,
        layout: &mut Layouts<'_>,
    ) -> PhasePlan {
        let sweep = &self.phases[p].sweep;
        let strip = strip.min(sweep.height.max(1));
        let channels = sweep.rows.iter().map(|r| self.graph.tensor(r.tensor).c());
        let row_bytes: Vec<u64> = channels
            .zip(&cut.widest)
            .map(|(c, width)| 4 * c * width)
            .collect();
        let (pool_of, slot_bytes) = live::pools(sweep, &row_bytes);
        let (pace, usage) = self.pace(p, strip, &row_bytes, &pool_of, &slot_bytes, limit);
        let homes = layout.homes(&sweep.rows, &pool_of);
        let turn = live::super_turn(sweep);
        let (mems, workspace) = layout.sweep(sweep, &slot_bytes, &usage.slots);
        let pools = (mems.into_iter().zip(slot_bytes).zip(usage.slots))
            .map(|((mem, slot_bytes), slots)| Pool {
                mem,
                slot_bytes,
                slots,
            })
            .collect();
        let (turns, carry) = (usage.turns, usage.carry);
        PhasePlan {
            sweep: Sweep::default(),
            strip,
            pace,
            panels: Panels::default(),
            homes,
            pools,
            workspace,
            turn,
            turns,
            carry,
        }
    }

    /// The pace of phase `p` with delays where they save memory, without where they do not.
    fn pace(
        &self,
        p: usize,
        strip: u64,
        row_bytes: &[u64],
        pool_of: &[Option<usize>],
        slot_bytes: &[u64],
        limit: Limit,
    ) -> (Vec<Pace>, live::Usage) {
        let sweep = &self.phases[p].sweep;
        let settled = |pace: &[Pace]| {
            let key = (p, strip, pace.iter().any(|p| p.delay > 0));
            let mut counted = self.counted.borrow_mut();
            if let Some(known) = counted.get(&key)
                && known.pace == pace
                && known.pool_of == pool_of
            {
                return known.usage.clone();
            }
            let usage = live::usage(
                sweep,
                pace,
                strip,
                pool_of,
                slot_bytes.len(),
                Limit::Settled,
            );
            let (pace, pool_of) = (pace.to_vec(), pool_of.to_vec());
            counted.insert(
                key,
                Counted {
                    pace,
                    pool_of,
                    usage: usage.clone(),
                },
            );
            usage
        };
        let bytes = |u: &live::Usage| {
            let pools = u.slots.iter().zip(slot_bytes);
            pools.map(|(slots, bytes)| slots * bytes).sum::<u64>()
        };
        let prompt = sweep.pace(strip);
        let mut late = prompt.clone();
        delay::delay(sweep, row_bytes, &mut late);
        let mut best = (settled(&prompt), prompt);
        if late != best.1 {
            let usage = settled(&late);
            if bytes(&usage) < bytes(&best.0) {
                best = (usage, late);
            }
        }
        let (usage, pace) = best;
        match limit {
            Limit::Settled => (pace, usage),
            Limit::Done => {
                let usage = live::usage(sweep, &pace, strip, pool_of, slot_bytes.len(), limit);
                (pace, usage)
            }
        }
    }
}

/// 1, 2, 3, 4, 6, 8, 12, … up to `most`, and `most`.
fn ladder(most: u64) -> Vec<u64> {
    let powers = (0..63).map(|k| 1u64 << k).take_while(|&p| p < most);
    let mut steps: Vec<u64> = powers
        .flat_map(|p| [p, p + p / 2])
        .filter(|&s| s < most)
        .collect();
    steps.push(most);
    steps.dedup();
    steps
}

/// Buffers as they come up, with the work that first and last uses each.
struct Layouts<'a> {
    graph: &'a Graph,
    threads: usize,
    work: Vec<Instr>,
    buffers: Vec<(Buffer, Range<usize>)>,
    node_mem: Vec<Option<MemId>>,
    tensor_mem: Vec<Option<MemId>>,
}

impl<'a> Layouts<'a> {
    fn new(graph: &'a Graph, threads: usize) -> Self {
        let (node_mem, tensor_mem) = (
            vec![None; graph.nodes.len()],
            vec![None; graph.tensors.len()],
        );
        Layouts {
            graph,
            threads,
            work: Vec::new(),
            buffers: Vec::new(),
            node_mem,
            tensor_mem,
        }
    }

    fn add(&mut self, name: &str, class: Class, bytes: u64) -> MemId {
        let now = self.work.len();
        let buffer = Buffer {
            name: name.into(),
            class,
            bytes,
            birth: 0,
            death: 0,
            offset: 0,
        };
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
                self.work.push(Instr::Pack {
                    node: NodeId(k as u32),
                });
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

    /// The pools of a sweep, its workspace, and the sums and results of its gathers.
    fn sweep(
        &mut self,
        sweep: &Sweep,
        slot_bytes: &[u64],
        slots: &[u64],
    ) -> (Vec<MemId>, Option<MemId>) {
        let phase = self
            .work
            .iter()
            .filter(|w| matches!(w, Instr::Sweep { .. }))
            .count();
        let mut workspace = 0;
        for step in &sweep.steps {
            let Work::Node(id) = step.work else { continue };
            let node = self.graph.node(id);
            let bytes = footprint::workspace_bytes(self.graph, node, self.threads);
            workspace = workspace.max(bytes);
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
        let mems = pools.map(|(bytes, slots)| {
            self.add(
                &format!("rows of {bytes} bytes"),
                Class::Rows,
                bytes * slots,
            )
        });
        let mems = mems.collect();
        let workspace = (workspace > 0).then(|| {
            let name = format!("workspace of phase {phase}");
            self.add(&name, Class::Workspace, workspace)
        });
        self.work.push(Instr::Sweep { phase });
        (mems, workspace)
    }

    /// When each buffer is alive, by work.
    fn requests(&mut self) -> Vec<Request> {
        for &id in &self.graph.outputs {
            if let (Layout::Whole, Some(mem)) =
                (self.graph.tensor(id).layout, self.tensor_mem[id.at()])
            {
                self.buffers[mem.at()].1.end = self.work.len();
            }
        }
        // weights stay packed from one run to the next
        for (buffer, life) in &mut self.buffers {
            if buffer.class == Class::Weights {
                *life = 0..self.work.len();
            }
        }
        self.buffers
            .iter()
            .map(|(b, life)| Request {
                bytes: b.bytes,
                life: life.clone(),
            })
            .collect()
    }

    /// Places the buffers and writes the script around the work.
    fn script(self, requests: &[Request]) -> (Vec<Instr>, Vec<Buffer>, u64) {
        let (offsets, arena) = place(requests);
        let mut births: Vec<Vec<usize>> = vec![Vec::new(); self.work.len() + 1];
        let mut deaths = births.clone();
        for (k, request) in requests.iter().enumerate() {
            births[request.life.start].push(k);
            deaths[request.life.end].push(k);
        }
        let placed = self.buffers.into_iter().zip(offsets);
        let mut buffers: Vec<Buffer> = placed
            .map(|((b, _), offset)| Buffer { offset, ..b })
            .collect();
        let mut script = Vec::with_capacity(self.work.len() + 2 * requests.len());
        for (now, work) in self.work.into_iter().enumerate() {
            for &k in &births[now] {
                buffers[k].birth = script.len();
                script.push(Instr::Alloc {
                    mem: MemId(k as u32),
                });
            }
            script.push(work);
            for &k in &deaths[now + 1] {
                buffers[k].death = script.len();
                script.push(Instr::Free {
                    mem: MemId(k as u32),
                });
            }
        }
        (script, buffers, arena)
    }
}
