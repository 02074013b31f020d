//! Sizes on the command line: of memory and of images.

use std::str::FromStr;

use stripmill::graph::Graph;
use stripmill::import::Model;

/// Bytes: a number and K, M, G or T, powers of 1024 with or without `iB` or `B` after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bytes(pub(super) u64);

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let why = || {
            format!("`{text}` is no size: give bytes, or a number with K, M, G or T (512M, 1.5G)")
        };
        let digits = text
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let unit = unit.trim_start().to_ascii_lowercase();
        let unit = unit
            .strip_suffix("ib")
            .or(unit.strip_suffix('b'))
            .unwrap_or(&unit);
        let shift = ["", "k", "m", "g", "t"]
            .iter()
            .position(|u| *u == unit)
            .ok_or_else(why)?
            * 10;
        if let Ok(whole) = number.parse::<u64>() {
            return whole.checked_mul(1 << shift).map(Bytes).ok_or_else(why);
        }
        let number: f64 = number.parse().map_err(|_| why())?;
        let bytes = number * (1u64 << shift) as f64;
        if bytes.is_finite() && bytes < u64::MAX as f64 {
            Ok(Bytes(bytes as u64))
        } else {
            Err(why())
        }
    }
}

/// Bytes for people.
pub(super) fn bytes(bytes: u64) -> String {
    let (unit, name) = match bytes {
        0..=9_999 => return format!("{bytes} B"),
        10_000..=9_999_999 => (1u64 << 10, "KiB"),
        10_000_000..=9_999_999_999 => (1 << 20, "MiB"),
        _ => (1 << 30, "GiB"),
    };
    format!("{:.1} {name}", bytes as f64 / unit as f64)
}

/// The size of an image, `HxW` or `CxHxW`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ImageSize {
    /// Channels, if given.
    pub(super) channels: Option<u64>,
    /// Rows.
    pub(super) rows: u64,
    /// Columns.
    pub(super) cols: u64,
}

impl ImageSize {
    /// The graph of `model` for images of this size.
    pub(super) fn graph(self, model: &Model) -> stripmill::Result<Graph> {
        let ImageSize {
            channels,
            rows,
            cols,
        } = self;
        match channels {
            None => model.graph_at(rows, cols),
            Some(_) => model.graph(&model.lengths(channels, rows, cols)?),
        }
    }
}

impl FromStr for ImageSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let why = || format!("`{text}` is no image size: give HxW or CxHxW (1080x1920)");
        let lengths = text
            .split(['x', 'X', '×'])
            .map(|n| n.parse::<u64>().ok().filter(|&n| n > 0));
        let lengths: Option<Vec<u64>> = lengths.collect();
        match lengths.ok_or_else(why)?[..] {
            [rows, cols] => Ok(ImageSize {
                channels: None,
                rows,
                cols,
            }),
            [channels, rows, cols] => Ok(ImageSize {
                channels: Some(channels),
                rows,
                cols,
            }),
            _ => Err(why()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_memory() {
        let of = |text: &str| text.parse::<Bytes>().map(|b| b.0);
        assert_eq!(of("123"), Ok(123));
        assert_eq!(of("512M"), Ok(512 << 20));
        assert_eq!(of("512 MiB"), Ok(512 << 20));
        assert_eq!(of("96mb"), Ok(96 << 20));
        assert_eq!(of("1.5G"), Ok(3 << 29));
        assert_eq!(of("2KiB"), Ok(2048));
        assert_eq!(of("7B"), Ok(7));
        for wrong in [
            "",
            "M",
            "-1",
            "1.2.3M",
            "12X",
            "99999999999999T",
            "1e9",
            "nan",
        ] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_of_images() {
        let of = |text: &str| {
            text.parse::<ImageSize>()
                .ok()
                .map(|s| (s.channels, s.rows, s.cols))
        };
        assert_eq!(of("30x40"), Some((None, 30, 40)));
        assert_eq!(of("3x30x40"), Some((Some(3), 30, 40)));
        for wrong in ["30", "0x4", "ax4", "1x2x3x4", "30x"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn bytes_for_people() {
        assert_eq!(bytes(9999), "9999 B");
        assert_eq!(bytes(3 << 20), "3072.0 KiB");
        assert_eq!(bytes(96 << 20), "96.0 MiB");
    }
}
