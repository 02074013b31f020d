use super::*;

/// Rows in order out of memory.
pub(super) struct Ordered<'a> {
    pub(super) inner: MemorySource<'a>,
    next: Cursor,
}

impl<'a> Ordered<'a> {
    pub(super) fn new(inner: MemorySource<'a>) -> Self {
        Ordered {
            inner,
            next: Cursor::default(),
        }
    }
}

impl RowSource for Ordered<'_> {
    fn shape(&self) -> ImageShape {
        self.inner.shape()
    }

    fn access(&self) -> Access {
        Access::InOrder
    }

    fn read(&mut self, item: u64, y: u64, cols: Range<u64>, rows: &mut [&mut [f32]]) -> Result<()> {
        let shape = self.shape();
        self.next.advance(&shape, item, y, &cols, rows.len())?;
        self.inner.read(item, y, cols, rows)
    }

    fn rewind(&mut self) -> Result<()> {
        self.next = Cursor::default();
        Ok(())
    }

    fn memory(&self) -> u64 {
        0
    }
}

/// The padded image by walking outwards from each pixel, one step at a time.
fn naive(all: &[f32], size: ImageShape, pad: Pad) -> Vec<f32> {
    let walk = |i: i64, len: i64| match pad.mode {
        PadMode::Zero => i,
        PadMode::Edge => i.clamp(0, len - 1),
        PadMode::Reflect => {
            let (mut at, mut step) = (0, if i < 0 { -1 } else { 1 });
            for _ in 0..i.abs() {
                if !(0..len).contains(&(at + step)) {
                    step = -step;
                }
                at += step;
            }
            at
        }
    };
    let (h, w, c) = (size.h as i64, size.w as i64, size.c as i64);
    let mut out = Vec::new();
    for item in 0..size.n as i64 {
        for y in -(pad.top as i64)..h + pad.bottom as i64 {
            for x in -(pad.left as i64)..w + pad.right as i64 {
                let (y, x) = (walk(y, h), walk(x, w));
                let inside = (0..h).contains(&y) && (0..w).contains(&x);
                for k in 0..c {
                    let at = ((item * h + y) * w + x) * c + k;
                    out.push(if inside { all[at as usize] } else { 0.0 });
                }
            }
        }
    }
    out
}

fn pads(mode: PadMode, size: ImageShape, rng: &mut Rng) -> Pad {
    let (down, across) = match mode {
        PadMode::Reflect => (size.h, size.w),
        _ => (2 * size.h, 2 * size.w + 3),
    };
    Pad {
        mode,
        top: rng.below(down),
        left: rng.below(across),
        bottom: rng.below(down),
        right: rng.below(across),
    }
}

#[test]
fn a_border_is_that_of_the_whole_image() {
    let mut rng = Rng::new(5);
    for round in 0..150 {
        let size = shape(
            1 + rng.below(2),
            1 + rng.below(3),
            1 + rng.below(9),
            1 + rng.below(9),
        );
        let all = rng.floats(size.elements());
        for mode in [PadMode::Reflect, PadMode::Edge, PadMode::Zero] {
            let pad = pads(mode, size, &mut rng);
            let wanted = naive(&all, size, pad);
            let memory = || MemorySource::new(&all[..], size, Layout::Nhwc).unwrap();

            let mut padded = Padded::new(memory(), pad).unwrap();
            assert_eq!(padded.shape(), pad.padded(size));
            let width = 1 + rng.below(padded.shape().w);
            let at_once = 1 + rng.below(4);
            let got = read_anywhere(&mut padded, at_once, width);
            assert!(same_bits(&got, &wanted), "{round} {size:?} {pad:?}");

            let mut padded = Padded::new(Ordered::new(memory()), pad).unwrap();
            for _ in 0..2 {
                let got = read_in_order(&mut padded, at_once).unwrap();
                assert!(
                    same_bits(&got, &wanted),
                    "{round} {size:?} {pad:?} in order"
                );
                padded.rewind().unwrap();
            }
            let held = match mode {
                PadMode::Reflect => pad.top.max(pad.bottom) + 1,
                _ => 1,
            };
            assert_eq!(padded.memory(), held * size.w * size.c * 4);
        }
    }
}

