//! Tails: programs of many functions over operands of every form, against the same arithmetic done
//! element by element; the bits must be equal.

use std::ops::Range;

use stripmill::func::Func::{self, *};
use stripmill::kernels::{Extra, Isa, Out, Program, ProgramArg, Tail, pointwise};

use super::data::{Size, Tensor, check, element, operand, random, same, with_input};
use ProgramArg::{Channel, Input, Reg, Scalar, Whole};

/// A program with all that it reads. Extras are tensors of the output's height, with its width or 1
/// and its channels or 1.
struct Case {
    size: Size,
    first: Vec<Tensor>,
    extras: Vec<(Vec<Tensor>, usize)>,
    vectors: Vec<Vec<f32>>,
    whole: Vec<Vec<f32>>,
    code: Vec<(Func, [ProgramArg; 3])>,
}

fn args(list: &[ProgramArg]) -> [ProgramArg; 3] {
    let mut all = [Scalar(0.0); 3];
    all[..list.len()].copy_from_slice(list);
    all
}

impl Case {
    /// Operands of every form, and no code.
    fn new(h: usize, w: usize, channels: usize, parts: bool) -> Case {
        let extra = |seed, w, c, parts| (operand(seed, [h, w], c, parts), w);
        Case {
            size: Size { h, w, channels },
            first: operand(1, [h, w], channels, parts),
            extras: vec![
                extra(11, w, channels, false),
                extra(21, w, channels, true),
                extra(31, w, 1, false),
                extra(41, 1, channels, parts),
                extra(51, 1, 1, false),
            ],
            vectors: vec![random(61, channels), random(62, channels)],
            whole: vec![random(71, channels), vec![0.375]],
            code: Vec::new(),
        }
    }

    fn push(&mut self, func: Func, list: &[ProgramArg]) -> ProgramArg {
        self.code.push((func, args(list)));
        Reg(self.code.len() as u32 - 1)
    }

    /// The value of the program at an element.
    fn value(&self, y: usize, x: usize, c: usize) -> f32 {
        let mut values = Vec::new();
        for (func, args) in &self.code {
            let [a, b, d] = args.map(|arg| match arg {
                Input(0) => element(&self.first, y, x, c),
                Input(k) => {
                    let (operand, w) = &self.extras[k as usize - 1];
                    let single = operand.iter().map(|t| t.read.len()).sum::<usize>() == 1;
                    let (x, c) = (if *w == 1 { 0 } else { x }, if single { 0 } else { c });
                    element(operand, y, x, c)
                }
                Reg(k) => values.get(k as usize).copied().unwrap_or(0.0),
                Scalar(v) => v,
                Channel(k) => self.vectors[k as usize][c],
                Whole(k) => *self.whole[k as usize]
                    .get(c)
                    .unwrap_or(&self.whole[k as usize][0]),
            });
            values.push(match func {
                Add => a + b,
                Sub => a - b,
                Mul => a * b,
                MulAdd => a.mul_add(b, d),
                Max => {
                    if b > a {
                        b
                    } else {
                        a
                    }
                }
                PRelu => {
                    if a < 0.0 {
                        a * b
                    } else {
                        a
                    }
                }
                Relu => {
                    if 0.0 > a {
                        0.0
                    } else {
                        a
                    }
                }
                Where => {
                    if a != 0.0 {
                        b
                    } else {
                        d
                    }
                }
                Less => {
                    if a < b {
                        1.0
                    } else {
                        0.0
                    }
                }
                Neg => -a,
                _ => unreachable!("{func:?}"),
            });
        }
        values
            .last()
            .copied()
            .unwrap_or_else(|| element(&self.first, y, x, c))
    }

    fn make(&self, isa: Isa, rows: Range<usize>, cols: Range<usize>, out: &mut Out<'_, '_>) {
        let program = Program::compile(&self.code, self.vectors.clone()).unwrap();
        let whole: Vec<&[f32]> = self.whole.iter().map(Vec::as_slice).collect();
        let mut extras = Vec::new();
        self.with_extras(&mut extras, &rows, &cols, &mut |extras| {
            let tail = Tail {
                program: &program,
                extras,
                whole: &whole,
            };
            with_input(&self.first, &same(&rows), cols.clone(), |first| {
                pointwise(isa, first, &tail, out);
            });
        });
    }

