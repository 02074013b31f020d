//! `stripmill inspect`: what a model computes, and what it needs of an image.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use stripmill::Result;
use stripmill::graph::{Field, Graph, Layout, Op, Side, receptive_field};
use stripmill::import::{Dim, Model, Port};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// An ONNX file
    model: PathBuf,
}

/// Multiples of what the height and the width must be multiples of: sizes at which the graph is looked
/// at, the first by comparison with the second.
const SIZES: [u64; 2] = [1 << 9, 1 << 12];

pub(super) fn inspect(args: &Args) -> Result<ExitCode> {
    let model = Model::open(&args.model)?;
    let mut text = String::new();
    head(&model, &mut text);
    let unsupported = model.unsupported();
    for e in &unsupported {
        line(&mut text, "unsupported", format_args!("{e}"));
    }
    if !unsupported.is_empty() {
        super::print(&text)?;
        return Ok(ExitCode::FAILURE);
    }
    let sized = model.multiple().and_then(|multiple| {
        let at = |size: u64| model.graph_at(up(size, multiple[0]), up(size, multiple[1]));
        Ok((multiple, at(SIZES[0])?, at(SIZES[1])?))
    });
    if let Ok(([rows, cols], small, large)) = &sized {
        let any = if rows * cols == 1 { " (any size)" } else { "" };
        line(
            &mut text,
            "multiple of",
            format_args!("{rows} rows, {cols} columns{any}"),
        );
        fields(large, &mut text);
        wholes(small, large, &mut text);
    }
    super::print(&text)?;
    sized.map(|_| ExitCode::SUCCESS)
}

fn up(size: u64, multiple: u64) -> u64 {
    size.div_ceil(multiple) * multiple
}

fn head(model: &Model, text: &mut String) {
    line(text, "opset", format_args!("{}", model.opset()));
    for port in model.inputs() {
        line(text, "input", format_args!("{}", describe(port)));
    }
    for port in model.outputs() {
        line(text, "output", format_args!("{}", describe(port)));
    }
    let ops: Vec<String> = model
        .ops()
        .iter()
        .map(|(op, count)| format!("{op} {count}"))
        .collect();
    line(text, "ops", format_args!("{}", ops.join(", ")));
    line(text, "parameters", format_args!("{}", model.parameters()));
}

fn describe(port: &Port) -> String {
    let dim = |dim: &Dim| match dim {
        Dim::Fixed(len) => len.to_string(),
        Dim::Named(name) => name.clone(),
        Dim::Unknown => "?".to_owned(),
    };
    let dims = port.dims.as_ref().map_or("?".to_owned(), |dims| {
        dims.iter().map(dim).collect::<Vec<_>>().join(", ")
    });
    let dtype = port
        .dtype
        .map_or("any type".to_owned(), |t| format!("{t:?}").to_lowercase());
    format!("`{}` {dtype} [{dims}]", port.name)
}

/// The receptive field of each output.
fn fields(graph: &Graph, text: &mut String) {
    for &output in graph
        .outputs
        .iter()
        .filter(|id| graph.tensor(**id).layout == Layout::Rows)
    {
        let sides = [Side::Rows, Side::Cols].map(|side| receptive_field(graph, output, side));
        for (k, &input) in graph.inputs.iter().enumerate() {
            let [rows, cols] = [&sides[0][k], &sides[1][k]];
            let name = |id| &graph.tensor(id).name;
            let whole = if rows.whole || cols.whole {
                ", and all of it by way of ops below"
            } else {
                ""
            };
            let what = format!("{} rows, {} columns{whole}", extent(rows), extent(cols));
            line(
                text,
                "reach",
                format_args!(
                    "a pixel of `{}` sees of `{}`: {what}",
                    name(output),
                    name(input)
                ),
            );
        }
    }
}

fn extent(field: &Field) -> String {
    format!("{}{}", if field.cut { "at least " } else { "" }, field.len)
}

/// Ops that need a tensor whose size is the image's as a whole.
fn wholes(small: &Graph, large: &Graph, text: &mut String) {
    let bytes = |graph: &Graph, node: &stripmill::graph::Node| -> u64 {
        let rows = node
            .operands
            .iter()
            .flat_map(|o| o.0.iter().map(|s| s.tensor));
        let whole = node
            .whole
            .iter()
            .flatten()
            .copied()
            .filter(|_| matches!(node.op, Op::Dense(_)));
        rows.chain(whole).map(|id| graph.tensor(id).bytes()).sum()
    };
    let mut any = false;
    for node in large
        .nodes
        .iter()
        .filter(|n| matches!(n.op, Op::Dense(_) | Op::Gather(_)))
    {
        let before = small
            .nodes
            .iter()
            .find(|n| n.name == node.name && n.outputs == node.outputs);
        if before.is_some_and(|before| bytes(small, before) == bytes(large, node)) {
            continue;
        }
        any = true;
        let what = match &node.op {
            Op::Gather(kind) => format!("gathers {kind:?}, strip by strip"),
            Op::Dense(op) => format!("{} over whole tensors", op.kind),
            _ => continue,
        };
        line(text, "whole", format_args!("`{}` {what}", node.name));
    }
    if !any {
        line(text, "whole", format_args!("no op needs a whole tensor"));
    }
}

fn line(text: &mut String, head: &str, what: std::fmt::Arguments<'_>) {
    // writing to a string does not fail
    let _ = writeln!(text, "{head:<12} {what}");
}
