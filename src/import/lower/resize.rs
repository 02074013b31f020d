//! `Resize` and `Upsample` of images.

use crate::error::Result;
use crate::graph::{Coordinate, Interp, InterpMode, NearestRound, Op, Window};

use super::emit::Emit;
use super::item::{Call, Lowered};

/// How one axis is resized, but for its lengths.
struct How {
    /// By the rules before operator set 11.
    early: bool,
    mode: InterpMode,
    coordinate: Coordinate,
    antialias: bool,
    exclude_outside: bool,
    cubic_a: f32,
}

pub(super) fn lower(emit: &mut Emit, call: &Call<'_>) -> Lowered {
    let (_, from) = emit.shape(call.data()?);
    let (Ok(from), Some(to)) = (<[u64; 4]>::try_from(from), call.image()) else {
        return Ok(None);
    };
    let Some(how) = how(call) else {
        return Ok(None);
    };
    let Some(scales) = scales(call, from, to)? else {
        return Ok(None);
    };
    if from[..2] != to[..2] || scales[..2] != [1.0, 1.0] {
        return Ok(None);
    }
    let [rows, cols] = [2, 3].map(|axis| how.window(scales[axis], from[axis], to[axis]));
    let data = call.data()?;
    if (&rows, &cols) == (&Window::Same, &Window::Same) {
        return Ok(Some(vec![data.clone()]));
    }
    // a single pixel becomes an image too
    let Some(image) = emit.rows(data)? else {
        return Ok(None);
    };
    let op = Op::Resize { rows, cols };
    let made = emit.strip(call.name(), &call.label(0), op, &image, to)?;
    Ok(Some(vec![made.into()]))
}

fn how(call: &Call<'_>) -> Option<How> {
    let op = call.op();
    let early = op.kind == "Upsample" || op.opset < 11;
    let coordinate = match op.str("coordinate_transformation_mode") {
        _ if early => Coordinate::Asymmetric,
        None | Some("half_pixel") => Coordinate::HalfPixel,
        Some("half_pixel_symmetric") => Coordinate::HalfPixelSymmetric,
        Some("pytorch_half_pixel") => Coordinate::PytorchHalfPixel,
        Some("align_corners") => Coordinate::AlignCorners,
        Some("asymmetric") => Coordinate::Asymmetric,
        Some("tf_half_pixel_for_nn") => Coordinate::TfHalfPixelForNn,
        Some(_) => return None,
    };
    let round = match op.str("nearest_mode") {
        _ if early => NearestRound::Floor,
        None | Some("round_prefer_floor") => NearestRound::RoundPreferFloor,
        Some("round_prefer_ceil") => NearestRound::RoundPreferCeil,
        Some("floor") => NearestRound::Floor,
        Some("ceil") => NearestRound::Ceil,
        Some(_) => return None,
    };
    let mode = match op.str("mode").unwrap_or("nearest") {
        "nearest" => InterpMode::Nearest(round),
        "linear" | "bilinear" => InterpMode::Linear,
        "cubic" => InterpMode::Cubic,
        _ => return None,
    };
    Some(How {
        early,
        mode,
        coordinate,
        antialias: op.int("antialias").unwrap_or(0) != 0,
        exclude_outside: op.int("exclude_outside").unwrap_or(0) != 0,
        cubic_a: op.float("cubic_coeff_a").unwrap_or(-0.75),
    })
}

/// Output over input length of each axis, as the model gives it; `None` where it is not known.
fn scales(call: &Call<'_>, from: [u64; 4], to: [u64; 4]) -> Result<Option<[f32; 4]>> {
    let op = call.op();
    let (scales, sizes) = match op.kind.as_str() {
        "Resize" if op.opset >= 11 => (2, Some(3)),
        _ => (1, None),
    };
    if call.unknown(scales) || sizes.is_some_and(|i| call.unknown(i)) {
        return Ok(None);
    }
    let axes: Vec<usize> = match op.ints("axes") {
        Some(axes) => axes
            .iter()
            .map(|&a| call.axis_of(a, 4))
            .collect::<Result<_>>()?,
        None => vec![0, 1, 2, 3],
    };
    let mut all = [1.0; 4];
    let by_attribute = match op.attrs.get("scales") {
        Some(crate::dense::Attr::Floats(list)) if op.kind == "Upsample" => Some(list.clone()),
        _ => None,
    };
    let given = match by_attribute {
        Some(list) => Some(list),
        None => call.floats(scales)?.filter(|list| !list.is_empty()),
    };
    if let Some(given) = given {
        for (&axis, scale) in axes.iter().zip(given) {
            all[axis] = scale;
        }
        return Ok(Some(all));
    }
    let Some(given) = sizes.map(|i| call.ints(i)).transpose()?.flatten() else {
        return Ok(None);
    };
    let ratios = axes
        .iter()
        .zip(&given)
        .map(|(&a, &size)| size as f32 / from[a] as f32);
    let common = match op.str("keep_aspect_ratio_policy") {
        Some("not_larger") => ratios.reduce(f32::min),
        Some("not_smaller") => ratios.reduce(f32::max),
        _ => None,
    };
    for axis in axes {
        all[axis] = common.unwrap_or(to[axis] as f32 / from[axis] as f32);
    }
    Ok(Some(all))
}

impl How {
    fn window(&self, scale: f32, input: u64, output: u64) -> Window {
        use Coordinate::*;
        use NearestRound::*;
        let mode = match self.mode {
            InterpMode::Nearest(_) if self.early && scale < 1.0 => InterpMode::Nearest(Ceil),
            mode => mode,
        };
        let shifted = self.coordinate == TfHalfPixelForNn;
        if scale == 1.0 && input == output && !shifted {
            return Window::Same;
        }
        let factor = output / input;
        let whole = scale.fract() == 0.0 && scale >= 1.0 && output == input * scale as u64;
        // outputs `factor · i ..` are the ones nearest to `i`
        let repeats = matches!(
            (mode, self.coordinate),
            (InterpMode::Nearest(Floor), Asymmetric)
                | (
                    InterpMode::Nearest(RoundPreferFloor | RoundPreferCeil),
                    HalfPixel | PytorchHalfPixel
                )
        );
        let single = input == 1 && !self.exclude_outside;
        if (whole && repeats) || single {
            return Window::Repeat {
                factor: if single { output } else { factor },
            };
        }
        Window::Interp(Interp {
            mode,
            coordinate: self.coordinate,
            scale,
            input,
            output,
            antialias: self.antialias,
            exclude_outside: self.exclude_outside,
            cubic_a: self.cubic_a,
            roi: [0.0, 1.0],
        })
    }
}
