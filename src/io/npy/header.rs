//! The header of an npy file: a magic, a version, and a Python dictionary.

use half::f16;

use crate::dense::DType;
use crate::error::Result;
use crate::io::elements;
use crate::io::input::InputFile;

/// The first bytes of every npy file.
pub(in crate::io) const MAGIC: &[u8] = b"\x93NUMPY";

/// Most bytes of a dictionary: NumPy writes a hundred or so.
const MOST_DICT: u64 = 64 << 10;
/// Most lengths of a shape: NumPy's own limit.
const MOST_RANK: usize = 64;

/// What the elements are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    F16,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    Bool,
}

/// The element type: a kind and a byte order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Element {
    pub(super) kind: Kind,
    big_endian: bool,
}

/// What a file says of its array.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) element: Element,
    pub(super) dims: Vec<u64>,
    /// Where the elements begin.
    pub(super) start: u64,
}

impl Element {
    /// From a type string such as `<f4`.
    fn parse(descr: &str) -> Option<Self> {
        let (order, kind) = descr.split_at_checked(1)?;
        let big_endian = match order {
            "<" => false,
            ">" => true,
            "=" | "|" => cfg!(target_endian = "big"),
            _ => return None,
        };
        let kind = match kind {
            "f2" => Kind::F16,
            "f4" => Kind::F32,
            "f8" => Kind::F64,
            "i1" => Kind::I8,
            "i2" => Kind::I16,
            "i4" => Kind::I32,
            "i8" => Kind::I64,
            "u1" => Kind::U8,
            "u2" => Kind::U16,
            "u4" => Kind::U32,
            "u8" => Kind::U64,
            "b1" => Kind::Bool,
            _ => return None,
        };
        Some(Element { kind, big_endian })
    }

    /// Bytes of one element.
    pub(super) fn size(self) -> u64 {
        match self.kind {
            Kind::I8 | Kind::U8 | Kind::Bool => 1,
            Kind::F16 | Kind::I16 | Kind::U16 => 2,
            Kind::F32 | Kind::I32 | Kind::U32 => 4,
            Kind::F64 | Kind::I64 | Kind::U64 => 8,
        }
    }

    /// Each element of `bytes`, made of its bytes in the machine's order.
    pub(super) fn each<const S: usize, T>(
        self,
        bytes: &[u8],
        make: impl Fn([u8; S]) -> T,
        mut put: impl FnMut(T),
    ) {
        let swap = self.big_endian != cfg!(target_endian = "big");
        for &chunk in bytes.as_chunks().0 {
            let mut native: [u8; S] = chunk;
            if swap {
                native.reverse();
            }
            put(make(native));
        }
    }

    /// Each element of `bytes` as the nearest f32.
    pub(super) fn each_f32(self, bytes: &[u8], put: impl FnMut(f32)) {
        match self.kind {
            Kind::F16 => self.each(bytes, |b| f16::from_ne_bytes(b).to_f32(), put),
            Kind::F32 => self.each(bytes, f32::from_ne_bytes, put),
            Kind::F64 => self.each(bytes, |b| f64::from_ne_bytes(b) as f32, put),
            Kind::I8 => self.each(bytes, |b| f32::from(i8::from_ne_bytes(b)), put),
            Kind::I16 => self.each(bytes, |b| f32::from(i16::from_ne_bytes(b)), put),
            Kind::I32 => self.each(bytes, |b| i32::from_ne_bytes(b) as f32, put),
            Kind::I64 => self.each(bytes, |b| i64::from_ne_bytes(b) as f32, put),
            Kind::U8 => self.each(bytes, |[b]| f32::from(b), put),
            Kind::U16 => self.each(bytes, |b| f32::from(u16::from_ne_bytes(b)), put),
            Kind::U32 => self.each(bytes, |b| u32::from_ne_bytes(b) as f32, put),
            Kind::U64 => self.each(bytes, |b| u64::from_ne_bytes(b) as f32, put),
            Kind::Bool => self.each(bytes, |[b]| f32::from(u8::from(b != 0)), put),
        }
    }
}

impl Header {
    /// Reads the header of `file` and holds it against the file's length.
    pub(super) fn read(file: &InputFile) -> Result<Self> {
        let mut fixed = [0; 12];
        file.read_exact_at(&mut fixed[..MAGIC.len()], 0)?;
        if !fixed.starts_with(MAGIC) {
            return Err(file.format("not an npy file"));
        }
        file.read_exact_at(&mut fixed[..10], 0)?;
        let (text_start, text_len) = match fixed[6] {
            1 => (10, u64::from(u16::from_le_bytes([fixed[8], fixed[9]]))),
            2 | 3 => {
                file.read_exact_at(&mut fixed[10..], 10)?;
                let len = [fixed[8], fixed[9], fixed[10], fixed[11]];
                (12, u64::from(u32::from_le_bytes(len)))
            }
            version => {
                return Err(file.format(format!("npy version {version}: 1, 2 and 3 can be read")));
            }
        };
        if text_len > MOST_DICT {
            return Err(file.format(format!(
                "a header of {text_len} bytes: at most {MOST_DICT} are read"
            )));
        }
        let mut text = vec![0; text_len as usize];
        file.read_exact_at(&mut text, text_start)?;
        let dict = Scan(&text)
            .dict()
            .map_err(|why| file.format(format!("npy header: {why}")))?;

        let element = Element::parse(&dict.descr).ok_or_else(|| {
            file.format(format!(
                "elements of type `{}`: f2, f4, f8, i1 to i8, u1 to u8 and b1 can be read",
                dict.descr.escape_default()
            ))
        })?;
        if dict.fortran_order {
            return Err(file
                .format("in Fortran order: save it in C order (`numpy.ascontiguousarray`) first"));
        }
        let header = Header {
            element,
            dims: dict.shape,
            start: text_start + text_len,
        };
        let end = elements(&header.dims)
            .and_then(|n| n.checked_mul(element.size()))
            .and_then(|bytes| bytes.checked_add(header.start));
        if end != Some(file.len()) {
            let wanted = end.map_or("more than any file has".to_string(), |n| n.to_string());
            return Err(file.format(format!(
                "{:?} elements of {} bytes need a file of {wanted} bytes, it has {}",
                header.dims,
                element.size(),
                file.len()
            )));
        }
        Ok(header)
    }

