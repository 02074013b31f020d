//! Tensors in memory, windows of them as operands, and the runs that must agree.

use std::ops::Range;

use stripmill::kernels::{Cols, Input, Isa, Out, Program, Segment, Tail};

/// Numbers from a seed, in −1..1.
pub(crate) fn random(seed: u32, n: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12_345);
    let next = || {
        state = state.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    std::iter::repeat_with(next).skip(3).take(n).collect()
}

/// Channels `read` of a tensor `[h][w][channels]`.
#[derive(Debug, Clone)]
pub(crate) struct Tensor {
    pub(crate) w: usize,
    pub(crate) channels: usize,
    pub(crate) read: Range<usize>,
    pub(crate) data: Vec<f32>,
}

impl Tensor {
    pub(crate) fn new(seed: u32, [h, w]: [usize; 2], channels: usize, read: Range<usize>) -> Self {
        Tensor {
            w,
            channels,
            read,
            data: random(seed, h * w * channels),
        }
    }
}

/// Tensors that together have `channels` channels: one that has them all, or three of which
/// others are read as well.
pub(crate) fn operand(seed: u32, size: [usize; 2], channels: usize, parts: bool) -> Vec<Tensor> {
    if !parts || channels < 3 {
        return vec![Tensor::new(seed, size, channels, 0..channels)];
    }
    let cut = [channels / 3, channels / 2];
    vec![
        Tensor::new(seed, size, cut[0] + 2, 1..cut[0] + 1),
        Tensor::new(seed + 1, size, cut[1] - cut[0], 0..cut[1] - cut[0]),
        Tensor::new(
            seed + 2,
            size,
            channels - cut[1] + 3,
            3..channels - cut[1] + 3,
        ),
    ]
}

/// Channel `c` of the operand at a pixel.
pub(crate) fn element(operand: &[Tensor], y: usize, x: usize, c: usize) -> f32 {
    let mut first = 0;
    for t in operand {
        if c - first < t.read.len() {
            return t.data[(y * t.w + x) * t.channels + t.read.start + c - first];
        }
        first += t.read.len();
    }
    panic!("no channel {c}");
}

/// Calls `f` with rows `table` (for each output row its taps) and columns `cols` of an operand.
pub(crate) fn with_input<R>(
    operand: &[Tensor],
    table: &[Vec<Option<usize>>],
    cols: Range<usize>,
    f: impl FnOnce(&Input<'_>) -> R,
) -> R {
    let slices: Vec<Vec<Option<&[f32]>>> = operand
        .iter()
        .map(|t| {
            let row = |y: usize| {
                &t.data[(y * t.w + cols.start) * t.channels..(y * t.w + cols.end) * t.channels]
            };
            table.iter().flatten().map(|y| y.map(row)).collect()
        })
        .collect();
    let segments: Vec<Segment<'_>> = operand
        .iter()
        .zip(&slices)
        .map(|(t, rows)| Segment {
            rows,
            stride: t.channels,
            first: t.read.start,
            channels: t.read.len(),
        })
        .collect();
    f(&Input {
        segments: &segments,
        taps: table.first().map_or(1, Vec::len),
    })
}

/// The rows themselves.
pub(crate) fn same(rows: &Range<usize>) -> Vec<Vec<Option<usize>>> {
    rows.clone().map(|y| vec![Some(y)]).collect()
}

/// A column table for output columns `out` of a row that begins at column `from`: `at` says where a
/// tap falls, and the input has `len` columns.
pub(crate) fn cols(
    out: &Range<usize>,
    from: usize,
    len: usize,
    taps: usize,
    at: impl Fn(usize, usize) -> i64,
) -> Cols {
    let inside = |x: usize, k: usize| (0..len as i64).contains(&at(x, k));
    let regular = |x: &usize| (0..taps).all(|k| inside(*x, k));
    let first = out.clone().find(regular).unwrap_or(out.end);
    let end = out.clone().rfind(regular).map_or(first, |x| x + 1);
    let edge = |x: usize| -> Vec<i32> {
        let tap = |k| {
            if inside(x, k) {
                at(x, k) as i32 - from as i32
            } else {
                -1
            }
        };
        (0..taps).map(tap).collect()
    };
    let step = |a: usize, b: usize| (at(b, 0) - at(a, 0)) as usize;
    Cols {
        taps,
        regular: first - out.start..end - out.start,
        first: if first < end {
            at(first, 0) as usize - from
        } else {
            0
        },
        stride: if first + 1 < end {
            step(first, first + 1)
        } else {
            1
        },
        dilation: if taps > 1 {
            (at(0, 1) - at(0, 0)) as isize
        } else {
            1
        },
        edges: (out.start..first)
            .chain(end..out.end)
            .flat_map(edge)
            .collect(),
    }
}

/// A tail that does nothing.
pub(crate) fn no_tail(program: &Program) -> Tail<'_> {
    Tail {
        program,
        extras: &[],
        whole: &[],
    }
}

