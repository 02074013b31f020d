//! `stripmill plan`: what a run would do.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use serde::Serialize;
use stripmill::Result;
use stripmill::graph::{Graph, TensorId};
use stripmill::io::{FileSink, FileSource, ImageShape, PendingFile};
use stripmill::plan::{self, Class, Home, Plan, Planner};

use super::model::ModelArgs;
use super::size::{ImageSize, bytes};
use super::table::Table;
use super::tiling::TilingArgs;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    model: ModelArgs,
    /// The size of the images: HxW, or CxHxW where the model leaves the channels open
    #[arg(long, value_name = "HxW")]
    size: ImageSize,
    #[command(flatten)]
    tiling: TilingArgs,
    /// Write the plan as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// What `--json` writes.
#[derive(Serialize)]
struct Report<'a> {
    /// The least budget that works.
    least_bytes: u64,
    /// For each phase and tensor, by name, rows of the largest source that it stays behind.
    lags: Vec<Vec<(&'a str, u64)>>,
    #[serde(flatten)]
    plan: &'a Plan,
}

pub(super) fn plan(args: &Args) -> Result<ExitCode> {
    let json = args
        .json
        .as_ref()
        .map(|path| PendingFile::create(path))
        .transpose()?;
    let model = args.model.open()?;
    let graph = args.size.graph(&model)?;
    let options = args.tiling.options(files(&graph));
    let planner = Planner::new(&graph, &options)?;
    let least = planner.least_budget();
    let plan = planner.plan()?;
    let plan = plan.plan();
    if let Some(file) = json {
        let lags = plan.phases.iter().map(|phase| {
            let names = phase
                .sweep
                .rows
                .iter()
                .map(|r| graph.tensor(r.tensor).name.as_str());
            names.zip(plan::lags(phase)).collect()
        });
        let report = Report {
            least_bytes: least,
            lags: lags.collect(),
            plan,
        };
        super::write_json(file, &report)?;
    }
    super::print(&describe(&graph, plan, least))?;
    Ok(ExitCode::SUCCESS)
}

/// Bytes that the files of a run take, if they are 8-bit PNG; arrays take less.
fn files(graph: &Graph) -> u64 {
    let shape = |id: &TensorId| {
        let tensor = graph.tensor(*id);
        let [n, c, h, w] = tensor.dims[..].try_into().ok()?;
        (tensor.bytes() > 0).then_some(ImageShape { n, c, h, w })
    };
    let inputs = graph
        .inputs
        .iter()
        .filter_map(shape)
        .map(FileSource::png_memory);
    let outputs = graph
        .outputs
        .iter()
        .filter_map(shape)
        .map(FileSink::png_memory);
    inputs.chain(outputs).sum()
}

fn describe(graph: &Graph, plan: &Plan, least: u64) -> String {
    let (mut text, peak) = (String::new(), plan.peak.total());
    for (what, ids) in [("input", &graph.inputs), ("output", &graph.outputs)] {
        for tensor in ids.iter().map(|&id| graph.tensor(id)) {
            line(
                &mut text,
                format_args!("{what} `{}` {}", tensor.name, lengths(&tensor.dims)),
            );
        }
    }
    let budget = plan
        .options
        .memory
        .map_or(String::new(), |m| format!(" of {}", bytes(m)));
    line(
        &mut text,
        format_args!(
            "{:.2} s predicted on {} threads; peak {}{budget}, with PNG files; \
             the least that works is {} (--memory {least})",
            plan.seconds,
            plan.options.threads,
            bytes(peak),
            bytes(least),
        ),
    );
    let _ = write!(text, "\npeak\n{}", peaks(plan));
    for (p, phase) in plan.phases.iter().enumerate() {
        let panels = phase.panels.len();
        line(
            &mut text,
            format_args!(
                "\nphase {p}: {} rows in strips of {}, {} turns, panels: {panels}",
                phase.sweep.height, phase.strip, phase.turns
            ),
        );
        let dense = plan.phases[p].sweep.steps.is_empty();
        if !dense {
            let _ = write!(text, "{}", tensors(graph, plan, p));
        }
    }
    let _ = write!(
        text,
        "\narena of {}\n{}",
        bytes(plan.arena_bytes),
        arena(plan)
    );
    text
}

