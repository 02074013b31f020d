//! Every supported op over whole tensors, of any rank and type: what ONNX says it means.
//!
//! Constants and shapes are folded with it when a graph is built, and an op that cannot run in
//! strips runs with it, once, over whole tensors. It is written for clarity and coverage; speed is
//! the business of [`crate::kernels`].
//!
//! An op is its ONNX name and attributes. [`infer`] gives the types and lengths of its outputs,
//! [`run`] computes them into memory that the caller owns.

mod value;

pub use value::{DType, Data, DataMut, DataRef, Value, View, ViewMut};

use std::collections::BTreeMap;

use crate::error::Result;

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

/// The types and lengths of the outputs of `op`.
///
/// # Errors
/// [`crate::Error::Unsupported`] or [`crate::Error::Model`] naming the operator (the caller puts the
/// node's name) where the operator is unknown, an input that decides the shape is not constant, or
/// lengths do not agree.
pub fn infer(op: &Op, inputs: &[Option<Fact<'_>>]) -> Result<Vec<(DType, Vec<u64>)>> {
    let _ = (op, inputs);
    unimplemented!()
}

/// Computes `op` over whole tensors into `outputs`, which have the types and lengths that [`infer`]
/// gave.
///
/// # Errors
/// As [`infer`].
pub fn run(op: &Op, inputs: &[Option<View<'_>>], outputs: &mut [ViewMut<'_>]) -> Result<()> {
    let _ = (op, inputs, outputs);
    unimplemented!()
}
