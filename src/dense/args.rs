//! What an op is given, and what it is once its inputs have been checked.

use super::{DType, Data, DataMut, DataRef, Fact, Op, View, ViewMut};
use crate::error::{Error, Result};

/// Elements that a tensor may have at most: a network's largest map at 100,000 × 100,000 pixels has
/// fewer, and bytes and offsets cannot overflow.
const MOST_ELEMENTS: u64 = 1 << 48;
/// Elements that an axis may have at most: positions times strides cannot overflow.
const MOST_ALONG: u64 = 1 << 40;

/// The model is wrong. The door adds the operator's name.
pub(super) fn bad<T>(why: impl Into<String>) -> Result<T> {
    Err(Error::model("", why))
}

/// The model is right, but uses what is not supported. The door adds the operator's name.
pub(super) fn unsupported<T>(why: impl Into<String>) -> Result<T> {
    Err(Error::Unsupported {
        node: String::new(),
        op: String::new(),
        why: why.into(),
    })
}

/// Fails with [`bad`] unless `holds`.
pub(super) fn ensure(holds: bool, why: impl FnOnce() -> String) -> Result<()> {
    if holds { Ok(()) } else { bad(why()) }
}

/// Lengths as indices, each bounded by [`MOST_ALONG`] and their product by [`MOST_ELEMENTS`], even
/// beside a 0.
pub(super) fn checked_dims(dims: &[u64]) -> Result<Vec<usize>> {
    let fits = dims.iter().try_fold(1u64, |n, &d| {
        n.checked_mul(d.max(1))
            .filter(|&n| d < MOST_ALONG && n < MOST_ELEMENTS)
    });
    ensure(fits.is_some(), || {
        format!("a tensor of {dims:?} has 2^48 elements or more, or 2^40 along an axis")
    })?;
    Ok(dims.iter().map(|&d| d as usize).collect())
}

/// A type that elements have in memory. `u8` stands for booleans too.
pub(super) trait Element: Copy + Default + PartialOrd + Send + Sync + 'static {
    /// Whether it has fractions.
    const FLOAT: bool;
    /// The elements of `data`, if they are of this type.
    fn slice(data: DataRef<'_>) -> Option<&[Self]>;
    /// The same for writing.
    fn slice_mut<'a>(data: &'a mut DataMut<'_>) -> Option<&'a mut [Self]>;
    /// Whether it is no number.
    fn is_nan(self) -> bool {
        self.partial_cmp(&self).is_none()
    }
    /// As f64 (rounded, for large i64).
    fn to_f64(self) -> f64;
    /// From f64: integers truncate, and saturate at their bounds.
    fn from_f64(x: f64) -> Self;
    /// As i64: floats truncate, and saturate.
    fn to_i64(self) -> i64;
    /// `self + a · b`: rounded twice for f32, wrapping for integers.
    fn plus_product(self, a: Self, b: Self) -> Self;
    /// One zero, in a slice.
    fn zero() -> &'static [Self];
    /// From i64: smaller integers wrap.
    fn from_i64(x: i64) -> Self;
}

macro_rules! element {
    ($type:ty, $($variant:ident)|+, $plus_product:expr) => {
        impl Element for $type {
            const FLOAT: bool = 0.5 as $type != 0 as $type;
            fn slice(data: DataRef<'_>) -> Option<&[Self]> {
                match data {
                    $(DataRef::$variant(x))|+ => Some(x),
                    _ => None,
                }
            }
            fn slice_mut<'a>(data: &'a mut DataMut<'_>) -> Option<&'a mut [Self]> {
                match data {
                    $(DataMut::$variant(x))|+ => Some(x),
                    _ => None,
                }
            }
            fn to_f64(self) -> f64 {
                self as f64
            }
            fn from_f64(x: f64) -> Self {
                x as Self
            }
            fn to_i64(self) -> i64 {
                self as i64
            }
            #[inline]
            fn plus_product(self, a: Self, b: Self) -> Self {
                let f: fn(Self, Self, Self) -> Self = $plus_product;
                f(self, a, b)
            }
            fn zero() -> &'static [Self] {
                &[0 as $type]
            }
            fn from_i64(x: i64) -> Self {
                x as Self
            }
        }
    };
}
element!(f32, F32, |sum, a, b| sum + a * b);
element!(i64, I64, |sum: i64, a, b| sum
    .wrapping_add(i64::wrapping_mul(a, b)));
