//! Windows that slide over spatial axes: the one place where convolutions and poolings find out
//! which input elements an output element sees.

use super::Op;
use super::args::{bad, ensure, unsupported};
use crate::error::Result;

/// The most that a length, pad, stride or dilation may be. Products of two do not overflow i64.
const MOST: i64 = 1 << 30;

/// A window along one axis.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// Elements in it.
    pub size: usize,
    /// From one position to the next.
    pub stride: i64,
    /// Between neighbours in it.
    pub dilation: i64,
    /// Padding before the axis; cropped where negative.
    pub before: i64,
    /// Padding after it.
    pub after: i64,
}

impl Window {
    /// From its first to its last element.
    pub(super) fn extent(&self) -> i64 {
        (self.size as i64 - 1) * self.dilation + 1
    }

    /// Positions on an axis of `length` (in `ceil` mode also one that sticks out at the end, as
    /// long as it starts before the padding there).
    pub(super) fn positions(&self, length: usize, ceil: bool) -> Result<usize> {
        let room = length as i64 + self.before + self.after - self.extent();
        ensure(room >= 0, || {
            format!(
                "a window of {} does not fit into {length} with pads {} and {}",
                self.extent(),
                self.before,
                self.after
            )
        })?;
        let inside = room / self.stride + 1;
        let sticks_out =
            ceil && room % self.stride != 0 && inside * self.stride < length as i64 + self.before;
        Ok((inside + i64::from(sticks_out)) as usize)
    }

    /// The positions at which element `tap` of the window stands on an axis of `length`.
    fn standing(&self, tap: usize, length: usize, positions: usize) -> std::ops::Range<usize> {
        // position p stands on p · stride - offset
        let offset = self.before - tap as i64 * self.dilation;
        let first_from = |place: i64| {
            let p = (place + offset + self.stride - 1).div_euclid(self.stride);
            p.clamp(0, positions as i64) as usize
        };
        first_from(0)..first_from(length as i64)
    }

    /// How many elements stand on an axis of `length`, at `position`. With `padded`, padding
    /// belongs to the axis.
    pub(super) fn count(&self, position: usize, length: usize, padded: bool) -> usize {
        let on = match padded {
            true => -self.before..length as i64 + self.after,
            false => 0..length as i64,
        };
        let first = position as i64 * self.stride - self.before;
        (0..self.size as i64)
            .filter(|tap| on.contains(&(first + tap * self.dilation)))
            .count()
    }
}

/// How an operator says it wants its padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AutoPad {
    /// By the attribute `pads`.
    NotSet,
    /// None.
    Valid,
    /// As much as makes the output `1/stride` as long, an odd one at the end.
    Upper,
    /// The same, an odd one at the start.
    Lower,
}

impl AutoPad {
    pub(super) fn of(op: &Op) -> Result<Self> {
        Ok(match op.str("auto_pad").unwrap_or("NOTSET") {
            "NOTSET" | "" => AutoPad::NotSet,
            "VALID" => AutoPad::Valid,
            "SAME_UPPER" => AutoPad::Upper,
            "SAME_LOWER" => AutoPad::Lower,
            other => return unsupported(format!("auto_pad {other}")),
        })
    }

    /// `total` as padding before and after.
    pub(super) fn halves(self, total: i64) -> (i64, i64) {
        let (small, large) = (total / 2, total - total / 2);
        match self {
            AutoPad::Upper => (small, large),
            _ => (large, small),
        }
    }
}

/// The attribute `name`, one number for each of `n` axes, or `default` for each.
pub(super) fn per_axis(op: &Op, name: &str, n: usize, default: i64) -> Result<Vec<i64>> {
    let list = match op.ints(name) {
        Some(list) if !list.is_empty() => list.to_vec(),
        _ => vec![default; n],
    };
    ensure(
        list.len() == n && list.iter().all(|v| (-MOST..MOST).contains(v)),
        || format!("{name} {list:?} should be {n} numbers of a sensible size"),
    )?;
    Ok(list)
}

