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
            let axis = op.int("axis").unwrap_or(0).rem_euclid(x.ndim() as i64);
            let axis = Axis(axis as usize);
            let len = x.len_of(axis);
            let lengths: Vec<usize> = match (input(1), op.int("num_outputs")) {
                (Ok(split), _) => split.iter().map(|&l| l as usize).collect(),
                (_, Some(parts)) => {
                    let each = len.div_ceil(parts as usize);
                    let starts = (0..parts as usize).map(|i| i * each);
                    starts.map(|start| each.min(len - start)).collect()
                }
                _ => return Err("Split without lengths".into()),
            };
            let ends = lengths.iter().scan(0, |end, l| {
                *end += l;
                Some(*end)
            });
            let part = |(end, len): (usize, &usize)| {
                let part = x.slice_axis(axis, Slice::from(end - len..end));
                part.as_standard_layout().into_owned()
            };
            Ok(ends.zip(&lengths).map(part).collect())
        }
        other => Err(format!("the reference has no {other}")),
    }
}
