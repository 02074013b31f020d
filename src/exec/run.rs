//! The script, and the turns of each sweep.

use std::ops::{ControlFlow, Range};
use std::time::Instant;

use crate::error::{Error, Result};
use crate::graph::{Graph, Layout, NodeId, Op};
use crate::io::Access;
use crate::kernels::{Isa, Program};
use crate::plan::{Instr, Panel, PhasePlan, Plan, TurnInstr};
use crate::sweep::{Fronts, Work};
use crate::trace::{Event, Tracer};

use super::arena::{Arena, Scratch};
use super::slots::{Place, Slots};
use super::step::{Columns, RowTable};
use super::{Drain, Feed, Progress, dense, gather, step};

/// One run of a plan.
pub(super) struct Run<'a, 't> {
    pub(super) graph: &'a Graph,
    pub(super) plan: &'a Plan,
    pub(super) isa: Isa,
    pub(super) arena: &'a mut Arena,
    pub(super) programs: &'a [Program],
    pub(super) feeds: &'a mut [Feed],
    pub(super) drains: &'a mut [Drain],
    pub(super) start: Instant,
    pub(super) trace: Option<Tracer<'t>>,
}

impl Run<'_, '_> {
    /// The whole script.
    pub(super) fn all(&mut self, progress: Progress<'_>) -> Result<()> {
        let total: u64 = self
            .plan
            .phases
            .iter()
            .map(|p| p.turns * p.panels.len() as u64 * items(self.graph, p))
            .sum();
        let mut done = 0;
        self.whole_inputs()?;
        for instr in &self.plan.script {
            match *instr {
                Instr::Alloc { .. } | Instr::Free { .. } | Instr::Pack { .. } => {}
                Instr::Dense { node } => dense::run(self.graph, self.plan, self.arena, node)?,
                Instr::Sweep { phase: p } => {
                    let phase = &self.plan.phases[p];
                    self.rewind(phase)?;
                    for item in 0..items(self.graph, phase) {
                        for panel in phase.panels.iter().enumerate() {
                            Sweeping::new(self, p, panel, item).all(&mut |turns| {
                                done += turns;
                                progress(done, total)
                            })?;
                        }
                        self.gathered(phase, item)?;
                    }
                }
            }
        }
        self.whole_outputs()
    }

    fn whole_inputs(&mut self) -> Result<()> {
        for (k, &id) in self.graph.inputs.iter().enumerate() {
            if let (Feed::Whole(value), Some(mem)) = (&self.feeds[k], self.plan.tensor_mem[id.at()])
            {
                let range = self.plan.range(mem);
                self.arena.bytes()[range.start..][..dense::bytes_of(value.view().data).len()]
                    .copy_from_slice(dense::bytes_of(value.view().data));
            }
        }
        Ok(())
    }

    fn whole_outputs(&mut self) -> Result<()> {
        for (k, &id) in self.graph.outputs.iter().enumerate() {
            if let Drain::Whole(take) = &mut self.drains[k] {
                debug_assert_eq!(self.graph.tensor(id).layout, Layout::Whole);
                take(dense::view(self.graph, self.plan, self.arena.bytes(), id)?)?;
            }
        }
        Ok(())
    }

    /// Starts sources again that go in order, and refuses panels of one.
    fn rewind(&mut self, phase: &PhasePlan) -> Result<()> {
        for step in &phase.sweep.steps {
            let (name, access) = match step.work {
                Work::Load(k) => match &mut self.feeds[k] {
                    Feed::Rows(source) => {
                        source.rewind()?;
                        (
                            &self.graph.tensor(self.graph.inputs[k]).name,
                            source.access(),
                        )
                    }
                    Feed::Whole(_) => continue,
                },
                Work::Save(k) => match &self.drains[k] {
                    Drain::Rows(sink) => (
                        &self.graph.tensor(self.graph.outputs[k]).name,
                        sink.access(),
                    ),
                    Drain::Whole(_) => continue,
                },
                _ => continue,
            };
            if access == Access::InOrder && phase.panels.len() > 1 {
                let why = format!(
                    "`{name}` goes in order, but the plan has {} panels: spool it",
                    phase.panels.len()
                );
                return Err(Error::Usage(why));
            }
        }
        Ok(())
    }

    /// Ends the sums of a batch item.
    fn gathered(&mut self, phase: &PhasePlan, item: u64) -> Result<()> {
        for step in &phase.sweep.steps {
            let Work::Node(id) = step.work else { continue };
            if let Op::Gather(kind) = self.graph.node(id).op {
                gather::finish(self.graph, self.plan, self.arena, id, kind, item)?;
            }
        }
        Ok(())
    }
}

