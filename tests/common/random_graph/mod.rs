//! Seeded random graphs: small, valid, and of every shape that a sweep must get right.
//!
//! What is drawn depends on the seed and on tensors' scales, hardly on their lengths, so the same
//! seed at another height mostly gives the same network.

mod tail;
mod window;

use std::ops::Range;
use std::sync::Arc;

use stripmill::dense::{self, DType, Data, Value};
use stripmill::graph::{
    Conv, Gather, Graph, Layout, Moments, Node, Op, Operand, Pool, Segment, Tensor, TensorId,
    Weight, WeightSource, Window, can_tile,
};

use super::rng::Rng;
use super::shrink::ancestors;

/// What a random graph may contain.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Rows of the largest input.
    pub h: u64,
    /// Columns of the largest input.
    pub w: u64,
    /// Functions that jump (floor, comparisons): a reference in f64 may then differ, but bits of
    /// two runs may not.
    pub jumps: bool,
    /// Ops that need a whole tensor, and what follows them.
    pub barriers: bool,
    /// Resizes by factors that are not whole.
    pub fractions: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            h: 17,
            w: 13,
            jumps: false,
            barriers: true,
            fractions: true,
        }
    }
}

/// A random graph; `None` where the seed led nowhere at these lengths.
pub fn random_graph(seed: u64, options: Options) -> Option<Graph> {
    let mut builder = Builder {
        rng: Rng::new(seed),
        graph: Graph::default(),
        rows: Vec::new(),
        whole: Vec::new(),
        options,
    };
    builder.inputs();
    let nodes = builder.rng.within(2, 14);
    for _ in 0..nodes {
        builder.node();
    }
    builder.finish()
}

/// Random values for a tensor.
pub fn random_value(tensor: &Tensor, rng: &mut Rng) -> Value {
    let n = tensor.dims.iter().product::<u64>();
    let data = match tensor.dtype {
        DType::F32 => Data::F32(rng.values(n, 1.0)),
        DType::I64 => Data::I64((0..n).map(|_| rng.within(-3, 3)).collect()),
        DType::I32 => Data::I32((0..n).map(|_| rng.within(-3, 3) as i32).collect()),
        DType::U8 => Data::U8((0..n).map(|_| rng.below(4) as u8).collect()),
        DType::Bool => Data::Bool((0..n).map(|_| rng.below(2) as u8).collect()),
    };
    Value {
        dims: tensor.dims.clone(),
        data,
    }
}

/// Random values for all inputs of `graph`, by their names: a part of the graph has the same.
pub fn random_inputs(graph: &Graph, seed: u64) -> Vec<Value> {
    let value = |id: &TensorId| {
        let tensor = graph.tensor(*id);
        let name = tensor.name.bytes();
        let name = name.fold(seed, |a, b| a.wrapping_mul(257).wrapping_add(b.into()));
        random_value(tensor, &mut Rng::new(name))
    };
    graph.inputs.iter().map(value).collect()
}

/// A row tensor that nodes may read.
#[derive(Debug, Clone, PartialEq)]
struct Rows {
    id: TensorId,
    n: u64,
    c: u64,
    h: u64,
    w: u64,
    /// Rows and columns per row and column of the largest input.
    scale: [f64; 2],
}

impl Rows {
    fn same_size(&self, other: &Rows) -> bool {
        (self.n, self.h, self.w) == (other.n, other.h, other.w) && self.scale == other.scale
    }

    fn whole(&self) -> Segment {
        self.part(0..self.c)
    }

    fn part(&self, channels: Range<u64>) -> Segment {
        Segment {
            tensor: self.id,
            channels,
        }
    }
}

struct Builder {
    rng: Rng,
    graph: Graph,
    rows: Vec<Rows>,
    /// Whole tensors of `[n, c, 1, 1]` or the like.
    whole: Vec<TensorId>,
    options: Options,
}

const CHANNELS: [u64; 14] = [1, 2, 3, 3, 4, 4, 5, 6, 8, 8, 9, 12, 16, 17];