#[test]
fn too_much_reflection_is_refused() {
    let all = [0.0; 12];
    let memory = || MemorySource::new(&all[..], shape(1, 1, 3, 4), Layout::Nhwc).unwrap();
    assert!(Padded::new(memory(), Pad::around(PadMode::Reflect, 2)).is_ok());
    let said = message(Padded::new(memory(), Pad::around(PadMode::Reflect, 3)));
    assert!(
        said.contains("at most 2") && said.contains("edge"),
        "{said}"
    );
    assert!(Padded::new(memory(), Pad::around(PadMode::Edge, 3)).is_ok());
    assert!(Padded::new(memory(), Pad::around(PadMode::Zero, u64::MAX)).is_err());
}

#[test]
fn multiples_are_reached_at_the_bottom_and_on_the_right() {
    let size = shape(1, 3, 17, 32);
    let pad = Pad::around(PadMode::Edge, 0).to_multiple(size, 8, 16);
    assert_eq!((pad.top, pad.left, pad.bottom, pad.right), (0, 0, 7, 0));
    let pad = Pad::around(PadMode::Edge, 5).to_multiple(size, 8, 16);
    assert_eq!((pad.top, pad.left, pad.bottom, pad.right), (5, 5, 10, 11));
    assert_eq!(pad.padded(size), shape(1, 3, 32, 48));
}

#[test]
fn a_crop_gives_back_what_the_border_surrounded() {
    let size = shape(2, 3, 9, 11);
    let pad = Pad {
        mode: PadMode::Reflect,
        top: 3,
        left: 2,
        bottom: 4,
        right: 5,
    };
    let all = Rng::new(6).floats(size.elements());
    let whole = pad.padded(size);
    let crop = pad.crop(size, whole, (1, 1), (1, 1));
    assert_eq!(
        (crop.top, crop.left, crop.height, crop.width),
        (3, 2, 9, 11)
    );
    let padded = naive(&all, size, pad);
    for width in [1, 4, 18] {
        let inner = MemorySink::new(size, Layout::Nhwc);
        let mut sink = Cropped::new(inner.clone(), whole, crop).unwrap();
        write_anywhere(&mut sink, whole, &padded, width).unwrap();
        assert_eq!(inner.take(), all);
    }
    let inner = MemorySink::new(size, Layout::Nhwc);
    let mut sink = Cropped::new(inner.clone(), whole, crop).unwrap();
    write_in_order(&mut sink, whole, &padded, 5).unwrap();
    assert_eq!(inner.take(), all);

    let inner = MemorySink::new(size, Layout::Nhwc);
    let wide = Crop { width: 17, ..crop };
    assert!(Cropped::new(inner, whole, wide).is_err());
}

#[test]
fn a_crop_follows_the_scale_of_the_output() {
    let size = shape(1, 3, 9, 11);
    let pad = Pad {
        mode: PadMode::Zero,
        top: 3,
        left: 2,
        bottom: 4,
        right: 3,
    };
    let whole = pad.padded(size);
    let scaled = |h, w, rows, cols| pad.crop(size, shape(1, 1, h, w), rows, cols);
    let as_tuple = |crop: Crop| (crop.top, crop.left, crop.height, crop.width);
    assert_eq!(
        as_tuple(scaled(whole.h * 4, whole.w * 2, (4, 1), (2, 1))),
        (12, 4, 36, 22)
    );
    // Rows 1.5 to 6 of 8, columns 1 to 6.5 of 8.
    assert_eq!(
        as_tuple(scaled(whole.h / 2, whole.w / 2, (1, 2), (1, 2))),
        (1, 1, 5, 6)
    );
}
