//! Kernels over strips as a run would call them, as shares of the multiply-add peak measured
//! beside them. `cargo bench --bench kernels [-- FILTER]`; `STRIPMILL_ISA` lowers the level.

#![allow(clippy::print_stdout, reason = "a report")]

use std::hint::black_box;
use std::ops::{Deref, DerefMut};
use std::time::{Duration, Instant};

use rayon::prelude::*;
use stripmill::func::Func;
use stripmill::kernels::{
    Cols, ConvShape, Input, Isa, Out, PackedConv, Phase, Program, ProgramArg, Segment, Tail, Tiles,
    conv, depthwise, depthwise_len, packed_len, winograd, winograd_len,
};

/// Which kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Direct,
    Winograd,
    Depthwise,
}

/// A convolution over a strip of `rows` output rows, padded to the input's size over the stride.
struct Layer {
    name: &'static str,
    rows: usize,
    width: usize,
    cin: usize,
    cout: usize,
    kernel: usize,
    stride: usize,
    kind: Kind,
    /// Whether a Relu follows.
    relu: bool,
}

const fn layer(
    name: &'static str,
    [rows, width]: [usize; 2],
    [cin, cout]: [usize; 2],
    kernel: usize,
    stride: usize,
) -> Layer {
    Layer {
        name,
        rows,
        width,
        cin,
        cout,
        kernel,
        stride,
        kind: Kind::Direct,
        relu: false,
    }
}

const fn tiled(name: &'static str, size: [usize; 2], channels: [usize; 2]) -> Layer {
    Layer {
        kind: Kind::Winograd,
        ..layer(name, size, channels, 3, 1)
    }
}

const LAYERS: &[Layer] = &[
    layer("3x3 64 to 64, 1024 wide", [8, 1024], [64, 64], 3, 1),
    Layer {
        relu: true,
        ..layer("3x3 64 to 64, 1024, Relu", [8, 1024], [64, 64], 3, 1)
    },
    layer("3x3 128 to 128, 512 wide", [8, 512], [128, 128], 3, 1),
    layer("3x3 512 to 512, 64 wide", [8, 64], [512, 512], 3, 1),
    layer("3x3 512 to 512, 14 wide", [14, 14], [512, 512], 3, 1),
    tiled("F4 64 to 64, 1024 wide", [8, 1024], [64, 64]),
    tiled("F4 64 to 64, 1024, 4 rows", [4, 1024], [64, 64]),
    Layer {
        relu: true,
        ..tiled("F4 64 to 64, 1024, Relu", [8, 1024], [64, 64])
    },
    tiled("F4 128 to 128, 512 wide", [8, 512], [128, 128]),
    tiled("F4 256 to 256, 256 wide", [32, 256], [256, 256]),
    tiled("F4 512 to 512, 64 wide", [64, 64], [512, 512]),
    tiled("F4 1024 to 1024, 48 wide", [48, 48], [1024, 1024]),
    tiled("F4 64 to 32, 224 wide", [8, 224], [64, 32]),
    tiled("F4 160 to 32, 224 wide", [8, 224], [160, 32]),
    tiled("F4 192 to 64, 224 wide", [8, 224], [192, 64]),
    tiled("F4 16 to 16, 512 wide", [8, 512], [16, 16]),
    tiled("F4 32 to 32, 512 wide", [8, 512], [32, 32]),
    tiled("F4 64 to 48, 512 wide", [8, 512], [64, 48]),
    layer("3x3 s2 64 to 128, 512 wide", [8, 512], [64, 128], 3, 2),
    layer("3x3 3 to 64, 1024 wide", [8, 1024], [3, 64], 3, 1),
    Layer {
        relu: true,
        ..layer("3x3 3 to 64, 1024, Relu", [8, 1024], [3, 64], 3, 1)
    },
    layer("7x7 s2 3 to 64, 512 wide", [8, 512], [3, 64], 7, 2),
    layer("1x1 64 to 256, 256 wide", [8, 256], [64, 256], 1, 1),
    Layer {
        relu: true,
        ..layer("1x1 64 to 256, 256, Relu", [8, 256], [64, 256], 1, 1)
    },
    layer("1x1 256 to 64, 256 wide", [8, 256], [256, 64], 1, 1),
    layer("1x1 512 to 2048, 32 wide", [8, 32], [512, 2048], 1, 1),
    layer("1x1 144 to 24, 512 wide", [8, 512], [144, 24], 1, 1),
    layer("3x3 64 to 32, 224 wide", [8, 224], [64, 32], 3, 1),
    layer("3x3 64 to 48, 512 wide", [8, 512], [64, 48], 3, 1),
    layer("3x3 64 to 3, 1024 wide", [8, 1024], [64, 3], 3, 1),
    layer("9x9 32 to 3, 1024 wide", [8, 1024], [32, 3], 9, 1),
    Layer {
        kind: Kind::Depthwise,
        ..layer("depthwise 3x3 144, 512 wide", [8, 512], [144, 144], 3, 1)
    },
    Layer {
        kind: Kind::Depthwise,
        ..layer("depthwise 3x3 s2 96, 512 wide", [8, 512], [96, 96], 3, 2)
    },
    Layer {
        kind: Kind::Depthwise,
        ..layer("depthwise 3x3 144, 64 wide", [4, 64], [144, 144], 3, 1)
    },
    Layer {
        kind: Kind::Depthwise,
        ..layer("depthwise 5x5 240, 128 wide", [8, 128], [240, 240], 5, 1)
    },
];

