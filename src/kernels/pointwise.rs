//! Element-wise programs: compiled once, run over blocks of finished pixels while they are in cache.

use std::ops::Range;

use super::arch::parts::Part;
use super::arch::{Isa, Kernel, Simd};
use super::function::{binary, ternary, unary};
use super::{Extra, Input, Out, Tail, channel_runs};
use crate::error::{Error, Result};
use crate::func::Func;

/// A compiled chain of functions.
#[derive(Debug, Clone, Default)]
pub struct Program {
    code: Vec<Inst>,
    vectors: Vec<Vec<f32>>,
    /// Registers that values go to before the last.
    registers: usize,
}

/// An operand of a program's instruction, before compilation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ProgramArg {
    /// Input 0 is the kernel's result, input `k > 0` the tail's extra operand `k − 1`.
    Input(u32),
    /// The value of an earlier instruction.
    Reg(u32),
    /// The same number everywhere.
    Scalar(f32),
    /// The element's channel in vector `_`.
    Channel(u32),
    /// The element's channel in the tail's whole operand `_`.
    Whole(u32),
}

#[derive(Debug, Clone, Copy)]
struct Inst {
    func: Func,
    args: [ProgramArg; 3],
    /// The register that the value goes to.
    to: usize,
}

/// Values that can be alive at a time.
const REGISTERS: usize = 8;
/// Floats that are worked on at a time.
const CHUNK: usize = 256;

type Line = [f32; CHUNK];

impl Program {
    /// Gives each value a register: the program's values are numbered by instruction.
    ///
    /// # Errors
    /// Where an operand is not there yet, or more values are alive at a time than there are registers.
    pub fn compile(code: &[(Func, [ProgramArg; 3])], vectors: Vec<Vec<f32>>) -> Result<Self> {
        let mut last_use = vec![0; code.len()];
        for (i, (func, args)) in code.iter().enumerate() {
            for arg in &args[..func.arity()] {
                match *arg {
                    ProgramArg::Reg(k) if (k as usize) < i => last_use[k as usize] = i,
                    ProgramArg::Reg(k) => {
                        return Err(Error::model(
                            "",
                            format!("value {k} is used before it is made"),
                        ));
                    }
                    ProgramArg::Channel(k) if k as usize >= vectors.len() => {
                        return Err(Error::model("", format!("there is no vector {k}")));
                    }
                    _ => {}
                }
            }
        }
        let mut owner: [Option<usize>; REGISTERS] = [None; REGISTERS];
        let mut register = vec![0; code.len()];
        let mut compiled = Vec::with_capacity(code.len());
        for (i, (func, args)) in code.iter().enumerate() {
            let args = args.map(|arg| match arg {
                ProgramArg::Reg(k) if (k as usize) < i => {
                    ProgramArg::Reg(register[k as usize] as u32)
                }
                arg => arg,
            });
            // a value's register is free for the instruction that uses it last
            let free = |o: &Option<usize>| o.is_none_or(|v| last_use[v] <= i);
            let too_many = || {
                Error::model(
                    "",
                    format!("more than {REGISTERS} values of a chain are alive at a time"),
                )
            };
            let to = owner.iter().position(free).ok_or_else(too_many)?;
            owner[to] = Some(i);
            register[i] = to;
            compiled.push(Inst {
                func: *func,
                args,
                to,
            });
        }
        let before = compiled.len().saturating_sub(1);
        let registers = compiled[..before]
            .iter()
            .map(|inst| inst.to + 1)
            .max()
            .unwrap_or(0);
        Ok(Program {
            code: compiled,
            vectors,
            registers,
        })
    }

    /// Whether it does nothing.
    pub fn is_empty(&self) -> bool {
        self.code.is_empty()
    }
}

