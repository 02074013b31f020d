//! Winograd convolution of 3×3 kernels with stride 1, in tiles of `M × M` output pixels that are
//! made of `T × T` points.
//!
//! ```text
//!  weights ──G──▶ U [block][point][channel][lane]          once a call, all threads
//!  a few tiles of a part:
//!    pixels ──Bᵀ──▶ V [tile][point][channel] ─┐
//!                 for each block, point:  M = V · U        a matrix product, in registers
//!    M [tile][point][lane] ──Aᵀ──▶ pixels + bias           while it is in cache
//! ```
//!
//! Tiles stand on a grid that is fixed by the model and the input's size, so that no pixel's bits
//! depend on how rows and columns are cut. Every product is one chain of fused multiply-adds over
//! the input's channels.

use std::marker::PhantomData;
use std::ops::Range;

use rayon::prelude::*;

use super::arch::parts::Part;
use super::arch::tile::{Runs, Sums as _, Tile};
use super::arch::transform::{Patch, Target, taps};
use super::arch::{Isa, Kernel, Simd};
use super::pack::{BLOCK, Block, ConvShape, HALF};
use super::points::{F4, F6, Points};
use super::{Cols, Grid, Input, Out, PackedConv, Tail, channel_runs};

/// Where a call's tiles are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tiles {
    /// Output rows, and columns, of a tile: 4 or 6.
    pub size: usize,
    /// Rows and columns of the first tile that are before the call's first, less than a tile's.
    pub before: [usize; 2],
    /// Which input columns are under each column of tiles: `size + 2` taps.
    pub cols: Cols,
}

/// Tiles that are transformed before they are multiplied: enough that reading `U` is hidden, few
/// enough that `V` stays in the second cache level where it can.
const CHUNK: usize = 28;

/// Floats of `U` that are made at a time: output channels beyond it take another pass.
const MOST: usize = 10 << 20;

/// Floats of workspace that [`winograd`] takes, on so many threads.
pub fn winograd_len(shape: &ConvShape, size: usize, threads: usize) -> usize {
    let points = (size + 2) * (size + 2);
    points * (shape.cin * pass(shape, points) + threads * CHUNK * (shape.cin + BLOCK))
}

/// Output channels of a pass, padded to whole blocks.
fn pass(shape: &ConvShape, points: usize) -> usize {
    let most = MOST / (points * shape.cin) / BLOCK * BLOCK;
    most.clamp(BLOCK, shape.width().next_multiple_of(BLOCK))
}

/// Makes all rows of `out`. The input has `tiles.size + 2` taps for each row of tiles.
///
/// # Panics
///
/// Where slices are shorter than the tables say, the tiles have another size than 4 or 6, or the
/// kernel is not an ungrouped 3×3.
pub fn winograd(
    isa: Isa,
    conv: &PackedConv<'_>,
    input: &Input<'_>,
    tiles: &Tiles,
    tail: &Tail<'_>,
    out: &mut Out<'_, '_>,
    workspace: &mut [f32],
) {
    let shape = &conv.shape;
    let ordinary = shape.groups == 1 && !shape.transposed && !shape.is_narrow();
    assert!(ordinary && [shape.kh, shape.kw] == [3, 3], "kernel");
    assert_eq!(out.channels, shape.cout, "output channels");
    assert_eq!(input.taps, tiles.size + 2, "row taps");
    let channels: usize = input.segments.iter().map(|s| s.channels).sum();
    assert_eq!(channels, shape.cin, "input channels");
    let call = Call {
        isa,
        conv,
        input,
        tiles,
        tail,
    };
    match tiles.size {
        4 => call.run::<F4, 4, 6>(out, workspace),
        6 => call.run::<F6, 6, 8>(out, workspace),
        size => panic!("no tiles of {size} rows"),
    }
}

/// The operands of a call.
#[derive(Clone, Copy)]
struct Call<'a> {
    isa: Isa,
    conv: &'a PackedConv<'a>,
    input: &'a Input<'a>,
    tiles: &'a Tiles,
    tail: &'a Tail<'a>,
}

