//! Row kernels: they make a few output rows from slices of input rows.
//!
//! A kernel knows no graph, no plan and no file, and never allocates. Rows are `[w][c]` f32 slices;
//! which rows and columns are read comes in tables, so kernels hold no window arithmetic. Every
//! output element is one accumulation in a fixed order, so its bits depend neither on the level of
//! instructions, nor on threads, nor on how rows and columns were cut.
//!
//! Each kernel is parallel over rows and columns of its output (rayon, in the pool it is called
//! in), never over the axis it sums.

pub mod arch;
mod channels;
mod conv;
mod depthwise;
mod function;
pub mod gather;
mod grid;
mod math;
mod operand;
mod pack;
mod pixels;
mod points;
mod pointwise;
mod pool;
mod program;
mod resize;
mod shuffle;
mod winograd;

pub use arch::Isa;
pub use channels::{lrn, softmax};
pub use conv::{PackedConv, conv};
pub use depthwise::{depthwise, depthwise_len, pack_depthwise};
pub(crate) use grid::Grid;
pub use pack::{ConvShape, pack_conv, packed_len};
pub use pointwise::pointwise;
pub use pool::{Pooling, pool};
pub use program::{Program, ProgramArg};
pub use resize::{ColWeights, resize};
pub use shuffle::{depth_to_space, pad, space_to_depth};
pub use winograd::{Tiles, winograd, winograd_len};

/// Channels `first..first + channels` of one tensor's rows, as an operand.
#[derive(Debug, Clone, Copy)]
pub struct Segment<'a> {
    /// For output row `r` of the call and row tap `k`, `rows[r · taps + k]`: the window's columns of
    /// that input row, or `None` where the tap is outside the image.
    pub rows: &'a [Option<&'a [f32]>],
    /// Floats from a pixel to the next: all channels of the tensor.
    pub stride: usize,
    /// First channel that is read.
    pub first: usize,
    /// Channels that are read.
    pub channels: usize,
}

/// An operand: segments side by side along the channels, all with the same taps and columns.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// The segments.
    pub segments: &'a [Segment<'a>],
    /// Row taps per output row.
    pub taps: usize,
}

/// Which input columns the output columns read: tap `k` of output column `x` (both counted within
/// their windows) reads column `first + (x − regular.start) · stride + k · dilation` where `x` is in
/// `regular`; elsewhere the column `edges` says, or none (−1).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Cols {
    /// Taps of each output column.
    pub taps: usize,
    /// Output columns whose taps are all inside and evenly spaced.
    pub regular: std::ops::Range<usize>,
    /// Input column of tap 0 of the first regular output column.
    pub first: usize,
    /// Input columns from an output column to the next.
    pub stride: usize,
    /// Input columns from a tap to the next; negative for a transposed convolution.
    pub dilation: isize,
    /// `taps` entries for each output column left of `regular`, then for each right of it.
    pub edges: Vec<i32>,
}

impl Cols {
    /// The input column that tap `k` of output column `x` reads, or `None`.
    pub fn tap(&self, x: usize, k: usize) -> Option<usize> {
        if self.regular.contains(&x) {
            let first = self.first + (x - self.regular.start) * self.stride;
            return first.checked_add_signed(k as isize * self.dilation);
        }
        let edge = if x < self.regular.start {
            x
        } else {
            x - self.regular.len()
        };
        usize::try_from(self.edges[edge * self.taps + k]).ok()
    }
}

/// Output rows of a call: each `[w][channels]`, the window's columns.
#[derive(Debug)]
pub struct Out<'a, 'b> {
    /// The rows.
    pub rows: &'b mut [&'a mut [f32]],
    /// Channels of a pixel.
    pub channels: usize,
}

/// What is applied to a kernel's result before it is left in the output row.
#[derive(Debug, Clone, Copy)]
pub struct Tail<'a> {
    /// The program; empty where nothing is applied.
    pub program: &'a Program,
    /// Row operands, inputs 1, 2, … of the program: one tap, the output's columns. An operand with
    /// one channel stands for all channels, and one with `width` 1 for all columns.
    pub extras: &'a [Extra<'a>],
    /// Channel vectors of this batch item: each of the output's channels, or of one value.
    pub whole: &'a [&'a [f32]],
}

/// A row operand of a [`Tail`].
#[derive(Debug, Clone, Copy)]
pub struct Extra<'a> {
    /// Its segments, with one row tap.
    pub input: Input<'a>,
    /// Its columns: the output's, or 1.
    pub width: usize,
}

/// Some output columns of a convolution that use the same kernel columns: all of them where the
/// convolution is ordinary; every `step`-th where it is transposed with stride `step`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Phase {
    /// First output column of the window.
    pub start: usize,
    /// Output columns from one to the next.
    pub step: usize,
    /// Which kernel columns are used, ascending.
    pub taps: Vec<usize>,
    /// Where they read: column `x` of these is output column `start + x · step`, tap `k` is
    /// `taps[k]`. Its `dilation` may be negative for a transposed convolution.
    pub cols: Cols,
    /// How many output columns of the window there are.
    pub count: usize,
}

/// A segment of an operand, with where its channels go among the operand's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run<'a> {
    pub(crate) rows: &'a [Option<&'a [f32]>],
    pub(crate) stride: usize,
    pub(crate) first: usize,
    pub(crate) channels: usize,
    /// The operand's channel that its first is.
    pub(crate) to: usize,
}

/// The segments of `input`, left to right.
#[inline(always)]
pub(crate) fn channel_runs<'a>(input: &Input<'a>) -> impl Iterator<Item = Run<'a>> + use<'a> {
    input.segments.iter().scan(0, |to, s| {
        let run = Run {
            rows: s.rows,
            stride: s.stride,
            first: s.first,
            channels: s.channels,
            to: *to,
        };
        *to += s.channels;
        Some(run)
    })
}
