use super::*;
use crate::dense::{Data, Value};

/// An npy file made by hand: version `version`, `dict` as it stands, then `data`.
fn npy(version: u8, dict: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY".to_vec();
    bytes.extend([version, 0]);
    match version {
        1 => bytes.extend((dict.len() as u16).to_le_bytes()),
        _ => bytes.extend((dict.len() as u32).to_le_bytes()),
    }
    bytes.extend(dict.as_bytes());
    bytes.extend(data);
    bytes
}

fn dict(descr: &str, shape: &str) -> String {
    format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n")
}

fn le(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

#[test]
fn every_shape_and_every_cut_gives_the_same_rows() {
    let folder = folder();
    let mut rng = Rng::new(1);
    // The last one is wider than the staging buffer, the one before has many rows in it.
    for (n, c, h, w) in [
        (1, 1, 1, 1),
        (1, 3, 7, 5),
        (3, 2, 4, 9),
        (2, 5, 33, 17),
        (1, 2, 900, 101),
        (1, 2, 3, 70_001),
    ] {
        let shape = shape(n, c, h, w);
        let planar = rng.floats(n * c * h * w);
        let wanted = interleaved(&planar, shape);
        let text = dict("<f4", &format!("({n}, {c}, {h}, {w})"));
        let path = file(folder.path(), "a.npy", &npy(1, &text, &le(&planar)));
        let mut source = FileSource::open(&path, &ReadOptions::default()).unwrap();
        assert_eq!(source.shape(), shape);
        assert_eq!(source.access(), Access::Anywhere);
        for at_once in [1, 2, 64, 1000] {
            let got = read_in_order(&mut source, at_once).unwrap();
            assert!(same_bits(&got, &wanted), "{shape:?} {at_once}");
        }
        for width in [1.max(w / 7), w.div_ceil(2), w] {
            let got = read_anywhere(&mut source, 3, width);
            assert!(same_bits(&got, &wanted), "{shape:?} panels of {width}");
        }

        let back = folder.path().join("b.npy");
        let mut sink = FileSink::create(&back, shape, &WriteOptions::default()).unwrap();
        write_in_order(&mut sink, shape, &wanted, 7).unwrap();
        sink.finish().unwrap();
        let length = std::fs::metadata(&back).unwrap().len();
        assert_eq!(sink.bytes_written(), length);
        let value = read_value(&back).unwrap();
        assert_eq!(value, Value::f32(&[n, c, h, w], planar.clone()));

        let mut sink = FileSink::create(&back, shape, &WriteOptions::default()).unwrap();
        write_anywhere(&mut sink, shape, &wanted, w.div_ceil(3)).unwrap();
        sink.finish().unwrap();
        assert_eq!(
            read_value(&back).unwrap(),
            Value::f32(&[n, c, h, w], planar)
        );
    }
}

#[test]
fn fewer_lengths_are_one_image_or_one_channel() {
    let folder = folder();
    for (text, wanted) in [
        ("(2, 3, 4)", shape(1, 2, 3, 4)),
        ("(6, 4)", shape(1, 1, 6, 4)),
        ("(1L,2,3,4)", shape(1, 2, 3, 4)),
    ] {
        let bytes = npy(3, &dict("<f4", text), &[0; 96]);
        let path = file(folder.path(), "a.npy", &bytes);
        let source = FileSource::open(&path, &ReadOptions::default()).unwrap();
        assert_eq!(source.shape(), wanted);
    }
}

#[test]
fn every_type_and_byte_order_is_read() {
    let folder = folder();
    // -2.5, 0, 3 and 300 as far as each type holds them, written down by hand.
    let cases: [(&str, &[u8], [f32; 2]); 15] = [
        ("<f2", &[0x00, 0xc1, 0x00, 0x42], [-2.5, 3.0]),
        (">f2", &[0xc1, 0x00, 0x42, 0x00], [-2.5, 3.0]),
        (">f4", &[0xc0, 0x20, 0, 0, 0x40, 0x40, 0, 0], [-2.5, 3.0]),
        ("=f4", &f32_pair(-2.5, 3.0), [-2.5, 3.0]),
        (
            "<f8",
            &[0, 0, 0, 0, 0, 0, 0x04, 0xc0, 0, 0, 0, 0, 0, 0, 0x08, 0x40],
            [-2.5, 3.0],
        ),
        (
            ">f8",
            &[0xc0, 0x04, 0, 0, 0, 0, 0, 0, 0x40, 0x08, 0, 0, 0, 0, 0, 0],
            [-2.5, 3.0],
        ),
        ("|i1", &[0xfe, 3], [-2.0, 3.0]),
        ("<i2", &[0xfe, 0xff, 0x2c, 0x01], [-2.0, 300.0]),
        (">i2", &[0xff, 0xfe, 0x01, 0x2c], [-2.0, 300.0]),
        ("|u1", &[0xfe, 3], [254.0, 3.0]),
        (">u2", &[0x01, 0x2c, 0xff, 0xff], [300.0, 65535.0]),
        (
            ">u4",
            &[0, 0, 1, 0x2c, 0x80, 0, 0, 0],
            [300.0, 2147483648.0],
        ),
        ("<i4", &[0xfe, 0xff, 0xff, 0xff, 3, 0, 0, 0], [-2.0, 3.0]),
        (
            "<i8",
            &[
                0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 3, 0, 0, 0, 0, 0, 0, 0,
            ],
            [-2.0, 3.0],
        ),
        ("|b1", &[0, 1], [0.0, 1.0]),
    ];
    for (descr, data, wanted) in cases {
        let path = file(
            folder.path(),
            "a.npy",
            &npy(2, &dict(descr, "(1, 2)"), data),
        );
        let mut source = FileSource::open(&path, &ReadOptions::default()).unwrap();
        assert_eq!(read_in_order(&mut source, 1).unwrap(), wanted, "{descr}");
        let value = read_value(&path).unwrap();
        let floats: Vec<f32> = match value.data {
            Data::F32(v) => v,
            Data::I64(v) => v.into_iter().map(|v| v as f32).collect(),
            Data::I32(v) => v.into_iter().map(|v| v as f32).collect(),
            Data::U8(v) | Data::Bool(v) => v.into_iter().map(f32::from).collect(),
        };
        assert_eq!(floats, wanted, "{descr} as a value");
    }
}

fn f32_pair(a: f32, b: f32) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&a.to_ne_bytes());
    bytes[4..].copy_from_slice(&b.to_ne_bytes());
    bytes
}

