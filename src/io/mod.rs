//! Where rows come from and go to: files of several formats, or anything that implements
//! [`RowSource`] or [`RowSink`].
//!
//! ```text
//!  file ─ npy, png ─▶ spool? ─▶ channels, scale ─▶ Padded? ─▶ rows   (FileSource: the first three)
//!  rows ─▶ Cropped? ─▶ scale ─▶ spool? ─▶ npy, png ─▶ file           (FileSink: the last three)
//! ```
//!
//! [`FileSource::open`] and [`FileSink::create`] know the formats, [`read_value`] and
//! [`write_value`] are for tensors that are not images. Every adapter is itself a source or a sink.
//! Nothing here holds a whole image but [`MemorySource`] and [`MemorySink`], and what is held is
//! told by `memory()`. No output is visible under its name before it is complete.

mod border;
mod convert;
mod file;
mod input;
mod memory;
mod npy;
mod output;
mod png;
mod sample;
mod spool;
mod staging;
#[cfg(test)]
mod tests;

pub use border::{Crop, Cropped, Pad, PadMode, Padded};
pub use convert::{Alpha, Bits, Channels, ReadOptions, WriteOptions};
pub use file::{FileSink, FileSource};
pub use memory::{FnSource, Layout, MemorySink, MemorySource};
pub use npy::{read_value, write_value};
pub use output::PendingFile;
pub use spool::check_scratch;

pub(crate) mod mapped;

use std::ops::Range;
use std::path::Path;

use crate::error::{Error, Result};

/// How rows can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Any row at any time, any columns of it.
    Anywhere,
    /// Whole rows from top to bottom; [`RowSource::rewind`] starts again at the first.
    InOrder,
}

/// `[n, c, h, w]` of an image or a stack of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageShape {
    /// Images.
    pub n: u64,
    /// Channels.
    pub c: u64,
    /// Rows.
    pub h: u64,
    /// Columns.
    pub w: u64,
}

/// Gives rows of an image. After an error only [`RowSource::rewind`] is of use.
pub trait RowSource: Send {
    /// Its lengths.
    fn shape(&self) -> ImageShape;

    /// How its rows can be reached.
    fn access(&self) -> Access;

    /// Rows `y..y + rows.len()` of image `item`, columns `cols`, each as `[w][c]` into `rows`. With
    /// [`Access::InOrder`], `cols` is the full width and calls go from top to bottom without gaps.
    ///
    /// # Errors
    /// What the file or device said, naming it.
    fn read(&mut self, item: u64, y: u64, cols: Range<u64>, rows: &mut [&mut [f32]]) -> Result<()>;

    /// Starts again at the first row of the first image.
    ///
    /// # Errors
    /// Where the source cannot.
    fn rewind(&mut self) -> Result<()>;

    /// Makes every row reachable at any time, where rows come in order, by way of an unlinked file in
    /// `folder`; several panels need that.
    ///
    /// # Errors
    /// Where the source cannot; what its file or the folder said.
    fn spool(&mut self, folder: &Path) -> Result<()> {
        let _ = folder;
        cannot_spool(self.access())
    }

    /// Bytes of memory it holds while rows are read, or while it spools and then: counted against the
    /// budget.
    fn memory(&self) -> u64;

    /// Bytes read from storage so far.
    fn bytes_read(&self) -> u64 {
        0
    }

    /// Bytes written to storage so far, which only a source that spools does.
    fn bytes_written(&self) -> u64 {
        0
    }
}

/// Takes rows of an image.
pub trait RowSink: Send {
    /// How its rows can be reached.
    fn access(&self) -> Access;

    /// Takes rows `y..y + rows.len()` of image `item`, columns `cols`, each `[w][c]`. With
    /// [`Access::InOrder`], `cols` is the full width and calls go from top to bottom without gaps.
    /// Every element is given exactly once.
    ///
    /// # Errors
    /// What the file or device said, naming it.
    fn write(&mut self, item: u64, y: u64, cols: Range<u64>, rows: &[&[f32]]) -> Result<()>;

    /// Called once after the last row: the output appears under its name.
    ///
    /// # Errors
    /// What the file or device said, naming it. Nothing is left behind then.
    fn finish(&mut self) -> Result<()>;

    /// Takes rows at any time from now on, where they go in order, by way of an unlinked file in
    /// `folder`; several panels need that. Called before the first row.
    ///
    /// # Errors
    /// Where the sink cannot; what the folder said.
    fn spool(&mut self, folder: &Path) -> Result<()> {
        let _ = folder;
        cannot_spool(self.access())
    }

    /// Bytes of memory it holds while rows are written, spooled or not: counted against the budget.
    fn memory(&self) -> u64;

