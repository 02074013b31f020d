//! A file as memory: for parsing the model, nothing else.

use std::fs::File;

use bytes::Bytes;

/// The bytes of `file`, mapped. The mapping lives as long as the bytes or a slice of them.
///
/// # Errors
/// What the operating system says.
pub(crate) fn map(file: &File) -> std::io::Result<Bytes> {
    if file.metadata()?.len() == 0 {
        return Ok(Bytes::new());
    }
    #[expect(unsafe_code, reason = "mapping a file is unsafe: others may change it")]
    // SAFETY: the mapping is read-only, and its bytes have no invariant that a change by another
    // process could break: what is made of them is checked as it is read. A file that is truncated
    // meanwhile ends the process with a signal, which the short life of the mapping (while a model is
    // opened) makes as unlikely as can be.
    let map = unsafe { memmap2::Mmap::map(file) }?;
    Ok(Bytes::from_owner(map))
}
