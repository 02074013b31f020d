//! Small ONNX models: lowered, fused and run in strips, they give what their nodes give one by one
//! over whole tensors; and only what must be whole is.

mod common;

use std::collections::{BTreeMap, HashMap};

use prost::Message;
use stripmill::dense::{self, Attr, Data, Value};
use stripmill::graph::{Graph, Op, WeightSource};
use stripmill::import::Model;

use common::compare::bits_differ;
use common::pb::{self, Node, Tensor, ValueInfo};
use common::rng::Rng;
use common::run::{How, as_f32, run_graph};
use common::validate::validate;

/// A model of one image input `x` and one output `y`.
struct Case {
    nodes: Vec<Node>,
    constants: Vec<Tensor>,
    rng: Rng,
}

impl Case {
    fn new() -> Self {
        Case {
            nodes: Vec::new(),
            constants: Vec::new(),
            rng: Rng::new(11),
        }
    }

    fn node(mut self, node: Node) -> Self {
        self.nodes.push(node);
        self
    }

    fn ints(mut self, name: &str, values: &[i64]) -> Self {
        let dims = [values.len() as i64];
        self.constants.push(Tensor::i64(name, &dims, values));
        self
    }

    fn floats(mut self, name: &str, dims: &[i64], values: &[f32]) -> Self {
        self.constants.push(Tensor::f32(name, dims, values));
        self
    }

    /// A constant of random values.
    fn random(mut self, name: &str, dims: &[i64]) -> Self {
        let count = dims.iter().product::<i64>() as u64;
        let values = self.rng.values(count, 0.7);
        self.floats(name, dims, &values)
    }

    /// `y = Conv(x)`, so that images come from an op too.
    fn conv(self, from: &str, to: &str, [cout, cin]: [i64; 2]) -> Self {
        let name = format!("{to}_weight");
        self.random(&name, &[cout, cin, 3, 3])
            .node(Node::new("Conv", &[from, &name], &[to]).ints("pads", &[1, 1, 1, 1]))
    }

    fn proto(&self, dims: &[u64]) -> pb::Model {
        let free: Vec<i64> = dims.iter().map(|_| -1).collect();
        pb::Model::new(pb::Graph {
            node: self.nodes.clone(),
            name: Some("case".into()),
            initializer: self.constants.clone(),
            input: vec![ValueInfo::f32("x", &free)],
            output: vec![ValueInfo::f32("y", &[])],
        })
    }

    /// The graph, and its output on a random input, checked against the nodes run one by one.
    fn check(mut self, dims: [u64; 4]) -> Graph {
        let x = Value::f32(&dims, self.rng.values(dims.iter().product(), 1.0));
        let proto = self.proto(&dims);
        let graph = open(&proto).graph(&[("x", dims.to_vec())]).unwrap();
        validate(&graph);
        assert_eq!(graph.tensor(graph.outputs[0]).name, "y");
        let expected = &one_by_one(proto.graph.as_ref().unwrap(), x.clone())["y"];
        let inputs = [x];
        let made = run_graph(&graph, &inputs, How::row_by_row()).unwrap();
        let whole = run_graph(&graph, &inputs, How::untiled()).unwrap();
        assert_eq!(bits_differ(&made, &whole), None);
        assert_eq!(made[0].dims, expected.dims);
        let (made, expected) = (as_f32(&made[0]), as_f32(expected));
        let largest = expected.iter().fold(1e-3f32, |m, v| m.max(v.abs()));
        for (i, (a, b)) in made.iter().zip(&expected).enumerate() {
            assert!((a - b).abs() <= 2e-5 * largest, "element {i}: {a}, not {b}");
        }
        graph
    }
}

fn open(proto: &pb::Model) -> Model {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.onnx");
    std::fs::write(&path, proto.encode_to_vec()).unwrap();
    Model::open(&path).unwrap()
}

