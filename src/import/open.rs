//! A file to a [`Model`]: parsing, and what can be checked without sizes.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::path::Path;

use prost::Message;

use super::constant::{Constant, Constants};
use super::onnx::{
    AttributeKind, AttributeProto, ElementType, GraphProto, ModelProto, NodeProto, ValueInfoProto,
};
use super::{Body, Dim, Model, Node, Port};
use crate::dense::{self, Attr};
use crate::error::{Error, Result};
use crate::graph::ConvMode;
use crate::io::mapped;

/// The versions of the ONNX operator set that are understood.
const OPSETS: std::ops::RangeInclusive<i64> = 7..=28;

impl Model {
    /// Opens the ONNX file at `path`. Large weights are not read: they stay in the file (or in the
    /// files of external data beside it), which must stay as it is while the model is in use.
    ///
    /// # Errors
    /// [`Error::Io`] where the file cannot be read, [`Error::Format`] where it is no ONNX file or is
    /// damaged, [`Error::Unsupported`] where its operator set or a constant's type is not supported.
    pub fn open(path: impl AsRef<Path>) -> Result<Model> {
        let path = path.as_ref();
        let io = |e| Error::io(path, e);
        let bad = |why: String| Error::format(path, why);
        let file = File::open(path).map_err(io)?;
        let map = mapped::map(&file).map_err(io)?;
        let proto = ModelProto::decode(map.clone())
            .map_err(|e| bad(format!("not an ONNX model, or damaged: {e}")))?;
        let graph = proto.graph.as_ref();
        let graph = graph.ok_or_else(|| bad("not an ONNX model: it has no graph".into()))?;
        let default = |domain: &str| matches!(domain, "" | "ai.onnx");
        let sets = proto.opset_import.iter().filter(|o| default(&o.domain));
        let version = sets.map(|o| o.version).max();
        let version =
            version.ok_or_else(|| bad("no version of the ONNX operator set is given".into()))?;
        if !OPSETS.contains(&version) {
            return Err(bad(format!(
                "operator set {version} is not supported; {} to {} are",
                OPSETS.start(),
                OPSETS.end()
            )));
        }
        let mut reader = Reader {
            constants: Constants::new(path.to_path_buf(), file, map),
            opset: version as u32,
        };
        let body = reader.body(graph)?;
        for port in &body.outputs {
            if port.name.is_empty() {
                return Err(bad("an output has no name".into()));
            }
        }
        Ok(Model {
            opset: reader.opset,
            conv: ConvMode::default(),
            body,
        })
    }
}

struct Reader {
    constants: Constants,
    opset: u32,
}

impl Reader {
    fn body(&mut self, graph: &GraphProto) -> Result<Body> {
        if let Some(sparse) = graph.sparse_initializer.first() {
            let name = sparse.values.as_ref().map(|v| v.name.clone());
            return Err(Error::Unsupported {
                node: name.unwrap_or_default(),
                op: "sparse_initializer".into(),
                why: "sparse constants are not supported; dense ones are".into(),
            });
        }
        let mut constants = HashMap::new();
        for tensor in &graph.initializer {
            constants.insert(tensor.name.clone(), self.constants.constant(tensor)?);
        }
        let mut nodes = Vec::new();
        for (index, node) in graph.node.iter().enumerate() {
            match self.constant_node(node)? {
                Some(constant) => {
                    let output = node.output.first().cloned().unwrap_or_default();
                    constants.insert(output, constant);
                }
                None => nodes.push(self.node(index, node)?),
            }
        }
        let given = |v: &&ValueInfoProto| !constants.contains_key(&v.name);
        Ok(Body {
            inputs: graph.input.iter().filter(given).map(port).collect(),
            outputs: graph.output.iter().map(port).collect(),
            constants,
            nodes,
        })
    }

