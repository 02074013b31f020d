//! Every op over whole tensors, on cases small enough to be worked out by hand. (The ONNX project's
//! own cases are in `node_tests.rs`.)

mod elementwise;
mod joins;
mod movement;
mod spatial;

use stripmill::Error;
use stripmill::dense::{Attr, DType, Data, Fact, Op, Value, View, eval, infer, supports};

fn op(kind: &str, opset: u32, attrs: &[(&str, Attr)]) -> Op {
    let named = attrs.iter().map(|(n, attr)| ((*n).into(), attr.clone()));
    Op {
        kind: kind.into(),
        opset,
        attrs: named.collect(),
    }
}

fn int(i: i64) -> Attr {
    Attr::Int(i)
}

fn ints(v: &[i64]) -> Attr {
    Attr::Ints(v.to_vec())
}

fn float(x: f32) -> Attr {
    Attr::Float(x)
}

fn text(s: &str) -> Attr {
    Attr::Str(s.into())
}

fn f(dims: &[u64], values: &[f32]) -> Value {
    Value::f32(dims, values.to_vec())
}

fn i(dims: &[u64], values: &[i64]) -> Value {
    Value::i64(dims, values.to_vec())
}

fn list(values: &[i64]) -> Value {
    i(&[values.len() as u64], values)
}

fn of(dims: &[u64], data: Data) -> Value {
    Value {
        dims: dims.to_vec(),
        data,
    }
}

/// 0, 1, 2, … in f32.
fn count(dims: &[u64]) -> Value {
    let n: u64 = dims.iter().product();
    f(dims, &(0..n).map(|i| i as f32).collect::<Vec<_>>())
}

fn fact(v: &Value) -> Fact<'_> {
    Fact {
        dtype: v.dtype(),
        dims: &v.dims,
        value: Some(v),
    }
}

/// All outputs; `infer` must foresee their types and lengths.
fn all(op: &Op, inputs: &[Option<&Value>]) -> Result<Vec<Value>, Error> {
    let views: Vec<Option<View<'_>>> = inputs.iter().map(|v| v.map(Value::view)).collect();
    let outputs = eval(op, &views)?;
    let facts: Vec<_> = inputs.iter().map(|v| v.map(fact)).collect();
    let shapes = outputs.iter().map(|y| (y.dtype(), y.dims.clone()));
    assert_eq!(infer(op, &facts)?, shapes.collect::<Vec<_>>());
    Ok(outputs)
}

/// The first output, of inputs that are all there.
#[track_caller]
fn one(op: &Op, inputs: &[&Value]) -> Value {
    let inputs: Vec<_> = inputs.iter().map(|v| Some(*v)).collect();
    match all(op, &inputs) {
        Ok(mut outputs) => outputs.swap_remove(0),
        Err(e) => panic!("{e}"),
    }
}

/// What is wrong with `op`.
#[track_caller]
fn fault(op: &Op, inputs: &[&Value]) -> String {
    let inputs: Vec<_> = inputs.iter().map(|v| Some(*v)).collect();
    match all(op, &inputs) {
        Ok(outputs) => panic!("no error, but {outputs:?}"),
        Err(e) => e.to_string(),
    }
}

#[track_caller]
fn near(y: &Value, dims: &[u64], wanted: &[f32]) {
    assert_eq!(y.dims, dims);
    let Data::F32(y) = &y.data else {
        panic!("{:?} is not f32", y.dtype());
    };
    let close = |(y, w): (&f32, &f32)| (y - w).abs() <= 2e-7 * w.abs().max(1.0);
    assert!(y.iter().zip(wanted).all(close), "{y:?} is not {wanted:?}");
}