/// Every value of a graph, from its nodes over whole tensors.
fn one_by_one(graph: &pb::Graph, x: Value) -> HashMap<String, Value> {
    let mut values = HashMap::from([("x".to_owned(), x)]);
    for tensor in &graph.initializer {
        let name = tensor.name.clone().unwrap();
        values.insert(name, tensor.value().unwrap());
    }
    for node in &graph.node {
        let attr = |a: &pb::Attribute| {
            let value = match a.kind? {
                1 => Attr::Float(a.f?),
                2 => Attr::Int(a.i?),
                3 => Attr::Str(String::from_utf8(a.s.clone()?).unwrap()),
                7 => Attr::Ints(a.ints.clone()),
                _ => return None,
            };
            Some((a.name.clone()?, value))
        };
        let op = dense::Op {
            kind: node.op_type.clone().unwrap(),
            opset: 18,
            attrs: node
                .attribute
                .iter()
                .filter_map(attr)
                .collect::<BTreeMap<_, _>>(),
        };
        let inputs: Vec<_> = node
            .input
            .iter()
            .map(|name| values.get(name).map(Value::view))
            .collect();
        let outputs = dense::eval(&op, &inputs).unwrap();
        values.extend(node.output.iter().cloned().zip(outputs));
    }
    values
}

/// Operators that run over whole tensors of more than a number per channel.
fn whole_ops(graph: &Graph) -> Vec<String> {
    let nodes = graph.nodes.iter().filter_map(|node| match &node.op {
        Op::Dense(op) => {
            let dims = &graph.tensor(node.outputs[0]).dims;
            (dims.iter().skip(2).product::<u64>() > 2).then(|| op.kind.clone())
        }
        _ => None,
    });
    nodes.collect()
}

fn ops(graph: &Graph) -> Vec<&'static str> {
    let name = |op: &Op| match op {
        Op::Conv(_) => "Conv",
        Op::Pool(_) => "Pool",
        Op::Resize { .. } => "Resize",
        Op::Pad { .. } => "Pad",
        Op::DepthToSpace { .. } => "DepthToSpace",
        Op::SpaceToDepth { .. } => "SpaceToDepth",
        Op::Pointwise => "Pointwise",
        Op::Softmax { .. } => "Softmax",
        Op::Lrn { .. } => "Lrn",
        Op::Gather(_) => "Gather",
        Op::Spread => "Spread",
        Op::Dense(_) => "Dense",
    };
    graph.nodes.iter().map(|node| name(&node.op)).collect()
}

fn reshape(from: &str, to: &str, shape: &str) -> Node {
    Node::new("Reshape", &[from, shape], &[to])
}

fn transpose(from: &str, to: &str, perm: &[i64]) -> Node {
    Node::new("Transpose", &[from], &[to]).ints("perm", perm)
}

#[test]
fn pixel_shuffles_written_as_reshapes() {
    let crd = Case::new()
        .ints("split", &[0, 3, 2, 2, 9, 7])
        .ints("join", &[0, 3, 18, 14])
        .conv("x", "a", [12, 2])
        .node(reshape("a", "b", "split"))
        .node(transpose("b", "c", &[0, 1, 4, 2, 5, 3]))
        .node(reshape("c", "y", "join"));
    assert_eq!(ops(&crd.check([1, 2, 9, 7])), ["Conv", "DepthToSpace"]);

    let dcr = Case::new()
        .ints("split", &[0, 2, 2, 3, 9, 7])
        .ints("join", &[0, 3, 18, 14])
        .conv("x", "a", [12, 2])
        .node(reshape("a", "b", "split"))
        .node(transpose("b", "c", &[0, 3, 4, 1, 5, 2]))
        .node(reshape("c", "y", "join"));
    assert_eq!(ops(&dcr.check([1, 2, 9, 7])), ["Conv", "DepthToSpace"]);

    let down = Case::new()
        .ints("split", &[0, 2, 4, 2, 3, 2])
        .ints("join", &[0, 8, 4, 3])
        .node(reshape("x", "b", "split"))
        .node(transpose("b", "c", &[0, 1, 3, 5, 2, 4]))
        .node(reshape("c", "d", "join"))
        .conv("d", "y", [3, 8]);
    let graph = down.check([2, 2, 8, 6]);
    assert_eq!(ops(&graph), ["SpaceToDepth", "Conv"]);
}

#[test]
fn channel_shuffles_written_as_reshapes() {
    for (groups, expected) in [
        (2, vec!["Conv", "Pointwise", "Conv"]),
        (12, vec!["Conv", "Conv"]),
    ] {
        let case = Case::new()
            .ints("split", &[0, groups, 24 / groups, 6, 5])
            .ints("join", &[0, 24, 6, 5])
            .conv("x", "a", [24, 3])
            .node(reshape("a", "b", "split"))
            .node(transpose("b", "c", &[0, 2, 1, 3, 4]))
            .node(reshape("c", "d", "join"))
            .conv("d", "y", [2, 24]);
        let graph = case.check([1, 3, 6, 5]);
        // few long runs of channels are segments, many short ones are copied
        let expected = if groups == 2 {
            &expected
        } else {
            &vec!["Conv", "Pointwise", "Conv"]
        };
        assert_eq!(&ops(&graph), expected);
    }
}

