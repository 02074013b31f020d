//! PNG: rows from top to bottom, one at a time, both ways.

mod chunks;
mod sink;
mod source;

pub(super) use sink::{PngSink, memory as sink_memory};
pub(super) use source::{PngSource, memory as source_memory};

/// The first bytes of every PNG file.
pub(super) const MAGIC: &[u8] = b"\x89PNG\r\n\x1a\n";
