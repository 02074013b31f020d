//! `Resize` and `Upsample`: every axis has taps of its own, and an output element is the sum over
//! their products.
//!
//! Coordinates are in f32 as in ONNX Runtime, so that ties between two elements fall the same way.

use super::args::{Element, Inputs, Ready, bad, ensure, for_type, unsupported};
use super::movement::lengths;
use super::shape::{axes, strides};
use super::{Attr, DType, Op};
use crate::error::Result;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Filter {
    Nearest(Round),
    Linear,
    /// With its coefficient.
    Cubic(f32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Round {
    PreferFloor,
    PreferCeil,
    Floor,
    Ceil,
    /// Down where the axis grows and up where it shrinks, as the sets before 11 have it.
    Outward,
}

/// Where the centre of an output element falls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coordinate {
    HalfPixel,
    HalfPixelSymmetric,
    PytorchHalfPixel,
    AlignCorners,
    Asymmetric,
    TfHalfPixelForNn,
    TfCropAndResize,
}

/// What all axes share.
#[derive(Debug, Clone, Copy)]
struct Mode {
    filter: Filter,
    coordinate: Coordinate,
    antialias: bool,
    exclude_outside: bool,
    extrapolation: f32,
}

impl Mode {
    fn of(op: &Op) -> Result<Self> {
        let round = match op.str("nearest_mode").unwrap_or("round_prefer_floor") {
            _ if op.opset < 11 => Round::Outward,
            "round_prefer_floor" => Round::PreferFloor,
            "round_prefer_ceil" => Round::PreferCeil,
            "floor" => Round::Floor,
            "ceil" => Round::Ceil,
            other => return bad(format!("nearest_mode {other}")),
        };
        let filter = match op.str("mode").unwrap_or("nearest") {
            "nearest" => Filter::Nearest(round),
            "linear" | "bilinear" => Filter::Linear,
            "cubic" => Filter::Cubic(op.float("cubic_coeff_a").unwrap_or(-0.75)),
            other => return unsupported(format!("mode {other}")),
        };
        let name = op.str("coordinate_transformation_mode");
        let coordinate = match name.unwrap_or("half_pixel") {
            _ if op.opset < 11 => Coordinate::Asymmetric,
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
        Ok(Mode {
            filter,
            coordinate,
            antialias: flag("antialias"),
            exclude_outside: flag("exclude_outside"),
            extrapolation: op.float("extrapolation_value").unwrap_or(0.0),
        })
    }
}

/// How one axis is resized.
#[derive(Debug, Clone, Copy)]
struct Axis {
    input: usize,
    output: usize,
    scale: f32,
    /// The output's length before it was rounded down.
    exact: f32,
    /// The part that `tf_crop_and_resize` takes.
    roi: [f32; 2],
}

impl Axis {
    fn scaled(input: usize, scale: f32) -> Result<Self> {
        let exact = scale * input as f32;
        ensure(scale > 0.0 && exact < (1u64 << 40) as f32, || {
            format!("a length of {input} is scaled by {scale}")
        })?;
        Ok(Axis {
            input,
            output: exact as usize,
            scale,
            exact,
            roi: [0.0, 1.0],
        })
    }

    fn sized(input: usize, size: usize) -> Result<Self> {
        ensure(input > 0 || size == 0, || "an empty axis is resized".into())?;
        Ok(Axis {
            input,
            output: size,
            scale: if input == size {
                1.0
            } else {
                size as f32 / input as f32
            },
            exact: size as f32,
            roi: [0.0, 1.0],
        })
    }

    /// Whether the output is the input.
    fn is_whole(&self) -> bool {
        self.scale == 1.0 && self.input == self.output && self.roi == [0.0, 1.0]
    }

    /// Where the centre of output `o` falls, in input elements.
    fn coordinate(&self, mode: &Mode, o: usize) -> f32 {
        let (x, input, output) = (o as f32, self.input as f32, self.output as f32);
        let half_pixel = (x + 0.5) / self.scale - 0.5;
        match mode.coordinate {
            Coordinate::HalfPixel => half_pixel,
            Coordinate::HalfPixelSymmetric => {
                half_pixel + input / 2.0 * (1.0 - output / self.exact)
            }
            Coordinate::PytorchHalfPixel if self.output == 1 => 0.0,
            Coordinate::PytorchHalfPixel => half_pixel,
            Coordinate::AlignCorners if self.output == 1 => 0.0,
            Coordinate::AlignCorners => x * (input - 1.0) / (self.exact - 1.0),
            Coordinate::Asymmetric => x / self.scale,
            Coordinate::TfHalfPixelForNn => (x + 0.5) / self.scale,
            Coordinate::TfCropAndResize => {
                let [start, end] = self.roi;
                if self.output == 1 {
                    0.5 * (start + end) * (input - 1.0)
                } else {
                    start * (input - 1.0) + x * (end - start) * (input - 1.0) / (self.exact - 1.0)
                }
            }
        }
    }

    /// What output `o` is made of: input elements and their weights. Nothing, where it lies outside
    /// and is extrapolated.
    fn taps(&self, mode: &Mode, o: usize) -> Vec<(usize, f32)> {
        if self.is_whole() {
            return vec![(o, 1.0)];
        }
        let x = self.coordinate(mode, o);
        let last = self.input as i64 - 1;
        let inside = |i: i64| i.clamp(0, last.max(0)) as usize;
        if mode.coordinate == Coordinate::TfCropAndResize && !(0.0..=last as f32).contains(&x) {
            return vec![];
        }
        let (reach, cubic) = match mode.filter {
            Filter::Nearest(round) => return vec![(inside(round.of(x, self.scale)), 1.0)],
            Filter::Linear => (1.0, None),
            Filter::Cubic(a) => (2.0, Some(a)),
        };
        let squeeze = if mode.antialias {
            self.scale.min(1.0)
        } else {
            1.0
        };
        let reach = reach / squeeze;
        let first = (x - reach).floor() as i64 + 1;
        let near = first..first.saturating_add((2.0 * reach).ceil() as i64);
        let counts = |i: &i64| !mode.exclude_outside || (0..=last).contains(i);
        let taps = near.filter(counts);
        let weight = |i: i64| match cubic {
            Some(a) => keys((i as f32 - x) * squeeze, a),
            None => (1.0 - ((i as f32 - x) * squeeze).abs()).max(0.0),
        };
        let sum: f32 = taps.clone().map(weight).sum();
        taps.map(|i| (inside(i), weight(i) / sum)).collect()
    }
}

/// The cubic filter of Keys (1981) with coefficient `a`, at distance `t`.
fn keys(t: f32, a: f32) -> f32 {
    let t = t.abs();
    if t <= 1.0 {
        ((a + 2.0) * t - (a + 3.0)) * t * t + 1.0
    } else if t < 2.0 {
        ((a * t - 5.0 * a) * t + 8.0 * a) * t - 4.0 * a
    } else {
        0.0
    }
}

impl Round {
    fn of(self, x: f32, scale: f32) -> i64 {
        let part = x - x.floor();
        let up = match self {
            Round::Floor => false,
            Round::Ceil => part > 0.0,
            Round::Outward => part > 0.0 && scale < 1.0,
            Round::PreferFloor => part > 0.5,
            Round::PreferCeil => part >= 0.5,
        };
        x.floor() as i64 + i64::from(up)
    }
}

/// The axes of `Resize` and `Upsample`, wherever the operator set keeps scales and sizes.
fn plan(op: &Op, inputs: &Inputs<'_>, mode: &Mode) -> Result<Vec<Axis>> {
    let x = inputs.get(0)?;
    let rank = x.dims.len();
    let given = |i: usize| inputs.opt(i).filter(|input| input.len() > 0);
    let (roi, scales, sizes) = match op.opset {
        ..11 => (None, given(1), None),
        11.. => (given(1), given(2), given(3)),
    };
    let which = match op.ints("axes") {
        Some(list) => axes(list, rank)?,
        None => (0..rank).collect(),
    };
    let n = which.len();
    let scales = match op.attrs.get("scales") {
        Some(Attr::Floats(scales)) => Some(scales.clone()),
        _ => scales.map(|s| s.floats("scales")).transpose()?,
    };
    let sizes = sizes.map(|s| s.ints("sizes")).transpose()?;
    let mut plan = vec![];
    for &d in &x.dims {
        plan.push(Axis::sized(d, d)?);
    }
    match (scales, sizes) {
        (Some(scales), None) if scales.len() == n => {
            for (&k, scale) in which.iter().zip(scales) {
                plan[k] = Axis::scaled(x.dims[k], scale)?;
            }
        }
        (None, Some(sizes)) if sizes.len() == n => {
            let sizes = lengths(&sizes)?;
            for (&k, &size) in which.iter().zip(&sizes) {
                plan[k] = Axis::sized(x.dims[k], size)?;
            }
            keep_aspect_ratio(op, &which, &mut plan)?;
        }
        _ => return bad(format!("needs {n} scales or {n} sizes")),
    }
    if mode.coordinate == Coordinate::TfCropAndResize {
        let roi = roi.map(|r| r.floats("roi")).transpose()?;
        let Some(roi) = roi.filter(|roi| roi.len() == 2 * n) else {
            return bad(format!("needs a roi of {} numbers", 2 * n));
        };
        for (i, &k) in which.iter().enumerate() {
            plan[k].roi = [roi[i], roi[n + i]];
        }
    }
    Ok(plan)
}

/// Gives the axes in `which` one scale, of those that their sizes ask for.
fn keep_aspect_ratio(op: &Op, which: &[usize], plan: &mut [Axis]) -> Result<()> {
    let scales = which.iter().map(|&k| plan[k].scale);
    let scale = match op.str("keep_aspect_ratio_policy").unwrap_or("stretch") {
        "stretch" => return Ok(()),
        "not_larger" => scales.fold(f32::INFINITY, f32::min),
        "not_smaller" => scales.fold(0.0, f32::max),
        other => return bad(format!("keep_aspect_ratio_policy {other}")),
    };
    for &k in which {
        let axis = Axis::scaled(plan[k].input, scale)?;
        let output = (axis.exact + 0.5) as usize;
        plan[k] = Axis { output, ..axis };
    }
    Ok(())
}

pub(super) fn resize(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let x = inputs.get(0)?;
    let mode = Mode::of(op)?;
    let plan = plan(op, inputs, &mode)?;
    let dtype = x.dtype;
    if dtype != DType::F32 && !matches!(mode.filter, Filter::Nearest(_)) {
        return unsupported(format!("mode linear and cubic do not take {dtype:?}"));
    }
    let empty = plan.iter().any(|axis| axis.input == 0);
    let dims: Vec<usize> = plan.iter().map(|axis| axis.output).collect();
    ensure(!empty || dims.contains(&0), || {
        "an empty axis is resized".into()
    })?;
    Ready::one(dtype, dims, move |inputs, y| {
        // rows are the innermost axis that changes, with all that it carries along
        let last = plan.iter().rposition(|axis| !axis.is_whole()).unwrap_or(0);
        let Some(along) = plan.get(last) else {
            for_type!(dtype, T => y.all::<T>()?.copy_from_slice(inputs.get(0)?.all()?));
            return Ok(());
        };
        let x = inputs.get(0)?;
        let steps = strides(&x.dims);
        let inner: usize = x.dims[last + 1..].iter().product();
        let table = |axis: &Axis| (0..axis.output).map(|o| axis.taps(&mode, o)).collect();
        let outer: Vec<Vec<Vec<(usize, f32)>>> = plan[..last].iter().map(table).collect();
        let taps: Vec<Vec<(usize, f32)>> = table(along);
        let mut blend = vec![0.0f64; along.input * inner];
        for_type!(dtype, T => {
            let x = x.all::<T>()?;
            let rows = y.all::<T>()?.chunks_exact_mut(along.output * inner);
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
                for (y, taps) in y.chunks_exact_mut(inner).zip(&taps) {
                    for (i, y) in y.iter_mut().enumerate() {
                        let one = |&(at, w): &(usize, f32)| f64::from(w) * blend[at * inner + i];
                        *y = T::from_f64(if outside || taps.is_empty() {
                            f64::from(mode.extrapolation)
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