#[test]
fn group_norm_in_all_its_forms() {
    let written_out = Case::new()
        .ints("split", &[0, 3, -1])
        .ints("join", &[0, 12, 7, 6])
        .floats("one", &[3], &[1.0; 3])
        .floats("zero", &[3], &[0.0; 3])
        .random("scale", &[12, 1, 1])
        .random("shift", &[12, 1, 1])
        .conv("x", "a", [12, 2])
        .node(reshape("a", "b", "split"))
        .node(
            Node::new("InstanceNormalization", &["b", "one", "zero"], &["c"])
                .float("epsilon", 1e-3),
        )
        .node(reshape("c", "d", "join"))
        .node(Node::new("Mul", &["d", "scale"], &["e"]))
        .node(Node::new("Add", &["e", "shift"], &["y"]));
    let graph = written_out.check([2, 2, 7, 6]);
    assert_eq!(whole_ops(&graph), Vec::<String>::new());
    assert_eq!(
        ops(&graph).iter().filter(|op| **op == "Pointwise").count(),
        1
    );

    let by_name = Case::new()
        .random("scale", &[3])
        .random("shift", &[3])
        .node(
            Node::new("GroupNormalization", &["x", "scale", "shift"], &["y"]).int("num_groups", 3),
        );
    assert_eq!(
        whole_ops(&by_name.check([2, 6, 5, 4])),
        Vec::<String>::new()
    );

    let layer = || {
        let norm = Node::new("LayerNormalization", &["x", "scale", "shift"], &["y"]);
        Case::new()
            .random("scale", &[4, 5, 6])
            .random("shift", &[4, 1, 1])
            .node(norm.int("axis", 1))
    };
    // with several images, a scale of its own for every element is not rows
    assert_eq!(
        whole_ops(&layer().check([1, 4, 5, 6])),
        Vec::<String>::new()
    );
    assert_eq!(
        whole_ops(&layer().check([2, 4, 5, 6])),
        ["LayerNormalization"]
    );
}

#[test]
fn channels_last_in_the_middle() {
    let block = Case::new()
        .conv("x", "a", [8, 3])
        .random("scale", &[8])
        .random("shift", &[8])
        .random("widen", &[8, 20])
        .random("narrow", &[20, 8])
        .random("bias", &[20])
        .random("gamma", &[8])
        .node(transpose("a", "b", &[0, 2, 3, 1]))
        .node(Node::new("LayerNormalization", &["b", "scale", "shift"], &["c"]).int("axis", -1))
        .node(Node::new("MatMul", &["c", "widen"], &["d"]))
        .node(Node::new("Add", &["bias", "d"], &["e"]))
        .node(Node::new("Gelu", &["e"], &["f"]))
        .node(Node::new("MatMul", &["f", "narrow"], &["g"]))
        .node(Node::new("Mul", &["g", "gamma"], &["h"]))
        .node(transpose("h", "i", &[0, 3, 1, 2]))
        .node(Node::new("Add", &["i", "a"], &["y"]));
    let graph = block.check([2, 3, 6, 7]);
    assert!(!ops(&graph).contains(&"Dense"), "{:?}", ops(&graph));
    assert!(!ops(&graph).contains(&"Gather"), "{:?}", ops(&graph));

    let norm = Case::new()
        .floats("epsilon", &[], &[1e-5])
        .floats("two", &[], &[2.0])
        .ints("last", &[-1])
        .random("scale", &[5])
        .random("shift", &[1, 1, 5])
        .node(transpose("x", "b", &[0, 2, 3, 1]))
        .node(Node::new("ReduceMean", &["b", "last"], &["mean"]))
        .node(Node::new("Sub", &["b", "mean"], &["c"]))
        .node(Node::new("Pow", &["c", "two"], &["d"]))
        .node(Node::new("ReduceMean", &["d", "last"], &["variance"]))
        .node(Node::new("Add", &["variance", "epsilon"], &["e"]))
        .node(Node::new("Sqrt", &["e"], &["f"]))
        .node(Node::new("Div", &["c", "f"], &["g"]))
        .node(Node::new("Mul", &["g", "scale"], &["h"]))
        .node(Node::new("Add", &["h", "shift"], &["i"]))
        .node(transpose("i", "y", &[0, 3, 1, 2]));
    let graph = norm.check([1, 5, 6, 7]);
    assert!(!ops(&graph).contains(&"Dense"), "{:?}", ops(&graph));

    // what stays so is made over whole tensors, and a token view of an image is no image
    let tokens = Case::new()
        .ints("flat", &[0, 5, -1])
        .random("matrix", &[5, 4])
        .node(reshape("x", "b", "flat"))
        .node(transpose("b", "c", &[0, 2, 1]))
        .node(Node::new("Softmax", &["c"], &["d"]).int("axis", 2))
        .node(Node::new("MatMul", &["d", "matrix"], &["e"]))
        .node(Node::new("Relu", &["e"], &["f"]))
        .node(Node::new("Softmax", &["f"], &["y"]).int("axis", 1));
    let graph = tokens.check([2, 5, 4, 3]);
    assert_eq!(ops(&graph)[..2], ["Softmax", "Conv"]);
}

