use ::png::{BitDepth, ColorType, Decoder, Encoder};

use super::*;

/// What a test PNG is made of.
pub(super) struct Made<'a> {
    pub(super) color: ColorType,
    pub(super) depth: BitDepth,
    pub(super) w: u32,
    pub(super) h: u32,
    /// Packed rows, as PNG has them.
    pub(super) data: &'a [u8],
    pub(super) palette: Option<&'a [u8]>,
    pub(super) transparent: Option<&'a [u8]>,
}

impl Made<'_> {
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = Encoder::new(&mut bytes, self.w, self.h);
        encoder.set_color(self.color);
        encoder.set_depth(self.depth);
        if let Some(palette) = self.palette {
            encoder.set_palette(palette.to_vec());
        }
        if let Some(transparent) = self.transparent {
            encoder.set_trns(transparent.to_vec());
        }
        encoder
            .add_text_chunk("Comment".into(), "text is stepped over".repeat(9000))
            .unwrap();
        let mut writer = encoder.write_header().unwrap();
        writer.write_image_data(self.data).unwrap();
        writer.finish().unwrap();
        bytes
    }
}

pub(super) fn plain(color: ColorType, depth: BitDepth, w: u32, h: u32, data: &[u8]) -> Made<'_> {
    Made {
        color,
        depth,
        w,
        h,
        data,
        palette: None,
        transparent: None,
    }
}

/// With values as they are in the file.
fn raw() -> ReadOptions {
    ReadOptions {
        scale: Some(1.0),
        ..ReadOptions::default()
    }
}

fn keeping_alpha() -> ReadOptions {
    ReadOptions {
        alpha: Alpha::Keep,
        ..raw()
    }
}

#[test]
fn every_color_and_depth_is_read_row_by_row() {
    let folder = folder();
    let mut rng = Rng::new(7);
    for (w, h) in [(1, 1), (5, 7), (33, 20), (301, 3)] {
        for (color, bands) in [
            (ColorType::Grayscale, 1),
            (ColorType::GrayscaleAlpha, 2),
            (ColorType::Rgb, 3),
            (ColorType::Rgba, 4),
        ] {
            for depth in [BitDepth::Eight, BitDepth::Sixteen] {
                let bytes = if depth == BitDepth::Eight { 1 } else { 2 };
                let data = rng.bytes(w * h * bands * bytes);
                let values: Vec<f32> = data
                    .chunks(bytes)
                    .map(|b| b.iter().fold(0.0, |v, &b| v * 256.0 + f32::from(b)))
                    .collect();
                let made = plain(color, depth, w as u32, h as u32, &data);
                let path = file(folder.path(), "a.png", &made.bytes());

                let mut source = FileSource::open(&path, &keeping_alpha()).unwrap();
                assert_eq!(source.shape(), shape(1, bands as u64, h as u64, w as u64));
                assert_eq!(source.access(), Access::InOrder);
                assert!(source.warnings().is_empty());
                for at_once in [1, 3, 100] {
                    let got = read_in_order(&mut source, at_once).unwrap();
                    assert!(same_bits(&got, &values), "{color:?} {depth:?} {w}×{h}");
                    source.rewind().unwrap();
                }

                let mut source = FileSource::open(&path, &raw()).unwrap();
                let kept = if bands % 2 == 0 { bands - 1 } else { bands };
                let warned = source.warnings().len();
                assert_eq!(warned, bands - kept);
                let wanted: Vec<f32> = values
                    .chunks(bands)
                    .flat_map(|pixel| pixel[..kept].to_vec())
                    .collect();
                assert!(same_bits(&read_in_order(&mut source, 2).unwrap(), &wanted));
            }
        }
    }
}

