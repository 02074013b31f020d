//! Thousands of damaged files: an error or an image, never a panic, a hang or a huge allocation.

use ::png::{BitDepth, ColorType};

use super::png::{Made, crc, plain};
use super::*;

/// Damages `bytes` in one of several ways.
fn damage(bytes: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    match rng.below(8) {
        0 => bytes.truncate(rng.below(bytes.len() as u64) as usize),
        1 => {
            let more = rng.below(40) as usize;
            bytes.extend(rng.bytes(more));
        }
        2 => {
            let at = rng.below(bytes.len() as u64) as usize;
            let len = (rng.below(9) as usize).min(bytes.len() - at);
            let noise = rng.bytes(len);
            bytes[at..at + len].copy_from_slice(&noise);
        }
        3 => {
            let at = rng.below(bytes.len() as u64) as usize;
            bytes.remove(at);
        }
        _ => {
            for _ in 0..=rng.below(3) {
                let at = rng.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << rng.below(8);
            }
        }
    }
    bytes
}

/// Reads all of the file at `path`; what is held must be in proportion to it.
fn read(path: &Path) -> Result<Vec<f32>> {
    let options = ReadOptions {
        alpha: Alpha::Keep,
        ..ReadOptions::default()
    };
    let mut source = FileSource::open(path, &options)?;
    let length = std::fs::metadata(path).unwrap().len();
    let ImageShape { n, c, h, w } = source.shape();
    // A byte of deflate holds at most 1032 bytes of samples, a byte 8 samples.
    let most = length * 1032 * 8 * 4;
    assert!(
        n * c * h * w <= most,
        "{:?} of {length} bytes",
        source.shape()
    );
    assert!(source.memory() <= 16 * most + (1 << 20));
    if n * c * h * w > 1 << 22 {
        return Err(Error::Usage("too large for this test".into()));
    }
    read_in_order(&mut source, 3)
}

#[test]
fn damaged_npy_files() {
    let folder = folder();
    let path = folder.path().join("a.npy");
    let value = crate::dense::Value::f32(&[1, 2, 3, 5], Rng::new(14).floats(30));
    write_value(&path, value.view()).unwrap();
    let good = std::fs::read(&path).unwrap();
    let header = good.len() - 120;
    let mut rng = Rng::new(15);
    let mut errors = 0;
    for round in 0..6000 {
        // Damage to the header alone is what can do harm.
        let bytes = if round % 4 == 0 {
            damage(&good, &mut rng)
        } else {
            let mut bytes = damage(&good[..header], &mut rng);
            bytes.extend(&good[header..]);
            bytes
        };
        std::fs::write(&path, &bytes).unwrap();
        errors += usize::from(read(&path).is_err());
        let _ = read_value(&path);
    }
    assert!((3000..6000).contains(&errors), "{errors} errors");
}

/// `bytes` with the checksum of each chunk put right, so that damage gets past it.
fn with_checksums(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let mut at = 8;
    while at + 12 <= bytes.len() {
        let len = u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        let end = at + 8 + len;
        if end + 4 > bytes.len() {
            break;
        }
        let sum = crc(&bytes[at + 4..end]);
        bytes[end..end + 4].copy_from_slice(&sum.to_be_bytes());
        at = end + 4;
    }
    bytes
}

/// `bytes` without the chunks that nobody reads but for the checksum.
fn without_text(bytes: &[u8]) -> Vec<u8> {
    let mut out = bytes[..8].to_vec();
    let mut at = 8;
    while at < bytes.len() {
        let len = u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()) as usize + 12;
        if &bytes[at + 4..at + 8] != b"tEXt" {
            out.extend(&bytes[at..at + len]);
        }
        at += len;
    }
    out
}

#[test]
fn damaged_png_files() {
    let folder = folder();
    let path = folder.path().join("a.png");
    let mut rng = Rng::new(16);
    let smooth: Vec<u8> = (0..33 * 21 * 4).map(|i| (i / 7) as u8).collect();
    let noise = rng.bytes(19 * 23 * 8);
    let palette = rng.bytes(30);
    let indices: Vec<u8> = noise[..31 * 17].iter().map(|b| b % 10).collect();
    let made = [
        plain(ColorType::Rgba, BitDepth::Eight, 33, 21, &smooth).bytes(),
        plain(ColorType::Rgba, BitDepth::Sixteen, 19, 23, &noise).bytes(),
        plain(
            ColorType::Grayscale,
            BitDepth::Two,
            33,
            21,
            &noise[..9 * 21],
        )
        .bytes(),
        Made {
            transparent: Some(&[0, 0, 0, 0, 0, 0]),
            ..plain(
                ColorType::Rgb,
                BitDepth::Eight,
                19,
                23,
                &noise[..19 * 23 * 3],
            )
        }
        .bytes(),
        Made {
            palette: Some(&palette),
            transparent: Some(&[3, 200]),
            ..plain(ColorType::Indexed, BitDepth::Eight, 31, 17, &indices)
        }
        .bytes(),
    ];
    let mut errors = 0;
    let mut images = 0;
    for good in made.map(|bytes| without_text(&bytes)) {
        std::fs::write(&path, &good).unwrap();
        let whole = read(&path).unwrap();
        for round in 0..1200 {
            let bytes = damage(&good, &mut rng);
            let mended = round % 2 == 0;
            let bytes = if mended {
                with_checksums(&bytes)
            } else {
                bytes
            };
            std::fs::write(&path, &bytes).unwrap();
            match read(&path) {
                Err(_) => errors += 1,
                // Damage that the checksums show must not pass for an image.
                Ok(image) => {
                    images += 1;
                    assert!(mended || same_bits(&image, &whole), "round {round}");
                }
            }
        }
    }
    assert!(
        errors > 4000 && images > 300,
        "{errors} errors, {images} images"
    );
}
