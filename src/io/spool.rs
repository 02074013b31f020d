//! Rows that come or go in order, made reachable anywhere by way of an unlinked file of rows.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::output::reserve;
use super::sample::Sample;
use super::staging::{blocks, buffer_len};
use super::{Access, ImageShape, RowSink, RowSource};
use crate::error::{Error, Result};

/// What `statfs` says of file systems that live in memory.
const TMPFS: u64 = 0x0102_1994;
const RAMFS: u64 = 0x8584_58f6;

/// An unlinked file of the rows of an image, `[n][h][w][c]`, packed.
#[derive(Debug)]
pub(super) struct Spool {
    file: File,
    folder: PathBuf,
    shape: ImageShape,
    sample: Sample,
    staging: Vec<u8>,
    elements_left: u64,
    read: u64,
    written: u64,
}

impl Spool {
    /// Takes the space for all rows at once, so that a full disk is an error before work starts.
    pub(super) fn create(folder: &Path, shape: ImageShape, sample: Sample) -> Result<Self> {
        let at = |e| Error::io(folder, e);
        let file = scratch_file(folder)?;
        reserve(&file, shape.elements() * sample.size()).map_err(at)?;
        Ok(Spool {
            file,
            folder: folder.to_path_buf(),
            shape,
            sample,
            staging: Vec::new(),
            elements_left: shape.elements(),
            read: 0,
            written: 0,
        })
    }

    /// Bytes of one pixel.
    fn pixel(&self) -> u64 {
        self.shape.c * self.sample.size()
    }

    fn memory(&self) -> u64 {
        staging_len(&self.shape, self.sample)
    }

    fn offset(&self, item: u64, row: u64, col: u64) -> u64 {
        ((item * self.shape.h + row) * self.shape.w + col) * self.pixel()
    }

    fn read(&mut self, item: u64, y: u64, cols: Range<u64>, rows: &mut [&mut [f32]]) -> Result<()> {
        self.staging.resize(self.memory() as usize, 0);
        let c = self.shape.c;
        for block in blocks(rows.len(), cols.clone(), self.shape.w, self.pixel()) {
            let at = self.offset(item, y + block.rows.start as u64, block.cols.start);
            let bytes = &mut self.staging[..(block.len() * c * self.sample.size()) as usize];
            self.file
                .read_exact_at(bytes, at)
                .map_err(|e| Error::io(&self.folder, e))?;
            self.read += bytes.len() as u64;
            let floats = floats_of(&block.cols, &cols, c);
            let pieces = bytes.chunks_exact(floats.len() * self.sample.size() as usize);
            for (row, piece) in rows[block.rows.clone()].iter_mut().zip(pieces) {
                self.sample.unpack(piece, &mut row[floats.clone()]);
            }
        }
        Ok(())
    }

    /// Keeps rows, as [`RowSink::write`] gives them.
    pub(super) fn write(
        &mut self,
        item: u64,
        y: u64,
        cols: Range<u64>,
        rows: &[&[f32]],
    ) -> Result<()> {
        self.staging.resize(self.memory() as usize, 0);
        let c = self.shape.c;
        for block in blocks(rows.len(), cols.clone(), self.shape.w, self.pixel()) {
            let at = self.offset(item, y + block.rows.start as u64, block.cols.start);
            let bytes = &mut self.staging[..(block.len() * c * self.sample.size()) as usize];
            let floats = floats_of(&block.cols, &cols, c);
            let pieces = bytes.chunks_exact_mut(floats.len() * self.sample.size() as usize);
            for (row, piece) in rows[block.rows.clone()].iter().zip(pieces) {
                self.sample.pack(&row[floats.clone()], piece);
            }
            self.file
                .write_all_at(bytes, at)
                .map_err(|e| Error::io(&self.folder, e))?;
            self.written += bytes.len() as u64;
            self.elements_left = self.elements_left.saturating_sub(block.len() * c);
        }
        Ok(())
    }

