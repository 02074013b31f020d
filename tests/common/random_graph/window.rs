//! Random windows along both axes, with the lengths they give.

use stripmill::graph::{Border, Coordinate, Interp, InterpMode, NearestRound, PoolKind, Window};

use super::super::reference::coordinate;
use super::super::rng::Rng;
use super::Rows;

pub(super) const BORDERS: [Border; 4] = [Border::Fill, Border::Fill, Border::Edge, Border::Reflect];

/// A window with the length and scale it makes of an input's.
pub(super) struct Side {
    pub(super) window: Window,
    output: u64,
    factor: f64,
}

/// What a window of taps is for.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Use {
    Conv,
    Pad,
}

/// What rows and columns make of `from`.
pub(super) fn to(from: &Rows, c: u64, rows: &Side, cols: &Side) -> Rows {
    Rows {
        c,
        h: rows.output,
        w: cols.output,
        scale: [from.scale[0] * rows.factor, from.scale[1] * cols.factor],
        ..from.clone()
    }
}

/// The window of a 1×1 convolution, twice.
pub(super) fn point() -> [Window; 2] {
    [shift(0, Border::Fill), shift(0, Border::Fill)]
}

/// One tap, `skip` positions on.
pub(super) fn shift(skip: i64, border: Border) -> Window {
    Window::Taps {
        kernel: 1,
        stride: 1,
        dilation: 1,
        pad: -skip,
        border,
    }
}

pub(super) fn taps(rng: &mut Rng, from: &Rows, of: Use) -> Option<[Side; 2]> {
    let border = if of == Use::Pad || rng.chance(0.2) {
        rng.one(&BORDERS)
    } else {
        Border::Fill
    };
    let square = rng.chance(0.7);
    let side = |rng: &mut Rng, len: u64| {
        let (kernel, stride, dilation) = match of {
            Use::Conv => (
                rng.one(&[1, 2, 3, 3, 3, 3, 4, 5, 7]),
                rng.one(&[1, 1, 1, 1, 2, 2, 3]),
                rng.one(&[1, 1, 1, 2, 3]),
            ),
            Use::Pad => (1, rng.one(&[1, 1, 1, 1, 2, 3]), 1),
        };
        let reach = (kernel - 1) * dilation;
        let pads = match of {
            Use::Conv if rng.chance(0.6) => [reach / 2, reach - reach / 2].map(|p| p as i64),
            Use::Conv if rng.chance(0.5) => [0, 0],
            Use::Conv => [0; 2].map(|_| rng.within(-1, reach as i64 + 1)),
            Use::Pad => [0; 2].map(|_| rng.within(-3, 4)),
        };
        // A reflection reaches at most the other end.
        let most = match border {
            Border::Reflect => len as i64 - 1,
            _ => i64::MAX,
        };
        let [before, after] = pads.map(|p| p.min(most));
        let room = len as i64 + before + after - reach as i64 - 1;
        let output = (room >= 0).then(|| room as u64 / stride + 1)?;
        Some(Side {
            window: Window::Taps {
                kernel,
                stride,
                dilation,
                pad: before,
                border,
            },
            output,
            factor: 1.0 / stride as f64,
        })
    };
    let mut again = rng.clone();
    let rows = side(rng, from.h)?;
    let cols = side(if square { &mut again } else { rng }, from.w)?;
    Some([rows, cols])
}

pub(super) fn transposed(rng: &mut Rng, from: &Rows) -> Option<[Side; 2]> {
    let square = rng.chance(0.7);
    let side = |rng: &mut Rng, len: u64| {
        let kernel = rng.one(&[1, 2, 2, 3, 4, 4, 5]);
        let stride = rng.one(&[1, 2, 2, 2, 3]);
        let dilation = rng.one(&[1, 1, 1, 2]);
        let more = rng.below(stride.max(dilation)) as i64;
        let reach = (kernel - 1) * dilation;
        let pads = if rng.chance(0.6) {
            [reach.saturating_sub(stride - 1) as i64 / 2; 2]
        } else {
            [0; 2].map(|_| rng.within(0, reach as i64))
        };
        let output = ((len - 1) * stride + reach) as i64 + 1 + more - pads[0] - pads[1];
        (output > 0).then(|| Side {
            window: Window::Transposed {
                kernel,
                stride,
                dilation,
                pad: pads[0],
            },
            output: output as u64,
            factor: stride as f64,
        })
    };
    let mut again = rng.clone();
    let rows = side(rng, from.h)?;
    let cols = side(if square { &mut again } else { rng }, from.w)?;
    Some([rows, cols])
}

pub(super) fn pool(rng: &mut Rng, from: &Rows) -> Option<(PoolKind, [Side; 2])> {
    let kind = rng.below(3);
    let ceil = rng.chance(0.4);
    let square = rng.chance(0.7);
    let side = |rng: &mut Rng, len: u64| {
        let kernel = rng.one(&[2, 2, 3, 3, 4, 5]);
        let stride = rng.one(&[1, 2, 2, 2, 3]);
        let dilation = rng.one(&[1, 1, 1, 2]);
        let reach = (kernel - 1) * dilation;
        // Padding less than the kernel, so that no window is all padding.
        let pads = [0; 2].map(|_| {
            if rng.chance(0.5) {
                0
            } else {
                rng.below(kernel)
            }
        });
        let room = (len + pads[0] + pads[1]).checked_sub(reach + 1)?;
        let mut output = if ceil {
            room.div_ceil(stride)
        } else {
            room / stride
        } + 1;
        // The last window starts inside the image or the padding before it.
        while (output - 1) * stride >= len + pads[0] {
            output -= 1;
        }
        let some_inside = (0..output).all(|o| {
            let taps = (0..kernel).map(|k| o * stride + k * dilation);
            taps.clone().any(|i| (pads[0]..pads[0] + len).contains(&i))
        });
        some_inside.then(|| {
            let window = Window::Taps {
                kernel,
                stride,
                dilation,
                pad: pads[0] as i64,
                border: Border::Fill,
            };
            let factor = 1.0 / stride as f64;
            let side = Side {
                window,
                output,
                factor,
            };
            (side, pads[1])
        })
    };
    let mut again = rng.clone();
    let (rows, below) = side(rng, from.h)?;
    let (cols, right) = side(if square { &mut again } else { rng }, from.w)?;
    let kind = match kind {
        0 => PoolKind::Max,
        1 => PoolKind::Mean,
        _ => PoolKind::MeanPadded {
            after: [below, right],
        },
    };
    Some((kind, [rows, cols]))
}

