//! Ops that move, pick or make up elements.

use stripmill::dense::{Attr, Data, Value};

use super::{all, count, f, fault, float, i, int, ints, list, of, one, op, text};

#[test]
fn moves() {
    let x = count(&[2, 3]);
    let y = one(&op("Transpose", 13, &[]), &[&x]);
    assert_eq!(y, f(&[3, 2], &[0., 3., 1., 4., 2., 5.]));
    let y = one(
        &op("Transpose", 13, &[("perm", ints(&[2, 0, 1]))]),
        &[&count(&[1, 2, 2])],
    );
    assert_eq!(y, f(&[2, 1, 2], &[0., 2., 1., 3.]));
    let reshape = |x: &Value, to: &[i64]| one(&op("Reshape", 14, &[]), &[x, &list(to)]).dims;
    assert_eq!(reshape(&x, &[0, -1, 1]), [2, 3, 1]);
    assert_eq!(reshape(&x, &[6]), [6]);
    let keep = op("Reshape", 14, &[("allowzero", int(1))]);
    assert_eq!(one(&keep, &[&f(&[0, 3], &[]), &list(&[3, 0])]).dims, [3, 0]);
    assert_eq!(
        one(
            &op("Flatten", 13, &[("axis", int(-1))]),
            &[&count(&[2, 3, 4])]
        )
        .dims,
        [6, 4]
    );
    assert_eq!(
        one(&op("Flatten", 13, &[("axis", int(0))]), &[&x]).dims,
        [1, 6]
    );
    let squeezed = one(&op("Squeeze", 13, &[]), &[&count(&[1, 2, 1]), &list(&[-1])]);
    assert_eq!(squeezed.dims, [1, 2]);
    assert_eq!(
        one(&op("Squeeze", 11, &[]), &[&count(&[1, 2, 1])]).dims,
        [2]
    );
    let unsqueeze = op("Unsqueeze", 11, &[("axes", ints(&[-1, 0]))]);
    assert_eq!(one(&unsqueeze, &[&count(&[2])]).dims, [1, 2, 1]);
    let y = one(
        &op("Expand", 13, &[]),
        &[&f(&[2, 1], &[1., 2.]), &list(&[2, 1, 2])],
    );
    assert_eq!(y, f(&[2, 2, 2], &[1., 1., 2., 2., 1., 1., 2., 2.]));
    let y = one(&op("Tile", 13, &[]), &[&count(&[1, 2]), &list(&[2, 2])]);
    assert_eq!(y, f(&[2, 4], &[0., 1., 0., 1., 0., 1., 0., 1.]));
    let y = one(
        &op("Concat", 13, &[("axis", int(-1))]),
        &[&x, &f(&[2, 1], &[8., 9.])],
    );
    assert_eq!(y, f(&[2, 4], &[0., 1., 2., 8., 3., 4., 5., 9.]));
    let split = op("Split", 18, &[("num_outputs", int(2)), ("axis", int(1))]);
    let y = all(&split, &[Some(&x)]).unwrap();
    assert_eq!(y[0], f(&[2, 2], &[0., 1., 3., 4.]));
    assert_eq!(y[1], f(&[2, 1], &[2., 5.]));
    let mask = all(&op("Dropout", 13, &[]), &[Some(&list(&[4]))]).unwrap();
    assert_eq!(mask, [list(&[4]), of(&[1], Data::Bool(vec![1]))]);
}

#[test]
fn slices() {
    let slice = |x: &Value, starts: &[i64], ends: &[i64], axes: &[i64], steps: &[i64]| {
        let inputs = [x, &list(starts), &list(ends), &list(axes), &list(steps)];
        one(&op("Slice", 13, &[]), &inputs)
    };
    let x = count(&[2, 4]);
    let y = slice(&x, &[-3], &[-1], &[-1], &[1]);
    assert_eq!(y, f(&[2, 2], &[1., 2., 5., 6.]));
    let y = slice(&x, &[i64::MAX, -1], &[i64::MIN, 0], &[0, 1], &[-1, -2]);
    assert_eq!(y, f(&[2, 2], &[7., 5., 3., 1.]));
    let y = slice(&x, &[1], &[i64::MAX], &[1], &[i64::MAX]);
    assert_eq!(y, f(&[2, 1], &[1., 5.]));
    assert_eq!(slice(&x, &[3], &[1], &[1], &[1]).dims, [2, 0]);
    let early = op("Slice", 9, &[("starts", ints(&[1])), ("ends", ints(&[2]))]);
    assert_eq!(one(&early, &[&x]), f(&[1, 4], &[4., 5., 6., 7.]));
}

