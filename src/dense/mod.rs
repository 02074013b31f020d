//! Every supported op over whole tensors, of any rank and type: what ONNX says it means.
//!
//! Constants and shapes are folded with it when a graph is built, and an op that cannot run in
//! strips runs with it, once, over whole tensors. It is written for clarity and coverage; speed is
//! the business of [`crate::kernels`].
//!
//! An op is its ONNX name and attributes. [`infer`] gives the types and lengths of its outputs,
//! [`run`] computes them into memory that the caller owns.

mod args;
mod conv;
mod elementwise;
mod generate;
mod index;
mod interp;
mod linear;
mod movement;
mod norm;
mod pad;
mod pool;
mod reduce;
mod resize;
mod scalar;
mod shape;
mod value;
mod window;

pub use interp::{Coordinate, Interp, InterpMode, NearestRound};
pub use scalar::{func, scalar};
pub use value::{DType, Data, DataMut, DataRef, Value, View, ViewMut};
pub use window::Window;

use std::collections::BTreeMap;

use args::{Inputs, Ready, checked_dims, ensure, unsupported};

use crate::error::{Error, Result};

/// An ONNX operator with its attributes.
#[derive(Debug, Clone, PartialEq)]
pub struct Op {
    /// The operator's name, such as `Conv`.
    pub kind: String,
    /// The version of the operator set that the model imports.
    pub opset: u32,
    /// Its attributes by name.
    pub attrs: BTreeMap<String, Attr>,
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the names are ONNX's")]
pub enum Attr {
    Int(i64),
    Float(f32),
    Str(String),
    Ints(Vec<i64>),
    Floats(Vec<f32>),
    Strs(Vec<String>),
    Tensor(Value),
}

/// What is known of an input when outputs are inferred.
#[derive(Debug, Clone, Copy)]
pub struct Fact<'a> {
    /// Its type.
    pub dtype: DType,
    /// Its lengths.
    pub dims: &'a [u64],
    /// Its values, where they are known (shapes, axes and the like must be).
    pub value: Option<&'a Value>,
}

impl Op {
    /// An integer attribute.
    pub fn int(&self, name: &str) -> Option<i64> {
        match self.attrs.get(name) {
            Some(Attr::Int(i)) => Some(*i),
            _ => None,
        }
    }
    /// A float attribute.
    pub fn float(&self, name: &str) -> Option<f32> {
        match self.attrs.get(name) {
            Some(Attr::Float(f)) => Some(*f),
            _ => None,
        }
    }
    /// A string attribute.
    pub fn str(&self, name: &str) -> Option<&str> {
        match self.attrs.get(name) {
            Some(Attr::Str(s)) => Some(s),
            _ => None,
        }
    }
    /// A list of integers.
    pub fn ints(&self, name: &str) -> Option<&[i64]> {
        match self.attrs.get(name) {
            Some(Attr::Ints(v)) => Some(v),
            _ => None,
        }
    }
}

