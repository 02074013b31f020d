//! `stripmill bench`: how long a model takes between arrays in memory.

use std::ffi::OsString;
use std::num::NonZero;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use serde::Serialize;
use stripmill::Result;
use stripmill::exec::{Drain, Engine, Feed};
use stripmill::io::PendingFile;
use stripmill::kernels::Isa;
use stripmill::plan;

use super::arrays::{self, Output};
use super::files::named;
use super::interrupt;
use super::model::ModelArgs;
use super::profile::{self, Profile};
use super::size::{ImageSize, bytes};
use super::stats::Stats;
use super::tiling::TilingArgs;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    model: ModelArgs,
    /// The size of the images: HxW, or CxHxW where the model leaves the channels open
    #[arg(long, value_name = "HxW")]
    size: ImageSize,
    /// Runs that count; one before them does not
    #[arg(long, value_name = "N", default_value = "3")]
    runs: NonZero<u32>,
    #[command(flatten)]
    tiling: TilingArgs,
    /// Print the time, GFLOP/s and bytes of each step, on standard error, for a mean run
    #[arg(long)]
    profile: bool,
    /// Write what the runs took, as JSON: best_seconds, median_seconds, peak_rss_bytes and more
    #[arg(long, value_name = "FILE.json")]
    stats: Option<PathBuf>,
    /// A `.npy` file with exactly what an input takes; with the input's name where the model has
    /// several [default: noise, the same every time]
    #[arg(long = "input", value_name = "[NAME=]FILE", help_heading = "Files")]
    inputs: Vec<OsString>,
    /// Write an output as `.npy`, after the runs; with the output's name where the model has several
    #[arg(long = "output", value_name = "[NAME=]FILE", help_heading = "Files")]
    outputs: Vec<OsString>,
}

/// What `--stats` writes.
#[derive(Debug, Serialize)]
struct Took {
    best_seconds: f64,
    median_seconds: f64,
    /// Of each run that counts, in order: from the first row in to the outputs complete.
    run_seconds: Vec<f64>,
    #[serde(flatten)]
    stats: Stats,
}

pub(super) fn bench(args: &Args) -> Result<ExitCode> {
    let opened = Instant::now();
    interrupt::catch()?;
    let stats = args
        .stats
        .as_ref()
        .map(|path| PendingFile::create(path))
        .transpose()?;
    let isa = Isa::detect()?;
    let model = args.model.open()?;
    let graph = args.size.graph(&model)?;
    drop(model);
    let name = |&id: &_| graph.tensor(id).name.as_str();
    let inputs: Vec<&str> = graph.inputs.iter().map(name).collect();
    let inputs = named("input", &args.inputs, &inputs)?;
    let outputs: Vec<&str> = graph.outputs.iter().map(name).collect();
    let files = named("output", &args.outputs, &outputs)?;
    for path in files.iter().flatten() {
        // whether it can be written is asked before the work, not after
        PendingFile::create(path).map(drop)?;
    }
    let options = args.tiling.options(arrays::bytes(&graph));
    let plan = plan::plan(&graph, &options)?;
    let mut engine = Engine::new(graph, plan, isa)?;
    let open_seconds = opened.elapsed().as_secs_f64();

    let graph = engine.graph();
    let feed = |(&id, file): (_, &Option<PathBuf>)| {
        let value = arrays::input(graph.tensor(id), file.as_deref())?;
        arrays::feed(graph, id, value)
    };
    let mut feeds: Vec<Feed> = (graph.inputs.iter().zip(&inputs))
        .map(feed)
        .collect::<Result<_>>()?;
    let outputs: Vec<Output> = (graph.outputs.iter())
        .map(|&id| Output::new(graph.tensor(id)))
        .collect();
    let mut drains: Vec<Drain> = outputs.iter().map(Output::drain).collect();
    let mut profile = (args.profile).then(|| Profile::new(engine.graph(), engine.plan().plan()));
    let mut run = |profile: Option<&mut Profile>| {
        let go_on = &mut |_, _| interrupt::asked();
        profile::run(&mut engine, &mut feeds, &mut drains, profile, go_on)
    };
    let mut last = run(None)?;
    let mut run_seconds = Vec::new();
    for _ in 0..args.runs.get() {
        last = run(profile.as_mut())?;
        run_seconds.push(last.seconds);
    }
    if let Some(profile) = profile {
        let seconds = run_seconds.iter().sum();
        super::tell(&profile.table(args.runs.get(), seconds));
    }
    let stats_of = Stats::new(engine.plan().plan(), &last, open_seconds, isa);
    let took = Took::new(run_seconds, stats_of);
    for (output, path) in outputs.iter().zip(&files) {
        if let Some(path) = path {
            output.write(path)?;
        }
    }
    if let Some(file) = stats {
        super::write_json(file, &took)?;
    }
    super::print(&took.line())?;
    Ok(ExitCode::SUCCESS)
}

impl Took {
    fn new(run_seconds: Vec<f64>, stats: Stats) -> Self {
        let mut sorted = run_seconds.clone();
        sorted.sort_by(f64::total_cmp);
        let (n, at) = (sorted.len(), |k: usize| sorted[k]);
        Took {
            best_seconds: at(0),
            median_seconds: (at((n - 1) / 2) + at(n / 2)) / 2.0,
            run_seconds,
            stats,
        }
    }

    fn line(&self) -> String {
        let peak = self.stats.peak_rss_bytes;
        let peak = peak.map_or(String::new(), |peak| format!(", peak {}", bytes(peak)));
        format!(
            "best {:.4} s, median {:.4} s of {} runs{peak}\n",
            self.best_seconds,
            self.median_seconds,
            self.run_seconds.len()
        )
    }
}
