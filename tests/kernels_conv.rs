//! Convolutions on every level of instructions, at sizes below, at and above each tile's edge,
//! against sums in f64; and the same bits whatever the level, the cut and the threads.

use std::ops::Range;

use stripmill::func::Func;
use stripmill::kernels::{
    Cols, ConvShape, Input, Isa, Out, PackedConv, Phase, Program, ProgramArg, Segment, Tail, conv,
    depthwise, depthwise_len, pack_conv, pack_depthwise, packed_len,
};

/// One axis of a convolution.
#[derive(Debug, Clone, Copy)]
struct Axis {
    len: usize,
    kernel: usize,
    stride: usize,
    dilation: usize,
    pad: usize,
}

impl Axis {
    /// Outputs along it.
    fn out(&self, transposed: bool) -> usize {
        let reach = self.dilation * (self.kernel - 1) + 1;
        if transposed {
            (self.len - 1) * self.stride + reach - 2 * self.pad
        } else {
            (self.len + 2 * self.pad - reach) / self.stride + 1
        }
    }

    /// Where tap `k` of output `o` reads, also outside the image; `None` where it meets no input.
    fn position(&self, transposed: bool, o: usize, k: usize) -> Option<i64> {
        let (o, k, pad) = (o as i64, (k * self.dilation) as i64, self.pad as i64);
        let stride = self.stride as i64;
        if !transposed {
            return Some(o * stride + k - pad);
        }
        let at = o + pad - k;
        (at.rem_euclid(stride) == 0).then(|| at.div_euclid(stride))
    }

    /// As [`Axis::position`], but `None` outside the image.
    fn tap(&self, transposed: bool, o: usize, k: usize) -> Option<usize> {
        let at = usize::try_from(self.position(transposed, o, k)?).ok()?;
        (at < self.len).then_some(at)
    }
}

/// A convolution; its input is cut into tensors, of each some channels are read.
#[derive(Debug, Clone)]
struct Case {
    rows: Axis,
    cols: Axis,
    /// Channels of each tensor, and which are read.
    segments: Vec<(usize, Range<usize>)>,
    cout: usize,
    groups: usize,
    transposed: bool,
}

/// A case with its numbers.
struct Data {
    /// Each `[h][w][channels]`.
    tensors: Vec<Vec<f32>>,
    weights: Vec<f32>,
    scale: Option<Vec<f32>>,
    bias: Option<Vec<f32>>,
    /// The tail: nothing, or the absolute value.
    tail: Program,
}

fn case(w: usize, cin: usize, cout: usize, kernel: usize) -> Case {
    let axis = |len| Axis {
        len,
        kernel,
        stride: 1,
        dilation: 1,
        pad: kernel / 2,
    };
    Case {
        rows: axis(3),
        cols: axis(w),
        segments: vec![(cin, 0..cin)],
        cout,
        groups: 1,
        transposed: false,
    }
}

impl Case {
    fn cin(&self) -> usize {
        self.segments.iter().map(|(_, read)| read.len()).sum()
    }

    fn shape(&self) -> ConvShape {
        ConvShape {
            cout: self.cout,
            cin: self.cin(),
            groups: self.groups,
            kh: self.rows.kernel,
            kw: self.cols.kernel,
            transposed: self.transposed,
        }
    }

    fn out(&self) -> (usize, usize) {
        (
            self.rows.out(self.transposed),
            self.cols.out(self.transposed),
        )
    }

    fn data(&self, seed: u32) -> Data {
        let mut state = seed;
        let mut random = |n: usize| -> Vec<f32> {
            let next = || {
                state = state.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
                (state >> 8) as f32 / (1 << 23) as f32 - 1.0
            };
            std::iter::repeat_with(next).take(n).collect()
        };
        let pixels = self.rows.len * self.cols.len;
        let taps = self.rows.kernel * self.cols.kernel;
        let tensors = self
            .segments
            .iter()
            .map(|(channels, _)| random(pixels * channels))
            .collect();
        Data {
            tensors,
            weights: random(self.cin() * self.cout / self.groups * taps),
            scale: (seed % 2 == 1).then(|| random(self.cout)),
            bias: (!seed.is_multiple_of(3)).then(|| random(self.cout)),
            tail: Program::default(),
        }
    }

