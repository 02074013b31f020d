//! A naive interpreter of graphs: f64, whole arrays, ONNX's formulas word for word.
//!
//! It reads the graph's data types and nothing else of the library: window arithmetic,
//! interpolation and scalar functions are written again here, from the ONNX specification.

mod axis;
mod dense;
mod func;

use std::collections::HashMap;

use ndarray::{Array4, ArrayD, ArrayView4, Axis, Ix4, IxDyn, concatenate, s};
use stripmill::dense::{Data, Value};
use stripmill::graph::{
    Arg, Conv, Expr, Gather, Graph, Node, Op, Operand, Pool, PoolKind, TensorId, Window,
};

use axis::Reads;
pub use axis::coordinate;

/// Why the reference does not know a graph.
pub type Unknown = String;

/// Computes every tensor of `graph` from the values of its inputs, in their order.
pub fn evaluate(
    graph: &Graph,
    inputs: &[Value],
) -> Result<HashMap<TensorId, ArrayD<f64>>, Unknown> {
    let mut values = HashMap::new();
    for (id, value) in &graph.constants {
        values.insert(*id, array(value));
    }
    for (id, value) in graph.inputs.iter().zip(inputs) {
        values.insert(*id, array(value));
    }
    for node in &graph.nodes {
        let made = run(graph, node, &values).map_err(|why| format!("{}: {why}", node.name))?;
        assert_eq!(made.len(), node.outputs.len(), "{}", node.name);
        for (id, value) in node.outputs.iter().zip(made) {
            let dims: Vec<u64> = value.shape().iter().map(|&d| d as u64).collect();
            assert_eq!(dims, graph.tensor(*id).dims, "{}: lengths", node.name);
            values.insert(*id, value);
        }
    }
    Ok(values)
}

/// The input positions that each output position of `axis` reads, but for those whose weight is no
/// more than rounding.
pub fn positions(axis: &stripmill::graph::Axis) -> Vec<Vec<u64>> {
    let (input, output) = (axis.input as usize, axis.output as usize);
    let mut all = vec![Vec::new(); output];
    if matches!(axis.window, Window::Transposed { .. }) {
        for (i, o, _) in axis::meetings(&axis.window, input, output) {
            all[o].push(i as u64);
        }
        return all;
    }
    for (all, reads) in all.iter_mut().zip(axis::reads(&axis.window, input, output)) {
        all.extend(
            reads
                .iter()
                .filter(|r| r.1.abs() > 1e-4)
                .filter_map(|r| Some(r.0? as u64)),
        );
    }
    all
}

/// The values of a whole tensor as f64.
fn array(value: &Value) -> ArrayD<f64> {
    let values: Vec<f64> = match &value.data {
        Data::F32(v) => v.iter().map(|&x| x.into()).collect(),
        Data::I64(v) => v.iter().map(|&x| x as f64).collect(),
        Data::I32(v) => v.iter().map(|&x| x.into()).collect(),
        Data::U8(v) | Data::Bool(v) => v.iter().map(|&x| x.into()).collect(),
    };
    let dims: Vec<usize> = value.dims.iter().map(|&d| d as usize).collect();
    ArrayD::from_shape_vec(IxDyn(&dims), values).expect("as many values as the lengths say")
}

type Values = HashMap<TensorId, ArrayD<f64>>;

