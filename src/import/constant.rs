//! Constants of a model: small ones in memory, large ones where they are in their file.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use super::onnx::{ElementType, TensorProto};
use crate::dense::{DType, Data, Value};
use crate::error::{Error, Result};
use crate::graph::{Weight, WeightSource};

/// From how many bytes on f32 and f16 values stay in their file until they are needed.
const LAZY: u64 = 4096;

/// A tensor whose values the model gives.
#[derive(Debug, Clone)]
pub(super) enum Constant {
    /// In memory.
    Value(Arc<Value>),
    /// Large, of f32: read when it is needed.
    Weight(Weight),
}

impl Constant {
    /// With the given value; `name` is for messages.
    pub(super) fn new(name: &str, Value { dims, data }: Value) -> Self {
        match data {
            Data::F32(values) if 4 * values.len() as u64 >= LAZY => Constant::Weight(Weight {
                name: name.to_owned(),
                dims,
                source: WeightSource::Inline(Arc::new(values)),
            }),
            data => Constant::Value(Arc::new(Value { dims, data })),
        }
    }

    /// Its type.
    pub(super) fn dtype(&self) -> DType {
        match self {
            Constant::Value(value) => value.dtype(),
            Constant::Weight(_) => DType::F32,
        }
    }

    /// Its lengths.
    pub(super) fn dims(&self) -> &[u64] {
        match self {
            Constant::Value(value) => &value.dims,
            Constant::Weight(weight) => &weight.dims,
        }
    }

    /// Its values in memory.
    ///
    /// # Errors
    /// [`Error::Io`] where they are in a file that cannot be read.
    pub(super) fn value(&self) -> Result<Arc<Value>> {
        match self {
            Constant::Value(value) => Ok(value.clone()),
            Constant::Weight(weight) => {
                let mut values = vec![0.0; weight.len() as usize];
                weight.read(0, &mut values)?;
                Ok(Arc::new(Value::f32(&weight.dims, values)))
            }
        }
    }
}

/// Reads the constants of one model file.
#[derive(Debug)]
pub(super) struct Constants {
    path: Arc<PathBuf>,
    file: Arc<File>,
    map: Bytes,
    /// Files of external data by their location, with their lengths.
    externals: HashMap<String, (Arc<PathBuf>, Arc<File>, u64)>,
}

/// Where the bytes of a tensor are.
struct Place {
    path: Arc<PathBuf>,
    file: Arc<File>,
    offset: u64,
}

impl Constants {
    /// For the model file `file` at `path`, whose bytes are `map`.
    pub(super) fn new(path: PathBuf, file: File, map: Bytes) -> Self {
        Constants {
            path: Arc::new(path),
            file: Arc::new(file),
            map,
            externals: HashMap::new(),
        }
    }

    fn bad<T>(&self, tensor: &TensorProto, why: impl std::fmt::Display) -> Result<T> {
        let why = format!("tensor `{}`: {why}", tensor.name);
        Err(Error::format(self.path.as_path(), why))
    }