    /// Index of a weight, `input` counted in the group.
    fn weight(&self, output: usize, input: usize, ky: usize, kx: usize) -> usize {
        let (cin, cout) = (self.cin() / self.groups, self.cout / self.groups);
        let pair = if self.transposed {
            (output / cout * cin + input) * cout + output % cout
        } else {
            output * cin + input
        };
        (pair * self.rows.kernel + ky) * self.cols.kernel + kx
    }

    /// Checks an output against sums in f64.
    fn check(&self, data: &Data, got: &[f32]) {
        let (h, w) = self.out();
        let group = self.cin() / self.groups;
        // Channel of the concatenation -> tensor, channel.
        let places: Vec<(usize, usize)> = (self.segments.iter().enumerate())
            .flat_map(|(t, (_, read))| read.clone().map(move |c| (t, c)))
            .collect();
        for (y, x, co) in (0..h)
            .flat_map(|y| (0..w).map(move |x| (y, x)))
            .flat_map(|(y, x)| (0..self.cout).map(move |co| (y, x, co)))
        {
            let bias = data.bias.as_ref().map_or(0.0, |b| f64::from(b[co]));
            let (mut sum, mut size) = (bias, bias.abs());
            for (ky, kx) in
                (0..self.rows.kernel).flat_map(|ky| (0..self.cols.kernel).map(move |kx| (ky, kx)))
            {
                let Some(iy) = self.rows.tap(self.transposed, y, ky) else {
                    continue;
                };
                let Some(ix) = self.cols.tap(self.transposed, x, kx) else {
                    continue;
                };
                for ci in 0..group {
                    let (t, c) = places[co / (self.cout / self.groups) * group + ci];
                    let at = (iy * self.cols.len + ix) * self.segments[t].0 + c;
                    let weight = data.weights[self.weight(co, ci, ky, kx)];
                    let weight = weight * data.scale.as_ref().map_or(1.0, |s| s[co]);
                    let term = f64::from(weight) * f64::from(data.tensors[t][at]);
                    sum += term;
                    size += term.abs();
                }
            }
            let depth = self.rows.kernel * self.cols.kernel * group + 2;
            let got = f64::from(got[(y * w + x) * self.cout + co]);
            let bound = size * depth as f64 * f64::from(f32::EPSILON / 2.0);
            let error = (got - sum).abs();
            assert!(
                error <= bound,
                "{self:?} at {y}, {x}, {co}: {got}, not {sum}"
            );
        }
    }

    /// The column tables of output columns `x`, of rows that start at column `from`.
    fn phases(&self, x: &Range<usize>, from: usize) -> Vec<Phase> {
        let step = if self.transposed { self.cols.stride } else { 1 };
        let phase = |start: usize| {
            let columns: Vec<usize> = (start..x.end).step_by(step).collect();
            let at = |x: usize, k: usize| self.cols.position(self.transposed, x, k);
            let taps: Vec<usize> = (0..self.cols.kernel)
                .filter(|&k| at(start, k).is_some())
                .collect();
            let tap = |x: usize, k: usize| self.cols.tap(self.transposed, x, k);
            let inside = |&x: &usize| taps.iter().all(|&k| tap(x, k).is_some());
            let first = columns.iter().position(inside).unwrap_or(columns.len());
            let end = columns
                .iter()
                .rposition(inside)
                .map_or(first, |last| last + 1);
            let edges = columns[..first]
                .iter()
                .chain(&columns[end..])
                .flat_map(|&x| {
                    let column = move |&k: &usize| tap(x, k).map_or(-1, |i| (i - from) as i32);
                    taps.iter().map(column).collect::<Vec<_>>()
                });
            let dilation = match taps[..] {
                [a, b, ..] => (at(start, b).unwrap() - at(start, a).unwrap()) as isize,
                _ => 1,
            };
            let first_column = columns
                .get(first)
                .zip(taps.first())
                .and_then(|(&x, &k)| tap(x, k));
            let cols = Cols {
                taps: taps.len(),
                regular: first..end,
                first: first_column.map_or(0, |i| i - from),
                stride: if self.transposed { 1 } else { self.cols.stride },
                dilation,
                edges: edges.collect(),
            };
            Phase {
                start: start - x.start,
                step,
                count: columns.len(),
                taps,
                cols,
            }
        };
        (x.start..x.end.min(x.start + step)).map(phase).collect()
    }

