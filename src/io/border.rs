//! A border around an image, made as rows stream, and its removal from what becomes of it.

use std::ops::Range;
use std::path::Path;
use std::str::FromStr;

use super::{Access, ImageShape, RowSink, RowSource};
use crate::error::{Error, Result};

/// What stands in a border.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PadMode {
    /// The image mirrored at its outermost pixels, which are not repeated.
    Reflect,
    /// The nearest pixel.
    Edge,
    /// Zeros.
    Zero,
}

/// The border around an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pad {
    /// What stands in it.
    pub mode: PadMode,
    /// Rows above.
    pub top: u64,
    /// Columns to the left.
    pub left: u64,
    /// Rows below.
    pub bottom: u64,
    /// Columns to the right.
    pub right: u64,
}

/// A part of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crop {
    /// Its first row.
    pub top: u64,
    /// Its first column.
    pub left: u64,
    /// Rows.
    pub height: u64,
    /// Columns.
    pub width: u64,
}

impl FromStr for PadMode {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let words = [
            ("reflect", PadMode::Reflect),
            ("edge", PadMode::Edge),
            ("zero", PadMode::Zero),
        ];
        super::convert::word(text, "pad mode", &words)
    }
}

impl Pad {
    /// `border` pixels on all four sides.
    pub fn around(mode: PadMode, border: u64) -> Self {
        Pad {
            mode,
            top: border,
            left: border,
            bottom: border,
            right: border,
        }
    }

    /// More at the bottom and on the right, so that the padded `shape` has a multiple of `rows` rows
    /// and of `cols` columns.
    #[must_use]
    pub fn to_multiple(self, shape: ImageShape, rows: u64, cols: u64) -> Self {
        let missing = |len: u64, multiple: u64| (multiple - len % multiple) % multiple;
        let padded = self.padded(shape);
        Pad {
            bottom: self.bottom.saturating_add(missing(padded.h, rows.max(1))),
            right: self.right.saturating_add(missing(padded.w, cols.max(1))),
            ..self
        }
    }

    /// `shape` with the border.
    pub fn padded(&self, shape: ImageShape) -> ImageShape {
        let sum = |a: u64, b: u64, c: u64| a.saturating_add(b).saturating_add(c);
        ImageShape {
            h: sum(self.top, shape.h, self.bottom),
            w: sum(self.left, shape.w, self.right),
            ..shape
        }
    }

    /// The part of `output`, made of the padded `input`, that shows `input` itself. `rows` and `cols`
    /// are output pixels for each input pixel, as numerator and denominator. What the network lost or
    /// added at the ends is taken to be the same at both. Where the border ends within an output
    /// pixel, that pixel belongs to the image.
    pub fn crop(
        &self,
        input: ImageShape,
        output: ImageShape,
        rows: (u64, u64),
        cols: (u64, u64),
    ) -> Crop {
        let padded = self.padded(input);
        let (top, height) = part(self.top, input.h, padded.h, output.h, rows);
        let (left, width) = part(self.left, input.w, padded.w, output.w, cols);
        Crop {
            top,
            left,
            height,
            width,
        }
    }
}

/// Where the outputs of inputs `before..before + len` of `padded` start, and how many they are.
fn part(before: u64, len: u64, padded: u64, output: u64, (num, den): (u64, u64)) -> (u64, u64) {
    let [before, len, padded, output, num, den] =
        [before, len, padded, output, num.max(1), den.max(1)].map(i128::from);
    // in halves of an output pixel's `den`-th: the output's middle is the padded input's middle
    let lost = padded * num - output * den;
    let start = (2 * before * num - lost)
        .div_euclid(2 * den)
        .clamp(0, output);
    let end = 2 * (before + len) * num - lost;
    let end = (end + 2 * den - 1).div_euclid(2 * den).clamp(start, output);
    (start as u64, (end - start) as u64)
}

/// One axis of a padded image.
#[derive(Debug, Clone, Copy)]
struct Axis {
    mode: PadMode,
    before: u64,
    len: u64,
}

impl Axis {
    /// Where what stands at `i` comes from, if not from nowhere.
    fn source(&self, i: u64) -> Option<u64> {
        let Axis { mode, before, len } = *self;
        if (before..before + len).contains(&i) {
            return Some(i - before);
        }
        match mode {
            PadMode::Zero => None,
            PadMode::Edge if i < before => Some(0),
            PadMode::Edge => Some(len - 1),
            PadMode::Reflect if i < before => Some(before - i),
            PadMode::Reflect => Some(2 * (len - 1) + before - i),
        }
    }

    /// The border before, the image, and the border after, within `range`.
    fn parts(&self, range: &Range<u64>) -> [Range<u64>; 3] {
        let (first, end) = (self.before, self.before + self.len);
        [(0, first), (first, end), (end, range.end.max(end))]
            .map(|(a, b)| range.start.max(a)..range.end.min(b))
    }