/// Rows and columns of a Winograd tile.
const TILE: usize = 4;

/// Floats that begin at a cache line, as a run's buffers do.
struct Aligned {
    floats: Vec<f32>,
    first: usize,
    len: usize,
}

impl Aligned {
    fn new(len: usize) -> Self {
        let floats = vec![0.0; len + 16];
        let first = floats.as_ptr().align_offset(64);
        Aligned { floats, first, len }
    }
}

impl Deref for Aligned {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.floats[self.first..][..self.len]
    }
}

impl DerefMut for Aligned {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.floats[self.first..][..self.len]
    }
}

impl Layer {
    fn cols(&self) -> Cols {
        let (k, s, pad) = (
            self.kernel as i64,
            self.stride as i64,
            self.kernel as i64 / 2,
        );
        let input = self.width as i64 * s;
        let inside = |x: i64| x * s >= pad && x * s - pad + k <= input;
        let first = (0..self.width as i64).find(|&x| inside(x)).unwrap();
        let end = (0..self.width as i64).rfind(|&x| inside(x)).unwrap() + 1;
        let edges = (0..first).chain(end..self.width as i64).flat_map(|x| {
            (0..k).map(move |k| x * s - pad + k).map(|i| {
                if (0..input).contains(&i) {
                    i as i32
                } else {
                    -1
                }
            })
        });
        Cols {
            taps: self.kernel,
            regular: first as usize..end as usize,
            first: (first * s - pad) as usize,
            stride: self.stride,
            dilation: 1,
            edges: edges.collect(),
        }
    }

    /// The columns under each tile.
    fn tiles(&self) -> Cols {
        let (width, count) = (self.width as i32, self.width.div_ceil(TILE));
        let inside = |x: usize| x > 0 && x * TILE + TILE < self.width;
        let end = (0..count).rfind(|&x| inside(x)).map_or(1, |x| x + 1);
        let edges = (0..count).filter(|x| !(1..end).contains(x));
        let taps = |x: usize| (0..TILE + 2).map(move |k| (x * TILE + k) as i32 - 1);
        let inside = |i: i32| if (0..width).contains(&i) { i } else { -1 };
        Cols {
            taps: TILE + 2,
            regular: 1..end,
            first: TILE - 1,
            stride: TILE,
            dilation: 1,
            edges: edges.flat_map(taps).map(inside).collect(),
        }
    }

    /// Multiply-adds of a call.
    fn work(&self) -> usize {
        let depth = match self.kind {
            Kind::Depthwise => 1,
            _ => self.cin,
        };
        self.rows * self.width * self.cout * depth * self.kernel * self.kernel
    }

