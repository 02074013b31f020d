//! One op over some rows: operands and tables put in the form that its kernel takes.

use std::ops::Range;

use super::tables;
use crate::dense::{DataRef, View};
use crate::error::{Error, Result};
use crate::graph::{Axis, Graph, Node, Op, Operand, PoolKind};
use crate::kernels::{self, Cols, Extra, Input, Isa, Out, Phase, Pooling, Program, Segment, Tail};
use crate::plan::footprint::{conv_shape, is_depthwise};
use crate::plan::{Panel, PhasePlan};
use crate::sweep::{Grain, Work};

/// The column tables of a step in one panel.
#[derive(Debug)]
pub(super) enum Columns {
    /// The op needs none.
    None,
    /// A convolution's.
    Phases(Vec<Phase>),
    /// A Winograd convolution's.
    Tiles(kernels::Tiles),
    /// A pad's or a depthwise convolution's.
    Plain(Cols),
    /// A pool's, with how many columns count in each mean.
    Counted(Cols, Vec<u32>),
    /// A resize's: taps, positions and weights.
    Weighted(usize, Vec<u32>, Vec<f32>),
    /// A shuffle's: the first output column within its block, or the first input column.
    First(usize),
}

/// The tables of step `s` in `panel`.
pub(super) fn columns(graph: &Graph, phase: &PhasePlan, panel: &Panel, s: usize) -> Columns {
    let step = &phase.sweep.steps[s];
    let (Work::Node(id), Some(made), Some(read)) = (step.work, step.makes, step.reads.first())
    else {
        return Columns::None;
    };
    let (out, axis) = (&panel.windows[made], &read.cols);
    if out.is_empty() {
        return Columns::None;
    }
    // a kernel is given the columns that its output may read, of every segment the same
    let from = axis.span(out).start;
    match &graph.node(id).op {
        Op::Conv(conv) if is_depthwise(&conv_shape(graph, conv)) => {
            Columns::Plain(tables::plain(axis, out, from))
        }
        Op::Conv(conv) if conv.tile > 1 => Columns::Tiles(kernels::Tiles {
            size: conv.tile as usize,
            before: [0, step.grains[1].before(out.start) as usize],
            cols: tables::tiles(axis, step.grains[1], out, from),
        }),
        Op::Conv(_) => Columns::Phases(tables::phases(axis, out, from)),
        Op::Pad { .. } => Columns::Plain(tables::plain(axis, out, from)),
        Op::Pool(pool) => {
            let counts = tables::counts(axis, out.clone(), padded(pool.kind, 1));
            Columns::Counted(tables::plain(axis, out, from), counts)
        }
        Op::Resize { .. } => {
            let (taps, index, weight) = tables::weights(axis, out, from);
            Columns::Weighted(taps, index, weight)
        }
        Op::DepthToSpace { block, .. } => Columns::First((out.start % block) as usize),
        Op::SpaceToDepth { block } => Columns::First((out.start * block - from) as usize),
        _ => Columns::None,
    }
}

/// The padding behind the image that a mean counts, along rows (0) or columns (1).
fn padded(kind: PoolKind, side: usize) -> Option<u64> {
    match kind {
        PoolKind::MeanPadded { after } => Some(after[side]),
        PoolKind::Mean | PoolKind::Max => None,
    }
}

/// Which input rows the rows of a call read: where they stand among the call's shared slices.
#[derive(Debug)]
pub(super) struct RowTable {
    /// The input rows, without gaps.
    pub(super) rows: Range<u64>,
    /// The slice of the first of them.
    first: usize,
    /// For each output row and tap, the input row.
    taps: Vec<Option<u64>>,
}

impl RowTable {
    /// The table of output rows `made`; slices of the input rows follow from number `first` on.
    pub(super) fn new(axis: &Axis, made: &Range<u64>, first: usize) -> Self {
        let rows = made.clone();
        let taps = rows.flat_map(|o| (0..axis.taps()).map(move |k| axis.tap(o, k)));
        RowTable::of_taps(taps.collect(), first)
    }

    /// As [`RowTable::new`], of rows of tiles.
    pub(super) fn tiles(axis: &Axis, grain: Grain, made: &Range<u64>, first: usize) -> Self {
        RowTable::of_taps(
            tables::patches(axis, grain, made).flatten().collect(),
            first,
        )
    }

    fn of_taps(taps: Vec<Option<u64>>, first: usize) -> Self {
        let least = taps.iter().flatten().min();
        let most = taps.iter().flatten().max();
        let rows = least.zip(most).map_or(0..0, |(a, b)| *a..b + 1);
        RowTable { rows, first, taps }
    }

    /// The slice of input row `y`.
    pub(super) fn of(&self, y: u64) -> usize {
        self.first + (y - self.rows.start) as usize
    }

