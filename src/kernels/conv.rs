//! Convolution and transposed convolution: an indirect matrix product over the row table.
//!
//! A register tile holds adjacent pixels × channels of a block. It begins with the bias and takes
//! the kernel's rows, then its columns, then the input's channels (segment after segment), one
//! fused multiply-add after the other: that order alone makes the bits. A kernel row outside the
//! image is left out, a kernel column outside it adds zeros: neither depends on the tile.

use std::ops::Range;

use super::arch::parts::{Columns, Part};
use super::arch::tile::Tile;
use super::arch::{Isa, Kernel, Simd};
use super::pack::{BLOCK, Block, ConvShape, packed_len};
use super::{Cols, Grid, Input, Out, Phase, Tail};

/// A convolution's shape with the weights that [`super::pack_conv`] packed.
#[derive(Debug, Clone, Copy)]
pub struct PackedConv<'a> {
    /// Its shape.
    pub shape: ConvShape,
    /// Weights and biases.
    pub weights: &'a [f32],
}

/// Makes all rows of `out`. Row tap `ky` of the input meets kernel row `ky`; the columns of `out`
/// are those of the phases, tap `k` of a phase meets kernel column `taps[k]`.
///
/// # Panics
///
/// Where slices are shorter than the tables say.
pub fn conv(
    isa: Isa,
    conv: &PackedConv<'_>,
    input: &Input<'_>,
    phases: &[Phase],
    tail: &Tail<'_>,
    out: &mut Out<'_, '_>,
) {
    let shape = &conv.shape;
    assert_eq!(conv.weights.len(), packed_len(shape), "packed weights");
    assert_eq!(out.channels, shape.cout, "output channels");
    assert_eq!(input.taps, shape.kh, "row taps");
    let channels: usize = input.segments.iter().map(|s| s.channels).sum();
    assert_eq!(channels, shape.cin, "input channels");
    let (rows, width) = (out.rows.len(), out.width());
    let unit = if shape.groups == 1 {
        BLOCK
    } else {
        shape.group_cout()
    };
    let work = rows * width * shape.depth() * shape.cout;
    let grid = Grid::choose([rows, width, shape.cout.div_ceil(unit)], unit, TILE, work);
    out.for_parts(grid, |part| {
        isa.run(Job {
            conv,
            input,
            phases,
            tail,
            part,
        });
    });
}

/// Pixels of the largest tile, for the choice of the cut: it must not depend on the level.
const TILE: usize = 14;

/// Floats of output that are made before a block's weights are left for the next block's.
const CHUNK: usize = 1 << 16;

/// A part of the output.
struct Job<'a> {
    conv: &'a PackedConv<'a>,
    input: &'a Input<'a>,
    phases: &'a [Phase],
    tail: &'a Tail<'a>,
    part: Part<'a>,
}

impl Kernel for Job<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        let shape = &self.conv.shape;
        let (rows, cols) = (self.part.rows(), self.part.cols());
        let pixels = (CHUNK / shape.cout).max(4 * S::TILE);
        let down = (pixels / cols.len().max(1)).max(1);
        for (rows, cols) in chunks(rows, down)
            .flat_map(|rows| chunks(cols.clone(), pixels).map(move |cols| (rows.clone(), cols)))
        {
            for block in (0..shape.blocks()).map(|i| shape.block(i)) {
                if self.part.channels().contains(&block.first) {
                    for row in rows.clone() {
                        self.block(s, &block, row, cols.clone());
                    }
                }
            }
            for row in rows {
                self.tail.apply_part(s, row, cols.clone(), &mut self.part);
            }
        }
    }
}

/// Cuts a range into ranges of `step`.
fn chunks(range: Range<usize>, step: usize) -> impl Iterator<Item = Range<usize>> {
    let end = range.end;
    range.step_by(step).map(move |at| at..end.min(at + step))
}

impl Job<'_> {
    /// Makes a block's channels of some columns of a row.
    #[inline(always)]
    fn block<S: Simd>(&mut self, s: S, block: &Block, row: usize, cols: Range<usize>) {
        let shape = &self.conv.shape;
        let (weights, biases) = self.conv.weights.split_at(shape.depth() * shape.width());
        let cin = shape.group_cin();
        let channels = block.group * cin..(block.group + 1) * cin;
        let vectors = if block.width == S::LANES { 1 } else { 2 };
        for phase in self.phases {
            let count = |x: usize| {
                let before = x.saturating_sub(phase.start).div_ceil(phase.step);
                before.min(phase.count)
            };
            let (start, end) = (count(cols.start), count(cols.end));
            let tiles = (end - start).div_ceil(S::TILE);
            for lane in (0..block.channels).step_by(vectors * S::LANES) {
                for tile in 0..tiles {
                    let first = start + tile * (end - start) / tiles;
                    let last = start + (tile + 1) * (end - start) / tiles;
                    let n = block.channels.min(lane + vectors * S::LANES) - lane;
                    let at = TileAt {
                        input: self.input,
                        phase,
                        part: &mut self.part,
                        row,
                        first,
                        channels: channels.clone(),
                        kw: shape.kw,
                        weights: &weights[block.before * shape.depth() + lane..],
                        bias: &biases[block.before + lane..],
                        block: block.width,
                        to: block.first + lane..block.first + lane + n,
                    };
                    if vectors == 1 {
                        run_tile::<S, 1>(s, at, last - first);
                    } else {
                        run_tile::<S, 2>(s, at, last - first);
                    }
                }
            }
        }
    }
}

