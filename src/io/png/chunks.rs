//! What the decoder gets to see of a file: the chunks that decide pixels.
//!
//! Everything else (text, colour profiles, previews, further frames of an animation) is held against
//! its checksum and stepped over, so that the decoder's memory depends on the image's width alone.

use std::io::{self, BufRead, Read, Seek, SeekFrom};
use std::sync::Arc;

use super::MAGIC;
use crate::io::input::InputFile;

/// Bytes of its buffer.
pub(super) const BUFFER: usize = 32 << 10;

/// Bytes of a chunk beside its data: length, type and checksum.
const FRAME: u64 = 12;

/// Reads the chunks of a PNG file that decide pixels.
pub(super) struct Chunks {
    file: Arc<InputFile>,
    /// Where the bytes after the buffer lie in the file.
    at: u64,
    /// Bytes from there to the end of the chunk.
    rest: u64,
    data_seen: bool,
    buffer: Vec<u8>,
    start: usize,
}

impl Chunks {
    pub(super) fn new(file: Arc<InputFile>) -> Self {
        Chunks {
            file,
            at: 0,
            rest: MAGIC.len() as u64,
            data_seen: false,
            buffer: Vec::with_capacity(BUFFER),
            start: 0,
        }
    }

    /// Steps to the next chunk to be seen; false at the end of the file.
    fn next_chunk(&mut self) -> io::Result<bool> {
        loop {
            let mut head = [0; 8];
            if !self.fill(&mut head, self.at)? {
                return Ok(false);
            }
            let [l0, l1, l2, l3, kind @ ..] = head;
            let len = u64::from(u32::from_be_bytes([l0, l1, l2, l3]));
            self.data_seen |= &kind == b"IDAT";
            // A capital first letter marks a chunk that no decoder may ignore.
            let critical = kind[0].is_ascii_uppercase();
            if critical || (&kind == b"tRNS" && !self.data_seen) {
                self.rest = len + FRAME;
                return Ok(true);
            }
            if !self.step_over(kind, len)? {
                return Ok(false);
            }
        }
    }

    /// Steps over a chunk; false where the file ends within it.
    fn step_over(&mut self, kind: [u8; 4], len: u64) -> io::Result<bool> {
        let mut sum = crc32fast::Hasher::new();
        sum.update(&kind);
        let mut at = self.at + 8;
        let end = at + len;
        while at < end {
            self.buffer
                .resize((end - at).min(BUFFER as u64) as usize, 0);
            let n = self.file.read_at(&mut self.buffer, at)?;
            if n == 0 {
                break;
            }
            sum.update(&self.buffer[..n]);
            at += n as u64;
        }
        self.buffer.clear();
        let mut told = [0; 4];
        if !self.fill(&mut told, end)? {
            return Ok(false);
        }
        if u32::from_be_bytes(told) != sum.finalize() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("the checksum of chunk `{}` is wrong", kind.escape_ascii()),
            ));
        }
        self.at = end + 4;
        Ok(true)
    }

    /// Fills `buf` from `at`; false where the file ends before.
    fn fill(&self, buf: &mut [u8], at: u64) -> io::Result<bool> {
        let mut n = 0;
        while n < buf.len() {
            match self.file.read_at(&mut buf[n..], at + n as u64)? {
                0 => return Ok(false),
                more => n += more,
            }
        }
        Ok(true)
    }
}

impl BufRead for Chunks {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.start == self.buffer.len() {
            self.start = 0;
            self.buffer.clear();
            if self.rest > 0 || self.next_chunk()? {
                self.buffer.resize(self.rest.min(BUFFER as u64) as usize, 0);
                let n = self.file.read_at(&mut self.buffer, self.at)?;
                self.buffer.truncate(n);
                self.at += n as u64;
                self.rest -= n as u64;
            }
        }
        Ok(&self.buffer[self.start..])
    }

    fn consume(&mut self, n: usize) {
        self.start += n;
    }
}

impl Read for Chunks {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.fill_buf()?.read(out)?;
        self.consume(n);
        Ok(n)
    }
}

impl Seek for Chunks {
    /// The decoder asks for `Seek` but goes forwards only.
    fn seek(&mut self, _: SeekFrom) -> io::Result<u64> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
