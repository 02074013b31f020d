//! Images seen in another shape: what chains of Reshape and Transpose make of them.
//!
//! A dimension of a view is a mixed-radix number whose digits are digits of the image's own four
//! indices. Reshape only groups digits anew (or splits one), Transpose only moves dimensions. A view
//! that has become an image again is recognised by its digits, however it came about:
//!
//! ```text
//!  [n, c·4, h, w] -reshape-> [n, c, i, j, h, w] -transpose-> [n, c, h, i, w, j] -reshape-> [n, c, h·2, w·2]
//!  height digits: h, then the digit of place 2 of the channel      so: depth to space
//! ```

use super::item::Rows;

/// An image in another shape.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct View {
    /// The image.
    pub(super) rows: Rows,
    /// The digits of each dimension, the most significant first.
    pub(super) dims: Vec<Vec<Digit>>,
}

/// A digit of one of the image's indices: `index / place % len`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Digit {
    /// 0 to 3: n, c, h, w.
    pub(super) axis: usize,
    pub(super) place: u64,
    /// At least 2.
    pub(super) len: u64,
}

/// How to make a view of its image, over whole tensors.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// To these lengths.
    Reshape(Vec<u64>),
    /// Dimension `i` is dimension `[i]` of the source.
    Transpose(Vec<usize>),
}

/// An image that a view is after all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Image {
    /// These channels of the source, in this order.
    Channels(Vec<u64>),
    /// These channels of the source, then depth to space.
    DepthToSpace {
        channels: Vec<u64>,
        block: u64,
        crd: bool,
    },
    /// Space to depth, then these channels of that.
    SpaceToDepth { block: u64, channels: Vec<u64> },
}

/// Channels for which an order is written out.
const MOST_CHANNELS: u64 = 1 << 16;

fn number(axis: usize, place: u64, len: u64) -> Vec<Digit> {
    let digit = Digit { axis, place, len };
    if len == 1 { vec![] } else { vec![digit] }
}

/// Appends `digit` to `digits`, joined with the last where the two are one larger digit.
fn append(digits: &mut Vec<Digit>, digit: Digit) {
    match digits.last_mut() {
        Some(last) if last.axis == digit.axis && last.place == digit.place * digit.len => {
            last.place = digit.place;
            last.len *= digit.len;
        }
        _ => digits.push(digit),
    }
}

/// The value that `weight` gives to each combination of `digits`, the last digit fastest.
fn enumerate(digits: &[Digit], weight: impl Fn(&Digit) -> u64) -> Vec<u64> {
    digits.iter().fold(vec![0], |all, digit| {
        let step = weight(digit);
        let each = |base: &u64| (0..digit.len).map(|i| base + i * step).collect::<Vec<_>>();
        all.iter().flat_map(each).collect()
    })
}

impl View {
    /// The image as it is.
    pub(super) fn new(rows: Rows) -> Self {
        let own = |axis: usize| number(axis, 1, rows.dims[axis]);
        let dims = (0..4).map(own).collect();
        View { rows, dims }
    }

    /// Its lengths.
    pub(super) fn lengths(&self) -> Vec<u64> {
        let len = |digits: &Vec<Digit>| digits.iter().map(|d| d.len).product();
        self.dims.iter().map(len).collect()
    }

    /// The view in the given lengths, if they only group digits anew.
    pub(super) fn reshape(&self, lengths: &[u64]) -> Option<View> {
        let mut rest: Vec<Digit> = self.dims.iter().flatten().rev().copied().collect();
        let mut dims = Vec::with_capacity(lengths.len());
        for &length in lengths {
            let mut digits = Vec::new();
            let mut left = length;
            while left > 1 {
                let digit = rest.pop()?;
                if left % digit.len == 0 {
                    left /= digit.len;
                    append(&mut digits, digit);
                } else if digit.len % left == 0 {
                    let low = digit.len / left;
                    let high = Digit {
                        place: digit.place * low,
                        len: left,
                        ..digit
                    };
                    append(&mut digits, high);
                    rest.push(Digit { len: low, ..digit });
                    left = 1;
                } else {
                    return None;
                }
            }
            dims.push(digits);
        }
        let rows = self.rows.clone();
        rest.is_empty().then_some(View { rows, dims })
    }

    /// The view with its dimensions in another order.
    pub(super) fn transpose(&self, order: &[usize]) -> View {
        View {
            rows: self.rows.clone(),
            dims: order.iter().map(|&i| self.dims[i].clone()).collect(),
        }
    }

    /// Another image, of the same lengths but for its channels, seen the same way.
    pub(super) fn of(&self, rows: Rows) -> View {
        let old = number(1, 1, self.rows.dims[1]);
        let new = number(1, 1, rows.dims[1]);
        let swap = |d: &Vec<Digit>| if *d == old { new.clone() } else { d.clone() };
        let dims = match rows.dims == self.rows.dims {
            true => self.dims.clone(),
            false => self.dims.iter().map(swap).collect(),
        };
        View { rows, dims }
    }

