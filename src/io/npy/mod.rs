//! Arrays as NumPy saves them: planar, so that a row of an image lies in as many places as it has
//! channels.

mod header;
mod value;

pub(super) use header::MAGIC;
pub use value::{read_value, write_value};

use std::ops::Range;
use std::path::Path;

use super::input::InputFile;
use super::output::{PendingFile, finished, incomplete};
use super::staging::{blocks, buffer_len};
use super::{Access, ImageShape, RowSink, RowSource};
use crate::dense::DType;
use crate::error::Result;
use header::Header;

/// Rows of `[n, c, h, w]`, `[c, h, w]` or `[h, w]`, of any numeric type.
#[derive(Debug)]
pub(super) struct NpySource {
    file: InputFile,
    header: Header,
    shape: ImageShape,
    staging: Vec<u8>,
}

impl NpySource {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let file = InputFile::open(path)?;
        let header = Header::read(&file)?;
        let (n, c, h, w) = match *header.dims.as_slice() {
            [n, c, h, w] => (n, c, h, w),
            [c, h, w] => (1, c, h, w),
            [h, w] => (1, 1, h, w),
            _ => {
                return Err(file.format(format!(
                    "{:?} is not an image: [n, c, h, w], [c, h, w] and [h, w] are",
                    header.dims
                )));
            }
        };
        if [n, c, h, w].contains(&0) {
            return Err(file.format(format!("{:?} has no elements", header.dims)));
        }
        Ok(NpySource {
            file,
            header,
            shape: ImageShape { n, c, h, w },
            staging: Vec::new(),
        })
    }
}

impl RowSource for NpySource {
    fn shape(&self) -> ImageShape {
        self.shape
    }

    fn access(&self) -> Access {
        Access::Anywhere
    }

    fn read(&mut self, item: u64, y: u64, cols: Range<u64>, rows: &mut [&mut [f32]]) -> Result<()> {
        self.shape.check(item, y, &cols, rows)?;
        let element = self.header.element;
        let c = self.shape.c as usize;
        self.staging.resize(self.memory() as usize, 0);
        for block in blocks(rows.len(), cols.clone(), self.shape.w, element.size()) {
            let bytes = &mut self.staging[..(block.len() * element.size()) as usize];
            let first = (block.cols.start - cols.start) as usize * c;
            let width = (block.cols.end - block.cols.start) * element.size();
            for channel in 0..c {
                let row = y + block.rows.start as u64;
                let at = plane_offset(&self.shape, item, channel, row) + block.cols.start;
                self.file
                    .read_exact_at(bytes, self.header.start + at * element.size())?;
                let pieces = bytes.chunks_exact(width as usize);
                for (row, piece) in rows[block.rows.clone()].iter_mut().zip(pieces) {
                    let mut to = row[first + channel..].iter_mut().step_by(c);
                    element.each_f32(piece, |v| {
                        if let Some(to) = to.next() {
                            *to = v;
                        }
                    });
                }
            }
        }
        Ok(())
    }

    fn rewind(&mut self) -> Result<()> {
        Ok(())
    }

    fn memory(&self) -> u64 {
        buffer_len(self.shape.h, self.shape.w, self.header.element.size())
    }

    fn bytes_read(&self) -> u64 {
        self.file.bytes_read()
    }
}

/// Writes f32 `[n, c, h, w]`.
#[derive(Debug)]
pub(super) struct NpySink {
    /// None once finished.
    file: Option<PendingFile>,
    shape: ImageShape,
    start: u64,
    staging: Vec<u8>,
    elements_left: u64,
    written: u64,
}

/// Bytes of an f32.
const F32: u64 = 4;

impl NpySink {
    pub(super) fn create(path: &Path, shape: ImageShape) -> Result<Self> {
        let mut file = PendingFile::create(path)?;
        let header = Header::bytes(DType::F32, &[shape.n, shape.c, shape.h, shape.w]);
        let start = header.len() as u64;
        file.reserve(start + shape.elements() * F32)?;
        file.write_all_at(&header, 0)?;
        Ok(NpySink {
            written: file.bytes_written(),
            file: Some(file),
            shape,
            start,
            staging: Vec::new(),
            elements_left: shape.elements(),
        })
    }
}

impl RowSink for NpySink {
    fn access(&self) -> Access {
        Access::Anywhere
    }

    fn write(&mut self, item: u64, y: u64, cols: Range<u64>, rows: &[&[f32]]) -> Result<()> {
        self.shape.check(item, y, &cols, rows)?;
        let c = self.shape.c as usize;
        self.staging.resize(self.memory() as usize, 0);
        let Some(file) = &mut self.file else {
            return Err(finished());
        };
        for block in blocks(rows.len(), cols.clone(), self.shape.w, F32) {
            let bytes = &mut self.staging[..(block.len() * F32) as usize];
            let first = (block.cols.start - cols.start) as usize * c;
            let width = (block.cols.end - block.cols.start) * F32;
            for channel in 0..c {
                let pieces = bytes.chunks_exact_mut(width as usize);
                for (row, piece) in rows[block.rows.clone()].iter().zip(pieces) {
                    let from = row[first + channel..].iter().step_by(c);
                    for (to, v) in piece.as_chunks_mut().0.iter_mut().zip(from) {
                        *to = v.to_ne_bytes();
                    }
                }
                let row = y + block.rows.start as u64;
                let at = plane_offset(&self.shape, item, channel, row) + block.cols.start;
                file.write_all_at(bytes, self.start + at * F32)?;
            }
            self.elements_left = self
                .elements_left
                .saturating_sub(block.len() * self.shape.c);
        }
        self.written = file.bytes_written();
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        let file = self.file.take().ok_or_else(finished)?;
        if self.elements_left > 0 {
            return Err(incomplete(file.path(), self.elements_left));
        }
        file.commit()
    }

    fn memory(&self) -> u64 {
        buffer_len(self.shape.h, self.shape.w, F32)
    }

    fn bytes_written(&self) -> u64 {
        self.written
    }
}

/// Elements before row `row` of a channel of an image.
fn plane_offset(shape: &ImageShape, item: u64, channel: usize, row: u64) -> u64 {
    ((item * shape.c + channel as u64) * shape.h + row) * shape.w
}
