//! Windows against brute force over [`Axis::tap`], for all small parameters.

use super::*;
use crate::dense::{Coordinate, InterpMode, NearestRound};

/// The positions that output `o` reads.
fn reads(axis: &Axis, o: u64) -> impl Iterator<Item = u64> + '_ {
    (0..axis.taps()).filter_map(move |k| axis.tap(o, k))
}

/// Where needs and tail of output `o` must be no more careful than its own taps ask: both ends
/// of its window are inside the image.
fn interior(axis: &Axis, o: u64) -> bool {
    let ends = [0, axis.taps() - 1].map(|k| axis.position(o, k));
    ends.iter()
        .all(|i| i.is_some_and(|i| (0..axis.input as i64).contains(&i)))
}

fn check(axis: &Axis) {
    // what outputs 0..=o need, and the first position that outputs o.. read, by brute force
    let mut needs = Vec::new();
    let mut most = 0;
    for o in 0..axis.output {
        most = reads(axis, o).map(|i| i + 1).max().unwrap_or(0).max(most);
        needs.push(most);
    }
    let mut tails = vec![axis.input; axis.output as usize + 1];
    for o in (0..axis.output as usize).rev() {
        tails[o] = reads(axis, o as u64)
            .min()
            .unwrap_or(axis.input)
            .min(tails[o + 1]);
    }
    let mut before = (0, 0);
    for o in 0..axis.output {
        let (need, tail) = (axis.needs(o), axis.tail(o));
        let (least, first) = (needs[o as usize], tails[o as usize]);
        assert!(
            least <= need && need <= axis.input,
            "needs({o}) = {need} of {axis:?}"
        );
        assert!(
            tail <= first,
            "tail({o}) = {tail}, not {first}, of {axis:?}"
        );
        assert!(
            before <= (need, tail) && before.1 <= tail,
            "falls at {o}: {axis:?}"
        );
        before = (need, tail);
        if interior(axis, o) {
            assert_eq!(need, least, "needs({o}) of {axis:?}");
        }
        // a transposed convolution's last kernel row meets `tail` at a later output
        if interior(axis, o) && !matches!(axis.window, Window::Transposed { .. }) {
            assert_eq!(tail, first, "tail({o}) of {axis:?}");
        }
    }
    assert_eq!(axis.tail(axis.output), axis.input, "{axis:?}");
    let mut ready = 0;
    for front in 0..=axis.input {
        let all = if front == axis.input {
            axis.output
        } else {
            (0..axis.output).filter(|&o| axis.needs(o) <= front).count() as u64
        };
        for most in [all / 2, all, axis.output, axis.output + 3] {
            let want = all.min(most).max(ready);
            assert_eq!(
                axis.ready(front, ready, most),
                want,
                "ready({front}) of {axis:?}"
            );
            assert_eq!(
                axis.ready(front, 0, most),
                all.min(most),
                "ready({front}) of {axis:?}"
            );
        }
        ready = all;
    }
    repeats(axis);
}

/// Among the outputs that repeat, all that is asked of one follows from another; and outputs that are
/// away from both borders do repeat.
fn repeats(axis: &Axis) {
    let all = |o: u64| {
        let taps = (0..axis.taps()).map(move |k| axis.tap(o, k));
        taps.chain([Some(axis.tail(o)), Some(axis.needs(o))])
    };
    let mut most = 0..0;
    for (out, by) in (1..7).flat_map(|out| (0..7).map(move |by| (out, by))) {
        let range = axis.repeats(out, by);
        for o in range.start..range.end.saturating_sub(out) {
            let moved = all(o).map(|i| i.map(|i| i + by));
            assert!(all(o + out).eq(moved), "{out} from {o}, {by} of {axis:?}");
        }
        if !range.is_empty() {
            most = range;
        }
    }
    let mirrored = axis.border() == Border::Reflect;
    if !mirrored && !matches!(axis.window, Window::Interp(_)) {
        let inside = (0..axis.output).filter(|&o| interior(axis, o));
        for o in inside {
            assert!(most.contains(&o), "{o} is not in {most:?} of {axis:?}");
        }
    }
}

