//! The one way that the suites run a graph with the library.

use stripmill::Result;
use stripmill::dense::Value;
use stripmill::graph::Graph;

/// How to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct How {
    /// Rows of a turn; `None`: the planner chooses.
    pub strip: Option<u64>,
    /// Ranges of columns; `None`: the planner chooses.
    pub panels: Option<u64>,
    /// Threads.
    pub threads: usize,
}

/// Runs `graph` and gives its outputs, rows as `[n, c, h, w]`.
pub fn run_graph(graph: &Graph, inputs: &[Value], how: How) -> Result<Vec<Value>> {
    let _ = (graph, inputs, how);
    unimplemented!("no runtime yet")
}
