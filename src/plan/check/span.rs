//! Which input positions some outputs read, by the taps themselves.

use std::ops::Range;

use crate::graph::{Axis, Window};

/// An axis, with the outputs for which two taps say all.
///
/// ```text
///  outputs   0  1 [2  3  4  5  6  7] 8  9       inside: every tap falls into the input, and no tap
///            └┬─┘  └───────┬──────┘  └┬─┘       falls before one of an earlier output or tap
///         tap by tap  first tap of   tap by tap
///                     the first to
///                     last tap of the last
/// ```
pub(super) struct Span<'a> {
    axis: &'a Axis,
    taps: u64,
    inside: Range<u64>,
}

impl<'a> Span<'a> {
    pub(super) fn new(axis: &'a Axis) -> Self {
        let taps = axis.taps();
        // the taps of a transposed convolution go backwards
        let inside = if taps == 0 || matches!(axis.window, Window::Transposed { .. }) {
            0..0
        } else {
            let at = |o: u64, k: u64| axis.position(o, k).unwrap_or(-1);
            let start = first(axis.output, |o| at(o, 0) >= 0);
            let end = first(axis.output, |o| at(o, taps - 1) >= axis.input as i64);
            start..end.max(start)
        };
        Span { axis, taps, inside }
    }

    /// The least range of input positions that holds all that outputs `out` read; `None` where they
    /// read nothing but padding.
    pub(super) fn of(&self, out: &Range<u64>) -> Option<Range<u64>> {
        let (mut start, mut end) = (u64::MAX, 0);
        let mut see = |o: u64, taps: Range<u64>| {
            for i in taps.filter_map(|k| self.axis.tap(o, k)) {
                start = start.min(i);
                end = end.max(i + 1);
            }
        };
        let inside = out.start.max(self.inside.start)..out.end.min(self.inside.end);
        if inside.is_empty() {
            out.clone().for_each(|o| see(o, 0..self.taps));
        } else {
            (out.start..inside.start).for_each(|o| see(o, 0..self.taps));
            see(inside.start, 0..1);
            see(inside.end - 1, self.taps - 1..self.taps);
            (inside.end..out.end).for_each(|o| see(o, 0..self.taps));
        }
        (start < end).then_some(start..end)
    }
}

/// The first of `0..end` for which `holds`, which stays true once it is; `end` where it never is.
fn first(end: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, end);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Border, Coordinate, Interp, InterpMode, NearestRound};

    /// Every range of outputs of windows of every kind, against all taps of each output.
    #[test]
    fn spans_are_what_taps_read() {
        let mut spans = 0;
        for axis in axes() {
            let span = Span::new(&axis);
            for start in 0..axis.output {
                for end in start..=axis.output {
                    let reads = (start..end).flat_map(|o| (0..axis.taps()).map(move |k| (o, k)));
                    let reads = reads.filter_map(|(o, k)| axis.tap(o, k));
                    let (low, high) = (reads.clone().min(), reads.max());
                    let expected = low.zip(high).map(|(low, high)| low..high + 1);
                    assert_eq!(
                        span.of(&(start..end)),
                        expected,
                        "{axis:?}, outputs {start}..{end}"
                    );
                    spans += 1;
                }
            }
        }
        assert!(spans > 100_000);
    }

    fn axes() -> Vec<Axis> {
        let mut axes = Vec::new();
        for (input, output) in [(1, 1), (1, 7), (2, 5), (9, 9), (9, 4), (9, 18), (12, 20)] {
            let mut add = |window| {
                axes.push(Axis {
                    window,
                    input,
                    output,
                })
            };
            add(Window::Repeat {
                factor: output.div_ceil(input),
            });
            for (kernel, stride, dilation) in [
                (1, 1, 1),
                (1, 3, 1),
                (2, 2, 1),
                (3, 1, 1),
                (3, 2, 1),
                (3, 1, 4),
                (5, 3, 2),
            ] {
                for pad in -2..=4 {
                    for border in [Border::Fill, Border::Edge, Border::Reflect] {
                        add(Window::Taps {
                            kernel,
                            stride,
                            dilation,
                            pad,
                            border,
                        });
                    }
                    add(Window::Transposed {
                        kernel,
                        stride,
                        dilation,
                        pad,
                    });
                }
            }
            let round = InterpMode::Nearest(NearestRound::RoundPreferFloor);
            for mode in [round, InterpMode::Linear, InterpMode::Cubic] {
                for coordinate in [
                    Coordinate::HalfPixel,
                    Coordinate::AlignCorners,
                    Coordinate::Asymmetric,
                ] {
                    for antialias in [false, true] {
                        let scale = output as f32 / input as f32;
                        let (exclude_outside, cubic_a, roi) = (false, -0.75, [0.0, 1.0]);
                        add(Window::Interp(Interp {
                            mode,
                            coordinate,
                            scale,
                            input,
                            output,
                            antialias,
                            exclude_outside,
                            cubic_a,
                            roi,
                        }));
                    }
                }
            }
        }
        axes.push(Axis {
            window: Window::Same,
            input: 30,
            output: 30,
        });
        axes
    }
}
