//! `Resize` and `Upsample`: every axis has taps of its own ([`Interp`]), and an output element is the
//! sum over their products.

use super::args::{Element, Inputs, Ready, bad, ensure, for_type, unsupported};
use super::movement::lengths;
use super::shape::{self, strides};
use super::{Attr, Coordinate, DType, Interp, InterpMode, NearestRound, Op};
use crate::error::Result;

/// Whether the rules before operator set 11 hold: one coordinate mode, and nearest elements that lie
/// outward.
fn early(op: &Op) -> bool {
    op.kind == "Upsample" || op.opset < 11
}

/// An axis as `op` asks, of which only the lengths and the scale are still to come.
fn like(op: &Op) -> Result<Interp> {
    let round = match op.str("nearest_mode").unwrap_or("round_prefer_floor") {
        "round_prefer_floor" => NearestRound::RoundPreferFloor,
        "round_prefer_ceil" => NearestRound::RoundPreferCeil,
        "floor" => NearestRound::Floor,
        "ceil" => NearestRound::Ceil,
        other => return bad(format!("nearest_mode {other}")),
    };
    let mode = match op.str("mode").unwrap_or("nearest") {
        "nearest" => InterpMode::Nearest(round),
        "linear" | "bilinear" => InterpMode::Linear,
        "cubic" => InterpMode::Cubic,
        other => return unsupported(format!("mode {other}")),
    };
    let name = op.str("coordinate_transformation_mode");
    let coordinate = match name.unwrap_or("half_pixel") {
        _ if early(op) => Coordinate::Asymmetric,
        "half_pixel" => Coordinate::HalfPixel,
        "half_pixel_symmetric" => Coordinate::HalfPixelSymmetric,
        "pytorch_half_pixel" => Coordinate::PytorchHalfPixel,
        "align_corners" => Coordinate::AlignCorners,
        "asymmetric" => Coordinate::Asymmetric,
        "tf_half_pixel_for_nn" => Coordinate::TfHalfPixelForNn,
        "tf_crop_and_resize" => Coordinate::TfCropAndResize,
        other => return bad(format!("coordinate_transformation_mode {other}")),
    };
    let flag = |name| op.int(name).unwrap_or(0) != 0;
    Ok(Interp {
        mode,
        coordinate,
        scale: 1.0,
        input: 0,
        output: 0,
        antialias: flag("antialias"),
        exclude_outside: flag("exclude_outside"),
        cubic_a: op.float("cubic_coeff_a").unwrap_or(-0.75),
        roi: [0.0, 1.0],
    })
}

/// `interp` over `input` elements at `scale`, its output as long as `round` makes of that product.
fn scaled(interp: &Interp, input: u64, scale: f32, round: fn(f32) -> f32) -> Result<Interp> {
    let exact = scale * input as f32;
    ensure(scale > 0.0 && exact < (1u64 << 40) as f32, || {
        format!("a length of {input} is scaled by {scale}")
    })?;
    Ok(Interp {
        input,
        output: round(exact) as u64,
        scale,
        ..interp.clone()
    })
}

/// `interp` from `input` to `output` elements.
fn sized(interp: &Interp, input: u64, output: u64) -> Result<Interp> {
    ensure(input > 0 || output == 0, || {
        "an empty axis is resized".into()
    })?;
    let scale = if input == output {
        1.0
    } else {
        output as f32 / input as f32
    };
    Ok(Interp {
        input,
        output,
        scale,
        ..interp.clone()
    })
}

/// The axes of `Resize` and `Upsample`, wherever the operator set keeps scales and sizes.
pub(super) fn axes(op: &Op, inputs: &Inputs<'_>) -> Result<Vec<Interp>> {
    let x = inputs.get(0)?;
    let rank = x.dims.len();
    let given = |i: usize| inputs.opt(i).filter(|input| input.len() > 0);
    let (roi, scales, sizes) = if early(op) {
        (None, given(1), None)
    } else {
        (given(1), given(2), given(3))
    };
    let which = match op.ints("axes") {
        Some(list) => shape::axes(list, rank)?,
        None => (0..rank).collect(),
    };
    let n = which.len();
    let scales = match op.attrs.get("scales") {
        Some(Attr::Floats(scales)) => Some(scales.clone()),
        _ => scales.map(|s| s.floats("scales")).transpose()?,
    };
    let sizes = sizes.map(|s| s.ints("sizes")).transpose()?;
    let interp = like(op)?;
    let input = |k: usize| x.dims[k] as u64;
    // axes that are not named stay as they are
    let mut all = vec![];
    for k in 0..rank {
        let kept = Interp {
            coordinate: Coordinate::Asymmetric,
            ..interp.clone()
        };
        all.push(sized(&kept, input(k), input(k))?);
    }
    match (scales, sizes) {
        (Some(scales), None) if scales.len() == n => {
            for (&k, scale) in which.iter().zip(scales) {
                all[k] = scaled(&interp, input(k), scale, f32::floor)?;
            }
        }
        (None, Some(sizes)) if sizes.len() == n => {
            let sizes = lengths(&sizes)?;
            for (&k, &size) in which.iter().zip(&sizes) {
                all[k] = sized(&interp, input(k), size as u64)?;
            }
            keep_aspect_ratio(op, &which, &mut all)?;
        }
        _ => return bad(format!("needs {n} scales or {n} sizes")),
    }
    if interp.coordinate == Coordinate::TfCropAndResize {
        let roi = roi.map(|r| r.floats("roi")).transpose()?;
        let Some(roi) = roi.filter(|roi| roi.len() == 2 * n) else {
            return bad(format!("needs a roi of {} numbers", 2 * n));
        };
        for (i, &k) in which.iter().enumerate() {
            all[k].roi = [roi[i], roi[n + i]];
        }
    }
    if let (true, InterpMode::Nearest(_)) = (early(op), interp.mode) {
        for axis in &mut all {
            // down where the axis grows and up where it shrinks
            axis.mode = InterpMode::Nearest(if axis.scale < 1.0 {
                NearestRound::Ceil
            } else {
                NearestRound::Floor
            });
        }
    }
    Ok(all)
}

