//! Which image sizes a model takes: found by trying.

use super::{Dim, Model};
use crate::dense::DType;
use crate::error::{Error, Result};
use crate::graph::Graph;

/// The greatest multiple that is tried.
const MOST: u64 = 128;

/// Sizes that are tried are at least this: valid convolutions need some rows.
const LEAST: u64 = 256;

/// Successive multiples that must all work.
const TRIES: u64 = 4;

/// Channels that are tried where the model leaves them open.
const CHANNELS: [u64; 6] = [3, 1, 4, 2, 6, 9];

impl Model {
    /// The lengths of all inputs for images of `rows` × `cols`: free batches are 1, and free channels
    /// `channels`.
    ///
    /// # Errors
    /// [`Error::Usage`] naming an input whose lengths that leaves open.
    pub fn lengths(
        &self,
        channels: Option<u64>,
        rows: u64,
        cols: u64,
    ) -> Result<Vec<(&str, Vec<u64>)>> {
        let of = |port: &super::Port| {
            let open = |what: &str| {
                Error::Usage(format!(
                    "input `{}`: the model leaves its {what} open",
                    port.name
                ))
            };
            let dims = port.dims.as_deref().unwrap_or(&[
                Dim::Unknown,
                Dim::Unknown,
                Dim::Unknown,
                Dim::Unknown,
            ]);
            let image = [Some(1), channels, Some(rows), Some(cols)];
            let length = |(k, dim): (usize, &Dim)| match dim {
                Dim::Fixed(len) => Ok(*len),
                _ if dims.len() == 4 => image[k].ok_or_else(|| open("channels")),
                _ => Err(open("lengths")),
            };
            dims.iter()
                .enumerate()
                .map(length)
                .collect::<Result<Vec<u64>>>()
        };
        self.inputs()
            .iter()
            .map(|port| Ok((port.name.as_str(), of(port)?)))
            .collect()
    }

    /// The graph for images of `rows` × `cols`, with as many channels as work where the model leaves
    /// them open.
    ///
    /// # Errors
    /// As [`Model::graph`].
    pub fn graph_at(&self, rows: u64, cols: u64) -> Result<Graph> {
        if let Ok(lengths) = self.lengths(None, rows, cols) {
            return self.graph(&lengths);
        }
        let mut first = None;
        for channels in CHANNELS {
            match self
                .lengths(Some(channels), rows, cols)
                .and_then(|lengths| self.graph(&lengths))
            {
                Err(Error::Model { node, why }) => {
                    first = first.or(Some(Error::Model { node, why }))
                }
                done => return done,
            }
        }
        Err(first.unwrap_or_else(|| Error::model("graph", "no number of channels works")))
    }

    /// What the height and the width of an image must be multiples of: the least up to 128 that make a
    /// graph. The sizes that are tried are above 256.
    ///
    /// # Errors
    /// As [`Model::graph`], where none makes one.
    pub fn multiple(&self) -> Result<[u64; 2]> {
        let mut wrong = None;
        let mut works = |rows: u64, cols: u64| {
            for k in 0..TRIES {
                let at = |m: u64| m * (LEAST.div_ceil(m) + k);
                match self.graph_at(at(rows), at(cols)) {
                    Ok(_) => {}
                    Err(e @ Error::Model { .. }) => {
                        wrong = Some(e);
                        return Ok(false);
                    }
                    Err(e) => return Err(e),
                }
            }
            Ok(true)
        };
        for both in 1..=MOST {
            if !works(both, both)? {
                continue;
            }
            let (mut rows, mut cols) = (both, both);
            for m in (1..both).rev().filter(|m| both.is_multiple_of(*m)) {
                if works(m, both)? {
                    rows = m;
                }
                if works(both, m)? {
                    cols = m;
                }
            }
            return Ok([rows, cols]);
        }
        Err(wrong.unwrap_or_else(|| Error::model("graph", "no size works")))
    }
}

impl super::Port {
    /// Whether it may be an image: f32, of batch, channels, height and width.
    pub fn is_image(&self) -> bool {
        self.dtype.is_none_or(|t| t == DType::F32)
            && self.dims.as_ref().is_none_or(|dims| dims.len() == 4)
    }
}