impl Builder {
    fn inputs(&mut self) {
        let n = self.rng.one(&[1, 1, 1, 1, 2, 3]);
        let (h, w) = (self.options.h, self.options.w);
        let c = self.rng.one(&[1, 3, 3, 4, 5]);
        self.input(n, c, h, w, [1.0, 1.0]);
        if self.rng.chance(0.2) {
            let c = self.rng.one(&CHANNELS);
            self.input(n, c, h, w, [1.0, 1.0]);
        }
        if self.rng.chance(0.2) {
            let c = self.rng.one(&CHANNELS);
            self.input(n, c, h.div_ceil(2), w.div_ceil(2), [0.5, 0.5]);
        }
        if self.rng.chance(0.1) {
            self.input(n, 1, 2 * h + 1, w, [2.0, 1.0]);
        }
        if self.rng.chance(0.1) {
            let c = self.rng.one(&[1, c]);
            self.input(n, c, h, 1, [1.0, 0.0]);
        }
        if self.rng.chance(0.07) {
            self.input(n + 1, c, h, w, [1.0, 1.0]);
        }
        if self.options.barriers && self.rng.chance(0.1) {
            let dims = vec![self.rng.one(&[1, n]), self.rng.one(&[1, c]), 1, 1];
            let id = self.tensor(dims, Layout::Whole, DType::F32);
            self.graph.inputs.push(id);
            self.whole.push(id);
        }
        if self.options.barriers && self.rng.chance(0.1) {
            let dims = vec![1, c, 1, 1];
            let id = self.tensor(dims, Layout::Whole, DType::F32);
            let value = random_value(&self.graph.tensors[id.at()], &mut self.rng);
            self.graph.constants.push((id, value));
            self.whole.push(id);
        }
    }

    fn input(&mut self, n: u64, c: u64, h: u64, w: u64, scale: [f64; 2]) {
        let id = self.tensor(vec![n, c, h, w], Layout::Rows, DType::F32);
        self.graph.inputs.push(id);
        self.rows.push(Rows {
            id,
            n,
            c,
            h,
            w,
            scale,
        });
    }

    fn tensor(&mut self, dims: Vec<u64>, layout: Layout, dtype: DType) -> TensorId {
        let name = format!("t{}", self.graph.tensors.len());
        let tensor = Tensor {
            name,
            dtype,
            dims,
            layout,
        };
        self.graph.add_tensor(tensor).expect("a small tensor")
    }

    /// One of the row tensors, most often a recent one; sometimes a long skip back.
    fn pick(&mut self) -> Rows {
        let all = self.rows.len() as u64;
        let back = match self.rng.below(10) {
            0..6 => 0,
            6..8 => self.rng.below(all.min(3)),
            _ => self.rng.below(all),
        };
        self.rows[(all - 1 - back) as usize].clone()
    }

    /// An operand: a tensor, some of its channels, or several side by side. The [`Rows`] has its
    /// lengths (and the first segment's tensor).
    fn operand(&mut self) -> (Operand, Rows) {
        let first = self.pick();
        let mut segments = vec![self.some_channels(&first)];
        while self.rng.chance(0.2) && segments.len() < 4 {
            let beside = self.pick();
            if beside.same_size(&first) {
                segments.push(self.some_channels(&beside));
            }
        }
        let operand = Operand(segments);
        let c = operand.channels();
        (operand, Rows { c, ..first })
    }

    fn some_channels(&mut self, rows: &Rows) -> Segment {
        if rows.c > 1 && self.rng.chance(0.15) {
            let start = self.rng.below(rows.c);
            let end = start + 1 + self.rng.below(rows.c - start);
            return rows.part(start..end);
        }
        rows.whole()
    }

    /// Adds one node (a join or a barrier adds a few), or nothing where the draw does not fit.
    fn node(&mut self) {
        match self.rng.below(28) {
            0..6 => self.conv(),
            6..8 => self.depthwise(),
            8..10 => self.transposed(),
            10..13 => self.pool(),
            13..16 => self.resize(),
            16..18 => self.pad(),
            18 => self.depth_to_space(),
            19 => self.space_to_depth(),
            20..22 => self.pointwise(),
            22 => self.across_channels(),
            23..26 => self.join(),
            _ if self.options.barriers => self.barrier(),
            _ => self.conv(),
        }
    }