/// Bad models are told off, by `infer` where it can see, and never panic.
#[test]
fn faults() {
    let x = count(&[1, 1, 4, 4]);
    let w = count(&[1, 1, 3, 3]);
    for (op, inputs, why) in [
        (op("Conv", 11, &[]), vec![&x], "input 1 is missing"),
        (
            op("Conv", 11, &[("group", int(0))]),
            vec![&x, &w],
            "0 groups",
        ),
        (
            op("Conv", 11, &[("strides", ints(&[0, 1]))]),
            vec![&x, &w],
            "strides [0, 1]",
        ),
        (
            op("Conv", 11, &[("dilations", ints(&[2, 2]))]),
            vec![&x, &w],
            "a window of 5 does not fit into 4",
        ),
        (
            op("Conv", 11, &[("pads", ints(&[i64::MAX; 4]))]),
            vec![&x, &w],
            "pads",
        ),
        (
            op("MaxPool", 12, &[("kernel_shape", ints(&[-1, 1]))]),
            vec![&x],
            "[-1, 1] is no shape",
        ),
        (
            op("Add", 14, &[]),
            vec![&x, &count(&[3])],
            "do not broadcast",
        ),
        (
            op("Add", 14, &[]),
            vec![&x, &list(&[1])],
            "needs F32, not I64",
        ),
        (op("Sigmoid", 13, &[]), vec![&list(&[1])], "needs f32"),
        (
            op("Reshape", 14, &[]),
            vec![&x, &list(&[3, -1])],
            "does not fill [3, -1]",
        ),
        (
            op("Expand", 13, &[]),
            vec![&x, &list(&[1 << 39, 1 << 9, 1, 4, 4])],
            "2^48 elements",
        ),
        (
            op("Tile", 13, &[]),
            vec![&x, &list(&[i64::MAX, 1, 1, 1])],
            "2^40 along an axis",
        ),
        (
            op("Transpose", 13, &[("perm", ints(&[0, 0, 1, 2]))]),
            vec![&x],
            "name one twice",
        ),
        (
            op("Softmax", 13, &[("axis", int(4))]),
            vec![&x],
            "axis 4 is not one of 4",
        ),
        (
            op("Slice", 13, &[]),
            vec![&x, &list(&[0]), &list(&[1]), &list(&[0]), &list(&[0])],
            "step is 0",
        ),
        (
            op("Split", 13, &[("num_outputs", int(9))]),
            vec![&x],
            "cannot be split",
        ),
        (
            op("Cast", 13, &[("to", int(8))]),
            vec![&x],
            "element type 8",
        ),
        (
            op("MatMul", 13, &[]),
            vec![&count(&[2, 3]), &count(&[2, 3])],
            "inner lengths differ",
        ),
        (
            op("Resize", 13, &[]),
            vec![&x, &f(&[0], &[]), &f(&[4], &[1., 1., -1., 1.])],
            "scaled by -1",
        ),
        (op("Frobnicate", 13, &[]), vec![&x], "(Frobnicate)"),
    ] {
        let message = fault(&op, &inputs);
        assert!(
            message.contains(why) && message.contains(&op.kind),
            "{message}"
        );
        let facts: Vec<_> = inputs.iter().map(|v| Some(fact(v))).collect();
        assert!(infer(&op, &facts).is_err(), "{op:?}");
    }
    assert!(supports("Conv") && !supports("Frobnicate"));
}

/// What only `run` can know, and what `infer` needs to know.
#[test]
fn unknown_values() {
    let unknown = Fact {
        dtype: DType::I64,
        dims: &[2],
        value: None,
    };
    let x = count(&[2, 3]);
    let error = infer(&op("Reshape", 14, &[]), &[Some(fact(&x)), Some(unknown)]).unwrap_err();
    assert!(
        matches!(&error, Error::Unsupported { why, .. } if why.contains("constant")),
        "{error}"
    );
    let blind = Fact {
        value: None,
        ..fact(&x)
    };
    let y = infer(&op("Gather", 13, &[]), &[Some(blind), Some(unknown)]).unwrap();
    assert_eq!(y, [(DType::F32, vec![2, 3])]);
    let y = infer(&op("Shape", 13, &[]), &[Some(blind)]).unwrap();
    assert_eq!(y, [(DType::I64, vec![2])]);
}
