//! What model inputs are given and where model outputs go, before a run takes them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use stripmill::dense::{DType, Data, DataRef, Value, View};
use stripmill::exec::{Drain, Feed};
use stripmill::graph::{Graph, Layout};
use stripmill::import::Model;
use stripmill::io::{
    self, Access, Cropped, FileSink, ImageShape, MemorySource, Pad, RowSink, RowSource, write_value,
};
use stripmill::plan::Plan;
use stripmill::sweep::Work;
use stripmill::{Error, Result};

/// What a model input is given.
pub(super) enum Given {
    /// Rows of an image.
    Image {
        /// Of the image itself.
        shape: ImageShape,
        /// The border around it.
        pad: Pad,
        /// With the border.
        source: Box<dyn RowSource>,
    },
    /// A whole tensor.
    Whole(Value),
}

impl Given {
    pub(super) fn lengths(&self) -> Vec<u64> {
        match self {
            Given::Image { source, .. } => lengths(source.shape()),
            Given::Whole(value) => value.dims.clone(),
        }
    }

    /// Bytes of memory that it takes while it is read.
    pub(super) fn memory(&self) -> u64 {
        match self {
            Given::Image { source, .. } => source.memory(),
            Given::Whole(value) => bytes(value),
        }
    }

    /// As an input of kind `layout` takes it.
    fn feed(self, layout: Layout) -> Result<Feed> {
        match (self, layout) {
            (Given::Image { source, .. }, Layout::Rows) => Ok(Feed::Rows(source)),
            (Given::Image { mut source, .. }, Layout::Whole) => {
                Ok(Feed::Whole(whole(&mut source)?))
            }
            (Given::Whole(value), _) => Ok(Feed::Whole(value)),
        }
    }
}

/// Where a model output goes.
#[expect(clippy::large_enum_variant, reason = "there are only a few")]
pub(super) enum Taken {
    /// An image file.
    Image {
        path: PathBuf,
        /// Takes all of an image and keeps the part that shows no border.
        sink: Cropped<FileSink>,
    },
    /// An array file.
    Array(PathBuf),
}

impl Taken {
    /// The folder of its file.
    pub(super) fn folder(&self) -> &Path {
        let (Taken::Image { path, .. } | Taken::Array(path)) = self;
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
        folder.unwrap_or(Path::new("."))
    }

    /// Bytes of memory that it takes while it is written.
    pub(super) fn memory(&self) -> u64 {
        match self {
            Taken::Image { sink, .. } => sink.memory(),
            Taken::Array(_) => 0,
        }
    }

    /// As an output of kind `layout` gives it.
    fn drain(self, layout: Layout, written: &Written) -> Drain {
        let written = written.clone();
        match (self, layout) {
            (Taken::Image { sink, .. }, Layout::Rows) => Drain::Rows(Box::new(sink)),
            (Taken::Image { mut sink, .. }, Layout::Whole) => Drain::Whole(Box::new(move |view| {
                give(view, &mut sink)?;
                written.add(sink.bytes_written());
                Ok(())
            })),
            (Taken::Array(path), _) => Drain::Whole(Box::new(move |view| {
                written.add(write_value(&path, view)?);
                Ok(())
            })),
        }
    }
}

/// The graph for the inputs; where their size does not fit, what would.
pub(super) fn graph(model: &Model, inputs: &[Given]) -> Result<Graph> {
    let names = model.inputs().iter().map(|p| p.name.as_str());
    let all: Vec<_> = names.zip(inputs.iter().map(Given::lengths)).collect();
    model.graph(&all).map_err(|e| match e {
        Error::Model { .. } => misfit(model, &all).unwrap_or(e),
        e => e,
    })
}

/// An error that names the multiple that an input's height or width would have to be of.
fn misfit(model: &Model, inputs: &[(&str, Vec<u64>)]) -> Option<Error> {
    let multiple = model.multiple().ok()?;
    inputs.iter().find_map(|(name, lengths)| {
        let &[_, _, h, w] = &lengths[..] else {
            return None;
        };
        let sides = [("height", h, multiple[0]), ("width", w, multiple[1])];
        let (side, got, m) = sides.into_iter().find(|(_, got, m)| got % m != 0)?;
        let need = format!("input `{name}` needs a {side} that is a multiple of {m} (got {got})");
        Some(Error::Usage(format!(
            "{need}: --multiple {m} or --multiple auto"
        )))
    })
}