    /// The bytes before the elements, which follow in the machine's byte order.
    pub(super) fn bytes(dtype: DType, dims: &[u64]) -> Vec<u8> {
        let order = if cfg!(target_endian = "big") {
            '>'
        } else {
            '<'
        };
        let descr = match dtype {
            DType::F32 => format!("{order}f4"),
            DType::I64 => format!("{order}i8"),
            DType::I32 => format!("{order}i4"),
            DType::U8 => "|u1".to_string(),
            DType::Bool => "|b1".to_string(),
        };
        // A comma after each length: a tuple of one needs it.
        let shape: String = dims.iter().map(|d| format!("{d},")).collect();
        let mut text =
            format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}");
        // The elements begin at a multiple of 64.
        let prefix = MAGIC.len() + 4;
        while !(prefix + text.len() + 1).is_multiple_of(64) {
            text.push(' ');
        }
        text.push('\n');
        let mut bytes = MAGIC.to_vec();
        bytes.extend([1, 0]);
        // A shape that MOST_RANK allows takes far fewer than 65536 bytes.
        bytes.extend((text.len() as u16).to_le_bytes());
        bytes.extend(text.into_bytes());
        bytes
    }
}

struct Dict {
    descr: String,
    fortran_order: bool,
    shape: Vec<u64>,
}

/// What is left to read of a dictionary.
struct Scan<'a>(&'a [u8]);

impl Scan<'_> {
    fn dict(&mut self) -> std::result::Result<Dict, String> {
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        self.expect(b'{')?;
        while !self.take(b'}') {
            let key = self.string()?;
            self.expect(b':')?;
            let new = match key.as_str() {
                "descr" => descr.replace(self.string()?).is_none(),
                "fortran_order" => fortran_order.replace(self.boolean()?).is_none(),
                "shape" => shape.replace(self.tuple()?).is_none(),
                _ => return Err(format!("key `{}` is not known", key.escape_default())),
            };
            if !new {
                return Err(format!("`{key}` stands there twice"));
            }
            if !self.take(b',') {
                self.expect(b'}')?;
                break;
            }
        }
        self.skip_space();
        if !self.0.is_empty() {
            return Err("something follows the dictionary".to_string());
        }
        Ok(Dict {
            descr: descr.ok_or("`descr` is missing")?,
            fortran_order: fortran_order.ok_or("`fortran_order` is missing")?,
            shape: shape.ok_or("`shape` is missing")?,
        })
    }

    fn skip_space(&mut self) {
        self.0 = self.0.trim_ascii_start();
    }

    fn take(&mut self, wanted: u8) -> bool {
        self.skip_space();
        match self.0.split_first() {
            Some((&first, rest)) if first == wanted => {
                self.0 = rest;
                true
            }
            _ => false,
        }
    }

    fn expect(&mut self, wanted: u8) -> std::result::Result<(), String> {
        if self.take(wanted) {
            return Ok(());
        }
        Err(match self.0.first() {
            Some(&b'[') => "records of several fields cannot be read".to_string(),
            Some(&found) => format!(
                "`{}` where `{}` should be",
                found.escape_ascii(),
                char::from(wanted)
            ),
            None => format!("ends where `{}` should be", char::from(wanted)),
        })
    }

    fn string(&mut self) -> std::result::Result<String, String> {
        let quote = if self.take(b'"') {
            b'"'
        } else {
            self.expect(b'\'')?;
            b'\''
        };
        let end = self.0.iter().position(|&b| b == quote);
        let (text, rest) = self.0.split_at(end.ok_or("a string does not end")?);
        self.0 = &rest[1..];
        Ok(String::from_utf8_lossy(text).into_owned())
    }

    fn word(&mut self) -> &[u8] {
        self.skip_space();
        let end = self.0.iter().position(|b| !b.is_ascii_alphanumeric());
        let (word, rest) = self.0.split_at(end.unwrap_or(self.0.len()));
        self.0 = rest;
        word
    }

    fn boolean(&mut self) -> std::result::Result<bool, String> {
        match self.word() {
            b"True" => Ok(true),
            b"False" => Ok(false),
            _ => Err("`fortran_order` is neither True nor False".to_string()),
        }
    }

    fn tuple(&mut self) -> std::result::Result<Vec<u64>, String> {
        let mut dims = Vec::new();
        self.expect(b'(')?;
        while !self.take(b')') {
            let word = self.word();
            // Python 2 wrote long integers with an L.
            let digits = word.strip_suffix(b"L").unwrap_or(word);
            let dim = std::str::from_utf8(digits)
                .ok()
                .and_then(|text| text.parse().ok())
                .ok_or("`shape` is not a list of lengths")?;
            dims.push(dim);
            if dims.len() > MOST_RANK {
                return Err(format!("more than {MOST_RANK} lengths"));
            }
            if !self.take(b',') {
                self.expect(b')')?;
                break;
            }
        }
        Ok(dims)
    }
}
