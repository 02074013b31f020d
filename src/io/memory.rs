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
    /// Where element (`item`, channel 0, `y`, `x`) stands.
    fn place(self, shape: &ImageShape, item: u64, y: u64, x: u64) -> usize {
        let ImageShape { c, h, w, .. } = *shape;
        let at = match self {
            Layout::Nchw => (item * c * h + y) * w + x,
            Layout::Nhwc => ((item * h + y) * w + x) * c,
        };
        at as usize
    }
}

/// Pixels of a row whose channels go to their planes, or come from there, at once: few enough that
/// their lines stay in the first cache from one channel to the next.
const BLOCK: usize = 64;

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
        let (c, plane) = (self.shape.c as usize, self.shape.plane());
        if c == 0 {
            return Ok(());
        }
        for (y, row) in (y..).zip(rows.iter_mut()) {
            let from = &self.data[self.layout.place(&self.shape, item, y, cols.start)..];
            match self.layout {
                Layout::Nhwc => row.copy_from_slice(&from[..row.len()]),
                Layout::Nchw => {
                    for (b, pixels) in row.chunks_mut(BLOCK * c).enumerate() {
                        for k in 0..c {
                            let line = &from[k * plane + b * BLOCK..];
                            for (pixel, v) in pixels.chunks_exact_mut(c).zip(line) {
                                pixel[k] = *v;
                            }
                        }
                    }
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
        let (c, plane) = (self.shape.c as usize, self.shape.plane());
        if c == 0 {
            return Ok(());
        }
        let mut data = self.data.lock().unwrap_or_else(PoisonError::into_inner);
        if data.len() as u64 != self.shape.elements() {
            return Err(super::output::finished());
        }
        for (y, row) in (y..).zip(rows) {
            let to = &mut data[self.layout.place(&self.shape, item, y, cols.start)..];
            match self.layout {
                Layout::Nhwc => to[..row.len()].copy_from_slice(row),
                Layout::Nchw => {
                    for (b, pixels) in row.chunks(BLOCK * c).enumerate() {
                        for k in 0..c {
                            let line = &mut to[k * plane + b * BLOCK..];
                            for (v, pixel) in line.iter_mut().zip(pixels.chunks_exact(c)) {
                                *v = pixel[k];
                            }
                        }
                    }
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
