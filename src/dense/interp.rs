//! Interpolation along one axis: which positions an output of a resize reads, with what weights.
//!
//! The formulas are ONNX's `Resize` (opset 19), in f32 arithmetic as in ONNX Runtime, so that ties
//! between two positions fall the same way.

use serde::Serialize;

/// One axis of an ONNX `Resize`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Interp {
    /// Nearest, linear or cubic.
    pub mode: InterpMode,
    /// Where an output's centre falls.
    pub coordinate: Coordinate,
    /// Output over input length.
    pub scale: f32,
    /// Input length in positions.
    pub input: u64,
    /// Output length in positions.
    pub output: u64,
    /// Widen the filter by `1/scale` when shrinking.
    pub antialias: bool,
    /// Cubic: taps outside the image have weight 0 and the rest is scaled up.
    pub exclude_outside: bool,
    /// Cubic: the coefficient `a`.
    pub cubic_a: f32,
    /// `tf_crop_and_resize`: start and end of the region, normalised.
    pub roi: [f32; 2],
}

/// The filter of an [`Interp`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum InterpMode {
    /// The nearest input, rounding ties as told.
    Nearest(NearestRound),
    /// Two taps.
    Linear,
    /// Four taps.
    Cubic,
}

/// ONNX `nearest_mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the names are ONNX's")]
pub enum NearestRound {
    RoundPreferFloor,
    RoundPreferCeil,
    Floor,
    Ceil,
}

/// ONNX `coordinate_transformation_mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the names are ONNX's")]
pub enum Coordinate {
    HalfPixel,
    HalfPixelSymmetric,
    PytorchHalfPixel,
    AlignCorners,
    Asymmetric,
    TfHalfPixelForNn,
    TfCropAndResize,
}

impl Interp {
    /// Number of taps of every output. Outputs that need fewer repeat a position with weight 0.
    pub fn taps(&self) -> u64 {
        match self.mode {
            InterpMode::Nearest(_) => 1,
            InterpMode::Linear | InterpMode::Cubic => (2.0 * self.reach()).ceil() as u64,
        }
    }

    /// Position and weight of tap `k` of output `o`. Positions lie inside the input, do not fall
    /// from a tap to the next, and neither the first nor the last tap's falls as `o` grows.
    pub fn tap(&self, o: u64, k: u64) -> (u64, f32) {
        let x = self.coordinate(o);
        let last = self.input as i64 - 1;
        let inside = |i: i64| i.clamp(0, last.max(0)) as u64;
        if let InterpMode::Nearest(round) = self.mode {
            return (inside(nearest(x, round)), 1.0);
        }
        let first = (x - self.reach()).floor() as i64 + 1;
        let weight = |i: i64| {
            let counts = !self.exclude_outside || (0..=last).contains(&i);
            if counts {
                self.filter((i as f32 - x) * self.squeeze())
            } else {
                0.0
            }
        };
        let i = first + k as i64;
        let mut w = weight(i);
        if self.exclude_outside || self.squeeze() < 1.0 {
            w /= (first..first + self.taps() as i64).map(weight).sum::<f32>();
        }
        (inside(i), w)
    }

    /// Whether every output is the input of its position.
    pub fn is_identity(&self) -> bool {
        // at this scale no mode shifts a coordinate
        self.scale == 1.0
            && self.input == self.output
            && self.coordinate != Coordinate::TfCropAndResize
    }

    /// Whether output `o` falls outside the input, where `tf_crop_and_resize` extrapolates.
    pub fn extrapolates(&self, o: u64) -> bool {
        let inside = 0.0..=self.input as f32 - 1.0;
        self.coordinate == Coordinate::TfCropAndResize && !inside.contains(&self.coordinate(o))
    }

    /// How much the filter is widened: below 1 where antialiasing shrinks.
    fn squeeze(&self) -> f32 {
        if self.antialias {
            self.scale.min(1.0)
        } else {
            1.0
        }
    }

    /// Input positions on each side of an output's centre that its filter covers.
    fn reach(&self) -> f32 {
        let filter = if self.mode == InterpMode::Cubic {
            2.0
        } else {
            1.0
        };
        filter / self.squeeze()
    }

    /// The filter at distance `t`: a triangle, or Keys' cubic (1981) with coefficient `a`.
    fn filter(&self, t: f32) -> f32 {
        let (t, a) = (t.abs(), self.cubic_a);
        match self.mode {
            InterpMode::Cubic if t <= 1.0 => ((a + 2.0) * t - (a + 3.0)) * t * t + 1.0,
            InterpMode::Cubic if t < 2.0 => ((a * t - 5.0 * a) * t + 8.0 * a) * t - 4.0 * a,
            InterpMode::Cubic => 0.0,
            _ => (1.0 - t).max(0.0),
        }
    }

    /// Where the centre of output `o` falls, in input positions.
    fn coordinate(&self, o: u64) -> f32 {
        let (x, scale, input, output) =
            (o as f32, self.scale, self.input as f32, self.output as f32);
        let half_pixel = (x + 0.5) / scale - 0.5;
        if scale == 1.0 && self.coordinate != Coordinate::TfCropAndResize {
            // as it is, even where a mode would shift it by half a position
            return x;
        }
        match self.coordinate {
            Coordinate::HalfPixel => half_pixel,
            Coordinate::HalfPixelSymmetric => {
                // the output's length in unrounded positions is `scale · input`
                let adjustment = output / (scale * input);
                let offset = input / 2.0 * (1.0 - adjustment);
                // ONNX Runtime adds these up in f64
                let x = (f64::from(x) + 0.5) / f64::from(scale);
                (f64::from(offset) + x - 0.5) as f32
            }
            Coordinate::PytorchHalfPixel => {
                if self.output > 1 {
                    half_pixel
                } else {
                    0.0
                }
            }
            Coordinate::AlignCorners => {
                if self.output > 1 {
                    x * (input - 1.0) / (output - 1.0)
                } else {
                    0.0
                }
            }
            Coordinate::Asymmetric => x / scale,
            Coordinate::TfHalfPixelForNn => (x + 0.5) / scale,
            Coordinate::TfCropAndResize => {
                let [start, end] = self.roi;
                if self.output > 1 {
                    start * (input - 1.0) + x * (end - start) * (input - 1.0) / (output - 1.0)
                } else {
                    0.5 * (start + end) * (input - 1.0)
                }
            }
        }
    }
}

/// How far from the middle between two positions is still a tie: what rounding the coordinate moves it.
const TIE: f32 = 1e-6;

/// The position nearest to `x`.
fn nearest(x: f32, round: NearestRound) -> i64 {
    let part = x - x.floor();
    let up = match round {
        NearestRound::Floor => false,
        NearestRound::Ceil => part > 0.0,
        NearestRound::RoundPreferFloor => part > 0.5 + TIE,
        NearestRound::RoundPreferCeil => part >= 0.5 - TIE,
    };
    x.floor() as i64 + i64::from(up)
}

#[cfg(test)]
mod tests;