#[test]
fn choosing_and_joining_channels() {
    let free = Case::new()
        .ints("from", &[2])
        .ints("to", &[7])
        .ints("axis", &[1])
        .ints("swap", &[2, 1, 0])
        .conv("x", "a", [6, 3])
        .node(Node::new("Gather", &["x", "swap"], &["bgr"]).int("axis", 1))
        .node(Node::new("Concat", &["bgr", "a"], &["b"]).int("axis", 1))
        .node(Node::new("Slice", &["b", "from", "to", "axis"], &["c"]))
        .conv("c", "y", [2, 5]);
    assert_eq!(ops(&free.check([1, 3, 5, 6])), ["Conv", "Conv"]);

    let along = Case::new()
        .ints("parts", &[2, 3])
        .node(Node::new("Split", &["x", "parts"], &["a", "b"]).int("axis", 2))
        .node(Node::new("Relu", &["a"], &["c"]))
        .node(Node::new("Concat", &["b", "c"], &["d"]).int("axis", 2))
        .node(Node::new("Concat", &["d", "x"], &["y"]).int("axis", 3));
    assert_eq!(whole_ops(&along.check([1, 3, 5, 6])), Vec::<String>::new());

    let repeated = Case::new()
        .ints("times", &[1, 3, 1, 2])
        .ints("grown", &[1, 6, 5, 8])
        .ints("hw", &[2, 3])
        .node(Node::new("Tile", &["x", "times"], &["a"]))
        .node(Node::new("ReduceMax", &["x", "hw"], &["b"]))
        .node(Node::new("Expand", &["b", "grown"], &["c"]))
        .node(Node::new("Sub", &["c", "c"], &["y"]));
    let _ = repeated.nodes.len();
    let tiled = Case::new()
        .ints("times", &[1, 3, 1, 1])
        .node(Node::new("Tile", &["x", "times"], &["a"]))
        .node(Node::new("Relu", &["a"], &["y"]));
    assert_eq!(whole_ops(&tiled.check([1, 2, 5, 4])), Vec::<String>::new());
    let wide =
        Case::new()
            .ints("times", &[1, 1, 1, 2])
            .node(Node::new("Tile", &["x", "times"], &["y"]));
    assert_eq!(whole_ops(&wide.check([1, 2, 5, 4])), Vec::<String>::new());
}

#[test]
fn pooled_branches_come_back_as_images() {
    for grow in ["Resize", "Expand"] {
        let case = Case::new()
            .ints("sizes", &[1, 4, 6, 7])
            .random("weight", &[4, 3, 1, 1])
            .conv("x", "a", [3, 2])
            .node(Node::new("GlobalAveragePool", &["a"], &["b"]))
            .node(Node::new("Conv", &["b", "weight"], &["c"]))
            .node(match grow {
                "Resize" => {
                    Node::new("Resize", &["c", "", "", "sizes"], &["d"]).str("mode", "linear")
                }
                _ => Node::new("Expand", &["c", "sizes"], &["d"]),
            })
            .node(Node::new("Concat", &["a", "d"], &["e"]).int("axis", 1))
            .conv("e", "y", [2, 7]);
        let graph = case.check([1, 2, 6, 7]);
        assert_eq!(whole_ops(&graph), Vec::<String>::new());
        assert!(ops(&graph).contains(&"Spread"));
    }
}

