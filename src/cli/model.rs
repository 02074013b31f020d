//! Which model, and how its convolutions are computed.

use std::path::PathBuf;

use clap::ValueEnum;
use stripmill::Result;
use stripmill::graph::ConvMode;
use stripmill::import::Model;

#[derive(Debug, clap::Args)]
pub(super) struct ModelArgs {
    /// An ONNX file
    #[arg(id = "MODEL")]
    path: PathBuf,
    /// How convolutions are computed
    #[arg(long, value_enum, value_name = "HOW", default_value = "auto")]
    conv: Conv,
}

/// The names of [`ConvMode`].
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Conv {
    /// As sums of products, all of them
    Direct,
    /// 3×3 kernels in Winograd tiles of 4×4 pixels, with about twice the rounding error
    Auto,
    /// The same in tiles of 6×6 pixels, with about eight times the rounding error
    Fast,
}

impl ModelArgs {
    /// Opens the model.
    pub(super) fn open(&self) -> Result<Model> {
        Ok(Model::open(&self.path)?.with_conv(match self.conv {
            Conv::Direct => ConvMode::Direct,
            Conv::Auto => ConvMode::Auto,
            Conv::Fast => ConvMode::Fast,
        }))
    }
}
