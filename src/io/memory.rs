//! Rows from memory and into it, and rows from a function.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Access, ImageShape, RowSink, RowSource, elements};
use crate::error::{Error, Result};

/// The order of elements in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// `[n][c][h][w]`: planar, as ONNX has it.
    Nchw,
    /// `[n][h][w][c]`: interleaved, as image files have it.
    Nhwc,
}

impl Layout {
    /// Where element (`item`, channel 0, `y`, `x`) stands, and how far apart columns and channels
    /// are.
    fn place(self, shape: &ImageShape, item: u64, y: u64, x: u64) -> (usize, usize, usize) {
        let ImageShape { c, h, w, .. } = *shape;
        let (at, col, channel) = match self {
            Layout::Nchw => ((item * c * h + y) * w + x, 1, h * w),
            Layout::Nhwc => (((item * h + y) * w + x) * c, c, 1),
        };
        (at as usize, col as usize, channel as usize)
    }
}

/// Rows of a slice or a vector.
#[derive(Debug, Clone)]
pub struct MemorySource<'a> {
    data: Cow<'a, [f32]>,
    shape: ImageShape,
    layout: Layout,
}

impl<'a> MemorySource<'a> {
    /// Images of `shape` in `data`.
    ///
    /// # Errors
    /// [`Error::Usage`] where `data` is not as long as `shape` says.
    pub fn new(data: impl Into<Cow<'a, [f32]>>, shape: ImageShape, layout: Layout) -> Result<Self> {
        let data = data.into();
        let ImageShape { n, c, h, w } = shape;
        if elements(&[n, c, h, w]) != Some(data.len() as u64) {
            return Err(Error::Usage(format!(
                "{} elements are not {n} images {c}×{h}×{w}",
                data.len()
            )));
        }
        Ok(MemorySource {
            data,
            shape,
            layout,
        })
    }
}

impl RowSource for MemorySource<'_> {
    fn shape(&self) -> ImageShape {
        self.shape
    }

    fn access(&self) -> Access {
        Access::Anywhere
    }

    fn read(&mut self, item: u64, y: u64, cols: Range<u64>, rows: &mut [&mut [f32]]) -> Result<()> {
        self.shape.check(item, y, &cols, rows)?;
        let c = self.shape.c.max(1) as usize;
        for (y, row) in (y..).zip(rows.iter_mut()) {
            let (at, col, channel) = self.layout.place(&self.shape, item, y, cols.start);
            for (x, pixel) in row.chunks_exact_mut(c).enumerate() {
                for (k, v) in pixel.iter_mut().enumerate() {
                    *v = self.data[at + x * col + k * channel];
                }
            }
        }
        Ok(())
    }

    fn rewind(&mut self) -> Result<()> {
        Ok(())
    }

    /// None: what it reads is the caller's and was there before.
    fn memory(&self) -> u64 {
        0
    }
}

/// Takes rows into a vector.
#[derive(Debug, Clone)]
pub struct MemorySink {
    data: Arc<Mutex<Vec<f32>>>,
    shape: ImageShape,
    layout: Layout,
}

impl MemorySink {
    /// For images of `shape`; everything is zero at first.
    pub fn new(shape: ImageShape, layout: Layout) -> Self {
        MemorySink {
            data: Arc::new(Mutex::new(vec![0.0; shape.elements() as usize])),
            shape,
            layout,
        }
    }

    /// The vector, shared with the sink.
    pub fn data(&self) -> Arc<Mutex<Vec<f32>>> {
        self.data.clone()
    }

    /// The elements, taken out of the sink.
    pub fn take(&self) -> Vec<f32> {
        std::mem::take(&mut self.data.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl RowSink for MemorySink {
    fn access(&self) -> Access {
        Access::Anywhere
    }

    fn write(&mut self, item: u64, y: u64, cols: Range<u64>, rows: &[&[f32]]) -> Result<()> {
        self.shape.check(item, y, &cols, rows)?;
        let c = self.shape.c.max(1) as usize;
        let mut data = self.data.lock().unwrap_or_else(PoisonError::into_inner);
        if data.len() as u64 != self.shape.elements() {
            return Err(super::output::finished());
        }
        for (y, row) in (y..).zip(rows) {
            let (at, col, channel) = self.layout.place(&self.shape, item, y, cols.start);
            for (x, pixel) in row.chunks_exact(c).enumerate() {
                for (k, v) in pixel.iter().enumerate() {
                    data[at + x * col + k * channel] = *v;
                }
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }

    fn memory(&self) -> u64 {
        self.shape.elements() * 4
    }
}

/// Rows that a function gives: any row at any time.
pub struct FnSource<F> {
    shape: ImageShape,
    rows: F,
}

impl<F> FnSource<F>
where
    F: FnMut(u64, u64, Range<u64>, &mut [&mut [f32]]) -> Result<()> + Send,
{
    /// `rows(item, y, cols, rows)` fills what [`RowSource::read`] asks for.
    pub fn new(shape: ImageShape, rows: F) -> Self {
        FnSource { shape, rows }
    }
}

impl<F> RowSource for FnSource<F>
where
    F: FnMut(u64, u64, Range<u64>, &mut [&mut [f32]]) -> Result<()> + Send,
{
    fn shape(&self) -> ImageShape {
        self.shape
    }

    fn access(&self) -> Access {
        Access::Anywhere
    }

    fn read(&mut self, item: u64, y: u64, cols: Range<u64>, rows: &mut [&mut [f32]]) -> Result<()> {
        self.shape.check(item, y, &cols, rows)?;
        (self.rows)(item, y, cols, rows)
    }

    fn rewind(&mut self) -> Result<()> {
        Ok(())
    }

    /// None: what the function holds is the caller's.
    fn memory(&self) -> u64 {
        0
    }
}