#[test]
fn few_bits_palettes_and_transparent_colors_are_expanded() {
    let folder = folder();
    let read = |made: &Made<'_>, options: &ReadOptions| {
        let path = file(folder.path(), "a.png", &made.bytes());
        let mut source = FileSource::open(&path, options).unwrap();
        (
            source.shape().c,
            read_in_order(&mut source, 1).unwrap(),
            source.warnings().len(),
        )
    };
    let palette = [1, 2, 3, 10, 20, 30, 100, 200, 255];
    let mut made = Made {
        palette: Some(&palette),
        ..plain(ColorType::Indexed, BitDepth::Eight, 2, 2, &[2, 0, 1, 2])
    };
    let wanted = [
        100., 200., 255., 1., 2., 3., 10., 20., 30., 100., 200., 255.,
    ];
    assert_eq!(read(&made, &raw()), (3, wanted.to_vec(), 0));
    made.transparent = Some(&[0, 128]);
    assert_eq!(read(&made, &raw()), (3, wanted.to_vec(), 1));
    let with_alpha = vec![
        100., 200., 255., 255., 1., 2., 3., 0., 10., 20., 30., 128., 100., 200., 255., 255.,
    ];
    assert_eq!(read(&made, &keeping_alpha()), (4, with_alpha, 0));

    let data = [0b1011_0000];
    let made = plain(ColorType::Grayscale, BitDepth::One, 4, 1, &data);
    assert_eq!(read(&made, &raw()), (1, vec![255., 0., 255., 255.], 0));
    let data = [0b00_01_10_11];
    let made = plain(ColorType::Grayscale, BitDepth::Two, 4, 1, &data);
    assert_eq!(read(&made, &raw()), (1, vec![0., 85., 170., 255.], 0));
    let made = Made {
        transparent: Some(&[0, 7]),
        ..plain(ColorType::Grayscale, BitDepth::Eight, 2, 1, &[7, 9])
    };
    let wanted = vec![7., 0., 9., 255.];
    assert_eq!(read(&made, &keeping_alpha()), (2, wanted, 0));
}

#[test]
fn full_scale_is_one_unless_told_otherwise() {
    let folder = folder();
    let data: Vec<u8> = (0..=255).collect();
    let made = plain(ColorType::Grayscale, BitDepth::Eight, 16, 16, &data);
    let path = file(folder.path(), "a.png", &made.bytes());
    let mut source = FileSource::open(&path, &ReadOptions::default()).unwrap();
    let all = read_in_order(&mut source, 16).unwrap();
    assert_eq!((all[0], all[255]), (0.0, 1.0));
    assert!(
        all.iter()
            .zip(&data)
            .all(|(v, &b)| *v == f32::from(b) * (1.0 / 255.0))
    );

    let made = plain(
        ColorType::Grayscale,
        BitDepth::Sixteen,
        2,
        1,
        &[255, 255, 1, 0],
    );
    let path = file(folder.path(), "b.png", &made.bytes());
    let mut source = FileSource::open(&path, &ReadOptions::default()).unwrap();
    let all = read_in_order(&mut source, 1).unwrap();
    assert_eq!(all, [1.0, 256.0 * (1.0 / 65535.0)]);

    let made = plain(ColorType::Rgb, BitDepth::Eight, 1, 1, &[255, 51, 0]);
    let path = file(folder.path(), "c.png", &made.bytes());
    let options = ReadOptions {
        mean: vec![0.5],
        std: vec![0.25, 0.5, 2.0],
        channels: Some(Channels::Bgr),
        ..ReadOptions::default()
    };
    let mut source = FileSource::open(&path, &options).unwrap();
    let fifth = 51.0 * (1.0 / 255.0);
    let wanted = [-2.0, (fifth - 0.5) / 0.5, 0.25];
    assert_eq!(read_in_order(&mut source, 1).unwrap(), wanted);
}

/// Samples of a PNG file, decoded as a whole.
fn decoded(path: &Path) -> (ColorType, BitDepth, Vec<u8>) {
    let open = std::io::BufReader::new(std::fs::File::open(path).unwrap());
    let mut reader = Decoder::new(open).read_info().unwrap();
    let mut data = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut data).unwrap();
    reader.finish().unwrap();
    (info.color_type, info.bit_depth, data)
}

