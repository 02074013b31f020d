//! Rows out of a PNG file.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use png::{BitDepth, DecodeOptions, Decoder, DecodingError, Limits, Reader, Transformations};

use super::chunks::{BUFFER, Chunks};
use crate::error::{Error, Result};
use crate::io::input::InputFile;
use crate::io::sample::Sample;
use crate::io::{Access, Cursor, ImageShape, RowSource};

/// Deflate makes at most 258 bytes out of two bits.
const MOST_INFLATION: u64 = 258 * 4;

/// Samples of a PNG file as they are, 0 to 255 or 65535; fewer bits and palettes are expanded.
pub(in crate::io) struct PngSource {
    file: Arc<InputFile>,
    shape: ImageShape,
    sample: Sample,
    /// Channels of the file: one more than the source's if alpha is dropped.
    bands: u64,
    reader: Reader<Chunks>,
    row: Vec<u8>,
    next: Cursor,
}

impl PngSource {
    pub(in crate::io) fn open(path: &Path, keep_alpha: bool) -> Result<Self> {
        let file = Arc::new(InputFile::open(path)?);
        let reader = decoder(&file)?;
        let info = reader.info();
        if info.interlaced {
            return Err(file.format(
                "interlaced: its rows do not come in order; save it without interlacing first \
                 (`magick in.png -interlace none out.png`)",
            ));
        }
        let (color, depth) = reader.output_color_type();
        let bands = color.samples() as u64;
        let has_alpha = matches!(bands, 2 | 4);
        let (h, w) = (u64::from(info.height), u64::from(info.width));
        let raw_row = info.raw_row_length() as u64;
        if raw_row.saturating_mul(h) > file.len().saturating_mul(MOST_INFLATION) {
            return Err(file.format(format!(
                "{} bytes cannot hold {h} rows of {w} pixels: truncated",
                file.len()
            )));
        }
        Ok(PngSource {
            shape: ImageShape {
                n: 1,
                c: bands - u64::from(has_alpha && !keep_alpha),
                h,
                w,
            },
            sample: if depth == BitDepth::Sixteen {
                Sample::U16
            } else {
                Sample::U8
            },
            bands,
            reader,
            row: Vec::new(),
            next: Cursor::default(),
            file,
        })
    }

    /// The type of its samples.
    pub(in crate::io) fn sample(&self) -> Sample {
        self.sample
    }

    /// Whether the file has an alpha channel that is left out.
    pub(in crate::io) fn drops_alpha(&self) -> bool {
        self.shape.c < self.bands
    }

    fn row_bytes(&self) -> u64 {
        self.shape.w * self.bands * self.sample.size()
    }
}

impl RowSource for PngSource {
    fn shape(&self) -> ImageShape {
        self.shape
    }

    fn access(&self) -> Access {
        Access::InOrder
    }

    fn read(&mut self, item: u64, y: u64, cols: Range<u64>, rows: &mut [&mut [f32]]) -> Result<()> {
        self.shape.check(item, y, &cols, rows)?;
        self.next.advance(&self.shape, item, y, &cols, rows.len())?;
        self.row.resize(self.row_bytes() as usize, 0);
        let pixel = (self.bands * self.sample.size()) as usize;
        let kept = (self.shape.c * self.sample.size()) as usize;
        for row in rows.iter_mut() {
            self.reader
                .read_row(&mut self.row)
                .map_err(|e| error(&self.file, e))?;
            if kept < pixel {
                for x in 1..self.shape.w as usize {
                    self.row.copy_within(x * pixel..x * pixel + kept, x * kept);
                }
            }
            self.sample.unpack(&self.row, row);
        }
        if y + rows.len() as u64 == self.shape.h && !rows.is_empty() {
            // The checksums of the last data chunk and the end of the file are still to come.
            self.reader.finish().map_err(|e| error(&self.file, e))?;
        }
        Ok(())
    }

    fn rewind(&mut self) -> Result<()> {
        self.reader = decoder(&self.file)?;
        self.next = Cursor::default();
        Ok(())
    }

    fn memory(&self) -> u64 {
        memory(self.reader.info().raw_row_length() as u64, self.row_bytes())
    }

    fn bytes_read(&self) -> u64 {
        self.file.bytes_read()
    }
}

/// Bytes that reading holds, for rows of `raw` bytes in the file that come out as `row` bytes.
pub(in crate::io) fn memory(raw: u64, row: u64) -> u64 {
    // The decoder inflates rows into one buffer and moves it up when four rows or 128 KiB are
    // done; behind that stand the previous row, the row at hand and the 32 KiB that inflating
    // refers to. Its tables and the smaller buffers take less than 64 KiB.
    let inflating = (4 * raw).max(128 << 10) + 2 * raw + (48 << 10);
    inflating + (64 << 10) + BUFFER as u64 + row
}

/// A decoder at the first row.
fn decoder(file: &Arc<InputFile>) -> Result<Reader<Chunks>> {
    let mut options = DecodeOptions::default();
    options.set_skip_ancillary_crc_failures(false);
    let mut decoder = Decoder::new_with_options(Chunks::new(file.clone()), options);
    decoder.set_transformations(Transformations::EXPAND);
    let info = decoder.read_header_info().map_err(|e| error(file, e))?;
    // A row as it is given out takes up to 32 times that of a palette of two colours.
    let row = info.raw_row_length().saturating_mul(32);
    decoder.set_limits(Limits {
        bytes: row.saturating_add(64 << 10),
    });
    decoder.read_info().map_err(|e| error(file, e))
}

fn error(file: &InputFile, e: DecodingError) -> Error {
    match e {
        DecodingError::IoError(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => {
            file.format("PNG ends early: truncated")
        }
        DecodingError::IoError(e) if e.kind() == std::io::ErrorKind::InvalidData => {
            file.format(format!("PNG: {e}"))
        }
        DecodingError::IoError(e) => Error::io(file.path(), e),
        DecodingError::LimitsExceeded => file.format("PNG with rows too long to be read"),
        e => file.format(format!("PNG: {e}")),
    }
}
