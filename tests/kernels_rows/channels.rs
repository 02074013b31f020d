//! Softmax and local response normalisation against f64.

use stripmill::kernels::{Program, lrn, softmax};

use super::data::{Size, check, element, no_tail, operand, same, with_input};

#[test]
fn softmax_over_channels() {
    let program = Program::default();
    for (channels, parts) in [
        (1, false),
        (2, false),
        (5, true),
        (21, false),
        (64, true),
        (1000, false),
    ] {
        for (log, scale) in [(false, 1.0f32), (true, 1.0), (false, 60.0), (true, 60.0)] {
            let mut first = operand(17, [2, 9], channels, parts);
            first
                .iter_mut()
                .flat_map(|t| &mut t.data)
                .for_each(|v| *v *= scale);
            let size = Size {
                h: 2,
                w: 9,
                channels,
            };
            check(
                &format!("softmax log {log} × {scale} {size:?}"),
                size,
                |isa, rows, cols, out| {
                    with_input(&first, &same(&rows), cols, |input| {
                        softmax(isa, log, input, &no_tail(&program), out);
                    });
                },
                |y, x, c| {
                    let all: Vec<f64> = (0..channels)
                        .map(|c| f64::from(element(&first, y, x, c)))
                        .collect();
                    let most = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    let sum: f64 = all.iter().map(|v| (v - most).exp()).sum();
                    let value = all[c] - most - sum.ln();
                    if log {
                        (value, 1e-6 * (1.0 + value.abs()))
                    } else {
                        (value.exp(), value.exp() * 2e-5 + 1e-38)
                    }
                },
            );
        }
    }
}

#[test]
fn responses_are_normalised() {
    let program = Program::default();
    for (channels, parts) in [(1, false), (4, true), (96, false), (520, true)] {
        for (window, beta) in [(1, 0.75), (2, 0.75), (5, 0.75), (4, 1.5), (2000, 0.5)] {
            let first = operand(18, [2, 5], channels, parts);
            let (alpha, bias) = (0.5f32, 1.5f32);
            let size = Size {
                h: 2,
                w: 5,
                channels,
            };
            check(
                &format!("normalisation over {window} {size:?}"),
                size,
                |isa, rows, cols, out| {
                    with_input(&first, &same(&rows), cols, |input| {
                        lrn(
                            isa,
                            window,
                            alpha,
                            beta,
                            bias,
                            input,
                            &no_tail(&program),
                            out,
                        );
                    });
                },
                |y, x, c| {
                    let near = |k: usize| {
                        let (low, high) = ((window - 1) / 2, window / 2);
                        k + low >= c && k <= c + high
                    };
                    let squares: f64 = (0..channels)
                        .filter(|&k| near(k))
                        .map(|k| f64::from(element(&first, y, x, k)).powi(2))
                        .sum();
                    let norm = f64::from(bias) + f64::from(alpha) / window as f64 * squares;
                    let want = f64::from(element(&first, y, x, c)) / norm.powf(f64::from(beta));
                    (want, 1e-6)
                },
            );
        }
    }
}
