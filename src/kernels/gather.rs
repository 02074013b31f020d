//! Sums over the image, gathered row by row.
//!
//! Columns are summed in blocks of [`BLOCK`], anchored at column 0 of the whole image; within a block
//! down the rows, columns left to right, in f64, relative to the block's first element; blocks are
//! combined left to right at the end (Chan, Golub and LeVeque, 1983). So a sum has one order,
//! whatever strips, panels and threads brought the rows.

use rayon::prelude::*;

/// Columns of a block.
pub const BLOCK: usize = 64;

/// f64 values that a block keeps for each channel.
pub const STATE: usize = 3;

/// What is gathered of each channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sum {
    /// The maximum; NaN where an element is NaN.
    Max,
    /// The first element, and the sums of differences from it and of their squares.
    Moments,
}

/// Some columns of an image's row.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// The pixels.
    pub row: &'a [f32],
    /// Floats from a pixel to the next.
    pub stride: usize,
    /// First channel that counts.
    pub first: usize,
    /// Channels that count.
    pub channels: usize,
    /// First column, a multiple of [`BLOCK`].
    pub x0: usize,
    /// Whether it is the image's first row.
    pub fresh: bool,
}

/// Adds `row` to `state`, `[block][STATE][total]`, of which it fills channels `at..`.
pub fn accumulate(sum: Sum, row: &Row<'_>, state: &mut [f64], total: usize, at: usize) {
    let blocks = row.row.len().div_ceil(BLOCK * row.stride);
    let first = row.x0 / BLOCK;
    let states = &mut state[first * STATE * total..(first + blocks) * STATE * total];
    let add = |(block, pixels): (&mut [f64], &[f32])| {
        let (base, rest) = block.split_at_mut(total);
        let (sums, squares) = rest.split_at_mut(total);
        let channels = at..at + row.channels;
        let (base, sums, squares) = (
            &mut base[channels.clone()],
            &mut sums[channels.clone()],
            &mut squares[channels],
        );
        for (x, pixel) in pixels.chunks(row.stride).enumerate() {
            let pixel = &pixel[row.first..row.first + row.channels];
            if row.fresh && x == 0 {
                base.iter_mut()
                    .zip(pixel)
                    .for_each(|(b, &v)| *b = f64::from(v));
                sums.fill(0.0);
                squares.fill(0.0);
            }
            match sum {
                Sum::Max => {
                    for (b, &v) in base.iter_mut().zip(pixel) {
                        let v = f64::from(v);
                        *b = if v > *b || v.is_nan() { v } else { *b };
                    }
                }
                Sum::Moments => {
                    let state = base.iter().zip(sums.iter_mut()).zip(squares.iter_mut());
                    for (((b, s), q), &v) in state.zip(pixel) {
                        let d = f64::from(v) - *b;
                        *s += d;
                        *q += d * d;
                    }
                }
            }
        }
    };
    let parts = states.chunks_mut(STATE * total);
    if rayon::current_num_threads() == 1 || row.row.len() < 1 << 14 {
        parts.zip(row.row.chunks(BLOCK * row.stride)).for_each(add);
    } else {
        states
            .par_chunks_mut(STATE * total)
            .zip(row.row.par_chunks(BLOCK * row.stride))
            .for_each(add);
    }
}

/// Maximum of channel `c`.
pub fn maximum(state: &[f64], total: usize, c: usize) -> f32 {
    let blocks = state.chunks(STATE * total).map(|block| block[c]);
    blocks
        .reduce(|a, b| if b > a || b.is_nan() { b } else { a })
        .unwrap_or(f64::NAN) as f32
}

/// Mean and variance over `channels` of an image of `height` rows and `width` columns.
pub fn moments(
    state: &[f64],
    total: usize,
    channels: std::ops::Range<usize>,
    height: u64,
    width: u64,
) -> (f64, f64) {
    let count = |block: usize| (height * (width - (block * BLOCK) as u64).min(BLOCK as u64)) as f64;
    let each = |c: usize| {
        state
            .chunks(STATE * total)
            .enumerate()
            .map(move |(b, s)| (count(b), s[c], s[total + c], s[2 * total + c]))
    };
    let all = height as f64 * width as f64 * channels.len() as f64;
    let mean = channels
        .clone()
        .flat_map(each)
        .map(|(n, base, sum, _)| n * base + sum)
        .sum::<f64>()
        / all;
    let spread = channels.flat_map(each).map(|(n, base, sum, squares)| {
        let d = base - mean;
        squares + 2.0 * d * sum + n * d * d
    });
    (mean, (spread.sum::<f64>() / all).max(0.0))
}