    /// Runs output rows `y` and columns `x` as one call, into `out` of the whole image.
    fn run(
        &self,
        isa: Isa,
        data: &Data,
        packed: &[f32],
        y: Range<usize>,
        x: Range<usize>,
        out: &mut [f32],
    ) {
        let (_, w) = self.out();
        let tap = |x, k| self.cols.tap(self.transposed, x, k);
        let read = x
            .clone()
            .flat_map(|x| (0..self.cols.kernel).filter_map(move |k| tap(x, k)));
        let (from, end) = (
            read.clone().min().unwrap_or(0),
            read.max().map_or(0, |x| x + 1),
        );
        let tables: Vec<Vec<Option<&[f32]>>> = (data.tensors.iter().zip(&self.segments))
            .map(|(tensor, (channels, _))| {
                let row = |i: usize| {
                    &tensor[(i * self.cols.len + from) * channels..][..(end - from) * channels]
                };
                let rows = y.clone().flat_map(|y| {
                    (0..self.rows.kernel).map(move |k| self.rows.tap(self.transposed, y, k))
                });
                rows.map(|i| i.map(row)).collect()
            })
            .collect();
        let segments: Vec<Segment<'_>> = (tables.iter().zip(&self.segments))
            .map(|(rows, (stride, read))| Segment {
                rows,
                stride: *stride,
                first: read.start,
                channels: read.len(),
            })
            .collect();
        let input = Input {
            segments: &segments,
            taps: self.rows.kernel,
        };
        let mut rows: Vec<&mut [f32]> = out
            .chunks_exact_mut(w * self.cout)
            .skip(y.start)
            .take(y.len())
            .map(|row| &mut row[x.start * self.cout..x.end * self.cout])
            .collect();
        let mut out = Out {
            rows: &mut rows,
            channels: self.cout,
        };
        let tail = Tail {
            program: &data.tail,
            extras: &[],
            whole: &[],
        };
        let phases = self.phases(&x, from);
        if self.is_depthwise() {
            let (kh, kw) = (self.rows.kernel, self.cols.kernel);
            depthwise(
                isa,
                packed,
                kh,
                kw,
                &input,
                &phases[0].cols,
                &tail,
                &mut out,
            );
        } else {
            let packed = PackedConv {
                shape: self.shape(),
                weights: packed,
            };
            conv(isa, &packed, &input, &phases, &tail, &mut out);
        }
    }

    fn is_depthwise(&self) -> bool {
        self.groups > 1 && self.groups == self.cin() && self.groups == self.cout && !self.transposed
    }

    fn pack(&self, data: &Data) -> Vec<f32> {
        let (scale, bias) = (data.scale.as_deref(), data.bias.as_deref());
        let mut read = |from: u64, to: &mut [f32]| {
            to.copy_from_slice(&data.weights[from as usize..][..to.len()]);
            Ok(())
        };
        if self.is_depthwise() {
            let (c, kh, kw) = (self.cin(), self.rows.kernel, self.cols.kernel);
            let mut packed = vec![f32::NAN; depthwise_len(c, kh, kw)];
            pack_depthwise(c, kh, kw, scale, bias, &mut read, &mut packed).unwrap();
            return packed;
        }
        let mut packed = vec![f32::NAN; packed_len(&self.shape())];
        pack_conv(&self.shape(), scale, bias, &mut read, &mut packed).unwrap();
        packed
    }

