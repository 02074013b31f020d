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
        unimplemented!()
    }

    /// Position and weight of tap `k` of output `o`. Positions lie inside the input, do not fall
    /// from a tap to the next, and neither the first nor the last tap's falls as `o` grows.
    pub fn tap(&self, o: u64, k: u64) -> (u64, f32) {
        let _ = (o, k);
        unimplemented!()
    }
}