element!(i32, I32, |sum: i32, a, b| sum
    .wrapping_add(i32::wrapping_mul(a, b)));
element!(u8, U8 | Bool, |sum: u8, a, b| sum
    .wrapping_add(u8::wrapping_mul(a, b)));

/// Evaluates `$body` with `$T` as the [`Element`] of `$dtype`.
macro_rules! for_type {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            $crate::dense::DType::F32 => {
                type $T = f32;
                $body
            }
            $crate::dense::DType::I64 => {
                type $T = i64;
                $body
            }
            $crate::dense::DType::I32 => {
                type $T = i32;
                $body
            }
            $crate::dense::DType::U8 | $crate::dense::DType::Bool => {
                type $T = u8;
                $body
            }
        }
    };
}
pub(super) use for_type;

/// An input: its type and lengths, and its elements where they are known.
#[derive(Debug)]
pub(super) struct Input<'a> {
    pub(super) dtype: DType,
    pub(super) dims: Vec<usize>,
    data: Option<DataRef<'a>>,
}

impl<'a> Input<'a> {
    fn new(dtype: DType, dims: &[u64], data: Option<DataRef<'a>>) -> Result<Self> {
        let dims = checked_dims(dims)?;
        if let Some(data) = data {
            let n: usize = dims.iter().product();
            ensure(data.len() == n && data.dtype() == dtype, || {
                format!(
                    "{} elements of {:?} where {dims:?} of {dtype:?} needs {n}",
                    data.len(),
                    data.dtype()
                )
            })?;
        }
        Ok(Input { dtype, dims, data })
    }

    /// How many elements.
    pub(super) fn len(&self) -> usize {
        self.dims.iter().product()
    }

    /// All elements.
    pub(super) fn all<T: Element>(&self) -> Result<&'a [T]> {
        match self.data.and_then(T::slice) {
            Some(x) => Ok(x),
            None => bad(format!("the elements of an input of {:?}", self.dtype)
                + " are not known or of another type than it needs"),
        }
    }

    /// The elements as integers, which `what` must be and must be known.
    pub(super) fn ints(&self, what: &str) -> Result<Vec<i64>> {
        match self.data {
            Some(DataRef::I64(x)) => Ok(x.to_vec()),
            Some(DataRef::I32(x)) => Ok(x.iter().map(|&i| i64::from(i)).collect()),
            Some(_) => bad(format!("{what} must be i64 or i32, not {:?}", self.dtype)),
            None => unsupported(format!("{what} must be a constant")),
        }
    }

    /// The elements as floats, which `what` must be and must be known.
    pub(super) fn floats(&self, what: &str) -> Result<Vec<f32>> {
        match self.data {
            Some(DataRef::F32(x)) => Ok(x.to_vec()),
            Some(_) => bad(format!("{what} must be f32, not {:?}", self.dtype)),
            None => unsupported(format!("{what} must be a constant")),
        }
    }

    /// The one element as an integer, which `what` must be and must be known.
    pub(super) fn int(&self, what: &str) -> Result<i64> {
        match self.ints(what)?[..] {
            [i] => Ok(i),
            _ => bad(format!("{what} must be one number, not {:?}", self.dims)),
        }
    }

    /// Whether it is one `true`, which must be known.
    pub(super) fn truth(&self, what: &str) -> Result<bool> {
        match self.data {
            Some(DataRef::Bool([b])) => Ok(*b != 0),
            Some(_) => bad(format!("{what} must be one boolean")),
            None => unsupported(format!("{what} must be a constant")),
        }
    }

    /// Fails unless the type is `dtype`.
    pub(super) fn must_be(&self, dtype: DType) -> Result<()> {
        if self.dtype == dtype {
            return Ok(());
        }
        unsupported(format!("needs {dtype:?}, not {:?}", self.dtype))
    }
}

/// All inputs; an absent optional one is `None`.
#[derive(Debug)]
pub(super) struct Inputs<'a>(Vec<Option<Input<'a>>>);