    /// Seconds of a call.
    fn measure(&self, isa: Isa) -> f64 {
        let input_rows = (self.rows - 1) * self.stride + self.kernel;
        let row = self.width * self.stride * self.cin;
        let taps = match self.kind {
            Kind::Winograd => TILE + 2,
            _ => self.kernel,
        };
        let mut input = Aligned::new(input_rows * row);
        let values = (0..).map(|i: usize| (i % 17) as f32 * 0.1 - 0.8);
        input.iter_mut().zip(values).for_each(|(to, v)| *to = v);
        let mut output = Aligned::new(self.rows * self.width * self.cout);
        let table: Vec<Option<&[f32]>> = (0..self.rows)
            .step_by(if self.kind == Kind::Winograd { TILE } else { 1 })
            .flat_map(|y| (0..taps).map(move |k| y * self.stride + k))
            .map(|y| Some(&input[y * row..][..row]))
            .collect();
        let segments = [Segment {
            rows: &table,
            stride: self.cin,
            first: 0,
            channels: self.cin,
        }];
        let input = Input {
            segments: &segments,
            taps,
        };
        let mut rows: Vec<&mut [f32]> = output.chunks_exact_mut(self.width * self.cout).collect();
        let mut out = Out {
            rows: &mut rows,
            channels: self.cout,
        };
        let relu = [(Func::Relu, [ProgramArg::Input(0); 3])];
        let program = Program::compile(if self.relu { &relu } else { &[] }, Vec::new());
        let program = program.expect("a program");
        let tail = Tail {
            program: &program,
            extras: &[],
            whole: &[],
        };
        let k = self.kernel;
        if self.kind == Kind::Depthwise {
            let mut weights = Aligned::new(depthwise_len(self.cin, k, k));
            weights.fill(0.01);
            let cols = self.cols();
            return best(|| depthwise(isa, &weights, k, k, &input, &cols, &tail, &mut out));
        }
        let (cin, cout) = (self.cin, self.cout);
        let shape = ConvShape {
            cout,
            cin,
            groups: 1,
            kh: k,
            kw: k,
            transposed: false,
        };
        let mut weights = Aligned::new(packed_len(&shape));
        weights.fill(0.01);
        let packed = PackedConv {
            shape,
            weights: &weights,
        };
        if self.kind == Kind::Winograd {
            let tiles = Tiles {
                size: TILE,
                before: [0, 0],
                cols: self.tiles(),
            };
            let threads = rayon::current_num_threads();
            let mut workspace = Aligned::new(winograd_len(&shape, TILE, threads));
            return best(|| {
                winograd(
                    isa,
                    &packed,
                    &input,
                    &tiles,
                    &tail,
                    &mut out,
                    &mut workspace,
                );
            });
        }
        let (taps, cols) = ((0..k).collect(), self.cols());
        let phases = [Phase {
            start: 0,
            step: 1,
            taps,
            cols,
            count: self.width,
        }];
        best(|| conv(isa, &packed, &input, &phases, &tail, &mut out))
    }
}

/// The least seconds of a call, over a quarter of a second.
fn best(mut f: impl FnMut()) -> f64 {
    f();
    let start = Instant::now();
    let mut best = f64::INFINITY;
    while start.elapsed() < Duration::from_millis(250) {
        let call = Instant::now();
        f();
        best = best.min(call.elapsed().as_secs_f64());
    }
    best
}

/// Multiply-adds per second of all threads of the pool, from registers.
fn peak() -> f64 {
    const STEPS: usize = 20_000;
    let threads = rayon::current_num_threads();
    let lanes = std::sync::atomic::AtomicUsize::new(0);
    let seconds = best(|| {
        (0..threads).into_par_iter().with_max_len(1).for_each(|_| {
            lanes.store(chains(STEPS), std::sync::atomic::Ordering::Relaxed);
        });
    });
    (lanes.into_inner() * STEPS * threads) as f64 / seconds
}

/// Independent chains of multiply-adds, `steps` long; gives how many there were.
fn chains(steps: usize) -> usize {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") {
        // SAFETY: the feature was detected.
        #[expect(unsafe_code, reason = "a peak needs the widest instructions")]
        return unsafe { wide(steps) };
    }
    narrow(steps)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn wide(steps: usize) -> usize {
    use std::arch::x86_64::*;
    let mut sums = [_mm512_set1_ps(0.5); 24];
    let (a, b) = (
        _mm512_set1_ps(black_box(0.999)),
        _mm512_set1_ps(black_box(0.001)),
    );
    for _ in 0..steps {
        for sum in &mut sums {
            *sum = _mm512_fmadd_ps(*sum, a, b);
        }
    }
    black_box(sums);
    24 * 16
}

fn narrow(steps: usize) -> usize {
    let mut sums = [0.5f32; 64];
    let (a, b) = (black_box(0.999f32), black_box(0.001));
    for _ in 0..steps {
        for sum in &mut sums {
            *sum = *sum * a + b;
        }
    }
    black_box(sums);
    64
}

fn main() {
    let filter = std::env::args()
        .skip(1)
        .find(|arg| !arg.starts_with('-'))
        .unwrap_or_default();
    let isa = Isa::detect().expect("STRIPMILL_ISA");
    for threads in [1, 2] {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .expect("threads");
        pool.install(|| {
            for layer in LAYERS.iter().filter(|layer| layer.name.contains(&filter)) {
                let peak = peak();
                let rate = layer.work() as f64 / layer.measure(isa);
                let share = 100.0 * rate / peak;
                let name = layer.name;
                println!(
                    "{} {threads} threads  {name:32} {:7.1} GFLOP/s {share:5.1} % of peak",
                    isa.name(),
                    2e-9 * rate
                );
            }
        });
    }
}