    /// Calls `f` with all extras, of which `done` has the first.
    fn with_extras(
        &self,
        done: &mut Vec<Extra<'_>>,
        rows: &Range<usize>,
        cols: &Range<usize>,
        f: &mut dyn FnMut(&[Extra<'_>]),
    ) {
        let Some((operand, w)) = self.extras.get(done.len()) else {
            return f(done);
        };
        let window = if *w == 1 { 0..1 } else { cols.clone() };
        with_input(operand, &same(rows), window, |&input| {
            let width = if *w == 1 { 1 } else { cols.len() };
            let mut all: Vec<Extra<'_>> = done.clone();
            all.push(Extra { input, width });
            self.with_extras(&mut all, rows, cols, f);
        });
    }

    fn check(&self, what: &str) {
        let what = format!("{what}, {:?}", self.size);
        check(
            &what,
            self.size,
            |isa, rows, cols, out| self.make(isa, rows, cols, out),
            |y, x, c| (f64::from(self.value(y, x, c)), 0.0),
        );
    }
}

const CHANNELS: [usize; 9] = [1, 2, 3, 16, 17, 64, 100, 512, 700];

#[test]
fn nothing_and_every_form_of_operand() {
    for channels in CHANNELS {
        for (w, parts) in [(1, false), (5, true), (37, false), (37, true)] {
            let mut case = Case::new(3, w, channels, parts);
            case.check("copy");
            let forms = (0..6)
                .map(Input)
                .chain((0..2).flat_map(|k| [Channel(k), Whole(k)]));
            for arg in forms.chain([Scalar(0.25)]) {
                case.code = vec![(Add, args(&[Input(0), arg]))];
                case.check("add");
                case.code = vec![(PRelu, args(&[arg, Input(0)]))];
                case.check("swapped");
            }
        }
    }
}

#[test]
fn chains() {
    for channels in CHANNELS {
        let mut case = Case::new(2, 41, channels, channels % 2 == 1);
        let scaled = case.push(MulAdd, &[Input(0), Channel(0), Channel(1)]);
        let gated = case.push(Mul, &[scaled, Whole(0)]);
        let mixed = case.push(Sub, &[gated, Input(3)]);
        let chosen = case.push(Less, &[mixed, scaled]);
        let wide = case.push(Where, &[chosen, Input(4), Input(2)]);
        let back = case.push(Add, &[wide, Input(0)]);
        let squared = case.push(Mul, &[back, back]);
        let last = case.push(Max, &[squared, Input(5)]);
        case.push(MulAdd, &[Scalar(0.5), last, Whole(1)]);
        case.check("chain");
    }
}

/// Random programs, long ones too, that keep few values alive.
#[test]
fn random_programs() {
    let funcs = [Add, Sub, Mul, MulAdd, Max, PRelu, Relu, Where, Less, Neg];
    for seed in 0..60u32 {
        let mut draws = random(seed + 1000, 4000).into_iter();
        let mut pick = |n: usize| ((draws.next().unwrap() + 1.0) * 0.5 * n as f32) as usize % n;
        let channels = CHANNELS[pick(CHANNELS.len())];
        let mut case = Case::new(2, 1 + pick(30), channels, pick(2) == 1);
        for i in 0..1 + pick(40) {
            let func = funcs[pick(funcs.len())];
            let mut list = Vec::new();
            for _ in 0..func.arity() {
                list.push(match pick(if i == 0 { 4 } else { 8 }) {
                    0 => Input(pick(6) as u32),
                    1 => Channel(pick(2) as u32),
                    2 => Whole(pick(2) as u32),
                    3 => Scalar(pick(9) as f32 * 0.25 - 1.0),
                    4..7 => Reg(i as u32 - 1),
                    _ => Reg((i - 1 - pick(i.min(10))) as u32),
                });
            }
            case.push(func, &list);
        }
        case.check(&format!("program {seed}"));
    }
}

/// A sum of as many values as there are registers, which are all alive before the first is added.
fn wide(case: &mut Case, values: u32) {
    for k in 0..values {
        case.push(Mul, &[Input(0), Scalar(k as f32)]);
    }
    let mut sum = Reg(0);
    for k in 1..values {
        sum = case.push(Add, &[sum, Reg(k)]);
    }
}

#[test]
fn registers_are_bounded() {
    let mut case = Case::new(2, 9, 20, false);
    wide(&mut case, 16);
    case.check("sixteen values");
    let mut case = Case::new(1, 1, 1, false);
    wide(&mut case, 17);
    let error = Program::compile(&case.code, case.vectors.clone()).unwrap_err();
    assert!(error.to_string().contains("17 values"), "{error}");
    let mut case = Case::new(1, 5, 3, false);
    for k in 0..5000 {
        let before = if k == 0 { Input(0) } else { Reg(k - 1) };
        case.push(if k % 2 == 0 { Add } else { Sub }, &[before, Input(1)]);
    }
    case.check("a long chain");
}

#[test]
fn programs_that_make_no_sense_are_refused() {
    let compile = |arg| Program::compile(&[(Neg, args(&[arg]))], Vec::new());
    assert!(compile(Reg(0)).is_err());
    assert!(compile(Reg(7)).is_err());
    assert!(compile(Channel(0)).is_err());
    assert!(compile(Input(0)).is_ok());
}

#[test]
fn wide_rows_are_cut_among_threads() {
    let mut case = Case::new(5, 700, 17, true);
    let sum = case.push(Add, &[Input(0), Input(1)]);
    case.push(PRelu, &[sum, Channel(0)]);
    case.check("wide");
}
