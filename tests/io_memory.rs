//! `memory()` of sources and sinks against what the operating system counts, each in a process of
//! its own. Images are wide, because memory is in proportion to the width.

#![expect(clippy::print_stdout, reason = "the numbers are the result")]

use std::path::Path;
use std::process::Command;

use stripmill::io::{
    Cropped, FileSink, FileSource, ImageShape, Pad, PadMode, Padded, ReadOptions, RowSink,
    RowSource, WriteOptions,
};

/// What a case of 40 rows of 60,000 RGB pixels does with file `input` or `output` in a folder.
const CASES: [(&str, &str); 8] = [
    ("read", "a.png"),
    ("read", "a.npy"),
    ("spool in", "a.png"),
    ("pad", "a.png"),
    ("write", "b.png"),
    ("write", "b.npy"),
    ("spool out", "b.png"),
    ("crop", "b.png"),
];

const SHAPE: ImageShape = ImageShape {
    n: 1,
    c: 3,
    h: 40,
    w: 60_000,
};

/// A number of kB out of `/proc/self/status`.
fn status(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Noise, the same every time.
fn fill(row: &mut [f32], y: u64) {
    let mut state = y.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for v in row {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        *v = (state >> 40) as f32 / (1u64 << 24) as f32;
    }
}

fn read(mut source: impl RowSource) -> u64 {
    let shape = source.shape();
    let told = source.memory();
    let mut row = vec![1.0; (shape.w * shape.c) as usize];
    measured(told, || {
        for y in 0..shape.h {
            source.read(0, y, 0..shape.w, &mut [&mut row]).unwrap();
        }
        source
    })
}

fn write(mut sink: impl RowSink, shape: ImageShape) -> u64 {
    let told = sink.memory();
    let mut row = vec![1.0; (shape.w * shape.c) as usize];
    measured(told, || {
        for y in 0..shape.h {
            fill(&mut row, y);
            sink.write(0, y, 0..shape.w, &[&row]).unwrap();
        }
        sink.finish().unwrap();
        sink
    })
}

/// Prints `told` and by how many bytes the resident memory grows at most while `work` is done.
fn measured<T>(told: u64, work: impl FnOnce() -> T) -> u64 {
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = status("VmRSS:");
    drop(work());
    let grown = (status("VmHWM:") - before) * 1024;
    println!("told {told} grown {grown}");
    grown
}

fn case(what: &str, path: &Path) {
    let folder = path.parent().unwrap();
    let open = || FileSource::open(path, &ReadOptions::default()).unwrap();
    let create = || FileSink::create(path, SHAPE, &WriteOptions::default()).unwrap();
    let pad = Pad::around(PadMode::Reflect, 7);
    match what {
        "read" => read(open()),
        "spool in" => {
            let mut source = open();
            measured(source.memory(), || {
                source.spool(folder).unwrap();
                source
            })
        }
        "pad" => read(Padded::new(open(), pad).unwrap()),
        "write" => write(create(), SHAPE),
        "spool out" => {
            let mut sink = create();
            sink.spool(folder).unwrap();
            write(sink, SHAPE)
        }
        "crop" => {
            let whole = pad.padded(SHAPE);
            write(
                Cropped::new(create(), whole, pad.crop(SHAPE, whole, (1, 1), (1, 1))).unwrap(),
                whole,
            )
        }
        _ => unreachable!(),
    };
}

#[test]
fn memory_is_what_is_told() {
    if let Some(path) = std::env::var_os("STRIPMILL_TEST_FILE") {
        let what = std::env::var("STRIPMILL_TEST_CASE").unwrap();
        return case(&what, Path::new(&path));
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for name in ["a.png", "a.npy"] {
        let path = folder.path().join(name);
        let sink = FileSink::create(&path, SHAPE, &WriteOptions::default()).unwrap();
        write(sink, SHAPE);
    }
    for (what, name) in CASES {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "memory_is_what_is_told", "--nocapture"])
            .env("STRIPMILL_TEST_CASE", what)
            .env("STRIPMILL_TEST_FILE", folder.path().join(name))
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let number = |key: &str| -> u64 {
            let mut words = text.split_whitespace().skip_while(|word| *word != key);
            words.nth(1).expect(&text).parse().unwrap()
        };
        let (told, grown) = (number("told"), number("grown"));
        println!("{what} {name}: told {told}, grown {grown}");
        // Code that is run for the first time is read in too.
        assert!(
            grown <= told + (512 << 10),
            "{what} {name}: {grown} > {told}"
        );
        assert!(
            told <= grown + (2 << 20),
            "{what} {name}: {grown} of {told}"
        );
    }
}
