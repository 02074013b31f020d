//! The one error type. Messages are lower-case, name the node, file or number, and say what
//! would work.

use std::path::{Path, PathBuf};

/// What can go wrong, from a bad command line to a full disk.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be opened, read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A file was read but is not what it should be (truncated, corrupt, another format).
    #[error("{}: {why}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The model is not valid ONNX: a missing tensor, a cycle, shapes that do not agree.
    #[error("node `{node}`: {why}")]
    Model {
        /// The node, or `graph` where no single node is to blame.
        node: String,
        /// What is wrong.
        why: String,
    },
    /// The model is valid, but uses something that is not supported.
    #[error("node `{node}` ({op}): {why}")]
    Unsupported {
        /// The node.
        node: String,
        /// Its operator.
        op: String,
        /// What is not supported, and what would be.
        why: String,
    },
    /// The budget cannot be met; `least` can.
    #[error(
        "{budget} bytes of memory are too few: the least that works is {least} bytes (--memory {least})"
    )]
    Budget {
        /// The budget asked for, in bytes.
        budget: u64,
        /// The least budget that works, in bytes.
        least: u64,
    },
    /// The caller asked for something that makes no sense (a wrong option, a missing input).
    #[error("{0}")]
    Usage(String),
    /// The caller's progress function stopped the run.
    #[error("stopped")]
    Stopped,
    /// A plan that the checker did not accept.
    #[error("plan rejected: {0}")]
    Plan(String),
}

/// A result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An [`Error::Io`] about `path`.
    pub fn io(path: impl AsRef<Path>, source: std::io::Error) -> Self {
        Error::Io {
            path: path.as_ref().to_path_buf(),
            source,
        }
    }

    /// An [`Error::Format`] about `path`.
    pub fn format(path: impl AsRef<Path>, why: impl Into<String>) -> Self {
        Error::Format {
            path: path.as_ref().to_path_buf(),
            why: why.into(),
        }
    }

    /// An [`Error::Model`] about `node`.
    pub fn model(node: impl Into<String>, why: impl Into<String>) -> Self {
        Error::Model {
            node: node.into(),
            why: why.into(),
        }
    }

    /// The same error, about `node` where it named none.
    pub fn at_node(self, node: &str) -> Self {
        match self {
            Error::Model { node: unnamed, why } if unnamed.is_empty() => Error::model(node, why),
            Error::Unsupported {
                node: unnamed,
                op,
                why,
            } if unnamed.is_empty() => Error::Unsupported {
                node: node.into(),
                op,
                why,
            },
            other => other,
        }
    }

    /// The process's exit code for this error: 2 for wrong usage, 3 for a budget too small, else 1.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Usage(_) => 2,
            Error::Budget { .. } => 3,
            _ => 1,
        }
    }
}