/// Gives the axes in `which` one scale, of those that their sizes ask for.
fn keep_aspect_ratio(op: &Op, which: &[usize], all: &mut [Interp]) -> Result<()> {
    let scales = which.iter().map(|&k| all[k].scale);
    let scale = match op.str("keep_aspect_ratio_policy").unwrap_or("stretch") {
        "stretch" => return Ok(()),
        "not_larger" => scales.fold(f32::INFINITY, f32::min),
        "not_smaller" => scales.fold(0.0, f32::max),
        other => return bad(format!("keep_aspect_ratio_policy {other}")),
    };
    for &k in which {
        all[k] = scaled(&all[k], all[k].input, scale, |exact| exact + 0.5)?;
    }
    Ok(())
}

/// What output `o` is made of: input elements and their weights. Nothing, where it lies outside
/// and is extrapolated.
fn taps(axis: &Interp, o: u64) -> Vec<(usize, f32)> {
    if axis.is_identity() {
        return vec![(o as usize, 1.0)];
    }
    if axis.extrapolates(o) {
        return vec![];
    }
    let taps = (0..axis.taps()).map(|k| axis.tap(o, k));
    // what weighs nothing is not read: it need not be finite
    taps.filter(|tap| tap.1 != 0.0)
        .map(|(at, weight)| (at as usize, weight))
        .collect()
}

pub(super) fn resize(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let x = inputs.get(0)?;
    let all = axes(op, inputs)?;
    let extrapolation = f64::from(op.float("extrapolation_value").unwrap_or(0.0));
    let dtype = x.dtype;
    if dtype != DType::F32
        && !all
            .iter()
            .all(|axis| matches!(axis.mode, InterpMode::Nearest(_)))
    {
        return unsupported(format!("mode linear and cubic do not take {dtype:?}"));
    }
    let empty = all.iter().any(|axis| axis.input == 0);
    let dims: Vec<usize> = all.iter().map(|axis| axis.output as usize).collect();
    ensure(!empty || dims.contains(&0), || {
        "an empty axis is resized".into()
    })?;
    Ready::one(dtype, dims, move |inputs, y| {
        // rows are the innermost axis that changes, with all that it carries along
        let last = all
            .iter()
            .rposition(|axis| !axis.is_identity())
            .unwrap_or(0);
        let Some(along) = all.get(last) else {
            for_type!(dtype, T => y.all::<T>()?.copy_from_slice(inputs.get(0)?.all()?));
            return Ok(());
        };
        let x = inputs.get(0)?;
        let steps = strides(&x.dims);
        let inner: usize = x.dims[last + 1..].iter().product();
        let table = |axis: &Interp| (0..axis.output).map(|o| taps(axis, o)).collect();
        let outer: Vec<Vec<Vec<(usize, f32)>>> = all[..last].iter().map(table).collect();
        let along_taps: Vec<Vec<(usize, f32)>> = table(along);
        let mut blend = vec![0.0f64; along.input as usize * inner];
        for_type!(dtype, T => {
            let x = x.all::<T>()?;
            let rows = y.all::<T>()?.chunks_exact_mut(along.output as usize * inner);
            for (r, y) in rows.enumerate() {
                blend.fill(0.0);
                let mut place = r;
                let mut meets = vec![&[][..]; last];
                for k in (0..last).rev() {
                    meets[k] = &outer[k][place % outer[k].len()][..];
                    place /= outer[k].len();
                }
                let outside = meets.iter().any(|taps| taps.is_empty());
                add_rows(&meets, &steps, x, 1.0, &mut blend);
                for (y, taps) in y.chunks_exact_mut(inner).zip(&along_taps) {
                    for (i, y) in y.iter_mut().enumerate() {
                        let one = |&(at, w): &(usize, f32)| f64::from(w) * blend[at * inner + i];
                        *y = T::from_f64(if outside || taps.is_empty() {
                            extrapolation
                        } else {
                            taps.iter().map(one).sum()
                        });
                    }
                }
            }
        });
        Ok(())
    })
}

/// Adds to `sum` the rows of `x` that `meets` names along each outer axis, weighted.
fn add_rows<T: Element>(
    meets: &[&[(usize, f32)]],
    steps: &[isize],
    x: &[T],
    weight: f64,
    sum: &mut [f64],
) {
    match meets.split_first() {
        Some((taps, meets)) => {
            for &(at, w) in *taps {
                let x = &x[at * steps[0] as usize..];
                add_rows(meets, &steps[1..], x, weight * f64::from(w), sum);
            }
        }
        None => {
            for (sum, x) in sum.iter_mut().zip(x) {
                *sum += weight * x.to_f64();
            }
        }
    }
}
