//! Positions and weights against those of ONNX Runtime 1.32.

use super::Coordinate::*;
use super::InterpMode::*;
use super::*;

fn interp(mode: InterpMode, coordinate: Coordinate, input: u64, output: u64, scale: f32) -> Interp {
    let crop = coordinate == TfCropAndResize;
    Interp {
        mode,
        coordinate,
        scale,
        input,
        output,
        antialias: false,
        exclude_outside: false,
        cubic_a: -0.75,
        roi: if crop { [0.1, 0.8] } else { [0.0, 1.0] },
    }
}

const ROUNDS: [NearestRound; 4] = [
    NearestRound::RoundPreferFloor,
    NearestRound::RoundPreferCeil,
    NearestRound::Floor,
    NearestRound::Ceil,
];

/// Input and output length, scale, and positions for each of [`ROUNDS`].
type Rounded = (Coordinate, u64, u64, f32, [&'static [u64]; 4]);

/// Positions that ONNX Runtime 1.32 reads.
#[rustfmt::skip]
const NEAREST: &[Rounded] = &[
    (HalfPixel, 5, 8, 1.6, [
        &[0, 0, 1, 2, 2, 3, 4, 4],
        &[0, 0, 1, 2, 2, 3, 4, 4],
        &[0, 0, 1, 1, 2, 2, 3, 4],
        &[0, 1, 2, 2, 3, 3, 4, 4],
    ]),
    (HalfPixel, 4, 8, 2.0, [
        &[0, 0, 1, 1, 2, 2, 3, 3],
        &[0, 0, 1, 1, 2, 2, 3, 3],
        &[0, 0, 0, 1, 1, 2, 2, 3],
        &[0, 1, 1, 2, 2, 3, 3, 3],
    ]),
    (HalfPixelSymmetric, 7, 4, 0.6, [
        &[0, 2, 4, 5],
        &[1, 2, 4, 6],
        &[0, 2, 3, 5],
        &[1, 3, 4, 6],
    ]),
    (HalfPixelSymmetric, 11, 3, 0.3, [
        &[2, 5, 8],
        &[2, 5, 8],
        &[1, 5, 8],
        &[2, 5, 9],
    ]),
    (PytorchHalfPixel, 8, 1, 0.125, [
        &[0],
        &[0],
        &[0],
        &[0],
    ]),
    (AlignCorners, 3, 10, 3.4, [
        &[0, 0, 0, 1, 1, 1, 1, 2, 2, 2],
        &[0, 0, 0, 1, 1, 1, 1, 2, 2, 2],
        &[0, 0, 0, 0, 0, 1, 1, 1, 1, 2],
        &[0, 1, 1, 1, 1, 2, 2, 2, 2, 2],
    ]),
    (Asymmetric, 9, 4, 0.5, [
        &[0, 2, 4, 6],
        &[0, 2, 4, 6],
        &[0, 2, 4, 6],
        &[0, 2, 4, 6],
    ]),
    (Asymmetric, 4, 8, 2.0, [
        &[0, 0, 1, 1, 2, 2, 3, 3],
        &[0, 1, 1, 2, 2, 3, 3, 3],
        &[0, 0, 1, 1, 2, 2, 3, 3],
        &[0, 1, 1, 2, 2, 3, 3, 3],
    ]),
    (TfHalfPixelForNn, 9, 4, 0.5, [
        &[1, 3, 5, 7],
        &[1, 3, 5, 7],
        &[1, 3, 5, 7],
        &[1, 3, 5, 7],
    ]),
    (TfCropAndResize, 5, 8, 1.6, [
        &[0, 1, 1, 2, 2, 2, 3, 3],
        &[0, 1, 1, 2, 2, 2, 3, 3],
        &[0, 0, 1, 1, 2, 2, 2, 3],
        &[1, 1, 2, 2, 2, 3, 3, 4],
    ]),
];

#[test]
fn nearest_positions_are_onnx_runtimes() {
    for &(coordinate, input, output, scale, want) in NEAREST {
        for (round, want) in ROUNDS.into_iter().zip(want) {
            let interp = interp(Nearest(round), coordinate, input, output, scale);
            assert_eq!(interp.taps(), 1);
            let got: Vec<_> = (0..output).map(|o| interp.tap(o, 0)).collect();
            let want: Vec<_> = want.iter().map(|&i| (i, 1.0)).collect();
            assert_eq!(got, want, "{interp:?}");
        }
    }
}

#[test]
fn weights_are_onnx_runtimes() {
    // each with `antialias`, `exclude_outside`, `cubic_a`, and the weight of every input
    #[rustfmt::skip]
    let cases: &[(Interp, bool, bool, f32, &[f32])] = &[
        (interp(Linear, HalfPixel, 3, 10, 3.4), false, false, -0.75, &[
            1.0, 0.0, 0.0,
            1.0, 0.0, 0.0,
            0.7647059, 0.2352941, 0.0,
            0.4705882, 0.5294118, 0.0,
            0.1764706, 0.8235294, 0.0,
            0.0, 0.8823529, 0.1176471,
            0.0, 0.5882354, 0.4117646,
            0.0, 0.2941177, 0.7058823,
            0.0, 0.0, 1.0,
            0.0, 0.0, 1.0,
        ]),
        (interp(Linear, HalfPixel, 5, 3, 0.6), true, false, -0.75, &[
            0.6250001, 0.375, 0.0, 0.0, 0.0,
            0.0, 0.2222222, 0.5555556, 0.2222222, 0.0,
            0.0, 0.0, 0.0, 0.3750001, 0.6249999,
        ]),
        (interp(Linear, HalfPixel, 6, 2, 0.333_333_34), true, true, -0.75, &[
            0.25, 0.375, 0.25, 0.125, 0.0, 0.0,
            0.0, 0.0, 0.125, 0.25, 0.375, 0.25,
        ]),
        (interp(Linear, AlignCorners, 5, 8, 1.6), false, false, -0.75, &[
            1.0, 0.0, 0.0, 0.0, 0.0,
            0.4285714, 0.5714286, 0.0, 0.0, 0.0,
            0.0, 0.8571428, 0.1428572, 0.0, 0.0,
            0.0, 0.2857143, 0.7142857, 0.0, 0.0,
            0.0, 0.0, 0.7142856, 0.2857144, 0.0,
            0.0, 0.0, 0.1428571, 0.8571429, 0.0,
            0.0, 0.0, 0.0, 0.5714285, 0.4285715,
            0.0, 0.0, 0.0, 0.0, 1.0,
        ]),
        (interp(Linear, PytorchHalfPixel, 8, 1, 0.125), false, false, -0.75, &[
            1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
        ]),
        (interp(Linear, TfCropAndResize, 5, 3, 0.6), false, false, -0.75, &[
            0.6, 0.4, 0.0, 0.0, 0.0,
            0.0, 0.2, 0.8, 0.0, 0.0,
            0.0, 0.0, 0.0, 0.8, 0.2,
        ]),
        (interp(Cubic, HalfPixel, 4, 8, 2.0), false, false, -0.75, &[
            1.105469, -0.1054688, 0.0, 0.0,
            0.7734375, 0.2617188, -0.03515625, 0.0,
            0.2265625, 0.8789062, -0.1054688, 0.0,
            -0.1054688, 0.8789062, 0.2617188, -0.03515625,
            -0.03515625, 0.2617188, 0.8789062, -0.1054688,
            0.0, -0.1054688, 0.8789062, 0.2265625,
            0.0, -0.03515625, 0.2617188, 0.7734375,
            0.0, 0.0, -0.1054688, 1.105469,
        ]),
        (interp(Cubic, HalfPixel, 5, 3, 0.6), false, true, -0.5, &[
            0.7241378, 0.3103448, -0.03448262, 0.0, 0.0,
            0.0, 0.0, 1.0, 0.0, 0.0,
            0.0, 0.0, -0.03448285, 0.3103451, 0.7241377,
        ]),
        (interp(Cubic, HalfPixel, 6, 2, 0.333_333_34), true, false, -0.5, &[
            0.3333333, 0.3333334, 0.2592593, 0.1111111, 0.0, -0.03703706,
            -0.03703706, 0.0, 0.1111111, 0.2592593, 0.3333334, 0.3333334,
        ]),
        (interp(Cubic, HalfPixelSymmetric, 7, 4, 0.6), true, true, -0.75, &[
            0.5015083, 0.5015085, 0.05354455, -0.05656131, 0.0, 0.0, 0.0,
            -0.06560563, 0.1941386, 0.5824161, 0.3533176, -0.03615011, -0.02811651, 0.0,
            0.0, -0.02811651, -0.03614989, 0.3533176, 0.5824159, 0.1941384, -0.06560539,
            0.0, 0.0, 0.0, -0.05656108, 0.05354446, 0.5015083, 0.5015083,
        ]),
        (interp(Cubic, Asymmetric, 5, 3, 0.6), true, false, -0.5, &[
            0.7962086, 0.2511849, -0.03791478, -0.009478837, 0.0,
            -0.02898553, 0.42029, 0.5507246, 0.1014492, -0.04347814,
            0.0, -0.04347828, 0.1014493, 0.5507247, 0.3913043,
        ]),
    ];
    for (interp, antialias, exclude_outside, cubic_a, want) in cases {
        let interp = Interp {
            antialias: *antialias,
            exclude_outside: *exclude_outside,
            cubic_a: *cubic_a,
            ..interp.clone()
        };
        for (o, want) in want.chunks(interp.input as usize).enumerate() {
            let mut got = vec![0.0; want.len()];
            for k in 0..interp.taps() {
                let (i, w) = interp.tap(o as u64, k);
                got[i as usize] += w;
            }
            let near = got.iter().zip(want).all(|(a, b)| (a - b).abs() < 2e-6);
            assert!(near, "output {o} of {interp:?}: {got:?}, not {want:?}");
        }
    }
}

#[test]
fn an_axis_that_is_not_scaled_stays_as_it_is() {
    for mode in ROUNDS.map(Nearest).into_iter().chain([Linear, Cubic]) {
        for coordinate in [
            HalfPixel,
            HalfPixelSymmetric,
            AlignCorners,
            TfHalfPixelForNn,
        ] {
            let interp = interp(mode, coordinate, 5, 5, 1.0);
            for o in 0..5 {
                let taps = (0..interp.taps()).map(|k| interp.tap(o, k));
                let taps: Vec<_> = taps.filter(|tap| tap.1 != 0.0).collect();
                assert_eq!(taps, [(o, 1.0)], "{interp:?}");
            }
        }
    }
}
