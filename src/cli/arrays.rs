//! Inputs and outputs as arrays in memory, as other engines take and give them: `[n, c, h, w]`.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use stripmill::dense::{DType, Data, DataMut, DataRef, Value, View};
use stripmill::exec::{Drain, Feed};
use stripmill::graph::{Graph, Layout, Tensor, TensorId};
use stripmill::io::{self, ImageShape, MemorySink, MemorySource, read_value, write_value};
use stripmill::{Error, Result};

/// Bytes of the arrays of all inputs and outputs.
pub(super) fn bytes(graph: &Graph) -> u64 {
    let all = graph.inputs.iter().chain(&graph.outputs);
    all.map(|&id| graph.tensor(id))
        .map(|t| t.dims.iter().product::<u64>() * element(t).size())
        .sum()
}

/// The type of a tensor's array: rows are f32, whatever the model says.
fn element(tensor: &Tensor) -> DType {
    match tensor.layout {
        Layout::Rows => DType::F32,
        Layout::Whole => tensor.dtype,
    }
}

/// The array of an input out of `file`, or noise.
pub(super) fn input(tensor: &Tensor, file: Option<&Path>) -> Result<Value> {
    let Some(path) = file else {
        return Ok(noise(element(tensor), &tensor.dims));
    };
    let value = read_value(path)?;
    if (value.dtype(), &value.dims) != (element(tensor), &tensor.dims) {
        return Err(Error::Usage(format!(
            "input `{}` is {:?} {:?} at this size, {} holds {:?} {:?}",
            tensor.name,
            element(tensor),
            tensor.dims,
            path.display(),
            value.dtype(),
            value.dims
        )));
    }
    Ok(value)
}

/// Numbers that look random and are the same every time: in [0, 1) where they are f32, else 0 and 1.
fn noise(dtype: DType, dims: &[u64]) -> Value {
    let bits = |k: usize| {
        let mixed = (k as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed >> 40
    };
    fn fill<T>(values: &mut [T], of: impl Fn(usize) -> T) {
        values.iter_mut().enumerate().for_each(|(k, v)| *v = of(k));
    }
    let mut value = Value::zeros(dtype, dims);
    match value.view_mut().data {
        DataMut::F32(v) => fill(v, |k| bits(k) as f32 / (1 << 24) as f32),
        DataMut::I64(v) => fill(v, |k| (bits(k) % 2) as i64),
        DataMut::I32(v) => fill(v, |k| (bits(k) % 2) as i32),
        DataMut::U8(v) | DataMut::Bool(v) => fill(v, |k| (bits(k) % 2) as u8),
    }
    value
}

/// `value` as what input `id` is fed with.
pub(super) fn feed(graph: &Graph, id: TensorId, value: Value) -> Result<Feed> {
    let tensor = graph.tensor(id);
    match (tensor.layout, value.data) {
        (Layout::Rows, Data::F32(values)) => {
            let source = MemorySource::new(values, image(tensor), io::Layout::Nchw)?;
            Ok(Feed::Rows(Box::new(source)))
        }
        (_, data) => Ok(Feed::Whole(Value {
            dims: value.dims,
            data,
        })),
    }
}

fn image(tensor: &Tensor) -> ImageShape {
    ImageShape {
        n: tensor.n(),
        c: tensor.c(),
        h: tensor.h(),
        w: tensor.w(),
    }
}

/// The array of an output, filled anew by every run.
pub(super) enum Output {
    Rows(MemorySink, Vec<u64>),
    Whole(Arc<Mutex<Value>>),
}

impl Output {
    pub(super) fn new(tensor: &Tensor) -> Self {
        match tensor.layout {
            Layout::Rows => {
                let sink = MemorySink::new(image(tensor), io::Layout::Nchw);
                Output::Rows(sink, tensor.dims.clone())
            }
            Layout::Whole => {
                let value = Value::zeros(tensor.dtype, &tensor.dims);
                Output::Whole(Arc::new(Mutex::new(value)))
            }
        }
    }

    /// What fills it.
    pub(super) fn drain(&self) -> Drain {
        match self {
            Output::Rows(sink, _) => Drain::Rows(Box::new(sink.clone())),
            Output::Whole(value) => {
                let value = value.clone();
                Drain::Whole(Box::new(move |view: View<'_>| {
                    let mut value = value.lock().unwrap_or_else(PoisonError::into_inner);
                    copy(view.data, value.view_mut().data)
                }))
            }
        }
    }

    /// Writes it as `.npy`.
    pub(super) fn write(&self, path: &Path) -> Result<()> {
        match self {
            Output::Rows(sink, dims) => {
                let values = sink.take();
                let data = DataRef::F32(&values);
                write_value(path, View { dims, data })?;
            }
            Output::Whole(value) => {
                let value = value.lock().unwrap_or_else(PoisonError::into_inner);
                write_value(path, value.view())?;
            }
        }
        Ok(())
    }
}

fn copy(from: DataRef<'_>, to: DataMut<'_>) -> Result<()> {
    match (from, to) {
        (DataRef::F32(from), DataMut::F32(to)) => to.copy_from_slice(from),
        (DataRef::I64(from), DataMut::I64(to)) => to.copy_from_slice(from),
        (DataRef::I32(from), DataMut::I32(to)) => to.copy_from_slice(from),
        (DataRef::U8(from), DataMut::U8(to)) | (DataRef::Bool(from), DataMut::Bool(to)) => {
            to.copy_from_slice(from);
        }
        _ => {
            return Err(Error::Plan(
                "an output is of another type than the graph says".into(),
            ));
        }
    }
    Ok(())
}