    /// The constant that `tensor` is.
    ///
    /// # Errors
    /// [`Error::Format`] where its lengths and its data do not agree, [`Error::Unsupported`] where its
    /// type is not supported, [`Error::Io`] where its file cannot be read.
    pub(super) fn constant(&mut self, tensor: &TensorProto) -> Result<Constant> {
        let element = match ElementType::try_from(tensor.data_type) {
            Ok(ElementType::Undefined) | Err(_) => {
                return Err(Error::Unsupported {
                    node: tensor.name.clone(),
                    op: "constant".into(),
                    why: format!(
                        "element type {} is not supported; floats, integers of 8 to 64 bits and \
                         booleans are",
                        tensor.data_type
                    ),
                });
            }
            Ok(element) => element,
        };
        let mut dims = Vec::with_capacity(tensor.dims.len());
        let mut len = 1u64;
        for &d in &tensor.dims {
            let fits = u64::try_from(d).ok().filter(|&d| d < 1 << 40);
            let grown = fits.and_then(|d| len.checked_mul(d.max(1)).filter(|&n| n < 1 << 40));
            let (Some(d), Some(grown)) = (fits, grown) else {
                return self.bad(tensor, format!("lengths {:?} make no sense", tensor.dims));
            };
            len = grown;
            dims.push(d);
        }
        let len: u64 = dims.iter().product();
        let size = len * element.size();
        let place = if tensor.data_location == 1 {
            Some(self.external(tensor, size)?)
        } else if let Some(raw) = &tensor.raw_data {
            if raw.len() as u64 != size {
                let has = raw.len();
                return self.bad(
                    tensor,
                    format!("{has} bytes of data where {dims:?} needs {size}"),
                );
            }
            self.offset(raw).map(|offset| Place {
                path: self.path.clone(),
                file: self.file.clone(),
                offset,
            })
        } else {
            None
        };
        let half = element == ElementType::Float16;
        if let Some(place) = place
            .as_ref()
            .filter(|_| half || element == ElementType::Float)
            && size >= LAZY
        {
            return Ok(Constant::Weight(Weight {
                name: tensor.name.clone(),
                dims,
                source: WeightSource::File {
                    file: place.file.clone(),
                    path: place.path.clone(),
                    offset: place.offset,
                    half,
                },
            }));
        }
        let data = match (&tensor.raw_data, place) {
            (Some(raw), _) if tensor.data_location != 1 => element.decode(raw),
            (_, Some(place)) => {
                let mut bytes = vec![0; size as usize];
                let read = place.file.read_exact_at(&mut bytes, place.offset);
                read.map_err(|e| Error::io(place.path.as_path(), e))?;
                element.decode(&bytes)
            }
            _ => element.typed(tensor),
        };
        if data.as_ref().len() as u64 != len {
            let has = data.as_ref().len();
            return self.bad(tensor, format!("{has} values where {dims:?} needs {len}"));
        }
        Ok(Constant::new(&tensor.name, Value { dims, data }))
    }

    /// Where `bytes` start in the model file, if they are a slice of it.
    fn offset(&self, bytes: &Bytes) -> Option<u64> {
        let offset = (bytes.as_ptr() as usize).checked_sub(self.map.as_ptr() as usize)?;
        (offset + bytes.len() <= self.map.len()).then_some(offset as u64)
    }

    /// Where the `size` bytes of a tensor in another file are.
    fn external(&mut self, tensor: &TensorProto, size: u64) -> Result<Place> {
        let key = |key: &str| {
            let entry = tensor.external_data.iter().find(|e| e.key == key);
            entry.map(|e| e.value.as_str())
        };
        let number = |name: &str, default: u64| match key(name) {
            None => Ok(default),
            Some(text) => match text.parse::<u64>() {
                Ok(n) => Ok(n),
                Err(_) => self.bad(tensor, format!("external {name} `{text}` is no number")),
            },
        };
        let (offset, length) = (number("offset", 0)?, number("length", size)?);
        let Some(location) = key("location") else {
            return self.bad(tensor, "external data without a location");
        };
        let inside = |c| matches!(c, Component::Normal(_) | Component::CurDir);
        if location.is_empty() || !Path::new(location).components().all(inside) {
            let why = format!("external file `{location}` is not inside the model's folder");
            return self.bad(tensor, why);
        }
        if length != size {
            let why = format!("{length} bytes of external data where its lengths need {size}");
            return self.bad(tensor, why);
        }
        if !self.externals.contains_key(location) {
            let path = self.path.with_file_name("").join(location);
            let io = |e| Error::io(&path, e);
            let file = File::open(&path).map_err(io)?;
            let meta = file.metadata().map_err(io)?;
            if !meta.is_file() {
                return self.bad(tensor, format!("external data `{location}` is not a file"));
            }
            let entry = (Arc::new(path), Arc::new(file), meta.len());
            self.externals.insert(location.to_owned(), entry);
        }
        let (path, file, has) = &self.externals[location];
        if offset.checked_add(size).is_none_or(|end| end > *has) {
            let why = format!(
                "tensor `{}` ends behind the file's {has} bytes",
                tensor.name
            );
            return Err(Error::format(path.as_path(), why));
        }
        let (path, file) = (path.clone(), file.clone());
        Ok(Place { path, file, offset })
    }
}

