//! Resizes against weighted sums in f64.

use stripmill::func::Func;
use stripmill::kernels::{ColWeights, Program, ProgramArg, resize};

use super::data::{Size, check, element, no_tail, operand, random, with_input};

/// Positions and weights of an axis: `taps` for each output.
struct Axis {
    len: usize,
    taps: usize,
    at: Vec<usize>,
    weight: Vec<f32>,
}

/// Positions that rise slowly, with any weights; 1 where there is one tap.
fn axis(seed: u32, len: usize, out: usize, taps: usize) -> Axis {
    let first = |o: usize| o * len / out;
    let at = (0..out).flat_map(|o| (0..taps).map(move |k| (first(o) + k).min(len - 1)));
    Axis {
        len,
        taps,
        at: at.collect(),
        weight: if taps == 1 {
            vec![1.0; out]
        } else {
            random(seed, out * taps)
        },
    }
}

impl Axis {
    fn out(&self) -> usize {
        self.weight.len() / self.taps
    }

    fn taps(&self, o: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let range = o * self.taps..(o + 1) * self.taps;
        let weights = self.weight[range.clone()].iter().map(|&w| f64::from(w));
        self.at[range].iter().copied().zip(weights)
    }
}

fn check_resize(rows: &Axis, columns: &Axis, channels: usize, parts: bool) {
    let first = operand(3, [rows.len, columns.len], channels, parts);
    let code = [(Func::Neg, [ProgramArg::Input(0); 3])];
    let program = Program::compile(&code, Vec::new()).unwrap();
    let size = Size {
        h: rows.out(),
        w: columns.out(),
        channels,
    };
    let taps = columns.taps;
    check(
        &format!("{} × {taps} taps, {size:?}", rows.taps),
        size,
        |isa, out_rows, out_cols, out| {
            let span = |o: usize| o * rows.taps..(o + 1) * rows.taps;
            let table: Vec<Vec<_>> = out_rows
                .clone()
                .map(|o| rows.at[span(o)].iter().map(|&y| Some(y)).collect())
                .collect();
            let row_weights = &rows.weight[out_rows.start * rows.taps..out_rows.end * rows.taps];
            let range = out_cols.start * taps..out_cols.end * taps;
            let from = columns.at[range.start];
            let index: Vec<u32> = columns.at[range.clone()]
                .iter()
                .map(|&x| (x - from) as u32)
                .collect();
            let cols = ColWeights {
                taps,
                index: &index,
                weight: &columns.weight[range],
            };
            with_input(&first, &table, from..columns.len, |input| {
                resize(isa, row_weights, &cols, input, &no_tail(&program), out);
            });
        },
        |y, x, c| {
            let mut sum = 0.0;
            for (i, wi) in rows.taps(y) {
                for (j, wj) in columns.taps(x) {
                    sum -= wi * wj * f64::from(element(&first, i, j, c));
                }
            }
            let exact = rows.taps * taps == 1;
            (
                sum,
                if exact {
                    0.0
                } else {
                    2e-6 * (rows.taps * taps) as f64
                },
            )
        },
    );
}

#[test]
fn taps_of_every_number() {
    for (row_taps, col_taps) in [(1, 1), (2, 2), (4, 4), (1, 2), (2, 1), (7, 5)] {
        for (channels, parts) in [(1, false), (3, false), (17, true), (64, false), (130, true)] {
            let rows = axis(5, 7, 11, row_taps);
            let columns = axis(6, 8, 19, col_taps);
            check_resize(&rows, &columns, channels, parts);
        }
    }
}

#[test]
fn wide_rows_are_cut_among_threads() {
    check_resize(&axis(1, 5, 10, 2), &axis(2, 300, 600, 2), 20, true);
    check_resize(&axis(1, 5, 10, 1), &axis(2, 300, 600, 1), 20, false);
}
