//! The built command on real files: outputs, figures, messages, exit codes, and what is left behind.

mod common;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use prost::Message;
use serde_json::Value as Json;

use common::pb::{Graph, Model, Node, Tensor, ValueInfo};
use common::read_npy;
use common::rng::Rng;

/// The project's own network: no noise, double size.
fn model() -> PathBuf {
    own("denoise-double.onnx")
}

fn own(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("models")
        .join(name)
}

/// A folder of files for one test.
struct Desk(tempfile::TempDir);

impl Desk {
    fn new() -> Self {
        Desk(tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs the command here, its arguments separated by spaces.
    fn stripmill(&self, arguments: &str) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stripmill"));
        command
            .args(arguments.split_whitespace())
            .current_dir(self.0.path());
        command
    }

    /// Runs it and expects success.
    fn ok(&self, arguments: &str) -> String {
        let out = self.stripmill(arguments);
        assert_eq!(
            out.status.code(),
            Some(0),
            "{arguments}: {}",
            text(&out.stderr)
        );
        text(&out.stdout)
    }

    /// Runs it and expects `code`, one line on standard error, and nothing new in the folder.
    fn fails(&self, code: i32, arguments: &str) -> String {
        let before = self.files();
        let out = self.stripmill(arguments);
        let message = text(&out.stderr);
        assert_eq!(out.status.code(), Some(code), "{arguments}: {message}");
        assert!(message.starts_with("stripmill: "), "{arguments}: {message}");
        assert_eq!(message.lines().count(), 1, "{arguments}: {message}");
        assert_eq!(self.files(), before, "{arguments}: left something behind");
        message
    }

    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<_> = entries
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn json(&self, name: &str) -> Json {
        serde_json::from_slice(&fs::read(self.path(name)).unwrap()).unwrap()
    }

    fn npy(&self, name: &str, dims: &[u64], values: &[f32]) {
        let shape: String = dims.iter().map(|d| format!("{d}, ")).collect();
        let mut header =
            format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({shape}), }}");
        header += &" ".repeat(63 - (header.len() + 10) % 64);
        header.push('\n');
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(values.iter().flat_map(|v| v.to_le_bytes()));
        fs::write(self.path(name), bytes).unwrap();
    }

    fn read_npy(&self, name: &str) -> (Vec<u64>, Vec<f32>) {
        read_npy(&self.path(name))
    }

    fn onnx(&self, name: &str, graph: Graph) {
        fs::write(self.path(name), Model::new(graph).encode_to_vec()).unwrap();
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// An 8-bit image: rows, columns, channels, samples.
#[derive(Debug, Clone, PartialEq)]
struct Image {
    h: usize,
    w: usize,
    c: usize,
    samples: Vec<u8>,
}

impl Image {
    fn read(path: &Path) -> Self {
        let decoder = png::Decoder::new(BufReader::new(fs::File::open(path).unwrap()));
        let mut reader = decoder.read_info().unwrap();
        let mut samples = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut samples).unwrap();
        assert_eq!(info.bit_depth, png::BitDepth::Eight);
        let (h, w) = (info.height as usize, info.width as usize);
        Image {
            h,
            w,
            c: info.line_size / w,
            samples,
        }
    }

    fn write(&self, path: &Path) {
        let mut encoder = png::Encoder::new(
            fs::File::create(path).unwrap(),
            self.w as u32,
            self.h as u32,
        );
        encoder.set_color(if self.c == 1 {
            png::ColorType::Grayscale
        } else {
            png::ColorType::Rgb
        });
        encoder
            .write_header()
            .unwrap()
            .write_image_data(&self.samples)
            .unwrap();
    }

    /// Its first rows and columns.
    fn part(&self, h: usize, w: usize) -> Self {
        let row = |y: usize| &self.samples[y * self.w * self.c..][..w * self.c];
        Image {
            h,
            w,
            c: self.c,
            samples: (0..h).flat_map(row).copied().collect(),
        }
    }

    fn at(&self, y: usize, x: usize, c: usize) -> f64 {
        f64::from(self.samples[(y * self.w + x) * self.c + c])
    }
}

/// A folder with a part of the project's own image in `in.png`.
fn with_image(h: usize, w: usize) -> Desk {
    let desk = Desk::new();
    Image::read(&own("mandelbrot.png"))
        .part(h, w)
        .write(&desk.path("in.png"));
    desk
}

fn run(rest: &str) -> String {
    format!("run {} {rest}", model().display())
}