impl Tail<'_> {
    /// Applies the tail to `pixels`: columns `cols` of row `row` of the call, all channels.
    #[inline(always)]
    pub(crate) fn apply<S: Simd>(&self, s: S, row: usize, cols: Range<usize>, pixels: &mut [f32]) {
        if !self.program.is_empty() && !cols.is_empty() {
            let channels = pixels.len() / cols.len();
            let at = 0..channels;
            s.run(Apply {
                tail: self,
                row,
                cols,
                channels: at,
                total: channels,
                pixels,
            });
        }
    }

    /// Applies the tail to columns `cols` of row `row` of the call, as far as they are in `part`.
    #[inline(always)]
    pub(crate) fn apply_part<S: Simd>(
        &self,
        s: S,
        row: usize,
        cols: Range<usize>,
        part: &mut Part<'_>,
    ) {
        if self.program.is_empty() {
            return;
        }
        let (channels, total) = (part.channels(), part.total());
        if channels.len() == total {
            return self.apply(s, row, cols.clone(), part.pixels(row, cols));
        }
        for x in cols {
            let (cols, channels) = (x..x + 1, channels.clone());
            s.run(Apply {
                tail: self,
                row,
                cols: cols.clone(),
                channels,
                total,
                pixels: part.pixels(row, cols),
            });
        }
    }
}

struct Apply<'a> {
    tail: &'a Tail<'a>,
    row: usize,
    cols: Range<usize>,
    /// The channels that a pixel of `pixels` has, of `total`.
    channels: Range<usize>,
    total: usize,
    pixels: &'a mut [f32],
}

/// Some elements: of whole pixels, or of a part of one pixel.
#[derive(Clone, Copy)]
struct Span {
    row: usize,
    column: usize,
    channel: usize,
    /// Channels of each pixel.
    channels: usize,
    /// Channels of the output's pixels.
    total: usize,
    len: usize,
}

/// Where an operand's elements are.
#[derive(Clone, Copy)]
enum Source<'a> {
    Line(&'a [f32]),
    Splat(f32),
}

impl Kernel for Apply<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        // lines are cleared on each call: no more of them than the program needs
        match self.tail.program.registers {
            0 => self.chunks(s, &mut []),
            1 | 2 => self.chunks(s, &mut [[0.0; CHUNK]; 2]),
            _ => self.chunks(s, &mut [[0.0; CHUNK]; REGISTERS]),
        }
    }
}

impl Apply<'_> {
    #[inline(always)]
    fn chunks<S: Simd>(self, s: S, registers: &mut [Line]) {
        let Apply {
            tail,
            row,
            cols,
            channels,
            total,
            pixels,
        } = self;
        let each = channels.len();
        let mut scratch = [[0.0; CHUNK]; 3];
        let mut result = [0.0; CHUNK];
        let (step, whole) = if each > CHUNK {
            (CHUNK, false)
        } else {
            (CHUNK / each * each, true)
        };
        let mut at = 0;
        while at < pixels.len() {
            let end = if whole {
                pixels.len()
            } else {
                (at / each + 1) * each
            };
            let len = step.min(end - at);
            let (column, channel) = (cols.start + at / each, channels.start + at % each);
            let span = Span {
                row,
                column,
                channel,
                channels: each.min(len),
                total,
                len,
            };
            let last = tail.program.code.len() - 1;
            for (i, inst) in tail.program.code.iter().enumerate() {
                let [a, b, c] = &mut scratch;
                let source = |arg, scratch| {
                    tail.source(arg, span, &pixels[at..at + len], registers, scratch)
                };
                let arity = inst.func.arity();
                let x = source(inst.args[0], a);
                let y = if arity > 1 {
                    source(inst.args[1], b)
                } else {
                    x
                };
                let z = if arity > 2 {
                    source(inst.args[2], c)
                } else {
                    x
                };
                evaluate(s, inst.func, [x, y, z], &mut result[..len]);
                let to = if i == last {
                    &mut pixels[at..at + len]
                } else {
                    &mut registers[inst.to][..len]
                };
                to.copy_from_slice(&result[..len]);
            }
            at += len;
        }
    }
}

impl Tail<'_> {
    /// The elements of operand `arg` over `span`; `here` are input 0's, `scratch` has room for those that
    /// are not adjacent anywhere.
    #[inline(always)]
    fn source<'s>(
        &'s self,
        arg: ProgramArg,
        span: Span,
        here: &'s [f32],
        registers: &'s [Line],
        scratch: &'s mut Line,
    ) -> Source<'s> {
        match arg {
            ProgramArg::Scalar(v) => Source::Splat(v),
            ProgramArg::Reg(r) => Source::Line(&registers[r as usize][..span.len]),
            ProgramArg::Input(0) => Source::Line(here),
            ProgramArg::Input(k) => extra(&self.extras[k as usize - 1], span, scratch),
            ProgramArg::Channel(k) => cycle(&self.program.vectors[k as usize], span, scratch),
            ProgramArg::Whole(k) => cycle(self.whole[k as usize], span, scratch),
        }
    }
}

