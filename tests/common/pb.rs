//! ONNX's messages, as far as the tests write and read them: field numbers from `onnx.proto`.

use prost::Message;
use stripmill::dense::{Data, Value};

#[derive(Clone, PartialEq, Message)]
pub struct Model {
    #[prost(int64, optional, tag = "1")]
    pub ir_version: Option<i64>,
    #[prost(message, optional, tag = "7")]
    pub graph: Option<Graph>,
    #[prost(message, repeated, tag = "8")]
    pub opset_import: Vec<Opset>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Opset {
    #[prost(string, optional, tag = "1")]
    pub domain: Option<String>,
    #[prost(int64, optional, tag = "2")]
    pub version: Option<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Graph {
    #[prost(message, repeated, tag = "1")]
    pub node: Vec<Node>,
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    #[prost(message, repeated, tag = "5")]
    pub initializer: Vec<Tensor>,
    #[prost(message, repeated, tag = "11")]
    pub input: Vec<ValueInfo>,
    #[prost(message, repeated, tag = "12")]
    pub output: Vec<ValueInfo>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Node {
    #[prost(string, repeated, tag = "1")]
    pub input: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub output: Vec<String>,
    #[prost(string, optional, tag = "3")]
    pub name: Option<String>,
    #[prost(string, optional, tag = "4")]
    pub op_type: Option<String>,
    #[prost(message, repeated, tag = "5")]
    pub attribute: Vec<Attribute>,
    #[prost(string, optional, tag = "7")]
    pub domain: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Attribute {
    #[prost(string, optional, tag = "1")]
    pub name: Option<String>,
    #[prost(float, optional, tag = "2")]
    pub f: Option<f32>,
    #[prost(int64, optional, tag = "3")]
    pub i: Option<i64>,
    #[prost(bytes = "vec", optional, tag = "4")]
    pub s: Option<Vec<u8>>,
    #[prost(message, optional, tag = "5")]
    pub t: Option<Tensor>,
    #[prost(message, optional, tag = "6")]
    pub g: Option<Graph>,
    #[prost(float, repeated, tag = "7")]
    pub floats: Vec<f32>,
    #[prost(int64, repeated, tag = "8")]
    pub ints: Vec<i64>,
    #[prost(int32, optional, tag = "20")]
    pub kind: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Tensor {
    #[prost(int64, repeated, tag = "1")]
    pub dims: Vec<i64>,
    #[prost(int32, optional, tag = "2")]
    pub data_type: Option<i32>,
    #[prost(float, repeated, tag = "4")]
    pub float_data: Vec<f32>,
    #[prost(int32, repeated, tag = "5")]
    pub int32_data: Vec<i32>,
    #[prost(int64, repeated, tag = "7")]
    pub int64_data: Vec<i64>,
    #[prost(string, optional, tag = "8")]
    pub name: Option<String>,
    #[prost(bytes = "vec", optional, tag = "9")]
    pub raw_data: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ValueInfo {
    #[prost(string, optional, tag = "1")]
    pub name: Option<String>,
    #[prost(message, optional, tag = "2")]
    pub r#type: Option<Type>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Type {
    #[prost(message, optional, tag = "1")]
    pub tensor: Option<TensorType>,
}

#[derive(Clone, PartialEq, Message)]
pub struct TensorType {
    #[prost(int32, optional, tag = "1")]
    pub elem_type: Option<i32>,
    #[prost(message, optional, tag = "2")]
    pub shape: Option<Shape>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Shape {
    #[prost(message, repeated, tag = "1")]
    pub dim: Vec<Dim>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Dim {
    #[prost(int64, optional, tag = "1")]
    pub value: Option<i64>,
    #[prost(string, optional, tag = "2")]
    pub param: Option<String>,
}

pub const FLOAT: i32 = 1;
pub const UINT8: i32 = 2;
pub const INT32: i32 = 6;
pub const INT64: i32 = 7;
pub const BOOL: i32 = 9;

impl Tensor {
    /// The tensor as a value; `None` where its type is none that the library has.
    pub fn value(&self) -> Option<Value> {
        let raw = self.raw_data.as_deref();
        let data = match self.data_type? {
            FLOAT => Data::F32(match raw {
                Some(raw) => raw
                    .chunks_exact(4)
                    .map(|b| f32::from_le_bytes(b.try_into().unwrap()))
                    .collect(),
                None => self.float_data.clone(),
            }),
            INT64 => Data::I64(match raw {
                Some(raw) => raw
                    .chunks_exact(8)
                    .map(|b| i64::from_le_bytes(b.try_into().unwrap()))
                    .collect(),
                None => self.int64_data.clone(),
            }),
            INT32 => Data::I32(match raw {
                Some(raw) => raw
                    .chunks_exact(4)
                    .map(|b| i32::from_le_bytes(b.try_into().unwrap()))
                    .collect(),
                None => self.int32_data.clone(),
            }),
            kind @ (UINT8 | BOOL) => {
                let bytes = match raw {
                    Some(raw) => raw.to_vec(),
                    None => self.int32_data.iter().map(|&v| v as u8).collect(),
                };
                if kind == BOOL {
                    Data::Bool(bytes)
                } else {
                    Data::U8(bytes)
                }
            }
            _ => return None,
        };
        Some(Value {
            dims: self.dims.iter().map(|&d| d as u64).collect(),
            data,
        })
    }

    /// A tensor of f32 with a name.
    pub fn f32(name: &str, dims: &[i64], values: &[f32]) -> Self {
        Tensor {
            dims: dims.to_vec(),
            data_type: Some(FLOAT),
            name: Some(name.into()),
            raw_data: Some(values.iter().flat_map(|v| v.to_le_bytes()).collect()),
            ..Tensor::default()
        }
    }

    /// A tensor of i64 with a name.
    pub fn i64(name: &str, dims: &[i64], values: &[i64]) -> Self {
        Tensor {
            dims: dims.to_vec(),
            data_type: Some(INT64),
            name: Some(name.into()),
            int64_data: values.to_vec(),
            ..Tensor::default()
        }
    }
}

impl Node {
    /// A node named after its first output.
    pub fn new(op: &str, input: &[&str], output: &[&str]) -> Self {
        Node {
            input: input.iter().map(|s| s.to_string()).collect(),
            output: output.iter().map(|s| s.to_string()).collect(),
            name: Some(format!("{op}_{}", output[0])),
            op_type: Some(op.into()),
            ..Node::default()
        }
    }

    fn attribute(mut self, name: &str, kind: i32, set: impl FnOnce(&mut Attribute)) -> Self {
        let mut attribute = Attribute {
            name: Some(name.into()),
            kind: Some(kind),
            ..Attribute::default()
        };
        set(&mut attribute);
        self.attribute.push(attribute);
        self
    }

    pub fn float(self, name: &str, f: f32) -> Self {
        self.attribute(name, 1, |a| a.f = Some(f))
    }

    pub fn int(self, name: &str, i: i64) -> Self {
        self.attribute(name, 2, |a| a.i = Some(i))
    }

    pub fn str(self, name: &str, s: &str) -> Self {
        self.attribute(name, 3, |a| a.s = Some(s.into()))
    }

    pub fn ints(self, name: &str, ints: &[i64]) -> Self {
        self.attribute(name, 7, |a| a.ints = ints.to_vec())
    }
}

impl ValueInfo {
    /// An f32 tensor; a negative length is free.
    pub fn f32(name: &str, dims: &[i64]) -> Self {
        let dim = |(i, &d): (usize, &i64)| Dim {
            value: (d >= 0).then_some(d),
            param: (d < 0).then(|| format!("d{i}")),
        };
        ValueInfo {
            name: Some(name.into()),
            r#type: Some(Type {
                tensor: Some(TensorType {
                    elem_type: Some(FLOAT),
                    shape: Some(Shape {
                        dim: dims.iter().enumerate().map(dim).collect(),
                    }),
                }),
            }),
        }
    }
}

impl Model {
    /// A model of opset 18.
    pub fn new(graph: Graph) -> Self {
        Model {
            ir_version: Some(8),
            graph: Some(graph),
            opset_import: vec![Opset {
                domain: None,
                version: Some(18),
            }],
        }
    }
}

/// Bytes that, put behind a model's, make `tensors` initializers of it: messages merge.
pub fn more_initializers(tensors: Vec<Tensor>) -> Vec<u8> {
    let graph = Graph {
        initializer: tensors,
        ..Graph::default()
    };
    Model {
        graph: Some(graph),
        ..Model::default()
    }
    .encode_to_vec()
}
