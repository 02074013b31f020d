//! A graph cut into phases, and how fronts move within one: the only notion of time.
//!
//! A **phase** is one sweep from top to bottom. A node belongs to the first phase in which all it
//! needs of *whole* tensors is complete; rows that a later phase reads are stored. Within a sweep
//! every **step** (a source, an op, a save) advances once a **turn**, in a fixed order:
//!
//! ```text
//!             turn 0        turn 1        turn 2            h = 4 rows a turn
//!  source   0 1 2 3       4 5 6 7       8 9                 moves by itself, then ends
//!  conv     0 1 2           3 4 5 6       7 8 9             lags one row: it reads one below
//!  conv     0 1               2 3 4 5       6 7 8 9         lags two
//! ```
//!
//! [`Fronts`] is that recurrence. Planner, simulator and runtimes all step it; which rows a turn
//! makes is stored nowhere.

mod fronts;
mod grain;

pub use fronts::{Fronts, Pace};
pub use grain::Grain;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::graph::{Axis, Graph, Layout, NodeId, Op, Side, TensorId};

/// A reduced fraction: rows of one tensor per row of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Ratio {
    /// Numerator, at least 1.
    pub num: u64,
    /// Denominator, at least 1.
    pub den: u64,
}

impl Ratio {
    /// `num / den`, reduced.
    pub fn new(num: u64, den: u64) -> Self {
        let (num, den) = (num.max(1), den.max(1));
        let g = gcd(u128::from(num), u128::from(den)) as u64;
        Ratio {
            num: num / g,
            den: den / g,
        }
    }

    /// The product, or `None` where it does not fit.
    fn times(self, other: Ratio) -> Option<Ratio> {
        let num = u128::from(self.num) * u128::from(other.num);
        let den = u128::from(self.den) * u128::from(other.den);
        let g = gcd(num, den);
        Some(Ratio {
            num: u64::try_from(num / g).ok()?,
            den: u64::try_from(den / g).ok()?,
        })
    }

    fn inverse(self) -> Ratio {
        Ratio {
            num: self.den,
            den: self.num,
        }
    }

    /// `⌈x · self⌉`, as much as fits.
    pub fn ceil_of(self, x: u64) -> u64 {
        let v = (u128::from(x) * u128::from(self.num)).div_ceil(u128::from(self.den));
        u64::try_from(v).unwrap_or(u64::MAX)
    }

    /// The rows of the other tensor that `x` rows of this one stand for, rounded up.
    pub fn rows_for(self, x: u64) -> u64 {
        self.inverse().ceil_of(x)
    }

    /// As a number.
    pub fn value(self) -> f64 {
        self.num as f64 / self.den as f64
    }
}

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// What a step does with the rows it advances over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Work {
    /// Reads rows of graph input `_` from its source.
    Load(usize),
    /// Nothing: the rows were stored by an earlier phase.
    Recall,
    /// Runs the node.
    Node(NodeId),
    /// Gives rows to the sink of graph output `_`.
    Save(usize),
}

/// One op in every turn of a sweep.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// What it does.
    pub work: Work,
    /// Rows it reads, by operand and segment.
    pub reads: Vec<Read>,
    /// The tensor whose front it moves, an index into [`Sweep::rows`]; none for a gather or a save.
    pub makes: Option<usize>,
    /// Rows that it passes over in all: the height of its output, or of what it gathers or saves.
    pub height: u64,
    /// Its rows per row of the sweep's largest source.
    pub ratio: Ratio,
    /// Rows, and columns, that it makes together.
    pub grains: [Grain; 2],
}

impl Step {
    /// Whether its front moves by itself.
    pub fn is_source(&self) -> bool {
        self.reads.is_empty()
    }
}

/// Rows of one tensor that a step reads.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Read {
    /// Index into [`Sweep::rows`].
    pub rows: usize,
    /// Which of its rows each of the step's rows reads.
    pub axis: Axis,
    /// The same for columns.
    pub cols: Axis,
}

/// A tensor whose rows move in a sweep.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rows {
    /// The tensor.
    pub tensor: TensorId,
    /// The step that moves its front.
    pub maker: usize,
    /// Steps that read it, with the index of the read.
    pub readers: Vec<(usize, usize)>,
    /// Whether all of it is kept in memory of its own, because another phase made it or reads it.
    pub stored: bool,
}

