//! Nodes of a model to ops of a graph, at one size of the inputs.
//!
//! Names stand for [`Item`]s: what is known already, images in rows, images seen in another shape, or
//! whole tensors. A node is tried in this order: it only renames or reshapes; all it reads is known, and it
//! is folded; it runs in strips, if what it reads are images; it runs over whole tensors.
//!
//! Graph inputs that are f32 of rank 4 are images in rows, others are whole. A whole tensor that an op
//! on images reads is spread into rows; rows that any other op reads are gathered.

mod channels;
mod elementwise;
mod emit;
mod item;
mod normalize;
mod pixel;
mod reduce;
mod reshape;
mod resize;
mod space;
mod view;
mod window;

use std::collections::{HashMap, HashSet};

use super::constant::Constant;
use super::{Body, Dim, Model, Node, Port};
use crate::dense::{self, Attr, DType, Data, Value, View as ValueView};
use crate::error::{Error, Result};
use crate::graph::{Graph, Layout, TensorId};
use emit::Emit;
use item::{Call, Item, Lowered};

/// Known outputs up to this many bytes are folded, and larger ones that are at most [`GROWTH`] times as
/// large as what they are made of. Others would only cost memory before their time.
const FOLD: u64 = 1 << 20;
const GROWTH: u64 = 2;

/// The graph of `model` for inputs of these lengths.
pub(super) fn lower(model: &Model, inputs: &[(&str, Vec<u64>)]) -> Result<Graph> {
    let mut lower = Lower::default();
    lower.inputs(&model.body.inputs, inputs)?;
    let needed = needed(&model.body, HashSet::new());
    lower.body(&model.body, &needed)?;
    lower.outputs(&model.body.outputs)?;
    Ok(lower.emit.graph)
}

#[derive(Default)]
struct Lower {
    emit: Emit,
    items: HashMap<String, Item>,
}

/// The names that the outputs of `body`, and `wanted`, depend on.
fn needed<'a>(body: &'a Body, mut wanted: HashSet<&'a str>) -> HashSet<&'a str> {
    wanted.extend(body.outputs.iter().map(|o| o.name.as_str()));
    for node in body.nodes.iter().rev() {
        if node.outputs.iter().any(|o| wanted.contains(o.as_str())) {
            wanted.extend(node.inputs.iter().map(String::as_str));
            for (_, branch) in &node.bodies {
                wanted = needed(branch, wanted);
            }
        }
    }
    wanted.remove("");
    wanted
}

impl Lower {
    fn inputs(&mut self, ports: &[Port], given: &[(&str, Vec<u64>)]) -> Result<()> {
        for (name, _) in given {
            if !ports.iter().any(|p| p.name == *name) {
                let names: Vec<_> = ports.iter().map(|p| p.name.as_str()).collect();
                return Err(Error::Usage(format!(
                    "the model has no input `{name}`; it has {names:?}"
                )));
            }
        }
        for port in ports {
            let Some((name, dims)) = given.iter().find(|(name, _)| *name == port.name) else {
                let name = &port.name;
                return Err(Error::Usage(format!("no size is given for input `{name}`")));
            };
            let fits = |wanted: &Vec<Dim>| {
                let fits = |(w, d): (&Dim, &u64)| !matches!(w, Dim::Fixed(n) if n != d);
                wanted.len() == dims.len() && wanted.iter().zip(dims).all(fits)
            };
            if let Some(wanted) = port.dims.as_ref().filter(|wanted| !fits(wanted)) {
                return Err(Error::Usage(format!(
                    "input `{name}` has lengths {wanted:?}, not {dims:?}"
                )));
            }
            let Some(dtype) = port.dtype else {
                return Err(Error::Unsupported {
                    node: port.name.clone(),
                    op: "input".into(),
                    why: "its type is not supported; tensors of floats, integers and booleans are"
                        .into(),
                });
            };
            let image = dims.len() == 4 && dtype == DType::F32 && !dims.contains(&0);
            let layout = if image { Layout::Rows } else { Layout::Whole };
            let id = self.emit.tensor(name, dtype, dims, layout)?;
            self.emit.graph.inputs.push(id);
            let item = match layout {
                Layout::Rows => Item::Rows(self.emit.all(id)),
                Layout::Whole => Item::Whole(id),
            };
            self.items.insert(port.name.clone(), item);
        }
        Ok(())
    }

    fn body(&mut self, body: &Body, needed: &HashSet<&str>) -> Result<()> {
        let constants = body.constants.iter();
        self.items
            .extend(constants.map(|(name, c)| (name.clone(), Item::Known(c.clone()))));
        for node in &body.nodes {
            if !node.outputs.iter().any(|o| needed.contains(o.as_str())) {
                continue;
            }
            let items = self.node(node, needed).map_err(|e| e.at_node(&node.name))?;
            let named = node
                .outputs
                .iter()
                .zip(items)
                .filter(|(name, _)| !name.is_empty());
            self.items
                .extend(named.map(|(name, item)| (name.clone(), item)));
        }
        Ok(())
    }