    /// All that `range` comes from, in one piece; empty if from nowhere.
    fn sources(&self, range: &Range<u64>) -> Range<u64> {
        // In each part the source rises or falls, so that its ends are the extremes.
        let parts = self
            .parts(range)
            .into_iter()
            .filter(|part| !part.is_empty());
        parts
            .flat_map(|part| [part.start, part.end - 1])
            .filter_map(|i| self.source(i))
            .map(|s| s..s + 1)
            .reduce(|a, b| a.start.min(b.start)..a.end.max(b.end))
            .unwrap_or(0..0)
    }
}

/// A source with a border. It holds as many rows as are mirrored.
pub struct Padded<S> {
    inner: S,
    pad: Pad,
    /// Rows of the inner source: row y in place `y % places`.
    held: Vec<f32>,
    places: u64,
    /// Which row of which image comes next, where rows come in order.
    next: (u64, u64),
    /// Which row of which image is held, and which columns of it, where they come from anywhere.
    only: Option<(u64, u64, Range<u64>)>,
}

impl<S: RowSource> Padded<S> {
    /// `inner` with `pad` around it.
    ///
    /// # Errors
    /// [`Error::Usage`] where there are not enough pixels to mirror.
    pub fn new(inner: S, pad: Pad) -> Result<Self> {
        let shape = inner.shape();
        let longest = [
            ("rows", pad.top.max(pad.bottom), shape.h),
            ("columns", pad.left.max(pad.right), shape.w),
        ];
        for (what, border, len) in longest {
            if pad.mode == PadMode::Reflect && border >= len {
                return Err(Error::Usage(format!(
                    "{border} {what} of reflection around {len}: at most {} can be mirrored; edge \
                     and zero have no limit",
                    len - 1
                )));
            }
            if border > 1 << 32 {
                return Err(Error::Usage(format!(
                    "{border} {what} of border: at most 2^32 can be added"
                )));
            }
        }
        let places = match (inner.access(), pad.mode) {
            (Access::InOrder, PadMode::Reflect) => pad.top.max(pad.bottom) + 1,
            _ => 1,
        };
        Ok(Padded {
            inner,
            pad,
            held: Vec::new(),
            places,
            next: (0, 0),
            only: None,
        })
    }

    fn rows(&self) -> Axis {
        Axis {
            mode: self.pad.mode,
            before: self.pad.top,
            len: self.inner.shape().h,
        }
    }

    fn columns(&self) -> Axis {
        Axis {
            mode: self.pad.mode,
            before: self.pad.left,
            len: self.inner.shape().w,
        }
    }

    /// Columns `cols` of row `y` of the inner source.
    fn hold(&mut self, item: u64, y: u64, cols: &Range<u64>) -> Result<&[f32]> {
        let shape = self.inner.shape();
        let row_len = shape.row_len() as usize;
        self.held.resize(self.places as usize * row_len, 0.0);
        let len = ((cols.end - cols.start) * shape.c) as usize;
        let place = |y: u64| {
            let start = (y % self.places) as usize * row_len;
            start..start + len
        };
        match self.inner.access() {
            Access::Anywhere => {
                let wanted = (item, y, cols.clone());
                if self.only.as_ref() != Some(&wanted) {
                    self.only = None;
                    let row = &mut self.held[place(y)];
                    self.inner.read(item, y, cols.clone(), &mut [row])?;
                    self.only = Some(wanted);
                }
            }
            Access::InOrder => {
                if self.next.0 != item {
                    self.next = (item, 0);
                }
                while self.next.1 <= y {
                    let row = &mut self.held[place(self.next.1)];
                    self.inner
                        .read(item, self.next.1, cols.clone(), &mut [row])?;
                    self.next.1 += 1;
                }
                if y + self.places < self.next.1 {
                    return Err(Error::Usage(format!(
                        "row {y} of image {item} has passed: rows are read in order"
                    )));
                }
            }
        }
        Ok(&self.held[place(y)])
    }
}

impl<S: RowSource> RowSource for Padded<S> {
    fn shape(&self) -> ImageShape {
        self.pad.padded(self.inner.shape())
    }

    fn access(&self) -> Access {
        self.inner.access()
    }

    fn read(&mut self, item: u64, y: u64, cols: Range<u64>, rows: &mut [&mut [f32]]) -> Result<()> {
        self.shape().check(item, y, &cols, rows)?;
        let c = self.inner.shape().c as usize;
        let (down, across) = (self.rows(), self.columns());
        let from = match self.inner.access() {
            Access::Anywhere => across.sources(&cols),
            Access::InOrder => 0..across.len,
        };
        for (y, row) in (y..).zip(rows.iter_mut()) {
            let source = match down.source(y) {
                Some(source) if !from.is_empty() => source,
                _ => {
                    row.fill(0.0);
                    continue;
                }
            };
            let held = self.hold(item, source, &from)?;
            let [before, image, after] = across.parts(&cols);
            for x in before.chain(after) {
                let to = (x - cols.start) as usize * c;
                let to = &mut row[to..to + c];
                match across.source(x) {
                    Some(source) => {
                        let at = (source - from.start) as usize * c;
                        to.copy_from_slice(&held[at..at + c]);
                    }
                    None => to.fill(0.0),
                }
            }
            if !image.is_empty() {
                let len = (image.end - image.start) as usize * c;
                let to = (image.start - cols.start) as usize * c;
                let at = (image.start - across.before - from.start) as usize * c;
                row[to..to + len].copy_from_slice(&held[at..at + len]);
            }
        }
        Ok(())
    }