    /// Adds a node that makes rows, with a random tail, where its output is neither empty nor
    /// large.
    fn emit(&mut self, op: Op, operand: Operand, to: Rows) -> Option<Rows> {
        let small = to.h > 0
            && to.w > 0
            && to.c <= 40
            && to.scale[0] * to.scale[1] <= 9.0
            && to.scale[0] <= 4.5;
        if !small {
            return None;
        }
        let id = self.tensor(vec![to.n, to.c, to.h, to.w], Layout::Rows, DType::F32);
        let rows = Rows { id, ..to };
        let (tail, extras, whole) = self.tail(&rows);
        self.push(op, vec![operand], rows.id, |node| {
            node.tail = tail;
            node.extras = extras;
            node.whole = whole;
        });
        self.rows.push(rows.clone());
        Some(rows)
    }

    fn push(&mut self, op: Op, operands: Vec<Operand>, to: TensorId, more: impl FnOnce(&mut Node)) {
        let mut node = Node {
            name: format!("n{}", self.graph.nodes.len()),
            op,
            operands,
            tail: Default::default(),
            extras: Vec::new(),
            whole: Vec::new(),
            outputs: vec![to],
        };
        more(&mut node);
        self.graph.nodes.push(node);
    }

    fn weight(&mut self, dims: [u64; 4], fan: u64) -> usize {
        let same = |w: &Weight| w.dims == dims;
        if let Some(shared) = self.graph.weights.iter().position(same)
            && self.rng.chance(0.2)
        {
            return shared;
        }
        let values = self
            .rng
            .values(dims.iter().product(), (3.0 / fan as f32).sqrt());
        self.graph.weights.push(Weight {
            name: format!("w{}", self.graph.weights.len()),
            dims: dims.to_vec(),
            source: WeightSource::Inline(Arc::new(values)),
        });
        self.graph.weights.len() - 1
    }

    fn some_vector(&mut self, c: u64, around: f32) -> Option<Vec<f32>> {
        let values = self.rng.values(c, 0.5).iter().map(|v| v + around).collect();
        self.rng.chance(0.5).then_some(values)
    }

    fn conv(&mut self) {
        let (operand, from) = self.operand();
        let fits = [1, 2, 3, 4].map(|g| if from.c % g == 0 { g } else { 1 });
        let groups = if self.rng.chance(0.2) {
            self.rng.one(&fits)
        } else {
            1
        };
        let cout = self.rng.one(&CHANNELS).div_ceil(groups) * groups;
        self.convolution(operand, from, cout, groups, false);
    }

    fn depthwise(&mut self) {
        let (operand, from) = self.operand();
        let multiplier = self.rng.one(&[1, 1, 1, 2]);
        let (cout, groups) = (from.c * multiplier, from.c);
        self.convolution(operand, from, cout, groups, false);
    }

    fn transposed(&mut self) {
        let (operand, from) = self.operand();
        let fits = [1, 2, from.c].map(|g| if from.c % g == 0 { g } else { 1 });
        let groups = if self.rng.chance(0.3) {
            self.rng.one(&fits)
        } else {
            1
        };
        let cout = self.rng.one(&CHANNELS).div_ceil(groups) * groups;
        self.convolution(operand, from, cout, groups, true);
    }