    fn item(&self, node: &Node, name: &str) -> Result<Item> {
        self.items.get(name).cloned().ok_or_else(|| {
            Error::model(
                &node.name,
                format!("reads `{name}`, which nothing before it makes"),
            )
        })
    }

    fn node(&mut self, node: &Node, needed: &HashSet<&str>) -> Result<Vec<Item>> {
        if let Some(refusal) = node.refusal() {
            return Err(refusal);
        }
        let args = node.inputs.iter().map(|name| match name.as_str() {
            "" => Ok(None),
            name => self.item(node, name).map(Some),
        });
        let args = args.collect::<Result<Vec<_>>>()?;
        if node.op.kind == "If" {
            return self.branch(node, &args, needed);
        }
        let mut op = std::borrow::Cow::Borrowed(&node.op);
        if node.op.kind == "Split" && args.len() < 2 && node.op.ints("split").is_none() {
            // before operator set 18 the number of outputs says it
            let parts = Attr::Int(node.outputs.len() as i64);
            op.to_mut().attrs.insert("num_outputs".into(), parts);
        }
        let outs = self.emit.infer(&op, &args)?;
        if outs.len() < node.outputs.len() {
            let why = format!("has {} outputs, not {}", outs.len(), node.outputs.len());
            return Err(Error::model(&node.name, why));
        }
        let call = Call { node, args, outs };
        if let Some(items) = self.free(&call)? {
            return Ok(items);
        }
        if let Some(items) = self.fold(&call, &op)? {
            return Ok(items);
        }
        if let Some(items) = self.strips(&call)? {
            return Ok(items);
        }
        let made = (0..node.outputs.len())
            .rposition(|i| call.wants(i))
            .map_or(0, |i| i + 1);
        let labels: Vec<_> = (0..made).map(|i| call.label(i)).collect();
        self.emit.dense(&node.name, &labels, &op, &call.args)
    }

    /// Lowers the branch of an `If` that its condition chooses.
    fn branch(
        &mut self,
        node: &Node,
        args: &[Option<Item>],
        needed: &HashSet<&str>,
    ) -> Result<Vec<Item>> {
        let unsupported = || Error::Unsupported {
            node: node.name.clone(),
            op: "If".into(),
            why: "its condition must be known once the input's size is".into(),
        };
        let Some(Some(Item::Known(condition))) = args.first() else {
            return Err(unsupported());
        };
        let name = match &condition.value()?.data {
            Data::Bool(values) if values.as_slice() == [1] => "then_branch",
            Data::Bool(values) if values.as_slice() == [0] => "else_branch",
            _ => return Err(unsupported()),
        };
        let Some((_, body)) = node.bodies.iter().find(|(n, _)| n == name) else {
            return Err(Error::model(&node.name, format!("it has no {name}")));
        };
        self.body(body, needed)?;
        let output = |port: &Port| self.item(node, &port.name);
        body.outputs.iter().map(output).collect()
    }

    /// Nodes that compute nothing.
    fn free(&mut self, call: &Call<'_>) -> Lowered {
        let one = |item: Item| Ok(Some(vec![item]));
        let known = |value: Value| one(Item::Known(Constant::new(call.name(), value)));
        match call.op().kind.as_str() {
            "Shape" | "Size" => {
                // the values of the input do not matter
                let (_, dims) = self.emit.shape(call.data()?);
                let count = dims.iter().product::<u64>() as i64;
                if call.op().kind == "Size" {
                    return known(Value::i64(&[], vec![count]));
                }
                let rank = dims.len() as i64;
                let clip = |at: i64| (if at < 0 { at + rank } else { at }).clamp(0, rank) as usize;
                let start = clip(call.op().int("start").unwrap_or(0));
                let end = clip(call.op().int("end").unwrap_or(rank)).max(start);
                let list: Vec<i64> = dims[start..end].iter().map(|&d| d as i64).collect();
                known(Value::i64(&[list.len() as u64], list))
            }
            "Identity" => one(call.data()?.clone()),
            "Dropout" if !call.wants(1) && !self.trains(call)? => one(call.data()?.clone()),
            "Cast" | "CastLike" => match call.data()? {
                Item::Known(Constant::Weight(_)) | Item::Whole(_)
                    if call.dtype() == self.emit.shape(call.data()?).0 && !halves(call.op()) =>
                {
                    one(call.data()?.clone())
                }
                Item::Rows(rows) => {
                    // images stay f32 in memory, whatever float type they are cast to
                    let free = call.dtype() == rows.dtype || call.dtype() == DType::F32;
                    let mut rows = rows.clone();
                    rows.dtype = call.dtype();
                    if free { one(rows.into()) } else { Ok(None) }
                }
                _ => Ok(None),
            },
            "Reshape" | "Flatten" | "Squeeze" | "Unsqueeze" | "Transpose" => {
                reshape::lower(&mut self.emit, call)
            }
            _ => Ok(None),
        }
    }

