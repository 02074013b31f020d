//! Ops whose outputs follow from attributes, shapes or a few numbers.

use super::args::{Element, Inputs, Ready, bad, ensure, for_type, unsupported};
use super::elementwise::dtype;
use super::movement::lengths;
use super::shape::axis;
use super::{Attr, DType, Data, Op};
use crate::error::Result;

pub(super) fn constant(op: &Op, _: &Inputs<'_>) -> Result<Ready> {
    let given = |name| op.attrs.get(name);
    let forms = [
        "value",
        "value_float",
        "value_floats",
        "value_int",
        "value_ints",
    ];
    match forms.into_iter().find_map(given) {
        Some(Attr::Tensor(value)) => {
            let dims = value.dims.iter().map(|&d| d as usize).collect();
            Ready::value(dims, value.data.clone())
        }
        Some(Attr::Float(x)) => Ready::value(vec![], Data::F32(vec![*x])),
        Some(Attr::Floats(x)) => Ready::value(vec![x.len()], Data::F32(x.clone())),
        Some(Attr::Int(x)) => Ready::value(vec![], Data::I64(vec![*x])),
        Some(Attr::Ints(x)) => Ready::value(vec![x.len()], Data::I64(x.clone())),
        _ => unsupported("the value must be a dense tensor of numbers"),
    }
}

pub(super) fn constant_of_shape(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let dims = lengths(&inputs.get(0)?.ints("shape")?)?;
    let value = match op.attrs.get("value") {
        Some(Attr::Tensor(value)) => value.data.clone(),
        _ => Data::F32(vec![0.0]),
    };
    ensure(value.as_ref().len() == 1, || {
        "value must be one number".into()
    })?;
    Ready::one(value.dtype(), dims, move |_, y| {
        for_type!(value.dtype(), T => {
            let x = T::slice(value.as_ref()).unwrap_or_default();
            y.all::<T>()?.fill(x[0]);
        });
        Ok(())
    })
}

/// `Shape`, which looks at no element.
pub(super) fn shape(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let dims = &inputs.get(0)?.dims;
    let rank = dims.len() as i64;
    let place = |name, default| {
        let p = op.int(name).unwrap_or(default);
        (if p < 0 { p.saturating_add(rank) } else { p }).clamp(0, rank)
    };
    let (start, end) = (place("start", 0), place("end", rank));
    let taken = &dims[start as usize..end.max(start) as usize];
    let taken: Vec<i64> = taken.iter().map(|&d| d as i64).collect();
    Ready::value(vec![taken.len()], Data::I64(taken))
}

/// `Size`, which looks at no element.
pub(super) fn size(_: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let n = inputs.get(0)?.len() as i64;
    Ready::value(vec![], Data::I64(vec![n]))
}

pub(super) fn range(_: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let dtype = inputs.get(0)?.dtype;
    for i in [1, 2] {
        inputs.get(i)?.must_be(dtype)?;
    }
    if dtype == DType::F32 {
        let number = |i: usize| match inputs.get(i)?.floats("a bound")?[..] {
            [x] => Ok(f64::from(x)),
            _ => bad("a bound is not one number"),
        };
        let (start, limit, delta) = (number(0)?, number(1)?, number(2)?);
        let n = ((limit - start) / delta).ceil();
        ensure(n < (1u64 << 40) as f64, || {
            format!("{start} to {limit} by {delta} does not end")
        })?;
        return Ready::one(dtype, vec![n as usize], move |_, y| {
            for (i, y) in y.all::<f32>()?.iter_mut().enumerate() {
                *y = (start + i as f64 * delta) as f32;
            }
            Ok(())
        });
    }
    let number = |i: usize| inputs.get(i)?.int("a bound");
    let (start, limit, delta) = (number(0)?, number(1)?, number(2)?);
    ensure(delta != 0, || "the step is 0".into())?;
    let span = (i128::from(limit) - i128::from(start)) * i128::from(delta.signum());
    let n = (span.max(0) as u128).div_ceil(u128::from(delta.unsigned_abs()));
    Ready::one(dtype, vec![n as usize], move |_, y| {
        for_type!(dtype, T => {
            for (i, y) in y.all::<T>()?.iter_mut().enumerate() {
                *y = T::from_i64(start.wrapping_add((i as i64).wrapping_mul(delta)));
            }
        });
        Ok(())
    })
}

pub(super) fn eye_like(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let x = inputs.get(0)?;
    let [rows, cols] = x.dims[..] else {
        return bad(format!("takes 2 axes, not {:?}", x.dims));
    };
    let made = match op.int("dtype") {
        Some(id) => dtype(id)?,
        None => x.dtype,
    };
    let k = i128::from(op.int("k").unwrap_or(0));
    Ready::one(made, vec![rows, cols], move |_, y| {
        for_type!(made, T => {
            for (i, y) in y.all::<T>()?.iter_mut().enumerate() {
                let on = (i % cols) as i128 - (i / cols) as i128 == k;
                *y = T::from_i64(i64::from(on));
            }
        });
        Ok(())
    })
}

/// `Trilu`: one side of the diagonal of the last two axes.
pub(super) fn trilu(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let x = inputs.get(0)?;
    let [.., rows, cols] = x.dims[..] else {
        return bad(format!("takes 2 axes or more, not {:?}", x.dims));
    };
    let upper = op.int("upper").unwrap_or(1) != 0;
    let k = match inputs.opt(1) {
        Some(k) => i128::from(k.int("k")?),
        None => 0,
    };
    let dtype = x.dtype;
    Ready::one(dtype, x.dims.clone(), move |inputs, y| {
        for_type!(dtype, T => {
            let x = inputs.get(0)?.all::<T>()?;
            for (i, (y, &x)) in y.all::<T>()?.iter_mut().zip(x).enumerate() {
                let diagonal = (i % cols) as i128 - (i / cols % rows) as i128;
                let kept = if upper { diagonal >= k } else { diagonal <= k };
                *y = if kept { x } else { T::default() };
            }
        });
        Ok(())
    })
}

pub(super) fn one_hot(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    let (x, values) = (inputs.get(0)?, inputs.get(2)?);
    let depth = match inputs.get(1)? {
        d if d.dtype == DType::F32 => d.floats("depth")?.first().map(|&d| d as i64),
        d => d.ints("depth")?.first().copied(),
    };
    let Some(depth @ 0..) = depth else {
        return bad("depth is not a number of 0 or more");
    };
    ensure(values.len() == 2, || "values must be two".into())?;
    let at = axis(op.int("axis").unwrap_or(-1), x.dims.len() + 1)?;
    let inner: usize = x.dims[at..].iter().product();
    let mut dims = x.dims.clone();
    dims.insert(at, depth as usize);
    let (from, dtype) = (x.dtype, values.dtype);
    Ready::one(dtype, dims, move |inputs, y| {
        for_type!(from, A => for_type!(dtype, T => {
            let x = inputs.get(0)?.all::<A>()?;
            let values = inputs.get(2)?.all::<T>()?;
            let y = y.all::<T>()?;
            y.fill(values[0]);
            for (i, x) in x.iter().enumerate() {
                let x = x.to_i64();
                let hot = if x < 0 { x.wrapping_add(depth) } else { x };
                if (0..depth).contains(&hot) {
                    let block = i / inner * depth as usize + hot as usize;
                    y[block * inner + i % inner] = values[1];
                }
            }
        }));
        Ok(())
    })
}
