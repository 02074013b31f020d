//! Scalar functions and the ops that apply them to every element.

use stripmill::dense::{Data, scalar};
use stripmill::func::Func;

use super::{all, f, fault, float, i, int, list, of, one, op};

#[test]
fn scalars() {
    for (func, x, y) in [
        (Func::Erf, 1.0, 0.842_700_8),
        (Func::Gelu, 1.0, 0.841_344_7),
        (Func::Gelu, -5.0, -1.433_257_9e-6),
        (Func::GeluTanh, 1.0, 0.841_192),
        (Func::Mish, 1.0, 0.865_098_4),
        (Func::Softplus, 100.0, 100.0),
        (Func::Softplus, -20.0, 2.061_153_6e-9),
        (Func::Sigmoid, 0.0, 0.5),
        (Func::Sigmoid, -100.0, 3.783_5e-44),
        (Func::HardSwish, 1.0, 2.0 / 3.0),
        (Func::Round, 2.5, 2.0),
        (Func::Round, 3.5, 4.0),
        (Func::Sign, -3.0, -1.0),
        (Func::ThresholdedRelu(1.0), 1.0, 0.0),
        (Func::Swish(2.0), 1.0, 0.880_797),
    ] {
        let got = scalar(func, [x, 0.0, 0.0]);
        let close = (got - y).abs() <= 1.5e-7 * y.abs() + 1e-45;
        assert!(close, "{func:?} of {x} is {got}, not {y}");
    }
    // (1 + 2^-12)^2 - (1 + 2^-11) is 2^-24, which only a fused multiply-add sees
    let a = 1.0 + 2f32.powi(-12);
    let b = -(1.0 + 2f32.powi(-11));
    assert_eq!(scalar(Func::MulAdd, [a, a, b]), 2f32.powi(-24));
    assert!(scalar(Func::Max, [f32::NAN, 1.0, 0.0]).is_nan());
    assert!(scalar(Func::Min, [1.0, f32::NAN, 0.0]).is_nan());
    assert!(scalar(Func::Max, [-0.0, 0.0, 0.0]).is_sign_negative());
}

#[test]
fn broadcasting() {
    let y = one(
        &op("Sub", 14, &[]),
        &[&f(&[2, 1], &[1., 10.]), &f(&[3], &[1., 2., 3.])],
    );
    assert_eq!(y, f(&[2, 3], &[0., -1., -2., 9., 8., 7.]));
    let y = one(
        &op("Mean", 13, &[]),
        &[
            &f(&[2, 1], &[0., 3.]),
            &f(&[], &[3.]),
            &f(&[1, 2], &[0., 6.]),
        ],
    );
    assert_eq!(y, f(&[2, 2], &[1., 3., 2., 4.]));
    let y = one(
        &op("Max", 13, &[]),
        &[&f(&[2], &[1., f32::INFINITY]), &f(&[1], &[2.])],
    );
    assert_eq!(y, f(&[2], &[2., f32::INFINITY]));
    let which = of(&[2, 1], Data::Bool(vec![1, 0]));
    let y = one(
        &op("Where", 16, &[]),
        &[&which, &list(&[1, 2]), &list(&[7])],
    );
    assert_eq!(y, i(&[2, 2], &[1, 2, 7, 7]));
    let y = one(&op("Less", 13, &[]), &[&list(&[1, 2, 3]), &list(&[2])]);
    assert_eq!(y, of(&[3], Data::Bool(vec![1, 0, 0])));
    // a slope for each channel
    let y = one(
        &op("PRelu", 16, &[]),
        &[&f(&[2, 2], &[-1., 1., -1., 1.]), &f(&[2, 1], &[2., 3.])],
    );
    assert_eq!(y, f(&[2, 2], &[-2., 1., -3., 1.]));
    let y = one(&op("Pow", 15, &[]), &[&f(&[2], &[2., 3.]), &list(&[3])]);
    assert_eq!(y, f(&[2], &[8., 27.]));
    // an empty axis broadcasts
    let y = one(
        &op("Add", 14, &[]),
        &[&f(&[0, 2], &[]), &f(&[1, 2], &[1., 2.])],
    );
    assert_eq!(y, f(&[0, 2], &[]));
}

#[test]
fn integers() {
    let y = one(
        &op("Div", 14, &[]),
        &[&list(&[-7, 7, i64::MIN]), &list(&[2, -2, -1])],
    );
    assert_eq!(y, list(&[-3, -3, i64::MIN]));
    let y = one(
        &op("Mod", 13, &[]),
        &[&list(&[-7, 7, 6]), &list(&[3, -3, 3])],
    );
    assert_eq!(y, list(&[2, -2, 0]));
    let y = one(
        &op("Mod", 13, &[("fmod", int(1))]),
        &[&list(&[-7, 7]), &list(&[3, -3])],
    );
    assert_eq!(y, list(&[-1, 1]));
    let small = |v: &[i32]| of(&[v.len() as u64], Data::I32(v.to_vec()));
    let y = one(&op("Add", 14, &[]), &[&small(&[i32::MAX]), &small(&[1])]);
    assert_eq!(y, small(&[i32::MIN]));
    let byte = |v: u8| of(&[], Data::U8(vec![v]));
    assert_eq!(one(&op("Sub", 14, &[]), &[&byte(1), &byte(2)]), byte(255));
    let y = one(
        &op("Pow", 15, &[]),
        &[&list(&[-2, 2, 3]), &list(&[3, -1, 0])],
    );
    assert_eq!(y, list(&[-8, 0, 1]));
    for kind in ["Div", "Mod"] {
        let why = fault(&op(kind, 14, &[]), &[&list(&[1]), &list(&[0])]);
        assert!(why.contains("divided by 0"), "{why}");
    }
}

#[test]
fn casts_and_clips() {
    let x = f(&[4], &[1.9, -1.9, 0.0, 1e30]);
    let y = one(&op("Cast", 13, &[("to", int(7))]), &[&x]);
    assert_eq!(y, list(&[1, -1, 0, i64::MAX]));
    let y = one(&op("Cast", 13, &[("to", int(9))]), &[&x]);
    assert_eq!(y, of(&[4], Data::Bool(vec![1, 1, 0, 1])));
    let y = one(&op("Cast", 13, &[("to", int(2))]), &[&list(&[257, -1])]);
    assert_eq!(y, of(&[2], Data::U8(vec![1, 255])));
    // a half has 11 bits
    let y = one(
        &op("Cast", 13, &[("to", int(10))]),
        &[&f(&[2], &[2049., 0.5])],
    );
    assert_eq!(y, f(&[2], &[2048., 0.5]));
    let y = one(&op("CastLike", 15, &[]), &[&f(&[1], &[3.7]), &list(&[])]);
    assert_eq!(y, list(&[3]));

    let x = f(&[3], &[-2., 0.5, 9.]);
    let y = one(
        &op("Clip", 6, &[("min", float(-1.)), ("max", float(1.))]),
        &[&x],
    );
    assert_eq!(y, f(&[3], &[-1., 0.5, 1.]));
    let only_max = [Some(&x), None, Some(&f(&[], &[1.]))];
    let y = all(&op("Clip", 13, &[]), &only_max).unwrap();
    assert_eq!(y[0], f(&[3], &[-2., 0.5, 1.]));
    let y = one(&op("Clip", 13, &[]), &[&list(&[-5, 5]), &i(&[], &[0])]);
    assert_eq!(y, list(&[0, 5]));
}
