//! From what files hold to what a network takes, and back.

use std::str::FromStr;

use super::sample::Sample;
use crate::error::{Error, Result};

/// The channels that a network takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channels {
    /// Red, green, blue; a gray image gives each of them.
    Rgb,
    /// Blue, green, red; a gray image gives each of them.
    Bgr,
    /// Luma: 0.299 red + 0.587 green + 0.114 blue.
    Gray,
}

/// What becomes of an image's alpha channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Alpha {
    /// It is left out.
    #[default]
    Drop,
    /// It is the last channel.
    Keep,
}

/// Bits of a sample of an image file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Bits {
    /// 0 to 255.
    #[default]
    Eight,
    /// 0 to 65535.
    Sixteen,
}

/// How values are read: `(v · scale − mean) / std`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReadOptions {
    /// Where not given: 1/255 and 1/65535 for images of 8 and 16 bits, 1 for arrays.
    pub scale: Option<f32>,
    /// One for all channels or one for each; none is 0.
    pub mean: Vec<f32>,
    /// One for all channels or one for each; none is 1.
    pub std: Vec<f32>,
    /// Where not given: as the file has them.
    pub channels: Option<Channels>,
    /// For images that have it.
    pub alpha: Alpha,
}

/// How values are written: `v · scale + mean`, for images clamped and rounded half to even.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WriteOptions {
    /// Where not given: 255 and 65535 for images of 8 and 16 bits, 1 for arrays.
    pub scale: Option<f32>,
    /// One for all channels or one for each; none is 0.
    pub mean: Vec<f32>,
    /// For images.
    pub bits: Bits,
}

/// One of a few words, named where it is none of them.
pub(super) fn word<T: Copy>(text: &str, what: &str, words: &[(&str, T)]) -> Result<T> {
    let found = words.iter().find(|(word, _)| *word == text);
    found.map(|&(_, value)| value).ok_or_else(|| {
        let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        Error::Usage(format!(
            "{what} `{text}`: it is one of {}",
            words.join(", ")
        ))
    })
}

impl FromStr for Channels {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let words = [
            ("rgb", Channels::Rgb),
            ("bgr", Channels::Bgr),
            ("gray", Channels::Gray),
        ];
        word(text, "channels", &words)
    }
}

impl FromStr for Alpha {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        word(
            text,
            "alpha",
            &[("drop", Alpha::Drop), ("keep", Alpha::Keep)],
        )
    }
}

impl FromStr for Bits {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        word(text, "bits", &[("8", Bits::Eight), ("16", Bits::Sixteen)])
    }
}

impl Bits {
    pub(super) fn sample(self) -> Sample {
        match self {
            Bits::Eight => Sample::U8,
            Bits::Sixteen => Sample::U16,
        }
    }
}

/// Which channels of the file go where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChannelMap {
    Same,
    /// The first and the third change places.
    Swap,
    /// One becomes three.
    Spread,
    /// Three become one.
    Luma,
}

impl ChannelMap {
    /// From a file of `from` channels to `wanted`; `Err` says why not.
    pub(super) fn new(
        from: u64,
        wanted: Option<Channels>,
    ) -> std::result::Result<ChannelMap, String> {
        match (wanted, from) {
            (None, _) | (Some(Channels::Rgb), 3) | (Some(Channels::Gray), 1) => {
                Ok(ChannelMap::Same)
            }
            (Some(Channels::Bgr), 3) => Ok(ChannelMap::Swap),
            (Some(Channels::Rgb | Channels::Bgr), 1) => Ok(ChannelMap::Spread),
            (Some(Channels::Gray), 3) => Ok(ChannelMap::Luma),
            (Some(_), _) => Err(format!(
                "{from} channels: rgb, bgr and gray can be made of 1 or 3"
            )),
        }
    }

    /// Channels that come out of `from`.
    pub(super) fn count(self, from: u64) -> u64 {
        match self {
            ChannelMap::Same | ChannelMap::Swap => from,
            ChannelMap::Spread => 3,
            ChannelMap::Luma => 1,
        }
    }

    /// Rearranges a row where no channel comes or goes.
    pub(super) fn in_place(self, row: &mut [f32]) {
        if self == ChannelMap::Swap {
            for pixel in row.as_chunks_mut::<3>().0 {
                pixel.swap(0, 2);
            }
        }
    }

