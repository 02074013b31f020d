//! What plans keep alive, against figures worked out on paper.

use std::sync::Arc;

use stripmill::dense::DType;
use stripmill::graph::{
    Axis, Border, Conv, Expr, Graph, Layout, Node, Op, Operand, Pool, PoolKind, Segment, Side,
    Tensor, TensorId, Weight, WeightSource, Window,
};
use stripmill::plan::{Options, SafePlan, plan};
use stripmill::sweep::Fronts;

/// Builds graphs whose weights are never read.
struct Net(Graph);

impl Net {
    fn new(c: u64, h: u64, w: u64) -> (Self, TensorId) {
        let mut net = Net(Graph::default());
        let input = net.tensor("input", [1, c, h, w]);
        net.0.inputs.push(input);
        (net, input)
    }

    fn tensor(&mut self, name: &str, dims: [u64; 4]) -> TensorId {
        let name = format!("{name}{}", self.0.tensors.len());
        let tensor = Tensor {
            name,
            dtype: DType::F32,
            dims: dims.to_vec(),
            layout: Layout::Rows,
        };
        self.0.add_tensor(tensor).expect("a small tensor")
    }

    fn push(&mut self, op: Op, from: &[TensorId], c: u64, h: u64, w: u64) -> TensorId {
        let out = self.tensor("t", [1, c, h, w]);
        let all = |t: &TensorId| Segment {
            tensor: *t,
            channels: 0..self.0.tensor(*t).c(),
        };
        let operand = Operand(from.iter().map(all).collect());
        let node = Node {
            name: format!("node{}", self.0.nodes.len()),
            op,
            operands: vec![operand],
            tail: Expr::default(),
            extras: vec![],
            whole: vec![],
            outputs: vec![out],
        };
        self.0.nodes.push(node);
        out
    }

    fn conv(&mut self, from: &[TensorId], cout: u64, kernel: u64) -> TensorId {
        let cin: u64 = from.iter().map(|t| self.0.tensor(*t).c()).sum();
        let dims = vec![cout, cin, kernel, kernel];
        let source = WeightSource::Inline(Arc::new(vec![]));
        self.0.weights.push(Weight {
            name: "w".into(),
            dims,
            source,
        });
        let window = Window::Taps {
            kernel,
            stride: 1,
            dilation: 1,
            pad: (kernel / 2) as i64,
            border: Border::Fill,
        };
        let conv = Conv {
            weight: self.0.weights.len() - 1,
            scale: None,
            bias: None,
            cout,
            groups: 1,
            rows: window.clone(),
            cols: window,
            tile: 1,
        };
        let (h, w) = (self.0.tensor(from[0]).h(), self.0.tensor(from[0]).w());
        self.push(Op::Conv(conv), from, cout, h, w)
    }

    fn pool(&mut self, from: TensorId) -> TensorId {
        let t = self.0.tensor(from).clone();
        let window = Window::Taps {
            kernel: 2,
            stride: 2,
            dilation: 1,
            pad: 0,
            border: Border::Fill,
        };
        let pool = Pool {
            kind: PoolKind::Max,
            rows: window.clone(),
            cols: window,
        };
        self.push(Op::Pool(pool), &[from], t.c(), t.h() / 2, t.w() / 2)
    }

    fn up(&mut self, from: TensorId, cout: u64) -> TensorId {
        let t = self.0.tensor(from).clone();
        let window = Window::Transposed {
            kernel: 2,
            stride: 2,
            dilation: 1,
            pad: 0,
        };
        let dims = vec![t.c(), cout, 2, 2];
        self.0.weights.push(Weight {
            name: "w".into(),
            dims,
            source: WeightSource::Inline(Arc::new(vec![])),
        });
        let conv = Conv {
            weight: self.0.weights.len() - 1,
            scale: None,
            bias: None,
            cout,
            groups: 1,
            rows: window.clone(),
            cols: window,
            tile: 1,
        };
        self.push(Op::Conv(conv), &[from], cout, t.h() * 2, t.w() * 2)
    }

    fn done(mut self, output: TensorId) -> Graph {
        self.0.outputs.push(output);
        self.0
    }
}

fn dncnn(h: u64, w: u64) -> Graph {
    let (mut net, mut x) = Net::new(1, h, w);
    for _ in 0..19 {
        x = net.conv(&[x], 64, 3);
    }
    let x = net.conv(&[x], 1, 3);
    net.done(x)
}

fn unet(h: u64, w: u64) -> Graph {
    let (mut net, mut x) = Net::new(3, h, w);
    let mut skips = vec![];
    for level in 0..4 {
        x = net.conv(&[x], 64 << level, 3);
        x = net.conv(&[x], 64 << level, 3);
        skips.push(x);
        x = net.pool(x);
    }
    x = net.conv(&[x], 1024, 3);
    x = net.conv(&[x], 1024, 3);
    for level in (0..4).rev() {
        x = net.up(x, 64 << level);
        x = net.conv(&[skips[level], x], 64 << level, 3);
        x = net.conv(&[x], 64 << level, 3);
    }
    let x = net.conv(&[x], 2, 1);
    net.done(x)
}

