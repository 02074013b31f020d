//! Adding to the graph: tensors, nodes, and one form of a value made of another.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::dense::{self, Attr, DType, Data, Fact, Value};
use crate::error::{Error, Result};
use crate::graph::{
    Expr, Gather, Graph, Layout, Node, Op, Operand, Segment, Tensor, TensorId, Weight, WeightSource,
};
use crate::import::constant::Constant;

use super::item::{Item, Rows, made_up};
use super::view::{Step, View};

/// A graph as it grows.
#[derive(Debug, Default)]
pub(super) struct Emit {
    pub(super) graph: Graph,
    names: HashSet<String>,
    /// What has been made once, and is found again.
    gathered: Vec<(Operand, DType, Gather, TensorId)>,
    spread: HashMap<TensorId, Rows>,
    viewed: Vec<(View, TensorId)>,
    constants: Vec<(Arc<Value>, TensorId)>,
}

/// More segments than this, and shorter than this in the mean, are copied into one tensor.
const SHORT_RUN: u64 = 8;

impl Emit {
    /// `name`, or a variant of it that no tensor has yet.
    fn fresh(&mut self, name: &str) -> String {
        let mut free = name.to_owned();
        let mut i = 1;
        while !self.names.insert(free.clone()) {
            free = format!("{name}.{i}");
            i += 1;
        }
        free
    }

    /// Gives tensor `id` exactly the name `name`; a tensor that has it already gets another.
    pub(super) fn rename(&mut self, id: TensorId, name: &str) {
        if self.graph.tensor(id).name == name {
            return;
        }
        if let Some(other) = self.graph.tensors.iter().position(|t| t.name == name) {
            let free = self.fresh(name);
            self.graph.tensors[other].name = free;
        }
        self.names.insert(name.to_owned());
        self.graph.tensors[id.at()].name = name.to_owned();
    }

    /// A new tensor.
    pub(super) fn tensor(
        &mut self,
        name: &str,
        dtype: DType,
        dims: &[u64],
        layout: Layout,
    ) -> Result<TensorId> {
        if layout == Layout::Rows && dims.contains(&0) {
            let why = format!("an image of {dims:?} is empty: the input is too small");
            return Err(Error::model(name, why));
        }
        let name = self.fresh(name);
        self.graph.add_tensor(Tensor {
            name,
            dtype,
            dims: dims.to_vec(),
            layout,
        })
    }

    /// All of tensor `id`, which is kept as rows.
    pub(super) fn all(&self, id: TensorId) -> Rows {
        let tensor = self.graph.tensor(id);
        Rows {
            operand: Operand(vec![Segment {
                tensor: id,
                channels: 0..tensor.c(),
            }]),
            dims: [tensor.n(), tensor.c(), tensor.h(), tensor.w()],
            dtype: tensor.dtype,
        }
    }

    /// The tensor that `rows` is all of, if it is one.
    pub(super) fn one_tensor(&self, rows: &Rows) -> Option<TensorId> {
        match rows.operand.0.as_slice() {
            [s] if s.channels == (0..self.graph.tensor(s.tensor).c()) => Some(s.tensor),
            _ => None,
        }
    }

    /// Type and lengths of an item.
    pub(super) fn shape(&self, item: &Item) -> (DType, Vec<u64>) {
        match item {
            Item::Known(constant) => (constant.dtype(), constant.dims().to_vec()),
            Item::Rows(rows) => (rows.dtype, rows.dims.to_vec()),
            Item::View(view) => (view.rows.dtype, view.lengths()),
            Item::Whole(id) => {
                let tensor = self.graph.tensor(*id);
                (tensor.dtype, tensor.dims.clone())
            }
        }
    }

    /// Type and lengths of the outputs of `op`.
    pub(super) fn infer(
        &self,
        op: &dense::Op,
        args: &[Option<Item>],
    ) -> Result<Vec<(DType, Vec<u64>)>> {
        self.with_facts(args, |facts| dense::infer(op, facts))
    }