fn run(graph: &Graph, node: &Node, values: &Values) -> Result<Vec<ArrayD<f64>>, Unknown> {
    let rows = |operand: &Operand| -> Array4<f64> {
        let parts: Vec<ArrayView4<f64>> = operand
            .0
            .iter()
            .map(|segment| {
                let all = values[&segment.tensor].view();
                let all = all
                    .into_dimensionality::<Ix4>()
                    .expect("rows have 4 lengths");
                let range = segment.channels.start as usize..segment.channels.end as usize;
                all.slice_move(s![.., range, .., ..])
            })
            .collect();
        concatenate(Axis(1), &parts).expect("segments of one size")
    };
    let whole: Vec<Option<&ArrayD<f64>>> = node
        .whole
        .iter()
        .map(|id| id.map(|id| &values[&id]))
        .collect();
    let x = node.operands.first().map(rows);
    let to = |i: usize| {
        let dims = &graph.tensor(node.outputs[i]).dims;
        dims.iter().map(|&d| d as usize).collect::<Vec<_>>()
    };
    let made = match (&node.op, x) {
        (Op::Dense(op), _) => return dense::run(op, &whole),
        (Op::Spread, _) => {
            let all = whole[0].ok_or("no whole operand")?.clone();
            all.into_dimensionality::<Ix4>()
                .map_err(|e| e.to_string())?
        }
        (Op::Gather(kind), Some(x)) => return Ok(vec![gather(*kind, &x)]),
        (Op::Conv(op), Some(x)) => conv(graph, op, &x, &to(0)),
        (Op::Pool(op), Some(x)) => pool(op, &x, &to(0)),
        (Op::Resize { rows, cols }, Some(x)) => resize(rows, cols, &x, &to(0)),
        (Op::Pad { rows, cols, value }, Some(x)) => pad(rows, cols, f64::from(*value), &x, &to(0)),
        (Op::DepthToSpace { block, crd }, Some(x)) => depth_to_space(&x, *block as usize, *crd),
        (Op::SpaceToDepth { block }, Some(x)) => space_to_depth(&x, *block as usize),
        (Op::Pointwise, Some(x)) => x,
        (Op::Softmax { log }, Some(x)) => softmax(&x, *log),
        (
            Op::Lrn {
                size,
                alpha,
                beta,
                bias,
            },
            Some(x),
        ) => lrn(&x, *size as i64, [*alpha, *beta, *bias].map(f64::from)),
        (op, None) => return Err(format!("{op:?} without an operand")),
    };
    let extras: Vec<_> = node.extras.iter().map(rows).collect();
    Ok(vec![tail(&node.tail, made, &extras, &whole).into_dyn()])
}

/// The element-wise program over a node's result.
fn tail(
    expr: &Expr,
    x: Array4<f64>,
    extras: &[Array4<f64>],
    whole: &[Option<&ArrayD<f64>>],
) -> Array4<f64> {
    if expr.code.is_empty() {
        return x;
    }
    let whole: Vec<Option<(ArrayD<f64>, [usize; 2])>> = whole
        .iter()
        .map(|w| {
            w.map(|w| {
                let dims = [w.shape().first(), w.shape().get(1)].map(|d| *d.unwrap_or(&1));
                (
                    w.to_shape(w.len()).expect("flat").into_owned().into_dyn(),
                    dims,
                )
            })
        })
        .collect();
    Array4::from_shape_fn(x.dim(), |(n, c, h, w)| {
        let mut made: Vec<f64> = Vec::with_capacity(expr.code.len());
        for inst in &expr.code {
            let arg = |arg: Arg| match arg {
                Arg::Input(0) => x[[n, c, h, w]],
                Arg::Input(k) => {
                    let e = &extras[k as usize - 1];
                    let c = if e.dim().1 == 1 { 0 } else { c };
                    let w = if e.dim().3 == 1 { 0 } else { w };
                    e[[n, c, h, w]]
                }
                Arg::Value(i) => made[i as usize],
                Arg::Scalar(v) => v.into(),
                Arg::Channel(v) => expr.vectors[v as usize][c].into(),
                Arg::Whole(i) => {
                    let (values, [items, channels]) =
                        whole[i as usize].as_ref().expect("an operand of the tail");
                    let n = if *items == 1 { 0 } else { n };
                    let c = if *channels == 1 { 0 } else { c };
                    values[n * channels + c]
                }
            };
            let [a, b, c] = inst.args;
            let args = match inst.func.arity() {
                1 => [arg(a), 0.0, 0.0],
                2 => [arg(a), arg(b), 0.0],
                _ => [arg(a), arg(b), arg(c)],
            };
            made.push(func::apply(inst.func, args));
        }
        made[made.len() - 1]
    })
}

