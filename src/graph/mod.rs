//! What is computed: tensors, and the ops between them, at one input size.
//!
//! A [`Graph`] is sized: every length is a number. A tensor is either kept as **rows** (an image
//! that is swept from top to bottom: f32, `[n, c, h, w]` in ONNX's terms, each row stored as
//! `[w][c]`) or **whole** (any rank and type, row-major as ONNX has it). Nodes are in an order in
//! which every tensor is made before it is read.

mod expr;
mod fuse;
mod op;
mod reach;
mod rows;
mod weight;
mod winograd;

pub use crate::dense::{Coordinate, Interp, InterpMode, NearestRound};
pub use expr::{Arg, Expr, Inst};
pub use fuse::fuse;
pub use op::{Conv, Gather, Moments, Op, Pool, PoolKind};
pub use reach::{Field, Reach, reach, receptive_field};
pub use rows::{Axis, Border, Window};
pub use weight::{Weight, WeightSource};
pub use winograd::{ConvMode, can_tile, choose_conv};

use std::ops::Range;

use serde::Serialize;

use crate::dense::DType;
use crate::error::{Error, Result};

/// A tensor's place in [`Graph::tensors`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct TensorId(pub u32);

/// A node's place in [`Graph::nodes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct NodeId(pub u32);

impl TensorId {
    /// As an index.
    pub fn at(self) -> usize {
        self.0 as usize
    }
}

impl NodeId {
    /// As an index.
    pub fn at(self) -> usize {
        self.0 as usize
    }
}

/// A network at one input size.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    /// All tensors.
    pub tensors: Vec<Tensor>,
    /// All nodes, in an order that respects every read.
    pub nodes: Vec<Node>,
    /// The weights that convolutions name.
    pub weights: Vec<Weight>,
    /// Whole tensors that are known in advance, with their values.
    pub constants: Vec<(TensorId, crate::dense::Value)>,
    /// What the caller gives.
    pub inputs: Vec<TensorId>,
    /// What the caller gets. A graph input may be an output too.
    pub outputs: Vec<TensorId>,
}

/// A named value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tensor {
    /// Its name in the model (made up where fusion or lowering added it), unique in the graph.
    pub name: String,
    /// The type it has in the model. Rows are f32 in memory whatever this says (a boolean is 0.0 or
    /// 1.0, an integer its value).
    pub dtype: DType,
    /// Its lengths; for rows always `[n, c, h, w]`.
    pub dims: Vec<u64>,
    /// How it is kept.
    pub layout: Layout,
}

/// How a tensor is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Layout {
    /// Swept: f32 rows of `[w][c]`, made and dropped from top to bottom.
    Rows,
    /// All at once, row-major, of its own type.
    Whole,
}

/// One op with what it reads and makes.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The ONNX node's name (several, joined with `+`, after fusion).
    pub name: String,
    /// What it computes.
    pub op: Op,
    /// Its main operands in rows. [`Op::Conv`], [`Op::Pool`] and their like have one;
    /// [`Op::Dense`] has none.
    pub operands: Vec<Operand>,
    /// Applied to the op's result before it is written; [`Op::Pointwise`] is nothing else.
    pub tail: Expr,
    /// Row operands of `tail`, inputs 1, 2, … of it: the output's height, and its width and channels
    /// or 1.
    pub extras: Vec<Operand>,
    /// Whole operands: of `tail` ([`Arg::Whole`]), or the inputs of [`Op::Dense`] (`None` where an
    /// optional one is absent).
    pub whole: Vec<Option<TensorId>>,
    /// What it makes: one tensor, except for [`Op::Dense`] ops with several.
    pub outputs: Vec<TensorId>,
}

/// An operand in rows: channels of one or several tensors, side by side (a free concatenation).
/// All segments have the same n, h and w.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Operand(pub Vec<Segment>);

/// Some channels of a row tensor.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Segment {
    /// The tensor.
    pub tensor: TensorId,
    /// Which of its channels.
    pub channels: Range<u64>,
}

impl Operand {
    /// Total channels.
    pub fn channels(&self) -> u64 {
        self.0
            .iter()
            .map(|s| s.channels.end - s.channels.start)
            .sum()
    }
}

/// An axis that is cut: rows (height) or columns (width).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Side {
    Rows,
    Cols,
}

impl Tensor {
    /// Batch items of a row tensor.
    pub fn n(&self) -> u64 {
        self.dims[0]
    }
    /// Channels of a row tensor.
    pub fn c(&self) -> u64 {
        self.dims[1]
    }
    /// Rows of a row tensor.
    pub fn h(&self) -> u64 {
        self.dims[2]
    }
    /// Columns of a row tensor.
    pub fn w(&self) -> u64 {
        self.dims[3]
    }
    /// Length along `side` of a row tensor.
    pub fn len(&self, side: Side) -> u64 {
        match side {
            Side::Rows => self.h(),
            Side::Cols => self.w(),
        }
    }
    /// Bytes of one full row of a row tensor.
    pub fn row_bytes(&self) -> u64 {
        4 * self.w() * self.c()
    }
    /// Bytes of all of it, as it is kept.
    pub fn bytes(&self) -> u64 {
        let each = match self.layout {
            Layout::Rows => 4,
            Layout::Whole => self.dtype.size(),
        };
        self.dims.iter().product::<u64>() * each
    }
}

impl Graph {
    /// The tensor `id`.
    pub fn tensor(&self, id: TensorId) -> &Tensor {
        &self.tensors[id.at()]
    }

    /// The node `id`.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.at()]
    }

    /// Adds a tensor. Its size is checked: elements and bytes must fit in 63 bits.
    ///
    /// # Errors
    /// [`Error::Model`] naming the tensor where they do not.
    pub fn add_tensor(&mut self, tensor: Tensor) -> Result<TensorId> {
        let fits = tensor.dims.iter().try_fold(8u64, |a, &d| {
            a.checked_mul(d.max(1)).filter(|&b| b < 1 << 62)
        });
        if fits.is_none() {
            return Err(Error::model(
                &tensor.name,
                format!("a tensor of {:?} elements is too large", tensor.dims),
            ));
        }
        self.tensors.push(tensor);
        Ok(TensorId(self.tensors.len() as u32 - 1))
    }

    /// Floating-point operations for one output pixel of `node`, if it is a convolution: its
    /// multiply-adds, two each, summed directly; 0 for other ops.
    pub fn flop(&self, node: &Node) -> f64 {
        let Op::Conv(conv) = &node.op else { return 0.0 };
        // a transposed convolution uses one in stride × stride taps for a pixel
        let share = |side| self.axis(node, 0, side).stride_share();
        2.0 * self.weights[conv.weight].len() as f64 * share(Side::Rows) * share(Side::Cols)
    }

    /// How output rows or columns of `node` map to its operand `operand` (extras follow the main
    /// operands; they are read at the same place, or at column 0 where their width is 1).
    pub fn axis(&self, node: &Node, operand: usize, side: Side) -> Axis {
        let all = node.operands.iter().chain(&node.extras);
        let from = all
            .clone()
            .nth(operand)
            .map(|o| self.tensor(o.0[0].tensor).len(side));
        let input = from.expect("an operand that the node has");
        let output = node.op.output_len(side, &self.tensors, node);
        let window = if operand < node.operands.len() {
            node.op.window(side)
        } else if input == 1 && output > 1 {
            Window::Repeat { factor: output }
        } else {
            Window::Same
        };
        Axis {
            window,
            input,
            output,
        }
    }
}
