//! Weights where they are: in the model file, or made while the graph was built.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::error::{Error, Result};

/// A constant of f32 values that a convolution or a product reads.
#[derive(Debug, Clone)]
pub struct Weight {
    /// Its name in the model.
    pub name: String,
    /// Its lengths.
    pub dims: Vec<u64>,
    /// Where its values are.
    pub source: WeightSource,
}

/// Where a weight's values are.
#[derive(Debug, Clone)]
pub enum WeightSource {
    /// In memory.
    Inline(Arc<Vec<f32>>),
    /// In a file, little-endian, row-major.
    File {
        /// The file, open.
        file: Arc<File>,
        /// Its name, for messages.
        path: Arc<PathBuf>,
        /// Byte offset of the first value.
        offset: u64,
        /// Whether values are f16 rather than f32.
        half: bool,
    },
}

impl Weight {
    /// Number of values.
    pub fn len(&self) -> u64 {
        self.dims.iter().product()
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads values `from..from + out.len()`. Allocates at most 64 KiB.
    ///
    /// # Errors
    /// [`Error::Io`] naming the file.
    pub fn read(&self, from: u64, out: &mut [f32]) -> Result<()> {
        match &self.source {
            WeightSource::Inline(values) => {
                let from = from as usize;
                out.copy_from_slice(&values[from..from + out.len()]);
                Ok(())
            }
            WeightSource::File {
                file,
                path,
                offset,
                half: false,
            } => {
                let io = |e| Error::io(path.as_path(), e);
                file.read_exact_at(bytemuck::cast_slice_mut(out), offset + 4 * from)
                    .map_err(io)?;
                for v in out.iter_mut() {
                    *v = f32::from_bits(u32::from_le(v.to_bits()));
                }
                Ok(())
            }
            WeightSource::File {
                file,
                path,
                offset,
                half: true,
            } => {
                let io = |e| Error::io(path.as_path(), e);
                let mut part = vec![0u16; out.len().min(1 << 15)];
                for (i, chunk) in out.chunks_mut(1 << 15).enumerate() {
                    let part = &mut part[..chunk.len()];
                    let at = offset + 2 * (from + ((i as u64) << 15));
                    file.read_exact_at(bytemuck::cast_slice_mut(part), at)
                        .map_err(io)?;
                    for (v, &h) in chunk.iter_mut().zip(part.iter()) {
                        *v = half::f16::from_bits(u16::from_le(h)).to_f32();
                    }
                }
                Ok(())
            }
        }
    }
}