/// One pass over the image, from top to bottom.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Sweep {
    /// The steps of a turn, in order.
    pub steps: Vec<Step>,
    /// The tensors whose rows move.
    pub rows: Vec<Rows>,
    /// Rows of the largest source; 0 in a phase without a sweep.
    pub height: u64,
}

/// Ops over whole tensors, then a sweep.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Phase {
    /// Run before the sweep, in order.
    pub dense: Vec<NodeId>,
    /// The sweep; the last phase may have none.
    pub sweep: Sweep,
}

/// Cuts `graph` into phases.
///
/// # Errors
/// [`Error::Model`] where a tensor is read before it is made.
pub fn phases(graph: &Graph) -> Result<Vec<Phase>> {
    let at = Levels::of(graph)?;
    let scales = [scales(graph, Side::Rows), scales(graph, Side::Cols)];
    let count = at.count(graph);
    let mut phases = vec![Phase::default(); count];
    for (p, phase) in phases.iter_mut().enumerate() {
        phase.dense = at
            .nodes_in(graph, p)
            .filter(|n| matches!(graph.node(*n).op, Op::Dense(_)))
            .collect();
        phase.sweep = Builder {
            graph,
            at: &at,
            scales: &scales,
            phase: p,
            sweep: Sweep::default(),
        }
        .build();
    }
    Ok(phases)
}

/// In which phase each node runs, and from which phase on each tensor can be read whole.
struct Levels {
    node: Vec<usize>,
    /// For rows: the phase whose sweep makes them. For whole tensors: the first phase that can read.
    tensor: Vec<usize>,
    /// The last phase that reads a tensor's rows.
    last_read: Vec<usize>,
    /// The phase that gives a graph input which is an output, by output.
    passed_on: Vec<Option<usize>>,
}

impl Levels {
    fn of(graph: &Graph) -> Result<Self> {
        let mut tensor = vec![usize::MAX; graph.tensors.len()];
        for id in graph
            .inputs
            .iter()
            .chain(graph.constants.iter().map(|(id, _)| id))
        {
            tensor[id.at()] = 0;
        }
        let mut node = Vec::with_capacity(graph.nodes.len());
        let mut last_read = vec![0; graph.tensors.len()];
        let mut batches = Batches::default();
        for n in &graph.nodes {
            let rows = n
                .operands
                .iter()
                .chain(&n.extras)
                .flat_map(|o| o.0.iter().map(|s| s.tensor));
            let mut level = 0;
            for id in rows.clone().chain(n.whole.iter().flatten().copied()) {
                if tensor[id.at()] == usize::MAX {
                    let why = format!("reads `{}` before it is made", graph.tensor(id).name);
                    return Err(Error::model(&n.name, why));
                }
                level = level.max(tensor[id.at()]);
            }
            let swept = rows.clone().next().or(n.outputs.first().copied());
            if let (false, Some(id)) = (matches!(n.op, Op::Dense(_)), swept) {
                level = batches.place(level, graph.tensor(id).n());
            }
            for id in rows {
                last_read[id.at()] = last_read[id.at()].max(level);
            }
            let ready = if matches!(n.op, Op::Gather(_)) {
                level + 1
            } else {
                level
            };
            for id in &n.outputs {
                tensor[id.at()] = ready;
            }
            node.push(level);
        }
        for id in &graph.outputs {
            if tensor[id.at()] == usize::MAX {
                return Err(Error::model(
                    "graph",
                    format!("output `{}` is never made", graph.tensor(*id).name),
                ));
            }
        }
        let passed_on = |id: &TensorId| {
            let rows = graph.tensor(*id).layout == Layout::Rows;
            let passed = rows && graph.inputs.contains(id);
            passed.then(|| batches.place(0, graph.tensor(*id).n()))
        };
        let passed_on = graph.outputs.iter().map(passed_on).collect();
        Ok(Levels {
            node,
            tensor,
            last_read,
            passed_on,
        })
    }

    fn count(&self, graph: &Graph) -> usize {
        let outputs = graph.outputs.iter().map(|id| self.tensor[id.at()]);
        self.node
            .iter()
            .copied()
            .chain(outputs)
            .chain(self.passed_on.iter().flatten().copied())
            .max()
            .map_or(1, |p| p + 1)
    }

