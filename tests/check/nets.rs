//! Graphs for plans to be made of: small, but with every part that a plan can have.

use std::collections::BTreeMap;
use std::sync::Arc;

use stripmill::dense::{self, DType, Value};
use stripmill::func::Func;
use stripmill::graph::{
    Arg, Border, Conv, Expr, Gather, Graph, Layout, Moments, Node, Op, Operand, Pool, PoolKind,
    Segment, Tensor, TensorId, Weight, WeightSource, Window,
};

/// A window of convolution or pooling.
pub(crate) fn taps(kernel: u64, stride: u64, pad: i64, border: Border) -> Window {
    Window::Taps {
        kernel,
        stride,
        dilation: 1,
        pad,
        border,
    }
}

/// Builds a graph; weights are never read.
pub(crate) struct Net(Graph);

impl Net {
    pub(crate) fn new() -> Self {
        Net(Graph::default())
    }

    fn tensor(&mut self, dims: &[u64], layout: Layout) -> TensorId {
        let name = format!("t{}", self.0.tensors.len());
        let tensor = Tensor {
            name,
            dtype: DType::F32,
            dims: dims.to_vec(),
            layout,
        };
        self.0.add_tensor(tensor).expect("a small tensor")
    }

    pub(crate) fn input(&mut self, dims: [u64; 4]) -> TensorId {
        let id = self.tensor(&dims, Layout::Rows);
        self.0.inputs.push(id);
        id
    }

    pub(crate) fn whole_input(&mut self, dims: &[u64]) -> TensorId {
        let id = self.tensor(dims, Layout::Whole);
        self.0.inputs.push(id);
        id
    }

    pub(crate) fn constant(&mut self, dims: &[u64]) -> TensorId {
        let id = self.tensor(dims, Layout::Whole);
        self.0.constants.push((id, Value::zeros(DType::F32, dims)));
        id
    }

    fn operand(&self, from: &[TensorId]) -> Operand {
        let all = |t: &TensorId| Segment {
            tensor: *t,
            channels: 0..self.0.tensor(*t).c(),
        };
        Operand(from.iter().map(all).collect())
    }

    fn node(
        &mut self,
        op: Op,
        from: &[TensorId],
        whole: &[TensorId],
        outputs: Vec<TensorId>,
    ) -> TensorId {
        let operands = if from.is_empty() {
            vec![]
        } else {
            vec![self.operand(from)]
        };
        let first = outputs[0];
        self.0.nodes.push(Node {
            name: format!("node{}", self.0.nodes.len()),
            op,
            operands,
            tail: Expr::default(),
            extras: vec![],
            whole: whole.iter().map(|&t| Some(t)).collect(),
            outputs,
        });
        first
    }

    fn rows(&mut self, op: Op, from: &[TensorId], dims: [u64; 4]) -> TensorId {
        let out = self.tensor(&dims, Layout::Rows);
        self.node(op, from, &[], vec![out])
    }

    /// `[n, channels of all, h, w]`.
    fn dims(&self, from: &[TensorId]) -> [u64; 4] {
        let t = self.0.tensor(from[0]);
        [
            t.n(),
            from.iter().map(|t| self.0.tensor(*t).c()).sum(),
            t.h(),
            t.w(),
        ]
    }

    /// A convolution by `kernel`, padded to keep the size at stride 1.
    pub(crate) fn conv(
        &mut self,
        from: &[TensorId],
        cout: u64,
        kernel: u64,
        stride: u64,
    ) -> TensorId {
        let [n, cin, h, w] = self.dims(from);
        let window = taps(kernel, stride, (kernel / 2) as i64, Border::Fill);
        let op = self.weighted(vec![cout, cin, kernel, kernel], cout, window);
        self.rows(op, from, [n, cout, h.div_ceil(stride), w.div_ceil(stride)])
    }

    /// Twice the size, by a transposed convolution.
    pub(crate) fn up(&mut self, from: TensorId, cout: u64) -> TensorId {
        let [n, cin, h, w] = self.dims(&[from]);
        let window = Window::Transposed {
            kernel: 2,
            stride: 2,
            dilation: 1,
            pad: 0,
        };
        let op = self.weighted(vec![cin, cout, 2, 2], cout, window);
        self.rows(op, &[from], [n, cout, 2 * h, 2 * w])
    }