#[test]
fn the_first_command_of_the_readme() {
    let desk = Desk::new();
    let image = own("mandelbrot.png");
    let input = image.display();
    let printed = desk.ok(&run(&format!(
        "--input {input} --output out.png --memory 24M --stats stats.json"
    )));
    assert_eq!(printed, "");
    let (small, large) = (Image::read(&image), Image::read(&desk.path("out.png")));
    assert_eq!((large.h, large.w, large.c), (2 * small.h, 2 * small.w, 3));
    // it shows the same, doubled: four pixels are together near the one they came from
    let mut off = 0.0;
    for y in 0..small.h {
        for x in 0..small.w {
            let four = [(0, 0), (0, 1), (1, 0), (1, 1)]
                .map(|(dy, dx)| large.at(2 * y + dy, 2 * x + dx, 1));
            off += (four.iter().sum::<f64>() / 4.0 - small.at(y, x, 1)).abs();
        }
    }
    assert!(off / ((small.h * small.w) as f64) < 4.0, "{off}");

    let stats = desk.json("stats.json");
    let number = |name: &str| {
        stats[name]
            .as_u64()
            .unwrap_or_else(|| panic!("{name}: {stats}"))
    };
    for name in ["seconds", "open_seconds", "predicted_seconds"] {
        assert!(
            stats[name].as_f64().is_some_and(|s| s > 0.0),
            "{name}: {stats}"
        );
    }
    let (peak, predicted) = (number("peak_rss_bytes"), number("predicted_peak_bytes"));
    assert!(peak <= 24 << 20, "{stats}");
    assert!(predicted <= 24 << 20, "{stats}");
    assert!(
        peak.abs_diff(predicted) <= (predicted / 20).max(4 << 20),
        "{stats}"
    );
    // one tensor of 24 channels alone
    assert!((small.h * small.w * 24 * 4) as u64 > 6 * (24 << 20));
    assert!(number("arena_bytes") > 0 && number("strips") > 1);
    assert_eq!((number("phases"), number("memory_bytes")), (1, 24 << 20));
    let len = |path: &Path| fs::metadata(path).unwrap().len();
    if number("panels") == 1 {
        assert_eq!(number("bytes_written"), len(&desk.path("out.png")));
    }
    assert!(number("bytes_read") >= len(&image), "{stats}");
    assert!(
        number("bytes_written") >= len(&desk.path("out.png")),
        "{stats}"
    );
    assert!(number("threads") >= 1);
    assert!(["avx512", "avx2", "portable"].contains(&stats["isa"].as_str().unwrap()));
    assert_eq!(desk.files(), ["out.png", "stats.json"]);
}

#[test]
fn the_same_bytes_however_it_runs() {
    let desk = with_image(203, 301);
    desk.ok(&run(
        "--input in.png --output whole.png --strip 9999 --panels 1 --threads 1",
    ));
    desk.ok(&run(
        "--input in.png --output whole.npy --strip 9999 --panels 1 --threads 1",
    ));
    let (png, npy) = (
        fs::read(desk.path("whole.png")).unwrap(),
        fs::read(desk.path("whole.npy")).unwrap(),
    );
    for how in [
        "--strip 1",
        "--strip 7 --panels 2",
        "--panels 3 --threads 1",
        "--threads 3",
        "--memory 10M",
        "--memory 10M --panels 4 --threads 1",
    ] {
        desk.ok(&run(&format!(
            "--input in.png --output one.png {how} --stats stats.json"
        )));
        assert!(fs::read(desk.path("one.png")).unwrap() == png, "{how}");
        let stats = desk.json("stats.json");
        if let Some(panels) = how.split("--panels ").nth(1) {
            assert_eq!(stats["panels"].to_string(), panels[..1], "{stats}");
            // all rows go through a file and back: once in, once out
            let kept = (203 * 301 * 3 + 406 * 602 * 3) as u64;
            assert!(stats["bytes_written"].as_u64().unwrap() > kept, "{stats}");
        }
        desk.ok(&run(&format!("--input in.png --output one.npy {how}")));
        assert!(fs::read(desk.path("one.npy")).unwrap() == npy, "{how}");
    }
    let (dims, values) = desk.read_npy("whole.npy");
    assert_eq!(dims, [1, 3, 406, 602]);
    let image = Image::read(&desk.path("whole.png"));
    let rounded = |v: f32| (v * 255.0).round_ties_even().clamp(0.0, 255.0);
    for (y, x, c) in [(0, 0, 0), (405, 601, 2), (200, 300, 1)] {
        assert_eq!(
            image.at(y, x, c),
            f64::from(rounded(values[(c * 406 + y) * 602 + x]))
        );
    }
}

#[test]
fn panels_of_a_png_need_a_disk() {
    let memory = Path::new("/dev/shm");
    if !fs::read_to_string("/proc/mounts").is_ok_and(|m| m.contains(" /dev/shm tmpfs ")) {
        common::say("skipped: no folder in memory");
        return;
    }
    let desk = with_image(100, 400);
    let with = |how: &str| {
        let memory = memory.display();
        run(&format!(
            "--input in.png --output out.png --scratch {memory} --stats s.json {how}"
        ))
    };
    let message = desk.fails(2, &with("--panels 2"));
    assert!(
        message.contains("/dev/shm: this folder is kept in memory"),
        "{message}"
    );
    desk.ok(&with(""));
    assert_eq!(desk.json("s.json")["panels"], 1);
}

