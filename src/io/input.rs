//! A file that is read at positions.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};

/// An open regular file of known length; counts what is read of it.
#[derive(Debug)]
pub(super) struct InputFile {
    file: File,
    path: PathBuf,
    len: u64,
    read: AtomicU64,
}

impl InputFile {
    /// Opens a regular file; anything else (a pipe, a folder) has no positions.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let at = |e| Error::io(path, e);
        // Asked before opening: opening a pipe would wait for its other end.
        if !std::fs::metadata(path).map_err(at)?.is_file() {
            return Err(Error::format(
                path,
                "not a regular file: rows are read at positions, so save it to a file first",
            ));
        }
        let file = File::open(path).map_err(at)?;
        let len = file.metadata().map_err(at)?.len();
        Ok(InputFile {
            file,
            path: path.to_path_buf(),
            len,
            read: AtomicU64::new(0),
        })
    }

    /// Its path, for messages.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Its length when it was opened.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Bytes read of it so far.
    pub(super) fn bytes_read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// Reads some bytes at `at`: none only at the end of the file.
    pub(super) fn read_at(&self, buf: &mut [u8], at: u64) -> io::Result<usize> {
        loop {
            match self.file.read_at(buf, at) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
                Ok(n) => {
                    self.read.fetch_add(n as u64, Ordering::Relaxed);
                    return Ok(n);
                }
            }
        }
    }

    /// Fills `buf` from `at`.
    pub(super) fn read_exact_at(&self, buf: &mut [u8], at: u64) -> Result<()> {
        let mut done = 0;
        while done < buf.len() {
            let from = at + done as u64;
            match self.read_at(&mut buf[done..], from) {
                Ok(0) => return Err(self.format(format!("ends at byte {from}: truncated"))),
                Ok(n) => done += n,
                Err(e) => return Err(Error::io(&self.path, e)),
            }
        }
        Ok(())
    }

    /// An [`Error::Format`] about it.
    pub(super) fn format(&self, why: impl Into<String>) -> Error {
        Error::format(&self.path, why)
    }
}
