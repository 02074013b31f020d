//! Ops that join elements along axes.

use stripmill::dense::{Attr, Value};

use super::{all, count, f, float, i, int, ints, list, near, one, op};

#[test]
fn reductions() {
    let x = count(&[2, 3]);
    let reduce =
        |kind: &str, axes: &[i64]| one(&op(kind, 18, &[("keepdims", int(0))]), &[&x, &list(axes)]);
    assert_eq!(reduce("ReduceSum", &[0]), f(&[3], &[3., 5., 7.]));
    assert_eq!(reduce("ReduceMean", &[-1]), f(&[2], &[1., 4.]));
    assert_eq!(reduce("ReduceMax", &[0, 1]), f(&[], &[5.]));
    assert_eq!(reduce("ReduceMin", &[]), f(&[], &[0.]));
    assert_eq!(reduce("ReduceProd", &[1]), f(&[2], &[0., 60.]));
    assert_eq!(reduce("ReduceSumSquare", &[1]), f(&[2], &[5., 50.]));
    assert_eq!(reduce("ReduceL1", &[1]), f(&[2], &[3., 12.]));
    near(
        &reduce("ReduceL2", &[1]),
        &[2],
        &[5f32.sqrt(), 50f32.sqrt()],
    );
    near(
        &reduce("ReduceLogSum", &[1]),
        &[2],
        &[3f32.ln(), 12f32.ln()],
    );
    let large = one(
        &op("ReduceLogSumExp", 18, &[]),
        &[&f(&[2], &[1000., 1000.])],
    );
    near(&large, &[1], &[1_000.693_1]);
    let noop = [("noop_with_empty_axes", int(1))];
    assert_eq!(one(&op("ReduceSum", 13, &noop), &[&x]), x);
    assert_eq!(
        one(&op("ReduceSum", 11, &[("axes", ints(&[1]))]), &[&x]),
        f(&[2, 1], &[3., 12.])
    );
    // nothing at all
    let nothing = f(&[2, 0], &[]);
    let y = one(&op("ReduceSum", 13, &[]), &[&nothing, &list(&[1])]);
    assert_eq!(y, f(&[2, 1], &[0., 0.]));
    let y = one(&op("ReduceMax", 20, &[]), &[&nothing, &list(&[1])]);
    assert_eq!(y, f(&[2, 1], &[f32::NEG_INFINITY; 2]));
    // one rounding: f32 sums would lose every 1
    let y = one(&op("ReduceSum", 13, &[]), &[&f(&[3], &[1e8, 1., -1e8])]);
    assert_eq!(y, f(&[1], &[1.]));
    assert_eq!(
        one(&op("ReduceSum", 13, &[]), &[&list(&[i64::MAX, 1])]),
        list(&[i64::MIN])
    );
    assert_eq!(
        one(&op("ReduceMean", 18, &[]), &[&list(&[-1, -2])]),
        list(&[-1])
    );
}

#[test]
fn extremes_and_order() {
    let x = f(&[2, 3], &[1., 3., 3., 2., 0., 0.]);
    let y = one(
        &op("ArgMax", 13, &[("axis", int(1)), ("keepdims", int(0))]),
        &[&x],
    );
    assert_eq!(y, list(&[1, 0]));
    let last = [("axis", int(-1)), ("select_last_index", int(1))];
    assert_eq!(one(&op("ArgMin", 13, &last), &[&x]), i(&[2, 1], &[0, 2]));
    let y = all(&op("TopK", 11, &[]), &[Some(&x), Some(&list(&[2]))]).unwrap();
    assert_eq!(
        y,
        [f(&[2, 2], &[3., 3., 2., 0.]), i(&[2, 2], &[1, 2, 0, 1])]
    );
    let y = one(&op("CumSum", 14, &[]), &[&list(&[1, 2, 3]), &i(&[], &[0])]);
    assert_eq!(y, list(&[1, 3, 6]));
    let back = [("exclusive", int(1)), ("reverse", int(1))];
    let y = one(
        &op("CumSum", 14, &back),
        &[&list(&[1, 2, 3]), &i(&[], &[0])],
    );
    assert_eq!(y, list(&[5, 3, 0]));
}

