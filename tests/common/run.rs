//! The one way that the suites run a graph with the library, from memory into memory.

use std::ops::{ControlFlow, Range};
use std::sync::{Arc, Mutex};

use stripmill::Result;
use stripmill::dense::{Data, DataRef, Value, View};
use stripmill::exec::{Drain, Engine, Feed};
use stripmill::graph::{Graph, Layout, Tensor};
use stripmill::io::{Access, ImageShape, RowSink, RowSource};
use stripmill::kernels::Isa;
use stripmill::plan::{self, Options, SafePlan};

/// How to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct How {
    /// Rows of a turn; `None`: the planner chooses.
    pub strip: Option<u64>,
    /// Ranges of columns; `None`: the planner chooses.
    pub panels: Option<u64>,
    /// Threads.
    pub threads: usize,
    /// Level of instructions.
    pub isa: Isa,
}

impl How {
    /// One strip, one panel, one thread, the best level that the machine has.
    pub fn untiled() -> Self {
        How {
            strip: Some(u64::MAX),
            panels: Some(1),
            threads: 1,
            isa: Isa::detect().expect("a level"),
        }
    }

    /// Strips of one row, in one panel.
    pub fn row_by_row() -> Self {
        How {
            strip: Some(1),
            ..How::untiled()
        }
    }
}

/// Plans `graph` as told, without a limit on memory.
pub fn plan_graph(graph: &Graph, how: How) -> Result<SafePlan> {
    let options = Options {
        strip: how.strip,
        panels: how.panels,
        threads: how.threads,
        ..Options::default()
    };
    plan::plan(graph, &options)
}

/// Panels of the phase that has most.
pub fn panels(plan: &SafePlan) -> usize {
    let phases = plan.plan().phases.iter();
    phases.map(|p| p.panels.len()).max().unwrap_or(0)
}

/// Runs `graph` and gives its outputs, rows as `[n, c, h, w]`.
pub fn run_graph(graph: &Graph, inputs: &[Value], how: How) -> Result<Vec<Value>> {
    let plan = plan_graph(graph, how)?;
    let access = if panels(&plan) > 1 {
        Access::Anywhere
    } else {
        Access::InOrder
    };
    let mut engine = Engine::new(graph.clone(), plan, how.isa)?;
    run_engine(&mut engine, inputs, access)
}

/// Runs an engine once.
pub fn run_engine(engine: &mut Engine, inputs: &[Value], access: Access) -> Result<Vec<Value>> {
    let graph = engine.graph();
    let feed = |(id, value): (&_, &Value)| match graph.tensor(*id).layout {
        Layout::Rows => Feed::Rows(Box::new(Source::new(value, access))),
        Layout::Whole => Feed::Whole(value.clone()),
    };
    let mut feeds: Vec<Feed> = graph.inputs.iter().zip(inputs).map(feed).collect();
    let (mut drains, taken): (Vec<Drain>, Vec<Taken>) = graph
        .outputs
        .iter()
        .map(|&id| match graph.tensor(id).layout {
            Layout::Rows => Sink::pair(graph.tensor(id), access),
            Layout::Whole => whole(),
        })
        .unzip();
    engine.run(&mut feeds, &mut drains, &mut |_, _| {
        ControlFlow::Continue(())
    })?;
    Ok(taken.into_iter().map(|take| take()).collect())
}

/// Gives what a drain took, once the run has ended.
type Taken = Box<dyn FnOnce() -> Value>;

fn whole() -> (Drain, Taken) {
    let held: Arc<Mutex<Option<Value>>> = Arc::default();
    let into = held.clone();
    let drain = Drain::Whole(Box::new(move |view: View<'_>| {
        let before = into.lock().unwrap().replace(own(view));
        assert!(before.is_none(), "a whole output is given twice");
        Ok(())
    }));
    let take = move || {
        held.lock()
            .unwrap()
            .take()
            .expect("a whole output is given")
    };
    (drain, Box::new(take))
}

fn own(view: View<'_>) -> Value {
    let data = match view.data {
        DataRef::F32(v) => Data::F32(v.to_vec()),
        DataRef::I64(v) => Data::I64(v.to_vec()),
        DataRef::I32(v) => Data::I32(v.to_vec()),
        DataRef::U8(v) => Data::U8(v.to_vec()),
        DataRef::Bool(v) => Data::Bool(v.to_vec()),
    };
    Value {
        dims: view.dims.to_vec(),
        data,
    }
}

/// The values of a tensor as f32.
pub fn as_f32(value: &Value) -> Vec<f32> {
    match &value.data {
        Data::F32(v) => v.clone(),
        Data::I64(v) => v.iter().map(|&x| x as f32).collect(),
        Data::I32(v) => v.iter().map(|&x| x as f32).collect(),
        Data::U8(v) | Data::Bool(v) => v.iter().map(|&x| f32::from(x)).collect(),
    }
}

