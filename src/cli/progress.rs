//! How far a run is, for people and for programs.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressStyle};

/// How progress is shown, on standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Show {
    /// A bar on a terminal, else nothing.
    Auto,
    /// A bar with the time that is left.
    Bar,
    /// A line of JSON ten times a second: turns, of how many, seconds.
    Json,
    /// Nothing.
    None,
}

/// Time between two lines of JSON.
const PAUSE: Duration = Duration::from_millis(100);

/// The progress of one run.
pub(super) enum Progress {
    Bar(ProgressBar),
    Json {
        start: Instant,
        last: Option<Instant>,
    },
    None,
}

impl Progress {
    pub(super) fn new(show: Show) -> Self {
        match show {
            Show::Auto if stderr().is_terminal() => Progress::new(Show::Bar),
            Show::Auto | Show::None => Progress::None,
            Show::Bar => {
                let style = ProgressStyle::with_template(
                    "{wide_bar} {percent:>3} %  {elapsed}  {eta} left",
                );
                let bar = ProgressBar::new(0);
                Progress::Bar(style.map_or(bar.clone(), |style| bar.with_style(style)))
            }
            Show::Json => Progress::Json {
                start: Instant::now(),
                last: None,
            },
        }
    }

    /// `turns` of `of` are done.
    pub(super) fn turn(&mut self, turns: u64, of: u64) {
        match self {
            Progress::Bar(bar) => {
                bar.set_length(of);
                bar.set_position(turns);
            }
            Progress::Json { start, last } => {
                if turns < of && last.is_some_and(|last| last.elapsed() < PAUSE) {
                    return;
                }
                *last = Some(Instant::now());
                let seconds = start.elapsed().as_secs_f64();
                // a run does not fail because nobody watches it
                let _ = writeln!(
                    stderr(),
                    "{{\"turns\":{turns},\"of\":{of},\"seconds\":{seconds:.3}}}"
                );
            }
            Progress::None => {}
        }
    }

    /// The run is over.
    pub(super) fn end(&self) {
        if let Progress::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}
