//! Reshape, Flatten, Squeeze, Unsqueeze and Transpose: other views of the same elements.

use crate::error::Result;
use crate::graph::{Op, Weight};
use crate::import::constant::Constant;

use super::emit::Emit;
use super::item::{Call, Item, Lowered, Rows};
use super::view::{Image, View};

pub(super) fn lower(emit: &mut Emit, call: &Call<'_>) -> Lowered {
    let dims = call.dims();
    let transpose = call.op().kind == "Transpose";
    let view = match call.data()? {
        Item::Known(Constant::Weight(weight)) if !transpose => {
            let weight = Weight {
                dims: dims.to_vec(),
                ..weight.clone()
            };
            return Ok(Some(vec![Item::Known(Constant::Weight(weight))]));
        }
        Item::Rows(rows) => View::new(rows.clone()),
        Item::View(view) => view.clone(),
        _ => return Ok(None),
    };
    let rank = view.dims.len();
    let view = if transpose {
        let order = match call.op().ints("perm") {
            Some(perm) => perm
                .iter()
                .map(|&axis| call.axis_of(axis, rank))
                .collect::<Result<Vec<_>>>()?,
            None => (0..rank).rev().collect(),
        };
        Some(view.transpose(&order))
    } else {
        view.reshape(dims)
    };
    let Some(view) = view else {
        return Ok(None);
    };
    let item = match view.image() {
        Some(image) => make(emit, call, &view.rows, image)?.into(),
        None => Item::View(view),
    };
    Ok(Some(vec![item]))
}

/// The image that a view has turned out to be.
fn make(emit: &mut Emit, call: &Call<'_>, rows: &Rows, image: Image) -> Result<Rows> {
    let (name, label) = (call.name(), &call.label(0));
    let [n, c, h, w] = rows.dims;
    match image {
        Image::Channels(order) => emit.channels(name, label, rows, order),
        Image::DepthToSpace {
            channels,
            block,
            crd,
        } => {
            let rows = emit.channels(name, &format!("{label}.channels"), rows, channels)?;
            let dims = [n, c / (block * block), h * block, w * block];
            emit.strip(name, label, Op::DepthToSpace { block, crd }, &rows, dims)
        }
        Image::SpaceToDepth { block, channels } => {
            let dims = [n, c * block * block, h / block, w / block];
            let label_of = format!("{label}.channels");
            let rows = emit.strip(name, &label_of, Op::SpaceToDepth { block }, rows, dims)?;
            emit.channels(name, label, &rows, channels)
        }
    }
}