/// What the predicted peak is made of; the arena's part at the moment when most of it is in use.
fn peaks(plan: &Plan) -> Table {
    let mut table = Table::new(1, &["class", "bytes"]);
    let peak = &plan.peak;
    let fixed = [
        ("program", peak.program),
        ("threads", peak.threads),
        ("constants", peak.constants),
        ("io", peak.io),
    ];
    for (name, bytes) in fixed {
        table.row([name.to_owned(), bytes.to_string()]);
    }
    let alive = |at: usize| {
        plan.buffers
            .iter()
            .filter(move |b| (b.birth..=b.death).contains(&at))
    };
    let fullest = (0..plan.script.len())
        .max_by_key(|&at| alive(at).map(|b| b.bytes).sum::<u64>())
        .unwrap_or(0);
    let mut free = plan.arena_bytes;
    for class in [
        Class::Weights,
        Class::Rows,
        Class::Stored,
        Class::Whole,
        Class::Sums,
    ] {
        let bytes: u64 = alive(fullest)
            .filter(|b| b.class == class)
            .map(|b| b.bytes)
            .sum();
        free = free.saturating_sub(bytes);
        table.row([format!("{class:?}").to_lowercase(), bytes.to_string()]);
    }
    table.row(["free".to_owned(), free.to_string()]);
    table.row(["total".to_owned(), peak.total().to_string()]);
    table
}

/// The tensors of a phase: where they are, how far behind, what is kept.
fn tensors(graph: &Graph, plan: &Plan, p: usize) -> Table {
    let phase = &plan.phases[p];
    let mut table = Table::new(
        2,
        &[
            "tensor",
            "home",
            "c",
            "h",
            "w",
            "lag",
            "carry",
            "carry bytes",
        ],
    );
    let lags = plan::lags(phase);
    let mut widest = vec![0; phase.sweep.rows.len()];
    for panel in phase.panels.iter() {
        for (widest, window) in widest.iter_mut().zip(&panel.windows) {
            *widest = (window.end - window.start).max(*widest);
        }
    }
    for (k, rows) in phase.sweep.rows.iter().enumerate() {
        let tensor = graph.tensor(rows.tensor);
        let home = match phase.homes[k] {
            Home::Slots(pool) => format!("pool {pool}"),
            Home::Stored(_) => "stored".to_owned(),
        };
        let kept = phase.carry[k] * widest[k] * tensor.c() * 4;
        let numbers = [
            tensor.c(),
            tensor.h(),
            tensor.w(),
            lags[k],
            phase.carry[k],
            kept,
        ];
        table.row(
            [tensor.name.clone(), home]
                .into_iter()
                .chain(numbers.map(|n| n.to_string())),
        );
    }
    table
}

/// What stands where in the arena.
fn arena(plan: &Plan) -> Table {
    let mut table = Table::new(2, &["buffer", "class", "offset", "bytes", "from", "to"]);
    let mut buffers: Vec<_> = plan.buffers.iter().collect();
    buffers.sort_by_key(|b| (b.offset, b.birth));
    for b in buffers {
        let class = format!("{:?}", b.class).to_lowercase();
        let numbers = [b.offset, b.bytes, b.birth as u64, b.death as u64];
        table.row(
            [b.name.clone(), class]
                .into_iter()
                .chain(numbers.map(|n| n.to_string())),
        );
    }
    table
}

fn lengths(dims: &[u64]) -> String {
    dims.iter()
        .map(u64::to_string)
        .collect::<Vec<_>>()
        .join("×")
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    // writing to a string does not fail
    let _ = writeln!(text, "{line}");
}
