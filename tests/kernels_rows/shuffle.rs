//! Kernels that move elements, against where each must come from.

use stripmill::func::Func;
use stripmill::kernels::{Program, ProgramArg, depth_to_space, pad, space_to_depth};

use super::data::{Size, check, cols, element, no_tail, operand, with_input};

/// A tail that negates, so that it is seen to be applied.
fn negate() -> Program {
    Program::compile(&[(Func::Neg, [ProgramArg::Input(0); 3])], Vec::new()).unwrap()
}

#[test]
fn pads_and_crops() {
    let program = negate();
    for (channels, parts) in [(1, false), (3, false), (9, true), (40, false), (40, true)] {
        // rows and columns put before (or taken away), after, and from one to the next
        for (before, after, stride) in [(2, 3, 1), (-2, -1, 1), (0, 0, 1), (3, -2, 1), (-1, 2, 2)] {
            let (h, w) = (6usize, 9usize);
            let first = operand(13, [h, w], channels, parts);
            let out = |len: usize| ((len as i64 + before + after - 1) / stride + 1) as usize;
            let at = |o: usize| o as i64 * stride - before;
            let tap = |o: usize, len: usize| usize::try_from(at(o)).ok().filter(|&i| i < len);
            let size = Size {
                h: out(h),
                w: out(w),
                channels,
            };
            check(
                &format!("pad {before} {after} {stride} {size:?}"),
                size,
                |isa, out_rows, out_cols, out| {
                    let table: Vec<Vec<_>> = out_rows.map(|o| vec![tap(o, h)]).collect();
                    let from = out_cols.clone().find_map(|o| tap(o, w)).unwrap_or(0);
                    let table_of = cols(&out_cols, from, w, 1, |o, _| at(o));
                    with_input(&first, &table, from..w, |input| {
                        pad(isa, 0.25, input, &table_of, &no_tail(&program), out);
                    });
                },
                |y, x, c| match (tap(y, h), tap(x, w)) {
                    (Some(y), Some(x)) => (f64::from(-element(&first, y, x, c)), 0.0),
                    _ => (-0.25, 0.0),
                },
            );
        }
    }
}

/// Columns that repeat or are mirrored come in the table's edges.
#[test]
fn a_mirrored_pad() {
    let program = negate();
    let (h, w, channels) = (3, 5, 4);
    let first = operand(14, [h, w], channels, false);
    let mirror = |o: usize| [2, 1, 0, 1, 2, 3, 4, 3, 2][o];
    let size = Size { h, w: 9, channels };
    check(
        "mirrored",
        size,
        |isa, out_rows, out_cols, out| {
            let table: Vec<Vec<_>> = out_rows.map(|o| vec![Some(o)]).collect();
            let regular =
                2.clamp(out_cols.start, out_cols.end)..7.clamp(out_cols.start, out_cols.end);
            let edges = (out_cols.start..regular.start).chain(regular.end..out_cols.end);
            let table_of = stripmill::kernels::Cols {
                taps: 1,
                regular: regular.start - out_cols.start..regular.end - out_cols.start,
                first: if regular.is_empty() {
                    0
                } else {
                    mirror(regular.start)
                },
                stride: 1,
                dilation: 1,
                edges: edges.map(|o| mirror(o) as i32).collect(),
            };
            with_input(&first, &table, 0..w, |input| {
                pad(isa, 0.0, input, &table_of, &no_tail(&program), out);
            });
        },
        |y, x, c| (f64::from(-element(&first, y, mirror(x), c)), 0.0),
    );
}

#[test]
fn depth_to_space_in_both_orders() {
    let program = negate();
    for (block, channels) in [(2, 1), (2, 3), (2, 20), (3, 2), (4, 3), (1, 5)] {
        for (crd, parts) in [(false, false), (false, true), (true, false), (true, true)] {
            let (h, w) = (3, 7);
            let first = operand(15, [h, w], channels * block * block, parts);
            let size = Size {
                h: h * block,
                w: w * block,
                channels,
            };
            check(
                &format!("depth to space {block} crd {crd} {size:?}"),
                size,
                |isa, out_rows, out_cols, out| {
                    let table: Vec<Vec<_>> =
                        out_rows.clone().map(|o| vec![Some(o / block)]).collect();
                    let subs: Vec<usize> = out_rows.map(|o| o % block).collect();
                    let read = out_cols.start / block..out_cols.end.div_ceil(block);
                    let first_sub = out_cols.start % block;
                    with_input(&first, &table, read, |input| {
                        let tail = no_tail(&program);
                        depth_to_space(isa, block, crd, input, &subs, first_sub, &tail, out);
                    });
                },
                |y, x, c| {
                    let sub = y % block * block + x % block;
                    let from = if crd {
                        c * block * block + sub
                    } else {
                        sub * channels + c
                    };
                    (f64::from(-element(&first, y / block, x / block, from)), 0.0)
                },
            );
        }
    }
}

#[test]
fn space_to_depth_from_every_column() {
    let program = negate();
    for (block, channels) in [(2, 1), (2, 3), (2, 20), (3, 2), (4, 3)] {
        for parts in [false, true] {
            let (h, w) = (2, 9);
            let first = operand(16, [h * block, w * block], channels, parts);
            let size = Size {
                h,
                w,
                channels: channels * block * block,
            };
            check(
                &format!("space to depth {block} {size:?}"),
                size,
                |isa, out_rows, out_cols, out| {
                    let taps = |o: usize| (0..block).map(|k| Some(o * block + k)).collect();
                    let table: Vec<Vec<_>> = out_rows.map(taps).collect();
                    // the operand's window may begin before what is read
                    let from = (out_cols.start * block).saturating_sub(1);
                    let first_col = out_cols.start * block - from;
                    with_input(&first, &table, from..w * block, |input| {
                        let tail = no_tail(&program);
                        space_to_depth(isa, block, input, first_col, &tail, out);
                    });
                },
                |y, x, c| {
                    let (sub, c) = (c / channels, c % channels);
                    let (y, x) = (y * block + sub / block, x * block + sub % block);
                    (f64::from(-element(&first, y, x, c)), 0.0)
                },
            );
        }
    }
}