#[test]
fn what_is_written_is_the_rounded_image() {
    let folder = folder();
    let mut rng = Rng::new(8);
    for (c, color) in [
        (1, ColorType::Grayscale),
        (2, ColorType::GrayscaleAlpha),
        (3, ColorType::Rgb),
        (4, ColorType::Rgba),
    ] {
        for (bits, full) in [(Bits::Eight, 255.0), (Bits::Sixteen, 65535.0)] {
            let size = shape(1, c, 23, 37);
            let values: Vec<f32> = (0..size.elements())
                .map(|_| rng.below(1400) as f32 / 1000.0 - 0.2)
                .collect();
            let samples: Vec<u8> = values
                .iter()
                .flat_map(|&v| {
                    let sample = (v * full).clamp(0.0, full).round_ties_even() as u16;
                    let bytes = sample.to_be_bytes();
                    if bits == Bits::Eight {
                        bytes[1..].to_vec()
                    } else {
                        bytes.to_vec()
                    }
                })
                .collect();
            let options = WriteOptions {
                bits,
                ..WriteOptions::default()
            };
            let path = folder.path().join("out.png");
            for spooled in [false, true] {
                let mut sink = FileSink::create(&path, size, &options).unwrap();
                let memory = sink.memory();
                if spooled {
                    sink.spool(folder.path()).unwrap();
                    assert_eq!(sink.access(), Access::Anywhere);
                    write_anywhere(&mut sink, size, &values, 10).unwrap();
                } else {
                    assert_eq!(sink.access(), Access::InOrder);
                    write_in_order(&mut sink, size, &values, 4).unwrap();
                }
                sink.finish().unwrap();
                assert_eq!(sink.memory(), memory);
                let length = std::fs::metadata(&path).unwrap().len();
                let spool = if spooled { samples.len() as u64 } else { 0 };
                assert_eq!(sink.bytes_written(), length + spool);
                assert_eq!(sink.bytes_read(), spool);
                let (got_color, depth, got) = decoded(&path);
                assert_eq!(
                    (got_color, depth as usize),
                    (color, if full < 256.0 { 8 } else { 16 })
                );
                assert!(got == samples, "{color:?} {bits:?} spooled {spooled}");
                std::fs::remove_file(&path).unwrap();
            }
        }
    }
    assert_eq!(names(folder.path()), [""; 0]);
}

#[test]
fn scale_and_mean_of_the_output() {
    let folder = folder();
    let path = folder.path().join("out.png");
    let size = shape(1, 3, 1, 1);
    let options = WriteOptions {
        scale: Some(100.0),
        mean: vec![10.0, 20.0, -30.0],
        ..WriteOptions::default()
    };
    let mut sink = FileSink::create(&path, size, &options).unwrap();
    sink.write(0, 0, 0..1, &[&[0.5, 0.025, 0.1]]).unwrap();
    sink.finish().unwrap();
    assert_eq!(decoded(&path).2, [60, 22, 0]);
}

#[test]
fn a_png_copied_is_the_same_png() {
    let folder = folder();
    let data = Rng::new(9).bytes(31 * 17 * 3 * 2);
    let made = plain(ColorType::Rgb, BitDepth::Sixteen, 31, 17, &data);
    let path = file(folder.path(), "a.png", &made.bytes());
    let mut source = FileSource::open(&path, &ReadOptions::default()).unwrap();
    let all = read_in_order(&mut source, 5).unwrap();
    let size = source.shape();
    let options = WriteOptions {
        bits: Bits::Sixteen,
        ..WriteOptions::default()
    };
    let mut sink = FileSink::create(folder.path().join("b.PNG"), size, &options).unwrap();
    write_in_order(&mut sink, size, &all, 17).unwrap();
    sink.finish().unwrap();
    assert_eq!(decoded(&folder.path().join("b.PNG")).2, data);
}

#[test]
fn what_a_png_cannot_hold_is_refused_at_once() {
    let folder = folder();
    for (size, name, wanted) in [
        (shape(1, 5, 4, 4), "out.png", "1 to 4 channels, not 5"),
        (shape(2, 3, 4, 4), "out.png", "1 image, not 2"),
        (shape(1, 1, 1 << 31, 4), "out.png", "2^31"),
        (shape(1, 3, 0, 4), "out.png", "no file holds"),
        (shape(1, 1 << 40, 1 << 40, 4), "out.npy", "no file holds"),
        (shape(1, 3, 4, 4), "out.tiff", ".npy or .png"),
        (shape(1, 3, 4, 4), "out", ".npy or .png"),
    ] {
        let path = folder.path().join(name);
        let said = message(FileSink::create(&path, size, &WriteOptions::default()));
        assert!(said.contains(wanted) && said.contains(name), "{said}");
        assert_eq!(names(folder.path()), [""; 0]);
    }
}

