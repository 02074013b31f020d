//! `--profile`: where the time of runs went, step by step.

use stripmill::Result;
use stripmill::exec::{Drain, Engine, Feed, Progress, Stats};
use stripmill::graph::{Axis, Graph, Node, Op};
use stripmill::plan::{Panel, PhasePlan, Plan};
use stripmill::sweep::{Read, Work};
use stripmill::trace::Event;

use super::table::Table;

/// What the steps of one run or of several took, all together.
pub(super) struct Profile {
    /// The steps of each phase.
    phases: Vec<Vec<Line>>,
}

/// One step.
struct Line {
    name: String,
    kind: String,
    /// Which rows it reads, by operand and segment.
    reads: Vec<Axis>,
    panels: Vec<Row>,
    /// Of packed weights, read in every turn.
    weight_bytes: u64,
    seconds: f64,
    flop: f64,
    bytes: f64,
}

/// One row of a step in one panel.
struct Row {
    /// Of one row of each read.
    read_bytes: Vec<u64>,
    made_bytes: u64,
    flop: f64,
}

impl Profile {
    pub(super) fn new(graph: &Graph, plan: &Plan) -> Self {
        let lines = |phase: &PhasePlan| {
            let steps = 0..phase.sweep.steps.len();
            steps.map(|s| Line::new(graph, plan, phase, s)).collect()
        };
        Profile {
            phases: plan.phases.iter().map(lines).collect(),
        }
    }

    /// Counts what happened.
    pub(super) fn add(&mut self, event: &Event) {
        let line = &mut self.phases[event.phase][event.step];
        let row = &line.panels[event.panel];
        let rows = event.rows.end - event.rows.start;
        let mut bytes = rows * row.made_bytes + line.weight_bytes;
        for (axis, each) in line.reads.iter().zip(&row.read_bytes) {
            let span = axis.span(&event.rows);
            bytes += (span.end - span.start) * each;
        }
        line.seconds += event.seconds;
        line.flop += rows as f64 * row.flop;
        line.bytes += bytes as f64;
    }

    /// A table for one of `runs` runs that took `seconds` together, the step that takes longest first.
    pub(super) fn table(&self, runs: u32, seconds: f64) -> String {
        let mut lines: Vec<(String, &Line)> = Vec::new();
        for (p, steps) in self.phases.iter().enumerate() {
            lines.extend((steps.iter().enumerate()).map(|(s, line)| (format!("{p}.{s}"), line)));
        }
        lines.sort_by(|a, b| b.1.seconds.total_cmp(&a.1.seconds));
        let mut table = Table::new(
            3,
            &[
                "step", "name", "kind", "ms", "share", "GFLOP/s", "MB", "GB/s",
            ],
        );
        let runs = f64::from(runs);
        let mut row = |at: &str, name: &str, kind: &str, took: f64, flop: f64, bytes: f64| {
            let rate = |amount: f64| match amount / took / 1e9 {
                rate if amount > 0.0 && rate.is_finite() => format!("{rate:.1}"),
                _ => "-".to_owned(),
            };
            table.row([
                at.to_owned(),
                name.to_owned(),
                kind.to_owned(),
                format!("{:.3}", took / runs * 1e3),
                format!("{:.1} %", took / seconds * 100.0),
                rate(flop),
                format!("{:.2}", bytes / runs / 1e6),
                rate(bytes),
            ]);
        };
        for (at, line) in &lines {
            let (took, flop, bytes) = (line.seconds, line.flop, line.bytes);
            row(at, &line.name, &line.kind, took, flop, bytes);
        }
        let sum = |of: fn(&Line) -> f64| lines.iter().map(|(_, line)| of(line)).sum::<f64>();
        let rest = seconds - sum(|line| line.seconds);
        row("", "between steps, whole tensors", "", rest, 0.0, 0.0);
        let (flop, bytes) = (sum(|line| line.flop), sum(|line| line.bytes));
        row("", "all", "", seconds, flop, bytes);
        table.to_string()
    }
}

