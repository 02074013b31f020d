//! Convolution and transposed convolution: an indirect matrix product over the row table.
//!
//! A register tile holds adjacent pixels × channels of a block. It begins with the bias and takes
//! the kernel's rows, then its columns, then the input's channels (segment after segment), one
//! fused multiply-add after the other: that order alone makes the bits. A kernel row outside the
//! image is left out, a kernel column outside it adds zeros: neither depends on the tile. Where there
//! are few output channels, lanes are input channels instead, in an order as fixed ([`Dots`]).

use std::marker::PhantomData;
use std::ops::Range;

use super::arch::dots::Dots;
use super::arch::parts::{Columns, Part};
use super::arch::tile::{Lanes, Layout, Runs, Sums};
use super::arch::{Isa, Kernel, Simd};
use super::pack::{BLOCK, Block, ConvShape, HALF, packed_len};
use super::{Grid, Input, Out, Phase, Tail};

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
const CHUNK: usize = 1 << 12;

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
        let pixels = (CHUNK / shape.cout)
            .max(2 * S::TILE)
            .next_multiple_of(S::TILE);
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
        let narrow = shape.is_narrow();
        let (pixels, lanes, pitch) = if narrow {
            (dot_pixels::<S>(), block.width, cin)
        } else {
            (S::TILE, block.width.min(2 * S::LANES), block.width)
        };
        for phase in self.phases {
            let index = |x: usize| {
                let before = x.saturating_sub(phase.start).div_ceil(phase.step);
                before.min(phase.count)
            };
            for lane in (0..block.channels).step_by(lanes) {
                for x in chunks(index(cols.start)..index(cols.end), pixels) {
                    let end = block.channels.min(lane + lanes);
                    let at = TileAt {
                        input: self.input,
                        phase,
                        part: &mut self.part,
                        row,
                        x,
                        channels: block.group * cin..(block.group + 1) * cin,
                        kw: shape.kw,
                        weights: &weights[block.before * shape.depth() + lane..],
                        bias: &biases[block.before + lane..],
                        tap: cin * block.width,
                        pitch,
                        one_run: !narrow && is_one_run(self.input, cin, phase),
                        to: block.first + lane..block.first + end,
                    };
                    match lanes {
                        1 => run_dots::<S, 1>(s, at),
                        2 => run_dots::<S, 2>(s, at),
                        3 => run_dots::<S, 3>(s, at),
                        4 => run_dots::<S, 4>(s, at),
                        // with 8 lanes each block has two vectors at least
                        HALF if S::LANES == HALF => run_tile::<S, 1>(s, at),
                        _ => run_tile::<S, 2>(s, at),
                    }
                }
            }
        }
    }
}

/// Whether the taps of a regular pixel and all their channels are adjacent, as are their weights.
fn is_one_run(input: &Input<'_>, cin: usize, phase: &Phase) -> bool {
    let ([segment], [first, .., last]) = (input.segments, &phase.taps[..]) else {
        return false;
    };
    let whole = segment.channels == segment.stride && cin == segment.channels;
    whole && phase.cols.dilation == 1 && last - first + 1 == phase.taps.len()
}

/// A register tile and what it reads.
struct TileAt<'a, 'b> {
    input: &'a Input<'a>,
    phase: &'a Phase,
    part: &'a mut Part<'b>,
    /// The output row.
    row: usize,
    /// Its columns, counted in the phase.
    x: Range<usize>,
    /// Input channels that are read, of all segments'.
    channels: Range<usize>,
    /// Kernel columns.
    kw: usize,
    /// The block's weights and biases, from the tile's first channel on.
    weights: &'a [f32],
    bias: &'a [f32],
    /// Floats from a tap's weights to the next's.
    tap: usize,
    /// Floats from a row of a tap's weights to the next.
    pitch: usize,
    /// Whether all taps of a regular pixel are one run of floats.
    one_run: bool,
    /// The output channels.
    to: Range<usize>,
}

impl TileAt<'_, '_> {
    /// Whether all taps of all pixels are inside and evenly spaced.
    fn is_regular(&self) -> bool {
        let regular = &self.phase.cols.regular;
        regular.start <= self.x.start && self.x.end <= regular.end
    }
}