    fn weighted(&mut self, dims: Vec<u64>, cout: u64, window: Window) -> Op {
        let source = WeightSource::Inline(Arc::new(vec![0.0; 8]));
        self.0.weights.push(Weight {
            name: "w".into(),
            dims,
            source,
        });
        let weight = self.0.weights.len() - 1;
        let (rows, cols) = (window.clone(), window);
        Op::Conv(Conv {
            weight,
            scale: None,
            bias: None,
            cout,
            groups: 1,
            rows,
            cols,
            tile: 1,
        })
    }

    pub(crate) fn pool(&mut self, from: TensorId) -> TensorId {
        let [n, c, h, w] = self.dims(&[from]);
        let window = taps(2, 2, 0, Border::Fill);
        let pool = Pool {
            kind: PoolKind::Max,
            rows: window.clone(),
            cols: window,
        };
        self.rows(Op::Pool(pool), &[from], [n, c, h / 2, w / 2])
    }

    /// `factor` times the size, each row and column repeated.
    pub(crate) fn repeat(&mut self, from: TensorId, factor: u64) -> TensorId {
        let [n, c, h, w] = self.dims(&[from]);
        let window = Window::Repeat { factor };
        let op = Op::Resize {
            rows: window.clone(),
            cols: window,
        };
        self.rows(op, &[from], [n, c, factor * h, factor * w])
    }

    pub(crate) fn pad(&mut self, from: TensorId, by: u64, border: Border) -> TensorId {
        let [n, c, h, w] = self.dims(&[from]);
        let window = taps(1, 1, by as i64, border);
        let op = Op::Pad {
            rows: window.clone(),
            cols: window,
            value: 0.0,
        };
        self.rows(op, &[from], [n, c, h + 2 * by, w + 2 * by])
    }

    pub(crate) fn depth_to_space(&mut self, from: TensorId, block: u64) -> TensorId {
        let [n, c, h, w] = self.dims(&[from]);
        let op = Op::DepthToSpace { block, crd: false };
        self.rows(op, &[from], [n, c / block / block, h * block, w * block])
    }

    /// `a + b`, where `b` has the width of `a` or 1.
    pub(crate) fn add(&mut self, a: TensorId, b: TensorId) -> TensorId {
        let dims = self.dims(&[a]);
        let out = self.rows(Op::Pointwise, &[a], dims);
        let extra = self.operand(&[b]);
        let node = self.0.nodes.last_mut().expect("just added");
        node.extras.push(extra);
        node.tail.push(Func::Add, &[Arg::Input(0), Arg::Input(1)]);
        out
    }

    /// `a` times a vector of its channels.
    pub(crate) fn scaled(&mut self, a: TensorId, by: TensorId) -> TensorId {
        let dims = self.dims(&[a]);
        let out = self.rows(Op::Pointwise, &[a], dims);
        let node = self.0.nodes.last_mut().expect("just added");
        node.whole.push(Some(by));
        node.tail.push(Func::Mul, &[Arg::Input(0), Arg::Whole(0)]);
        out
    }

    pub(crate) fn gather(&mut self, from: TensorId, kind: Gather) -> TensorId {
        let [n, c, h, w] = self.dims(&[from]);
        let dims = match kind {
            Gather::Whole => vec![n, c, h, w],
            Gather::Mean | Gather::Max => vec![n, c, 1, 1],
            Gather::Moments(_) => vec![n, c, 2],
        };
        let out = self.tensor(&dims, Layout::Whole);
        self.node(Op::Gather(kind), &[from], &[], vec![out])
    }

    /// Some op over whole tensors.
    pub(crate) fn dense(&mut self, from: &[TensorId], dims: &[u64]) -> TensorId {
        let out = self.tensor(dims, Layout::Whole);
        let op = dense::Op {
            kind: "Relu".into(),
            opset: 17,
            attrs: BTreeMap::new(),
        };
        self.node(Op::Dense(op), &[], from, vec![out])
    }

    pub(crate) fn spread(&mut self, from: TensorId) -> TensorId {
        let dims: [u64; 4] = self.0.tensor(from).dims[..]
            .try_into()
            .expect("four lengths");
        let out = self.tensor(&dims, Layout::Rows);
        self.node(Op::Spread, &[], &[from], vec![out])
    }

    pub(crate) fn done(mut self, outputs: &[TensorId]) -> Graph {
        self.0.outputs.extend(outputs);
        self.0
    }
}

