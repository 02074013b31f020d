//! What the planner is asked for: memory, threads, strips and panels.

use std::num::NonZero;
use std::thread;

use stripmill::exec::available_memory;
use stripmill::plan::Options;

use super::size::Bytes;

#[derive(Debug, clap::Args)]
pub(super) struct TilingArgs {
    /// The most resident memory that the process may take: bytes, or with K, M or G (powers of 1024)
    /// [default: 7/8 of what the machine and its cgroup have available]
    #[arg(long, value_name = "SIZE", help_heading = "Tiling")]
    memory: Option<Bytes>,
    /// Threads [default: as many as the machine runs at once]
    #[arg(long, value_name = "N", help_heading = "Tiling")]
    threads: Option<NonZero<u16>>,
    /// Rows that the largest source advances in a turn [default: the planner chooses]
    #[arg(long, value_name = "ROWS", help_heading = "Tiling")]
    strip: Option<NonZero<u64>>,
    /// Ranges of columns that are swept one after the other [default: the planner chooses]
    #[arg(long, value_name = "N", help_heading = "Tiling")]
    panels: Option<NonZero<u64>>,
}

impl TilingArgs {
    /// For sources and sinks that hold `io_bytes`.
    pub(super) fn options(&self, io_bytes: u64) -> Options {
        let threads = self.threads.map_or_else(
            || thread::available_parallelism().map_or(1, NonZero::get),
            |n| usize::from(n.get()),
        );
        Options {
            memory: self.memory.map(|bytes| bytes.0).or_else(available_memory),
            threads,
            strip: self.strip.map(NonZero::get),
            panels: self.panels.map(NonZero::get),
            io_bytes,
        }
    }
}