    fn nodes_in<'a>(&'a self, graph: &'a Graph, phase: usize) -> impl Iterator<Item = NodeId> + 'a {
        (0..graph.nodes.len())
            .filter(move |&n| self.node[n] == phase)
            .map(|n| NodeId(n as u32))
    }
}

/// Rows (or columns) of `to` for each of `from`, exactly: the strides between them, not the ratio of
/// their lengths. None where no op in strips connects them.
pub fn scale(graph: &Graph, from: TensorId, to: TensorId, side: Side) -> Option<Ratio> {
    let mut scale = vec![None; graph.tensors.len()];
    scale[from.at()] = Some(Ratio::new(1, 1));
    follow(&links(graph, side), from.at(), &mut scale);
    scale[to.at()]
}

/// The batch items of each phase's sweep: one number, because a sweep goes over one item at a time.
#[derive(Default)]
struct Batches(Vec<Option<u64>>);

impl Batches {
    /// The first phase from `level` on whose sweep goes, or can go, over `n` items.
    fn place(&mut self, mut level: usize, n: u64) -> usize {
        loop {
            self.0.resize(self.0.len().max(level + 1), None);
            if *self.0[level].get_or_insert(n) == n {
                return level;
            }
            level += 1;
        }
    }
}

/// Rows (or columns) per row of the first tensor of the same connected part of the graph, exactly;
/// where two ways disagree (a ceiling on one of them), the first found holds.
fn scales(graph: &Graph, side: Side) -> Vec<Ratio> {
    let links = links(graph, side);
    let mut scale: Vec<Option<Ratio>> = vec![None; graph.tensors.len()];
    for root in 0..graph.tensors.len() {
        if scale[root].is_none() && graph.tensors[root].layout == Layout::Rows {
            scale[root] = Some(Ratio::new(graph.tensors[root].len(side), 1));
            follow(&links, root, &mut scale);
        }
    }
    scale
        .into_iter()
        .map(|s| s.unwrap_or(Ratio::new(1, 1)))
        .collect()
}

/// For each tensor those that an op in strips connects it with, and their rows per row of it.
fn links(graph: &Graph, side: Side) -> Vec<Vec<(usize, Ratio)>> {
    let mut links = vec![Vec::new(); graph.tensors.len()];
    for node in graph.nodes.iter().filter(|n| n.op.in_strips()) {
        let out = node.outputs[0].at();
        for (k, operand) in node.operands.iter().chain(&node.extras).enumerate() {
            let axis = graph.axis(node, k, side);
            if k >= node.operands.len() && axis.input != axis.output {
                // one column that stands for all has no scale
                continue;
            }
            let ratio = row_ratio(&axis);
            for segment in &operand.0 {
                links[segment.tensor.at()].push((out, ratio));
                links[out].push((segment.tensor.at(), ratio.inverse()));
            }
        }
    }
    links
}

/// Gives a scale to all that is linked with `root`, which has one.
fn follow(links: &[Vec<(usize, Ratio)>], root: usize, scale: &mut [Option<Ratio>]) {
    let mut todo = vec![root];
    while let Some(t) = todo.pop() {
        for &(to, ratio) in &links[t] {
            if let (None, Some(from)) = (scale[to], scale[t]) {
                // a ratio of 64-bit numbers that does not fit stays as it was
                scale[to] = Some(from.times(ratio).unwrap_or(from));
                todo.push(to);
            }
        }
    }
}

/// Output rows per input row.
fn row_ratio(axis: &Axis) -> Ratio {
    use crate::graph::Window::*;
    match &axis.window {
        Same => Ratio::new(1, 1),
        Taps { stride, .. } => Ratio::new(1, *stride),
        Transposed { stride, .. } => Ratio::new(*stride, 1),
        Repeat { factor } => Ratio::new(*factor, 1),
        Interp(_) => Ratio::new(axis.output, axis.input),
    }
}

struct Builder<'a> {
    graph: &'a Graph,
    at: &'a Levels,
    /// Of each tensor, along rows and along columns.
    scales: &'a [Vec<Ratio>; 2],
    phase: usize,
    sweep: Sweep,
}