/// A resize by random factors.
pub(super) fn resize(rng: &mut Rng, from: &Rows, fractions: bool) -> [Side; 2] {
    let all: &[f32] = if fractions {
        &[2.0, 2.0, 3.0, 0.5, 0.37, 0.75, 1.3, 1.5, 2.7, 0.9]
    } else {
        &[2.0, 2.0, 3.0, 0.5]
    };
    let factors = [rng.one(all), rng.one(all)];
    let factors = if rng.chance(0.7) {
        [factors[0]; 2]
    } else {
        factors
    };
    let kind = Kind::random(rng);
    let axis = rng.below(8);
    kind.sides(|kind, i| {
        let (factor, len) = (factors[i], [from.h, from.w][i]);
        if axis == i as u64 {
            return Side {
                window: Window::Same,
                output: len,
                factor: 1.0,
            };
        }
        if axis >= 5 && factor.fract() == 0.0 {
            return Side {
                window: Window::Repeat {
                    factor: factor as u64,
                },
                output: len * factor as u64,
                factor: f64::from(factor),
            };
        }
        let output = (len as f32 * factor).floor() as u64;
        kind.side(len, output, factor, f64::from(factor))
    })
}

/// A resize to another tensor's size.
pub(super) fn resize_to(rng: &mut Rng, from: &Rows, to: &Rows) -> [Side; 2] {
    Kind::random(rng).sides(|kind, i| {
        let (len, output) = ([from.h, from.w][i], [to.h, to.w][i]);
        let factor = to.scale[i] / from.scale[i];
        kind.side(len, output, output as f32 / len as f32, factor)
    })
}

/// What both axes of a resize share.
struct Kind {
    mode: InterpMode,
    coordinate: Coordinate,
    antialias: bool,
    exclude_outside: bool,
    cubic_a: f32,
    roi: [f32; 2],
}

impl Kind {
    fn random(rng: &mut Rng) -> Self {
        use Coordinate::*;
        let round = rng.one(&[
            NearestRound::RoundPreferFloor,
            NearestRound::RoundPreferCeil,
            NearestRound::Floor,
            NearestRound::Ceil,
        ]);
        let mode = rng.one(&[
            InterpMode::Nearest(round),
            InterpMode::Linear,
            InterpMode::Linear,
            InterpMode::Cubic,
        ]);
        let nearest = matches!(mode, InterpMode::Nearest(_));
        let coordinate = rng.one(&[
            HalfPixel,
            HalfPixel,
            Asymmetric,
            AlignCorners,
            PytorchHalfPixel,
            HalfPixelSymmetric,
            if nearest { TfHalfPixelForNn } else { HalfPixel },
            TfCropAndResize,
        ]);
        let start = rng.one(&[0.0, 0.25, 0.4]);
        Kind {
            mode,
            coordinate,
            antialias: !nearest && rng.chance(0.25),
            exclude_outside: mode == InterpMode::Cubic && rng.chance(0.3),
            cubic_a: rng.one(&[-0.75, -0.5]),
            roi: [start, start + 0.5],
        }
    }

    /// Both axes; linear where the nearest position hangs on how a coordinate is rounded.
    fn sides(mut self, side: impl Fn(&Kind, usize) -> Side) -> [Side; 2] {
        let sides = [0, 1].map(|i| side(&self, i));
        let doubtful = |side: &Side| match &side.window {
            Window::Interp(interp) => doubtful(interp),
            _ => false,
        };
        if !sides.iter().any(doubtful) {
            return sides;
        }
        self.mode = InterpMode::Linear;
        if self.coordinate == Coordinate::TfHalfPixelForNn {
            self.coordinate = Coordinate::HalfPixel;
        }
        [0, 1].map(|i| side(&self, i))
    }

    fn side(&self, input: u64, output: u64, scale: f32, factor: f64) -> Side {
        let window = Window::Interp(Interp {
            mode: self.mode,
            coordinate: self.coordinate,
            scale,
            input,
            output,
            antialias: self.antialias,
            exclude_outside: self.exclude_outside,
            cubic_a: self.cubic_a,
            roi: self.roi,
        });
        Side {
            window,
            output,
            factor,
        }
    }
}

/// Whether an output of a nearest resize falls so near the border between two positions that
/// rounding decides, and the arithmetic is not exact.
fn doubtful(interp: &Interp) -> bool {
    use Coordinate::*;
    let InterpMode::Nearest(round) = interp.mode else {
        return false;
    };
    let simple = [HalfPixel, Asymmetric, PytorchHalfPixel, TfHalfPixelForNn];
    let exact = simple.contains(&interp.coordinate) && (1.0 / interp.scale * 8.0).fract() == 0.0;
    let border = match round {
        NearestRound::Floor | NearestRound::Ceil => 0.0,
        _ => 0.5,
    };
    let near = |o: u64| {
        let x = coordinate(interp, o as usize) - border;
        (x - x.round()).abs() < 1e-3
    };
    !exact && (0..interp.output).any(near)
}