/// Batch items of a phase.
fn items(graph: &Graph, phase: &PhasePlan) -> u64 {
    phase
        .sweep
        .rows
        .iter()
        .map(|r| graph.tensor(r.tensor).n())
        .max()
        .unwrap_or(0)
}

/// One panel of one batch item, from its first turn to its last.
struct Sweeping<'r, 'a, 't> {
    run: &'r mut Run<'a, 't>,
    /// Indices of the phase and the panel, for events.
    at: (usize, usize),
    phase: &'r PhasePlan,
    panel: Panel,
    item: u64,
    slots: Slots<'r>,
    places: Vec<Place>,
    columns: Vec<Columns>,
    scratch: Scratch,
}

impl<'r, 'a, 't> Sweeping<'r, 'a, 't> {
    fn new(run: &'r mut Run<'a, 't>, p: usize, (k, panel): (usize, Panel), item: u64) -> Self {
        let (graph, phase) = (run.graph, &run.plan.phases[p]);
        let place = |(rows, window): (&crate::sweep::Rows, &Range<u64>)| {
            let t = graph.tensor(rows.tensor);
            Place {
                window: window.clone(),
                pixel: 4 * t.c(),
                item,
                height: t.h(),
                width: t.w(),
            }
        };
        let places = phase
            .sweep
            .rows
            .iter()
            .zip(&panel.windows)
            .map(place)
            .collect();
        let columns = (0..phase.sweep.steps.len())
            .map(|s| step::columns(graph, phase, &panel, s))
            .collect();
        let slots = Slots::new(run.plan, phase);
        Sweeping {
            run,
            at: (p, k),
            phase,
            panel,
            item,
            slots,
            places,
            columns,
            scratch: Scratch::default(),
        }
    }

    fn all(&mut self, progress: &mut dyn FnMut(u64) -> ControlFlow<()>) -> Result<()> {
        let phase = self.phase;
        let mut fronts = Fronts::new(&phase.sweep, &phase.pace, phase.strip);
        while !fronts.done() {
            for instr in &phase.turn {
                match *instr {
                    TurnInstr::Exec { step, .. } => {
                        let made = fronts.advance(step);
                        if !made.is_empty() {
                            self.timed(fronts.turn(), step, made)?;
                        }
                    }
                    TurnInstr::Drop { rows, .. } => {
                        let tail = fronts.tail(rows).min(fronts.front(rows));
                        self.slots.drop_below(rows, tail);
                    }
                }
            }
            fronts.end_turn();
            if progress(1).is_break() {
                return Err(Error::Stopped);
            }
        }
        Ok(())
    }

    /// Makes rows `rows` of step `step`, and an event of it for who wants one.
    fn timed(&mut self, turn: u64, step: usize, rows: Range<u64>) -> Result<()> {
        if self.run.trace.is_none() {
            return self.exec(step, rows);
        }
        let start = self.run.start.elapsed().as_secs_f64();
        self.exec(step, rows.clone())?;
        let seconds = self.run.start.elapsed().as_secs_f64() - start;
        let (phase, panel) = self.at;
        if let Some(trace) = &mut self.run.trace {
            trace(Event {
                phase,
                item: self.item,
                panel,
                turn,
                step,
                rows,
                start,
                seconds,
            });
        }
        Ok(())
    }

    /// Makes rows `made` of step `s`.
    fn exec(&mut self, s: usize, made: Range<u64>) -> Result<()> {
        let step = &self.phase.sweep.steps[s];
        if let Some(rows) = step.makes {
            self.slots.take(rows, made.clone())?;
        }
        match step.work {
            Work::Recall => Ok(()),
            Work::Load(k) => self.load(k, step.makes.expect("a load makes rows"), made),
            Work::Save(k) => self.save(k, s, made),
            Work::Node(id) => self.node(id, s, made),
        }
    }

    fn load(&mut self, k: usize, rows: usize, made: Range<u64>) -> Result<()> {
        let cols = self.panel.windows[rows].clone();
        if cols.is_empty() {
            return Ok(());
        }
        let Feed::Rows(source) = &mut self.run.feeds[k] else {
            return Ok(());
        };
        // a source in order gives whole rows: there is one panel then, and no column is left out
        let place = &self.places[rows];
        let spans = made
            .clone()
            .map(|y| self.slots.bytes(rows, place, y, &cols))
            .collect::<Result<Vec<_>>>()?;
        let (_, out) = self.run.arena.views(&[], &spans, &mut self.scratch)?;
        let mut out: Vec<&mut [f32]> = out.into_iter().map(bytemuck::cast_slice_mut).collect();
        source.read(self.item, made.start, cols, &mut out)
    }