    /// Makes a row of another number of channels.
    pub(super) fn map(self, from: &[f32], to: &mut [f32]) {
        match self {
            ChannelMap::Same | ChannelMap::Swap => {
                to.copy_from_slice(from);
                self.in_place(to);
            }
            ChannelMap::Spread => {
                for (pixel, &v) in to.as_chunks_mut::<3>().0.iter_mut().zip(from) {
                    *pixel = [v; 3];
                }
            }
            ChannelMap::Luma => {
                for (v, [r, g, b]) in to.iter_mut().zip(from.as_chunks::<3>().0) {
                    *v = 0.299 * r + 0.587 * g + 0.114 * b;
                }
            }
        }
    }
}

/// `(v · scale − mean) / std`, channel by channel.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Normalize {
    scale: f32,
    /// As many as `std`: one for all channels or one for each.
    mean: Vec<f32>,
    std: Vec<f32>,
}

/// `v · scale + mean`, channel by channel.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Denormalize {
    scale: f32,
    mean: Vec<f32>,
}

impl Normalize {
    /// What `options` ask for of `c` channels of samples whose full scale is `full`; none if that
    /// changes nothing.
    pub(super) fn new(options: &ReadOptions, c: u64, full: f32) -> Result<Option<Self>> {
        let scale = finite("scale", options.scale.unwrap_or(1.0 / full))?;
        let mean = per_channel("mean", &options.mean, 0.0, c)?;
        let std = per_channel("std", &options.std, 1.0, c)?;
        if std.contains(&0.0) {
            return Err(Error::Usage("std is 0: values are divided by it".into()));
        }
        let nothing = scale == 1.0 && all(&mean, 0.0) && all(&std, 1.0);
        let len = mean.len().max(std.len());
        let full = |values: Vec<f32>| values.into_iter().cycle().take(len).collect();
        Ok((!nothing).then(|| Normalize {
            scale,
            mean: full(mean),
            std: full(std),
        }))
    }

    pub(super) fn apply(&self, row: &mut [f32]) {
        let Normalize { scale, mean, std } = self;
        match (mean.as_slice(), std.as_slice()) {
            (&[mean], &[std]) => {
                for v in row {
                    *v = normalized(*v, *scale, mean, std);
                }
            }
            (mean, std) => {
                for pixel in row.chunks_exact_mut(mean.len()) {
                    for ((v, &mean), &std) in pixel.iter_mut().zip(mean).zip(std) {
                        *v = normalized(*v, *scale, mean, std);
                    }
                }
            }
        }
    }
}

fn normalized(v: f32, scale: f32, mean: f32, std: f32) -> f32 {
    (v * scale - mean) / std
}

impl Denormalize {
    /// What `options` ask for of `c` channels of samples whose full scale is `full`; none if that
    /// changes nothing.
    pub(super) fn new(options: &WriteOptions, c: u64, full: f32) -> Result<Option<Self>> {
        let scale = finite("scale", options.scale.unwrap_or(full))?;
        let mean = per_channel("mean", &options.mean, 0.0, c)?;
        let nothing = scale == 1.0 && all(&mean, 0.0);
        Ok((!nothing).then_some(Denormalize { scale, mean }))
    }

    pub(super) fn apply(&self, from: &[f32], to: &mut [f32]) {
        // One number for all is taken over the whole row at once.
        let len = if self.mean.len() == 1 {
            from.len()
        } else {
            self.mean.len()
        };
        let pixels = from.chunks_exact(len.max(1));
        for (from, to) in pixels.zip(to.chunks_exact_mut(len.max(1))) {
            match self.mean.as_slice() {
                &[mean] => self.add(from, to, std::iter::repeat(mean)),
                mean => self.add(from, to, mean.iter().copied()),
            }
        }
    }

    fn add(&self, from: &[f32], to: &mut [f32], mean: impl Iterator<Item = f32>) {
        for ((to, v), mean) in to.iter_mut().zip(from).zip(mean) {
            *to = v * self.scale + mean;
        }
    }
}

fn all(values: &[f32], value: f32) -> bool {
    values.iter().all(|v| *v == value)
}

fn finite(what: &str, value: f32) -> Result<f32> {
    if value.is_finite() {
        Ok(value)
    } else {
        Err(Error::Usage(format!("{what} {value}: it must be finite")))
    }
}

/// `values` as one or `c` numbers.
fn per_channel(what: &str, values: &[f32], default: f32, c: u64) -> Result<Vec<f32>> {
    for value in values {
        finite(what, *value)?;
    }
    match values.len() as u64 {
        0 => Ok(vec![default]),
        n if n == 1 || n == c => Ok(values.to_vec()),
        n => Err(Error::Usage(format!(
            "{n} values of {what} for {c} channels: give 1 or {c}"
        ))),
    }
}