#[test]
fn windows_of_taps_against_brute_force() {
    for border in [Border::Fill, Border::Edge, Border::Reflect] {
        for kernel in 1..5 {
            for stride in 1..4 {
                for dilation in 1..4 {
                    for pad in -3i64..5 {
                        for input in [1u64, 2, 3, 5, 8, 13] {
                            for after in -2i64..5 {
                                let reach = (dilation * (kernel - 1) + 1) as i64;
                                let free = input as i64 + pad + after - reach;
                                let wraps = pad.max(after) >= input as i64;
                                if free < 0 || border == Border::Reflect && wraps {
                                    continue;
                                }
                                let window = Window::Taps {
                                    kernel,
                                    stride,
                                    dilation,
                                    pad,
                                    border,
                                };
                                let output = free as u64 / stride + 1;
                                check(&Axis {
                                    window,
                                    input,
                                    output,
                                });
                            }
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn transposed_windows_against_brute_force() {
    for kernel in 1..6 {
        for stride in 1..5 {
            for dilation in 1..3 {
                for pad in 0..4 {
                    for input in [1u64, 2, 3, 7] {
                        for more in 0..stride {
                            let reach = dilation * (kernel - 1) + 1;
                            let full = (input - 1) * stride + reach + more;
                            let Some(output) = full.checked_sub(2 * pad as u64) else {
                                continue;
                            };
                            let window = Window::Transposed {
                                kernel,
                                stride,
                                dilation,
                                pad,
                            };
                            check(&Axis {
                                window,
                                input,
                                output,
                            });
                        }
                    }
                }
            }
        }
    }
}

/// The first row that an output from the front on reads is the tail, where it is made at all.
#[test]
fn tails_of_transposed_windows_are_tight() {
    let window = Window::Transposed {
        kernel: 4,
        stride: 2,
        dilation: 1,
        pad: 1,
    };
    let axis = Axis {
        window,
        input: 9,
        output: 18,
    };
    for o in 0..15 {
        let first = (o..18).flat_map(|o| reads(&axis, o)).min();
        assert_eq!(Some(axis.tail(o)), first, "at {o}");
    }
}

#[test]
fn even_and_repeated_windows_against_brute_force() {
    for len in 1..6 {
        check(&Axis {
            window: Window::Same,
            input: len,
            output: len,
        });
        for factor in 1..5 {
            check(&Axis {
                window: Window::Repeat { factor },
                input: len,
                output: len * factor,
            });
        }
    }
}

#[test]
fn interpolations_against_brute_force() {
    use Coordinate::*;
    let modes = [
        InterpMode::Nearest(NearestRound::RoundPreferFloor),
        InterpMode::Nearest(NearestRound::RoundPreferCeil),
        InterpMode::Nearest(NearestRound::Floor),
        InterpMode::Nearest(NearestRound::Ceil),
        InterpMode::Linear,
        InterpMode::Cubic,
    ];
    let coordinates = [
        HalfPixel,
        HalfPixelSymmetric,
        PytorchHalfPixel,
        AlignCorners,
        Asymmetric,
        TfHalfPixelForNn,
        TfCropAndResize,
    ];
    for mode in modes {
        for coordinate in coordinates {
            for (input, output) in (1..10).flat_map(|i| (1..14).map(move |o| (i, o))) {
                for (antialias, exclude_outside) in [(false, false), (true, false), (true, true)] {
                    let interp = Interp {
                        mode,
                        coordinate,
                        scale: output as f32 / input as f32,
                        input,
                        output,
                        antialias,
                        exclude_outside,
                        cubic_a: -0.75,
                        roi: [0.125, 0.75],
                    };
                    for o in 0..output {
                        let taps: Vec<_> = (0..interp.taps()).map(|k| interp.tap(o, k)).collect();
                        assert!(
                            taps.iter().all(|t| t.0 < input && t.1.is_finite()),
                            "{interp:?}"
                        );
                        assert!(taps.is_sorted_by_key(|t| t.0), "{interp:?}");
                        let sum: f32 = taps.iter().map(|t| t.1).sum();
                        assert!((sum - 1.0).abs() < 1e-5, "{sum} at {o} of {interp:?}");
                    }
                    check(&Axis {
                        window: Window::Interp(interp),
                        input,
                        output,
                    });
                }
            }
        }
    }
}
