//! `stripmill run`: a model on an image.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use serde::Serialize;
use stripmill::Result;
use stripmill::exec::Engine;
use stripmill::io::{PendingFile, check_scratch};
use stripmill::kernels::Isa;
use stripmill::plan;

use super::files::FileArgs;
use super::interrupt;
use super::model::ModelArgs;
use super::ports::{self, Given, Taken};
use super::profile::{self, Profile};
use super::progress::{Progress, Show};
use super::stats::Stats;
use super::tiling::TilingArgs;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    files: FileArgs,
    #[command(flatten)]
    tiling: TilingArgs,
    /// Write what the run took, as JSON
    #[arg(long, value_name = "FILE.json")]
    stats: Option<PathBuf>,
    /// Print the time, GFLOP/s and bytes of each step, on standard error
    #[arg(long)]
    profile: bool,
    /// How progress is shown, on standard error
    #[arg(long, value_enum, default_value = "auto")]
    progress: Show,
}

/// What `--stats` writes.
#[derive(Debug, Serialize)]
struct Took {
    /// From the first row in to the output complete.
    seconds: f64,
    #[serde(flatten)]
    stats: Stats,
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
    let model = args.model.open()?;
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
    let (mut feeds, mut drains, written) = ports::connect(engine.graph(), inputs, outputs)?;
    let mut progress = Progress::new(args.progress);
    let mut profile = (args.profile).then(|| Profile::new(engine.graph(), engine.plan().plan()));
    let mut took = profile::run(
        &mut engine,
        &mut feeds,
        &mut drains,
        profile.as_mut(),
        &mut |turns, of| {
            progress.turn(turns, of);
            interrupt::asked()
        },
    )?;
    progress.end();
    let seconds = started.elapsed().as_secs_f64();
    took.bytes_written += written.bytes();
    if let Some(profile) = profile {
        super::tell(&profile.table(1, seconds));
    }
    if let Some(file) = stats {
        let stats = Stats::new(engine.plan().plan(), &took, open_seconds, isa);
        super::write_json(file, &Took { seconds, stats })?;
    }
    Ok(ExitCode::SUCCESS)
}
