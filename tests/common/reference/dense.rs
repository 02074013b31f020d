//! The few whole-tensor ops that random graphs use between sweeps.

use ndarray::{ArrayD, Axis, Slice};
use stripmill::dense::Op;

pub(super) fn run(op: &Op, inputs: &[Option<&ArrayD<f64>>]) -> Result<Vec<ArrayD<f64>>, String> {
    let input = |i: usize| {
        let value = inputs.get(i).copied().flatten();
        value.ok_or_else(|| format!("{} without input {i}", op.kind))
    };
    let x = input(0)?;
    let one = |y: ArrayD<f64>| Ok(vec![y]);
    match op.kind.as_str() {
        "Relu" => one(x.mapv(|v| v.max(0.0))),
        "Sigmoid" => one(x.mapv(|v| 1.0 / (1.0 + (-v).exp()))),
        "Mul" => one(x * input(1)?),
        "Add" => one(x + input(1)?),
        "Transpose" => {
            let perm = op.ints("perm").ok_or("Transpose without perm")?;
            let perm: Vec<usize> = perm.iter().map(|&p| p as usize).collect();
            one(x
                .view()
                .permuted_axes(perm)
                .as_standard_layout()
                .into_owned())
        }
        "Split" => {
            let axis = Axis(op.int("axis").unwrap_or(0) as usize);
            let parts = op.int("num_outputs").ok_or("Split without num_outputs")? as usize;
            let each = x.len_of(axis) / parts;
            Ok((0..parts)
                .map(|i| {
                    let part = x.slice_axis(axis, Slice::from(i * each..(i + 1) * each));
                    part.as_standard_layout().into_owned()
                })
                .collect())
        }
        other => Err(format!("the reference has no {other}")),
    }
}
