use ::png::{BitDepth, ColorType};

use super::png::plain;
use super::*;
use crate::io::sample::Sample;
use crate::io::spool::Spool;

#[test]
fn a_spooled_png_is_the_same_image_from_anywhere() {
    let folder = folder();
    let mut rng = Rng::new(11);
    for (depth, size) in [(BitDepth::Eight, 1), (BitDepth::Sixteen, 2)] {
        // The second is wider than the staging buffer.
        for (w, h) in [(37u32, 50u32), (90_001, 2)] {
            let data = rng.bytes((w * h * 3) as usize * size);
            let made = plain(ColorType::Rgb, depth, w, h, &data);
            let path = file(folder.path(), "a.png", &made.bytes());
            let options = ReadOptions {
                channels: Some(Channels::Bgr),
                mean: vec![0.25],
                ..ReadOptions::default()
            };
            let mut source = FileSource::open(&path, &options).unwrap();
            let wanted = read_in_order(&mut source, 8).unwrap();
            let memory = source.memory();
            source.spool(folder.path()).unwrap();
            assert_eq!(source.access(), Access::Anywhere);
            assert_eq!(source.memory(), memory);
            assert_eq!(source.bytes_written(), data.len() as u64);
            assert_eq!(names(folder.path()), ["a.png"]);
            let read = source.bytes_read();
            for width in [w, w / 3, w / 2 + 1] {
                let got = read_anywhere(&mut source, 7, u64::from(width));
                assert!(same_bits(&got, &wanted), "{depth:?} {w}×{h} by {width}");
            }
            assert_eq!(source.bytes_read() - read, 3 * data.len() as u64);
            source.rewind().unwrap();
            assert!(same_bits(&read_in_order(&mut source, 9).unwrap(), &wanted));
        }
    }
}

#[test]
fn adapters_pass_the_wish_to_spool_on() {
    let folder = folder();
    let data = Rng::new(12).bytes(9 * 7);
    let made = plain(ColorType::Grayscale, BitDepth::Eight, 9, 7, &data);
    let path = file(folder.path(), "a.png", &made.bytes());
    let open = || -> Box<dyn RowSource> {
        Box::new(FileSource::open(&path, &ReadOptions::default()).unwrap())
    };
    let pad = Pad::around(PadMode::Reflect, 4);
    let mut in_order = Padded::new(open(), pad).unwrap();
    let wanted = read_in_order(&mut in_order, 1).unwrap();
    let mut padded = Padded::new(open(), pad).unwrap();
    padded.spool(folder.path()).unwrap();
    assert_eq!(padded.access(), Access::Anywhere);
    assert_eq!(read_anywhere(&mut padded, 2, 5), wanted);
    // A source that was read from before spools all the same.
    in_order.spool(folder.path()).unwrap();
    assert_eq!(read_anywhere(&mut in_order, 2, 5), wanted);

    let (whole, crop) = (
        in_order.shape(),
        pad.crop(shape(1, 1, 7, 9), in_order.shape(), (1, 1), (1, 1)),
    );
    let out = folder.path().join("b.png");
    let sink: Box<dyn RowSink> =
        Box::new(FileSink::create(&out, shape(1, 1, 7, 9), &WriteOptions::default()).unwrap());
    let mut sink = Cropped::new(sink, whole, crop).unwrap();
    assert_eq!(sink.access(), Access::InOrder);
    sink.spool(folder.path()).unwrap();
    assert_eq!(sink.access(), Access::Anywhere);
    write_anywhere(&mut sink, whole, &wanted, 6).unwrap();
    sink.finish().unwrap();
    let mut back = FileSource::open(&out, &ReadOptions::default()).unwrap();
    assert_eq!(
        read_in_order(&mut back, 1).unwrap(),
        read_in_order(&mut *open(), 1).unwrap()
    );
}

#[test]
fn what_cannot_spool_says_so() {
    let folder = folder();
    let memory = MemorySource::new(vec![0.0; 4], shape(1, 1, 2, 2), Layout::Nhwc).unwrap();
    let mut source = border::Ordered::new(memory);
    let said = message(source.spool(folder.path()));
    assert!(said.contains("one panel"), "{said}");
    assert!(source.inner.spool(folder.path()).is_ok());

    let said = message(Spool::create(
        folder.path(),
        shape(1, 1, 1 << 30, 1 << 22),
        Sample::F32,
    ));
    assert!(
        said.contains("no space: 18014398509481984 bytes needed"),
        "{said}"
    );
    let none = folder.path().join("none");
    let result = Spool::create(&none, shape(1, 1, 1, 1), Sample::F32);
    assert!(message(result).contains("none: No such file"));

    let in_memory = Path::new("/dev/shm");
    if in_memory.is_dir() {
        let result = Spool::create(in_memory, shape(1, 1, 1, 1), Sample::U8);
        let said = message(result);
        assert!(said.contains("/dev/shm") && said.contains("disk"), "{said}");
    }
}

#[test]
fn a_spooled_output_short_of_rows_does_not_appear() {
    let folder = folder();
    let size = shape(1, 1, 3, 2);
    let path = folder.path().join("a.png");
    let mut sink = FileSink::create(&path, size, &WriteOptions::default()).unwrap();
    sink.spool(folder.path()).unwrap();
    sink.write(0, 2, 0..2, &[&[0.0, 1.0]]).unwrap();
    let said = message(sink.finish());
    assert!(said.contains("never given"), "{said}");
    drop(sink);
    assert_eq!(names(folder.path()), [""; 0]);
}
