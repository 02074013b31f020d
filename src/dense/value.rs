//! Whole tensors: owned, borrowed and borrowed for writing.

use serde::Serialize;

use super::args::{Element, bad};
use crate::error::Result;

/// The element types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[allow(missing_docs, reason = "the names say it")]
pub enum DType {
    F32,
    I64,
    I32,
    U8,
    Bool,
}

impl DType {
    /// Bytes of one element.
    pub fn size(self) -> u64 {
        match self {
            DType::F32 | DType::I32 => 4,
            DType::I64 => 8,
            DType::U8 | DType::Bool => 1,
        }
    }
}

/// The elements of an owned tensor. Booleans are bytes of 0 and 1.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the names are the types")]
pub enum Data {
    F32(Vec<f32>),
    I64(Vec<i64>),
    I32(Vec<i32>),
    U8(Vec<u8>),
    Bool(Vec<u8>),
}

/// The elements of a borrowed tensor.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "the names are the types")]
pub enum DataRef<'a> {
    F32(&'a [f32]),
    I64(&'a [i64]),
    I32(&'a [i32]),
    U8(&'a [u8]),
    Bool(&'a [u8]),
}

/// The elements of a tensor that is written.
#[derive(Debug)]
#[allow(missing_docs, reason = "the names are the types")]
pub enum DataMut<'a> {
    F32(&'a mut [f32]),
    I64(&'a mut [i64]),
    I32(&'a mut [i32]),
    U8(&'a mut [u8]),
    Bool(&'a mut [u8]),
}

impl Data {
    /// The type of the elements.
    pub fn dtype(&self) -> DType {
        self.as_ref().dtype()
    }

    /// The elements, borrowed.
    pub fn as_ref(&self) -> DataRef<'_> {
        match self {
            Data::F32(v) => DataRef::F32(v),
            Data::I64(v) => DataRef::I64(v),
            Data::I32(v) => DataRef::I32(v),
            Data::U8(v) => DataRef::U8(v),
            Data::Bool(v) => DataRef::Bool(v),
        }
    }
}

impl DataRef<'_> {
    /// The type of the elements.
    pub fn dtype(&self) -> DType {
        match self {
            DataRef::F32(_) => DType::F32,
            DataRef::I64(_) => DType::I64,
            DataRef::I32(_) => DType::I32,
            DataRef::U8(_) => DType::U8,
            DataRef::Bool(_) => DType::Bool,
        }
    }

    /// How many elements.
    pub fn len(&self) -> usize {
        match self {
            DataRef::F32(v) => v.len(),
            DataRef::I64(v) => v.len(),
            DataRef::I32(v) => v.len(),
            DataRef::U8(v) | DataRef::Bool(v) => v.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl ViewMut<'_> {
    /// The type of the elements.
    pub fn dtype(&self) -> DType {
        self.peek().dtype()
    }

    /// The elements, for reading.
    pub(super) fn peek(&self) -> DataRef<'_> {
        match &self.data {
            DataMut::F32(v) => DataRef::F32(v),
            DataMut::I64(v) => DataRef::I64(v),
            DataMut::I32(v) => DataRef::I32(v),
            DataMut::U8(v) => DataRef::U8(v),
            DataMut::Bool(v) => DataRef::Bool(v),
        }
    }

    /// All elements.
    pub(super) fn all<T: Element>(&mut self) -> Result<&mut [T]> {
        match T::slice_mut(&mut self.data) {
            Some(y) => Ok(y),
            None => bad("an output is of another type than the op makes"),
        }
    }
}

/// An owned tensor, row-major.
#[derive(Debug, Clone, PartialEq)]
pub struct Value {
    /// Lengths.
    pub dims: Vec<u64>,
    /// Elements.
    pub data: Data,
}

/// A borrowed tensor, row-major.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// Lengths.
    pub dims: &'a [u64],
    /// Elements.
    pub data: DataRef<'a>,
}

/// A tensor that is written, row-major.
#[derive(Debug)]
pub struct ViewMut<'a> {
    /// Lengths.
    pub dims: &'a [u64],
    /// Elements.
    pub data: DataMut<'a>,
}

impl Value {
    /// A tensor of zeros.
    pub fn zeros(dtype: DType, dims: &[u64]) -> Self {
        let n = dims.iter().product::<u64>() as usize;
        let data = match dtype {
            DType::F32 => Data::F32(vec![0.0; n]),
            DType::I64 => Data::I64(vec![0; n]),
            DType::I32 => Data::I32(vec![0; n]),
            DType::U8 => Data::U8(vec![0; n]),
            DType::Bool => Data::Bool(vec![0; n]),
        };
        Value {
            dims: dims.to_vec(),
            data,
        }
    }

    /// A tensor of f32.
    pub fn f32(dims: &[u64], values: Vec<f32>) -> Self {
        Value {
            dims: dims.to_vec(),
            data: Data::F32(values),
        }
    }

    /// A tensor of i64.
    pub fn i64(dims: &[u64], values: Vec<i64>) -> Self {
        Value {
            dims: dims.to_vec(),
            data: Data::I64(values),
        }
    }

    /// Its type.
    pub fn dtype(&self) -> DType {
        self.data.dtype()
    }

    /// A view of it.
    pub fn view(&self) -> View<'_> {
        View {
            dims: &self.dims,
            data: self.data.as_ref(),
        }
    }

    /// A view for writing.
    pub fn view_mut(&mut self) -> ViewMut<'_> {
        let data = match &mut self.data {
            Data::F32(v) => DataMut::F32(v),
            Data::I64(v) => DataMut::I64(v),
            Data::I32(v) => DataMut::I32(v),
            Data::U8(v) => DataMut::U8(v),
            Data::Bool(v) => DataMut::Bool(v),
        };
        ViewMut {
            dims: &self.dims,
            data,
        }
    }
}