/// Convolutions in a chain, one of them with a stride.
pub(crate) fn chain(n: u64, h: u64, w: u64) -> Graph {
    let mut net = Net::new();
    let x = net.input([n, 3, h, w]);
    let x = net.conv(&[x], 8, 3, 1);
    let x = net.conv(&[x], 8, 5, 2);
    let x = net.conv(&[x], 8, 3, 1);
    let y = net.conv(&[x], 2, 1, 1);
    net.done(&[y])
}

/// Two levels down and up, with skips that wait; a repeat on one side, a transposed convolution on
/// the other.
pub(crate) fn unet(n: u64, h: u64, w: u64) -> Graph {
    let mut net = Net::new();
    let x = net.input([n, 3, h, w]);
    let first = net.conv(&[x], 8, 3, 1);
    let x = net.pool(first);
    let second = net.conv(&[x], 16, 3, 1);
    let x = net.pool(second);
    let x = net.conv(&[x], 24, 3, 1);
    let x = net.repeat(x, 2);
    let x = net.conv(&[second, x], 16, 3, 1);
    let x = net.up(x, 8);
    let x = net.conv(&[first, x], 8, 3, 1);
    let y = net.conv(&[x], 2, 1, 1);
    net.done(&[y])
}

/// Two sources of different height; a column that every column reads; two outputs, and an input
/// that is one too.
pub(crate) fn sources(n: u64, h: u64, w: u64) -> Graph {
    let mut net = Net::new();
    let a = net.input([n, 4, h, w]);
    let b = net.input([n, 4, h / 2, w / 2]);
    let column = net.input([n, 1, h, 1]);
    let x = net.conv(&[a], 4, 3, 1);
    let y = net.conv(&[b], 4, 5, 1);
    let y = net.repeat(y, 2);
    let z = net.add(x, y);
    let z = net.add(z, column);
    let out = net.conv(&[z], 3, 3, 1);
    net.done(&[out, z, a])
}

/// A residual chain, then twice the size by shuffling, added to the repeated input: the repeat is
/// better made late.
pub(crate) fn upscale(n: u64, h: u64, w: u64) -> Graph {
    let mut net = Net::new();
    let input = net.input([n, 3, h, w]);
    let mut x = net.pad(input, 2, Border::Reflect);
    x = net.conv(&[x], 8, 3, 1);
    for _ in 0..4 {
        let y = net.conv(&[x], 8, 3, 1);
        x = net.add(y, x);
    }
    let x = net.conv(&[x], 12, 3, 1);
    let x = net.depth_to_space(x, 2);
    let base = net.pad(input, 2, Border::Edge);
    let base = net.repeat(base, 2);
    let y = net.add(x, base);
    net.done(&[y])
}

/// A mean, a maximum and moments of rows that the next phase scales by them.
pub(crate) fn squeeze(n: u64, h: u64, w: u64) -> Graph {
    let mut net = Net::new();
    let x = net.input([n, 3, h, w]);
    let x = net.conv(&[x], 8, 3, 1);
    let mean = net.gather(x, Gather::Mean);
    let max = net.gather(x, Gather::Max);
    let moments = net.gather(x, Gather::Moments(Moments { groups: 4 }));
    // a reader that needs a column more than each panel owns
    let wide = net.conv(&[x], 8, 3, 1);
    let factor = net.dense(&[mean, max, moments], &[n, 8, 1, 1]);
    let y = net.scaled(x, factor);
    let y = net.conv(&[y], 4, 3, 1);
    net.done(&[y, x, wide, factor])
}

/// Rows, a whole tensor, rows again; with a whole input and a constant.
pub(crate) fn barrier(n: u64, h: u64, w: u64) -> Graph {
    let mut net = Net::new();
    let x = net.input([n, 2, h, w]);
    let side = net.whole_input(&[n, 2, h, w]);
    let fixed = net.constant(&[2]);
    let x = net.conv(&[x], 2, 3, 1);
    let all = net.gather(x, Gather::Whole);
    let turned = net.dense(&[all, side, fixed], &[n, 2, h, w]);
    let last = net.dense(&[turned], &[n, 5]);
    let y = net.spread(turned);
    let y = net.conv(&[y, x], 3, 3, 1);
    net.done(&[y, last])
}
