//! The command line: one file for each command. It sees the library's public API alone.

mod arrays;
mod bench;
mod files;
mod inspect;
mod interrupt;
mod model;
mod plan;
mod ports;
mod profile;
mod progress;
mod run;
mod size;
mod stats;
mod table;
mod tiling;

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use clap::Parser;
use serde::Serialize;
use stripmill::Error;
use stripmill::io::PendingFile;

/// Runs convolutional networks (ONNX) on images bigger than memory: in strips, within a hard memory
/// budget, with the same bits as the untiled run.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
enum Command {
    /// Run a model on an image.
    Run(run::Args),
    /// Say how long a model takes between arrays in memory.
    ///
    /// Inputs are read from arrays in memory and outputs written to such arrays, [n, c, h, w], which
    /// count in --memory and in the peak, as everything that the process holds. The engine is made
    /// once; one run that does not count comes before those that do.
    Bench(bench::Args),
    /// Say what a run would do, without doing it.
    Plan(plan::Args),
    /// Say what a model computes, and what it needs of an image.
    Inspect(inspect::Args),
}

/// Runs the command that the arguments name.
pub(crate) fn main() -> ExitCode {
    let done = match Command::parse() {
        Command::Run(args) => run::run(&args),
        Command::Bench(args) => bench::bench(&args),
        Command::Plan(args) => plan::plan(&args),
        Command::Inspect(args) => inspect::inspect(&args),
    };
    match done {
        Ok(code) => code,
        Err(Error::Stopped) => interrupt::end(),
        Err(e) => {
            warn(&e);
            ExitCode::from(e.exit_code())
        }
    }
}

/// A message on standard error.
fn warn(message: &dyn std::fmt::Display) {
    // there is nobody left to tell that nobody listens
    let _ = writeln!(io::stderr(), "stripmill: {message}");
}

/// Text on standard error, beside the output.
fn tell(text: &str) {
    // there is nobody left to tell that nobody listens
    let _ = io::stderr().write_all(text.as_bytes());
}

/// The whole of a JSON file.
fn write_json(mut file: PendingFile, value: &impl Serialize) -> stripmill::Result<()> {
    let name = file.path().display();
    let text =
        serde_json::to_string_pretty(value).map_err(|e| Error::Usage(format!("{name}: {e}")))?;
    writeln!(file, "{text}").map_err(|e| Error::io(file.path(), e))?;
    file.commit()
}

/// Text on standard output. A reader that has read enough is no error.
fn print(text: &str) -> stripmill::Result<()> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(Error::io("standard output", e)),
        _ => Ok(()),
    }
}