/// Runs a tile of `V` vectors of output channels, of the least height that will do.
#[inline(always)]
fn run_tile<S: Simd, const V: usize>(s: S, at: TileAt<'_, '_>) {
    let n = at.x.len();
    let regular = n == S::TILE && at.is_regular();
    macro_rules! heights {
        ($($p:literal)+) => {$(
            if $p == S::TILE && regular {
                return s.run(RunTile::<Lanes<V>, $p, true>::new(at));
            }
            if $p <= S::TILE && n <= $p {
                return s.run(RunTile::<Lanes<V>, $p, false>::new(at));
            }
        )+};
    }
    heights!(1 2 4 6 8 11 14);
}

/// Pixels of a tile of dot products.
#[inline(always)]
fn dot_pixels<S: Simd>() -> usize {
    if S::LANES == HALF { 6 } else { 2 }
}

/// Runs a tile of dot products, for `C` output channels.
#[inline(always)]
fn run_dots<S: Simd, const C: usize>(s: S, at: TileAt<'_, '_>) {
    let regular = at.x.len() == dot_pixels::<S>() && at.is_regular();
    match (S::LANES == HALF, regular) {
        (true, true) => s.run(RunTile::<Dots<C>, 6, true>::new(at)),
        (true, false) => s.run(RunTile::<Dots<C>, 6, false>::new(at)),
        (false, true) => s.run(RunTile::<Dots<C>, 2, true>::new(at)),
        (false, false) => s.run(RunTile::<Dots<C>, 2, false>::new(at)),
    }
}

/// A tile of `P` pixels, of which the last are computed for nothing where there are fewer; `REGULAR`
/// where there are `P` and all taps of all of them are inside.
struct RunTile<'a, 'b, L, const P: usize, const REGULAR: bool> {
    at: TileAt<'a, 'b>,
    _layout: PhantomData<L>,
}

impl<'a, 'b, L, const P: usize, const REGULAR: bool> RunTile<'a, 'b, L, P, REGULAR> {
    fn new(at: TileAt<'a, 'b>) -> Self {
        RunTile {
            at,
            _layout: PhantomData,
        }
    }
}

impl<L: Layout, const P: usize, const REGULAR: bool> Kernel for RunTile<'_, '_, L, P, REGULAR> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let at = self.at;
        let (taps, cols, cin) = (&at.phase.taps[..], &at.phase.cols, at.channels.len());
        let first = at.x.start;
        let mut sums = L::Sums::<S, P>::new(s, at.bias, at.pitch);
        for ky in 0..at.input.taps {
            let row_at = at.row * at.input.taps + ky;
            let weights = &at.weights[ky * at.kw * at.tap..];
            if REGULAR && at.one_run {
                let segment = &at.input.segments[0];
                if let Some(row) = segment.rows[row_at] {
                    let column = cols.first + (first - cols.regular.start) * cols.stride;
                    let (x, step) = (
                        &row[column * segment.stride..],
                        cols.stride * segment.stride,
                    );
                    let x = Runs::even(x, step, taps.len() * cin);
                    sums.add(&x, &weights[taps[0] * at.tap..], 0);
                }
                continue;
            }
            for (k, kx) in taps.iter().enumerate() {
                let weights = &weights[kx * at.tap..];
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
                    let channel = from - at.channels.start;
                    if REGULAR {
                        let column = cols.first + (first - cols.regular.start) * cols.stride;
                        let column = column.wrapping_add_signed(k as isize * cols.dilation);
                        let x = &row[column * segment.stride + offset..];
                        let x = Runs::even(x, cols.stride * segment.stride, end - from);
                        sums.add(&x, weights, channel);
                        continue;
                    }
                    for piece in (0..end - from).step_by(ZEROS.len()) {
                        let n = ZEROS.len().min(end - from - piece);
                        let mut x = [&ZEROS[..n]; P];
                        for (p, x) in x.iter_mut().enumerate() {
                            if let Some(column) = cols.tap((first + p).min(at.x.end - 1), k) {
                                *x = &row[column * segment.stride + offset + piece..][..n];
                            }
                        }
                        sums.add(&Runs::each(&x, n), weights, channel + piece);
                    }
                }
            }
        }
        let step = at.phase.step;
        let cols = Columns {
            first: at.phase.start + first * step,
            step,
        };
        sums.store(at.part, at.row, cols, at.x.len(), at.to);
    }
}

/// What a pixel outside the image is, so many channels at a time: a multiple of a vector.
static ZEROS: [f32; 1024] = [0.0; 1024];