impl Call<'_> {
    fn run<P: Points<M, T>, const M: usize, const T: usize>(
        self,
        out: &mut Out<'_, '_>,
        workspace: &mut [f32],
    ) {
        let (shape, before) = (&self.conv.shape, self.tiles.before);
        let count = |len: usize, before: usize| (len + before).div_ceil(M);
        let [down, along] = [
            count(out.rows.len(), before[0]),
            count(out.width(), before[1]),
        ];
        let work = down * along * T * T * shape.cin * shape.cout;
        let grid = Grid {
            tile: M,
            before,
            ..Grid::choose([down, along, 1], shape.cout, 1, work)
        };
        let pass = pass(shape, T * T);
        let (u, scratch) = workspace.split_at_mut(T * T * shape.cin * pass);
        let each = CHUNK * T * T * (shape.cin + BLOCK);
        let u_block = T * T * shape.cin * BLOCK;
        for first in (0..shape.cout).step_by(pass) {
            let channels = first..shape.cout.min(first + pass);
            let blocks = first / BLOCK..channels.end.div_ceil(BLOCK);
            let u = &mut u[..blocks.len() * u_block];
            u.par_chunks_mut(u_block).zip(blocks).for_each(|(u, i)| {
                let block = shape.block(i);
                self.isa.run(Weights::<P, M, T> {
                    conv: self.conv,
                    block,
                    u,
                    _points: PhantomData,
                });
            });
            let u = &*u;
            out.for_parts_of(grid, channels, scratch, each, |part, scratch| {
                self.isa.run(Job::<P, M, T> {
                    call: self,
                    u,
                    part,
                    scratch,
                    _points: PhantomData,
                });
            });
        }
    }
}

/// The weights of a block, to be transformed.
struct Weights<'a, P, const M: usize, const T: usize> {
    conv: &'a PackedConv<'a>,
    block: Block,
    /// `[point][channel][lane]`.
    u: &'a mut [f32],
    _points: PhantomData<P>,
}

impl<P: Points<M, T>, const M: usize, const T: usize> Kernel for Weights<'_, P, M, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let (shape, width) = (&self.conv.shape, self.block.width);
        let weights = &self.conv.weights[self.block.before * shape.depth()..];
        let tap = shape.cin * width;
        for c in (0..tap).step_by(width) {
            taps::<S, P, M, T>(s, &weights[c..], tap, &mut self.u[c..], tap, width);
        }
    }
}

/// A part of the output.
struct Job<'a, P, const M: usize, const T: usize> {
    call: Call<'a>,
    /// The transformed weights of the part's channels.
    u: &'a [f32],
    part: Part<'a>,
    /// `V`, then `M`.
    scratch: &'a mut [f32],
    _points: PhantomData<P>,
}

/// The tiles of a part, row by row.
#[derive(Debug, Clone)]
struct Lattice {
    /// The tiles' rows and columns.
    rows: Range<usize>,
    cols: Range<usize>,
}

impl Lattice {
    fn len(&self) -> usize {
        self.rows.len() * self.cols.len()
    }

    /// Row and column of tile `i`.
    fn at(&self, i: usize) -> (usize, usize) {
        let n = self.cols.len();
        (self.rows.start + i / n, self.cols.start + i % n)
    }
}