/// Whether files go in order whose rows `plan` wants to reach anywhere.
pub(super) fn must_spool(plan: &Plan, inputs: &[Given], outputs: &[Taken]) -> bool {
    let input = |(k, given): (usize, &Given)| match given {
        Given::Image { source, .. } => {
            source.access() == Access::InOrder && cuts(plan, Work::Load(k))
        }
        Given::Whole(_) => false,
    };
    let output = |(k, taken): (usize, &Taken)| match taken {
        Taken::Image { sink, .. } => sink.access() == Access::InOrder && cuts(plan, Work::Save(k)),
        Taken::Array(_) => false,
    };
    inputs.iter().enumerate().any(input) || outputs.iter().enumerate().any(output)
}

/// Lets rows be reached anywhere where `plan` wants that, by way of files in `folder`.
pub(super) fn spool(
    plan: &Plan,
    inputs: &mut [Given],
    outputs: &mut [Taken],
    folder: &Path,
) -> Result<()> {
    for (k, input) in inputs.iter_mut().enumerate() {
        if let (Given::Image { source, .. }, true) = (input, cuts(plan, Work::Load(k))) {
            source.spool(folder)?;
        }
    }
    for (k, output) in outputs.iter_mut().enumerate() {
        if let (Taken::Image { sink, .. }, true) = (output, cuts(plan, Work::Save(k))) {
            sink.spool(folder)?;
        }
    }
    Ok(())
}

/// Whether `work` is done in panels.
fn cuts(plan: &Plan, work: Work) -> bool {
    let phases = plan.phases.iter().filter(|p| p.panels.len() > 1);
    phases
        .flat_map(|p| &p.sweep.steps)
        .any(|step| step.work == work)
}

/// Feeds and drains, in the graph's order, and how much is written that a run does not know of.
pub(super) fn connect(
    graph: &Graph,
    inputs: Vec<Given>,
    outputs: Vec<Taken>,
) -> Result<(Vec<Feed>, Vec<Drain>, Written)> {
    let written = Written::default();
    let feeds = graph
        .inputs
        .iter()
        .zip(inputs)
        .map(|(&id, given)| given.feed(graph.tensor(id).layout));
    let drains = graph
        .outputs
        .iter()
        .zip(outputs)
        .map(|(&id, taken)| taken.drain(graph.tensor(id).layout, &written));
    Ok((feeds.collect::<Result<_>>()?, drains.collect(), written))
}

/// Bytes that whole outputs have written.
#[derive(Debug, Clone, Default)]
pub(super) struct Written(Arc<AtomicU64>);

impl Written {
    pub(super) fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// All rows of a source, as one tensor.
fn whole(source: &mut dyn RowSource) -> Result<Value> {
    let ImageShape { n, c, h, w } = source.shape();
    let mut value = Value::zeros(DType::F32, &[n, c, h, w]);
    let Data::F32(values) = &mut value.data else {
        return Ok(value);
    };
    let mut row = vec![0.0; (w * c) as usize];
    for item in 0..n {
        for y in 0..h {
            source.read(item, y, 0..w, &mut [&mut row])?;
            for (k, v) in row.iter().enumerate() {
                let (x, ch) = (k as u64 / c, k as u64 % c);
                values[(((item * c + ch) * h + y) * w + x) as usize] = *v;
            }
        }
    }
    Ok(value)
}

/// Gives a whole tensor to a sink, row by row.
fn give(view: View<'_>, sink: &mut dyn RowSink) -> Result<()> {
    let (DataRef::F32(values), &[n, c, h, w]) = (view.data, view.dims) else {
        return Err(Error::Usage(format!(
            "an output of {:?} is no image",
            view.dims
        )));
    };
    let mut source = MemorySource::new(values, ImageShape { n, c, h, w }, io::Layout::Nchw)?;
    let mut row = vec![0.0; (w * c) as usize];
    for item in 0..n {
        for y in 0..h {
            source.read(item, y, 0..w, &mut [&mut row])?;
            sink.write(item, y, 0..w, &[&row])?;
        }
    }
    sink.finish()
}

fn lengths(shape: ImageShape) -> Vec<u64> {
    vec![shape.n, shape.c, shape.h, shape.w]
}

fn bytes(value: &Value) -> u64 {
    value.dims.iter().product::<u64>() * value.dtype().size()
}
