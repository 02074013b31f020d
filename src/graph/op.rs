//! The ops, with what each needs to know.

use serde::Serialize;

use super::{Node, Side, Tensor, Window};
use crate::dense;

/// What a node computes.
#[derive(Debug, Clone, PartialEq)]
pub enum Op {
    // rows -> rows: these run in strips
    /// Convolution or transposed convolution (where the windows are [`Window::Transposed`]).
    Conv(Conv),
    /// Maximum or mean over a window.
    Pool(Pool),
    /// Interpolation, separable: rows and columns have a window each ([`Window::Interp`],
    /// [`Window::Repeat`] or [`Window::Same`]).
    Resize {
        /// Along the height.
        rows: Window,
        /// Along the width.
        cols: Window,
    },
    /// Moves rows and columns: pad, crop, strided slice. The windows have one tap.
    Pad {
        /// Along the height.
        rows: Window,
        /// Along the width.
        cols: Window,
        /// What [`super::Border::Fill`] puts.
        value: f32,
    },
    /// Channels to pixels: `[c·b·b, h, w]` to `[c, h·b, w·b]`.
    DepthToSpace {
        /// Block side.
        block: u64,
        /// ONNX mode `CRD` (channel first) rather than `DCR`.
        crd: bool,
    },
    /// Pixels to channels: `[c, h·b, w·b]` to `[b·b·c, h, w]` (ONNX: block row, block column, channel).
    SpaceToDepth {
        /// Block side.
        block: u64,
    },
    /// Nothing but the node's tail, over the first operand and the extras. Also what copies: a
    /// concatenation or a slice of channels that somebody needs as one tensor.
    Pointwise,
    /// Softmax over the channels of each pixel (`log`: its logarithm).
    Softmax {
        /// LogSoftmax.
        log: bool,
    },
    /// Local response normalisation over `size` channels.
    Lrn {
        /// Channels in the window.
        size: u64,
        /// Scale.
        alpha: f32,
        /// Exponent.
        beta: f32,
        /// Added before the power.
        bias: f32,
    },

    // rows -> whole: gathered strip by strip, complete when the sweep ends
    /// Collects rows.
    Gather(Gather),

    // whole -> rows: a source of a sweep
    /// Rows of whole operand 0, `[n, c, h, w]` of its own type, converted to f32.
    Spread,

    // whole -> whole: between sweeps
    /// Any other op, over whole tensors.
    Dense(dense::Op),
}

/// What [`Op::Gather`] makes of rows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub enum Gather {
    /// The whole tensor `[n, c, h, w]`, of its declared type.
    Whole,
    /// `[n, c, 1, 1]`: the mean over the image.
    Mean,
    /// `[n, c, 1, 1]`: the maximum over the image.
    Max,
    /// `[n, c, 2]`: mean and (biased) variance over the image, as [`Moments`] says.
    Moments(Moments),
}

/// Which elements share a mean and a variance.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Moments {
    /// Groups of adjacent channels that share them; the channel count for instance norm.
    pub groups: u64,
}

/// A convolution. Weights are `[cout, cin/groups, kh, kw]`; transposed: `[cin, cout/groups, kh, kw]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Conv {
    /// Index into [`super::Graph::weights`].
    pub weight: usize,
    /// Multiplies each output channel's weights (a folded batch norm), or none.
    pub scale: Option<Vec<f32>>,
    /// Added to each output channel, or none. Already includes a folded batch norm.
    pub bias: Option<Vec<f32>>,
    /// Output channels.
    pub cout: u64,
    /// Groups of channels.
    pub groups: u64,
    /// Along the height.
    pub rows: Window,
    /// Along the width.
    pub cols: Window,
    /// Output rows, and columns, that are computed together: 1, or the side of a Winograd tile.
    pub tile: u64,
}

/// A pooling over a window.
#[derive(Debug, Clone, PartialEq)]
pub struct Pool {
    /// Maximum or mean.
    pub kind: PoolKind,
    /// Along the height.
    pub rows: Window,
    /// Along the width.
    pub cols: Window,
}

/// Which pooling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum PoolKind {
    /// The largest element inside the image.
    Max,
    /// The mean of the elements inside the image.
    Mean,
    /// The mean with padding counted as zeros; positions beyond the padding (ceil mode) do not
    /// count. See [`super::Axis::counted`].
    MeanPadded {
        /// Padding after the image: rows, columns.
        after: [u64; 2],
    },
}

impl Op {
    /// How output rows or columns map to operand 0's. [`Op::Dense`] and [`Op::Spread`] have none.
    pub fn window(&self, side: Side) -> Window {
        let pick = |rows: &Window, cols: &Window| match side {
            Side::Rows => rows.clone(),
            Side::Cols => cols.clone(),
        };
        match self {
            Op::Conv(Conv { rows, cols, .. })
            | Op::Pool(Pool { rows, cols, .. })
            | Op::Resize { rows, cols }
            | Op::Pad { rows, cols, .. } => pick(rows, cols),
            Op::DepthToSpace { block, .. } => Window::Repeat { factor: *block },
            Op::SpaceToDepth { block } => Window::Taps {
                kernel: *block,
                stride: *block,
                dilation: 1,
                pad: 0,
                border: super::Border::Fill,
            },
            Op::Pointwise | Op::Softmax { .. } | Op::Lrn { .. } | Op::Gather(_) => Window::Same,
            Op::Spread | Op::Dense(_) => Window::Same,
        }
    }

    /// The length of the rows or columns that the op passes over: its output's, or for a gather
    /// its operand's.
    pub(super) fn output_len(&self, side: Side, tensors: &[Tensor], node: &Node) -> u64 {
        let of = match self {
            Op::Gather(_) => node.operands[0].0[0].tensor,
            _ => node.outputs[0],
        };
        tensors[of.at()].len(side)
    }

    /// Whether the op makes rows from rows.
    pub fn in_strips(&self) -> bool {
        !matches!(self, Op::Gather(_) | Op::Spread | Op::Dense(_))
    }
}
