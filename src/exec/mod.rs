//! Runs a [`SafePlan`] on the CPU. It decides nothing about memory: every buffer has its place in one
//! arena, rows go to slots that the plan counted, and kernels allocate nothing.

mod arena;
mod dense;
mod gather;
mod memory;
mod pack;
mod run;
mod slots;
mod step;
mod tables;

use std::ops::ControlFlow;
use std::time::Instant;

use rayon::ThreadPool;

use crate::dense::{Value, View};
use crate::error::{Error, Result};
use crate::graph::{Graph, Layout};
use crate::io::{RowSink, RowSource};
use crate::kernels::{Isa, Program};
use crate::plan::{Instr, SafePlan};
use crate::trace::Tracer;

pub use memory::{available_memory, peak_resident_memory};

use arena::Arena;

/// What a graph input is fed with.
pub enum Feed {
    /// Rows, for an input of rows.
    Rows(Box<dyn RowSource>),
    /// A whole tensor, for any other input.
    Whole(Value),
}

/// Where a graph output goes.
pub enum Drain {
    /// Rows, for an output of rows.
    Rows(Box<dyn RowSink>),
    /// A whole tensor, for any other output: called once a run, when it is complete.
    Whole(Box<dyn FnMut(View<'_>) -> Result<()> + Send>),
}

/// What a run took.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize)]
pub struct Stats {
    /// Seconds from the first row in to the outputs complete.
    pub seconds: f64,
    /// Bytes read from storage by sources and sinks since they were made.
    pub bytes_read: u64,
    /// Bytes written to storage by sources and sinks since they were made.
    pub bytes_written: u64,
}

/// How far a run is: called after every turn with the turns done and those in all. To break stops the
/// run with [`Error::Stopped`].
pub type Progress<'a> = &'a mut (dyn FnMut(u64, u64) -> ControlFlow<()> + Send);

/// A plan with its arena allocated and its weights packed, ready to run any number of times.
pub struct Engine {
    graph: Graph,
    plan: SafePlan,
    isa: Isa,
    arena: Arena,
    /// The compiled tail of each node.
    programs: Vec<Program>,
    threads: ThreadPool,
}

impl Engine {
    /// Allocates the arena and packs the weights.
    ///
    /// # Errors
    /// Where memory or a weight cannot be had.
    pub fn new(graph: Graph, plan: SafePlan, isa: Isa) -> Result<Self> {
        let threads = rayon::ThreadPoolBuilder::new()
            .num_threads(plan.plan().options.threads)
            .stack_size(1 << 20)
            .build()
            .map_err(|e| {
                Error::Usage(format!(
                    "{} threads cannot be started: {e}",
                    plan.plan().options.threads
                ))
            })?;
        let programs = graph
            .nodes
            .iter()
            .map(pack::program)
            .collect::<Result<_>>()?;
        let arena = Arena::new(plan.plan().arena_bytes)?;
        let mut engine = Engine {
            graph,
            plan,
            isa,
            arena,
            programs,
            threads,
        };
        for instr in engine.plan.plan().script.clone() {
            if let Instr::Pack { node } = instr {
                let mem =
                    engine.plan.plan().node_mem[node.at()].expect("a packed node has a buffer");
                let buffer = &engine.plan.plan().buffers[mem.at()];
                let range = buffer.offset as usize..(buffer.offset + buffer.bytes) as usize;
                pack::pack(
                    &engine.graph,
                    node,
                    bytemuck::cast_slice_mut(&mut engine.arena.bytes()[range]),
                )?;
            }
        }
        Ok(engine)
    }

    /// The plan that it runs.
    pub fn plan(&self) -> &SafePlan {
        &self.plan
    }

    /// The graph that it runs.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Runs once: `feeds` and `drains` are in the order of the graph's inputs and outputs. Those that
    /// can start again, as everything in memory can, do for another run.
    ///
    /// # Errors
    /// Where feeds or drains do not fit the graph, or one of them fails.
    pub fn run(
        &mut self,
        feeds: &mut [Feed],
        drains: &mut [Drain],
        progress: Progress<'_>,
    ) -> Result<Stats> {
        self.run_traced(feeds, drains, progress, None)
    }

    /// As [`Engine::run`], and gives an event for each step of each turn to `trace`.
    ///
    /// # Errors
    /// As [`Engine::run`].
    pub fn run_traced(
        &mut self,
        feeds: &mut [Feed],
        drains: &mut [Drain],
        progress: Progress<'_>,
        trace: Option<Tracer<'_>>,
    ) -> Result<Stats> {
        fits(&self.graph, feeds, drains)?;
        let start = Instant::now();
        let Engine {
            graph,
            plan,
            isa,
            arena,
            programs,
            threads,
        } = self;
        let plan = plan.plan();
        let mut run = run::Run {
            graph,
            plan,
            isa: *isa,
            arena,
            programs,
            feeds,
            drains,
            start,
            trace,
        };
        threads.install(|| run.all(progress))?;
        let mut stats = Stats::default();
        for drain in drains {
            if let Drain::Rows(sink) = drain {
                sink.finish()?;
                stats.bytes_read += sink.bytes_read();
                stats.bytes_written += sink.bytes_written();
            }
        }
        for feed in feeds {
            if let Feed::Rows(source) = feed {
                stats.bytes_read += source.bytes_read();
                stats.bytes_written += source.bytes_written();
            }
        }
        stats.seconds = start.elapsed().as_secs_f64();
        Ok(stats)
    }
}

/// Whether feeds and drains have the kinds and lengths of the graph's inputs and outputs.
fn fits(graph: &Graph, feeds: &[Feed], drains: &[Drain]) -> Result<()> {
    let count = |what: &str, want: usize, got: usize| {
        if want == got {
            Ok(())
        } else {
            Err(Error::Usage(format!(
                "the model has {want} {what}, {got} given"
            )))
        }
    };
    count("inputs", graph.inputs.len(), feeds.len())?;
    count("outputs", graph.outputs.len(), drains.len())?;
    for (&id, feed) in graph.inputs.iter().zip(feeds) {
        let tensor = graph.tensor(id);
        let got = match (feed, tensor.layout) {
            (Feed::Rows(source), Layout::Rows) => {
                let s = source.shape();
                vec![s.n, s.c, s.h, s.w]
            }
            (Feed::Whole(value), Layout::Whole) if value.dtype() == tensor.dtype => {
                value.dims.clone()
            }
            _ => {
                return Err(Error::Usage(format!(
                    "input `{}` needs {:?} {:?}",
                    tensor.name, tensor.layout, tensor.dtype
                )));
            }
        };
        if got != tensor.dims {
            let why = format!(
                "input `{}` is {:?}, the plan is for {:?}",
                tensor.name, got, tensor.dims
            );
            return Err(Error::Usage(why));
        }
    }
    for (&id, drain) in graph.outputs.iter().zip(drains) {
        let tensor = graph.tensor(id);
        if matches!(drain, Drain::Rows(_)) != (tensor.layout == Layout::Rows) {
            return Err(Error::Usage(format!(
                "output `{}` gives {:?}",
                tensor.name, tensor.layout
            )));
        }
    }
    Ok(())
}