    /// What `f` finds out from all that is known of `args`.
    pub(super) fn with_facts<T>(
        &self,
        args: &[Option<Item>],
        f: impl FnOnce(&[Option<Fact<'_>>]) -> Result<T>,
    ) -> Result<T> {
        let shapes: Vec<_> = args
            .iter()
            .map(|a| a.as_ref().map(|a| self.shape(a)))
            .collect();
        let facts = args.iter().zip(&shapes).map(|(item, shape)| {
            let (dtype, dims) = shape.as_ref()?;
            let value = match item.as_ref().and_then(Item::known) {
                Some(Constant::Value(value)) => Some(value.as_ref()),
                _ => None,
            };
            Some(Fact {
                dtype: *dtype,
                dims,
                value,
            })
        });
        f(&facts.collect::<Vec<_>>())
    }

    // nodes

    /// An op from rows to rows.
    pub(super) fn strip(
        &mut self,
        name: &str,
        label: &str,
        op: Op,
        from: &Rows,
        dims: [u64; 4],
    ) -> Result<Rows> {
        let output = self
            .tensor(label, from.dtype, &dims, Layout::Rows)
            .map_err(|e| named(e, name))?;
        self.graph.nodes.push(Node {
            name: name.to_owned(),
            op,
            operands: vec![from.operand.clone()],
            tail: Expr::default(),
            extras: Vec::new(),
            whole: Vec::new(),
            outputs: vec![output],
        });
        Ok(self.all(output))
    }

    /// An expression over `operands`, the first of which has all lengths of the result, and whole
    /// channel vectors.
    pub(super) fn pointwise(
        &mut self,
        name: &str,
        label: &str,
        tail: Expr,
        mut operands: Vec<Operand>,
        whole: Vec<TensorId>,
        (dtype, dims): (DType, [u64; 4]),
    ) -> Result<Rows> {
        let output = self
            .tensor(label, dtype, &dims, Layout::Rows)
            .map_err(|e| named(e, name))?;
        let extras = operands.split_off(1);
        self.graph.nodes.push(Node {
            name: name.to_owned(),
            op: Op::Pointwise,
            operands,
            tail,
            extras,
            whole: whole.into_iter().map(Some).collect(),
            outputs: vec![output],
        });
        Ok(self.all(output))
    }

    /// An op over whole tensors; its first `wanted` outputs are made.
    pub(super) fn dense(
        &mut self,
        name: &str,
        labels: &[String],
        op: &dense::Op,
        args: &[Option<Item>],
    ) -> Result<Vec<Item>> {
        let outs = self.infer(op, args).map_err(|e| e.at_node(name))?;
        let whole = args
            .iter()
            .map(|a| a.as_ref().map(|a| self.whole(a)).transpose());
        let whole = whole.collect::<Result<Vec<_>>>()?;
        let mut outputs = Vec::new();
        for (label, (dtype, dims)) in labels.iter().zip(&outs) {
            outputs.push(self.tensor(label, *dtype, dims, Layout::Whole)?);
        }
        self.graph.nodes.push(Node {
            name: name.to_owned(),
            op: Op::Dense(op.clone()),
            operands: Vec::new(),
            tail: Expr::default(),
            extras: Vec::new(),
            whole,
            outputs: outputs.clone(),
        });
        Ok(outputs.into_iter().map(Item::Whole).collect())
    }

    /// The one output of a made-up op over whole tensors.
    pub(super) fn compute(
        &mut self,
        name: &str,
        label: &str,
        kind: &str,
        attrs: &[(&'static str, Attr)],
        args: Vec<Item>,
    ) -> Result<TensorId> {
        let args: Vec<_> = args.into_iter().map(Some).collect();
        let op = made_up(kind, attrs.iter().cloned());
        let outputs = self.dense(name, &[label.to_owned()], &op, &args)?;
        match outputs.as_slice() {
            [Item::Whole(id)] => Ok(*id),
            _ => Err(Error::model(name, format!("{kind} has no output"))),
        }
    }

    /// What `kind` gathers of rows.
    pub(super) fn gather(&mut self, name: &str, rows: &Rows, kind: Gather) -> Result<TensorId> {
        let key = (&rows.operand, rows.dtype, kind);
        let found = self.gathered.iter().find(|(o, d, k, _)| (o, *d, *k) == key);
        if let Some((.., id)) = found {
            return Ok(*id);
        }
        let [n, c, ..] = rows.dims;
        let (suffix, dims) = match kind {
            Gather::Whole => ("whole", rows.dims.to_vec()),
            Gather::Mean => ("mean", vec![n, c, 1, 1]),
            Gather::Max => ("max", vec![n, c, 1, 1]),
            Gather::Moments(_) => ("moments", vec![n, c, 2]),
        };
        let label = format!(
            "{}.{suffix}",
            self.graph.tensor(rows.operand.0[0].tensor).name
        );
        let output = self.tensor(&label, rows.dtype, &dims, Layout::Whole)?;
        self.graph.nodes.push(Node {
            name: name.to_owned(),
            op: Op::Gather(kind),
            operands: vec![rows.operand.clone()],
            tail: Expr::default(),
            extras: Vec::new(),
            whole: Vec::new(),
            outputs: vec![output],
        });
        self.gathered
            .push((rows.operand.clone(), rows.dtype, kind, output));
        Ok(output)
    }

    // one form of a value made of another

    /// `item` as a whole tensor.
    pub(super) fn whole(&mut self, item: &Item) -> Result<TensorId> {
        match item {
            Item::Whole(id) => Ok(*id),
            Item::Known(constant) => self.constant(constant.value()?),
            Item::Rows(rows) => {
                let name = self.graph.tensor(rows.operand.0[0].tensor).name.clone();
                self.gather(&name, rows, Gather::Whole)
            }
            Item::View(view) => self.whole_view(view),
        }
    }

    fn whole_view(&mut self, view: &View) -> Result<TensorId> {
        if let Some((_, id)) = self.viewed.iter().find(|(v, _)| v == view) {
            return Ok(*id);
        }
        let mut id = self.whole(&Item::Rows(view.rows.clone()))?;
        for step in view.steps() {
            let label = self.graph.tensor(id).name.clone();
            let source = Item::Whole(id);
            id = match step {
                Step::Reshape(lengths) => self.reshape(&label, source, &lengths)?,
                Step::Transpose(order) => {
                    let order = order.into_iter().map(|i| i as i64).collect();
                    self.compute(
                        &label,
                        &label,
                        "Transpose",
                        &[("perm", Attr::Ints(order))],
                        vec![source],
                    )?
                }
            };
        }
        self.viewed.push((view.clone(), id));
        Ok(id)
    }

    /// `item` in other lengths, as a whole tensor.
    pub(super) fn reshape(&mut self, label: &str, item: Item, lengths: &[u64]) -> Result<TensorId> {
        let lengths = lengths.iter().map(|&d| d as i64).collect::<Vec<_>>();
        let shape = Value::i64(&[lengths.len() as u64], lengths);
        let args = vec![item, Item::Known(Constant::Value(shape.into()))];
        self.compute(
            label,
            label,
            "Reshape",
            &[("allowzero", Attr::Int(1))],
            args,
        )
    }

    /// A constant as a whole tensor.
    pub(super) fn constant(&mut self, value: Arc<Value>) -> Result<TensorId> {
        if let Some((_, id)) = self.constants.iter().find(|(v, _)| Arc::ptr_eq(v, &value)) {
            return Ok(*id);
        }
        let id = self.tensor("constant", value.dtype(), &value.dims, Layout::Whole)?;
        self.graph.constants.push((id, value.as_ref().clone()));
        self.constants.push((value, id));
        Ok(id)
    }

    /// `item` as rows, whatever it is made of; `None` where it is no image.
    pub(super) fn rows(&mut self, item: &Item) -> Result<Option<Rows>> {
        let (dtype, dims) = self.shape(item);
        if dims.len() != 4 || !matches!(dtype, DType::F32 | DType::Bool) || dims.contains(&0) {
            return Ok(None);
        }
        if let Item::Rows(rows) = item {
            return Ok(Some(rows.clone()));
        }
        let whole = self.whole(item)?;
        if let Some(rows) = self.spread.get(&whole) {
            return Ok(Some(rows.clone()));
        }
        let name = format!("{}.rows", self.graph.tensor(whole).name);
        let output = self.tensor(&name, dtype, &dims, Layout::Rows)?;
        self.graph.nodes.push(Node {
            name,
            op: Op::Spread,
            operands: Vec::new(),
            tail: Expr::default(),
            extras: Vec::new(),
            whole: vec![Some(whole)],
            outputs: vec![output],
        });
        let rows = self.all(output);
        self.spread.insert(whole, rows.clone());
        Ok(Some(rows))
    }

    /// `item` as rows, if it is an image of more than one pixel: what a windowed op reads.
    pub(super) fn image(&mut self, item: &Item) -> Result<Option<Rows>> {
        let (_, dims) = self.shape(item);
        match (item, dims.as_slice()) {
            (Item::Rows(rows), _) => Ok(Some(rows.clone())),
            (_, [_, _, h, w]) if (*h, *w) != (1, 1) => self.rows(item),
            _ => Ok(None),
        }
    }

    /// Channels `list` of `rows`, in that order.
    pub(super) fn channels(
        &mut self,
        name: &str,
        label: &str,
        rows: &Rows,
        list: impl IntoIterator<Item = u64>,
    ) -> Result<Rows> {
        let mut starts = Vec::new();
        let mut start = 0;
        for segment in &rows.operand.0 {
            starts.push(start);
            start += segment.channels.end - segment.channels.start;
        }
        let mut segments: Vec<Segment> = Vec::new();
        for channel in list {
            let i = starts.partition_point(|&s| s <= channel) - 1;
            let source = &rows.operand.0[i];
            let at = source.channels.start + (channel - starts[i]);
            match segments.last_mut() {
                Some(last) if last.tensor == source.tensor && last.channels.end == at => {
                    last.channels.end += 1;
                }
                _ => segments.push(Segment {
                    tensor: source.tensor,
                    channels: at..at + 1,
                }),
            }
        }
        let operand = Operand(segments);
        let ([n, _, h, w], c) = (rows.dims, operand.channels());
        let count = operand.0.len() as u64;
        let rows = Rows {
            operand,
            dims: [n, c, h, w],
            dtype: rows.dtype,
        };
        // many short runs are read once, here, and not by every reader
        if count > SHORT_RUN.max(starts.len() as u64) && c < count * SHORT_RUN {
            return self.copy(name, label, &rows);
        }
        Ok(rows)
    }

    /// A copy of `rows` as a tensor of its own.
    pub(super) fn copy(&mut self, name: &str, label: &str, rows: &Rows) -> Result<Rows> {
        let operands = vec![rows.operand.clone()];
        let kind = (rows.dtype, rows.dims);
        self.pointwise(name, label, Expr::default(), operands, Vec::new(), kind)
    }

    /// Adds a constant to the graph's weights.
    pub(super) fn weight(&mut self, name: &str, constant: &Constant) -> Result<usize> {
        let weight = match constant {
            Constant::Weight(weight) => weight.clone(),
            Constant::Value(value) => {
                let Data::F32(values) = &value.data else {
                    return Err(Error::model("", "weights must be floats"));
                };
                Weight {
                    name: name.to_owned(),
                    dims: value.dims.clone(),
                    source: WeightSource::Inline(Arc::new(values.clone())),
                }
            }
        };
        let same = |w: &Weight| w.dims == weight.dims && same_place(&w.source, &weight.source);
        if let Some(found) = self.graph.weights.iter().position(same) {
            return Ok(found);
        }
        self.graph.weights.push(weight);
        Ok(self.graph.weights.len() - 1)
    }
}

fn same_place(a: &WeightSource, b: &WeightSource) -> bool {
    match (a, b) {
        (WeightSource::Inline(a), WeightSource::Inline(b)) => Arc::ptr_eq(a, b),
        (
            WeightSource::File {
                file: a,
                offset: at,
                half,
                ..
            },
            WeightSource::File {
                file: b,
                offset: to,
                half: same,
                ..
            },
        ) => Arc::ptr_eq(a, b) && at == to && half == same,
        _ => false,
    }
}

/// Puts the node into an error about one of its tensors.
fn named(error: Error, name: &str) -> Error {
    match error {
        Error::Model { why, .. } => Error::model(name, why),
        other => other,
    }
}