#[test]
fn values_of_every_type_and_rank_come_back() {
    let folder = folder();
    let path = folder.path().join("v.npy");
    let values = [
        Value::f32(&[], vec![1.5]),
        Value::f32(&[2, 0, 3], vec![]),
        Value::i64(&[3], vec![i64::MIN, 0, i64::MAX]),
        Value {
            dims: vec![1, 2, 1, 1, 2],
            data: Data::I32(vec![i32::MIN, -1, 1, i32::MAX]),
        },
        Value {
            dims: vec![4],
            data: Data::U8(vec![0, 1, 254, 255]),
        },
        Value {
            dims: vec![2, 2],
            data: Data::Bool(vec![0, 1, 1, 0]),
        },
        Value::f32(&[100_003], Rng::new(2).floats(100_003)),
    ];
    for value in values {
        let written = write_value(&path, value.view()).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(written, bytes.len() as u64);
        let start = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
        assert_eq!((start % 64, bytes[start - 1]), (0, b'\n'));
        assert_eq!(read_value(&path).unwrap(), value);
    }
    let bytes = std::fs::read(&path).unwrap();
    assert!(bytes.starts_with(
        b"\x93NUMPY\x01\0v\0{'descr': '<f4', 'fortran_order': False, 'shape': (100003,), } "
    ));
}