/// The windows of `sizes` that `op` slides: its strides, dilations and pads as they are given.
/// Automatic padding is left at none.
pub(super) fn given(op: &Op, sizes: &[usize]) -> Result<Vec<Window>> {
    let n = sizes.len();
    let (strides, dilations) = (
        per_axis(op, "strides", n, 1)?,
        per_axis(op, "dilations", n, 1)?,
    );
    let pads = match AutoPad::of(op)? {
        AutoPad::NotSet => per_axis(op, "pads", 2 * n, 0)?,
        _ => vec![0; 2 * n],
    };
    let sizes_fit = sizes.iter().all(|&s| s >= 1 && s < MOST as usize);
    let moves = strides.iter().chain(&dilations).all(|&s| s >= 1);
    ensure(n >= 1 && sizes_fit && moves, || {
        format!("a window of {sizes:?}, strides {strides:?}, dilations {dilations:?}")
    })?;
    Ok((0..n)
        .map(|k| Window {
            size: sizes[k],
            stride: strides[k],
            dilation: dilations[k],
            before: pads[k],
            after: pads[k + n],
        })
        .collect())
}

/// Windows that slide over a plane.
#[derive(Debug, Clone)]
pub(super) struct Sliding {
    pub(super) windows: Vec<Window>,
    /// The plane's lengths.
    pub(super) over: Vec<usize>,
    /// Positions along each axis.
    pub(super) positions: Vec<usize>,
}

/// Elements in a row that one element of the window meets in a row of positions.
pub(super) struct Meeting {
    /// Which element of the window.
    pub(super) tap: usize,
    /// The first position, of how many.
    pub(super) position: usize,
    pub(super) count: usize,
    /// The element of the plane met at the first position, and how far it is to the next.
    pub(super) place: usize,
    pub(super) step: usize,
}

impl Sliding {
    /// The windows of `op`, of `sizes`, over a plane of lengths `over`.
    pub(super) fn new(op: &Op, sizes: &[usize], over: &[usize]) -> Result<Self> {
        if sizes.len() != over.len() {
            return bad(format!(
                "a window of {sizes:?} does not slide over {over:?}"
            ));
        }
        let long = over.iter().any(|&n| n >= MOST as usize);
        ensure(!long, || format!("{over:?} is too long to slide over"))?;
        let mut windows = given(op, sizes)?;
        let same = AutoPad::of(op)?;
        if matches!(same, AutoPad::Upper | AutoPad::Lower) {
            for (w, &n) in windows.iter_mut().zip(over) {
                let positions = n.div_ceil(w.stride as usize) as i64;
                let total = (positions - 1) * w.stride + w.extent() - n as i64;
                (w.before, w.after) = same.halves(total.max(0));
            }
        }
        let ceil = op.int("ceil_mode").unwrap_or(0) != 0;
        let fit = |(w, &n): (&Window, &usize)| w.positions(n, ceil);
        let positions = windows.iter().zip(over).map(fit).collect::<Result<_>>()?;
        Ok(Sliding {
            windows,
            over: over.to_vec(),
            positions,
        })
    }

    /// Positions in all.
    pub(super) fn len(&self) -> usize {
        self.positions.iter().product()
    }

    /// Elements of the plane.
    pub(super) fn plane(&self) -> usize {
        self.over.iter().product()
    }

    /// Calls `f` with every meeting of the window with the plane; each position meets the window's
    /// elements in their order.
    pub(super) fn meet(&self, mut f: impl FnMut(Meeting)) {
        let start = Meeting {
            tap: 0,
            position: 0,
            count: 0,
            place: 0,
            step: 0,
        };
        self.meet_from(0, start, &mut f);
    }

    /// [`Sliding::meet`] from axis `k` on, `at` being where the axes before it are.
    fn meet_from(&self, k: usize, at: Meeting, f: &mut impl FnMut(Meeting)) {
        let (w, n, positions) = (self.windows[k], self.over[k], self.positions[k]);
        let down = |tap, position, place| Meeting {
            tap: at.tap * w.size + tap,
            position: at.position * positions + position,
            count: 1,
            place: at.place * n + place,
            step: 0,
        };
        let place = |tap: usize, p: usize| {
            (p as i64 * w.stride + tap as i64 * w.dilation - w.before) as usize
        };
        if k + 1 == self.windows.len() {
            for tap in 0..w.size {
                let range = w.standing(tap, n, positions);
                if let Some(first) = range.clone().next() {
                    f(Meeting {
                        count: range.len(),
                        step: w.stride as usize,
                        ..down(tap, first, place(tap, first))
                    });
                }
            }
            return;
        }
        for p in 0..positions {
            for tap in 0..w.size {
                if w.standing(tap, n, positions).contains(&p) {
                    self.meet_from(k + 1, down(tap, p, place(tap, p)), f);
                }
            }
        }
    }
}