fn conv(graph: &Graph, op: &Conv, x: &Array4<f64>, to: &[usize]) -> Array4<f64> {
    let weight = &graph.weights[op.weight];
    let mut values = vec![0f32; weight.len() as usize];
    weight
        .read(0, &mut values)
        .expect("weights that can be read");
    let dims: Vec<usize> = weight.dims.iter().map(|&d| d as usize).collect();
    let values = values.into_iter().map(f64::from).collect();
    let k =
        Array4::from_shape_vec((dims[0], dims[1], dims[2], dims[3]), values).expect("4 lengths");
    let mut y = Array4::<f64>::zeros((to[0], to[1], to[2], to[3]));
    let (cin, cout, groups) = (x.dim().1, op.cout as usize, op.groups as usize);
    let (gin, gout) = (cin / groups, cout / groups);
    // Every (input, output, kernel element) that meet, whichever way the convolution goes.
    let rows = axis::meetings(&op.rows, x.dim().2, to[2]);
    let cols = axis::meetings(&op.cols, x.dim().3, to[3]);
    let transposed = matches!(op.rows, Window::Transposed { .. });
    for n in 0..to[0] {
        for co in 0..cout {
            for ci in 0..gin {
                let from = co / gout * gin + ci;
                for &(i, o, kh) in &rows {
                    for &(j, p, kw) in &cols {
                        let weight = if transposed {
                            k[[from, co % gout, kh, kw]]
                        } else {
                            k[[co, ci, kh, kw]]
                        };
                        y[[n, co, o, p]] += weight * x[[n, from, i, j]];
                    }
                }
            }
            let scale = op.scale.as_ref().map_or(1.0, |s| s[co].into());
            let bias = op.bias.as_ref().map_or(0.0, |b| b[co].into());
            y.slice_mut(s![n, co, .., ..])
                .mapv_inplace(|v| v * scale + bias);
        }
    }
    y
}

fn pool(op: &Pool, x: &Array4<f64>, to: &[usize]) -> Array4<f64> {
    let rows = axis::reads(&op.rows, x.dim().2, to[2]);
    let cols = axis::reads(&op.cols, x.dim().3, to[3]);
    let counts = |after: u64, window: &Window, len: usize, o: usize| {
        let Window::Taps {
            kernel,
            stride,
            dilation,
            pad,
            ..
        } = window
        else {
            panic!("a pool without a window")
        };
        let first = o as i64 * *stride as i64 - pad;
        let end = len as i64 + after as i64;
        let taken = (0..*kernel as i64).map(|k| first + k * *dilation as i64);
        taken.filter(|&i| i < end).count() as f64
    };
    Array4::from_shape_fn((to[0], to[1], to[2], to[3]), |(n, c, o, p)| {
        let window: Vec<f64> = inside(&rows[o])
            .flat_map(|i| inside(&cols[p]).map(move |j| (i, j)))
            .map(|(i, j)| x[[n, c, i, j]])
            .collect();
        let sum: f64 = window.iter().sum();
        match op.kind {
            PoolKind::Max => window.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            PoolKind::Mean => sum / window.len() as f64,
            PoolKind::MeanPadded { after } => {
                sum / (counts(after[0], &op.rows, x.dim().2, o)
                    * counts(after[1], &op.cols, x.dim().3, p))
            }
        }
    })
}

fn inside(reads: &Reads) -> impl Iterator<Item = usize> + '_ {
    reads.iter().filter_map(|&(i, _)| i)
}

fn resize(rows: &Window, cols: &Window, x: &Array4<f64>, to: &[usize]) -> Array4<f64> {
    let rows = axis::reads(rows, x.dim().2, to[2]);
    let cols = axis::reads(cols, x.dim().3, to[3]);
    Array4::from_shape_fn((to[0], to[1], to[2], to[3]), |(n, c, o, p)| {
        let mut sum = 0.0;
        for &(i, a) in &rows[o] {
            for &(j, b) in &cols[p] {
                sum += a * b * x[[n, c, i.expect("inside"), j.expect("inside")]];
            }
        }
        sum
    })
}

