//! Comparisons: of bits, and with a tolerance.

use ndarray::ArrayD;
use stripmill::dense::{Data, Value};

use super::run::as_f32;

/// The first element in which two runs' outputs differ in a bit; NaN equals NaN.
pub fn bits_differ(a: &[Value], b: &[Value]) -> Option<String> {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).enumerate().find_map(|(k, (a, b))| {
        assert_eq!(a.dims, b.dims);
        let (Data::F32(x), Data::F32(y)) = (&a.data, &b.data) else {
            return (a != b).then(|| format!("output {k} differs"));
        };
        let same = |(x, y): (&f32, &f32)| x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan();
        let differ = x.iter().zip(y).filter(|&(x, y)| !same((x, y))).count();
        let first = x.iter().zip(y).position(|(x, y)| !same((x, y)))?;
        let place = place(&a.dims, first);
        Some(format!(
            "output {k} {:?} differs in {differ} elements, first at {place:?}: {} and {}",
            a.dims, x[first], y[first]
        ))
    })
}

/// The largest difference of `value` from the reference, over the reference's largest value (or
/// over 1 where that is less), with its place.
pub fn error(value: &Value, reference: &ArrayD<f64>) -> (f64, Vec<u64>) {
    let values = as_f32(value);
    assert_eq!(values.len(), reference.len());
    let largest = reference.iter().fold(1.0f64, |m, v| m.max(v.abs()));
    let mut worst = (0.0, 0);
    for (i, (x, y)) in values.iter().zip(reference).enumerate() {
        let difference = (f64::from(*x) - y).abs() / largest;
        // a NaN is never within tolerance
        if difference.is_nan() || difference > worst.0 {
            worst = (difference, i);
        }
        if difference.is_nan() {
            return (f64::INFINITY, place(&value.dims, i));
        }
    }
    (worst.0, place(&value.dims, worst.1))
}

/// The place of element `i` of a row-major tensor.
fn place(dims: &[u64], i: usize) -> Vec<u64> {
    let mut rest = i as u64;
    let mut place: Vec<u64> = Vec::new();
    for d in dims.iter().rev() {
        place.push(rest % d);
        rest /= d;
    }
    place.reverse();
    place
}