    fn convolution(
        &mut self,
        operand: Operand,
        from: Rows,
        cout: u64,
        groups: u64,
        transposed: bool,
    ) {
        let windows = if transposed {
            window::transposed(&mut self.rng, &from)
        } else {
            window::taps(&mut self.rng, &from, window::Use::Conv)
        };
        let Some([rows, cols]) = windows else { return };
        let kernel = |window: &Window| match window {
            Window::Taps { kernel, .. } | Window::Transposed { kernel, .. } => *kernel,
            _ => 1,
        };
        let (kh, kw) = (kernel(&rows.window), kernel(&cols.window));
        let dims = if transposed {
            [from.c, cout / groups, kh, kw]
        } else {
            [cout, from.c / groups, kh, kw]
        };
        let weight = self.weight(dims, from.c / groups * kh * kw);
        let op = Op::Conv(Conv {
            weight,
            scale: self.some_vector(cout, 1.0),
            bias: self.some_vector(cout, 0.0),
            cout,
            groups,
            rows: rows.window.clone(),
            cols: cols.window.clone(),
            tile: 1,
        });
        self.emit(op, operand, window::to(&from, cout, &rows, &cols));
    }

    fn pool(&mut self) {
        let (operand, from) = self.operand();
        let Some((kind, [rows, cols])) = window::pool(&mut self.rng, &from) else {
            return;
        };
        let op = Op::Pool(Pool {
            kind,
            rows: rows.window.clone(),
            cols: cols.window.clone(),
        });
        let to = window::to(&from, from.c, &rows, &cols);
        self.emit(op, operand, to);
    }

    fn resize(&mut self) {
        let (operand, from) = self.operand();
        let fractions = self.options.fractions;
        let [rows, cols] = window::resize(&mut self.rng, &from, fractions);
        let op = Op::Resize {
            rows: rows.window.clone(),
            cols: cols.window.clone(),
        };
        let to = window::to(&from, from.c, &rows, &cols);
        self.emit(op, operand, to);
    }

    fn pad(&mut self) {
        let (operand, from) = self.operand();
        let Some([rows, cols]) = window::taps(&mut self.rng, &from, window::Use::Pad) else {
            return;
        };
        let op = Op::Pad {
            rows: rows.window.clone(),
            cols: cols.window.clone(),
            value: self.rng.one(&[0.0, 0.0, 0.75, -1.5]),
        };
        let to = window::to(&from, from.c, &rows, &cols);
        self.emit(op, operand, to);
    }

    fn depth_to_space(&mut self) {
        let (operand, from) = self.operand();
        let block = self.rng.one(&[2, 2, 3]);
        let crd = self.rng.chance(0.5);
        if from.c % (block * block) != 0 {
            // A convolution makes the channels.
            let cout = block * block * self.rng.one(&[1, 2, 3]);
            let [rows, cols] = window::point();
            let weight = self.weight([cout, from.c, 1, 1], from.c);
            let op = Op::Conv(Conv {
                weight,
                scale: None,
                bias: None,
                cout,
                groups: 1,
                rows: rows.clone(),
                cols: cols.clone(),
                tile: 1,
            });
            if let Some(made) = self.emit(op, operand, Rows { c: cout, ..from }) {
                self.shuffle_out(Operand(vec![made.whole()]), made, block, crd);
            }
        } else {
            self.shuffle_out(operand, from, block, crd);
        }
    }

    fn shuffle_out(&mut self, operand: Operand, from: Rows, block: u64, crd: bool) {
        let to = Rows {
            c: from.c / (block * block),
            h: from.h * block,
            w: from.w * block,
            scale: from.scale.map(|s| s * block as f64),
            ..from
        };
        self.emit(Op::DepthToSpace { block, crd }, operand, to);
    }

    fn space_to_depth(&mut self) {
        let block = self.rng.one(&[2, 2, 3]);
        let (operand, from) = self.operand();
        let (h, w) = (from.h / block * block, from.w / block * block);
        let Some(cropped) = self.fit(operand, &from, h, w, [0, 0]) else {
            return;
        };
        let to = Rows {
            c: from.c * block * block,
            h: h / block,
            w: w / block,
            scale: from.scale.map(|s| s / block as f64),
            ..from
        };
        self.emit(
            Op::SpaceToDepth { block },
            Operand(vec![cropped.whole()]),
            to,
        );
    }