fn pad(rows: &Window, cols: &Window, value: f64, x: &Array4<f64>, to: &[usize]) -> Array4<f64> {
    let rows = axis::reads(rows, x.dim().2, to[2]);
    let cols = axis::reads(cols, x.dim().3, to[3]);
    Array4::from_shape_fn((to[0], to[1], to[2], to[3]), |(n, c, o, p)| {
        match (rows[o][0].0, cols[p][0].0) {
            (Some(i), Some(j)) => x[[n, c, i, j]],
            _ => value,
        }
    })
}

fn depth_to_space(x: &Array4<f64>, b: usize, crd: bool) -> Array4<f64> {
    let (n, c, h, w) = x.dim();
    let depth = c / (b * b);
    Array4::from_shape_fn((n, depth, h * b, w * b), |(n, c, o, p)| {
        let (i, j) = (o % b, p % b);
        let from = if crd {
            c * b * b + i * b + j
        } else {
            (i * b + j) * depth + c
        };
        x[[n, from, o / b, p / b]]
    })
}

fn space_to_depth(x: &Array4<f64>, b: usize) -> Array4<f64> {
    let (n, c, h, w) = x.dim();
    Array4::from_shape_fn((n, c * b * b, h / b, w / b), |(n, to, o, p)| {
        let (block, from) = (to / c, to % c);
        x[[n, from, o * b + block / b, p * b + block % b]]
    })
}

fn softmax(x: &Array4<f64>, log: bool) -> Array4<f64> {
    Array4::from_shape_fn(x.dim(), |(n, c, h, w)| {
        let pixel = x.slice(s![n, .., h, w]);
        let top = pixel.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = pixel.iter().map(|v| (v - top).exp()).sum();
        if log {
            pixel[c] - top - sum.ln()
        } else {
            (pixel[c] - top).exp() / sum
        }
    })
}

fn lrn(x: &Array4<f64>, size: i64, [alpha, beta, bias]: [f64; 3]) -> Array4<f64> {
    let channels = x.dim().1 as i64;
    Array4::from_shape_fn(x.dim(), |(n, c, h, w)| {
        let c = c as i64;
        let low = (c - (size - 1) / 2).max(0);
        let high = (c + size / 2).min(channels - 1);
        let squares: f64 = (low..=high).map(|c| x[[n, c as usize, h, w]].powi(2)).sum();
        x[[n, c as usize, h, w]] / (bias + alpha / size as f64 * squares).powf(beta)
    })
}

fn gather(kind: Gather, x: &Array4<f64>) -> ArrayD<f64> {
    let (n, c, h, w) = x.dim();
    let over = |f: &dyn Fn(usize, usize) -> f64| {
        Array4::from_shape_fn((n, c, 1, 1), |(n, c, ..)| f(n, c)).into_dyn()
    };
    match kind {
        Gather::Whole => x.clone().into_dyn(),
        Gather::Mean => over(&|n, c| x.slice(s![n, c, .., ..]).sum() / (h * w) as f64),
        Gather::Max => over(&|n, c| {
            let image = x.slice(s![n, c, .., ..]);
            image.iter().copied().fold(f64::NEG_INFINITY, f64::max)
        }),
        Gather::Moments(moments) => {
            let each = c / moments.groups as usize;
            ArrayD::from_shape_fn(IxDyn(&[n, c, 2]), |at| {
                let first = at[1] / each * each;
                let group = x.slice(s![at[0], first..first + each, .., ..]);
                let count = group.len() as f64;
                let mean = group.sum() / count;
                if at[2] == 0 {
                    mean
                } else {
                    group.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / count
                }
            })
        }
    }
}
