//! Whole tensors, for inputs and outputs that are not images.

use std::path::Path;

use super::header::{Header, Kind};
use crate::dense::{DType, Data, DataRef, Value, View};
use crate::error::{Error, Result};
use crate::io::elements;
use crate::io::input::InputFile;
use crate::io::output::PendingFile;
use crate::io::staging::STAGING;

/// Reads a tensor of any rank from an npy file. Types that [`Data`] lacks become the next wider one
/// it has: f16 and f64 f32, small integers i32, u32 i64.
///
/// # Errors
/// [`Error::Io`] or [`Error::Format`] naming the file.
pub fn read_value(path: impl AsRef<Path>) -> Result<Value> {
    let file = InputFile::open(path.as_ref())?;
    let header = Header::read(&file)?;
    let element = header.element;
    let data = match element.kind {
        Kind::F16 | Kind::F32 | Kind::F64 => Data::F32(read_all(&file, &header, |bytes, to| {
            element.each_f32(bytes, |v| to.push(v));
        })?),
        Kind::I8 => Data::I32(read_all(&file, &header, |bytes, to| {
            element.each(bytes, |b| i32::from(i8::from_ne_bytes(b)), |v| to.push(v));
        })?),
        Kind::I16 => Data::I32(read_all(&file, &header, |bytes, to| {
            element.each(bytes, |b| i32::from(i16::from_ne_bytes(b)), |v| to.push(v));
        })?),
        Kind::U16 => Data::I32(read_all(&file, &header, |bytes, to| {
            element.each(bytes, |b| i32::from(u16::from_ne_bytes(b)), |v| to.push(v));
        })?),
        Kind::I32 => Data::I32(read_all(&file, &header, |bytes, to| {
            element.each(bytes, i32::from_ne_bytes, |v| to.push(v));
        })?),
        Kind::U32 => Data::I64(read_all(&file, &header, |bytes, to| {
            element.each(bytes, |b| i64::from(u32::from_ne_bytes(b)), |v| to.push(v));
        })?),
        Kind::I64 => Data::I64(read_all(&file, &header, |bytes, to| {
            element.each(bytes, i64::from_ne_bytes, |v| to.push(v));
        })?),
        Kind::U8 => Data::U8(read_all(&file, &header, |bytes, to| {
            to.extend_from_slice(bytes);
        })?),
        Kind::Bool => Data::Bool(read_all(&file, &header, |bytes, to| {
            element.each(bytes, |[b]| u8::from(b != 0), |v| to.push(v));
        })?),
        Kind::U64 => {
            return Err(file.format("elements of type u8 (64 bits): convert them to i8 first"));
        }
    };
    Ok(Value {
        dims: header.dims,
        data,
    })
}

/// All elements, read through a bounded buffer.
fn read_all<T>(
    file: &InputFile,
    header: &Header,
    decode: impl Fn(&[u8], &mut Vec<T>),
) -> Result<Vec<T>> {
    let bytes = file.len() - header.start;
    let count = bytes / header.element.size();
    let mut all = Vec::new();
    all.try_reserve_exact(count as usize)
        .map_err(|_| file.format(format!("{count} elements do not fit into memory")))?;
    let mut staging = vec![0; bytes.min(STAGING) as usize];
    let mut at = header.start;
    while at < file.len() {
        let piece = (file.len() - at).min(STAGING);
        let staging = &mut staging[..piece as usize];
        file.read_exact_at(staging, at)?;
        decode(staging, &mut all);
        at += piece;
    }
    Ok(all)
}

/// Writes a tensor to an npy file, which appears when it is complete. Returns the bytes written.
///
/// # Errors
/// [`Error::Io`] naming the file. Nothing is left behind then.
pub fn write_value(path: impl AsRef<Path>, value: View<'_>) -> Result<u64> {
    let mut file = PendingFile::create(path.as_ref())?;
    let (dtype, bytes): (_, &[u8]) = match value.data {
        DataRef::F32(v) => (DType::F32, bytemuck::cast_slice(v)),
        DataRef::I64(v) => (DType::I64, bytemuck::cast_slice(v)),
        DataRef::I32(v) => (DType::I32, bytemuck::cast_slice(v)),
        DataRef::U8(v) => (DType::U8, v),
        DataRef::Bool(v) => (DType::Bool, v),
    };
    let wanted = elements(value.dims).and_then(|n| n.checked_mul(dtype.size()));
    if wanted != Some(bytes.len() as u64) {
        return Err(Error::Usage(format!(
            "{}: {:?} does not have {} bytes of elements",
            file.path().display(),
            value.dims,
            bytes.len()
        )));
    }
    let header = Header::bytes(dtype, value.dims);
    file.reserve((header.len() + bytes.len()) as u64)?;
    file.write_all_at(&header, 0)?;
    file.write_all_at(bytes, header.len() as u64)?;
    let written = file.bytes_written();
    file.commit()?;
    Ok(written)
}