impl<'a> Inputs<'a> {
    pub(super) fn of_facts(facts: &[Option<Fact<'a>>]) -> Result<Self> {
        let input = |f: &Fact<'a>| Input::new(f.dtype, f.dims, f.value.map(|v| v.view().data));
        let all = facts.iter().map(|f| f.as_ref().map(input).transpose());
        Ok(Inputs(all.collect::<Result<_>>()?))
    }

    pub(super) fn of_views(views: &[Option<View<'a>>]) -> Result<Self> {
        let input = |v: &View<'a>| Input::new(v.data.dtype(), v.dims, Some(v.data));
        let all = views.iter().map(|v| v.as_ref().map(input).transpose());
        Ok(Inputs(all.collect::<Result<_>>()?))
    }

    /// How many, absent ones too.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Input `i`, which may be absent.
    pub(super) fn opt(&self, i: usize) -> Option<&Input<'a>> {
        self.0.get(i).and_then(Option::as_ref)
    }

    /// Input `i`, which must be there.
    pub(super) fn get(&self, i: usize) -> Result<&Input<'a>> {
        match self.opt(i) {
            Some(input) => Ok(input),
            None => bad(format!("input {i} is missing")),
        }
    }

    /// Input `i`, which must be there and f32.
    pub(super) fn f32(&self, i: usize) -> Result<&Input<'a>> {
        let input = self.get(i)?;
        input.must_be(DType::F32)?;
        Ok(input)
    }

    /// Every input, none of which may be absent, and of which there must be one.
    pub(super) fn every(&self) -> Result<Vec<&Input<'a>>> {
        (0..self.len().max(1)).map(|i| self.get(i)).collect()
    }

    /// A list of integers that is the attribute `name` or, in later operator sets, input `i`.
    pub(super) fn ints(&self, op: &Op, name: &str, i: usize) -> Result<Option<Vec<i64>>> {
        match (op.ints(name), self.opt(i)) {
            (Some(list), _) => Ok(Some(list.to_vec())),
            (None, Some(input)) => input.ints(name).map(Some),
            (None, None) => Ok(None),
        }
    }
}

/// Computes the outputs.
type Run = Box<dyn Fn(&Inputs<'_>, &mut [ViewMut<'_>]) -> Result<()>>;

/// An op whose inputs were checked: what it makes, and how.
pub(super) struct Ready {
    /// Type and lengths of each output.
    pub(super) outputs: Vec<(DType, Vec<usize>)>,
    /// Given the same inputs with all their elements and a prefix of the outputs, fills these.
    pub(super) run: Run,
}

impl Ready {
    /// An op of one output.
    pub(super) fn one(
        dtype: DType,
        dims: Vec<usize>,
        run: impl Fn(&Inputs<'_>, &mut ViewMut<'_>) -> Result<()> + 'static,
    ) -> Result<Self> {
        Ready::many(vec![(dtype, dims)], move |x, y| match y {
            [y] => run(x, y),
            _ => Ok(()),
        })
    }

    /// An op of several outputs.
    pub(super) fn many(
        outputs: Vec<(DType, Vec<usize>)>,
        run: impl Fn(&Inputs<'_>, &mut [ViewMut<'_>]) -> Result<()> + 'static,
    ) -> Result<Self> {
        for (_, dims) in &outputs {
            checked_dims(&dims.iter().map(|&d| d as u64).collect::<Vec<_>>())?;
        }
        // nothing to make: spares the ops their corner cases, and tables of other axes' lengths
        let run = move |x: &Inputs<'_>, y: &mut [ViewMut<'_>]| {
            if y.iter().all(|y| y.peek().is_empty()) {
                return Ok(());
            }
            run(x, y)
        };
        let run = Box::new(run);
        Ok(Ready { outputs, run })
    }

    /// An op that makes `value`, whatever its inputs.
    pub(super) fn value(dims: Vec<usize>, value: Data) -> Result<Self> {
        Ready::one(value.dtype(), dims, move |_, y| {
            for_type!(value.dtype(), T => {
                let x = T::slice(value.as_ref()).unwrap_or_default();
                y.all::<T>()?.copy_from_slice(x);
            });
            Ok(())
        })
    }
}
