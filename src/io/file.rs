//! Image files: the format, spooling, and the conversion of values, in one.

use std::ffi::OsStr;
use std::ops::Range;
use std::path::Path;

use super::convert::{Alpha, ChannelMap, Denormalize, Normalize, ReadOptions, WriteOptions};
use super::input::InputFile;
use super::npy::{self, NpySink, NpySource};
use super::png::{self, PngSink, PngSource};
use super::sample::Sample;
use super::spool::{Spool, SpooledSource, spool_memory};
use super::staging::STAGING;
use super::{Access, ImageShape, RowSink, RowSource, elements};
use crate::error::{Error, Result};

/// An image file, its values converted as [`ReadOptions`] say.
pub struct FileSource {
    rows: Box<dyn RowSource>,
    /// What the values of `rows` are.
    sample: Sample,
    channels: ChannelMap,
    normalize: Option<Normalize>,
    /// A row as the file has it, where it has another number of channels.
    scratch: Vec<f32>,
    warnings: Vec<String>,
    memory: u64,
}

impl FileSource {
    /// Opens an `.npy` or `.png` file, told apart by their first bytes.
    ///
    /// # Errors
    /// [`Error::Io`] or [`Error::Format`] naming the file; [`Error::Usage`] where `options` do not
    /// fit it.
    pub fn open(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Self> {
        let path = path.as_ref();
        let mut warnings = Vec::new();
        let (rows, sample): (Box<dyn RowSource>, _) = match Format::of_content(path)? {
            Format::Npy => (Box::new(NpySource::open(path)?), Sample::F32),
            Format::Png => {
                let source = PngSource::open(path, options.alpha == Alpha::Keep)?;
                if source.drops_alpha() {
                    warnings.push(format!(
                        "{}: the alpha channel is left out (`--alpha keep` makes it a channel)",
                        path.display()
                    ));
                }
                let sample = source.sample();
                (Box::new(source), sample)
            }
        };
        let usage = |why| Error::Usage(format!("{}: {why}", path.display()));
        let from = rows.shape().c;
        let channels = ChannelMap::new(from, options.channels).map_err(usage)?;
        let normalize = Normalize::new(options, channels.count(from), sample.full())
            .map_err(|e| usage(e.to_string()))?;
        let mut source = FileSource {
            rows,
            sample,
            channels,
            normalize,
            scratch: Vec::new(),
            warnings,
            memory: 0,
        };
        source.memory = source.rows.memory() + source.scratch_len() * 4;
        if source.access() == Access::InOrder {
            source.memory += spool_memory(&source.rows.shape(), sample);
        }
        Ok(source)
    }

    /// What the user should know about how the file is read.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Bytes of memory that an 8-bit PNG file of `shape` takes, read as it is.
    pub fn png_memory(shape: ImageShape) -> u64 {
        let row = shape.row_len();
        png::source_memory(row + 1, row) + spool_memory(&shape, Sample::U8)
    }

    /// Floats of the scratch row.
    fn scratch_len(&self) -> u64 {
        let shape = self.rows.shape();
        if self.channels.count(shape.c) == shape.c {
            0
        } else {
            shape.row_len()
        }
    }
}

impl RowSource for FileSource {
    fn shape(&self) -> ImageShape {
        let shape = self.rows.shape();
        ImageShape {
            c: self.channels.count(shape.c),
            ..shape
        }
    }

    fn access(&self) -> Access {
        self.rows.access()
    }

    fn read(&mut self, item: u64, y: u64, cols: Range<u64>, rows: &mut [&mut [f32]]) -> Result<()> {
        self.shape().check(item, y, &cols, rows)?;
        if self.scratch_len() == 0 {
            self.rows.read(item, y, cols, rows)?;
            for row in rows.iter_mut() {
                self.channels.in_place(row);
            }
        } else {
            let len = (cols.end - cols.start) * self.rows.shape().c;
            self.scratch.resize(self.scratch_len() as usize, 0.0);
            let scratch = &mut self.scratch[..len as usize];
            for (y, row) in (y..).zip(rows.iter_mut()) {
                self.rows
                    .read(item, y, cols.clone(), &mut [&mut *scratch])?;
                self.channels.map(scratch, row);
            }
        }
        if let Some(normalize) = &self.normalize {
            for row in rows {
                normalize.apply(row);
            }
        }
        Ok(())
    }

    fn rewind(&mut self) -> Result<()> {
        self.rows.rewind()
    }

    fn spool(&mut self, folder: &Path) -> Result<()> {
        if self.access() == Access::InOrder {
            self.rows = Box::new(SpooledSource::new(&mut *self.rows, self.sample, folder)?);
        }
        Ok(())
    }

    fn memory(&self) -> u64 {
        self.memory
    }

    fn bytes_read(&self) -> u64 {
        self.rows.bytes_read()
    }

