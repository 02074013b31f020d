//! The operands of element-wise functions: where their elements are.

use super::{Extra, Input, ProgramArg, channel_runs};

/// Floats that element-wise functions work on at a time.
pub(super) const CHUNK: usize = 512;

/// Room for a chunk.
pub(super) type Line = [f32; CHUNK];

/// Some elements of an output row: the same channels of a few pixels side by side.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    /// The row, counted in the call.
    pub(super) row: usize,
    /// The first pixel's column.
    pub(super) column: usize,
    /// How many pixels.
    pub(super) pixels: usize,
    /// The first channel.
    pub(super) channel: usize,
    /// How many channels.
    pub(super) channels: usize,
    /// Channels of the output's pixels.
    pub(super) total: usize,
}

impl Span {
    /// How many elements.
    pub(super) fn len(&self) -> usize {
        self.pixels * self.channels
    }
}

/// Where an operand's elements are.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place<'a> {
    /// Where the result goes, which replaces them.
    Here,
    /// Side by side.
    Line(&'a [f32]),
    /// All are the same.
    Splat(f32),
    /// Each pixel has these.
    Pixel(&'a [f32]),
    /// In some rows.
    Rows(&'a Extra<'a>),
}

impl<'a> Place<'a> {
    /// A channel vector's elements over `span`.
    #[inline(always)]
    pub(super) fn of_vector(vector: &'a [f32], span: &Span) -> Self {
        if let [v] = vector {
            return Place::Splat(*v);
        }
        Place::of_pixel(&vector[span.channel..span.channel + span.channels], span)
    }

    /// A row operand's elements over `span`.
    #[inline(always)]
    pub(super) fn of_extra(extra: &'a Extra<'_>, span: &Span) -> Self {
        let ([segment], Some(row)) = (extra.input.segments, row_of(&extra.input, span)) else {
            return Place::Rows(extra);
        };
        let all = segment.channels == span.total;
        let first = segment.first + if all { span.channel } else { 0 };
        match (all, extra.width) {
            _ if segment.channels == 1 && extra.width == 1 => Place::Splat(row[first]),
            (true, 1) => Place::of_pixel(&row[first..first + span.channels], span),
            (true, _) if span.pixels == 1 || segment.stride == span.channels => {
                let from = span.column * segment.stride + first;
                Place::Line(&row[from..from + span.len()])
            }
            _ => Place::Rows(extra),
        }
    }

    #[inline(always)]
    fn of_pixel(pixel: &'a [f32], span: &Span) -> Self {
        if span.pixels == 1 {
            Place::Line(pixel)
        } else {
            Place::Pixel(pixel)
        }
    }
}

/// The span's row of the first segment.
#[inline(always)]
fn row_of<'a>(input: &Input<'a>, span: &Span) -> Option<&'a [f32]> {
    input.segments.first().and_then(|s| s.rows[span.row])
}

/// An operand's elements in a form that loops take.
#[derive(Debug, Clone, Copy)]
pub(super) enum Source<'a> {
    /// Where the result goes.
    Here,
    /// Side by side.
    Line(&'a [f32]),
    /// All are the same.
    Splat(f32),
}

/// Room for elements that are not side by side anywhere.
pub(super) struct Room {
    line: Line,
    /// The operand whose pixel the line repeats.
    repeats: Option<ProgramArg>,
}

impl Room {
    pub(super) const fn new() -> Self {
        Room {
            line: [0.0; CHUNK],
            repeats: None,
        }
    }

    /// The elements of operand `arg`, which are at `place`. A room serves spans of the same channels
    /// alone, unless they have one pixel.
    #[inline(always)]
    pub(super) fn source<'s>(
        &'s mut self,
        arg: ProgramArg,
        place: Place<'s>,
        span: &Span,
    ) -> Source<'s> {
        match place {
            Place::Here => return Source::Here,
            Place::Line(line) => return Source::Line(line),
            Place::Splat(v) => return Source::Splat(v),
            Place::Pixel(pixel) => {
                if self.repeats != Some(arg) {
                    self.repeats = Some(arg);
                    for to in self.line.chunks_exact_mut(pixel.len()) {
                        to.copy_from_slice(pixel);
                    }
                }
            }
            Place::Rows(extra) => {
                self.repeats = None;
                gather_pixels(extra, span, &mut self.line[..span.len()]);
            }
        }
        Source::Line(&self.line[..span.len()])
    }
}

/// Copies a row operand's elements over `span` to `to`.
#[inline(always)]
pub(super) fn gather(extra: &Extra<'_>, span: &Span, to: &mut [f32]) {
    match Place::of_extra(extra, span) {
        Place::Line(line) => to.copy_from_slice(line),
        _ => gather_pixels(extra, span, to),
    }
}

/// As [`gather`], pixel by pixel.
#[inline(always)]
fn gather_pixels(extra: &Extra<'_>, span: &Span, to: &mut [f32]) {
    let one = extra
        .input
        .segments
        .iter()
        .map(|s| s.channels)
        .sum::<usize>()
        == 1;
    let step = if extra.width == 1 { 0 } else { 1 };
    for run in channel_runs(&extra.input) {
        let Some(row) = run.rows[span.row] else {
            continue;
        };
        // the channels that the span and the run share
        let from = span.channel.max(run.to);
        let end = (span.channel + span.channels).min(run.to + run.channels);
        for (p, pixel) in to.chunks_exact_mut(span.channels).enumerate() {
            let at = (span.column + p) * step * run.stride + run.first;
            if one {
                pixel.fill(row[at]);
            } else if from < end {
                let to = &mut pixel[from - span.channel..end - span.channel];
                copy(&row[at + from - run.to..at + end - run.to], to);
            }
        }
    }
}

/// Copies a slice that is often short.
#[inline(always)]
pub(super) fn copy(from: &[f32], to: &mut [f32]) {
    if to.len() > 8 {
        to.copy_from_slice(from);
    } else {
        for (to, from) in to.iter_mut().zip(from) {
            *to = *from;
        }
    }
}
