//! Where rows come from and go to: files of several formats, or anything that implements
//! [`RowSource`] or [`RowSink`].

pub(crate) mod mapped;

use std::ops::Range;

use crate::error::Result;

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

/// Gives rows of an image.
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

    /// Bytes of memory it holds while rows are read: counted against the budget.
    fn memory(&self) -> u64;

    /// Bytes read from storage so far.
    fn bytes_read(&self) -> u64 {
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

    /// Bytes of memory it holds while rows are written: counted against the budget.
    fn memory(&self) -> u64;

    /// Bytes written to storage so far.
    fn bytes_written(&self) -> u64 {
        0
    }
}