    fn slices<'a>(&self, shared: &[&'a [u8]]) -> Vec<Option<&'a [f32]>> {
        let slice = |tap: &Option<u64>| tap.map(|y| bytemuck::cast_slice(shared[self.of(y)]));
        self.taps.iter().map(slice).collect()
    }
}

/// A node's rows to make, with all that it reads.
pub(super) struct Call<'c, 'a> {
    pub(super) graph: &'c Graph,
    pub(super) node: &'c Node,
    pub(super) isa: Isa,
    pub(super) program: &'c Program,
    pub(super) item: u64,
    pub(super) made: Range<u64>,
    pub(super) out_cols: Range<u64>,
    /// Rows of the first operand.
    pub(super) axis: Option<&'c Axis>,
    pub(super) columns: &'c Columns,
    /// One for each segment of each operand, then of each extra.
    pub(super) tables: &'c [RowTable],
    pub(super) shared: &'c [&'a [u8]],
    pub(super) weights: Option<&'a [f32]>,
    pub(super) whole: &'c [Option<View<'a>>],
    /// The rows that are made together.
    pub(super) grain: Grain,
    pub(super) workspace: &'c mut [f32],
}

impl<'a> Call<'_, 'a> {
    /// Runs the kernel.
    pub(super) fn run(mut self, rows: &mut [&mut [f32]]) -> Result<()> {
        let channels = self.graph.tensor(self.node.outputs[0]).c() as usize;
        let slices: Vec<_> = self.tables.iter().map(|t| t.slices(self.shared)).collect();
        let mut segments: Vec<Vec<Segment<'_>>> = Vec::new();
        let mut next = slices.iter();
        for operand in self.node.operands.iter().chain(&self.node.extras) {
            segments.push(self.segments(operand, &mut next));
        }
        let taps = |k: usize| match self.columns {
            Columns::Tiles(tiles) if k == 0 => tiles.size + 2,
            _ => {
                let side = crate::graph::Side::Rows;
                self.graph.axis(self.node, k, side).taps() as usize
            }
        };
        let inputs: Vec<Input<'_>> = segments
            .iter()
            .enumerate()
            .map(|(k, segments)| Input {
                segments,
                taps: taps(k),
            })
            .collect();
        let (main, extras) = inputs.split_at(self.node.operands.len());
        let width = (self.out_cols.end - self.out_cols.start) as usize;
        let extras: Vec<Extra<'_>> = (extras.iter().zip(&self.node.extras))
            .map(|(&input, operand)| {
                let narrow = self.graph.tensor(operand.0[0].tensor).w() == 1;
                Extra {
                    input,
                    width: if narrow { 1 } else { width },
                }
            })
            .collect();
        let vectors = if self.program.is_empty() {
            Vec::new()
        } else {
            self.vectors()?
        };
        let tail = Tail {
            program: self.program,
            extras: &extras,
            whole: &vectors,
        };
        let mut out = Out { rows, channels };
        let workspace = std::mem::take(&mut self.workspace);
        self.kernel(main, &tail, &mut out, workspace)
    }

    fn segments<'s>(
        &self,
        operand: &Operand,
        slices: &mut std::slice::Iter<'s, Vec<Option<&'s [f32]>>>,
    ) -> Vec<Segment<'s>> {
        let segment = |s: &crate::graph::Segment| Segment {
            rows: slices.next().map_or(&[][..], |v| v),
            stride: self.graph.tensor(s.tensor).c() as usize,
            first: s.channels.start as usize,
            channels: (s.channels.end - s.channels.start) as usize,
        };
        operand.0.iter().map(segment).collect()
    }

    /// The channel vectors of this batch item among the whole operands.
    fn vectors(&self) -> Result<Vec<&'a [f32]>> {
        let vector = |view: &Option<View<'a>>| match *view {
            Some(View {
                dims,
                data: DataRef::F32(values),
            }) => {
                let n = dims.first().copied().unwrap_or(1).max(1) as usize;
                let each = values.len() / n;
                let item = if n == 1 { 0 } else { self.item as usize };
                Ok(&values[item * each..(item + 1) * each])
            }
            _ => Err(Error::model(
                &self.node.name,
                "a channel operand is not f32",
            )),
        };
        self.whole.iter().map(vector).collect()
    }

    fn kernel(
        &self,
        main: &[Input<'_>],
        tail: &Tail<'_>,
        out: &mut Out<'_, '_>,
        workspace: &mut [f32],
    ) -> Result<()> {
        let isa = self.isa;
        match (&self.node.op, self.columns) {
            (Op::Conv(conv), Columns::Tiles(tiles)) => {
                let packed = kernels::PackedConv {
                    shape: conv_shape(self.graph, conv),
                    weights: self.packed()?,
                };
                let mut tiles = tiles.clone();
                tiles.before[0] = self.grain.before(self.made.start) as usize;
                kernels::winograd(isa, &packed, &main[0], &tiles, tail, out, workspace);
            }
            (Op::Conv(conv), Columns::Phases(phases)) => {
                let packed = kernels::PackedConv {
                    shape: conv_shape(self.graph, conv),
                    weights: self.packed()?,
                };
                kernels::conv(isa, &packed, &main[0], phases, tail, out);
            }
            (Op::Conv(conv), Columns::Plain(cols)) => {
                let shape = conv_shape(self.graph, conv);
                kernels::depthwise(
                    isa,
                    self.packed()?,
                    shape.kh,
                    shape.kw,
                    &main[0],
                    cols,
                    tail,
                    out,
                );
            }
            (Op::Pool(pool), Columns::Counted(cols, col_counts)) => {
                let kind = if pool.kind == PoolKind::Max {
                    Pooling::Max
                } else {
                    Pooling::Mean
                };
                let axis = self.axis()?;
                let row_counts = tables::counts(axis, self.made.clone(), padded(pool.kind, 0));
                kernels::pool(
                    isa,
                    kind,
                    &row_counts,
                    col_counts,
                    &main[0],
                    cols,
                    tail,
                    out,
                );
            }
            (Op::Resize { .. }, Columns::Weighted(taps, index, weight)) => {
                let axis = self.axis()?;
                let rows: Vec<f32> = self
                    .made
                    .clone()
                    .flat_map(|o| (0..axis.taps()).map(move |k| axis.weight(o, k)))
                    .collect();
                let cols = kernels::ColWeights {
                    taps: *taps,
                    index,
                    weight,
                };
                kernels::resize(isa, &rows, &cols, &main[0], tail, out);
            }
            (Op::Pad { value, .. }, Columns::Plain(cols)) => {
                kernels::pad(isa, *value, &main[0], cols, tail, out)
            }
            (Op::DepthToSpace { block, crd }, Columns::First(first)) => {
                let sub_rows: Vec<usize> =
                    self.made.clone().map(|o| (o % block) as usize).collect();
                kernels::depth_to_space(
                    isa,
                    *block as usize,
                    *crd,
                    &main[0],
                    &sub_rows,
                    *first,
                    tail,
                    out,
                );
            }
            (Op::SpaceToDepth { block }, Columns::First(first)) => {
                kernels::space_to_depth(isa, *block as usize, &main[0], *first, tail, out);
            }
            (Op::Pointwise, _) => kernels::pointwise(isa, &main[0], tail, out),
            (Op::Softmax { log }, _) => kernels::softmax(isa, *log, &main[0], tail, out),
            (
                Op::Lrn {
                    size,
                    alpha,
                    beta,
                    bias,
                },
                _,
            ) => {
                kernels::lrn(
                    isa,
                    *size as usize,
                    *alpha,
                    *beta,
                    *bias,
                    &main[0],
                    tail,
                    out,
                );
            }
            (Op::Spread, _) => self.spread(out)?,
            _ => {
                return Err(Error::Plan(format!(
                    "`{}` cannot make rows",
                    self.node.name
                )));
            }
        }
        Ok(())
    }

    fn axis(&self) -> Result<&Axis> {
        self.axis
            .ok_or_else(|| Error::Plan(format!("`{}` reads no rows", self.node.name)))
    }

    fn packed(&self) -> Result<&[f32]> {
        self.weights
            .ok_or_else(|| Error::Plan(format!("`{}` has no packed weights", self.node.name)))
    }

    /// Rows of a whole tensor, as f32.
    fn spread(&self, out: &mut Out<'_, '_>) -> Result<()> {
        let none = || Error::Plan(format!("`{}` has no whole operand", self.node.name));
        let view = self.whole.first().copied().flatten().ok_or_else(none)?;
        let tensor = self.graph.tensor(self.node.outputs[0]);
        let (c, h, w) = (
            tensor.c() as usize,
            tensor.h() as usize,
            tensor.w() as usize,
        );
        for (y, row) in self.made.clone().zip(out.rows.iter_mut()) {
            for ch in 0..c {
                let line = ((self.item as usize * c + ch) * h + y as usize) * w;
                let line = line + self.out_cols.start as usize..line + self.out_cols.end as usize;
                let pixels = row.chunks_exact_mut(c).map(|pixel| &mut pixel[ch]);
                match view.data {
                    DataRef::F32(v) => pixels.zip(&v[line]).for_each(|(p, &v)| *p = v),
                    DataRef::I64(v) => pixels.zip(&v[line]).for_each(|(p, &v)| *p = v as f32),
                    DataRef::I32(v) => pixels.zip(&v[line]).for_each(|(p, &v)| *p = v as f32),
                    DataRef::U8(v) | DataRef::Bool(v) => {
                        pixels.zip(&v[line]).for_each(|(p, &v)| *p = f32::from(v))
                    }
                }
            }
        }
        Ok(())
    }
}
