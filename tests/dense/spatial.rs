//! Ops over spatial axes.

use stripmill::dense::{Attr, Data, Value};

use super::{all, count, f, float, i, int, ints, list, near, one, op, text};

#[test]
fn convolutions() {
    let conv = |x: &Value, w: &Value, attrs: &[(&str, Attr)]| one(&op("Conv", 11, attrs), &[x, w]);
    let (x, w) = (f(&[1, 1, 4], &[1., 2., 3., 4.]), f(&[1, 1, 2], &[1., 10.]));
    let y = conv(&x, &w, &[("pads", ints(&[1, 0])), ("strides", ints(&[2]))]);
    assert_eq!(y, f(&[1, 1, 2], &[10., 32.]));
    let y = conv(&x, &w, &[("dilations", ints(&[2]))]);
    assert_eq!(y, f(&[1, 1, 2], &[31., 42.]));
    let y = conv(&x, &w, &[("pads", ints(&[-1, 0]))]);
    assert_eq!(y, f(&[1, 1, 2], &[32., 43.]));
    let y = conv(&x, &w, &[("auto_pad", text("SAME_UPPER"))]);
    assert_eq!(y, f(&[1, 1, 4], &[21., 32., 43., 4.]));
    let y = conv(&x, &w, &[("auto_pad", text("SAME_LOWER"))]);
    assert_eq!(y, f(&[1, 1, 4], &[10., 21., 32., 43.]));
    let y = conv(&x, &w, &[("auto_pad", text("VALID"))]);
    assert_eq!(y, f(&[1, 1, 3], &[21., 32., 43.]));

    let two = f(&[1, 2, 2], &[1., 2., 3., 4.]);
    let each = f(&[2, 1, 1], &[10., 100.]);
    let grouped = op("Conv", 11, &[("group", int(2))]);
    let y = one(&grouped, &[&two, &each, &f(&[2], &[0., 5.])]);
    assert_eq!(y, f(&[1, 2, 2], &[10., 20., 305., 405.]));
    let y = conv(&two, &f(&[1, 2, 1], &[10., 100.]), &[]);
    assert_eq!(y, f(&[1, 1, 2], &[310., 420.]));

    let y = conv(&count(&[1, 1, 3, 3]), &f(&[1, 1, 2, 2], &[1.; 4]), &[]);
    assert_eq!(y, f(&[1, 1, 2, 2], &[8., 12., 20., 24.]));
    let y = conv(
        &count(&[1, 1, 2, 2, 2]),
        &f(&[1, 1, 2, 2, 2], &[1.; 8]),
        &[],
    );
    assert_eq!(y, f(&[1, 1, 1, 1, 1], &[28.]));
}

#[test]
fn transposed_convolutions() {
    let (x, w) = (f(&[1, 1, 2], &[1., 2.]), f(&[1, 1, 3], &[1., 10., 100.]));
    let conv = |attrs: &[(&str, Attr)]| {
        let stride = [("strides", ints(&[2]))];
        let y = one(
            &op("ConvTranspose", 11, &[attrs, &stride].concat()),
            &[&x, &w],
        );
        assert_eq!(y.dims[..2], [1, 1]);
        y.data
    };
    let is = |values: &[f32]| Data::F32(values.to_vec());
    assert_eq!(conv(&[]), is(&[1., 10., 102., 20., 200.]));
    assert_eq!(conv(&[("pads", ints(&[1, 1]))]), is(&[10., 102., 20.]));
    let more = ("output_padding", ints(&[1]));
    assert_eq!(conv(&[more]), is(&[1., 10., 102., 20., 200., 0.]));
    let four = ("output_shape", ints(&[4]));
    assert_eq!(
        conv(std::slice::from_ref(&four)),
        is(&[10., 102., 20., 200.])
    );
    let upper = ("auto_pad", text("SAME_UPPER"));
    assert_eq!(conv(&[four, upper.clone()]), is(&[1., 10., 102., 20.]));
    assert_eq!(conv(&[upper]), is(&[1., 10., 102., 20.]));

    // two groups, of one input and two output channels each
    let grouped = op("ConvTranspose", 11, &[("group", int(2))]);
    let inputs = [
        &f(&[1, 2, 1], &[1., 2.]),
        &f(&[2, 2, 1], &[1., 2., 3., 4.]),
        &f(&[4], &[0., 0., 0., 9.]),
    ];
    assert_eq!(one(&grouped, &inputs), f(&[1, 4, 1], &[1., 2., 6., 17.]));
}