    /// The whole check of a case.
    fn test(&self, seed: u32) {
        let mut data = self.data(seed);
        let packed = self.pack(&data);
        let (h, w) = self.out();
        let mut whole = vec![f32::NAN; h * w * self.cout];
        pool(1).install(|| self.run(Isa::Portable, &data, &packed, 0..h, 0..w, &mut whole));
        self.check(&data, &whole);
        self.test_cuts(&data, &packed, &whole);
        let code = [(Func::Abs, [ProgramArg::Input(0); 3])];
        data.tail = Program::compile(&code, Vec::new()).unwrap();
        whole.iter_mut().for_each(|v| *v = v.abs());
        self.test_cuts(&data, &packed, &whole);
    }

    /// Checks that the bits are those of `whole` on every level, with all threads, however cut.
    fn test_cuts(&self, data: &Data, packed: &[f32], whole: &[f32]) {
        let (h, w) = self.out();
        for isa in Isa::ALL.into_iter().filter(|isa| isa.available()) {
            for threads in [1, 2, 3] {
                let mut out = vec![f32::NAN; whole.len()];
                pool(threads).install(|| self.run(isa, data, packed, 0..h, 0..w, &mut out));
                self.same(whole, &out, isa, threads, w);
            }
            for cut in [1, w / 2, w - w / 3]
                .into_iter()
                .filter(|cut| (1..w).contains(cut))
            {
                let mut out = vec![f32::NAN; whole.len()];
                for y in 0..h {
                    self.run(isa, data, packed, y..y + 1, 0..cut, &mut out);
                    self.run(isa, data, packed, y..y + 1, cut..w, &mut out);
                }
                self.same(whole, &out, isa, 0, cut);
            }
        }
    }

    fn same(&self, want: &[f32], got: &[f32], isa: Isa, threads: usize, cut: usize) {
        let differs = want
            .iter()
            .zip(got)
            .position(|(a, b)| a.to_bits() != b.to_bits());
        if let Some(i) = differs {
            let (x, co) = (i / self.cout, i % self.cout);
            let name = isa.name();
            panic!(
                "{self:?}: {name}, {threads} threads, cut at {cut}: pixel {x}, channel {co}: {} is not {}",
                got[i], want[i]
            );
        }
    }
}

fn pool(threads: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .unwrap()
}

#[test]
fn widths_around_the_tiles() {
    for w in (1..=17).chain([27, 28, 29, 41, 43]) {
        case(w, 3, 5, 3).test(w as u32);
        case(w, 5, 33, 1).test(w as u32);
    }
}

#[test]
fn channels_around_the_blocks() {
    for cout in [
        1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 96, 100,
    ] {
        case(15, 4, cout, 3).test(cout as u32);
    }
    for cin in [1, 2, 15, 16, 17, 1023, 1024, 1025, 2050] {
        case(9, cin, 18, 3).test(cin as u32);
        case(9, cin, 18, 1).test(cin as u32);
    }
}

#[test]
fn strides_dilations_and_pads() {
    for (kernel, stride, dilation, pad) in [
        (3, 2, 1, 1),
        (3, 2, 1, 0),
        (1, 2, 1, 0),
        (2, 2, 1, 0),
        (7, 2, 1, 3),
        (7, 4, 1, 2),
        (3, 1, 2, 2),
        (3, 1, 4, 4),
        (3, 3, 2, 1),
        (5, 1, 1, 2),
        (5, 1, 3, 0),
        (3, 1, 1, 4),
        (2, 1, 1, 1),
        (9, 1, 1, 4),
    ] {
        let axis = |len| Axis {
            len,
            kernel,
            stride,
            dilation,
            pad,
        };
        let mut case = case(1, 6, 20, 1);
        (case.rows, case.cols) = (axis(14), axis(33));
        case.test(kernel as u32 + 1);
        // The axes differ.
        case.rows = Axis {
            len: 6,
            kernel: 2,
            stride: 1,
            dilation: 3,
            pad: 1,
        };
        case.test(kernel as u32);
    }
}