    /// Crops or pads rows and columns to `h` and `w`, from `skip` on.
    fn fit(
        &mut self,
        operand: Operand,
        from: &Rows,
        h: u64,
        w: u64,
        skip: [i64; 2],
    ) -> Option<Rows> {
        let border = self.rng.one(&window::BORDERS);
        let [rows, cols] = skip.map(|skip| window::shift(skip, border));
        let value = self.rng.one(&[0.0, 0.5]);
        let to = Rows {
            h,
            w,
            ..from.clone()
        };
        self.emit(Op::Pad { rows, cols, value }, operand, to)
    }

    fn pointwise(&mut self) {
        let (operand, from) = self.operand();
        self.emit(Op::Pointwise, operand, from);
    }

    fn across_channels(&mut self) {
        let (operand, from) = self.operand();
        let op = if self.rng.chance(0.5) {
            Op::Softmax {
                log: self.rng.chance(0.3),
            }
        } else {
            Op::Lrn {
                size: self.rng.within(1, 5) as u64,
                alpha: self.rng.one(&[1e-4, 0.5]),
                beta: self.rng.one(&[0.75, 0.5, 1.0]),
                bias: 1.0,
            }
        };
        self.emit(op, operand, from);
    }

    /// Brings two tensors to one size and joins them: a skip connection.
    fn join(&mut self) {
        let a = self.pick();
        let b = self.rows[self.rng.below(self.rows.len() as u64) as usize].clone();
        if a == b || a.n != b.n || a.w == 1 || b.w == 1 {
            return;
        }
        let operand = Operand(vec![self.some_channels(&b)]);
        let from = Rows {
            c: operand.channels(),
            ..b.clone()
        };
        let b = if (b.h, b.w) == (a.h, a.w) {
            b
        } else if a.scale == b.scale {
            let skip = [b.h.saturating_sub(a.h), b.w.saturating_sub(a.w)];
            let skip = skip.map(|most| self.rng.within(0, most as i64));
            let Some(b) = self.fit(operand, &from, a.h, a.w, skip) else {
                return;
            };
            b
        } else {
            let [rows, cols] = window::resize_to(&mut self.rng, &from, &a);
            let op = Op::Resize {
                rows: rows.window.clone(),
                cols: cols.window.clone(),
            };
            let Some(b) = self.emit(op, operand, window::to(&from, from.c, &rows, &cols)) else {
                return;
            };
            b
        };
        let both = Operand(vec![a.whole(), b.whole()]);
        let c = both.channels();
        if self.rng.chance(0.5) {
            let cout = self.rng.one(&CHANNELS);
            self.convolution(both, Rows { c, ..a }, cout, 1, false);
        } else {
            self.emit(Op::Pointwise, both, Rows { c, ..a });
        }
    }

    /// Something that needs a whole tensor, and what follows from it.
    fn barrier(&mut self) {
        let (operand, from) = self.operand();
        let image = vec![from.n, from.c, 1, 1];
        match self.rng.below(5) {
            0 => {
                let id = self.gather(Gather::Mean, operand, image);
                self.whole.push(id);
            }
            1 => {
                let id = self.gather(Gather::Max, operand, image);
                let scaled = self.dense(dense_op("Sigmoid", &[]), &[id], self.dims(id));
                self.whole.push(scaled);
            }
            2 => {
                let fits = [1, 2, from.c].map(|g| if from.c % g == 0 { g } else { 1 });
                let groups = self.rng.one(&fits);
                let dims = vec![from.n, from.c, 2];
                let id = self.gather(Gather::Moments(Moments { groups }), operand.clone(), dims);
                self.normalise(operand, from, id);
            }
            kind => {
                let dims = vec![from.n, from.c, from.h, from.w];
                let mut id = self.gather(Gather::Whole, operand, dims);
                let mut to = from;
                if kind == 4 {
                    let perm = dense::Attr::Ints(vec![0, 1, 3, 2]);
                    let dims = vec![to.n, to.c, to.w, to.h];
                    id = self.dense(dense_op("Transpose", &[("perm", perm)]), &[id], dims);
                    to = Rows {
                        h: to.w,
                        w: to.h,
                        scale: [to.scale[0] * 0.77, to.scale[1] * 0.77],
                        ..to
                    };
                }
                let rows = self.tensor(vec![to.n, to.c, to.h, to.w], Layout::Rows, DType::F32);
                self.push(Op::Spread, Vec::new(), rows, |node| {
                    node.whole = vec![Some(id)]
                });
                self.rows.push(Rows { id: rows, ..to });
            }
        }
    }