#[test]
fn broadcasting_beside_an_image() {
    let case = Case::new()
        .random("pixels", &[5, 6])
        .random("row", &[1, 1, 1, 6])
        .random("column", &[5, 1])
        .random("channels", &[3, 1, 1])
        .floats("tenth", &[], &[0.1])
        .ints("hw", &[2, 3])
        .node(Node::new("Mul", &["pixels", "x"], &["a"]))
        .node(Node::new("Add", &["a", "row"], &["b"]))
        .node(Node::new("Sub", &["column", "b"], &["c"]))
        .node(Node::new("PRelu", &["c", "channels"], &["d"]))
        .node(Node::new("Greater", &["d", "tenth"], &["e"]))
        .node(Node::new("Where", &["e", "d", "x"], &["f"]))
        .node(Node::new("ReduceMean", &["f", "hw"], &["g"]))
        .node(Node::new("Div", &["f", "g"], &["h"]))
        .node(Node::new("Max", &["h", "x", "tenth"], &["y"]));
    let graph = case.check([1, 3, 5, 6]);
    assert_eq!(whole_ops(&graph), Vec::<String>::new());
}

#[test]
fn reductions_over_the_image() {
    for kind in ["Mean", "Sum", "Max", "Min", "L1", "L2", "SumSquare"] {
        for (axes, keep) in [
            (&[2i64, 3][..], 1),
            (&[-1, 2], 0),
            (&[1, 2, 3], 1),
            (&[1], 1),
        ] {
            let kind = format!("Reduce{kind}");
            let case = Case::new()
                .ints("axes", axes)
                .node(Node::new(&kind, &["x", "axes"], &["y"]).int("keepdims", keep));
            let graph = case.check([2, 3, 5, 4]);
            let over_channels = axes == [1];
            if !over_channels || ["ReduceMean", "ReduceSum"].contains(&kind.as_str()) {
                assert_eq!(whole_ops(&graph), Vec::<String>::new(), "{kind} {axes:?}");
            }
        }
    }
}

#[test]
fn batch_norms_and_pads_are_folded() {
    let case = Case::new()
        .random("weight", &[4, 3, 3, 3])
        .random("bias", &[4])
        .random("scale", &[4])
        .random("shift", &[4])
        .random("mean", &[4])
        .floats("variance", &[4], &[0.5, 1.0, 2.0, 0.1])
        .floats("half", &[], &[0.5])
        .ints("pads", &[0, 0, 1, 2, 0, 0, 0, 1])
        .node(Node::new("Pad", &["x", "pads"], &["a"]).str("mode", "reflect"))
        .node(Node::new("Conv", &["a", "weight", "bias"], &["b"]).ints("strides", &[2, 1]))
        .node(Node::new(
            "BatchNormalization",
            &["b", "scale", "shift", "mean", "variance"],
            &["c"],
        ))
        .node(Node::new("Mul", &["c", "half"], &["d"]))
        .node(Node::new("Relu", &["d"], &["y"]));
    let graph = case.check([1, 3, 8, 6]);
    let [node] = graph.nodes.as_slice() else {
        panic!("{:?}", ops(&graph));
    };
    assert_eq!(node.tail.code.len(), 1);
}

#[test]
fn long_chains_keep_few_operands() {
    let mut case = Case::new();
    for i in 0..6 {
        case = case.conv("x", &format!("c{i}"), [4, 4]);
    }
    case = case.node(Node::new("Mul", &["c0", "c1"], &["m0"]));
    for i in 1..5 {
        let (a, b, c) = (
            format!("m{}", i - 1),
            format!("c{}", i + 1),
            format!("m{i}"),
        );
        case = case.node(Node::new("Mul", &[&a, &b], &[&c]));
    }
    case = case
        .node(Node::new("Sigmoid", &["m4"], &["s"]))
        .node(Node::new("Add", &["s", "x"], &["t"]))
        .node(Node::new("Sub", &["t", "c5"], &["y"]));
    let graph = case.check([1, 4, 6, 6]);
    for node in &graph.nodes {
        assert!(
            node.extras.len() <= 4,
            "{} has {} extras",
            node.name,
            node.extras.len()
        );
    }
}