    /// Whether a dropout drops anything.
    fn trains(&self, call: &Call<'_>) -> Result<bool> {
        let on = match call.arg(2) {
            None => false,
            Some(Item::Known(mode)) => mode.value()?.data != Data::Bool(vec![0]),
            Some(_) => true,
        };
        Ok(on)
    }

    /// Computes a node that reads nothing but known values.
    fn fold(&mut self, call: &Call<'_>, op: &dense::Op) -> Lowered {
        let mut values = Vec::new();
        let mut read = 0;
        for arg in &call.args {
            match arg {
                None => {}
                Some(Item::Known(constant)) => read += bytes(constant.dtype(), constant.dims()),
                Some(_) => return Ok(None),
            }
        }
        let made: u64 = call
            .outs
            .iter()
            .map(|(dtype, dims)| bytes(*dtype, dims))
            .sum();
        if made > FOLD.max(GROWTH * read) {
            return Ok(None);
        }
        for arg in &call.args {
            let value = arg.as_ref().and_then(Item::known).map(Constant::value);
            values.push(value.transpose()?);
        }
        let views: Vec<Option<ValueView<'_>>> = values
            .iter()
            .map(|v| v.as_ref().map(|v| v.view()))
            .collect();
        let outputs = dense::eval(op, &views)?;
        let items = outputs
            .into_iter()
            .map(|v| Item::Known(Constant::new(call.name(), v)));
        Ok(Some(items.collect()))
    }

    /// A node as ops in strips, if that can be.
    fn strips(&mut self, call: &Call<'_>) -> Lowered {
        let emit = &mut self.emit;
        match call.op().kind.as_str() {
            "Conv" | "ConvTranspose" => window::convolution(emit, call),
            "MaxPool" | "AveragePool" => window::pool(emit, call),
            "GlobalAveragePool" | "GlobalMaxPool" => reduce::global_pool(emit, call),
            kind if kind.starts_with("Reduce") => reduce::reduce(emit, call),
            "BatchNormalization" => normalize::batch(emit, call),
            "InstanceNormalization" => normalize::instance(emit, call),
            "GroupNormalization" => normalize::group(emit, call),
            "LayerNormalization" => normalize::layer(emit, call),
            "LRN" => pixel::lrn(emit, call),
            "Softmax" | "LogSoftmax" => pixel::softmax(emit, call),
            "MatMul" => pixel::matmul(emit, call),
            "Concat" => channels::concat(emit, call),
            "Split" => channels::split(emit, call),
            "Gather" => channels::gather(emit, call),
            "Expand" => channels::expand(emit, call),
            "Tile" => channels::tile(emit, call),
            "Slice" => space::slice(emit, call),
            "Pad" => space::pad(emit, call),
            "DepthToSpace" | "SpaceToDepth" => space::shuffle(emit, call),
            "Resize" | "Upsample" => resize::lower(emit, call),
            _ => elementwise::lower(emit, call),
        }
    }

    /// The graph's outputs: tensors of their own, with the names that the model gives them.
    fn outputs(&mut self, ports: &[Port]) -> Result<()> {
        let mut taken: HashSet<TensorId> = self.emit.graph.inputs.iter().copied().collect();
        for port in ports {
            let name = port.name.as_str();
            let Some(item) = self.items.get(name).cloned() else {
                return Err(Error::model(
                    "graph",
                    format!("nothing makes its output `{name}`"),
                ));
            };
            let id = match &item {
                Item::Rows(rows) => match self.emit.one_tensor(rows) {
                    Some(id) if !taken.contains(&id) => id,
                    _ => {
                        let copy = self.emit.copy(name, name, rows)?;
                        copy.operand.0[0].tensor
                    }
                },
                item => {
                    let id = self.emit.whole(item)?;
                    let constant = matches!(item, Item::Known(_));
                    if constant || taken.contains(&id) {
                        self.emit
                            .compute(name, name, "Identity", &[], vec![Item::Whole(id)])?
                    } else {
                        id
                    }
                }
            };
            taken.insert(id);
            self.emit.graph.outputs.push(id);
        }
        let (inputs, outputs) = (
            self.emit.graph.inputs.clone(),
            self.emit.graph.outputs.clone(),
        );
        for (id, port) in outputs.into_iter().zip(ports) {
            // an output that is an input by name is a copy of it by another
            if !inputs
                .iter()
                .any(|&i| self.emit.graph.tensor(i).name == port.name)
            {
                self.emit.rename(id, &port.name);
            }
        }
        Ok(())
    }
}

fn bytes(dtype: DType, dims: &[u64]) -> u64 {
    dims.iter().product::<u64>().saturating_mul(dtype.size())
}

/// Whether a cast rounds to f16 or bf16.
fn halves(op: &dense::Op) -> bool {
    matches!(op.int("to"), Some(10 | 16)) || op.kind == "CastLike"
}