    fn save(&mut self, k: usize, s: usize, made: Range<u64>) -> Result<()> {
        let cols = self.panel.owned[s].clone();
        if cols.is_empty() {
            return Ok(());
        }
        let rows = self.phase.sweep.steps[s].reads[0].rows;
        let Drain::Rows(sink) = &mut self.run.drains[k] else {
            return Ok(());
        };
        let place = &self.places[rows];
        let spans = made
            .clone()
            .map(|y| self.slots.bytes(rows, place, y, &cols))
            .collect::<Result<Vec<_>>>()?;
        let (rows, _) = self.run.arena.views(&spans, &[], &mut self.scratch)?;
        let rows: Vec<&[f32]> = rows.into_iter().map(bytemuck::cast_slice).collect();
        sink.write(self.item, made.start, cols, &rows)
    }

    fn node(&mut self, id: NodeId, s: usize, made: Range<u64>) -> Result<()> {
        let (graph, plan, phase) = (self.run.graph, self.run.plan, self.phase);
        let (node, sweep_step) = (graph.node(id), &phase.sweep.steps[s]);
        let out_cols = match sweep_step.makes {
            Some(rows) => self.panel.windows[rows].clone(),
            None => self.panel.owned[s].clone(),
        };
        if out_cols.is_empty() {
            return Ok(());
        }
        // what is read: rows by read, then weights, then whole operands
        let mut shared: Vec<Range<usize>> = Vec::new();
        let mut tables: Vec<RowTable> = Vec::with_capacity(sweep_step.reads.len());
        for read in &sweep_step.reads {
            let start = self.panel.windows[read.rows].start;
            let cols = Some(read.cols.span(&out_cols))
                .filter(|span| !span.is_empty())
                .unwrap_or(start..start);
            let table = match &self.columns[s] {
                // the tail's operands are read row by row
                Columns::Tiles(_) if tables.len() < node.operands[0].0.len() => {
                    RowTable::tiles(&read.axis, sweep_step.grains[0], &made, shared.len())
                }
                _ => RowTable::new(&read.axis, &made, shared.len()),
            };
            for y in table.rows.clone() {
                shared.push(
                    self.slots
                        .bytes(read.rows, &self.places[read.rows], y, &cols)?,
                );
            }
            tables.push(table);
        }
        let weights = shared.len();
        let packed = plan.node_mem[id.at()].filter(|_| matches!(node.op, Op::Conv(_)));
        shared.extend(packed.map(|mem| plan.range(mem)));
        let whole = shared.len();
        for &tensor in node.whole.iter().flatten() {
            shared.extend(plan.tensor_mem[tensor.at()].map(|mem| plan.range(mem)));
        }
        // what is written: rows, or what a gather fills
        let mut exclusive: Vec<Range<usize>> = Vec::new();
        match sweep_step.makes {
            Some(rows) => {
                for y in made.clone() {
                    exclusive.push(self.slots.bytes(rows, &self.places[rows], y, &out_cols)?);
                }
            }
            None => exclusive.extend(gather::target(plan, node, id)),
        }
        if matches!(self.columns[s], Columns::Tiles(_)) {
            exclusive.extend(phase.workspace.map(|mem| plan.range(mem)));
        }
        let (shared, mut exclusive) =
            self.run
                .arena
                .views(&shared, &exclusive, &mut self.scratch)?;
        let whole = dense::whole_views(graph, plan, node, &shared[whole..])?;
        if let Op::Gather(kind) = node.op {
            let target = exclusive
                .pop()
                .ok_or_else(|| Error::Plan(format!("`{}` has no place", node.name)))?;
            return gather::rows(
                graph, node, kind, self.item, &made, &out_cols, &tables, &shared, target,
            );
        }
        let mut out: Vec<&mut [f32]> = exclusive
            .into_iter()
            .map(bytemuck::cast_slice_mut)
            .collect();
        let workspace = match self.columns[s] {
            Columns::Tiles(_) => out.pop().unwrap_or_default(),
            _ => &mut [],
        };
        let call = step::Call {
            graph,
            node,
            isa: self.run.isa,
            program: &self.run.programs[id.at()],
            item: self.item,
            made,
            out_cols,
            axis: sweep_step.reads.first().map(|r| &r.axis),
            columns: &self.columns[s],
            tables: &tables,
            shared: &shared,
            weights: packed.map(|_| bytemuck::cast_slice(shared[weights])),
            whole: &whole,
            grain: sweep_step.grains[0],
            workspace,
        };
        call.run(&mut out)
    }
}
