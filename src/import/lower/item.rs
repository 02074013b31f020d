//! What a name of the model stands for while nodes are lowered.

use std::collections::BTreeMap;

use crate::dense::{self, Attr, DType};
use crate::error::{Error, Result};
use crate::graph::{Operand, TensorId};
use crate::import::Node;
use crate::import::constant::Constant;

use super::view::View;

/// A value.
#[derive(Debug, Clone)]
pub(super) enum Item {
    /// Known already.
    Known(Constant),
    /// An image in rows.
    Rows(Rows),
    /// An image in rows, seen in another shape; not made unless somebody needs it whole.
    View(View),
    /// A whole tensor.
    Whole(TensorId),
}

/// An image in rows: channels of one or several tensors.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rows {
    pub(super) operand: Operand,
    /// `[n, c, h, w]`.
    pub(super) dims: [u64; 4],
    /// F32 or Bool.
    pub(super) dtype: DType,
}

/// A node of the model with what its inputs stand for.
pub(super) struct Call<'a> {
    pub(super) node: &'a Node,
    pub(super) args: Vec<Option<Item>>,
    /// Types and lengths of all outputs.
    pub(super) outs: Vec<(DType, Vec<u64>)>,
}

/// What a lowering gives: its outputs, or none where the node cannot run in strips.
pub(super) type Lowered = Result<Option<Vec<Item>>>;

impl From<Rows> for Item {
    fn from(rows: Rows) -> Self {
        Item::Rows(rows)
    }
}

impl Item {
    /// The value, where it is known and in memory.
    pub(super) fn known(&self) -> Option<&Constant> {
        match self {
            Item::Known(constant) => Some(constant),
            _ => None,
        }
    }
}

impl<'a> Call<'a> {
    /// The node's name.
    pub(super) fn name(&self) -> &'a str {
        &self.node.name
    }

    /// The node's operator and attributes.
    pub(super) fn op(&self) -> &'a dense::Op {
        &self.node.op
    }

    /// A name for output `i`.
    pub(super) fn label(&self, i: usize) -> String {
        match self.node.outputs.get(i).map(String::as_str) {
            None | Some("") => format!("{}.{i}", self.node.name),
            Some(name) => name.to_owned(),
        }
    }

    /// Whether somebody may read output `i`.
    pub(super) fn wants(&self, i: usize) -> bool {
        self.node.outputs.get(i).is_some_and(|o| !o.is_empty())
    }

    /// Input `i`, which may be absent.
    pub(super) fn arg(&self, i: usize) -> Option<&Item> {
        self.args.get(i).and_then(Option::as_ref)
    }

    /// Input 0.
    pub(super) fn data(&self) -> Result<&Item> {
        self.arg(0)
            .ok_or_else(|| self.bad("its first input is missing"))
    }

    /// The known value of input `i`.
    pub(super) fn known(&self, i: usize) -> Option<&Constant> {
        self.arg(i).and_then(Item::known)
    }

    /// Whether input `i` is there but not known.
    pub(super) fn unknown(&self, i: usize) -> bool {
        self.arg(i).is_some_and(|item| item.known().is_none())
    }

    /// The type of output 0.
    pub(super) fn dtype(&self) -> DType {
        self.outs.first().map_or(DType::F32, |o| o.0)
    }

    /// The lengths of output 0.
    pub(super) fn dims(&self) -> &[u64] {
        self.outs.first().map_or(&[], |o| &o.1)
    }

    /// The lengths of output 0, if it has the rank of an image.
    pub(super) fn image(&self) -> Option<[u64; 4]> {
        self.dims().try_into().ok()
    }

    /// An error that names the node.
    pub(super) fn bad(&self, why: impl Into<String>) -> Error {
        Error::model(self.name(), why)
    }

    /// Floats of the known input `i`; `None` where it is absent or not known.
    pub(super) fn floats(&self, i: usize) -> Result<Option<Vec<f32>>> {
        let Some(constant) = self.known(i) else {
            return Ok(None);
        };
        match &constant.value()?.data {
            dense::Data::F32(values) => Ok(Some(values.clone())),
            _ => Err(self.bad(format!("its input {i} must be floats"))),
        }
    }

    /// Integers of the known input `i`; `None` where it is absent or not known.
    pub(super) fn ints(&self, i: usize) -> Result<Option<Vec<i64>>> {
        let Some(constant) = self.known(i) else {
            return Ok(None);
        };
        match &constant.value()?.data {
            dense::Data::I64(values) => Ok(Some(values.clone())),
            dense::Data::I32(values) => Ok(Some(values.iter().map(|&x| x.into()).collect())),
            _ => Err(self.bad(format!("its input {i} must be integers"))),
        }
    }

    /// Attribute `name` as an axis of a tensor of rank `rank`.
    pub(super) fn axis(&self, name: &str, default: i64, rank: usize) -> Result<usize> {
        self.axis_of(self.op().int(name).unwrap_or(default), rank)
    }

    /// `axis`, counted from the end where negative, in a tensor of rank `rank`.
    pub(super) fn axis_of(&self, axis: i64, rank: usize) -> Result<usize> {
        let at = if axis < 0 {
            axis.saturating_add(rank as i64)
        } else {
            axis
        };
        match usize::try_from(at) {
            Ok(at) if at < rank => Ok(at),
            _ => Err(self.bad(format!("axis {axis} is outside of {rank} dimensions"))),
        }
    }
}

/// An op of the newest meaning, for what lowering adds on its own.
pub(super) fn made_up(
    kind: &str,
    attrs: impl IntoIterator<Item = (&'static str, Attr)>,
) -> dense::Op {
    let attrs = attrs
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value));
    dense::Op {
        kind: kind.to_owned(),
        opset: 21,
        attrs: attrs.collect::<BTreeMap<_, _>>(),
    }
}
