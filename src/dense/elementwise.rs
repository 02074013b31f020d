//! Ops that treat every element alike, after broadcasting.

use super::args::{Element, Inputs, Ready, bad, ensure, for_type, unsupported};
use super::scalar::{clip, func, integer, scalar};
use super::shape::{Walk, broadcast, copy_strided, must_broadcast_to, strides_in};
use super::{DType, Op};
use crate::error::Result;
use crate::func::Func;

/// Fills `y` with `f` of the places along `walk`.
fn fill<const N: usize, R>(
    walk: &Walk<N>,
    y: &mut [R],
    f: impl Fn([usize; N]) -> Result<R>,
) -> Result<()> {
    let (n, step) = (walk.len(), walk.step());
    for (row, mut at) in y.chunks_exact_mut(n).zip(walk.runs()) {
        for y in row {
            *y = f(at.map(|a| a as usize))?;
            for (at, step) in at.iter_mut().zip(step) {
                *at += step;
            }
        }
    }
    Ok(())
}

/// The lengths of all inputs broadcast against each other.
fn broadcast_all(inputs: &Inputs<'_>) -> Result<Vec<usize>> {
    let mut dims = vec![];
    for x in inputs.every()? {
        dims = broadcast(&dims, &x.dims)?;
    }
    Ok(dims)
}

/// The walk over `dims` in which inputs 0, 1, … are read as if broadcast. Places beyond the inputs
/// stay at 0.
fn broadcast_walk<const N: usize>(inputs: &Inputs<'_>, dims: &[usize]) -> Walk<N> {
    let strides: [Vec<isize>; N] = std::array::from_fn(|i| match inputs.opt(i) {
        Some(x) => strides_in(&x.dims, dims),
        None => vec![0; dims.len()],
    });
    Walk::new(dims, std::array::from_fn(|i| &strides[i][..]))
}

/// Every operator that is a [`Func`] of operands of one type.
pub(super) fn apply(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let Some(func) = func(op) else {
        return unsupported("is no function of elements");
    };
    let arity = func.arity();
    let dtype = inputs.get(0)?.dtype;
    for i in 0..arity {
        inputs.get(i)?.must_be(dtype)?;
    }
    ensure(inputs.len() <= arity, || {
        format!("takes {arity} inputs, not {}", inputs.len())
    })?;
    if dtype != DType::F32 {
        integer(func, [1; 3])?;
    }
    use Func::*;
    let logical = matches!(func, Not | And | Or | Xor);
    if logical != (dtype == DType::Bool) && !matches!(func, Equal) {
        return unsupported(format!("does not take {dtype:?}"));
    }
    let compares = matches!(func, Greater | GreaterOrEqual | Less | LessOrEqual | Equal);
    let dims = broadcast_all(inputs)?;
    if func == PRelu {
        must_broadcast_to(&inputs.get(1)?.dims, &inputs.get(0)?.dims)?;
    }
    let made = if compares { DType::Bool } else { dtype };
    Ready::one(made, dims.clone(), move |inputs, y| {
        let walk = broadcast_walk(inputs, &dims);
        if dtype == DType::F32 {
            let x = operands(inputs, arity)?;
            let f = |at: [usize; 3]| scalar(func, [x[0][at[0]], x[1][at[1]], x[2][at[2]]]);
            if compares {
                fill(&walk, y.all()?, |at| Ok(u8::from(f(at) != 0.0)))
            } else {
                fill(&walk, y.all()?, |at| Ok(f(at)))
            }
        } else {
            for_type!(dtype, T => {
                let x = operands::<T>(inputs, arity)?;
                let f = |at: [usize; 3]| {
                    integer(func, [x[0][at[0]], x[1][at[1]], x[2][at[2]]].map(T::to_i64))
                };
                if compares {
                    fill(&walk, y.all()?, |at| Ok(u8::from(f(at)? != 0)))
                } else {
                    fill(&walk, y.all()?, |at| Ok(T::from_i64(f(at)?)))
                }
            })
        }
    })
}

/// The elements of the first `arity` inputs, and one zero for each operand beyond.
fn operands<'a, T: Element>(inputs: &Inputs<'a>, arity: usize) -> Result<[&'a [T]; 3]> {
    let mut x: [&[T]; 3] = [T::zero(); 3];
    for (i, x) in x.iter_mut().enumerate().take(arity) {
        *x = inputs.get(i)?.all()?;
    }
    Ok(x)
}

