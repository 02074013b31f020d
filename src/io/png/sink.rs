//! Rows into a PNG file.

use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use png::{BitDepth, ColorType, Compression, Encoder, StreamWriter};

use crate::error::{Error, Result};
use crate::io::output::{PendingFile, finished, incomplete};
use crate::io::sample::Sample;
use crate::io::{Access, Cursor, ImageShape, RowSink};

/// Bytes of compressed data in one chunk of the file.
const CHUNK: usize = 64 << 10;

/// Writes samples, clamped and rounded, to a PNG file.
pub(in crate::io) struct PngSink {
    file: Shared,
    /// None once finished or failed.
    stream: Option<StreamWriter<'static, Shared>>,
    shape: ImageShape,
    sample: Sample,
    row: Vec<u8>,
    next: Cursor,
}

impl PngSink {
    pub(in crate::io) fn create(path: &Path, shape: ImageShape, sample: Sample) -> Result<Self> {
        let usage = |why: String| Error::Usage(format!("{}: {why}", path.display()));
        let color = match shape.c {
            1 => ColorType::Grayscale,
            2 => ColorType::GrayscaleAlpha,
            3 => ColorType::Rgb,
            4 => ColorType::Rgba,
            c => {
                return Err(usage(format!(
                    "a PNG has 1 to 4 channels, not {c}: an .npy file holds any number"
                )));
            }
        };
        if shape.n != 1 {
            return Err(usage(format!(
                "a PNG holds 1 image, not {}: an .npy file holds any number",
                shape.n
            )));
        }
        let side = |len: u64| u32::try_from(len).ok().filter(|len| *len < 1 << 31);
        let (Some(w), Some(h)) = (side(shape.w), side(shape.h)) else {
            return Err(usage(format!(
                "a PNG has less than 2^31 rows and columns, not {} and {}: an .npy file holds any \
                 number",
                shape.h, shape.w
            )));
        };
        let file = Shared::new(PendingFile::create(path)?);
        let mut encoder = Encoder::new(file.clone(), w, h);
        encoder.set_color(color);
        encoder.set_depth(if sample == Sample::U16 {
            BitDepth::Sixteen
        } else {
            BitDepth::Eight
        });
        encoder.set_compression(Compression::Fast);
        let stream = encoder
            .write_header()
            .and_then(|writer| writer.into_stream_writer_with_size(CHUNK));
        Ok(PngSink {
            stream: Some(stream.map_err(|e| file.error(e.into()))?),
            file,
            shape,
            sample,
            row: Vec::new(),
            next: Cursor::default(),
        })
    }

    fn row_bytes(&self) -> u64 {
        self.shape.row_len() * self.sample.size()
    }
}

impl RowSink for PngSink {
    fn access(&self) -> Access {
        Access::InOrder
    }

    fn write(&mut self, item: u64, y: u64, cols: Range<u64>, rows: &[&[f32]]) -> Result<()> {
        self.shape.check(item, y, &cols, rows)?;
        self.next.advance(&self.shape, item, y, &cols, rows.len())?;
        self.row.resize(self.row_bytes() as usize, 0);
        for row in rows {
            let stream = self.stream.as_mut().ok_or_else(finished)?;
            self.sample.pack(row, &mut self.row);
            if let Err(e) = stream.write_all(&self.row) {
                self.stream = None;
                return Err(self.file.error(e));
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        let stream = self.stream.take().ok_or_else(finished)?;
        if self.next.item == 0 {
            let missing = (self.shape.h - self.next.y) * self.shape.row_len();
            drop(stream);
            let mut file = self.file.lock();
            file.pending = None;
            return Err(incomplete(&file.path, missing));
        }
        let done = stream.finish().map_err(io::Error::from);
        // The stream's end is written when it is dropped, where it cannot say that this failed.
        let mut file = self.file.lock();
        let failed = done.err().or(file.failed.take());
        match (failed, file.pending.take()) {
            (None, Some(pending)) => pending.commit(),
            (Some(e), _) => Err(Error::io(&file.path, e)),
            (None, None) => Err(finished()),
        }
    }

    fn memory(&self) -> u64 {
        memory(self.row_bytes())
    }

    fn bytes_written(&self) -> u64 {
        self.file.lock().written
    }
}

/// Bytes that writing rows of `row` bytes holds.
pub(in crate::io) fn memory(row: u64) -> u64 {
    // The row as samples; in the encoder this row, the one before and the filtered one. Its tables
    // are small.
    4 * row + CHUNK as u64 + (16 << 10)
}

/// The file that the encoder writes to, shared with it because the encoder does not give it back.
#[derive(Clone)]
struct Shared(Arc<Mutex<State>>);

struct State {
    pending: Option<PendingFile>,
    path: PathBuf,
    failed: Option<io::Error>,
    written: u64,
}

impl Shared {
    fn new(pending: PendingFile) -> Self {
        Shared(Arc::new(Mutex::new(State {
            path: pending.path().to_path_buf(),
            pending: Some(pending),
            failed: None,
            written: 0,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first error of the file itself, else `e`; nothing is left of the file.
    fn error(&self, e: io::Error) -> Error {
        let mut state = self.lock();
        state.pending = None;
        let e = state.failed.take().unwrap_or(e);
        Error::io(&state.path, e)
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.lock();
        let Some(pending) = &mut state.pending else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        match pending.write(bytes) {
            Ok(n) => {
                state.written += n as u64;
                Ok(n)
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Err(e),
            Err(e) => {
                let told = io::Error::new(e.kind(), e.to_string());
                state.failed = Some(e);
                state.pending = None;
                Err(told)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