    fn rewind(&mut self) -> Result<()> {
        self.next = (0, 0);
        self.inner.rewind()
    }

    fn spool(&mut self, folder: &Path) -> Result<()> {
        self.inner.spool(folder)?;
        self.next = (0, 0);
        self.only = None;
        Ok(())
    }

    fn memory(&self) -> u64 {
        self.inner.memory() + self.places * self.inner.shape().row_len() * 4
    }

    fn bytes_read(&self) -> u64 {
        self.inner.bytes_read()
    }

    fn bytes_written(&self) -> u64 {
        self.inner.bytes_written()
    }
}

/// A sink that takes a whole image and passes on a part of it.
pub struct Cropped<S> {
    inner: S,
    shape: ImageShape,
    crop: Crop,
}

impl<S: RowSink> Cropped<S> {
    /// Of images of `shape`, `inner` gets what lies within `crop`.
    ///
    /// # Errors
    /// [`Error::Usage`] where `crop` is not within the image.
    pub fn new(inner: S, shape: ImageShape, crop: Crop) -> Result<Self> {
        let within = |start: u64, len: u64, of: u64| start <= of && len <= of - start;
        if !within(crop.top, crop.height, shape.h) || !within(crop.left, crop.width, shape.w) {
            return Err(Error::Usage(format!(
                "{crop:?} is not within {} rows and {} columns",
                shape.h, shape.w
            )));
        }
        Ok(Cropped { inner, shape, crop })
    }
}

impl<S: RowSink> RowSink for Cropped<S> {
    fn access(&self) -> Access {
        self.inner.access()
    }

    fn write(&mut self, item: u64, y: u64, cols: Range<u64>, rows: &[&[f32]]) -> Result<()> {
        self.shape.check(item, y, &cols, rows)?;
        let Crop {
            top,
            left,
            height,
            width,
        } = self.crop;
        let first = y.max(top);
        let last = (y + rows.len() as u64).min(top + height);
        let (start, end) = (cols.start.max(left), cols.end.min(left + width));
        if first >= last || start >= end {
            return Ok(());
        }
        let floats = |x: u64| ((x - cols.start) * self.shape.c) as usize;
        let part: Vec<&[f32]> = rows[(first - y) as usize..(last - y) as usize]
            .iter()
            .map(|row| &row[floats(start)..floats(end)])
            .collect();
        self.inner
            .write(item, first - top, start - left..end - left, &part)
    }

    fn finish(&mut self) -> Result<()> {
        self.inner.finish()
    }

    fn spool(&mut self, folder: &Path) -> Result<()> {
        self.inner.spool(folder)
    }

    fn memory(&self) -> u64 {
        self.inner.memory()
    }

    fn bytes_written(&self) -> u64 {
        self.inner.bytes_written()
    }

    fn bytes_read(&self) -> u64 {
        self.inner.bytes_read()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The crop of `input` pixels with `pad` on each side, `more` at the end, and `output` out.
    fn crop(input: u64, pad: u64, more: u64, output: u64, scale: (u64, u64)) -> (u64, u64) {
        let shape = |h| ImageShape {
            n: 1,
            c: 3,
            h,
            w: h,
        };
        let pad = Pad::around(PadMode::Edge, pad);
        let pad = Pad {
            bottom: pad.bottom + more,
            right: pad.right + more,
            ..pad
        };
        let crop = pad.crop(shape(input), shape(output), scale, scale);
        assert_eq!((crop.top, crop.height), (crop.left, crop.width));
        (crop.top, crop.height)
    }

    #[test]
    fn crops_show_the_image() {
        // as it is, doubled, quartered
        assert_eq!(crop(437, 0, 11, 448, (1, 1)), (0, 437));
        assert_eq!(crop(437, 8, 11, 464, (1, 1)), (8, 437));
        assert_eq!(crop(437, 8, 11, 928, (2, 1)), (16, 874));
        assert_eq!(crop(437, 8, 11, 116, (1, 4)), (2, 110));
        // valid convolutions that take away what was added, at double size and with a multiple
        assert_eq!(crop(100, 7, 0, 200, (2, 1)), (0, 200));
        assert_eq!(crop(437, 28, 3, 440, (1, 1)), (0, 437));
        assert_eq!(crop(100, 18, 0, 200, (2, 1)), (0, 200));
        // half of what was added is taken away
        assert_eq!(crop(100, 10, 0, 110, (1, 1)), (5, 100));
        // more is taken away than was added
        assert_eq!(crop(100, 2, 0, 84, (1, 1)), (0, 84));
    }
}