#[test]
fn rows_out_of_order_are_refused() {
    let folder = folder();
    let data = [0; 24];
    let made = plain(ColorType::Grayscale, BitDepth::Eight, 4, 6, &data);
    let path = file(folder.path(), "a.png", &made.bytes());
    let mut source = FileSource::open(&path, &raw()).unwrap();
    let mut row = [0.0; 4];
    assert!(source.read(0, 1, 0..4, &mut [&mut row]).is_err());
    assert!(source.read(0, 0, 0..3, &mut [&mut row[..3]]).is_err());
    assert!(source.read(0, 0, 0..4, &mut [&mut row]).is_ok());
    assert!(source.read(0, 0, 0..4, &mut [&mut row]).is_err());
    assert!(source.read(0, 1, 0..4, &mut [&mut row]).is_ok());
    let mut sink = FileSink::create(
        folder.path().join("b.png"),
        shape(1, 1, 6, 4),
        &WriteOptions::default(),
    )
    .unwrap();
    assert!(sink.write(0, 1, 0..4, &[&row]).is_err());
    assert!(sink.write(0, 0, 0..4, &[&row]).is_ok());
    let said = message(sink.finish());
    assert!(said.contains("20 elements were never given"), "{said}");
    assert!(sink.write(0, 1, 0..4, &[&row]).is_err());
    assert!(sink.finish().is_err());
    assert_eq!(names(folder.path()), ["a.png"]);
}

#[test]
fn interlaced_and_hollow_files_say_what_to_do() {
    let folder = folder();
    let data = [0; 24];
    let good = plain(ColorType::Grayscale, BitDepth::Eight, 4, 6, &data).bytes();
    // The header's checksum stands behind its 13 bytes, which begin at byte 16.
    let with_header = |change: &dyn Fn(&mut [u8])| {
        let mut bytes = good.clone();
        change(&mut bytes[16..29]);
        let sum = crc(&bytes[12..29]);
        bytes[29..33].copy_from_slice(&sum.to_be_bytes());
        file(folder.path(), "a.png", &bytes)
    };
    let path = with_header(&|header| header[12] = 1);
    let said = message(FileSource::open(&path, &raw()));
    assert!(
        said.contains("interlace") && said.contains("a.png"),
        "{said}"
    );

    let path = with_header(&|header| header[..4].copy_from_slice(&(1u32 << 30).to_be_bytes()));
    let said = message(FileSource::open(&path, &raw()));
    assert!(said.contains("cannot hold 6 rows"), "{said}");

    let path = with_header(&|header| header[7] = 7);
    let mut source = FileSource::open(&path, &raw()).unwrap();
    let said = message(read_in_order(&mut source, 2));
    assert!(said.contains("a.png: PNG"), "{said}");

    let path = file(folder.path(), "a.png", &good[..good.len() - 14]);
    let mut source = FileSource::open(&path, &raw()).unwrap();
    let said = message(read_in_order(&mut source, 2));
    assert!(said.contains("truncated"), "{said}");
}

/// The checksum of PNG, bit by bit.
pub(super) fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |sum, &byte| {
        (0..8).fold(sum ^ u32::from(byte), |sum, _| {
            (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg())
        })
    })
}

#[test]
fn animations_give_their_first_image() {
    let folder = folder();
    let data = Rng::new(10).bytes(24);
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, 4, 6);
    encoder.set_color(ColorType::Grayscale);
    encoder.set_animated(2, 0).unwrap();
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(&data).unwrap();
    writer.write_image_data(&[0; 24]).unwrap();
    writer.finish().unwrap();
    let path = file(folder.path(), "a.png", &bytes);
    let mut source = FileSource::open(&path, &raw()).unwrap();
    let wanted: Vec<f32> = data.iter().map(|&b| f32::from(b)).collect();
    assert_eq!(read_in_order(&mut source, 4).unwrap(), wanted);
}