#[test]
fn what_cannot_be_read_says_why() {
    let folder = folder();
    let data = [0; 96];
    let huge = format!("({0}, {0}, {0}, {0})", u64::MAX);
    let many = format!("({})", "1,".repeat(65));
    let long = format!("{}{}", dict("<f4", "(4, 6)"), " ".repeat(70_000));
    let cases = [
        (dict("<f4", "(4, 5)"), "need a file of"),
        (dict("<f4", "(4, 7)"), "need a file of"),
        (dict("<f4", &huge), "more than any file"),
        (dict("<f4", "(4, -6)"), "list of lengths"),
        (dict("<f4", "(4, 99999999999999999999)"), "list of lengths"),
        (dict("<f4", &many), "more than 64 lengths"),
        (dict("<f4", "(2, 1, 2, 1, 6)"), "is not an image"),
        (dict("<f4", "(24,)"), "is not an image"),
        (dict("<c8", "(4, 3)"), "`<c8`"),
        (dict("<U3", "(4, 2)"), "`<U3`"),
        (dict("", "(4, 6)"), "type ``"),
        (
            dict("<f4", "(4, 6)").replace("False", "True"),
            "Fortran order",
        ),
        (
            dict("<f4", "(4, 6)").replace("False", "None"),
            "neither True nor False",
        ),
        (
            dict("<f4", "(4, 6)").replace("'<f4'", "[('a', '<f4')]"),
            "several fields",
        ),
        (
            dict("<f4", "(4, 6)").replace("'descr': '<f4', ", ""),
            "`descr` is missing",
        ),
        (
            dict("<f4", "(4, 6)").replace("'descr'", "'shape'"),
            "npy header",
        ),
        (
            dict("<f4", "(4, 6)").replace("}", "'shape': (4, 6)}"),
            "twice",
        ),
        (dict("<f4", "(4, 6)").replace('}', "} x"), "follows"),
        (dict("<f4", "(4, 6)").replace('}', ""), "ends where `'`"),
        (dict("<f4", "(4, 6)").replace("descr", "desk"), "not known"),
        (String::new(), "ends where `{`"),
        (long, "at most 65536"),
    ];
    for (text, wanted) in cases {
        let path = file(folder.path(), "a.npy", &npy(2, &text, &data));
        let said = message(FileSource::open(&path, &ReadOptions::default()));
        assert!(said.contains(wanted), "{text}: {said}");
        assert!(said.contains("a.npy"), "{said}");
    }
    for (bytes, wanted) in [
        (npy(4, &dict("<f4", "(4, 6)"), &data), "npy version 4"),
        (npy(2, &dict("<u8", "(4, 3)"), &data), "64 bits"),
        (b"\x93NUMPY\x02".to_vec(), "truncated"),
        (b"GIF89a".to_vec(), "not an npy file"),
    ] {
        let path = file(folder.path(), "a.npy", &bytes);
        let said = message(read_value(&path));
        assert!(said.contains(wanted), "{said}");
    }
    let said = message(read_value(folder.path()));
    assert!(said.contains("not a regular file"), "{said}");
    let said = message(read_value(folder.path().join("none.npy")));
    assert!(said.contains("none.npy: No such file"), "{said}");
}

#[test]
fn rows_that_are_not_there_are_refused() {
    let folder = folder();
    let bytes = npy(1, &dict("<f4", "(2, 3, 4)"), &[0; 96]);
    let path = file(folder.path(), "a.npy", &bytes);
    let mut source = FileSource::open(&path, &ReadOptions::default()).unwrap();
    let mut row = [0.0; 8];
    for (item, y, cols, len) in [
        (1, 0, 0..4, 8),
        (0, 3, 0..4, 8),
        (0, u64::MAX, 0..4, 8),
        (0, 0, 0..5, 8),
        (0, 0, 0..4, 7),
        (0, 0, Range { start: 2, end: 1 }, 0),
    ] {
        let cols: Range<u64> = cols;
        assert!(source.read(item, y, cols, &mut [&mut row[..len]]).is_err());
    }
    assert!(source.read(0, 2, 0..4, &mut [&mut row]).is_ok());
    assert!(source.read(0, 3, 4..4, &mut []).is_ok());
}

#[test]
fn a_file_that_shrinks_while_it_is_read_is_an_error() {
    let folder = folder();
    let bytes = npy(1, &dict("<f4", "(2, 3, 4)"), &[0; 96]);
    let path = file(folder.path(), "a.npy", &bytes);
    let mut source = FileSource::open(&path, &ReadOptions::default()).unwrap();
    let open = std::fs::File::options().write(true).open(&path).unwrap();
    open.set_len(bytes.len() as u64 - 4).unwrap();
    let said = message(read_in_order(&mut source, 1));
    assert!(said.contains("truncated"), "{said}");
}