/// The types and lengths of the outputs of `op`, optional ones included.
///
/// What the number of a node's outputs decides is not known here: `Split` needs the attribute
/// `num_outputs` wherever it has no lengths.
///
/// # Errors
/// [`crate::Error::Unsupported`] or [`crate::Error::Model`] naming the operator (the caller puts the
/// node's name) where the operator is unknown, an input that decides the shape is not constant, or
/// lengths do not agree.
pub fn infer(op: &Op, inputs: &[Option<Fact<'_>>]) -> Result<Vec<(DType, Vec<u64>)>> {
    let inputs = Inputs::of_facts(inputs);
    let ready = named(op, inputs.and_then(|inputs| prepare(op, &inputs)))?;
    let wide = |(dtype, dims): (_, Vec<usize>)| (dtype, dims.iter().map(|&d| d as u64).collect());
    Ok(ready.outputs.into_iter().map(wide).collect())
}

/// Computes `op` over whole tensors into `outputs`, which have the types and lengths that [`infer`]
/// gave. There may be fewer: optional outputs that nobody needs are left off from the end.
///
/// # Errors
/// As [`infer`]; and where numbers are wrong, such as an index out of range.
pub fn run(op: &Op, inputs: &[Option<View<'_>>], outputs: &mut [ViewMut<'_>]) -> Result<()> {
    let mut compute = || {
        let inputs = Inputs::of_views(inputs)?;
        let ready = prepare(op, &inputs)?;
        let fits = |(y, (dtype, dims)): (&ViewMut<'_>, &(DType, Vec<usize>))| {
            let lengths = dims.iter().map(|&d| d as u64);
            y.dtype() == *dtype
                && y.dims.iter().copied().eq(lengths)
                && y.peek().len() == dims.iter().product::<usize>()
        };
        let fit =
            outputs.len() <= ready.outputs.len() && outputs.iter().zip(&ready.outputs).all(fits);
        ensure(fit, || format!("outputs are not {:?}", ready.outputs))?;
        (ready.run)(&inputs, outputs)
    };
    named(op, compute())
}

/// [`infer`] and [`run`] at once: all outputs of `op`.
///
/// # Errors
/// As [`run`].
pub fn eval(op: &Op, inputs: &[Option<View<'_>>]) -> Result<Vec<Value>> {
    let zeros = |(dtype, dims): &(DType, Vec<usize>)| {
        let dims: Vec<u64> = dims.iter().map(|&d| d as u64).collect();
        Value::zeros(*dtype, &dims)
    };
    let compute = || {
        let inputs = Inputs::of_views(inputs)?;
        let ready = prepare(op, &inputs)?;
        let elements = |dims: &Vec<usize>| dims.iter().product::<usize>();
        let total: usize = ready.outputs.iter().map(|(_, dims)| elements(dims)).sum();
        ensure(total <= MOST_FOLDED, || {
            format!("a constant of {total} elements is too large: {MOST_FOLDED} can be folded")
        })?;
        let mut values: Vec<Value> = ready.outputs.iter().map(zeros).collect();
        let mut views: Vec<ViewMut<'_>> = values.iter_mut().map(Value::view_mut).collect();
        (ready.run)(&inputs, &mut views)?;
        Ok(values)
    };
    named(op, compute())
}

/// Elements of a constant that are computed when a graph is built: a hostile model must not take more
/// memory than its own size explains.
const MOST_FOLDED: usize = 1 << 28;

/// The windows of `size` that `op`, a convolution or pooling, slides over a plane of these lengths
/// (a transposed convolution: that it slides over what it makes of them), its padding worked out.
///
/// # Errors
/// As [`infer`].
pub fn windows(op: &Op, size: &[u64], lengths: &[u64]) -> Result<Vec<Window>> {
    let work_out = || {
        let (size, lengths) = (checked_dims(size)?, checked_dims(lengths)?);
        match op.kind.as_str() {
            "ConvTranspose" => conv::transposed(op, &size, &lengths),
            _ => window::Sliding::new(op, &size, &lengths),
        }
    };
    Ok(named(op, work_out())?.windows)
}

/// How `op`, a `Resize` or `Upsample`, interpolates along each axis of its first input.
///
/// # Errors
/// As [`infer`].
pub fn resizes(op: &Op, inputs: &[Option<Fact<'_>>]) -> Result<Vec<Interp>> {
    let inputs = Inputs::of_facts(inputs);
    named(op, inputs.and_then(|inputs| resize::axes(op, &inputs)))
}

/// Whether the operator `kind` is known.
pub fn supports(kind: &str) -> bool {
    find(kind).is_some()
}

/// Puts the operator's name into an error.
fn named<T>(op: &Op, result: Result<T>) -> Result<T> {
    result.map_err(|error| match error {
        Error::Model { node, why } => Error::Model {
            node,
            why: format!("{}: {why}", op.kind),
        },
        Error::Unsupported { node, why, .. } => Error::Unsupported {
            node,
            op: op.kind.clone(),
            why,
        },
        other => other,
    })
}

fn prepare(op: &Op, inputs: &Inputs<'_>) -> Result<Ready> {
    match find(&op.kind) {
        Some(prepare) => prepare(op, inputs),
        None => unsupported("is not known"),
    }
}

/// Checks an operator's attributes and inputs.
type Prepare = fn(&Op, &Inputs<'_>) -> Result<Ready>;

fn find(kind: &str) -> Option<Prepare> {
    Some(match kind {
        "Relu" | "LeakyRelu" | "Elu" | "Selu" | "Celu" | "ThresholdedRelu" | "HardSigmoid"
        | "HardSwish" | "Sigmoid" | "Tanh" | "Softplus" | "Softsign" | "Erf" | "Gelu" | "Mish"
        | "Swish" | "Exp" | "Log" | "Sqrt" | "Reciprocal" | "Abs" | "Neg" | "Floor" | "Ceil"
        | "Round" | "Sign" | "Sin" | "Cos" | "Not" | "Add" | "Sub" | "Mul" | "Div" | "PRelu"
        | "Greater" | "GreaterOrEqual" | "Less" | "LessOrEqual" | "Equal" | "And" | "Or"
        | "Xor" => elementwise::apply,
        "Sum" | "Mean" | "Min" | "Max" => elementwise::variadic,
        "Pow" => elementwise::pow,
        "Where" => elementwise::select,
        "Mod" | "BitShift" | "BitwiseAnd" | "BitwiseOr" | "BitwiseXor" => elementwise::bits,
        "Tan" | "Asin" | "Acos" | "Atan" | "Sinh" | "Cosh" | "Asinh" | "Acosh" | "Atanh" => {
            elementwise::rare
        }
        "IsNaN" | "IsInf" => elementwise::is_not_finite,
        "Clip" => elementwise::clip_to,
        "Cast" | "CastLike" => elementwise::cast,

        "Identity" => movement::identity,
        "Dropout" => movement::dropout,
        "Transpose" => movement::transpose,
        "Reshape" => movement::reshape,
        "Flatten" => movement::flatten,
        "Squeeze" => movement::squeeze,
        "Unsqueeze" => movement::unsqueeze,
        "Expand" => movement::expand,
        "Tile" => movement::tile,
        "DepthToSpace" => movement::depth_to_space,
        "SpaceToDepth" => movement::space_to_depth,
        "Concat" => movement::concat,
        "Split" => movement::split,
        "Slice" => movement::slice,
        "Pad" => pad::pad,

        "Resize" | "Upsample" => resize::resize,

        "Gather" => index::gather,
        "GatherElements" => index::gather_elements,
        "GatherND" => index::gather_nd,
        "Scatter" | "ScatterElements" => index::scatter_elements,
        "ScatterND" => index::scatter_nd,

        "Conv" => conv::conv,
        "ConvTranspose" => conv::conv_transpose,
        "MatMul" => linear::matmul,
        "Gemm" => linear::gemm,
        "MaxPool" => pool::max_pool,
        "AveragePool" => pool::average_pool,
        "LpPool" => pool::lp_pool,
        "GlobalAveragePool" | "GlobalMaxPool" => reduce::global_pool,

        "ReduceSum" | "ReduceMean" | "ReduceMax" | "ReduceMin" | "ReduceProd" | "ReduceL1"
        | "ReduceL2" | "ReduceLogSum" | "ReduceLogSumExp" | "ReduceSumSquare" => reduce::reduce,
        "ArgMax" | "ArgMin" => reduce::arg,
        "TopK" => reduce::top_k,
        "CumSum" => reduce::cum_sum,
        "Softmax" | "LogSoftmax" | "Hardmax" => norm::softmax,
        "BatchNormalization" => norm::batch,
        "InstanceNormalization" => norm::instance,
        "GroupNormalization" => norm::group,
        "LayerNormalization" => norm::layer,
        "MeanVarianceNormalization" => norm::mean_variance,
        "LpNormalization" => norm::lp,
        "LRN" => norm::lrn,

        "Constant" => generate::constant,
        "ConstantOfShape" => generate::constant_of_shape,
        "Shape" => generate::shape,
        "Size" => generate::size,
        "Range" => generate::range,
        "EyeLike" => generate::eye_like,
        "Trilu" => generate::trilu,
        "OneHot" => generate::one_hot,
        _ => return None,
    })
}
