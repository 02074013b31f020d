//! Tails: element-wise programs over blocks of finished pixels, while those are in cache.

use std::ops::Range;

use super::arch::parts::Part;
use super::arch::{Isa, Kernel, Simd};
use super::function::evaluate;
use super::operand::{CHUNK, Line, Place, Room, Source, Span, gather};
use super::program::{ProgramArg, REGISTERS};
use super::{Extra, Grid, Input, Out, Tail};

/// Makes all rows of `out`: operand 0's channels side by side, then the tail.
pub fn pointwise(isa: Isa, input: &Input<'_>, tail: &Tail<'_>, out: &mut Out<'_, '_>) {
    let (rows, width, channels) = (out.rows.len(), out.width(), out.channels);
    let work = rows * width * channels * tail.program.code().len().max(1);
    let grid = Grid::choose([rows, width, 1], channels, 1, work);
    let from = Extra {
        input: *input,
        width,
    };
    out.for_parts(grid, |mut part| {
        for row in part.rows() {
            isa.run(Apply {
                tail,
                row,
                cols: part.cols(),
                from: Some(&from),
                part: &mut part,
            });
        }
    });
}

impl Tail<'_> {
    /// Applies the tail to columns `cols` of row `row` of the call, as far as they are in `part`.
    #[inline(always)]
    pub(crate) fn apply_part<S: Simd>(
        &self,
        s: S,
        row: usize,
        cols: Range<usize>,
        part: &mut Part<'_>,
    ) {
        if !self.program.is_empty() {
            s.run(Apply {
                tail: self,
                row,
                cols,
                from: None,
                part,
            });
        }
    }
}

/// A program over some columns of a row.
struct Apply<'a, 'b> {
    tail: &'a Tail<'a>,
    row: usize,
    cols: Range<usize>,
    /// What input 0 is; where that is not said, what the part holds.
    from: Option<&'a Extra<'a>>,
    part: &'a mut Part<'b>,
}

impl Kernel for Apply<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        // lines are cleared on each call: no more of them than the program needs
        match self.tail.program.registers() {
            0 => s.run(Chunks(self, &mut [])),
            1..5 => s.run(Chunks(self, &mut [[0.0; CHUNK]; 4])),
            _ => s.run(Chunks(self, &mut [[0.0; CHUNK]; REGISTERS])),
        }
    }
}

/// A program chunk after chunk, with the registers that it needs.
struct Chunks<'a, 'b, 'r>(Apply<'a, 'b>, &'r mut [Line]);

impl Kernel for Chunks<'_, '_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Chunks(apply, registers) = self;
        let (cols, part) = (apply.cols, apply.part);
        let (channels, total) = (part.channels(), part.total());
        let each = channels.len();
        // whole pixels, or pieces of one
        let (pixels, piece) = if each == total && each <= CHUNK {
            (CHUNK / each, each)
        } else {
            (1, each.min(CHUNK))
        };
        let mut rooms = [const { Room::new() }; 3];
        for column in cols.clone().step_by(pixels) {
            let end = cols.end.min(column + pixels);
            let to = part.pixels(apply.row, column..end);
            for first in (0..each).step_by(piece) {
                let span = Span {
                    row: apply.row,
                    column,
                    pixels: end - column,
                    channel: channels.start + first,
                    channels: piece.min(each - first),
                    total,
                };
                let chunk = Chunk {
                    tail: apply.tail,
                    from: apply.from,
                    span,
                };
                chunk.run(s, &mut to[first..][..span.len()], registers, &mut rooms);
            }
        }
    }
}

/// A program's operands over some elements.
struct Chunk<'a> {
    tail: &'a Tail<'a>,
    from: Option<&'a Extra<'a>>,
    span: Span,
}

impl Chunk<'_> {
    /// Runs the program on the elements, which are `to`.
    #[inline(always)]
    fn run<S: Simd>(&self, s: S, to: &mut [f32], registers: &mut [Line], rooms: &mut [Room; 3]) {
        let Some((last, code)) = self.tail.program.code().split_last() else {
            if let Some(from) = self.from {
                gather(from, &self.span, to);
            }
            return;
        };
        for inst in code {
            let (before, rest) = registers.split_at_mut(inst.to);
            let Some((out, after)) = rest.split_first_mut() else {
                return;
            };
            let place = |arg| self.place(arg, Some(to), (before, after));
            let args = sources(inst.args, place, &self.span, rooms);
            evaluate(s, inst.func, args, &mut out[..self.span.len()]);
        }
        let place = |arg| self.place(arg, None, (registers, &[]));
        let args = sources(last.args, place, &self.span, rooms);
        evaluate(s, last.func, args, to);
    }

    /// Where operand `arg` is. Input 0 is `here`, or where the result goes; the register that is
    /// neither `before` the one the result goes to nor `after` is that one.
    #[inline(always)]
    fn place<'s>(
        &'s self,
        arg: ProgramArg,
        here: Option<&'s [f32]>,
        (before, after): (&'s [Line], &'s [Line]),
    ) -> Place<'s> {
        let (tail, span) = (self.tail, &self.span);
        match (arg, self.from) {
            (ProgramArg::Scalar(v), _) => Place::Splat(v),
            (ProgramArg::Channel(k), _) => {
                Place::of_vector(&tail.program.vectors()[k as usize], span)
            }
            (ProgramArg::Whole(k), _) => Place::of_vector(tail.whole[k as usize], span),
            (ProgramArg::Input(0), Some(from)) => Place::of_extra(from, span),
            (ProgramArg::Input(0), None) => here.map_or(Place::Here, Place::Line),
            (ProgramArg::Input(k), _) => Place::of_extra(&tail.extras[k as usize - 1], span),
            (ProgramArg::Reg(r), _) => {
                let (r, to) = (r as usize, before.len());
                let line = before.get(r).or_else(|| after.get(r.checked_sub(to + 1)?));
                line.map_or(Place::Here, |line| Place::Line(&line[..span.len()]))
            }
        }
    }
}

/// The operands of an instruction, in a form that loops take.
#[inline(always)]
fn sources<'s>(
    args: [ProgramArg; 3],
    place: impl Fn(ProgramArg) -> Place<'s>,
    span: &Span,
    rooms: &'s mut [Room; 3],
) -> [Source<'s>; 3] {
    let [a, b, c] = rooms;
    [
        a.source(args[0], place(args[0]), span),
        b.source(args[1], place(args[1]), span),
        c.source(args[2], place(args[2]), span),
    ]
}
