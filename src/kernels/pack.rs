//! Weights in the order in which convolutions read them, the same on every level of instructions.

use crate::Result;

/// Output channels that are computed side by side.
pub(super) const BLOCK: usize = 32;
/// The width of a group's last block where it has few channels.
pub(super) const HALF: usize = 16;

/// The most output channels of a group that are computed as dot products.
const NARROW: usize = 4;

/// A convolution's weights: `[cout, cin/groups, kh, kw]`, transposed `[cin, cout/groups, kh, kw]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConvShape {
    /// Output channels.
    pub cout: usize,
    /// Input channels.
    pub cin: usize,
    /// Groups of channels.
    pub groups: usize,
    /// Kernel rows.
    pub kh: usize,
    /// Kernel columns.
    pub kw: usize,
    /// Whether the weights are in the order of a transposed convolution.
    pub transposed: bool,
}

/// Some output channels of a group, computed side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    /// The group.
    pub(super) group: usize,
    /// First output channel.
    pub(super) first: usize,
    /// Output channels.
    pub(super) channels: usize,
    /// Channels with the padding.
    pub(super) width: usize,
    /// Padded output channels before it.
    pub(super) before: usize,
}

impl ConvShape {
    /// Output channels of a group.
    pub(super) fn group_cout(&self) -> usize {
        self.cout / self.groups
    }

    /// Input channels of a group.
    pub(super) fn group_cin(&self) -> usize {
        self.cin / self.groups
    }

    /// Weights of an output channel.
    pub(super) fn depth(&self) -> usize {
        self.kh * self.kw * self.group_cin()
    }

    /// Blocks of all groups.
    pub(super) fn blocks(&self) -> usize {
        self.groups * self.group_cout().div_ceil(BLOCK)
    }

    /// Block `i`.
    pub(super) fn block(&self, i: usize) -> Block {
        let per_group = self.group_cout().div_ceil(BLOCK);
        let (group, first) = (i / per_group, i % per_group * BLOCK);
        let channels = BLOCK.min(self.group_cout() - first);
        Block {
            group,
            first: group * self.group_cout() + first,
            channels,
            width: match channels {
                _ if self.is_narrow() => channels,
                0..=HALF => HALF,
                _ => BLOCK,
            },
            before: group * self.group_width() + first,
        }
    }

    /// Whether lanes are input channels, because too few output channels would fill a vector.
    pub(super) fn is_narrow(&self) -> bool {
        self.group_cout() <= NARROW && self.group_cin() >= HALF
    }

    /// Padded output channels of a group.
    fn group_width(&self) -> usize {
        if self.is_narrow() {
            return self.group_cout();
        }
        self.group_cout().next_multiple_of(HALF)
    }

    /// Padded output channels.
    pub(super) fn width(&self) -> usize {
        self.groups * self.group_width()
    }
}

/// Floats that [`pack_conv`] writes.
pub fn packed_len(shape: &ConvShape) -> usize {
    (shape.depth() + 1) * shape.width()
}

/// Floats of each of a block's channels that are read at once.
const PIECE: usize = 1024;

/// Packs a convolution's weights: for each block of output channels `[ky][kx][channel][lane]` (where
/// there are few output channels `[ky][kx][lane][channel]`), then all biases, with zeros for the
/// channels that pad a block. `scale` multiplies each output
/// channel's weights. `read` gives the floats from a place in the weights on.
///
/// # Panics
///
/// Where `out` is not [`packed_len`] long.
pub fn pack_conv(
    shape: &ConvShape,
    scale: Option<&[f32]>,
    bias: Option<&[f32]>,
    read: &mut dyn FnMut(u64, &mut [f32]) -> Result<()>,
    out: &mut [f32],
) -> Result<()> {
    assert_eq!(out.len(), packed_len(shape), "packed weights");
    out.fill(0.0);
    let (taps, cin, cout) = (shape.kh * shape.kw, shape.group_cin(), shape.group_cout());
    let (weights, biases) = out.split_at_mut(shape.depth() * shape.width());
    let mut scratch = vec![0.0; BLOCK * PIECE.max(taps)];
    for block in (0..shape.blocks()).map(|i| shape.block(i)) {
        let lanes = block.first..block.first + block.channels;
        let packed = &mut weights[block.before * shape.depth()..][..block.width * shape.depth()];
        let (step, pitch) = if shape.is_narrow() {
            (1, cin)
        } else {
            (block.width, 1)
        };
        // `scratch` has `n` weights of each lane, from weight `from` of the lane on.
        let mut pack = |scratch: &[f32], from: usize, n: usize| {
            for i in 0..n {
                let (channel, tap) = ((from + i) / taps, (from + i) % taps);
                let packed = &mut packed[tap * cin * block.width..];
                for (lane, co) in lanes.clone().enumerate() {
                    let weight = scratch[lane * n + i] * scale.map_or(1.0, |scale| scale[co]);
                    packed[channel * step + lane * pitch] = weight;
                }
            }
        };
        if shape.transposed {
            let n = block.channels * taps;
            for channel in 0..cin {
                let row = (block.group * cin + channel) * cout + block.first % cout;
                read((row * taps) as u64, &mut scratch[..n])?;
                pack(&scratch, channel * taps, taps);
            }
        } else {
            for from in (0..shape.depth()).step_by(PIECE) {
                let n = PIECE.min(shape.depth() - from);
                for (co, piece) in lanes.clone().zip(scratch.chunks_exact_mut(n)) {
                    read((co * shape.depth() + from) as u64, piece)?;
                }
                pack(&scratch, from, n);
            }
        }
        if let Some(bias) = bias {
            biases[block.before..][..block.channels].copy_from_slice(&bias[lanes]);
        }
    }
    Ok(())
}
