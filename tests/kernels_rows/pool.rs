//! Pools against sums in f64 and plain maxima.

use stripmill::func::Func;
use stripmill::kernels::{Pooling, Program, ProgramArg, Tail, pool};

use super::data::{Size, Tensor, check, cols, element, no_tail, operand, with_input};

/// One axis of a window.
#[derive(Debug, Clone, Copy)]
struct Axis {
    len: usize,
    kernel: usize,
    stride: usize,
    dilation: usize,
    pad: usize,
    after: usize,
}

impl Axis {
    fn out(&self) -> usize {
        let reach = self.dilation * (self.kernel - 1) + 1;
        (self.len + self.pad + self.after - reach) / self.stride + 1
    }

    fn at(&self, o: usize, k: usize) -> i64 {
        (o * self.stride + k * self.dilation) as i64 - self.pad as i64
    }

    fn tap(&self, o: usize, k: usize) -> Option<usize> {
        let at = usize::try_from(self.at(o, k)).ok()?;
        (at < self.len).then_some(at)
    }

    fn inside(&self, o: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.kernel).filter_map(move |k| self.tap(o, k))
    }
}

fn check_pool(pooling: Pooling, rows: Axis, columns: Axis, first: &[Tensor], clip: bool) {
    let channels = first.iter().map(|t| t.read.len()).sum();
    let size = Size {
        h: rows.out(),
        w: columns.out(),
        channels,
    };
    let code = [(Func::Clip { lo: -0.5, hi: 0.5 }, [ProgramArg::Input(0); 3])];
    let program = Program::compile(if clip { &code } else { &[] }, Vec::new()).unwrap();
    let tail: Tail<'_> = no_tail(&program);
    let count = |axis: &Axis, o: usize| axis.inside(o).count() as u32;
    check(
        &format!("{pooling:?} {rows:?} {columns:?} {channels} channels"),
        size,
        |isa, out_rows, out_cols, out| {
            let table: Vec<Vec<_>> = out_rows
                .clone()
                .map(|o| (0..rows.kernel).map(|k| rows.tap(o, k)).collect())
                .collect();
            let row_counts: Vec<u32> = out_rows.map(|o| count(&rows, o)).collect();
            let col_counts: Vec<u32> = out_cols.clone().map(|o| count(&columns, o)).collect();
            let read = out_cols.clone().flat_map(|o| columns.inside(o));
            let from = read.min().unwrap_or(0);
            let table_of = cols(&out_cols, from, columns.len, columns.kernel, |o, k| {
                columns.at(o, k)
            });
            with_input(first, &table, from..columns.len, |input| {
                pool(
                    isa,
                    pooling,
                    &row_counts,
                    &col_counts,
                    input,
                    &table_of,
                    &tail,
                    out,
                );
            });
        },
        |y, x, c| {
            let window = rows
                .inside(y)
                .flat_map(|i| columns.inside(x).map(move |j| (i, j)));
            let values: Vec<f64> = window
                .map(|(i, j)| f64::from(element(first, i, j, c)))
                .collect();
            let clipped = |v: f64| if clip { v.clamp(-0.5, 0.5) } else { v };
            match pooling {
                Pooling::Max if values.iter().any(|v| v.is_nan()) => (f64::NAN, 0.0),
                Pooling::Max => (
                    clipped(values.into_iter().fold(f64::NEG_INFINITY, f64::max)),
                    0.0,
                ),
                Pooling::Mean => {
                    let mean = values.iter().sum::<f64>() / values.len() as f64;
                    (clipped(mean), 3e-7 * values.len() as f64)
                }
            }
        },
    );
}

fn axis(len: usize, kernel: usize, stride: usize, dilation: usize, pad: usize) -> Axis {
    Axis {
        len,
        kernel,
        stride,
        dilation,
        pad,
        after: pad,
    }
}

#[test]
fn windows_of_every_kind() {
    let axes = [
        axis(9, 2, 2, 1, 0),
        axis(11, 3, 2, 1, 1),
        axis(10, 3, 1, 1, 1),
        axis(13, 3, 1, 3, 2),
        axis(7, 7, 7, 1, 0),
        axis(12, 5, 3, 2, 4),
        Axis {
            after: 2,
            ..axis(8, 4, 2, 1, 0)
        },
    ];
    for pooling in [Pooling::Max, Pooling::Mean] {
        for (i, rows) in axes.into_iter().enumerate() {
            let columns = axes[(i + 3) % axes.len()];
            for (channels, parts) in [(1, false), (3, false), (16, true), (33, true), (70, false)] {
                let first = operand(7, [rows.len, columns.len], channels, parts);
                check_pool(pooling, rows, columns, &first, i % 2 == 0);
            }
        }
    }
}

#[test]
fn wide_rows_are_cut_among_threads() {
    let (rows, columns) = (axis(9, 3, 2, 1, 1), axis(601, 3, 2, 1, 1));
    let first = operand(9, [rows.len, columns.len], 35, true);
    check_pool(Pooling::Max, rows, columns, &first, true);
    check_pool(Pooling::Mean, rows, columns, &first, false);
}

#[test]
fn a_maximum_keeps_what_is_not_a_number() {
    let mut first = operand(5, [6, 6], 20, false);
    for i in [3, 50, 81, 300] {
        first[0].data[i] = f32::NAN;
    }
    let window = axis(6, 2, 1, 1, 0);
    check_pool(Pooling::Max, window, window, &first, false);
}