/// The size of an output.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    pub(crate) h: usize,
    pub(crate) w: usize,
    pub(crate) channels: usize,
}

/// Checks `make`, which makes a window of the output: against `want`, which says what an element is
/// near and how far off it may be; and that its bits depend neither on the level, nor on the number
/// of threads, nor on how rows and columns are cut.
pub(crate) fn check(
    what: &str,
    size: Size,
    make: impl Fn(Isa, Range<usize>, Range<usize>, &mut Out<'_, '_>) + Sync,
    want: impl Fn(usize, usize, usize) -> (f64, f64),
) -> Vec<f32> {
    let Size { h, w, channels } = size;
    let run = |isa: Isa, threads: usize, row_step: usize, col_step: usize| {
        let mut all = vec![f32::NAN; h * w * channels];
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        let pool = pool.build().unwrap();
        for y in (0..h).step_by(row_step) {
            for x in (0..w).step_by(col_step) {
                let (rows, cols) = (y..h.min(y + row_step), x..w.min(x + col_step));
                let mut lines: Vec<Vec<f32>> = rows
                    .clone()
                    .map(|_| vec![f32::NAN; cols.len() * channels])
                    .collect();
                let mut slices: Vec<&mut [f32]> = lines.iter_mut().map(Vec::as_mut_slice).collect();
                let mut out = Out {
                    rows: &mut slices,
                    channels,
                };
                pool.install(|| make(isa, rows.clone(), cols.clone(), &mut out));
                for (y, line) in rows.zip(&lines) {
                    let at = (y * w + cols.start) * channels;
                    all[at..at + line.len()].copy_from_slice(line);
                }
            }
        }
        all
    };
    let base = run(Isa::Portable, 1, h, w);
    for (i, &got) in base.iter().enumerate() {
        let (y, x, c) = (i / channels / w, i / channels % w, i % channels);
        let (want, error) = want(y, x, c);
        let got = f64::from(got);
        let near = (got - want).abs() <= error || got == want || got.is_nan() && want.is_nan();
        assert!(
            near,
            "{what}: row {y}, column {x}, channel {c}: {got}, not {want} ± {error}"
        );
    }
    for isa in Isa::ALL.into_iter().filter(|isa| isa.available()) {
        for (threads, row_step, col_step) in [(1, h, w), (3, h, w), (2, 1, 7), (1, 2, 3)] {
            if isa == Isa::Portable && (threads, col_step) == (1, w) {
                continue;
            }
            let got = run(isa, threads, row_step, col_step);
            let differs = got
                .iter()
                .zip(&base)
                .position(|(a, b)| a.to_bits() != b.to_bits() && !(a.is_nan() && b.is_nan()));
            if let Some(i) = differs {
                panic!(
                    "{what}: element {i} is {} on {} with {threads} threads, \
                     windows of {row_step} × {col_step}, and {} in one piece",
                    got[i],
                    isa.name(),
                    base[i]
                );
            }
        }
    }
    base
}