    fn dims(&self, id: TensorId) -> Vec<u64> {
        self.graph.tensor(id).dims.clone()
    }

    fn gather(&mut self, kind: Gather, operand: Operand, dims: Vec<u64>) -> TensorId {
        let id = self.tensor(dims, Layout::Whole, DType::F32);
        self.push(Op::Gather(kind), vec![operand], id, |_| {});
        id
    }

    fn dense(&mut self, op: dense::Op, inputs: &[TensorId], dims: Vec<u64>) -> TensorId {
        let id = self.tensor(dims, Layout::Whole, DType::F32);
        let whole = inputs.iter().map(|&id| Some(id)).collect();
        self.push(Op::Dense(op), Vec::new(), id, |node| node.whole = whole);
        id
    }

    /// `(x − mean) / sqrt(variance + 0.1)` in the phase after the moments' own.
    fn normalise(&mut self, operand: Operand, from: Rows, moments: TensorId) {
        let [axis, parts] = [2, 2].map(dense::Attr::Int);
        let split = dense_op("Split", &[("axis", axis), ("num_outputs", parts)]);
        let dims = vec![from.n, from.c, 1];
        let mean = self.tensor(dims.clone(), Layout::Whole, DType::F32);
        let variance = self.tensor(dims, Layout::Whole, DType::F32);
        self.push(Op::Dense(split), Vec::new(), mean, |node| {
            node.whole = vec![Some(moments)];
            node.outputs.push(variance);
        });
        let to = self.tensor(
            vec![from.n, from.c, from.h, from.w],
            Layout::Rows,
            DType::F32,
        );
        self.push(Op::Pointwise, vec![operand], to, |node| {
            node.tail = tail::normalise();
            node.whole = vec![Some(mean), Some(variance)];
        });
        self.rows.push(Rows { id: to, ..from });
    }

    /// Computes some convolutions in Winograd tiles.
    fn tiles(&mut self) {
        for k in 0..self.graph.nodes.len() {
            let tile = self.rng.one(&[1, 4, 4, 6]);
            let can = match &self.graph.nodes[k].op {
                Op::Conv(conv) => can_tile(&self.graph, conv),
                _ => false,
            };
            if let (true, Op::Conv(conv)) = (can, &mut self.graph.nodes[k].op) {
                conv.tile = tile;
            }
        }
    }

    /// Chooses outputs (every leaf, and sometimes a tensor in the middle or an input) and drops
    /// what does not lead to them.
    fn finish(mut self) -> Option<Graph> {
        let read = |id: TensorId| {
            self.graph.nodes.iter().any(|node| {
                let rows = node.operands.iter().chain(&node.extras);
                let mut rows = rows.flat_map(|o| o.0.iter().map(|s| s.tensor));
                rows.any(|t| t == id) || node.whole.contains(&Some(id))
            })
        };
        let made: Vec<TensorId> = self
            .graph
            .nodes
            .iter()
            .flat_map(|n| n.outputs.clone())
            .collect();
        let mut outputs: Vec<TensorId> = made.iter().copied().filter(|&id| !read(id)).collect();
        outputs.truncate(4);
        for _ in 0..2 {
            let all = [&made[..], &self.graph.inputs[..]].concat();
            let id = self.rng.one(&all);
            if self.rng.chance(0.2) && !outputs.contains(&id) {
                outputs.push(id);
            }
        }
        if outputs.is_empty() {
            return None;
        }
        self.tiles();
        Some(ancestors(&self.graph, &outputs))
    }
}

fn dense_op(kind: &str, attrs: &[(&str, dense::Attr)]) -> dense::Op {
    dense::Op {
        kind: kind.into(),
        opset: 18,
        attrs: attrs
            .iter()
            .map(|(k, v)| (k.to_string(), v.clone()))
            .collect(),
    }
}
