//! One axis of a window: which input positions an output position reads, with what weight.
//! Written from the formulas in the ONNX specification, one output at a time.

use stripmill::graph::{Border, Coordinate, Interp, InterpMode, NearestRound, Window};

/// Positions (none: the fill value) with their weights.
pub(super) type Reads = Vec<(Option<usize>, f64)>;

/// What each of `output` positions reads of `input` positions.
pub(super) fn reads(window: &Window, input: usize, output: usize) -> Vec<Reads> {
    let one = |i: Option<usize>| vec![(i, 1.0)];
    (0..output)
        .map(|o| match window {
            Window::Same => one((o < input).then_some(o)),
            Window::Repeat { factor } => one(Some(o / *factor as usize)),
            Window::Taps { kernel, .. } => (0..*kernel)
                .map(|k| (tap(window, input, o, k), 1.0))
                .collect(),
            Window::Interp(interp) => {
                assert_eq!((interp.input, interp.output), (input as u64, output as u64));
                interpolate(interp, o)
            }
            Window::Transposed { .. } => panic!("only a convolution is transposed"),
        })
        .collect()
}

fn tap(window: &Window, input: usize, o: usize, k: u64) -> Option<usize> {
    let Window::Taps {
        stride,
        dilation,
        pad,
        border,
        ..
    } = window
    else {
        panic!("not a window of taps")
    };
    let len = input as i64;
    let mut i = o as i64 * *stride as i64 + k as i64 * *dilation as i64 - pad;
    match border {
        Border::Fill => {}
        Border::Edge => i = i.max(0).min(len - 1),
        // Walks back and forth between the first and the last position.
        Border::Reflect => {
            while len > 1 && !(0..len).contains(&i) {
                i = if i < 0 { -i } else { 2 * (len - 1) - i };
            }
            if len == 1 {
                i = 0;
            }
        }
    }
    (0..len).contains(&i).then_some(i as usize)
}

/// Every (input, output, kernel element) that meet in a convolution along one axis.
pub(super) fn meetings(window: &Window, input: usize, output: usize) -> Vec<(usize, usize, usize)> {
    let mut all = Vec::new();
    match window {
        Window::Taps { kernel, .. } => {
            for o in 0..output {
                for k in 0..*kernel {
                    if let Some(i) = tap(window, input, o, k) {
                        all.push((i, o, k as usize));
                    }
                }
            }
        }
        // Each input is spread over the outputs, as the definition of ConvTranspose has it.
        Window::Transposed {
            kernel,
            stride,
            dilation,
            pad,
        } => {
            for i in 0..input {
                for k in 0..*kernel {
                    let o = i as i64 * *stride as i64 + (k * dilation) as i64 - pad;
                    if (0..output as i64).contains(&o) {
                        all.push((i, o as usize, k as usize));
                    }
                }
            }
        }
        other => panic!("a convolution with {other:?}"),
    }
    all
}

fn interpolate(interp: &Interp, o: usize) -> Reads {
    let last = interp.input as i64 - 1;
    let at = |i: i64| Some(i.clamp(0, last) as usize);
    if let InterpMode::Nearest(round) = interp.mode {
        return vec![(at(nearest(round, coordinate_f32(interp, o))), 1.0)];
    }
    let x = coordinate(interp, o);
    let shrink = if interp.antialias {
        f64::from(interp.scale).min(1.0)
    } else {
        1.0
    };
    let a = f64::from(interp.cubic_a);
    let reach = if interp.mode == InterpMode::Linear {
        1.0
    } else {
        2.0
    };
    let filter = |t: f64| {
        let t = t.abs();
        match interp.mode {
            InterpMode::Linear => (1.0 - t).max(0.0),
            _ if t <= 1.0 => ((a + 2.0) * t - (a + 3.0)) * t * t + 1.0,
            _ if t < 2.0 => ((a * t - 5.0 * a) * t + 8.0 * a) * t - 4.0 * a,
            _ => 0.0,
        }
    };
    let low = (x - reach / shrink).floor() as i64;
    let high = (x + reach / shrink).ceil() as i64;
    let excluded = |i: i64| interp.exclude_outside && !(0..=last).contains(&i);
    let taps: Vec<(i64, f64)> = (low..=high)
        .filter(|&i| !excluded(i))
        .map(|i| (i, filter((i as f64 - x) * shrink)))
        .collect();
    let sum: f64 = taps.iter().map(|t| t.1).sum();
    taps.into_iter().map(|(i, w)| (at(i), w / sum)).collect()
}

