//! A file that has no name until it is complete.
//!
//! Where the file system allows it, the file is made without a name (`O_TMPFILE`) in the target's
//! folder and linked in at the end: whatever happens before, nothing is left behind. Elsewhere it is
//! one `NAME.part`, made exclusively, renamed at the end and removed on an error.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FallocateFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::error::{Error, Result};

/// An output under way. Dropped without [`PendingFile::commit`] it leaves nothing behind.
#[derive(Debug)]
pub struct PendingFile {
    file: File,
    /// The name it was asked for, for messages.
    asked: PathBuf,
    /// Where it will stand: `asked` with links followed.
    target: PathBuf,
    /// Its name for the time being, if it must have one.
    part: Option<PathBuf>,
    written: u64,
}

impl PendingFile {
    /// Starts a file that will stand at `asked`, replacing what is there.
    ///
    /// # Errors
    /// [`Error::Io`] naming the file, where nothing can be written there.
    pub fn create(asked: &Path) -> Result<Self> {
        let at = |e: io::Error| Error::io(asked, e);
        let target = resolve(asked).map_err(at)?;
        let folder = match target.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        match unnamed(folder) {
            Ok(file) => Ok(PendingFile {
                file,
                asked: asked.to_path_buf(),
                target,
                part: None,
                written: 0,
            }),
            // Whatever the reason was, the second attempt finds and reports it.
            Err(_) => Self::create_named(asked),
        }
    }

    /// As [`PendingFile::create`], by way of `NAME.part`.
    pub(super) fn create_named(asked: &Path) -> Result<Self> {
        let at = |e: io::Error| Error::io(asked, e);
        let target = resolve(asked).map_err(at)?;
        let part = beside(&target, ".part");
        Ok(PendingFile {
            file: create_exclusively(&part).map_err(at)?,
            asked: asked.to_path_buf(),
            target,
            part: Some(part),
            written: 0,
        })
    }

    /// Takes the space for `bytes` bytes now, so that a full disk is an error before work starts.
    pub(super) fn reserve(&self, bytes: u64) -> Result<()> {
        reserve(&self.file, bytes).map_err(|e| Error::io(&self.asked, e))
    }

    /// Writes all of `bytes` at `at`.
    pub(super) fn write_all_at(&mut self, bytes: &[u8], at: u64) -> Result<()> {
        self.written += bytes.len() as u64;
        self.file
            .write_all_at(bytes, at)
            .map_err(|e| Error::io(&self.asked, e))
    }

    /// The name it was asked for.
    pub fn path(&self) -> &Path {
        &self.asked
    }

    /// Bytes written so far.
    pub(super) fn bytes_written(&self) -> u64 {
        self.written
    }

    /// Puts the complete file on the disk and under its name.
    ///
    /// # Errors
    /// [`Error::Io`] naming the file. Nothing is left behind then.
    pub fn commit(mut self) -> Result<()> {
        self.name().map_err(|e| Error::io(&self.asked, e))
    }

    fn name(&mut self) -> io::Result<()> {
        // Some devices report a failed write only here.
        self.file.sync_data()?;
        if let Some(part) = &self.part {
            fs::rename(part, &self.target)?;
            self.part = None;
            return Ok(());
        }
        match self.link(&self.target) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            done => return done,
        }
        // A link cannot replace a file, a rename can: link beside it first.
        let part = self.link_beside()?;
        let renamed = fs::rename(&part, &self.target);
        if renamed.is_err() {
            let _ = fs::remove_file(&part);
        }
        renamed
    }

    /// Links the file in under a name that nothing has.
    fn link_beside(&self) -> io::Result<PathBuf> {
        let mut attempt = 0;
        loop {
            let suffix = format!(".{}-{attempt}.part", std::process::id());
            let part = beside(&self.target, &suffix);
            match self.link(&part) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => attempt += 1,
                Err(e) => return Err(e),
                Ok(()) => return Ok(part),
            }
        }
    }

    fn link(&self, name: &Path) -> io::Result<()> {
        let own = own_path(&self.file);
        Ok(rustix::fs::linkat(
            CWD,
            own,
            CWD,
            name,
            AtFlags::SYMLINK_FOLLOW,
        )?)
    }
}

impl Write for PendingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.file.write(bytes)?;
        self.written += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for PendingFile {
    fn drop(&mut self) {
        if let Some(part) = &self.part {
            let _ = fs::remove_file(part);
        }
    }
}

/// Takes the space for `bytes` bytes of `file`, where its file system can.
pub(super) fn reserve(file: &File, bytes: u64) -> io::Result<()> {
    let no_space = || {
        io::Error::new(
            io::ErrorKind::StorageFull,
            format!("no space: {bytes} bytes needed"),
        )
    };
    if bytes == 0 {
        return Ok(());
    }
    // Asked first: taking more than there is would fill the disk before it fails.
    let stat = rustix::fs::fstatvfs(file)?;
    if stat.f_blocks > 0 && stat.f_bavail.saturating_mul(stat.f_frsize) < bytes {
        return Err(no_space());
    }
    loop {
        return match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, bytes) {
            Err(Errno::INTR) => continue,
            Err(Errno::NOSPC | Errno::DQUOT) => Err(no_space()),
            Err(Errno::FBIG) => Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("file too large: {bytes} bytes needed"),
            )),
            // A file system that cannot take space ahead says so when it is full.
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) | Ok(()) => Ok(()),
            Err(e) => Err(e.into()),
        };
    }
}

/// Where a file asked for at `asked` will stand: links are followed. Refuses to replace what is no
/// file or may not be written.
fn resolve(asked: &Path) -> io::Result<PathBuf> {
    let Ok(existing) = fs::canonicalize(asked) else {
        return match asked.file_name() {
            Some(_) => Ok(asked.to_path_buf()),
            None => Err(io::ErrorKind::InvalidFilename.into()),
        };
    };
    let kind = fs::metadata(&existing)?;
    if kind.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !kind.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a regular file: outputs are files that appear when complete",
        ));
    }
    rustix::fs::access(&existing, rustix::fs::Access::WRITE_OK)?;
    Ok(existing)
}

/// A file without a name in `folder` that can be given one later.
fn unnamed(folder: &Path) -> io::Result<File> {
    let file = File::from(rustix::fs::open(
        folder,
        OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC,
        Mode::from_raw_mode(0o666),
    )?);
    // Without /proc there would be no way to name it.
    fs::symlink_metadata(own_path(&file))?;
    Ok(file)
}

/// A new file `part`; its error names it if it is in the way.
fn create_exclusively(part: &Path) -> io::Result<File> {
    let open = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(part);
    match open {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            format!(
                "{} exists: another run is writing it or was killed; remove it if none is",
                part.display()
            ),
        )),
        open => open,
    }
}

/// The path under which the process itself can name an open file.
fn own_path(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// `target` with `suffix` after its name.
fn beside(target: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(target);
    name.push(suffix);
    PathBuf::from(name)
}

/// A sink was used after its end.
pub(super) fn finished() -> Error {
    Error::Usage("the output is finished or has failed: it takes nothing more".to_string())
}

/// A sink was finished before all was given.
pub(super) fn incomplete(path: &Path, missing: u64) -> Error {
    Error::Usage(format!(
        "{}: {missing} elements were never given, so it is not written",
        path.display()
    ))
}