impl<P: Points<M, T>, const M: usize, const T: usize> Kernel for Job<'_, P, M, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        let shape = &self.call.conv.shape;
        let tiles = |range: Range<usize>, before: usize| {
            (range.start + before) / M..(range.end + before).div_ceil(M)
        };
        let lattice = Lattice {
            rows: tiles(self.part.rows(), self.call.tiles.before[0]),
            cols: tiles(self.part.cols(), self.call.tiles.before[1]),
        };
        let chunk = CHUNK / S::TILE * S::TILE;
        let first = self.part.channels().start / BLOCK;
        let blocks = first..self.part.channels().end.div_ceil(BLOCK);
        for from in (0..lattice.len()).step_by(chunk) {
            let some = from..lattice.len().min(from + chunk);
            let next = some.end..lattice.len().min(some.end + chunk);
            let ahead = self.ahead(&lattice, next);
            for (k, i) in some.clone().enumerate() {
                self.input(s, lattice.at(i), k);
            }
            for i in blocks.clone() {
                let block = shape.block(i);
                let ahead = ahead.filter(|_| i == first);
                self.multiply(s, &block, i - first, some.len(), ahead);
                for (k, i) in some.clone().enumerate() {
                    self.output(s, &block, lattice.at(i), k);
                }
            }
            self.finish(s, &lattice, some);
        }
    }
}

impl<'a, P: Points<M, T>, const M: usize, const T: usize> Job<'a, P, M, T> {
    /// Transforms the pixels under a tile into `V`, as its tile `k`.
    #[inline(always)]
    fn input<S: Simd>(&mut self, s: S, (row, col): (usize, usize), k: usize) {
        let cin = self.call.conv.shape.cin;
        let v = &mut self.scratch[k * T * T * cin..][..T * T * cin];
        let mut cols = [None; T];
        for (j, at) in cols.iter_mut().enumerate() {
            *at = self.call.tiles.cols.tap(col, j);
        }
        for run in channel_runs(self.call.input) {
            let mut rows = [None; T];
            rows.copy_from_slice(&run.rows[row * T..(row + 1) * T]);
            let patch = Patch {
                rows,
                cols,
                stride: run.stride,
                channels: run.first..run.first + run.channels,
            };
            patch.transform::<S, P, M>(s, &mut v[run.to..], cin);
        }
    }

    /// What some tiles read, or as many of them as are in one row of tiles.
    #[inline(always)]
    fn ahead(&self, lattice: &Lattice, some: Range<usize>) -> Option<Ahead<'a>> {
        let segment = self.call.input.segments.first()?;
        let (row, col) = lattice.at(some.start);
        let end = lattice.cols.end.min(col + some.len());
        let cols = &self.call.tiles.cols;
        let first = cols.tap(col, 0).or_else(|| cols.tap(col, 1))?;
        let last = (0..T)
            .rev()
            .find_map(|j| cols.tap(end.checked_sub(1)?, j))?;
        let rows = segment.rows.get(row * T..(row + 1) * T)?;
        Some(Ahead {
            rows,
            first: first * segment.stride,
            len: (last + 1 - first) * segment.stride,
        })
    }

    /// The products of the first `count` tiles of `V` and the weights of a block, block `i` of the
    /// part, into `M`.
    #[inline(always)]
    fn multiply<S: Simd>(
        &mut self,
        s: S,
        block: &Block,
        i: usize,
        count: usize,
        ahead: Option<Ahead<'_>>,
    ) {
        let cin = self.call.conv.shape.cin;
        let (v, m) = self.scratch.split_at_mut(CHUNK * T * T * cin);
        let u = &self.u[i * T * T * cin * BLOCK..];
        let lanes = block.width.min(2 * S::LANES);
        for point in 0..T * T {
            if let Some(ahead) = ahead {
                ahead.prefetch(s, point, T);
            }
            for lane in (0..block.width).step_by(lanes) {
                let u = &u[point * cin * block.width + lane..];
                for tile in (0..count).step_by(S::TILE) {
                    let product = Product {
                        v: &v[(tile * (T * T) + point) * cin..],
                        u,
                        m: &mut m[(tile * (T * T) + point) * BLOCK + lane..],
                        cin,
                        width: block.width,
                        points: T * T,
                    };
                    match lanes {
                        HALF if S::LANES == HALF => product.run::<S, 1>(s, count - tile),
                        _ => product.run::<S, 2>(s, count - tile),
                    }
                }
            }
        }
    }

    /// Transforms tile `k` of `M`, a block's channels, into pixels.
    #[inline(always)]
    fn output<S: Simd>(&mut self, s: S, block: &Block, (row, col): (usize, usize), k: usize) {
        let shape = &self.call.conv.shape;
        let m = &self.scratch[T * T * (CHUNK * shape.cin + k * BLOCK)..];
        let first = |tile: usize, before: usize| (tile * M) as isize - before as isize;
        let target = Target {
            first: [
                first(row, self.call.tiles.before[0]),
                first(col, self.call.tiles.before[1]),
            ],
            channels: block.first..block.first + block.channels,
        };
        let bias = &self.call.conv.weights[shape.depth() * shape.width() + block.before..];
        target.transform::<S, P, M, T>(s, m, BLOCK, bias, &mut self.part);
    }

    /// Applies the tail to some tiles' pixels.
    #[inline(always)]
    fn finish<S: Simd>(&mut self, s: S, lattice: &Lattice, some: Range<usize>) {
        let n = lattice.cols.len();
        for tiles in some.start / n..some.end.div_ceil(n) {
            let cols = some.start.max(tiles * n)..some.end.min((tiles + 1) * n);
            let first = lattice.cols.start;
            let cols = first + cols.start - tiles * n..first + cols.end - tiles * n;
            let pixels = |tiles: Range<usize>, before: usize, within: Range<usize>| {
                let pixel = |tile: usize| {
                    (tile * M)
                        .saturating_sub(before)
                        .clamp(within.start, within.end)
                };
                pixel(tiles.start)..pixel(tiles.end)
            };
            let [above, left] = self.call.tiles.before;
            let row = lattice.rows.start + tiles;
            let cols = pixels(cols, left, self.part.cols());
            for row in pixels(row..row + 1, above, self.part.rows()) {
                self.call
                    .tail
                    .apply_part(s, row, cols.clone(), &mut self.part);
            }
        }
    }
}

