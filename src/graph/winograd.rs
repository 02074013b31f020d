//! Which convolutions are computed in Winograd tiles: a choice of the model alone, so that the bits
//! depend on nothing else.

use super::{Conv, Graph, Op, Window};

/// How convolutions are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ConvMode {
    /// As sums of products, all of them.
    Direct,
    /// 3×3 kernels in Winograd tiles of 4×4 pixels where that is faster: twice the rounding error of
    /// sums of products at most.
    #[default]
    Auto,
    /// As `Auto`, in tiles of 6×6 pixels: a little faster, with about eight times the rounding error
    /// of sums of products.
    Fast,
}

/// Channels, in and out, below which transforms cost more than they save.
const LEAST: u64 = 8;

/// Sets [`Conv::tile`] of every convolution.
pub fn choose_conv(graph: &mut Graph, mode: ConvMode) {
    for k in 0..graph.nodes.len() {
        let Op::Conv(conv) = &graph.nodes[k].op else {
            continue;
        };
        let enough = graph.weights[conv.weight].dims[1] >= LEAST && conv.cout >= LEAST;
        let tile = match mode {
            ConvMode::Auto if enough && can_tile(graph, conv) => 4,
            ConvMode::Fast if enough && can_tile(graph, conv) => 6,
            _ => 1,
        };
        if let Op::Conv(conv) = &mut graph.nodes[k].op {
            conv.tile = tile;
        }
    }
}

/// Whether a convolution can be computed in tiles: its kernel is 3×3, with stride 1, over all
/// channels.
pub fn can_tile(graph: &Graph, conv: &Conv) -> bool {
    let plain = |window: &Window| {
        matches!(
            window,
            Window::Taps {
                kernel: 3,
                stride: 1,
                dilation: 1,
                ..
            }
        )
    };
    // few output channels are dot products over many input channels
    let narrow = conv.cout <= 4 && graph.weights[conv.weight].dims[1] >= 16;
    conv.groups == 1 && !narrow && plain(&conv.rows) && plain(&conv.cols)
}