    fn bytes_written(&self) -> u64 {
        self.rows.bytes_written()
    }
}

/// An image file under way, its values converted as [`WriteOptions`] say. It appears under its name
/// when it is finished; dropped before, it leaves nothing behind.
pub struct FileSink {
    rows: Box<dyn RowSink>,
    /// Where rows wait until all are there, if they do not come in the file's order.
    spool: Option<Spool>,
    shape: ImageShape,
    /// What `rows` makes of values.
    sample: Sample,
    denormalize: Option<Denormalize>,
    /// Converted rows.
    scratch: Vec<f32>,
}

impl FileSink {
    /// Starts an `.npy` or `.png` file of `shape`, told apart by the name's ending. What cannot be
    /// written there is an error now, not at the end.
    ///
    /// # Errors
    /// [`Error::Io`] naming the file, [`Error::Usage`] where the format cannot hold `shape`.
    pub fn create(
        path: impl AsRef<Path>,
        shape: ImageShape,
        options: &WriteOptions,
    ) -> Result<Self> {
        let path = path.as_ref();
        let usage = |why: String| Error::Usage(format!("{}: {why}", path.display()));
        let format = Format::of_name(path)?;
        let ImageShape { n, c, h, w } = shape;
        let bytes = elements(&[n, c, h, w, 4]).filter(|bytes| *bytes <= i64::MAX as u64);
        if bytes.is_none_or(|bytes| bytes == 0) {
            return Err(usage(format!("no file holds {n} images {c}×{h}×{w}")));
        }
        let sample = match format {
            Format::Npy => Sample::F32,
            Format::Png => options.bits.sample(),
        };
        let denormalize =
            Denormalize::new(options, c, sample.full()).map_err(|e| usage(e.to_string()))?;
        Ok(FileSink {
            rows: match format {
                Format::Npy => Box::new(NpySink::create(path, shape)?),
                Format::Png => Box::new(PngSink::create(path, shape, sample)?),
            },
            spool: None,
            shape,
            sample,
            denormalize,
            scratch: Vec::new(),
        })
    }

    /// Bytes of memory that an 8-bit PNG file of `shape` takes, written with a scale.
    pub fn png_memory(shape: ImageShape) -> u64 {
        let scratch = scratch_rows(&shape) * shape.row_len() * 4;
        png::sink_memory(shape.row_len()) + scratch + spool_memory(&shape, Sample::U8)
    }

    /// Converted rows that are written at once.
    fn scratch_rows(&self) -> u64 {
        self.denormalize
            .as_ref()
            .map_or(0, |_| scratch_rows(&self.shape))
    }
}

/// Rows that are converted at once.
fn scratch_rows(shape: &ImageShape) -> u64 {
    (STAGING / (shape.row_len() * 4)).clamp(1, shape.h)
}

impl RowSink for FileSink {
    fn access(&self) -> Access {
        match self.spool {
            Some(_) => Access::Anywhere,
            None => self.rows.access(),
        }
    }

    fn write(&mut self, item: u64, y: u64, cols: Range<u64>, rows: &[&[f32]]) -> Result<()> {
        self.shape.check(item, y, &cols, rows)?;
        let group = self.scratch_rows().max(1) as usize;
        let row_len = self.shape.row_len() as usize;
        if self.denormalize.is_some() {
            self.scratch.resize(group * row_len, 0.0);
        }
        let FileSink {
            rows: sink, spool, ..
        } = self;
        let mut put = |y, rows: &[&[f32]]| match spool {
            Some(spool) => spool.write(item, y, cols.clone(), rows),
            None => sink.write(item, y, cols.clone(), rows),
        };
        let Some(denormalize) = &self.denormalize else {
            return put(y, rows);
        };
        for (y, rows) in (y..).step_by(group).zip(rows.chunks(group)) {
            let mut converted = Vec::with_capacity(rows.len());
            for (from, to) in rows.iter().zip(self.scratch.chunks_exact_mut(row_len)) {
                let to = &mut to[..from.len()];
                denormalize.apply(from, to);
                converted.push(&*to);
            }
            put(y, &converted)?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        if let Some(spool) = &mut self.spool {
            spool.give_to(&mut *self.rows)?;
        }
        self.rows.finish()
    }

    fn spool(&mut self, folder: &Path) -> Result<()> {
        if self.access() == Access::InOrder {
            self.spool = Some(Spool::create(folder, self.shape, self.sample)?);
        }
        Ok(())
    }

    fn memory(&self) -> u64 {
        let scratch = self.scratch_rows() * self.shape.row_len() * 4;
        let spool = match self.rows.access() {
            Access::Anywhere => 0,
            Access::InOrder => spool_memory(&self.shape, self.sample),
        };
        self.rows.memory() + scratch + spool
    }

    fn bytes_written(&self) -> u64 {
        self.rows.bytes_written() + self.spool.as_ref().map_or(0, Spool::bytes_written)
    }

    fn bytes_read(&self) -> u64 {
        self.spool.as_ref().map_or(0, Spool::bytes_read)
    }
}

/// The formats of image files.
#[derive(Debug, Clone, Copy)]
enum Format {
    Npy,
    Png,
}

impl Format {
    /// By a file's first bytes.
    fn of_content(path: &Path) -> Result<Self> {
        let file = InputFile::open(path)?;
        let mut magic = [0; 8];
        let n = file
            .read_at(&mut magic, 0)
            .map_err(|e| Error::io(path, e))?;
        let magic = &magic[..n];
        if magic.starts_with(npy::MAGIC) {
            Ok(Format::Npy)
        } else if magic.starts_with(png::MAGIC) {
            Ok(Format::Png)
        } else {
            Err(file.format("neither an npy nor a PNG file"))
        }
    }

    /// By a name's ending.
    fn of_name(path: &Path) -> Result<Self> {
        let ending = path.extension().and_then(OsStr::to_str).unwrap_or("");
        match ending.to_ascii_lowercase().as_str() {
            "npy" => Ok(Format::Npy),
            "png" => Ok(Format::Png),
            _ => Err(Error::Usage(format!(
                "{}: the name of an output ends in .npy or .png",
                path.display()
            ))),
        }
    }
}