#[test]
fn a_budget_too_small_names_the_least_which_works() {
    let desk = with_image(203, 301);
    let message = desk.fails(
        3,
        &run("--input in.png --output out.png --memory 1M --threads 2"),
    );
    let least = message
        .trim()
        .rsplit("--memory ")
        .next()
        .unwrap()
        .trim_end_matches(')');
    let least: u64 = least.parse().unwrap_or_else(|_| panic!("{message}"));
    let with = |bytes: u64| {
        run(&format!(
            "--input in.png --output out.png --memory {bytes} --threads 2 --stats s.json"
        ))
    };
    let again = desk.fails(3, &with(least - 1));
    assert!(again.contains(&format!("--memory {least}")), "{again}");
    desk.ok(&with(least));
    let stats = desk.json("s.json");
    assert!(
        stats["peak_rss_bytes"].as_u64().unwrap() <= least,
        "{stats}"
    );
    assert!(
        stats["predicted_peak_bytes"].as_u64().unwrap() <= least,
        "{stats}"
    );
}

#[test]
fn wrong_arguments_are_code_2() {
    let desk = with_image(20, 30);
    for arguments in [
        "",
        "walk",
        "run",
        &run("--input in.png"),
        "plan x.onnx --size 10",
        "run m --input a --output b --memory 1X",
        "run m --input a --output b --conv winograd",
    ] {
        let out = desk.stripmill(arguments);
        assert_eq!(
            out.status.code(),
            Some(2),
            "{arguments}: {}",
            text(&out.stderr)
        );
    }
    for (rest, part) in [
        (
            "--input in.png --output out.tga",
            "out.tga: the name of an output ends in .npy or .png",
        ),
        (
            "--input a=in.png --input b=in.png --output out.png",
            "input `input` is given two files",
        ),
        (
            "--input in.png --input in.png --output out.png",
            "input `input` is given two files",
        ),
        (
            "--input in.png --output out.png --mean 1,2",
            "2 values of mean for 3 channels",
        ),
        ("--input in.png --output out.png --std 0", "std is 0"),
        ("--input in.png --output out.png --pad reflect:30", "30"),
    ] {
        let message = desk.fails(2, &run(rest));
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(desk.stripmill("--version").status.code(), Some(0));
    assert_eq!(desk.stripmill("run --help").status.code(), Some(0));
}

#[test]
fn files_that_are_not_what_they_should_be() {
    let desk = with_image(40, 50);
    let values = vec![0.5; 3 * 40 * 50];
    desk.npy("in.npy", &[1, 3, 40, 50], &values);
    for (from, to) in [("in.png", "cut.png"), ("in.npy", "cut.npy")] {
        let bytes = fs::read(desk.path(from)).unwrap();
        fs::write(desk.path(to), &bytes[..bytes.len() - bytes.len() / 3]).unwrap();
        let message = desk.fails(
            1,
            &run(&format!("--input {to} --output out.png --stats s.json")),
        );
        assert!(message.contains(to), "{message}");
    }
    fs::write(desk.path("text.png"), "hello").unwrap();
    fs::write(desk.path("empty.png"), "").unwrap();
    for name in ["text.png", "empty.png", "missing.png", "."] {
        let message = desk.fails(1, &run(&format!("--input {name} --output out.png")));
        assert!(message.contains(name), "{message}");
    }
    let bytes = fs::read(model()).unwrap();
    fs::write(desk.path("cut.onnx"), &bytes[..bytes.len() / 2]).unwrap();
    for name in ["cut.onnx", "text.png", "missing.onnx"] {
        for arguments in [
            format!("run {name} --input in.png --output out.png"),
            format!("plan {name} --size 40x50"),
            format!("inspect {name}"),
        ] {
            let message = desk.fails(1, &arguments);
            assert!(
                message.contains(name) || message.contains("node"),
                "{message}"
            );
        }
    }
}

#[test]
fn outputs_that_cannot_be_written() {
    let desk = with_image(40, 50);
    fs::create_dir(desk.path("folder.png")).unwrap();
    for (output, part) in [
        ("no/out.png", "no/out.png"),
        ("no/out.npy", "no/out.npy"),
        ("folder.png", "folder.png"),
        ("in.png/out.png", "in.png/out.png"),
    ] {
        let message = desk.fails(1, &run(&format!("--input in.png --output {output}")));
        assert!(message.contains(part), "{message}");
    }
    let message = desk.fails(1, &run("--input in.png --output out.png --stats no/s.json"));
    assert!(message.contains("no/s.json"), "{message}");
    // a file that is there stays as it is where the run fails, and is replaced where it does not
    fs::write(desk.path("out.png"), "before").unwrap();
    desk.fails(3, &run("--input in.png --output out.png --memory 1M"));
    assert_eq!(fs::read(desk.path("out.png")).unwrap(), b"before");
    desk.ok(&run("--input in.png --output out.png"));
    assert_eq!(Image::read(&desk.path("out.png")).h, 80);
    desk.ok(&run("--input in.png --output in.png"));
    assert_eq!(Image::read(&desk.path("in.png")).h, 80);
}

#[test]
fn a_signal_leaves_nothing_behind() {
    let desk = with_image(400, 600);
    for signal in ["INT", "TERM"] {
        let arguments = run(
            "--input in.png --output out.png --stats s.json --strip 1 --threads 1 --progress json",
        );
        let mut child = desk
            .command(&arguments)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let first: Json = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert!(
            first["turns"].as_u64().unwrap() < first["of"].as_u64().unwrap()
                && first["seconds"].is_f64()
        );
        let killed = Command::new("kill")
            .args([format!("-{signal}"), child.id().to_string()])
            .status()
            .unwrap();
        assert!(killed.success());
        for line in lines {
            assert!(line.unwrap().starts_with("{\"turns\":"));
        }
        // ended by the signal: there is no code
        assert_eq!(child.wait().unwrap().code(), None);
        assert_eq!(desk.files(), ["in.png"]);
    }
}

#[test]
fn progress_for_programs() {
    let desk = with_image(60, 50);
    let out = desk.stripmill(&run(
        "--input in.png --output out.png --progress json --strip 4",
    ));
    let lines: Vec<Json> = text(&out.stderr)
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    let last = lines.last().unwrap();
    assert_eq!(last["turns"], last["of"]);
    assert!(
        lines
            .windows(2)
            .all(|w| w[0]["turns"].as_u64() < w[1]["turns"].as_u64())
    );
    for show in ["auto", "none"] {
        let out = desk.stripmill(&run(&format!(
            "--input in.png --output out.png --progress {show}"
        )));
        assert_eq!(text(&out.stderr), "", "{show}");
    }
    let out = desk.stripmill(&run("--input in.png --output out.png --progress bar"));
    assert_eq!(out.status.code(), Some(0));
}

#[test]
fn colours_and_channels() {
    let desk = with_image(30, 40);
    let colour = Image::read(&desk.path("in.png"));
    let gray = Image {
        c: 1,
        samples: colour.samples.iter().step_by(3).copied().collect(),
        ..colour.clone()
    };
    gray.write(&desk.path("gray.png"));
    let message = desk.fails(2, &run("--input gray.png --output out.png"));
    assert!(
        message.contains("input `input` needs 3 channels, gray.png has 1: --channels rgb"),
        "{message}"
    );
    desk.ok(&run("--input gray.png --output out.png --channels rgb"));
    let out = Image::read(&desk.path("out.png"));
    assert!((0..out.h * out.w).all(|i| out.samples[3 * i] == out.samples[3 * i + 2]));

    // a network that does nothing: what is read comes out, as the options say
    desk.onnx("same.onnx", same());
    desk.ok("run same.onnx --input in.png --output out.npy");
    let (dims, values) = desk.read_npy("out.npy");
    assert_eq!(dims, [1, 3, 30, 40]);
    let at = |values: &[f32], c: usize, y: usize, x: usize| values[(c * 30 + y) * 40 + x];
    assert_eq!(
        at(&values, 2, 7, 9),
        colour.at(7, 9, 2) as f32 * (1.0 / 255.0)
    );
    desk.ok("run same.onnx --input in.png --output out.npy --scale 1 --mean 1,-2,3 --std 2 --channels bgr");
    let (_, values) = desk.read_npy("out.npy");
    assert_eq!(
        at(&values, 0, 7, 9),
        (colour.at(7, 9, 2) as f32 - 1.0) / 2.0
    );
    assert_eq!(
        at(&values, 1, 7, 9),
        (colour.at(7, 9, 1) as f32 + 2.0) / 2.0
    );
    desk.ok("run same.onnx --input in.png --output out.png --scale 1 --out-scale 1 --out-mean -10");
    let darker = Image::read(&desk.path("out.png"));
    assert_eq!(darker.at(7, 9, 1), (colour.at(7, 9, 1) - 10.0).max(0.0));
    desk.ok("run same.onnx --input in.png --output deep.png --bits 16");
    desk.ok("run same.onnx --input deep.png --output back.png");
    assert_eq!(Image::read(&desk.path("back.png")), colour);
}

/// `[n, c, h, w]`, all free but three channels.
const IMAGE: [i64; 4] = [-1, 3, -1, -1];

/// A network that does nothing.
fn same() -> Graph {
    Graph {
        node: vec![Node::new("Identity", &["x"], &["y"])],
        input: vec![ValueInfo::f32("x", &IMAGE)],
        output: vec![ValueInfo::f32("y", &IMAGE)],
        ..Graph::default()
    }
}

/// Halved, doubled, and added to itself: its height must be even, its width a multiple of 4.
fn halved() -> Graph {
    Graph {
        node: vec![
            Node::new("MaxPool", &["x"], &["half"])
                .ints("kernel_shape", &[2, 4])
                .ints("strides", &[2, 4]),
            Node::new("Resize", &["half", "", "scales"], &["back"])
                .str("mode", "nearest")
                .str("coordinate_transformation_mode", "asymmetric")
                .str("nearest_mode", "floor"),
            Node::new("Add", &["x", "back"], &["y"]),
        ],
        initializer: vec![Tensor::f32("scales", &[4], &[1.0, 1.0, 2.0, 4.0])],
        input: vec![ValueInfo::f32("x", &IMAGE)],
        output: vec![ValueInfo::f32("y", &IMAGE)],
        ..Graph::default()
    }
}

#[test]
fn any_size_works_with_a_multiple() {
    let desk = Desk::new();
    desk.onnx("halved.onnx", halved());
    let (h, w) = (13, 23);
    let values = Rng::new(5).values(3 * h * w, 1.0);
    desk.npy("in.npy", &[1, 3, h, w], &values);
    let message = desk.fails(2, "run halved.onnx --input in.npy --output out.npy");
    let hint = "input `x` needs a height that is a multiple of 2 (got 13): --multiple 2 or --multiple auto";
    assert!(message.contains(hint), "{message}");
    let inspected = desk.ok("inspect halved.onnx");
    assert!(inspected.contains("2 rows, 4 columns"), "{inspected}");

    // at the end the last row and column count twice, so the maximum is that of what is there
    let at = |c: u64, y: u64, x: u64| values[((c * h + y) * w + x) as usize];
    let maximum = |c: u64, y: u64, x: u64| {
        let rows = (y / 2 * 2)..(y / 2 * 2 + 2).min(h);
        let all = rows.flat_map(|y| ((x / 4 * 4)..(x / 4 * 4 + 4).min(w)).map(move |x| (y, x)));
        all.map(|(y, x)| at(c, y, x)).fold(f32::MIN, f32::max)
    };
    for how in [
        "--multiple auto",
        "--multiple 4",
        "--multiple 8 --panels 2",
        "--multiple auto --strip 1",
        "--multiple auto --pad edge:0",
    ] {
        desk.ok(&format!(
            "run halved.onnx --input in.npy --output out.npy {how}"
        ));
        let (dims, out) = desk.read_npy("out.npy");
        assert_eq!(dims, [1, 3, h, w], "{how}");
        for c in 0..3 {
            for y in 0..h {
                for x in 0..w {
                    let got = out[((c * h + y) * w + x) as usize];
                    assert_eq!(got, at(c, y, x) + maximum(c, y, x), "{how}: {c} {y} {x}");
                }
            }
        }
    }
}

#[test]
fn borders_are_added_and_cropped() {
    let desk = Desk::new();
    desk.onnx("same.onnx", same());
    // what a valid convolution of 5 rows takes away is what a border of 2 adds
    let middle = {
        let mut weights = vec![0.0; 3 * 3 * 25];
        for c in 0..3 {
            weights[(c * 3 + c) * 25 + 12] = 1.0;
        }
        Tensor::f32("w", &[3, 3, 5, 5], &weights)
    };
    let valid = Graph {
        node: vec![Node::new("Conv", &["x", "w"], &["y"])],
        initializer: vec![middle],
        ..same()
    };
    desk.onnx("valid.onnx", valid);
    let (h, w) = (11, 17);
    let values = Rng::new(6).values(3 * h * w, 1.0);
    desk.npy("in.npy", &[1, 3, h, w], &values);
    for (model, how) in [
        ("same", "--pad reflect:4"),
        ("same", "--pad zero:3 --multiple 16 --strip 1"),
        ("same", "--pad edge:40"),
        ("valid", "--pad edge:2"),
        ("valid", "--pad reflect:2 --multiple 8"),
        ("valid", "--pad zero:6 --multiple 5 --panels 2"),
    ] {
        desk.ok(&format!(
            "run {model}.onnx --input in.npy --output out.npy {how}"
        ));
        let (dims, out) = desk.read_npy("out.npy");
        assert_eq!(dims, [1, 3, h, w], "{model} {how}");
        assert_eq!(out, values, "{model} {how}");
    }
    // doubled: cropped at the output's scale
    let big = with_image(21, 30);
    big.ok(&run(
        "--input in.png --output out.png --pad reflect:12 --multiple 7",
    ));
    let out = Image::read(&big.path("out.png"));
    assert_eq!((out.h, out.w), (42, 60));
    big.ok(&run("--input in.png --output out.npy --pad reflect:12"));
    big.ok(&run(
        "--input in.png --output more.npy --pad reflect:19 --multiple 5",
    ));
    // a border as wide as the network sees: what lies behind it changes nothing
    assert_eq!(big.read_npy("out.npy"), big.read_npy("more.npy"));
}

#[test]
fn several_inputs_and_outputs_go_by_name() {
    let desk = Desk::new();
    let graph = Graph {
        node: vec![
            Node::new("Sub", &["a", "b"], &["less"]),
            Node::new("GlobalAveragePool", &["a"], &["mean"]),
        ],
        input: vec![ValueInfo::f32("a", &IMAGE), ValueInfo::f32("b", &IMAGE)],
        output: vec![
            ValueInfo::f32("less", &IMAGE),
            ValueInfo::f32("mean", &[-1, 3, 1, 1]),
        ],
        ..Graph::default()
    };
    desk.onnx("two.onnx", graph);
    let (h, w) = (9, 70);
    let (a, b) = (
        Rng::new(1).values(3 * h * w, 1.0),
        Rng::new(2).values(3 * h * w, 1.0),
    );
    desk.npy("a.npy", &[1, 3, h, w], &a);
    desk.npy("b.npy", &[3, h, w], &b);
    desk.ok("run two.onnx --input b=b.npy --input a=a.npy --output mean=mean.npy --output less=less.npy --stats s.json");
    let less: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a - b).collect();
    assert_eq!(desk.read_npy("less.npy"), (vec![1, 3, h, w], less));
    let (dims, mean) = desk.read_npy("mean.npy");
    assert_eq!(dims, [1, 3, 1, 1]);
    let red = a[..(h * w) as usize]
        .iter()
        .map(|&v| f64::from(v))
        .sum::<f64>()
        / (h * w) as f64;
    assert!((f64::from(mean[0]) - red).abs() < 1e-6);
    let written = ["less.npy", "mean.npy"].map(|f| fs::metadata(desk.path(f)).unwrap().len());
    assert_eq!(
        desk.json("s.json")["bytes_written"].as_u64(),
        Some(written.iter().sum())
    );
    for (arguments, part) in [
        (
            "--input a.npy --input b=b.npy --output less=l.npy --output mean=m.npy",
            "give NAME=FILE for each of `a`, `b`",
        ),
        (
            "--input a=a.npy --output less=l.npy --output mean=m.npy",
            "input `b` has no file: --input b=FILE",
        ),
        (
            "--input a=a.npy --input b=b.npy --output less=l.npy",
            "output `mean` has no file: --output mean=FILE",
        ),
        (
            "--input a=a.npy --input b=b.npy --output less=l.npy --output mean=l.npy",
            "two outputs cannot be in one file",
        ),
    ] {
        let message = desk.fails(2, &format!("run two.onnx {arguments}"));
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn a_plan_says_what_a_run_does() {
    let desk = with_image(300, 400);
    let planned = format!(
        "plan {} --size 300x400 --memory 12M --threads 2 --strip 5 --json plan.json",
        model().display()
    );
    let printed = desk.ok(&planned);
    for part in [
        "phase 0: 300 rows in strips of 5",
        "flow3.differences",
        "weights",
        "arena of",
        "--memory ",
    ] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    let plan = desk.json("plan.json");
    desk.ok(&run(
        "--input in.png --output out.png --memory 12M --threads 2 --strip 5 --stats s.json",
    ));
    let stats = desk.json("s.json");
    assert_eq!(plan["arena_bytes"], stats["arena_bytes"]);
    assert_eq!(plan["seconds"], stats["predicted_seconds"]);
    let peak = plan["peak"]
        .as_object()
        .unwrap()
        .values()
        .map(|v| v.as_u64().unwrap())
        .sum::<u64>();
    assert_eq!(Some(peak), stats["predicted_peak_bytes"].as_u64());
    // the output's rows stay as far behind as the network looks ahead
    let lags = plan["lags"][0].as_array().unwrap();
    let lag = |name: &str| {
        let found = lags
            .iter()
            .find(|l| l[0] == name)
            .and_then(|l| l[1].as_u64());
        found.unwrap_or_else(|| panic!("{name}: {lags:?}"))
    };
    assert!(lag("input") <= 2, "{lags:?}");
    let last = lags.iter().map(|l| l[1].as_u64().unwrap()).max().unwrap();
    assert!((10..=20).contains(&last), "{lags:?}");
    // the same plan, byte for byte, and the least budget works
    let first = fs::read(desk.path("plan.json")).unwrap();
    desk.ok(&planned);
    assert_eq!(fs::read(desk.path("plan.json")).unwrap(), first);
    let least = plan["least_bytes"].as_u64().unwrap();
    desk.ok(&run(&format!(
        "--input in.png --output out.png --memory {least} --threads 2 --strip 5"
    )));
    let message = desk.fails(3, &planned.replace("12M", "2M"));
    assert!(message.contains(&least.to_string()), "{message}");
    desk.fails(1, &planned.replace("plan.json", "no/plan.json"));
}

#[test]
fn inspection_tells_what_a_model_needs() {
    let desk = Desk::new();
    let printed = desk.ok(&format!("inspect {}", model().display()));
    for part in [
        "Conv 19",
        "opset        17",
        "`input` f32 [1, 3, h, w]",
        "any size",
        "23 rows, 23 columns",
        "no op needs a whole",
    ] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    let mut graph = same();
    graph.node = vec![
        Node::new("Relu", &["x"], &["a"]),
        Node::new("NonMaxSuppression", &["a"], &["b"]),
        Node::new("Wibble", &["b"], &["y"]),
    ];
    desk.onnx("odd.onnx", graph);
    let out = desk.stripmill("inspect odd.onnx");
    assert_eq!(out.status.code(), Some(1));
    let printed = text(&out.stdout);
    assert!(
        printed.contains("NonMaxSuppression_b") && printed.contains("Wibble_y"),
        "{printed}"
    );
    assert!(!printed.contains("Relu_a"), "{printed}");
    let image = with_image(20, 30);
    fs::copy(desk.path("odd.onnx"), image.path("odd.onnx")).unwrap();
    let message = image.fails(1, "run odd.onnx --input in.png --output out.png");
    assert!(message.contains("NonMaxSuppression_b"), "{message}");
}

/// The figures of `--stats` that are numbers of seconds.
fn seconds(stats: &Json, name: &str) -> f64 {
    let value = stats[name].as_f64();
    value.unwrap_or_else(|| panic!("{name}: {stats}"))
}

#[test]
fn a_bench_gives_what_a_run_gives() {
    let desk = Desk::new();
    let model = model();
    let bench = |rest: &str| format!("bench {} --size 90x131 {rest}", model.display());
    let image = Rng::new(5).values(3 * 90 * 131, 1.0);
    desk.npy("in.npy", &[1, 3, 90, 131], &image);
    desk.ok(&run("--input in.npy --output run.npy"));
    let wanted = fs::read(desk.path("run.npy")).unwrap();
    let printed = desk.ok(&bench(
        "--input in.npy --output bench.npy --runs 4 --memory 16M --threads 2 --stats s.json",
    ));
    assert!(fs::read(desk.path("bench.npy")).unwrap() == wanted);
    desk.ok(&bench(
        "--input input=in.npy --output output=more.npy --strip 7 --panels 2",
    ));
    assert!(fs::read(desk.path("more.npy")).unwrap() == wanted);

    let stats = desk.json("s.json");
    let (best, median) = (
        seconds(&stats, "best_seconds"),
        seconds(&stats, "median_seconds"),
    );
    let mut each: Vec<f64> = serde_json::from_value(stats["run_seconds"].clone()).unwrap();
    each.sort_by(f64::total_cmp);
    assert_eq!(each.len(), 4);
    assert_eq!((best, median), (each[0], (each[1] + each[2]) / 2.0));
    assert!(best > 0.0 && seconds(&stats, "open_seconds") > 0.0);
    assert!(
        printed.contains("of 4 runs") && printed.contains("peak"),
        "{printed}"
    );

    // without a file it is noise, the same every time, and only the first run may take memory
    desk.ok(&bench("--output a.npy --runs 1 --stats one.json"));
    desk.ok(&bench("--output b.npy --runs 20 --stats many.json"));
    let (dims, noise) = desk.read_npy("a.npy");
    assert_eq!(dims, [1, 3, 180, 262]);
    assert!(noise.iter().any(|v| *v != noise[0]));
    assert_eq!(desk.read_npy("b.npy"), (dims, noise));
    let peak = |file: &str| desk.json(file)["peak_rss_bytes"].as_u64().unwrap();
    let (one, many) = (peak("one.json"), peak("many.json"));
    assert!(many <= one + (1 << 20), "{one} {many}");
}

/// The three ways to compute convolutions: near each other, of different bits, and the same ones for
/// `run` and `bench`.
#[test]
fn convolutions_are_computed_as_told() {
    let desk = Desk::new();
    let conv =
        |from, weight, to| Node::new("Conv", &[from, weight], &[to]).ints("pads", &[1, 1, 1, 1]);
    let weight = |name, [cout, cin]: [u64; 2]| {
        let values = Rng::new(cin).values(9 * cin * cout, 0.2);
        Tensor::f32(name, &[cout as i64, cin as i64, 3, 3], &values)
    };
    desk.onnx(
        "net.onnx",
        Graph {
            node: vec![conv("x", "first", "wide"), conv("wide", "last", "y")],
            initializer: vec![weight("first", [16, 3]), weight("last", [9, 16])],
            input: vec![ValueInfo::f32("x", &IMAGE)],
            output: vec![ValueInfo::f32("y", &[-1, 9, -1, -1])],
            ..Graph::default()
        },
    );
    desk.npy(
        "in.npy",
        &[1, 3, 50, 70],
        &Rng::new(6).values(3 * 50 * 70, 1.0),
    );
    let mut made = Vec::new();
    for how in ["direct", "auto", "fast"] {
        let files = "net.onnx --input in.npy";
        desk.ok(&format!("run {files} --output {how}.npy --conv {how}"));
        desk.ok(&format!(
            "bench {files} --output b.npy --conv {how} --size 50x70 --runs 1"
        ));
        let values = desk.read_npy(&format!("{how}.npy")).1;
        assert!(desk.read_npy("b.npy").1 == values, "{how}");
        made.push(values);
    }
    desk.ok("run net.onnx --input in.npy --output default.npy");
    assert!(desk.read_npy("default.npy").1 == made[1]);
    let most = made[0].iter().fold(0f32, |m, v| m.max(v.abs()));
    for other in &made[1..] {
        let off = other.iter().zip(&made[0]).map(|(a, b)| (a - b).abs());
        let off = off.fold(0.0, f32::max);
        assert!(off > 0.0 && off < 1e-4 * most, "{off} of {most}");
    }
    assert!(made[1] != made[2]);
}

#[test]
fn the_arrays_of_a_bench_count_in_the_budget() {
    let desk = Desk::new();
    let model = model();
    let bench = |rest: &str| format!("bench {} --size 400x500 {rest}", model.display());
    let arrays = 4 * (3 * 400 * 500 + 3 * 800 * 1000);
    let message = desk.fails(3, &bench("--memory 1M --threads 1"));
    let least = message.trim().rsplit("--memory ").next().unwrap();
    let least: u64 = least.trim_end_matches(')').parse().unwrap();
    assert!(least > arrays, "{message}");
    desk.ok(&bench(&format!(
        "--memory {least} --threads 1 --runs 1 --stats s.json"
    )));
    let stats = desk.json("s.json");
    let peak = stats["peak_rss_bytes"].as_u64().unwrap();
    assert!(arrays < peak && peak <= least, "{stats}");

    desk.npy("small.npy", &[1, 3, 9, 9], &[0.0; 243]);
    let message = desk.fails(2, &bench("--input small.npy --stats t.json"));
    assert!(message.contains("[1, 3, 400, 500]"), "{message}");
    let message = desk.fails(2, &bench("--output other=out.npy --output out.npy"));
    assert!(message.contains("two files"), "{message}");
    desk.fails(1, &bench("--output no/out.npy"));
}

#[test]
fn a_bench_of_several_inputs_and_whole_outputs() {
    let desk = Desk::new();
    let graph = Graph {
        node: vec![
            Node::new("Sub", &["a", "b"], &["less"]),
            Node::new("GlobalAveragePool", &["a"], &["mean"]),
        ],
        input: vec![ValueInfo::f32("a", &IMAGE), ValueInfo::f32("b", &IMAGE)],
        output: vec![
            ValueInfo::f32("less", &IMAGE),
            ValueInfo::f32("mean", &[-1, 3, 1, 1]),
        ],
        ..Graph::default()
    };
    desk.onnx("two.onnx", graph);
    desk.npy("b.npy", &[1, 3, 8, 70], &[0.25; 3 * 8 * 70]);
    desk.ok(
        "bench two.onnx --size 8x70 --input b=b.npy --output mean=mean.npy --output less=less.npy",
    );
    let (dims, less) = desk.read_npy("less.npy");
    assert_eq!(dims, [1, 3, 8, 70]);
    let (dims, mean) = desk.read_npy("mean.npy");
    assert_eq!(dims, [1, 3, 1, 1]);
    let red = less[..560].iter().map(|&v| f64::from(v)).sum::<f64>() / 560.0 + 0.25;
    assert!((f64::from(mean[0]) - red).abs() < 1e-6);
    // noise in [0, 1)
    let noise = less.iter().map(|v| v + 0.25);
    assert!(noise.clone().all(|v| (0.0..1.0).contains(&v)));
    assert!(noise.clone().any(|v| v < 0.1) && noise.clone().any(|v| v > 0.9));
}

#[test]
fn a_profile_shows_where_the_time_goes() {
    let desk = with_image(203, 301);
    let profiles = [
        run("--input in.png --output out.png --strip 7 --profile"),
        format!(
            "bench {} --size 203x301 --panels 2 --profile",
            model().display()
        ),
    ];
    for command in profiles {
        let out = desk.stripmill(&command);
        assert_eq!(out.status.code(), Some(0), "{command}");
        let table = text(&out.stderr);
        let mut lines: Vec<Vec<&str>> = (table.lines().skip(1))
            .map(|line| line.split("  ").map(str::trim).collect())
            .collect();
        lines
            .iter_mut()
            .for_each(|cells| cells.retain(|c| !c.is_empty()));
        let number = |cell: &str| -> f64 {
            let parsed = cell.trim_end_matches(" %").parse();
            parsed.unwrap_or_else(|_| panic!("{cell}: {table}"))
        };
        let (all, lines) = lines.split_last().unwrap();
        let (rest, steps) = lines.split_last().unwrap();
        assert_eq!((all[0], all.len()), ("all", 6), "{table}");
        // 19 convolutions, the shuffle, a load and a save
        assert_eq!(steps.len(), 22, "{table}");
        let ms: Vec<f64> = steps.iter().map(|cells| number(cells[3])).collect();
        assert!(ms.is_sorted_by(|a, b| a >= b), "{table}");
        let sum = ms.iter().sum::<f64>() + number(rest[1]);
        assert!((sum - number(all[1])).abs() < 0.1, "{table}");
        let shares = steps.iter().map(|cells| number(cells[4])).sum::<f64>() + number(rest[2]);
        assert!((shares - 100.0).abs() < 2.0, "{table}");
        let line = |kind: &str| steps.iter().find(|cells| cells[2] == kind).unwrap();
        // each pixel once in and once out; both panels read the columns at the seam
        let image = 203.0 * 301.0 * 12.0 / 1e6;
        let once = |got: &str, all: f64| (all - 0.01..1.2 * all).contains(&number(got));
        assert!(once(line("load")[6], image), "{table}");
        assert!(once(line("save")[6], 4.0 * image), "{table}");
        let last = line("conv 5×5 24→12");
        let flop = number(last[5]) * number(last[3]) / 1e3;
        let wanted = 203.0 * 301.0 * 2.0 * 24.0 * 12.0 * 25.0 / 1e9;
        assert!((0.95..1.25).contains(&(flop / wanted)), "{flop} {wanted}");
    }
}