    /// The value of a `Constant` node in one of the ways that are supported.
    fn constant_node(&mut self, node: &NodeProto) -> Result<Option<Constant>> {
        let [attr] = &node.attribute[..] else {
            return Ok(None);
        };
        if node.op_type != "Constant" || !matches!(node.domain.as_str(), "" | "ai.onnx") {
            return Ok(None);
        }
        let value = match (attr.name.as_str(), &attr.t) {
            ("value", Some(tensor)) => return self.constants.constant(tensor).map(Some),
            ("value_float", _) => dense::Value::f32(&[], vec![attr.f]),
            ("value_int", _) => dense::Value::i64(&[], vec![attr.i]),
            ("value_floats", _) => {
                dense::Value::f32(&[attr.floats.len() as u64], attr.floats.clone())
            }
            ("value_ints", _) => dense::Value::i64(&[attr.ints.len() as u64], attr.ints.clone()),
            _ => return Ok(None),
        };
        Ok(Some(Constant::new(&node.name, value)))
    }

    fn node(&mut self, index: usize, node: &NodeProto) -> Result<Node> {
        let name = match node.name.as_str() {
            "" => format!("{}_#{index}", node.op_type),
            name => name.to_owned(),
        };
        let mut refused = None;
        let mut attrs = BTreeMap::new();
        let mut bodies = Vec::new();
        for attr in &node.attribute {
            match (attr.kind(), &attr.g) {
                (AttributeKind::Graph, Some(graph)) => {
                    bodies.push((attr.name.clone(), self.body(graph)?));
                }
                _ => match self.attr(attr)? {
                    Some(value) => {
                        attrs.insert(attr.name.clone(), value);
                    }
                    None => {
                        let name = &attr.name;
                        refused = Some(format!(
                            "the type of its attribute `{name}` is not supported"
                        ));
                    }
                },
            }
        }
        let op = dense::Op {
            kind: node.op_type.clone(),
            opset: self.opset,
            attrs,
        };
        if !matches!(node.domain.as_str(), "" | "ai.onnx") {
            let domain = &node.domain;
            refused = Some(format!(
                "operators of `{domain}` are not supported; those of ONNX's default domain are"
            ));
        } else if node.op_type == "Constant" {
            refused = Some("a constant of this kind is not supported; dense numbers are".into());
        } else if !bodies.is_empty() && node.op_type != "If" {
            refused = Some("control flow is not supported, except If on a constant".into());
        } else if node.op_type != "If" && !dense::supports(&node.op_type) {
            refused = Some("this operator is not supported".into());
        }
        Ok(Node {
            name,
            op,
            refused,
            inputs: node.input.clone(),
            outputs: node.output.clone(),
            bodies,
        })
    }

    fn attr(&mut self, attr: &AttributeProto) -> Result<Option<Attr>> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(Some(match (attr.kind(), &attr.t) {
            (AttributeKind::Float, _) => Attr::Float(attr.f),
            (AttributeKind::Int, _) => Attr::Int(attr.i),
            (AttributeKind::String, _) => Attr::Str(text(&attr.s)),
            (AttributeKind::Floats, _) => Attr::Floats(attr.floats.clone()),
            (AttributeKind::Ints, _) => Attr::Ints(attr.ints.clone()),
            (AttributeKind::Strings, _) => {
                Attr::Strs(attr.strings.iter().map(|s| text(s)).collect())
            }
            (AttributeKind::Tensor, Some(tensor)) => {
                let value = self.constants.constant(tensor)?.value()?;
                Attr::Tensor(value.as_ref().clone())
            }
            _ => return Ok(None),
        }))
    }
}

fn port(info: &ValueInfoProto) -> Port {
    let tensor = info.r#type.as_ref().and_then(|t| t.tensor_type.as_ref());
    let shape = tensor.and_then(|t| t.shape.as_ref());
    let dim = |d: &super::onnx::DimensionProto| match (d.dim_value, &d.dim_param) {
        (Some(n), _) => u64::try_from(n).map_or(Dim::Unknown, Dim::Fixed),
        (None, Some(name)) if !name.is_empty() => Dim::Named(name.clone()),
        _ => Dim::Unknown,
    };
    Port {
        name: info.name.clone(),
        dtype: tensor
            .and_then(|t| ElementType::try_from(t.elem_type).ok())
            .and_then(ElementType::dtype),
        dims: shape.map(|s| s.dim.iter().map(dim).collect()),
    }
}