    /// Gives all rows to `sink` in order; none if some are missing, which its end then tells.
    pub(super) fn give_to(&mut self, sink: &mut dyn RowSink) -> Result<()> {
        if self.elements_left > 0 {
            return Ok(());
        }
        let shape = self.shape;
        let mut row = vec![0.0; shape.row_len() as usize];
        for item in 0..shape.n {
            for y in 0..shape.h {
                self.read(item, y, 0..shape.w, &mut [&mut row])?;
                sink.write(item, y, 0..shape.w, &[&row])?;
            }
        }
        Ok(())
    }

    pub(super) fn bytes_written(&self) -> u64 {
        self.written
    }

    pub(super) fn bytes_read(&self) -> u64 {
        self.read
    }
}

/// Whether rows can be spooled in `folder`, as far as there is space.
///
/// # Errors
/// [`Error::Io`] naming the folder; [`Error::Usage`] where it is kept in memory.
pub fn check_scratch(folder: impl AsRef<Path>) -> Result<()> {
    scratch_file(folder.as_ref()).map(drop)
}

/// An unlinked file on a disk.
fn scratch_file(folder: &Path) -> Result<File> {
    let at = |e| Error::io(folder, e);
    let file = tempfile::tempfile_in(folder).map_err(at)?;
    let kind = rustix::fs::fstatfs(&file).map_err(|e| at(e.into()))?.f_type as u64;
    if matches!(kind, TMPFS | RAMFS) {
        return Err(Error::Usage(format!(
            "{}: this folder is kept in memory, and rows spooled there would take what the \
             budget spares: name a folder on a disk",
            folder.display()
        )));
    }
    Ok(file)
}

/// Where columns `part` of a row of columns `cols` stand among its floats.
fn floats_of(part: &Range<u64>, cols: &Range<u64>, c: u64) -> Range<usize> {
    ((part.start - cols.start) * c) as usize..((part.end - cols.start) * c) as usize
}

fn staging_len(shape: &ImageShape, sample: Sample) -> u64 {
    buffer_len(shape.h, shape.w, shape.c * sample.size())
}

/// Bytes that spooling rows of `shape` takes beside the source or sink itself: one row and staging.
pub(super) fn spool_memory(shape: &ImageShape, sample: Sample) -> u64 {
    shape.row_len() * 4 + staging_len(shape, sample)
}

/// The rows of a source that gives them in order, read once, to be read anywhere.
#[derive(Debug)]
pub(super) struct SpooledSource {
    spool: Spool,
    bytes_read: u64,
}

impl SpooledSource {
    /// Reads all of `source`, whose values are those of `sample`, into an unlinked file in `folder`.
    pub(super) fn new(
        source: &mut dyn RowSource,
        sample: Sample,
        folder: &Path,
    ) -> Result<SpooledSource> {
        let shape = source.shape();
        let mut spool = Spool::create(folder, shape, sample)?;
        let mut row = vec![0.0; shape.row_len() as usize];
        source.rewind()?;
        for item in 0..shape.n {
            for y in 0..shape.h {
                source.read(item, y, 0..shape.w, &mut [&mut row])?;
                spool.write(item, y, 0..shape.w, &[&row])?;
            }
        }
        Ok(SpooledSource {
            spool,
            bytes_read: source.bytes_read(),
        })
    }
}

impl RowSource for SpooledSource {
    fn shape(&self) -> ImageShape {
        self.spool.shape
    }

    fn access(&self) -> Access {
        Access::Anywhere
    }

    fn read(&mut self, item: u64, y: u64, cols: Range<u64>, rows: &mut [&mut [f32]]) -> Result<()> {
        self.spool.shape.check(item, y, &cols, rows)?;
        self.spool.read(item, y, cols, rows)
    }

    fn rewind(&mut self) -> Result<()> {
        Ok(())
    }

    fn memory(&self) -> u64 {
        self.spool.memory()
    }

    fn bytes_read(&self) -> u64 {
        self.bytes_read + self.spool.read
    }

    fn bytes_written(&self) -> u64 {
        self.spool.written
    }
}
