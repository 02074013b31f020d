//! The command line: one file for each command. It sees the library's public API alone.

mod files;
mod inspect;
mod interrupt;
mod plan;
mod ports;
mod progress;
mod run;
mod size;
mod table;
mod tiling;

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use clap::Parser;
use stripmill::Error;

/// Runs convolutional networks (ONNX) on images bigger than memory: in strips, within a hard memory
/// budget, with the same bits as the untiled run.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
enum Command {
    /// Run a model on an image.
    Run(run::Args),
    /// Say what a run would do, without doing it.
    Plan(plan::Args),
    /// Say what a model computes, and what it needs of an image.
    Inspect(inspect::Args),
}

/// Runs the command that the arguments name.
pub(crate) fn main() -> ExitCode {
    let done = match Command::parse() {
        Command::Run(args) => run::run(&args),
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

/// Text on standard output. A reader that has read enough is no error.
fn print(text: &str) -> stripmill::Result<()> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(Error::io("standard output", e)),
        _ => Ok(()),
    }
}
