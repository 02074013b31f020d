//! The files of a run: which is which input or output, and how their rows are read and written.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;
use stripmill::dense::DType;
use stripmill::graph::{Graph, Layout, Side, TensorId};
use stripmill::import::{Dim, Model, Port};
use stripmill::io::{
    self, Alpha, Bits, Channels, Cropped, FileSink, FileSource, ImageShape, Pad, PadMode, Padded,
    PendingFile, ReadOptions, RowSource, WriteOptions, read_value,
};
use stripmill::sweep;
use stripmill::{Error, Result};

use super::ports::{Given, Taken};

#[derive(Debug, Args)]
pub(super) struct FileArgs {
    /// A `.npy` or `.png` file; with the input's name where the model has several
    #[arg(
        long = "input",
        value_name = "[NAME=]FILE",
        required = true,
        help_heading = "Files"
    )]
    inputs: Vec<OsString>,
    /// A `.npy` or `.png` file; with the output's name where the model has several
    #[arg(
        long = "output",
        value_name = "[NAME=]FILE",
        required = true,
        help_heading = "Files"
    )]
    outputs: Vec<OsString>,
    /// Where rows are kept for the time being that a file takes or gives in order and panels do not;
    /// not in memory [default: the first output's folder]
    #[arg(long, value_name = "FOLDER", help_heading = "Files")]
    scratch: Option<PathBuf>,
    /// Add rows and columns at the end, up to a multiple of N, and crop the output; `auto`: of what the
    /// model needs
    #[arg(long, value_name = "N|auto", help_heading = "Size")]
    multiple: Option<Multiple>,
    /// Add a border of N pixels and crop the output; MODE, `reflect`, `edge` or `zero`, is also that of
    /// --multiple, which is else `edge`
    #[arg(long, value_name = "MODE:N", help_heading = "Size")]
    pad: Option<Border>,
    /// Multiplies the input's values [default: 1/255 for 8 bits, 1/65535 for 16, 1 for npy]
    #[arg(
        long,
        value_name = "X",
        allow_negative_numbers = true,
        help_heading = "Values"
    )]
    scale: Option<f32>,
    /// Subtracted from the scaled input, one for all channels or one for each
    #[arg(
        long,
        value_name = "X,…",
        value_delimiter = ',',
        allow_negative_numbers = true,
        help_heading = "Values"
    )]
    mean: Vec<f32>,
    /// Divides the input after that, one for all channels or one for each
    #[arg(
        long,
        value_name = "X,…",
        value_delimiter = ',',
        allow_negative_numbers = true,
        help_heading = "Values"
    )]
    std: Vec<f32>,
    /// The input's channels: `rgb`, `bgr` or `gray` [default: as the file has them]
    #[arg(long, value_name = "ORDER", help_heading = "Values")]
    channels: Option<Channels>,
    /// An image's alpha channel: `drop` or `keep`
    #[arg(
        long,
        value_name = "WHAT",
        default_value = "drop",
        help_heading = "Values"
    )]
    alpha: Alpha,
    /// Multiplies the output's values [default: 255 for 8 bits, 65535 for 16, 1 for npy]
    #[arg(
        long,
        value_name = "X",
        allow_negative_numbers = true,
        help_heading = "Values"
    )]
    out_scale: Option<f32>,
    /// Added to the scaled output, one for all channels or one for each
    #[arg(
        long,
        value_name = "X,…",
        value_delimiter = ',',
        allow_negative_numbers = true,
        help_heading = "Values"
    )]
    out_mean: Vec<f32>,
    /// Bits of a sample of an output image: 8 or 16
    #[arg(long, value_name = "N", default_value = "8", help_heading = "Values")]
    bits: Bits,
}

/// `--multiple`.
#[derive(Debug, Clone, Copy)]
enum Multiple {
    Auto,
    Of(u64),
}

impl FromStr for Multiple {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text.parse::<u64>() {
            _ if text == "auto" => Ok(Multiple::Auto),
            Ok(n) if (1..=1 << 20).contains(&n) => Ok(Multiple::Of(n)),
            _ => Err("give `auto` or a number from 1 to 1048576".into()),
        }
    }
}

/// `--pad`.
#[derive(Debug, Clone, Copy)]
struct Border {
    mode: PadMode,
    width: u64,
}