fn nearest(round: NearestRound, x: f32) -> i64 {
    let (floor, ceil) = (x.floor(), x.ceil());
    let near = match round {
        NearestRound::Floor => floor,
        NearestRound::Ceil => ceil,
        NearestRound::RoundPreferFloor if x - floor <= 0.5 => floor,
        NearestRound::RoundPreferCeil if x - floor < 0.5 => floor,
        _ => ceil,
    };
    near as i64
}

/// Where output `o` falls in the input.
pub fn coordinate(interp: &Interp, o: usize) -> f64 {
    let (x, scale) = (o as f64, f64::from(interp.scale));
    let (input, output) = (interp.input as f64, interp.output as f64);
    let [start, end] = interp.roi.map(f64::from);
    match interp.coordinate {
        Coordinate::HalfPixel => (x + 0.5) / scale - 0.5,
        Coordinate::HalfPixelSymmetric => {
            let adjustment = output / (scale * input);
            input / 2.0 * (1.0 - adjustment) + (x + 0.5) / scale - 0.5
        }
        Coordinate::PytorchHalfPixel if output > 1.0 => (x + 0.5) / scale - 0.5,
        Coordinate::PytorchHalfPixel => 0.0,
        Coordinate::AlignCorners if output > 1.0 => x * (input - 1.0) / (output - 1.0),
        Coordinate::AlignCorners => 0.0,
        Coordinate::Asymmetric => x / scale,
        // ONNX Runtime leaves an axis alone that is not scaled
        Coordinate::TfHalfPixelForNn if scale == 1.0 => x,
        Coordinate::TfHalfPixelForNn => (x + 0.5) / scale,
        Coordinate::TfCropAndResize if output > 1.0 => {
            start * (input - 1.0) + x * (end - start) * (input - 1.0) / (output - 1.0)
        }
        Coordinate::TfCropAndResize => 0.5 * (start + end) * (input - 1.0),
    }
}

/// The same with ONNX Runtime's arithmetic, in which a tie between two positions is decided.
fn coordinate_f32(interp: &Interp, o: usize) -> f32 {
    let (x, scale) = (o as f32, interp.scale);
    let (input, output) = (interp.input as f32, interp.output as f32);
    let [start, end] = interp.roi;
    match interp.coordinate {
        Coordinate::HalfPixel => (x + 0.5) / scale - 0.5,
        Coordinate::HalfPixelSymmetric => {
            let adjustment = output / (scale * input);
            let offset = input / 2.0 * (1.0 - adjustment);
            // its 0.5s are doubles
            (f64::from(offset) + (f64::from(x) + 0.5) / f64::from(scale) - 0.5) as f32
        }
        Coordinate::PytorchHalfPixel if output > 1.0 => (x + 0.5) / scale - 0.5,
        Coordinate::PytorchHalfPixel => 0.0,
        Coordinate::AlignCorners if output > 1.0 => x * (input - 1.0) / (output - 1.0),
        Coordinate::AlignCorners => 0.0,
        Coordinate::Asymmetric => x / scale,
        // ONNX Runtime leaves an axis alone that is not scaled
        Coordinate::TfHalfPixelForNn if scale == 1.0 => x,
        Coordinate::TfHalfPixelForNn => (x + 0.5) / scale,
        Coordinate::TfCropAndResize if output > 1.0 => {
            start * (input - 1.0) + x * (end - start) * (input - 1.0) / (output - 1.0)
        }
        Coordinate::TfCropAndResize => 0.5 * (start + end) * (input - 1.0),
    }
}