#[test]
fn pools() {
    let x = f(&[1, 1, 5], &[1., 5., 2., 4., 3.]);
    let two = [("kernel_shape", ints(&[2])), ("strides", ints(&[2]))];
    let y = one(&op("MaxPool", 12, &two), &[&x]);
    assert_eq!(y, f(&[1, 1, 2], &[5., 4.]));
    let ceil = [&two[..], &[("ceil_mode", int(1))]].concat();
    let y = all(&op("MaxPool", 12, &ceil), &[Some(&x)]).unwrap();
    assert_eq!(y, [f(&[1, 1, 3], &[5., 4., 3.]), i(&[1, 1, 3], &[1, 3, 4])]);
    let dilated = [("kernel_shape", ints(&[2])), ("dilations", ints(&[3]))];
    let y = one(&op("MaxPool", 12, &dilated), &[&x]);
    assert_eq!(y, f(&[1, 1, 2], &[4., 5.]));
    // the largest of the second plane stands in row 1, column 0
    let plane = f(
        &[1, 2, 2, 3],
        &[9., 0., 0., 0., 0., 0., 0., 0., 0., 9., 0., 0.],
    );
    let whole = [("kernel_shape", ints(&[2, 3])), ("storage_order", int(1))];
    let y = all(&op("MaxPool", 12, &whole), &[Some(&plane)]).unwrap();
    assert_eq!(y[1], i(&[1, 2, 1, 1], &[0, 7]));

    let x = f(&[1, 1, 3], &[1., 2., 3.]);
    let padded = [("kernel_shape", ints(&[2])), ("pads", ints(&[1, 1]))];
    let y = one(&op("AveragePool", 19, &padded), &[&x]);
    assert_eq!(y, f(&[1, 1, 4], &[1., 1.5, 2.5, 3.]));
    let included = [&padded[..], &[("count_include_pad", int(1))]].concat();
    let y = one(&op("AveragePool", 19, &included), &[&x]);
    assert_eq!(y, f(&[1, 1, 4], &[0.5, 1.5, 2.5, 1.5]));
    // what a window sticks out beyond the padding never counts
    let out = [
        ("kernel_shape", ints(&[3])),
        ("strides", ints(&[2])),
        ("ceil_mode", int(1)),
        ("count_include_pad", int(1)),
    ];
    let y = one(
        &op("AveragePool", 19, &out),
        &[&f(&[1, 1, 4], &[1., 2., 3., 4.])],
    );
    assert_eq!(y, f(&[1, 1, 2], &[2., 3.5]));
    let y = one(
        &op("LpPool", 18, &[("kernel_shape", ints(&[2]))]),
        &[&f(&[1, 1, 2], &[3., -4.])],
    );
    near(&y, &[1, 1, 1], &[5.]);
    let y = one(&op("GlobalAveragePool", 1, &[]), &[&count(&[1, 2, 2, 2])]);
    assert_eq!(y, f(&[1, 2, 1, 1], &[1.5, 5.5]));
    let y = one(&op("GlobalMaxPool", 1, &[]), &[&count(&[1, 2, 3])]);
    assert_eq!(y, f(&[1, 2, 1], &[2., 5.]));
}

#[test]
fn resizes() {
    let none = None;
    let resize = |x: &Value, attrs: &[(&str, Attr)], scales: &[f32]| {
        let scales = f(&[scales.len() as u64], scales);
        all(&op("Resize", 19, attrs), &[Some(x), none, Some(&scales)])
            .unwrap()
            .remove(0)
    };
    let mode = |m| ("mode", text(m));
    let at = |m| ("coordinate_transformation_mode", text(m));
    let x = f(&[1, 2], &[0., 1.]);
    let y = resize(
        &x,
        &[at("asymmetric"), ("nearest_mode", text("floor"))],
        &[2., 2.],
    );
    assert_eq!(y, f(&[2, 4], &[0., 0., 1., 1., 0., 0., 1., 1.]));
    let y = resize(&x, &[mode("linear")], &[1., 2.]);
    near(&y, &[1, 4], &[0., 0.25, 0.75, 1.]);
    let y = resize(&x, &[mode("linear"), at("align_corners")], &[1., 1.5]);
    near(&y, &[1, 3], &[0., 0.5, 1.]);
    // at 0.5, 1.5 and 2.5 a cubic of -0.75 weighs -3/32, 19/32, 19/32, -3/32
    let y = resize(&count(&[4]), &[mode("cubic")], &[0.5]);
    near(&y, &[2], &[13. / 32., 3. - 13. / 32.]);
    let shrunk = [mode("linear"), ("antialias", int(1))];
    near(
        &resize(&count(&[4]), &shrunk, &[0.5]),
        &[2],
        &[0.625, 2.375],
    );

    // axis by axis, whatever stands within and around
    let axes = [mode("linear"), ("axes", ints(&[1]))];
    let y = resize(&f(&[1, 2, 2], &[0., 10., 4., 14.]), &axes, &[2.]);
    near(&y, &[1, 4, 2], &[0., 10., 1., 11., 3., 13., 4., 14.]);

    let sizes = |policy, sizes: &[i64]| {
        let op = op("Resize", 19, &[("keep_aspect_ratio_policy", text(policy))]);
        let inputs = [Some(&count(&[2, 4])), none, none, Some(&list(sizes))];
        all(&op, &inputs).unwrap().remove(0).dims
    };
    assert_eq!(sizes("stretch", &[4, 4]), [4, 4]);
    assert_eq!(sizes("not_larger", &[4, 4]), [2, 4]);
    assert_eq!(sizes("not_smaller", &[4, 4]), [4, 8]);

    let crop = op(
        "Resize",
        13,
        &[
            mode("linear"),
            at("tf_crop_and_resize"),
            ("extrapolation_value", float(9.)),
        ],
    );
    let inputs = [
        Some(&count(&[3])),
        Some(&f(&[2], &[0.5, 1.5])),
        None,
        Some(&list(&[3])),
    ];
    let y = all(&crop, &inputs).unwrap().remove(0);
    assert_eq!(y, f(&[3], &[1., 2., 9.]));

    // operator set 10: down where it grows, up where it shrinks
    let early =
        |n: u64, scale: f32| one(&op("Resize", 10, &[]), &[&count(&[n]), &f(&[1], &[scale])]);
    assert_eq!(early(4, 0.6), f(&[2], &[0., 2.]));
    assert_eq!(early(2, 1.5), f(&[3], &[0., 0., 1.]));
    let upsample = op("Upsample", 7, &[("scales", Attr::Floats(vec![2.]))]);
    assert_eq!(one(&upsample, &[&count(&[2])]), f(&[4], &[0., 0., 1., 1.]));
}