/// `Sum`, `Mean`, `Min` and `Max` of any number of operands, from the first to the last.
pub(super) fn variadic(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let dtype = inputs.get(0)?.dtype;
    for x in inputs.every()? {
        x.must_be(dtype)?;
    }
    let mean = op.kind == "Mean";
    let func = match op.kind.as_str() {
        "Min" => Func::Min,
        "Max" => Func::Max,
        _ => Func::Add,
    };
    if func == Func::Add && dtype != DType::F32 {
        return unsupported(format!("does not take {dtype:?}"));
    }
    let dims = broadcast_all(inputs)?;
    Ready::one(dtype, dims.clone(), move |inputs, y| {
        for_type!(dtype, T => {
            let y = y.all::<T>()?;
            for (i, x) in inputs.every()?.into_iter().enumerate() {
                let strides = strides_in(&x.dims, &dims);
                let x = x.all::<T>()?;
                if i == 0 {
                    copy_strided(&dims, x, 0, &strides, y);
                    continue;
                }
                let walk = Walk::new(&dims, [&strides]);
                let (n, [step]) = (walk.len(), walk.step());
                for (row, [at]) in y.chunks_exact_mut(n).zip(walk.runs()) {
                    for (i, y) in row.iter_mut().enumerate() {
                        let x = x[(at + i as isize * step) as usize];
                        *y = if T::FLOAT {
                            let pair = [y.to_f64() as f32, x.to_f64() as f32, 0.0];
                            T::from_f64(f64::from(scalar(func, pair)))
                        } else {
                            T::from_i64(integer(func, [y.to_i64(), x.to_i64(), 0])?)
                        };
                    }
                }
            }
        });
        if mean {
            let n = inputs.len() as f32;
            y.all::<f32>()?.iter_mut().for_each(|y| *y /= n);
        }
        Ok(())
    })
}

/// `Pow`, whose exponent may be of another type than its base.
pub(super) fn pow(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let (base, exponent) = (inputs.get(0)?.dtype, inputs.get(1)?.dtype);
    if base == exponent {
        return apply(op, inputs);
    }
    if base == DType::Bool || exponent == DType::Bool {
        return unsupported("does not take booleans");
    }
    let dims = broadcast_all(inputs)?;
    Ready::one(base, dims.clone(), move |inputs, y| {
        let walk = broadcast_walk(inputs, &dims);
        for_type!(base, A => for_type!(exponent, B => {
            let (x, e) = (inputs.get(0)?.all::<A>()?, inputs.get(1)?.all::<B>()?);
            fill(&walk, y.all()?, |[i, j]| {
                if base == DType::F32 || exponent == DType::F32 {
                    Ok(A::from_f64(x[i].to_f64().powf(e[j].to_f64())))
                } else {
                    integer(Func::Pow, [x[i].to_i64(), e[j].to_i64(), 0]).map(A::from_i64)
                }
            })
        }))
    })
}

/// `Where`.
pub(super) fn select(_: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let dtype = inputs.get(1)?.dtype;
    inputs.get(0)?.must_be(DType::Bool)?;
    inputs.get(2)?.must_be(dtype)?;
    let dims = broadcast_all(inputs)?;
    Ready::one(dtype, dims.clone(), move |inputs, y| {
        let walk = broadcast_walk(inputs, &dims);
        let which = inputs.get(0)?.all::<u8>()?;
        for_type!(dtype, T => {
            let (a, b) = (inputs.get(1)?.all::<T>()?, inputs.get(2)?.all::<T>()?);
            fill(&walk, y.all()?, |[w, i, j]| Ok(if which[w] != 0 { a[i] } else { b[j] }))
        })
    })
}

/// `Mod`, `BitShift`, and bit by bit `BitwiseAnd`, `BitwiseOr`, `BitwiseXor`.
pub(super) fn bits(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let dtype = inputs.get(0)?.dtype;
    inputs.get(1)?.must_be(dtype)?;
    let divides = op.kind == "Mod";
    if dtype == DType::Bool || (dtype == DType::F32 && !divides) {
        return unsupported(format!("does not take {dtype:?}"));
    }
    let truncates = op.int("fmod").unwrap_or(0) != 0;
    let dims = broadcast_all(inputs)?;
    if dtype == DType::F32 {
        let f: fn(f32, f32) -> f32 = if truncates { |a, b| a % b } else { floor_mod };
        return Ready::one(dtype, dims.clone(), move |inputs, y| {
            let walk = broadcast_walk(inputs, &dims);
            let (a, b) = (inputs.get(0)?.all::<f32>()?, inputs.get(1)?.all::<f32>()?);
            fill(&walk, y.all()?, |[i, j]| Ok(f(a[i], b[j])))
        });
    }
    // shifts by less than 0 or by more bits than there are shift everything out
    let f: fn(i64, i64) -> i64 = match (op.kind.as_str(), op.str("direction")) {
        ("Mod", _) if truncates => i64::wrapping_rem,
        ("Mod", _) => |a, b| {
            let r = a.wrapping_rem(b);
            if r != 0 && (r < 0) != (b < 0) {
                r + b
            } else {
                r
            }
        },
        ("BitwiseAnd", _) => |a, b| a & b,
        ("BitwiseOr", _) => |a, b| a | b,
        ("BitwiseXor", _) => |a, b| a ^ b,
        ("BitShift", Some("LEFT")) => |a, b| if (0..64).contains(&b) { a << b } else { 0 },
        ("BitShift", Some("RIGHT")) => |a, b| a >> if (0..64).contains(&b) { b } else { 63 },
        _ => return bad("direction must be LEFT or RIGHT"),
    };
    Ready::one(dtype, dims.clone(), move |inputs, y| {
        let walk = broadcast_walk(inputs, &dims);
        for_type!(dtype, T => {
            let (a, b) = (inputs.get(0)?.all::<T>()?, inputs.get(1)?.all::<T>()?);
            fill(&walk, y.all()?, |[i, j]| {
                let (a, b) = (a[i].to_i64(), b[j].to_i64());
                ensure(!divides || b != 0, || format!("{a} is divided by 0"))?;
                Ok(T::from_i64(f(a, b)))
            })
        })
    })
}