/// Input that is read next.
#[derive(Clone, Copy)]
struct Ahead<'a> {
    rows: &'a [Option<&'a [f32]>],
    /// First float of each row, and how many.
    first: usize,
    len: usize,
}

impl Ahead<'_> {
    /// Asks for a share of the input: one of as many as there are points.
    #[inline(always)]
    fn prefetch<S: Simd>(&self, s: S, point: usize, t: usize) {
        let Some(row) = self.rows[point / t] else {
            return;
        };
        let share = Grid::range(self.len, point % t, t);
        for x in row[self.first..][share].iter().step_by(16) {
            s.prefetch(x);
        }
    }
}

/// A product of some tiles' channels at a point with some lanes' weights.
struct Product<'a> {
    /// From the first tile's first channel on.
    v: &'a [f32],
    /// From the first channel's first lane on.
    u: &'a [f32],
    /// From the first tile's first lane on.
    m: &'a mut [f32],
    cin: usize,
    /// Lanes of a channel of `u`.
    width: usize,
    points: usize,
}

impl Product<'_> {
    /// Runs it for `n` tiles or as many as registers hold, and `V` vectors of lanes.
    #[inline(always)]
    fn run<S: Simd, const V: usize>(self, s: S, n: usize) {
        macro_rules! heights {
            ($($p:literal)+) => {$(
                if $p <= S::TILE && (n <= $p || $p == S::TILE) {
                    return s.run(Multiply::<$p, V>(self));
                }
            )+};
        }
        heights!(1 2 4 6 8 11 14);
    }
}

/// A [`Product`] of `P` tiles and `V` vectors of lanes.
struct Multiply<'a, const P: usize, const V: usize>(Product<'a>);

impl<const P: usize, const V: usize> Kernel for Multiply<'_, P, V> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Product {
            v,
            u,
            m,
            cin,
            width,
            points,
        } = self.0;
        let mut sums = Tile::<S, P, V>::zero(s, width);
        sums.add(&Runs::even(v, points * cin, cin), u, 0);
        sums.write(m, points * BLOCK);
    }
}