impl Builder<'_> {
    fn build(mut self) -> Sweep {
        let graph = self.graph;
        for id in self.at.nodes_in(graph, self.phase) {
            let node = graph.node(id);
            if matches!(node.op, Op::Dense(_)) {
                continue;
            }
            let mut reads = Vec::new();
            for (k, operand) in node.operands.iter().chain(&node.extras).enumerate() {
                let axis = graph.axis(node, k, Side::Rows);
                let cols = graph.axis(node, k, Side::Cols);
                for segment in &operand.0 {
                    let rows = self.rows(segment.tensor);
                    reads.push(Read {
                        rows,
                        axis: axis.clone(),
                        cols: cols.clone(),
                    });
                }
            }
            let (makes, passed) = match node.op {
                Op::Gather(_) => (None, node.operands[0].0[0].tensor),
                _ => (Some(self.add_rows(node.outputs[0])), node.outputs[0]),
            };
            self.push(Work::Node(id), reads, makes, passed);
            if makes.is_some() {
                self.save(node.outputs[0]);
            }
        }
        for (k, &id) in self.graph.outputs.iter().enumerate() {
            let before = self.graph.outputs[..k].contains(&id);
            if self.at.passed_on[k] == Some(self.phase) && !before {
                self.rows(id);
                self.save(id);
            }
        }
        for side in [Side::Rows, Side::Cols] {
            grain::anchor(self.graph, &mut self.sweep, self.scales, side);
        }
        let largest = self
            .sweep
            .steps
            .iter()
            .filter(|s| s.is_source())
            .map(|s| s.ratio);
        if let Some(largest) = largest.max_by(|a, b| a.value().total_cmp(&b.value())) {
            for step in &mut self.sweep.steps {
                step.ratio = step
                    .ratio
                    .times(largest.inverse())
                    .unwrap_or(Ratio::new(1, 1));
            }
            let sources = self.sweep.steps.iter().filter(|s| s.is_source());
            self.sweep.height = sources
                .map(|s| s.ratio.rows_for(s.height))
                .max()
                .unwrap_or(0);
        }
        self.sweep
    }

    /// The local index of `tensor`, with a source step where this phase did not make it.
    fn rows(&mut self, tensor: TensorId) -> usize {
        if let Some(k) = self.sweep.rows.iter().position(|r| r.tensor == tensor) {
            return k;
        }
        let k = self.add_rows(tensor);
        let input = self.graph.inputs.iter().position(|&id| id == tensor);
        let work = input.map_or(Work::Recall, Work::Load);
        if input.is_some() {
            self.sweep.rows[k].stored = false;
        }
        self.push(work, Vec::new(), Some(k), tensor);
        k
    }

    fn add_rows(&mut self, tensor: TensorId) -> usize {
        let stored = self.at.tensor[tensor.at()] < self.at.last_read[tensor.at()];
        self.sweep.rows.push(Rows {
            tensor,
            maker: 0,
            readers: Vec::new(),
            stored,
        });
        self.sweep.rows.len() - 1
    }

    /// A save step where `tensor` is a graph output.
    fn save(&mut self, tensor: TensorId) {
        let outputs: Vec<usize> = (0..self.graph.outputs.len())
            .filter(|&k| self.graph.outputs[k] == tensor)
            .collect();
        for k in outputs {
            let t = self.graph.tensor(tensor);
            let same = |len| Axis {
                window: crate::graph::Window::Same,
                input: len,
                output: len,
            };
            let rows = self
                .sweep
                .rows
                .iter()
                .position(|r| r.tensor == tensor)
                .expect("made just before");
            self.push(
                Work::Save(k),
                vec![Read {
                    rows,
                    axis: same(t.h()),
                    cols: same(t.w()),
                }],
                None,
                tensor,
            );
        }
    }

    fn push(&mut self, work: Work, reads: Vec<Read>, makes: Option<usize>, passed: TensorId) {
        let step = self.sweep.steps.len();
        for (k, read) in reads.iter().enumerate() {
            self.sweep.rows[read.rows].readers.push((step, k));
        }
        if let Some(made) = makes {
            self.sweep.rows[made].maker = step;
        }
        let height = self.graph.tensor(passed).h();
        let ratio = self.scales[0][passed.at()];
        self.sweep.steps.push(Step {
            work,
            reads,
            makes,
            height,
            ratio,
            grains: grain::sizes(self.graph, work),
        });
    }
}