/// The remainder with the divisor's sign.
fn floor_mod(a: f32, b: f32) -> f32 {
    let r = a % b;
    if r == 0.0 {
        r.copysign(b)
    } else if (r < 0.0) != (b < 0.0) {
        r + b
    } else {
        r
    }
}

/// Functions of one f32 that are in no [`Func`].
pub(super) fn rare(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let f: fn(f64) -> f64 = match op.kind.as_str() {
        "Tan" => f64::tan,
        "Asin" => f64::asin,
        "Acos" => f64::acos,
        "Atan" => f64::atan,
        "Sinh" => f64::sinh,
        "Cosh" => f64::cosh,
        "Asinh" => f64::asinh,
        "Acosh" => f64::acosh,
        _ => f64::atanh,
    };
    let x = inputs.f32(0)?;
    Ready::one(DType::F32, x.dims.clone(), move |inputs, y| {
        let x = inputs.get(0)?.all::<f32>()?;
        for (y, &x) in y.all::<f32>()?.iter_mut().zip(x) {
            *y = f(f64::from(x)) as f32;
        }
        Ok(())
    })
}

/// `IsNaN` and `IsInf`.
pub(super) fn is_not_finite(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let x = inputs.f32(0)?;
    let nan = op.kind == "IsNaN";
    let detects = |name| !nan && op.int(name).unwrap_or(1) != 0;
    let (up, down) = (detects("detect_positive"), detects("detect_negative"));
    Ready::one(DType::Bool, x.dims.clone(), move |inputs, y| {
        let x = inputs.get(0)?.all::<f32>()?;
        for (y, &x) in y.all::<u8>()?.iter_mut().zip(x) {
            let found = (nan && x.is_nan())
                || (up && x == f32::INFINITY)
                || (down && x == f32::NEG_INFINITY);
            *y = u8::from(found);
        }
        Ok(())
    })
}

/// `Clip`, with bounds as attributes or as inputs.
pub(super) fn clip_to(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let x = inputs.get(0)?;
    let dtype = x.dtype;
    for i in [1, 2] {
        if let Some(bound) = inputs.opt(i) {
            bound.must_be(dtype)?;
            ensure(bound.len() == 1, || "a bound must be one number".into())?;
        }
    }
    let attrs = [op.float("min"), op.float("max")];
    Ready::one(dtype, x.dims.clone(), move |inputs, y| {
        for_type!(dtype, T => {
            let bound = |i: usize, extreme: f64| match (inputs.opt(i), attrs[i - 1]) {
                (Some(b), _) => Ok(b.all::<T>()?[0]),
                (None, Some(b)) => Ok(T::from_f64(f64::from(b))),
                (None, None) => Ok(T::from_f64(extreme)),
            };
            let lo = bound(1, f64::NEG_INFINITY)?;
            let hi = bound(2, f64::INFINITY)?;
            let x = inputs.get(0)?.all::<T>()?;
            for (y, &x) in y.all::<T>()?.iter_mut().zip(x) {
                *y = clip(x, lo, hi);
            }
        });
        Ok(())
    })
}

/// `Cast` and `CastLike`. Doubles are kept as f32, and halves as the f32 they round to.
pub(super) fn cast(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let x = inputs.get(0)?;
    let (from, mut half) = (x.dtype, false);
    let to = match op.kind.as_str() {
        "CastLike" => inputs.get(1)?.dtype,
        _ => match op.int("to") {
            Some(10) => {
                half = true;
                DType::F32
            }
            Some(id) => dtype(id)?,
            None => return bad("attribute `to` is missing"),
        },
    };
    Ready::one(to, x.dims.clone(), move |inputs, y| {
        for_type!(from, A => for_type!(to, B => {
            let x = inputs.get(0)?.all::<A>()?;
            for (y, &x) in y.all::<B>()?.iter_mut().zip(x) {
                *y = if to == DType::Bool {
                    B::from_i64(i64::from(x != A::default()))
                } else if from == DType::F32 {
                    B::from_f64(x.to_f64())
                } else {
                    B::from_i64(x.to_i64())
                };
            }
        }));
        if half {
            for y in y.all::<f32>()? {
                *y = half::f16::from_f32(*y).to_f32();
            }
        }
        Ok(())
    })
}

/// The type that ONNX numbers `id`.
pub(super) fn dtype(id: i64) -> Result<DType> {
    match id {
        1 | 11 => Ok(DType::F32),
        2 => Ok(DType::U8),
        6 => Ok(DType::I32),
        7 => Ok(DType::I64),
        9 => Ok(DType::Bool),
        _ => unsupported(format!(
            "element type {id} of ONNX (float, double, int32, int64, uint8 and bool are supported)"
        )),
    }
}