/// The elements of a row operand over `span`.
#[inline(always)]
fn extra<'s>(extra: &'s Extra<'_>, span: Span, scratch: &'s mut Line) -> Source<'s> {
    let channels: usize = extra.input.segments.iter().map(|s| s.channels).sum();
    let column = |x: usize| if extra.width == 1 { 0 } else { x };
    let pixels = span.len / span.channels;
    if let [segment] = extra.input.segments
        && let Some(row) = segment.rows[span.row]
    {
        let adjacent = segment.channels == segment.stride && channels == span.total;
        if channels == span.total && pixels == 1
            || adjacent && extra.width != 1 && span.channels == span.total
        {
            let from = column(span.column) * segment.stride + segment.first + span.channel;
            return Source::Line(&row[from..from + span.len]);
        }
    }
    for (p, pixel) in scratch[..span.len]
        .chunks_exact_mut(span.channels)
        .enumerate()
    {
        for run in channel_runs(&extra.input) {
            let Some(row) = run.rows[span.row] else {
                continue;
            };
            let from = column(span.column + p) * run.stride + run.first;
            if channels == 1 {
                pixel.fill(row[from]);
                continue;
            }
            // the channels that the span and the run share
            let (start, end) = (
                span.channel.max(run.to),
                (span.channel + span.channels).min(run.to + run.channels),
            );
            if start < end {
                let part = &row[from + start - run.to..from + end - run.to];
                pixel[start - span.channel..end - span.channel].copy_from_slice(part);
            }
        }
    }
    Source::Line(&scratch[..span.len])
}

/// A channel vector over `span`, pixel after pixel.
#[inline(always)]
fn cycle<'s>(vector: &'s [f32], span: Span, scratch: &'s mut Line) -> Source<'s> {
    if let [v] = vector {
        return Source::Splat(*v);
    }
    let part = &vector[span.channel..span.channel + span.channels];
    if span.len == span.channels {
        return Source::Line(part);
    }
    for pixel in scratch[..span.len].chunks_exact_mut(span.channels) {
        pixel.copy_from_slice(part);
    }
    Source::Line(&scratch[..span.len])
}

/// `func` of `args`, element by element.
#[inline(always)]
fn evaluate<S: Simd>(s: S, func: Func, args: [Source<'_>; 3], out: &mut [f32]) {
    let load = |arg: Source<'_>, i: usize, n: usize| match arg {
        Source::Splat(v) => s.splat(v),
        Source::Line(line) if n == S::LANES => s.load(&line[i..i + n]),
        Source::Line(line) => s.load_partial(&line[i..i + n]),
    };
    macro_rules! each {
        ($apply:expr) => {
            for i in (0..out.len()).step_by(S::LANES) {
                let n = S::LANES.min(out.len() - i);
                let v = $apply(i, n);
                s.store_partial(v, &mut out[i..i + n]);
            }
        };
    }
    match func.arity() {
        1 => unary!(s, func, |f| each!(|i, n| f(load(args[0], i, n)))),
        2 => binary!(s, func, |f| each!(|i, n| f(
            load(args[0], i, n),
            load(args[1], i, n)
        ))),
        _ => ternary!(s, func, |f| each!(|i, n| f(
            load(args[0], i, n),
            load(args[1], i, n),
            load(args[2], i, n)
        ))),
    }
}

/// Makes all rows of `out`: operand 0's channels side by side, then the tail.
pub fn pointwise(isa: Isa, input: &Input<'_>, tail: &Tail<'_>, out: &mut Out<'_, '_>) {
    super::shuffle::shuffle(isa, tail, out, |row, x, pixel| {
        for run in channel_runs(input) {
            if let Some(line) = run.rows[row] {
                let from = x * run.stride + run.first;
                pixel[run.to..run.to + run.channels]
                    .copy_from_slice(&line[from..from + run.channels]);
            }
        }
    });
}