    /// Whether both see images of the same lengths the same way.
    pub(super) fn is_like(&self, other: &View) -> bool {
        self.rows.dims == other.rows.dims && self.dims == other.dims
    }

    /// Which dimension of the image each of its dimensions is, if they are only in another order.
    pub(super) fn order(&self) -> Option<[usize; 4]> {
        let own = |axis: usize| number(axis, 1, self.rows.dims[axis]);
        let mut single = (0..4).filter(|&axis| own(axis).is_empty());
        let mut order = Vec::with_capacity(4);
        for dim in &self.dims {
            order.push(match dim.as_slice() {
                [] => single.next()?,
                [d] if *dim == own(d.axis) => d.axis,
                _ => return None,
            });
        }
        order.try_into().ok()
    }

    /// How it is made of its image.
    pub(super) fn steps(&self) -> Vec<Step> {
        if let Some(order) = self.order() {
            return vec![Step::Transpose(order.to_vec())];
        }
        let digits: Vec<Digit> = self.dims.iter().flatten().copied().collect();
        let mut sorted = digits.clone();
        sorted.sort_by_key(|d| (d.axis, std::cmp::Reverse(d.place)));
        let place = |d: &Digit| sorted.iter().position(|s| s == d);
        let order: Vec<usize> = digits.iter().filter_map(place).collect();
        let split = Step::Reshape(sorted.iter().map(|d| d.len).collect());
        let joined = Step::Reshape(self.lengths());
        if order.iter().copied().eq(0..digits.len()) {
            return vec![joined];
        }
        vec![split, Step::Transpose(order), joined]
    }

    /// The dimension that is all channels and nothing else.
    pub(super) fn channel_dim(&self) -> Option<usize> {
        let all = number(1, 1, self.rows.dims[1]);
        self.dims.iter().position(|d| *d == all && !d.is_empty())
    }

    /// How many groups of adjacent channels dimension 1 counts, if dimension 0 is the batch and the
    /// others are all the rest: the shape in which a group norm is written as an instance norm.
    pub(super) fn channel_groups(&self) -> Option<u64> {
        let [n, c, ..] = self.rows.dims;
        let [batch, second, ..] = self.dims.as_slice() else {
            return None;
        };
        let groups = second.iter().map(|d| d.len).product::<u64>();
        let holds = *batch == number(0, 1, n) && *second == number(1, c / groups, groups);
        holds.then_some(groups)
    }

    /// The image that it is, if it is one.
    pub(super) fn image(&self) -> Option<Image> {
        let [n, c, h, w] = self.rows.dims;
        let [batch, channels, rows, cols] = self.dims.as_slice() else {
            return None;
        };
        if *batch != number(0, 1, n) || c > MOST_CHANNELS {
            return None;
        }
        let of = |axis: usize| move |d: &&Digit| d.axis == axis;
        let source = |digits: &[Digit]| enumerate(digits, |d| d.place);
        let order = source(channels);
        let (rows_end, cols_end) = (
            behind(rows, number(2, 1, h))?,
            behind(cols, number(3, 1, w))?,
        );
        match (rows_end, cols_end) {
            _ if channels.iter().any(|d| d.axis == 0) => None,
            (End::Whole, End::Whole) => channels
                .iter()
                .all(|d| d.axis == 1)
                .then_some(Image::Channels(order)),
            (End::Then(i), End::Then(j)) if i.len == j.len && i.axis == 1 && j.axis == 1 => {
                let crd = [channels.as_slice(), &[i, j]].concat();
                let dcr = [&[i, j], channels.as_slice()].concat();
                let (crd, dcr) = (source(&crd), source(&dcr));
                let is_dcr = dcr.iter().copied().eq(0..c);
                Some(Image::DepthToSpace {
                    channels: if is_dcr { dcr } else { crd },
                    block: i.len,
                    crd: !is_dcr,
                })
            }
            (End::High(b), End::High(same)) if b == same => {
                let low = |axis| {
                    channels
                        .iter()
                        .filter(of(axis))
                        .map(|d| d.len)
                        .product::<u64>()
                };
                if low(2) != b || low(3) != b || c.checked_mul(b * b)? > MOST_CHANNELS {
                    return None;
                }
                let weight = |d: &Digit| match d.axis {
                    1 => d.place,
                    2 => d.place * b * c,
                    _ => d.place * c,
                };
                Some(Image::SpaceToDepth {
                    block: b,
                    channels: enumerate(channels, weight),
                })
            }
            _ => None,
        }
    }
}

/// What the digits of a height or width are, compared with the image's own.
enum End {
    /// The same.
    Whole,
    /// The same, then another digit.
    Then(Digit),
    /// The high part: positions divided by this.
    High(u64),
}

fn behind(digits: &[Digit], own: Vec<Digit>) -> Option<End> {
    if digits == own {
        return Some(End::Whole);
    }
    if let Some([digit]) = digits.strip_prefix(own.as_slice()) {
        return Some(End::Then(*digit));
    }
    let own = own.first()?;
    match digits {
        [] => Some(End::High(own.len)),
        [d] if d.axis == own.axis && d.place * d.len == own.len => Some(End::High(d.place)),
        _ => None,
    }
}