impl ElementType {
    /// Bytes of an element in raw data.
    fn size(self) -> u64 {
        use ElementType::*;
        match self {
            Undefined => 0,
            Uint8 | Int8 | Bool => 1,
            Uint16 | Int16 | Float16 | Bfloat16 => 2,
            Float | Int32 | Uint32 => 4,
            Int64 | Uint64 | Double => 8,
        }
    }

    /// The type that its elements have here.
    pub(super) fn dtype(self) -> Option<DType> {
        use ElementType::*;
        Some(match self {
            Undefined => return None,
            Float | Float16 | Bfloat16 | Double => DType::F32,
            Int64 | Uint32 | Uint64 => DType::I64,
            Int32 | Int16 | Int8 | Uint16 => DType::I32,
            Uint8 => DType::U8,
            Bool => DType::Bool,
        })
    }

    /// The elements of raw data. A rest that is no whole element is left out.
    fn decode(self, raw: &[u8]) -> Data {
        fn each<const N: usize, T>(raw: &[u8], f: impl Fn([u8; N]) -> T) -> Vec<T> {
            raw.as_chunks().0.iter().map(|&b| f(b)).collect()
        }
        use ElementType::*;
        match self {
            Float => Data::F32(each(raw, f32::from_le_bytes)),
            Float16 => Data::F32(each(raw, |b| half::f16::from_le_bytes(b).to_f32())),
            Bfloat16 => Data::F32(each(raw, |b| half::bf16::from_le_bytes(b).to_f32())),
            Double => Data::F32(each(raw, |b| f64::from_le_bytes(b) as f32)),
            Int64 => Data::I64(each(raw, i64::from_le_bytes)),
            Uint64 => Data::I64(each(raw, |b| u64::from_le_bytes(b) as i64)),
            Uint32 => Data::I64(each(raw, |b| u32::from_le_bytes(b).into())),
            Int32 => Data::I32(each(raw, i32::from_le_bytes)),
            Int16 => Data::I32(each(raw, |b| i16::from_le_bytes(b).into())),
            Uint16 => Data::I32(each(raw, |b| u16::from_le_bytes(b).into())),
            Int8 => Data::I32(each(raw, |b| i8::from_le_bytes(b).into())),
            Uint8 => Data::U8(raw.to_vec()),
            Bool => Data::Bool(raw.iter().map(|&b| u8::from(b != 0)).collect()),
            Undefined => Data::U8(Vec::new()),
        }
    }

    /// The elements in the field of their type: small types share `int32_data`.
    fn typed(self, tensor: &TensorProto) -> Data {
        fn each<S: Copy, T>(from: &[S], f: impl Fn(S) -> T) -> Vec<T> {
            from.iter().map(|&x| f(x)).collect()
        }
        use ElementType::*;
        let small = &tensor.int32_data;
        match self {
            Float => Data::F32(tensor.float_data.clone()),
            Float16 => Data::F32(each(small, |x| half::f16::from_bits(x as u16).to_f32())),
            Bfloat16 => Data::F32(each(small, |x| half::bf16::from_bits(x as u16).to_f32())),
            Double => Data::F32(each(&tensor.double_data, |x| x as f32)),
            Int64 => Data::I64(tensor.int64_data.clone()),
            Uint64 | Uint32 => Data::I64(each(&tensor.uint64_data, |x| x as i64)),
            Int32 | Int16 | Int8 | Uint16 => Data::I32(small.clone()),
            Uint8 => Data::U8(each(small, |x| x as u8)),
            Bool => Data::Bool(each(small, |x| u8::from(x != 0))),
            Undefined => Data::U8(Vec::new()),
        }
    }
}
