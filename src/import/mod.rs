//! ONNX to [`Graph`].
//!
//! [`Model::open`] parses a file and keeps its nodes; large weights stay in the file. Once the sizes of
//! the inputs are known, [`Model::graph`] lowers the nodes one by one: to ops that run in strips where
//! they can, else to [`crate::dense`] ops over whole tensors; what depends on constants alone is folded.

mod constant;
mod lower;
mod multiple;
mod onnx;
mod open;

use std::collections::{BTreeMap, HashMap};

use crate::dense::{self, DType};
use crate::error::{Error, Result};
use crate::graph::{self, ConvMode, Graph};
use constant::Constant;

/// A model, opened: what it computes, at any size.
#[derive(Debug)]
pub struct Model {
    opset: u32,
    body: Body,
    conv: ConvMode,
}

/// An input or an output of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// Its element type; `None` where the model does not say.
    pub dtype: Option<DType>,
    /// Its lengths; `None` where the model does not even say how many.
    pub dims: Option<Vec<Dim>>,
}

/// A length of a [`Port`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dim {
    /// Always this.
    Fixed(u64),
    /// Free, with a name.
    Named(String),
    /// Free.
    Unknown,
}

/// A graph or a branch of an `If`.
#[derive(Debug, Default)]
struct Body {
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    constants: HashMap<String, Constant>,
    nodes: Vec<Node>,
}

/// A node of the model.
#[derive(Debug)]
struct Node {
    /// Its name, or `Op_#index` where it has none.
    name: String,
    op: dense::Op,
    /// Why it is not supported, where that is known from the start.
    refused: Option<String>,
    /// What it reads; empty where an optional input is absent.
    inputs: Vec<String>,
    /// What it makes; empty where an output is not wanted.
    outputs: Vec<String>,
    /// Its graph attributes.
    bodies: Vec<(String, Body)>,
}

impl Model {
    /// What the caller gives.
    pub fn inputs(&self) -> &[Port] {
        &self.body.inputs
    }

    /// What the caller gets.
    pub fn outputs(&self) -> &[Port] {
        &self.body.outputs
    }

    /// The version of the ONNX operator set that it uses.
    pub fn opset(&self) -> u32 {
        self.opset
    }

    /// How many nodes of each operator it has, branches included.
    pub fn ops(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        self.body.each_node(&mut |node| {
            *counts.entry(node.op.kind.clone()).or_default() += 1;
        });
        counts
    }

    /// How many floating-point constants it has: its trained parameters, and few others.
    pub fn parameters(&self) -> u64 {
        self.body.parameters()
    }

    /// An [`Error::Unsupported`] for every node whose operator is not supported.
    pub fn unsupported(&self) -> Vec<Error> {
        let mut all = Vec::new();
        self.body.each_node(&mut |node| all.extend(node.refusal()));
        all
    }

    /// The same model, with its convolutions computed in another way.
    pub fn with_conv(mut self, conv: ConvMode) -> Self {
        self.conv = conv;
        self
    }

    /// The graph for inputs of the given lengths, by name.
    ///
    /// # Errors
    /// [`Error::Usage`] where an input is missing, unknown or of lengths that the model does not
    /// allow; [`Error::Unsupported`] and [`Error::Model`] naming the node that cannot be lowered;
    /// [`Error::Io`] where a weight cannot be read.
    pub fn graph(&self, inputs: &[(&str, Vec<u64>)]) -> Result<Graph> {
        let mut graph = graph::fuse(lower::lower(self, inputs)?)?;
        graph::choose_conv(&mut graph, self.conv);
        Ok(graph)
    }
}

impl Body {
    fn each_node<'a>(&'a self, visit: &mut impl FnMut(&'a Node)) {
        for node in &self.nodes {
            visit(node);
            for (_, body) in &node.bodies {
                body.each_node(visit);
            }
        }
    }

    fn parameters(&self) -> u64 {
        let floats = self.constants.values().filter(|c| c.dtype() == DType::F32);
        let own: u64 = floats.map(|c| c.dims().iter().product::<u64>()).sum();
        let bodies = self.nodes.iter().flat_map(|n| &n.bodies);
        own + bodies.map(|(_, body)| body.parameters()).sum::<u64>()
    }
}

impl Node {
    /// Why it is not supported, if it is not.
    fn refusal(&self) -> Option<Error> {
        self.refused.as_ref().map(|why| Error::Unsupported {
            node: self.name.clone(),
            op: self.op.kind.clone(),
            why: why.clone(),
        })
    }
}