fn shape(dims: &[u64]) -> ImageShape {
    let [n, c, h, w] = dims.try_into().expect("rows have 4 lengths");
    ImageShape { n, c, h, w }
}

/// The element of image `item` at channel `c`, row `y`, column `x`.
fn at(shape: ImageShape, item: u64, c: u64, y: u64, x: u64) -> usize {
    (((item * shape.c + c) * shape.h + y) * shape.w + x) as usize
}

/// Where the next call to something that goes in order must start.
#[derive(Debug, Default)]
struct Order {
    item: u64,
    y: u64,
}

impl Order {
    /// Panics unless rows `y..y + rows` of `item` over `cols` follow on what came before.
    fn follow(&mut self, shape: ImageShape, item: u64, y: u64, cols: &Range<u64>, rows: u64) {
        assert_eq!(*cols, 0..shape.w, "in order, but not over the full width");
        if self.y == shape.h {
            (self.item, self.y) = (self.item + 1, 0);
        }
        assert_eq!((item, y), (self.item, self.y), "out of order");
        self.y += rows;
    }
}

/// Rows of an array in memory.
struct Source {
    shape: ImageShape,
    values: Vec<f32>,
    access: Access,
    order: Order,
}

impl Source {
    fn new(value: &Value, access: Access) -> Self {
        Source {
            shape: shape(&value.dims),
            values: as_f32(value),
            access,
            order: Order::default(),
        }
    }
}

impl RowSource for Source {
    fn shape(&self) -> ImageShape {
        self.shape
    }

    fn access(&self) -> Access {
        self.access
    }

    fn read(&mut self, item: u64, y: u64, cols: Range<u64>, rows: &mut [&mut [f32]]) -> Result<()> {
        let s = self.shape;
        assert!(item < s.n && y + rows.len() as u64 <= s.h && cols.end <= s.w);
        if self.access == Access::InOrder {
            self.order.follow(s, item, y, &cols, rows.len() as u64);
        }
        for (y, row) in (y..).zip(rows) {
            assert_eq!(row.len() as u64, (cols.end - cols.start) * s.c);
            let pixels = cols.clone().flat_map(|x| (0..s.c).map(move |c| (c, x)));
            for (v, (c, x)) in row.iter_mut().zip(pixels) {
                *v = self.values[at(s, item, c, y, x)];
            }
        }
        Ok(())
    }

    fn rewind(&mut self) -> Result<()> {
        self.order = Order::default();
        Ok(())
    }

    fn memory(&self) -> u64 {
        0
    }
}

/// Takes rows into an array, each element once.
struct Sink {
    shape: ImageShape,
    values: Arc<Mutex<Vec<Option<f32>>>>,
    access: Access,
    order: Order,
}

impl Sink {
    fn pair(tensor: &Tensor, access: Access) -> (Drain, Taken) {
        let dims = tensor.dims.clone();
        let values = vec![None; dims.iter().product::<u64>() as usize];
        let values = Arc::new(Mutex::new(values));
        let sink = Sink {
            shape: shape(&dims),
            values: values.clone(),
            access,
            order: Order::default(),
        };
        let take = move || {
            let values = values.lock().unwrap();
            let values = values.iter().map(|v| v.expect("every element is given"));
            Value::f32(&dims, values.collect())
        };
        (Drain::Rows(Box::new(sink)), Box::new(take))
    }
}

impl RowSink for Sink {
    fn access(&self) -> Access {
        self.access
    }

    fn write(&mut self, item: u64, y: u64, cols: Range<u64>, rows: &[&[f32]]) -> Result<()> {
        let s = self.shape;
        assert!(item < s.n && y + rows.len() as u64 <= s.h && cols.end <= s.w);
        if self.access == Access::InOrder {
            self.order.follow(s, item, y, &cols, rows.len() as u64);
        }
        let mut values = self.values.lock().unwrap();
        for (y, row) in (y..).zip(rows) {
            assert_eq!(row.len() as u64, (cols.end - cols.start) * s.c);
            let pixels = cols.clone().flat_map(|x| (0..s.c).map(move |c| (c, x)));
            for (&v, (c, x)) in row.iter().zip(pixels) {
                let before = values[at(s, item, c, y, x)].replace(v);
                assert!(before.is_none(), "row {y}, column {x} is given twice");
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        let values = self.values.lock().unwrap();
        assert!(values.iter().all(Option::is_some), "finished too early");
        Ok(())
    }

    fn memory(&self) -> u64 {
        0
    }
}