impl FromStr for Border {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let (mode, width) = text.split_once(':').ok_or("give MODE:N, as in reflect:8")?;
        let mode = mode.parse().map_err(|e: Error| e.to_string())?;
        let width = width
            .parse()
            .map_err(|_| format!("`{width}` is no number of pixels"))?;
        Ok(Border { mode, width })
    }
}

impl FileArgs {
    /// Opens the files of all inputs, in the model's order, with their borders.
    pub(super) fn open(&self, model: &Model) -> Result<Vec<Given>> {
        let names: Vec<&str> = model.inputs().iter().map(|p| p.name.as_str()).collect();
        let paths = assign("input", &self.inputs, &names)?;
        let multiple = match self.multiple {
            None => [1, 1],
            Some(Multiple::Of(n)) => [n, n],
            Some(Multiple::Auto) => model.multiple()?,
        };
        let open = |(port, path): (&Port, &PathBuf)| {
            let given = if port.is_image() {
                self.image(path, multiple)?
            } else {
                Given::Whole(read_value(path)?)
            };
            fits(port, &given.lengths(), path)?;
            Ok(given)
        };
        model.inputs().iter().zip(&paths).map(open).collect()
    }

    fn image(&self, path: &Path, [rows, cols]: [u64; 2]) -> Result<Given> {
        let options = ReadOptions {
            scale: self.scale,
            mean: self.mean.clone(),
            std: self.std.clone(),
            channels: self.channels,
            alpha: self.alpha,
        };
        let source = FileSource::open(path, &options)?;
        for warning in source.warnings() {
            super::warn(&format_args!("warning: {warning}"));
        }
        let (mode, width) = self
            .pad
            .map_or((PadMode::Edge, 0), |pad| (pad.mode, pad.width));
        let pad = Pad::around(mode, width).to_multiple(source.shape(), rows, cols);
        let shape = source.shape();
        let source: Box<dyn RowSource> = if pad.padded(shape) == shape {
            Box::new(source)
        } else {
            Box::new(Padded::new(source, pad)?)
        };
        Ok(Given::Image { shape, pad, source })
    }

    /// Starts the files of all outputs, in the graph's order.
    pub(super) fn create(&self, graph: &Graph, inputs: &[Given]) -> Result<Vec<Taken>> {
        let names: Vec<&str> = graph
            .outputs
            .iter()
            .map(|&id| graph.tensor(id).name.as_str())
            .collect();
        let paths = assign("output", &self.outputs, &names)?;
        if let Some(path) = paths
            .iter()
            .enumerate()
            .find_map(|(k, path)| paths[..k].contains(path).then_some(path))
        {
            return Err(Error::Usage(format!(
                "{}: two outputs cannot be in one file",
                path.display()
            )));
        }
        let options = WriteOptions {
            scale: self.out_scale,
            mean: self.out_mean.clone(),
            bits: self.bits,
        };
        let create = |(&id, path): (&TensorId, PathBuf)| {
            let tensor = graph.tensor(id);
            let image = tensor.layout == Layout::Rows || tensor.dtype == DType::F32;
            match (image, <[u64; 4]>::try_from(&tensor.dims[..])) {
                (true, Ok([n, c, h, w])) if n * c * h * w > 0 => {
                    let shape = ImageShape { n, c, h, w };
                    let crop = crop(graph, id, shape, inputs);
                    let kept = ImageShape {
                        h: crop.height,
                        w: crop.width,
                        ..shape
                    };
                    let sink = FileSink::create(&path, kept, &options)?;
                    let sink = Cropped::new(sink, shape, crop)?;
                    Ok(Taken::Image { path, sink })
                }
                _ if path
                    .extension()
                    .is_some_and(|e| e.eq_ignore_ascii_case("npy")) =>
                {
                    // whether it can be written is asked before the work, not after
                    PendingFile::create(&path).map(drop)?;
                    Ok(Taken::Array(path))
                }
                _ => Err(Error::Usage(format!(
                    "{}: output `{}` is of {:?} {:?}, which a .npy file holds",
                    path.display(),
                    tensor.name,
                    tensor.dtype,
                    tensor.dims
                ))),
            }
        };
        graph.outputs.iter().zip(paths).map(create).collect()
    }