/// A register tile and what it reads.
struct TileAt<'a, 'b> {
    input: &'a Input<'a>,
    phase: &'a Phase,
    part: &'a mut Part<'b>,
    /// The output row.
    row: usize,
    /// The first of its columns, counted in the phase.
    first: usize,
    /// Input channels that are read, of all segments'.
    channels: Range<usize>,
    /// Kernel columns.
    kw: usize,
    /// The block's weights and biases, from the tile's first channel on.
    weights: &'a [f32],
    bias: &'a [f32],
    /// Floats from an input channel's weights to the next's.
    block: usize,
    /// The output channels.
    to: Range<usize>,
}

/// Runs a tile of `pixels` pixels and `V` vectors of channels.
#[inline(always)]
fn run_tile<S: Simd, const V: usize>(s: S, at: TileAt<'_, '_>, pixels: usize) {
    macro_rules! tiles {
        ($($n:literal)+) => {
            match pixels {
                $($n => if $n <= S::TILE {
                    let regular = &at.phase.cols.regular;
                    let end = at.first + pixels;
                    if regular.start <= at.first && end <= regular.end {
                        s.run(RunTile::<$n, V, true>(at));
                    } else {
                        s.run(RunTile::<$n, V, false>(at));
                    }
                },)+
                _ => unreachable!("a tile of {pixels} pixels"),
            }
        };
    }
    tiles!(1 2 3 4 5 6 7 8 9 10 11 12 13 14);
}

/// A tile of `P` pixels and `V` vectors; `REGULAR` where all taps of all pixels are inside.
struct RunTile<'a, 'b, const P: usize, const V: usize, const REGULAR: bool>(TileAt<'a, 'b>);

impl<const P: usize, const V: usize, const REGULAR: bool> Kernel
    for RunTile<'_, '_, P, V, REGULAR>
{
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let at = self.0;
        let (taps, cols) = (&at.phase.taps[..], &at.phase.cols);
        let cin = at.channels.len();
        let mut tile = Tile::<S, P, V>::new(s, at.bias);
        for ky in 0..at.input.taps {
            let row_at = at.row * at.input.taps + ky;
            let ky_weights = ky * at.kw;
            if REGULAR && adjacent(at.input, &at.channels, taps, cols) {
                // All taps of a pixel are one run of floats.
                let segment = &at.input.segments[0];
                if let Some(row) = segment.rows[row_at] {
                    let column = cols.first + (at.first - cols.regular.start) * cols.stride;
                    let weights = &at.weights[(ky_weights + taps[0]) * cin * at.block..];
                    let (x, step) = (
                        &row[column * segment.stride..],
                        cols.stride * segment.stride,
                    );
                    tile.add_even(x, step, taps.len() * cin, weights, at.block);
                }
                continue;
            }
            for (k, kx) in taps.iter().enumerate() {
                let weights = &at.weights[(ky_weights + kx) * cin * at.block..];
                let mut base = 0;
                for segment in at.input.segments {
                    let from = at.channels.start.max(base);
                    let end = at.channels.end.min(base + segment.channels);
                    let offset = segment.first + from.wrapping_sub(base);
                    base += segment.channels;
                    let Some(row) = segment.rows[row_at] else {
                        continue;
                    };
                    if from >= end {
                        continue;
                    }
                    let weights = &weights[(from - at.channels.start) * at.block..];
                    if REGULAR {
                        let column = cols.first + (at.first - cols.regular.start) * cols.stride;
                        let column = column.wrapping_add_signed(k as isize * cols.dilation);
                        let x = &row[column * segment.stride + offset..];
                        tile.add_even(
                            x,
                            cols.stride * segment.stride,
                            end - from,
                            weights,
                            at.block,
                        );
                        continue;
                    }
                    for piece in (0..end - from).step_by(ZEROS.len()) {
                        let n = ZEROS.len().min(end - from - piece);
                        let mut x = [&ZEROS[..n]; P];
                        for (p, x) in x.iter_mut().enumerate() {
                            if let Some(column) = cols.tap(at.first + p, k) {
                                *x = &row[column * segment.stride + offset + piece..][..n];
                            }
                        }
                        tile.add_each(&x, n, &weights[piece * at.block..], at.block);
                    }
                }
            }
        }
        let step = at.phase.step;
        let first = at.phase.start + at.first * step;
        tile.store(at.part, at.row, Columns { first, step }, at.to);
    }
}

/// What a pixel outside the image is, so many channels at a time.
static ZEROS: [f32; 1024] = [0.0; 1024];

/// Whether the taps of a regular pixel and all their channels are adjacent, as are their weights.
#[inline(always)]
fn adjacent(input: &Input<'_>, channels: &Range<usize>, taps: &[usize], cols: &Cols) -> bool {
    let [segment] = input.segments else {
        return false;
    };
    let whole = segment.channels == segment.stride && channels.len() == segment.channels;
    let even = taps.len() == 1 || cols.dilation == 1;
    whole
        && even
        && taps
            .last()
            .is_some_and(|last| last - taps[0] + 1 == taps.len())
}
