//! What every graph must hold, whoever made it.

use std::collections::HashSet;

use stripmill::graph::{Gather, Graph, Layout, Node, Op, Operand, TensorId, Window};

use super::shrink::reads;

/// Panics, naming the node, where `graph` breaks a rule of its own documentation.
pub fn validate(graph: &Graph) {
    let mut names = HashSet::new();
    for tensor in &graph.tensors {
        assert!(names.insert(&tensor.name), "two tensors `{}`", tensor.name);
        if tensor.layout == Layout::Rows {
            assert_eq!(tensor.dims.len(), 4, "rows `{}`", tensor.name);
        }
    }
    let mut made: HashSet<TensorId> = graph.inputs.iter().copied().collect();
    assert_eq!(made.len(), graph.inputs.len(), "an input twice");
    for (id, value) in &graph.constants {
        assert!(made.insert(*id), "constant {id:?} twice");
        assert_eq!(graph.tensor(*id).dims, value.dims);
        assert_eq!(graph.tensor(*id).dtype, value.dtype());
        assert_eq!(graph.tensor(*id).layout, Layout::Whole);
    }
    for node in &graph.nodes {
        for id in reads(node) {
            assert!(made.contains(&id), "{}: reads {id:?} too early", node.name);
        }
        check(graph, node);
        for &id in &node.outputs {
            assert!(made.insert(id), "{}: makes {id:?} again", node.name);
        }
    }
    for id in &graph.outputs {
        assert!(made.contains(id), "output {id:?} is never made");
    }
}

fn check(graph: &Graph, node: &Node) {
    let name = &node.name;
    let layout = |id: TensorId| graph.tensor(id).layout;
    for operand in node.operands.iter().chain(&node.extras) {
        let first = graph.tensor(operand.0[0].tensor);
        for segment in &operand.0 {
            let tensor = graph.tensor(segment.tensor);
            assert_eq!(tensor.layout, Layout::Rows, "{name}: operand");
            let channels = &segment.channels;
            assert!(channels.start < channels.end && channels.end <= tensor.c());
            assert_eq!(
                (tensor.n(), tensor.h(), tensor.w()),
                (first.n(), first.h(), first.w()),
                "{name}: segments"
            );
        }
    }
    for id in node.whole.iter().flatten() {
        assert_eq!(layout(*id), Layout::Whole, "{name}: whole operand");
    }
    let to_rows = !matches!(node.op, Op::Gather(_) | Op::Dense(_));
    for &id in &node.outputs {
        assert_eq!(layout(id) == Layout::Rows, to_rows, "{name}: output");
    }
    let operands = usize::from(!matches!(node.op, Op::Dense(_) | Op::Spread));
    assert_eq!(node.operands.len(), operands, "{name}: operands");
    if to_rows {
        assert_eq!(node.outputs.len(), 1, "{name}: outputs");
        lengths(graph, node);
    } else {
        assert!(
            node.tail.code.is_empty() && node.extras.is_empty(),
            "{name}"
        );
    }
    if let Op::Gather(kind) = node.op {
        let x = rows(graph, &node.operands[0]);
        let expected = match kind {
            Gather::Whole => x.to_vec(),
            Gather::Mean | Gather::Max => vec![x[0], x[1], 1, 1],
            Gather::Moments(moments) => {
                assert_eq!(x[1] % moments.groups, 0, "{name}: groups");
                vec![x[0], x[1], 2]
            }
        };
        assert_eq!(graph.tensor(node.outputs[0]).dims, expected, "{name}");
    }
}

fn rows(graph: &Graph, operand: &Operand) -> [u64; 4] {
    let tensor = graph.tensor(operand.0[0].tensor);
    [tensor.n(), operand.channels(), tensor.h(), tensor.w()]
}

fn lengths(graph: &Graph, node: &Node) {
    let name = &node.name;
    let [n, c, h, w]: [u64; 4] = graph.tensor(node.outputs[0]).dims[..].try_into().unwrap();
    let x = node.operands.first().map(|o| rows(graph, o));
    let x = x.unwrap_or([n, c, h, w]);
    let to = |channels: u64, rows: &Window, cols: &Window| {
        assert_eq!((n, c), (x[0], channels), "{name}: channels");
        along(name, rows, x[2], h);
        along(name, cols, x[3], w);
    };
    match &node.op {
        Op::Conv(conv) => {
            let dims = &graph.weights[conv.weight].dims;
            let (gin, gout) = (x[1] / conv.groups, conv.cout / conv.groups);
            assert_eq!(
                (x[1] % conv.groups, conv.cout % conv.groups),
                (0, 0),
                "{name}"
            );
            let taps = |window: &Window| match window {
                Window::Taps { kernel, .. } | Window::Transposed { kernel, .. } => *kernel,
                other => panic!("{name}: a convolution with {other:?}"),
            };
            let kernel = [taps(&conv.rows), taps(&conv.cols)];
            let transposed = matches!(conv.rows, Window::Transposed { .. });
            let expected = if transposed {
                [x[1], gout]
            } else {
                [conv.cout, gin]
            };
            assert_eq!(dims[..], [expected, kernel].concat(), "{name}: weights");
            for vector in [&conv.scale, &conv.bias].into_iter().flatten() {
                assert_eq!(vector.len() as u64, conv.cout, "{name}: a vector");
            }
            to(conv.cout, &conv.rows, &conv.cols);
        }
        Op::Pool(pool) => to(x[1], &pool.rows, &pool.cols),
        Op::Resize { rows, cols } | Op::Pad { rows, cols, .. } => to(x[1], rows, cols),
        Op::DepthToSpace { block: b, .. } => {
            assert_eq!(
                [n, c * b * b, h, w],
                [x[0], x[1], x[2] * b, x[3] * b],
                "{name}"
            );
        }
        Op::SpaceToDepth { block: b } => {
            assert_eq!(
                [n, c, h * b, w * b],
                [x[0], x[1] * b * b, x[2], x[3]],
                "{name}"
            );
        }
        _ => assert_eq!([n, c, h, w], x, "{name}"),
    }
    for extra in &node.extras {
        let e = rows(graph, extra);
        let fits = e[0] == n && e[2] == h && [1, c].contains(&e[1]) && [1, w].contains(&e[3]);
        assert!(fits, "{name}: extra {e:?} beside {:?}", [n, c, h, w]);
    }
    for vector in &node.tail.vectors {
        assert_eq!(vector.len() as u64, c, "{name}: a vector of the tail");
    }
}

/// Whether `output` positions can come from `input` positions.
fn along(name: &str, window: &Window, input: u64, output: u64) {
    assert!(input > 0 && output > 0, "{name}: empty");
    match window {
        Window::Same => assert_eq!(input, output, "{name}"),
        Window::Repeat { factor } => assert!(output <= input * factor, "{name}"),
        Window::Interp(interp) => {
            assert_eq!((interp.input, interp.output), (input, output), "{name}");
        }
        Window::Taps {
            stride, dilation, ..
        }
        | Window::Transposed {
            stride, dilation, ..
        } => {
            assert!(*stride > 0 && *dilation > 0, "{name}");
        }
    }
}