#[test]
fn conversions_are_those_of_whole_arrays() {
    let folder = folder();
    let size = shape(2, 3, 5, 7);
    let planar = Rng::new(3).floats(210);
    let text = dict("<f4", "(2, 3, 5, 7)");
    let path = file(folder.path(), "a.npy", &npy(1, &text, &le(&planar)));
    let raw = interleaved(&planar, size);
    let options = ReadOptions {
        scale: Some(0.25),
        mean: vec![1.0, 2.0, 3.0],
        std: vec![0.5],
        channels: Some(Channels::Bgr),
        ..ReadOptions::default()
    };
    let mut source = FileSource::open(&path, &options).unwrap();
    let wanted: Vec<f32> = raw
        .chunks(3)
        .flat_map(|p| {
            [
                (p[2] * 0.25 - 1.0) / 0.5,
                (p[1] * 0.25 - 2.0) / 0.5,
                (p[0] * 0.25 - 3.0) / 0.5,
            ]
        })
        .collect();
    assert!(same_bits(&read_in_order(&mut source, 2).unwrap(), &wanted));
    assert!(same_bits(&read_anywhere(&mut source, 2, 3), &wanted));

    let options = ReadOptions {
        std: vec![4.0],
        channels: Some(Channels::Gray),
        ..ReadOptions::default()
    };
    let mut source = FileSource::open(&path, &options).unwrap();
    assert_eq!(source.shape().c, 1);
    let wanted: Vec<f32> = raw
        .chunks(3)
        .map(|p| (0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2]) / 4.0)
        .collect();
    assert!(same_bits(&read_in_order(&mut source, 2).unwrap(), &wanted));
    assert!(same_bits(&read_anywhere(&mut source, 2, 3), &wanted));

    let gray = file(
        folder.path(),
        "g.npy",
        &npy(1, &dict("<f4", "(2, 105)"), &le(&planar)),
    );
    let options = ReadOptions {
        channels: Some(Channels::Rgb),
        ..ReadOptions::default()
    };
    let mut source = FileSource::open(&gray, &options).unwrap();
    let wanted: Vec<f32> = planar.iter().flat_map(|v| [*v; 3]).collect();
    assert!(same_bits(&read_anywhere(&mut source, 2, 20), &wanted));

    let options = WriteOptions {
        scale: Some(2.0),
        mean: vec![0.5, -1.0, 8.0],
        ..WriteOptions::default()
    };
    let back = folder.path().join("b.npy");
    let mut sink = FileSink::create(&back, size, &options).unwrap();
    write_anywhere(&mut sink, size, &raw, 3).unwrap();
    sink.finish().unwrap();
    let mut source = FileSource::open(&back, &ReadOptions::default()).unwrap();
    let wanted: Vec<f32> = raw
        .chunks(3)
        .flat_map(|p| [p[0] * 2.0 + 0.5, p[1] * 2.0 - 1.0, p[2] * 2.0 + 8.0])
        .collect();
    assert!(same_bits(&read_in_order(&mut source, 9).unwrap(), &wanted));
}

#[test]
fn conversions_that_do_not_fit_are_refused() {
    let folder = folder();
    let text = dict("<f4", "(2, 3, 4)");
    let path = file(folder.path(), "a.npy", &npy(1, &text, &[0; 96]));
    let plain = ReadOptions::default;
    for (options, wanted) in [
        (
            ReadOptions {
                channels: Some(Channels::Rgb),
                ..plain()
            },
            "2 channels",
        ),
        (
            ReadOptions {
                mean: vec![1.0, 2.0, 3.0],
                ..plain()
            },
            "3 values of mean for 2 channels",
        ),
        (
            ReadOptions {
                std: vec![1.0, 0.0],
                ..plain()
            },
            "std is 0",
        ),
        (
            ReadOptions {
                scale: Some(f32::NAN),
                ..plain()
            },
            "finite",
        ),
    ] {
        let said = message(FileSource::open(&path, &options));
        assert!(said.contains(wanted) && said.contains("a.npy"), "{said}");
    }
    assert_eq!("bgr".parse::<Channels>().unwrap(), Channels::Bgr);
    assert_eq!("16".parse::<Bits>().unwrap(), Bits::Sixteen);
    assert_eq!("keep".parse::<Alpha>().unwrap(), Alpha::Keep);
    assert_eq!("edge".parse::<PadMode>().unwrap(), PadMode::Edge);
    let said = message("cmyk".parse::<Channels>());
    assert!(said.contains("rgb, bgr, gray"), "{said}");
}