#[test]
fn segments_and_groups() {
    let segments = |list: &[(usize, Range<usize>)]| list.to_vec();
    for (list, cout, groups) in [
        (segments(&[(8, 2..7)]), 6, 1),
        (segments(&[(4, 0..4), (6, 1..6), (3, 2..3)]), 17, 1),
        (segments(&[(64, 0..64), (32, 0..32)]), 40, 1),
        (segments(&[(8, 0..8)]), 8, 2),
        (segments(&[(5, 0..5), (9, 2..9)]), 24, 3),
        (segments(&[(5, 0..5), (9, 2..9)]), 12, 12),
        (segments(&[(6, 0..6)]), 12, 6),
        (segments(&[(70, 1..67)]), 132, 2),
        (segments(&[(96, 0..96)]), 192, 4),
        (segments(&[(1030, 3..1030), (5, 0..5)]), 9, 1),
        (segments(&[(1050, 3..1050), (40, 2..23)]), 3, 1),
        (segments(&[(40, 3..20), (30, 0..30)]), 2, 1),
        (segments(&[(50, 1..49)]), 3, 3),
        (segments(&[(70, 0..70), (9, 0..9)]), 4, 1),
    ] {
        let mut case = case(16, 1, cout, 3);
        (case.segments, case.groups) = (list, groups);
        case.test(cout as u32);
        case.cols = Axis {
            len: 31,
            kernel: 3,
            stride: 2,
            dilation: 2,
            pad: 1,
        };
        case.test(cout as u32 + 1);
    }
}

#[test]
fn transposed() {
    for (kernel, stride, dilation, pad) in [
        (2, 2, 1, 0),
        (4, 2, 1, 1),
        (3, 2, 1, 1),
        (3, 1, 1, 1),
        (1, 3, 1, 0),
        (5, 3, 1, 0),
        (3, 2, 2, 1),
        (3, 3, 2, 2),
        (4, 4, 1, 0),
        (6, 2, 1, 2),
    ] {
        let axis = |len| Axis {
            len,
            kernel,
            stride,
            dilation,
            pad,
        };
        for (list, cout, groups) in [
            (vec![(5, 0..5)], 3, 1),
            (vec![(8, 0..8), (5, 1..5)], 36, 2),
            (vec![(16, 0..16)], 33, 1),
            (vec![(16, 0..16), (17, 0..17)], 3, 1),
        ] {
            let (rows, cols, segments) = (axis(4), axis(17), list);
            let case = Case {
                rows,
                cols,
                segments,
                cout,
                groups,
                transposed: true,
            };
            case.test(kernel as u32);
        }
    }
}

#[test]
fn depthwise_around_the_tiles() {
    for c in [2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 130] {
        for w in [1, 2, 3, 7, 8, 9, 10, 17, 30] {
            let mut case = case(w, c, c, 3);
            case.groups = c;
            case.test((c + w) as u32);
        }
    }
    for (kernel, stride, dilation, pad) in [
        (3, 2, 1, 1),
        (5, 1, 1, 2),
        (5, 2, 1, 2),
        (7, 1, 1, 3),
        (3, 1, 2, 2),
        (2, 2, 1, 0),
        (1, 1, 1, 0),
    ] {
        let axis = |len| Axis {
            len,
            kernel,
            stride,
            dilation,
            pad,
        };
        for segments in [vec![(40, 0..40)], vec![(50, 3..39), (4, 0..4)]] {
            let (rows, cols) = (axis(9), axis(41));
            let case = Case {
                rows,
                cols,
                segments,
                cout: 40,
                groups: 40,
                transposed: false,
            };
            case.test(kernel as u32);
        }
    }
}

#[test]
fn few_pixels_and_many_channels_are_cut_by_channels() {
    let mut case = case(2, 40, 300, 3);
    case.rows.len = 1;
    case.test(1);
    case.groups = 10;
    case.test(2);
}