#[test]
fn pads() {
    let pad = |mode: &str, pads: &[i64]| {
        one(
            &op("Pad", 19, &[("mode", text(mode))]),
            &[&f(&[3], &[1., 2., 3.]), &list(pads)],
        )
    };
    assert_eq!(pad("constant", &[1, -1]), f(&[3], &[0., 1., 2.]));
    assert_eq!(pad("edge", &[2, 1]), f(&[6], &[1., 1., 1., 2., 3., 3.]));
    assert_eq!(pad("wrap", &[2, 1]), f(&[6], &[2., 3., 1., 2., 3., 1.]));
    assert_eq!(pad("reflect", &[2, 1]), f(&[6], &[3., 2., 1., 2., 3., 2.]));
    // longer than the axis: it goes on to and fro
    assert_eq!(
        pad("reflect", &[4, 0]),
        f(&[7], &[1., 2., 3., 2., 1., 2., 3.])
    );
    // cropped first: only 2 and 3 are left to reflect
    assert_eq!(pad("reflect", &[-1, 1]), f(&[3], &[2., 3., 2.]));
    let inputs = [&count(&[2, 1]), &list(&[0, 1]), &f(&[], &[9.]), &list(&[1])];
    let y = one(&op("Pad", 18, &[]), &inputs);
    assert_eq!(y, f(&[2, 2], &[0., 9., 1., 9.]));
    let early = op("Pad", 2, &[("pads", ints(&[1, 0])), ("value", float(5.))]);
    assert_eq!(one(&early, &[&f(&[1], &[1.])]), f(&[2], &[5., 1.]));
}

#[test]
fn blocks() {
    let d2s = |mode| {
        op(
            "DepthToSpace",
            13,
            &[("blocksize", int(2)), ("mode", text(mode))],
        )
    };
    // eight channels of one pixel become two channels of 2 x 2
    let x = count(&[1, 8, 1, 1]);
    let y = one(&d2s("DCR"), &[&x]);
    assert_eq!(y, f(&[1, 2, 2, 2], &[0., 2., 4., 6., 1., 3., 5., 7.]));
    let y = one(&d2s("CRD"), &[&x]);
    assert_eq!(y, count(&[1, 2, 2, 2]));
    let y = one(
        &op("SpaceToDepth", 13, &[("blocksize", int(2))]),
        &[&count(&[1, 2, 2, 2])],
    );
    assert_eq!(y, f(&[1, 8, 1, 1], &[0., 4., 1., 5., 2., 6., 3., 7.]));
}

#[test]
fn indices() {
    let x = count(&[2, 3]);
    let y = one(
        &op("Gather", 13, &[("axis", int(1))]),
        &[&x, &i(&[1, 2], &[-1, 0])],
    );
    assert_eq!(y, f(&[2, 1, 2], &[2., 0., 5., 3.]));
    let y = one(&op("Gather", 13, &[]), &[&list(&[5, 6, 7]), &i(&[], &[1])]);
    assert_eq!(y, i(&[], &[6]));
    let y = one(
        &op("GatherElements", 13, &[("axis", int(1))]),
        &[&x, &i(&[2, 1], &[2, -3])],
    );
    assert_eq!(y, f(&[2, 1], &[2., 3.]));
    let y = one(&op("GatherND", 13, &[]), &[&x, &i(&[2, 2], &[0, 1, 1, -1])]);
    assert_eq!(y, f(&[2], &[1., 5.]));
    let add = op("ScatterND", 16, &[("reduction", text("add"))]);
    let y = one(&add, &[&x, &i(&[2, 1], &[1, 1]), &count(&[2, 3])]);
    assert_eq!(y, f(&[2, 3], &[0., 1., 2., 6., 9., 12.]));
    let scatter = op("ScatterElements", 16, &[("axis", int(1))]);
    let y = one(&scatter, &[&x, &i(&[1, 1], &[2]), &f(&[1, 1], &[9.])]);
    assert_eq!(y, f(&[2, 3], &[0., 1., 9., 3., 4., 5.]));
    let why = fault(&op("Gather", 13, &[]), &[&x, &list(&[2])]);
    assert!(why.contains("index 2 is not one of 2"), "{why}");
}

#[test]
fn generated() {
    let x = count(&[2, 3, 4]);
    let shape = op("Shape", 15, &[("start", int(-2)), ("end", int(9))]);
    assert_eq!(one(&shape, &[&x]), list(&[3, 4]));
    assert_eq!(one(&op("Size", 13, &[]), &[&x]), i(&[], &[24]));
    let ones = op("ConstantOfShape", 9, &[("value", Attr::Tensor(list(&[1])))]);
    assert_eq!(one(&ones, &[&list(&[1, 2])]), i(&[1, 2], &[1, 1]));
    assert_eq!(
        one(&op("Constant", 13, &[("value_ints", ints(&[3]))]), &[]),
        list(&[3])
    );
    let range = |a: &Value, b: &Value, c: &Value| one(&op("Range", 11, &[]), &[a, b, c]);
    let n = |x: i64| i(&[], &[x]);
    assert_eq!(range(&n(5), &n(0), &n(-2)), list(&[5, 3, 1]));
    assert_eq!(range(&n(5), &n(0), &n(1)), list(&[]));
    let n = |x: f32| f(&[], &[x]);
    assert_eq!(
        range(&n(0.), &n(1.), &n(0.375)),
        f(&[3], &[0., 0.375, 0.75])
    );
    let y = one(&op("EyeLike", 9, &[("k", int(1))]), &[&count(&[2, 3])]);
    assert_eq!(y, f(&[2, 3], &[0., 1., 0., 0., 0., 1.]));
    let y = one(&op("Trilu", 14, &[("upper", int(0))]), &[&count(&[2, 2])]);
    assert_eq!(y, f(&[2, 2], &[0., 0., 2., 3.]));
    let y = one(
        &op("OneHot", 11, &[]),
        &[&list(&[-1, 3]), &i(&[], &[2]), &f(&[2], &[0., 1.])],
    );
    assert_eq!(y, f(&[2, 2], &[0., 1., 0., 0.]));
}