    /// Where rows are kept for the time being.
    pub(super) fn scratch(&self, outputs: &[Taken]) -> PathBuf {
        let first = outputs.first().map_or(Path::new("."), Taken::folder);
        self.scratch.clone().unwrap_or_else(|| first.to_path_buf())
    }
}

/// For each of `names` its file among `given`; each must have one.
fn assign(what: &str, given: &[OsString], names: &[&str]) -> Result<Vec<PathBuf>> {
    let missing =
        |name: &str| Error::Usage(format!("{what} `{name}` has no file: --{what} {name}=FILE"));
    named(what, given, names)?
        .into_iter()
        .zip(names)
        .map(|(path, name)| path.ok_or_else(|| missing(name)))
        .collect()
}

/// For each of `names` its file among `given`, if it has one.
pub(super) fn named(
    what: &str,
    given: &[OsString],
    names: &[&str],
) -> Result<Vec<Option<PathBuf>>> {
    let mut paths: Vec<Option<PathBuf>> = vec![None; names.len()];
    for argument in given {
        let named = argument.to_str().and_then(|a| a.split_once('='));
        let named = named.and_then(|(name, file)| {
            Some((names.iter().position(|n| *n == name)?, PathBuf::from(file)))
        });
        let (k, path) = match (named, names) {
            (Some(named), _) => named,
            (None, [_]) => (0, PathBuf::from(argument)),
            (None, _) => {
                let names = names.join("`, `");
                let argument = argument.to_string_lossy();
                return Err(Error::Usage(format!(
                    "--{what} {argument}: give NAME=FILE for each of `{names}`"
                )));
            }
        };
        if paths[k].replace(path).is_some() {
            return Err(Error::Usage(format!(
                "{what} `{}` is given two files",
                names[k]
            )));
        }
    }
    Ok(paths)
}

/// Whether the model takes these lengths, as far as it says.
fn fits(port: &Port, got: &[u64], path: &Path) -> Result<()> {
    let Some(dims) = &port.dims else {
        return Ok(());
    };
    let (name, file) = (&port.name, path.display());
    if dims.len() != got.len() {
        let need = format!(
            "input `{name}` needs {} lengths, {file} has {got:?}",
            dims.len()
        );
        return Err(Error::Usage(need));
    }
    for (k, (dim, &got)) in dims.iter().zip(got).enumerate() {
        let want = match dim {
            Dim::Fixed(want) if *want != got => *want,
            _ => continue,
        };
        let why = match (port.is_image(), k) {
            (true, 1) => format!("{want} channels, {file} has {got}{}", remedy(want, got)),
            (true, 2) => format!("height {want}, {file} has {got}"),
            (true, 3) => format!("width {want}, {file} has {got}"),
            _ => format!("length {want} along axis {k}, {file} has {got}"),
        };
        return Err(Error::Usage(format!("input `{name}` needs {why}")));
    }
    Ok(())
}

/// What makes `want` channels of `got`.
fn remedy(want: u64, got: u64) -> &'static str {
    match (want, got) {
        (3, 1) => ": --channels rgb",
        (1, 3) => ": --channels gray",
        (3, 4) => ": --alpha drop",
        (4, 3) | (2, 1) => ": --alpha keep, if it has alpha",
        _ => "",
    }
}

/// The part of an output that shows the image, rather than the border around it.
fn crop(graph: &Graph, output: TensorId, shape: ImageShape, inputs: &[Given]) -> io::Crop {
    let images = graph
        .inputs
        .iter()
        .zip(inputs)
        .filter_map(|(&id, given)| match given {
            Given::Image { shape, pad, .. } => Some((id, *shape, *pad)),
            Given::Whole(_) => None,
        });
    // the largest input is the one whose size the output follows
    match images.max_by_key(|(_, shape, _)| shape.h * shape.w) {
        None => io::Crop {
            top: 0,
            left: 0,
            height: shape.h,
            width: shape.w,
        },
        Some((input, image, pad)) => {
            let padded = pad.padded(image);
            let scale = |side, out: u64, whole: u64| {
                sweep::scale(graph, input, output, side).map_or((out, whole), |s| (s.num, s.den))
            };
            let rows = scale(Side::Rows, shape.h, padded.h);
            pad.crop(image, shape, rows, scale(Side::Cols, shape.w, padded.w))
        }
    }
}
