//! `Resize` and `Upsample` of images.

use crate::dense;
use crate::graph::{Coordinate, Interp, InterpMode, NearestRound, Op, Window};

use super::emit::Emit;
use super::item::{Call, Lowered};

pub(super) fn lower(emit: &mut Emit, call: &Call<'_>) -> Lowered {
    let Some(to) = call.image() else {
        return Ok(None);
    };
    let axes = emit.with_facts(&call.args, |facts| dense::resizes(call.op(), facts))?;
    let Ok([batch, channels, rows, cols]) = <[Interp; 4]>::try_from(axes) else {
        return Ok(None);
    };
    let crops = |axis: &Interp| axis.coordinate == Coordinate::TfCropAndResize;
    let same = |axis: &Interp| axis.is_identity();
    if !(same(&batch) && same(&channels)) || crops(&rows) || crops(&cols) {
        return Ok(None);
    }
    let data = call.data()?;
    let [rows, cols] = [rows, cols].map(window);
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

/// The window of an axis, the simplest that reads the same.
fn window(axis: Interp) -> Window {
    use Coordinate::*;
    use NearestRound::*;
    if axis.is_identity() {
        return Window::Same;
    }
    let (scale, input, output) = (axis.scale, axis.input, axis.output);
    let whole = scale.fract() == 0.0 && scale >= 1.0 && output == input * scale as u64;
    // outputs `factor · i ..` are the ones nearest to `i`
    let repeats = matches!(
        (axis.mode, axis.coordinate),
        (InterpMode::Nearest(Floor), Asymmetric)
            | (
                InterpMode::Nearest(RoundPreferFloor | RoundPreferCeil),
                HalfPixel | PytorchHalfPixel
            )
    );
    if input == 1 && !axis.exclude_outside {
        return Window::Repeat { factor: output };
    }
    if whole && repeats {
        return Window::Repeat {
            factor: output / input,
        };
    }
    Window::Interp(axis)
}