#[test]
fn shapes_are_folded() {
    let case = Case::new()
        .ints("two", &[2])
        .ints("hw", &[2, 3])
        .ints("nc", &[1, 3])
        .node(Node::new("Shape", &["x"], &["shape"]))
        .node(Node::new("Gather", &["shape", "hw"], &["size"]))
        .node(Node::new("Mul", &["size", "two"], &["double"]))
        .node(Node::new("Concat", &["nc", "double"], &["sizes"]).int("axis", 0))
        .node(
            Node::new("Resize", &["x", "", "", "sizes"], &["y"])
                .str("mode", "nearest")
                .str("coordinate_transformation_mode", "asymmetric")
                .str("nearest_mode", "floor"),
        );
    assert_eq!(ops(&case.check([1, 3, 5, 4])), ["Resize"]);
}

#[test]
fn outputs_are_tensors_of_their_own() {
    let case = Case::new().node(Node::new("Identity", &["x"], &["y"]));
    assert_eq!(ops(&case.check([1, 3, 5, 4])), ["Pointwise"]);
    let case = Case::new()
        .conv("x", "a", [3, 3])
        .node(Node::new("Concat", &["x", "a", "x"], &["y"]).int("axis", 1));
    assert_eq!(ops(&case.check([1, 3, 5, 4])), ["Conv", "Pointwise"]);
}

#[test]
fn large_weights_stay_in_their_file() {
    let halves = |dims: &[i64], rng: &mut Rng| Tensor {
        dims: dims.to_vec(),
        data_type: Some(10),
        name: Some("half".into()),
        raw_data: Some(
            (0..dims.iter().product::<i64>())
                .flat_map(|_| half::f16::from_f32(rng.unit()).to_le_bytes())
                .collect(),
        ),
        ..Tensor::default()
    };
    let mut rng = Rng::new(3);
    let mut case = Case::new()
        .ints("shape", &[16, 16, 3, 3])
        .node(Node::new("Cast", &["half"], &["a"]).int("to", 1))
        .node(Node::new("Identity", &["a"], &["b"]))
        .node(reshape("b", "c", "shape"))
        .node(Node::new("Conv", &["x", "c"], &["y"]));
    case.constants.push(halves(&[256, 9], &mut rng));
    let graph = open(&case.proto(&[1, 16, 8, 8]))
        .graph(&[("x", vec![1, 16, 8, 8])])
        .unwrap();
    let [weight] = graph.weights.as_slice() else {
        panic!("{} weights", graph.weights.len());
    };
    assert!(matches!(
        weight.source,
        WeightSource::File { half: true, .. }
    ));
    assert_eq!(weight.dims, [16, 16, 3, 3]);
    // the file is gone, but open
    let mut values = vec![0.0; 2304];
    weight.read(0, &mut values).unwrap();
    let raw = case.constants[1].raw_data.clone().unwrap();
    let expected = raw
        .as_chunks::<2>()
        .0
        .iter()
        .map(|&b| half::f16::from_le_bytes(b).to_f32());
    assert!(values.iter().copied().eq(expected));
}

#[test]
fn constants_of_every_kind() {
    let typed = |data_type: i32, set: &dyn Fn(&mut Tensor)| {
        let mut tensor = Tensor {
            dims: vec![2],
            data_type: Some(data_type),
            name: Some("k".into()),
            ..Tensor::default()
        };
        set(&mut tensor);
        tensor
    };
    let bits = |x: f32| i32::from(half::f16::from_f32(x).to_bits());
    let cases = [
        typed(1, &|t| t.float_data = vec![1.5, -2.0]),
        typed(10, &|t| t.int32_data = vec![bits(1.5), bits(-2.0)]),
        typed(16, &|t| t.raw_data = Some(vec![0xC0, 0x3F, 0x00, 0xC0])),
        typed(11, &|t| {
            t.raw_data = Some(
                [1.5f64, -2.0]
                    .iter()
                    .flat_map(|x| x.to_le_bytes())
                    .collect(),
            )
        }),
    ];
    for tensor in cases {
        let mut case = Case::new().node(Node::new("Mul", &["x", "k"], &["y"]));
        case.constants.push(tensor);
        let graph = open(&case.proto(&[1, 1, 2, 2]))
            .graph(&[("x", vec![1, 1, 2, 2])])
            .unwrap();
        let x = Value::f32(&[1, 1, 2, 2], vec![1.0, 2.0, 3.0, 4.0]);
        let y = run_graph(&graph, &[x], How::untiled()).unwrap();
        assert_eq!(y[0].data, Data::F32(vec![1.5, -4.0, 4.5, -8.0]));
    }
}