#[test]
fn norms() {
    let exact = ("epsilon", float(0.));
    let vector = |v: &[f32]| f(&[v.len() as u64], v);
    let x = f(&[1, 2, 2], &[1., 3., 10., 30.]);
    let y = one(
        &op("InstanceNormalization", 6, std::slice::from_ref(&exact)),
        &[&x, &vector(&[1., 2.]), &vector(&[0., 5.])],
    );
    near(&y, &[1, 2, 2], &[-1., 1., 3., 7.]);
    let bn = op("BatchNormalization", 15, std::slice::from_ref(&exact));
    let y = one(
        &bn,
        &[
            &x,
            &vector(&[2., 1.]),
            &vector(&[1., 0.]),
            &vector(&[1., 10.]),
            &vector(&[4., 100.]),
        ],
    );
    near(&y, &[1, 2, 2], &[1., 3., 0., 2.]);
    let layer = op(
        "LayerNormalization",
        17,
        &[exact.clone(), ("axis", int(-1))],
    );
    let y = all(&layer, &[Some(&x), Some(&vector(&[1., 10.])), None]).unwrap();
    near(&y[0], &[1, 2, 2], &[-1., 10., -1., 10.]);
    near(&y[1], &[1, 2, 1], &[2., 20.]);
    near(&y[2], &[1, 2, 1], &[1., 0.1]);

    // two groups of two channels; scales are the groups' up to operator set 20
    let x = f(&[1, 4, 1], &[1., 3., 10., 30.]);
    let group = |opset, scale: &[f32]| {
        let op = op(
            "GroupNormalization",
            opset,
            &[exact.clone(), ("num_groups", int(2))],
        );
        one(&op, &[&x, &vector(scale), &vector(&vec![0.; scale.len()])])
    };
    near(&group(18, &[1., 2.]), &[1, 4, 1], &[-1., 1., -2., 2.]);
    near(
        &group(21, &[1., 2., 3., 4.]),
        &[1, 4, 1],
        &[-1., 2., -3., 4.],
    );

    let lrn = [("size", int(3)), ("alpha", float(3.)), ("beta", float(1.))];
    let y = one(&op("LRN", 13, &lrn), &[&f(&[1, 3, 1], &[1., 2., 3.])]);
    near(&y, &[1, 3, 1], &[1. / 6., 2. / 15., 3. / 14.]);
    let y = one(
        &op("LpNormalization", 1, &[]),
        &[&f(&[2, 2], &[3., 4., 0., 0.])],
    );
    near(&y, &[2, 2], &[0.6, 0.8, 0., 0.]);
    let over = [("axes", ints(&[0]))];
    let y = one(
        &op("MeanVarianceNormalization", 13, &over),
        &[&f(&[2, 1], &[1., 5.])],
    );
    near(&y, &[2, 1], &[-1., 1.]);

    // up to operator set 12 an axis and all that follow are one
    let zeros = f(&[1, 2, 2], &[0.; 4]);
    near(
        &one(&op("Softmax", 11, &[]), &[&zeros]),
        &[1, 2, 2],
        &[0.25; 4],
    );
    near(
        &one(&op("Softmax", 13, &[]), &[&zeros]),
        &[1, 2, 2],
        &[0.5; 4],
    );
    let y = one(&op("LogSoftmax", 13, &[]), &[&f(&[2], &[1e4, 1e4])]);
    near(&y, &[2], &[-std::f32::consts::LN_2; 2]);
}

#[test]
fn products() {
    let product = |a: &Value, b: &Value| one(&op("MatMul", 13, &[]), &[a, b]);
    let (a, b) = (count(&[2, 2]), f(&[2, 1], &[1., 10.]));
    assert_eq!(product(&a, &b), f(&[2, 1], &[10., 32.]));
    assert_eq!(product(&a, &f(&[2], &[1., 10.])), f(&[2], &[10., 32.]));
    assert_eq!(
        product(&f(&[2], &[1., 10.]), &f(&[2], &[2., 3.])),
        f(&[], &[32.])
    );
    // one matrix for all of a batch
    let y = product(&count(&[2, 1, 2]), &a);
    assert_eq!(y, f(&[2, 1, 2], &[2., 3., 6., 11.]));
    assert_eq!(
        product(&i(&[1, 1], &[3]), &i(&[1, 1], &[-4])),
        i(&[1, 1], &[-12])
    );

    let gemm = |attrs: &[(&str, Attr)], a: &Value, b: &Value, c: &Value| {
        one(&op("Gemm", 13, attrs), &[a, b, c])
    };
    let scaled = [("alpha", float(2.)), ("beta", float(0.5))];
    let y = gemm(&scaled, &a, &a, &f(&[2, 1], &[2., 4.]));
    assert_eq!(y, f(&[2, 2], &[5., 7., 14., 24.]));
    let none = f(&[1], &[0.]);
    let y = gemm(
        &[("transB", int(1))],
        &count(&[1, 3]),
        &count(&[2, 3]),
        &none,
    );
    assert_eq!(y, f(&[1, 2], &[5., 14.]));
    let y = gemm(&[("transA", int(1))], &count(&[2, 1]), &a, &none);
    assert_eq!(y, f(&[1, 2], &[2., 3.]));
}