/// Runs once, counting into `profile` if there is one.
pub(super) fn run(
    engine: &mut Engine,
    feeds: &mut [Feed],
    drains: &mut [Drain],
    profile: Option<&mut Profile>,
    progress: Progress<'_>,
) -> Result<Stats> {
    match profile {
        None => engine.run(feeds, drains, progress),
        Some(profile) => {
            let count = &mut |event: Event| profile.add(&event);
            engine.run_traced(feeds, drains, progress, Some(count))
        }
    }
}

impl Line {
    fn new(graph: &Graph, plan: &Plan, phase: &PhasePlan, s: usize) -> Self {
        let step = &phase.sweep.steps[s];
        let of = |rows: Option<usize>| {
            let tensor = rows.map(|rows| graph.tensor(phase.sweep.rows[rows].tensor));
            tensor.map_or(String::new(), |tensor| tensor.name.clone())
        };
        let (name, kind) = match step.work {
            Work::Load(_) => (of(step.makes), "load".to_owned()),
            Work::Recall => (of(step.makes), "recall".to_owned()),
            Work::Save(_) => (of(step.reads.first().map(|r| r.rows)), "save".to_owned()),
            Work::Node(id) => (graph.node(id).name.clone(), kind(graph, graph.node(id))),
        };
        let weights = match step.work {
            Work::Node(id) if matches!(graph.node(id).op, Op::Conv(_)) => plan.node_mem[id.at()],
            _ => None,
        };
        Line {
            name,
            kind,
            reads: step.reads.iter().map(|r| r.axis.clone()).collect(),
            panels: (phase.panels.iter())
                .map(|panel| Row::new(graph, phase, &panel, s))
                .collect(),
            weight_bytes: weights.map_or(0, |mem| plan.buffers[mem.at()].bytes),
            seconds: 0.0,
            flop: 0.0,
            bytes: 0.0,
        }
    }
}

impl Row {
    fn new(graph: &Graph, phase: &PhasePlan, panel: &Panel, s: usize) -> Self {
        let step = &phase.sweep.steps[s];
        let cols = match step.makes {
            Some(rows) => &panel.windows[rows],
            None => &panel.owned[s],
        };
        let bytes =
            |rows: usize, width: u64| 4 * width * graph.tensor(phase.sweep.rows[rows].tensor).c();
        let width = cols.end - cols.start;
        let read = |read: &Read| match width {
            0 => 0,
            _ => {
                let span = read.cols.span(cols);
                bytes(read.rows, span.end - span.start)
            }
        };
        Row {
            read_bytes: step.reads.iter().map(read).collect(),
            made_bytes: step.makes.map_or(0, |rows| bytes(rows, width)),
            flop: match step.work {
                Work::Node(id) => width as f64 * graph.flop(graph.node(id)),
                _ => 0.0,
            },
        }
    }
}

fn kind(graph: &Graph, node: &Node) -> String {
    let plain = match &node.op {
        Op::Conv(conv) => {
            let [_, _, kh, kw] = graph.weights[conv.weight].dims[..] else {
                return "conv".to_owned();
            };
            let groups = match conv.groups {
                1 => String::new(),
                n => format!("/{n}"),
            };
            let (cin, cout) = (node.operands[0].channels(), conv.cout);
            return format!("conv {kh}×{kw} {cin}→{cout}{groups}");
        }
        Op::Pool(_) => "pool",
        Op::Resize { .. } => "resize",
        Op::Pad { .. } => "pad",
        Op::DepthToSpace { .. } => "depth to space",
        Op::SpaceToDepth { .. } => "space to depth",
        Op::Pointwise => "pointwise",
        Op::Softmax { .. } => "softmax",
        Op::Lrn { .. } => "lrn",
        Op::Gather(_) => "gather",
        Op::Spread => "spread",
        Op::Dense(_) => "dense",
    };
    plain.to_owned()
}
