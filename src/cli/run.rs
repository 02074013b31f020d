//! `stripmill run`: a model on an image.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use serde::Serialize;
use stripmill::exec::{self, Engine};
use stripmill::import::Model;
use stripmill::io::{PendingFile, check_scratch};
use stripmill::kernels::Isa;
use stripmill::plan::{self, Plan};
use stripmill::{Error, Result};

use super::files::FileArgs;
use super::interrupt;
use super::ports::{self, Given, Taken};
use super::progress::{Progress, Show};
use super::tiling::TilingArgs;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// An ONNX file
    model: PathBuf,
    #[command(flatten)]
    files: FileArgs,
    #[command(flatten)]
    tiling: TilingArgs,
    /// Write what the run took, as JSON
    #[arg(long, value_name = "FILE.json")]
    stats: Option<PathBuf>,
    /// How progress is shown, on standard error
    #[arg(long, value_enum, default_value = "auto")]
    progress: Show,
}

/// What `--stats` writes.
#[derive(Debug, Serialize)]
struct Stats {
    /// From the first row in to the output complete.
    seconds: f64,
    /// Opening, planning and packing.
    open_seconds: f64,
    predicted_seconds: f64,
    peak_rss_bytes: Option<u64>,
    predicted_peak_bytes: u64,
    arena_bytes: u64,
    /// The budget, given or found.
    memory_bytes: Option<u64>,
    /// Turns in which the largest source advances, in the phase that has most.
    strips: u64,
    /// Of the phase that has most.
    panels: usize,
    phases: usize,
    threads: usize,
    isa: &'static str,
    /// From and to storage, rows kept for the time being included.
    bytes_read: u64,
    bytes_written: u64,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let opened = Instant::now();
    interrupt::catch()?;
    let stats = args
        .stats
        .as_ref()
        .map(|path| PendingFile::create(path))
        .transpose()?;
    let isa = Isa::detect()?;
    let model = Model::open(&args.model)?;
    let mut inputs = args.files.open(&model)?;
    let graph = ports::graph(&model, &inputs)?;
    drop(model);
    let mut outputs = args.files.create(&graph, &inputs)?;
    let io = inputs
        .iter()
        .map(Given::memory)
        .chain(outputs.iter().map(Taken::memory))
        .sum();
    let scratch = args.files.scratch(&outputs);
    let mut options = args.tiling.options(io);
    let mut plan = plan::plan(&graph, &options)?;
    if options.panels.is_none() && ports::must_spool(plan.plan(), &inputs, &outputs) {
        // where rows cannot be kept, one panel may still do
        if let Err(e) = check_scratch(&scratch) {
            options.panels = Some(1);
            plan = plan::plan(&graph, &options).map_err(|_| e)?;
        }
    }
    let mut engine = Engine::new(graph, plan, isa)?;
    let open_seconds = opened.elapsed().as_secs_f64();

    let started = Instant::now();
    ports::spool(engine.plan().plan(), &mut inputs, &mut outputs, &scratch)?;
    let (feeds, drains, written) = ports::connect(engine.graph(), inputs, outputs)?;
    let mut progress = Progress::new(args.progress);
    let mut took = engine.run(feeds, drains, &mut |turns, of| {
        progress.turn(turns, of);
        interrupt::asked()
    })?;
    progress.end();
    took.seconds = started.elapsed().as_secs_f64();
    took.bytes_written += written.bytes();
    if let Some(file) = stats {
        write_stats(
            file,
            &Stats::new(engine.plan().plan(), took, open_seconds, isa),
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Stats {
    fn new(plan: &Plan, took: exec::Stats, open_seconds: f64, isa: Isa) -> Self {
        let strips = plan
            .phases
            .iter()
            .map(|p| p.sweep.height.div_ceil(p.strip.max(1)));
        Stats {
            seconds: took.seconds,
            open_seconds,
            predicted_seconds: plan.seconds,
            peak_rss_bytes: exec::peak_resident_memory(),
            predicted_peak_bytes: plan.peak.total(),
            arena_bytes: plan.arena_bytes,
            memory_bytes: plan.options.memory,
            strips: strips.max().unwrap_or(0),
            panels: plan
                .phases
                .iter()
                .map(|p| p.panels.len())
                .max()
                .unwrap_or(0),
            phases: plan.phases.len(),
            threads: plan.options.threads,
            isa: isa.name(),
            bytes_read: took.bytes_read,
            bytes_written: took.bytes_written,
        }
    }
}

fn write_stats(mut file: PendingFile, stats: &Stats) -> Result<()> {
    let text = serde_json::to_string_pretty(stats)
        .map_err(|e| Error::Usage(format!("statistics: {e}")))?;
    writeln!(file, "{text}").map_err(|e| Error::io(file.path(), e))?;
    file.commit()
}