fn planned(graph: &Graph, strip: u64) -> SafePlan {
    plan(
        graph,
        &Options {
            strip: Some(strip),
            panels: Some(1),
            ..Options::default()
        },
    )
    .expect("a plan")
}

/// Bytes that outlive a turn, and bytes of all pools.
fn carry(graph: &Graph, safe: &SafePlan) -> (u64, u64) {
    let phase = &safe.plan().phases[0];
    let carried = phase
        .sweep
        .rows
        .iter()
        .zip(&phase.carry)
        .map(|(r, c)| graph.tensor(r.tensor).row_bytes() * c);
    (
        carried.sum(),
        phase.pools.iter().map(|p| p.slot_bytes * p.slots).sum(),
    )
}

#[test]
fn a_chain_of_convolutions_carries_two_rows_each() {
    let graph = dncnn(8192, 8192);
    let (carried, pools) = carry(&graph, &planned(&graph, 4));
    // 19 tensors of 2 rows of 2 MiB, and a few rows of one channel
    assert_eq!(carried >> 20, 76);
    // and what a turn of 4 rows has on top: 4 rows of the tensor that is read, 4 of the one that is made
    assert_eq!(pools >> 20, 92);
}

#[test]
fn a_unet_carries_its_skips() {
    let graph = unet(4096, 4096);
    // at 16 rows every level makes whole rows in every turn, and each tensor's carry is what the
    // windows say: 90 rows of 64 channels for the first skip, 90 MiB of the 189
    let (carried, pools) = carry(&graph, &planned(&graph, 16));
    assert_eq!(carried >> 20, 189);
    assert!(pools >> 20 <= 245, "{} MiB", pools >> 20);
    // turns of one row have no more alive at any moment
    let (_, pools) = carry(&graph, &planned(&graph, 1));
    assert!(pools >> 20 <= 225, "{} MiB", pools >> 20);
}

#[test]
fn fronts_end_at_their_heights_and_carry_does_not_grow() {
    for strip in [1, 3, 16] {
        let slots = |h: u64| {
            let graph = unet(h, 64);
            let safe = planned(&graph, strip);
            safe.plan().phases[0]
                .pools
                .iter()
                .map(|p| p.slots)
                .collect::<Vec<_>>()
        };
        assert_eq!(slots(1024), slots(8192), "strip {strip}");
    }
}

#[test]
fn windows_of_axes_are_the_tensors() {
    let graph = unet(64, 64);
    for node in &graph.nodes {
        let Axis { input, output, .. } = graph.axis(node, 0, Side::Rows);
        assert_eq!(output, graph.tensor(node.outputs[0]).h());
        assert_eq!(input, graph.tensor(node.operands[0].0[0].tensor).h());
    }
}

/// However high the image is, a few hundred turns say all about it.
#[test]
fn planning_does_not_step_the_image() {
    for (graph, strips) in [
        (dncnn(100_000, 100_000), [1, 3, 4]),
        (unet(100_000, 100_000), [1, 3, 16]),
    ] {
        for strip in strips {
            let safe = planned(&graph, strip);
            let phase = &safe.plan().phases[0];
            let mut fronts = Fronts::new(&phase.sweep, &phase.pace, strip);
            let mut stepped = 0;
            while !fronts.done() {
                for s in 0..phase.sweep.steps.len() {
                    fronts.advance(s);
                }
                fronts.end_turn();
                fronts.leap();
                stepped += 1;
            }
            assert_eq!(fronts.turn(), phase.turns, "strip {strip}");
            assert!(stepped < 1000, "strip {strip}: {stepped} turns");
        }
    }
    // neither does the planner, nor the checker: they would be at it for a day
    let phase = &planned(&dncnn(100_000_000_000, 64), 1).plan().phases[0].clone();
    assert_eq!(phase.turns, 100_000_000_000 + 20);
}

#[test]
#[ignore = "a time, not a promise: run it in release"]
#[expect(clippy::print_stdout, reason = "it shows times")]
fn planning_does_not_depend_on_the_image() {
    for (name, graph) in [
        ("dncnn", dncnn(100_000, 100_000)),
        ("unet", unet(100_000, 100_000)),
    ] {
        for memory in [None, Some(4u64 << 30), Some(1 << 30)] {
            let start = std::time::Instant::now();
            let result = plan(
                &graph,
                &Options {
                    memory,
                    ..Options::default()
                },
            );
            let seconds = start.elapsed().as_secs_f64();
            match result {
                Ok(safe) => {
                    let p = safe.plan();
                    let phase = &p.phases[0];
                    println!(
                        "{name} {memory:?}: strip {} panels {} peak {} MiB in {seconds:.3} s",
                        phase.strip,
                        phase.panels.len(),
                        p.peak.total() >> 20
                    );
                }
                Err(e) => println!("{name} {memory:?}: {e} in {seconds:.3} s"),
            }
        }
    }
}