    /// Bytes written to storage so far.
    fn bytes_written(&self) -> u64 {
        0
    }

    /// Bytes read from storage so far, which only a sink that spools does.
    fn bytes_read(&self) -> u64 {
        0
    }
}

fn cannot_spool(access: Access) -> Result<()> {
    match access {
        Access::Anywhere => Ok(()),
        Access::InOrder => Err(Error::Usage(
            "rows go from top to bottom only: a plan of one panel works".to_string(),
        )),
    }
}

impl<S: RowSource + ?Sized> RowSource for Box<S> {
    fn shape(&self) -> ImageShape {
        (**self).shape()
    }

    fn access(&self) -> Access {
        (**self).access()
    }

    fn read(&mut self, item: u64, y: u64, cols: Range<u64>, rows: &mut [&mut [f32]]) -> Result<()> {
        (**self).read(item, y, cols, rows)
    }

    fn rewind(&mut self) -> Result<()> {
        (**self).rewind()
    }

    fn spool(&mut self, folder: &Path) -> Result<()> {
        (**self).spool(folder)
    }

    fn memory(&self) -> u64 {
        (**self).memory()
    }

    fn bytes_read(&self) -> u64 {
        (**self).bytes_read()
    }

    fn bytes_written(&self) -> u64 {
        (**self).bytes_written()
    }
}

impl<S: RowSink + ?Sized> RowSink for Box<S> {
    fn access(&self) -> Access {
        (**self).access()
    }

    fn write(&mut self, item: u64, y: u64, cols: Range<u64>, rows: &[&[f32]]) -> Result<()> {
        (**self).write(item, y, cols, rows)
    }

    fn finish(&mut self) -> Result<()> {
        (**self).finish()
    }

    fn spool(&mut self, folder: &Path) -> Result<()> {
        (**self).spool(folder)
    }

    fn memory(&self) -> u64 {
        (**self).memory()
    }

    fn bytes_written(&self) -> u64 {
        (**self).bytes_written()
    }

    fn bytes_read(&self) -> u64 {
        (**self).bytes_read()
    }
}

/// How many elements lengths make, unless the number overflows.
fn elements(dims: &[u64]) -> Option<u64> {
    dims.iter().try_fold(1u64, |n, &d| n.checked_mul(d))
}

impl ImageShape {
    /// Floats of one row.
    fn row_len(&self) -> u64 {
        self.w * self.c
    }

    /// Elements of one channel of one image.
    fn plane(&self) -> usize {
        (self.h * self.w) as usize
    }

    /// Elements of all images. Shapes are checked for overflow where they come from a file.
    fn elements(&self) -> u64 {
        self.n * self.c * self.h * self.w
    }

    /// Refuses rows or columns that are not there and rows whose length is not theirs.
    fn check<R: AsRef<[f32]>>(
        &self,
        item: u64,
        y: u64,
        cols: &Range<u64>,
        rows: &[R],
    ) -> Result<()> {
        let inside = item < self.n
            && y <= self.h
            && rows.len() as u64 <= self.h - y
            && cols.start <= cols.end
            && cols.end <= self.w;
        if !inside {
            return Err(Error::Usage(format!(
                "{} rows from row {y} of image {item}, columns {}..{}, are not within {} images of \
                 {} rows and {} columns",
                rows.len(),
                cols.start,
                cols.end,
                self.n,
                self.h,
                self.w
            )));
        }
        let len = (cols.end - cols.start) * self.c;
        match rows.iter().find(|row| row.as_ref().len() as u64 != len) {
            Some(row) => Err(Error::Usage(format!(
                "a row of {} elements was given for {} columns of {} channels",
                row.as_ref().len(),
                cols.end - cols.start,
                self.c
            ))),
            None => Ok(()),
        }
    }
}

/// The next row of what goes from top to bottom.
#[derive(Debug, Default)]
struct Cursor {
    item: u64,
    y: u64,
}

impl Cursor {
    /// Accepts `rows` rows from `y` of `item` if they are next, whole rows of `shape`.
    fn advance(
        &mut self,
        shape: &ImageShape,
        item: u64,
        y: u64,
        cols: &Range<u64>,
        rows: usize,
    ) -> Result<()> {
        if (item, y) != (self.item, self.y) || *cols != (0..shape.w) {
            return Err(Error::Usage(format!(
                "whole rows in order: row {} of image {} is next, not columns {}..{} of row {y} of \
                 image {item}",
                self.y, self.item, cols.start, cols.end
            )));
        }
        self.y += rows as u64;
        if self.y == shape.h {
            *self = Cursor {
                item: item + 1,
                y: 0,
            };
        }
        Ok(())
    }
}
