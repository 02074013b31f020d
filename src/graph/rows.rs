//! Which input rows (or columns) an output row (or column) reads: the only window arithmetic.
//!
//! A [`Window`] is one axis of an op. [`Window::tap`] is the primitive: tap `k` of output row `o`
//! reads input row `i`, or nothing (padding). Everything else follows from it: how many rows can
//! be made from those that exist ([`Axis::ready`]), the first row that is still needed
//! ([`Axis::tail`]), and the kernels' row and column tables.
//!
//! ```text
//!  input rows   0 1 2 3 4 5 6 7        kernel 3, stride 2, dilation 1, pad 1
//!               ├─┤                    o = 0 reads (pad) 0 1
//!                 ├───┤                o = 1 reads 1 2 3
//!                     ├───┤            o = 2 reads 3 4 5
//! ```

use std::ops::Range;

use serde::Serialize;

use crate::dense::Interp;

/// What a tap outside the image reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub enum Border {
    /// Nothing: the kernel puts its fill value (zero for a convolution, -∞ for a maximum).
    Fill,
    /// The nearest row inside.
    Edge,
    /// The row mirrored at the outermost row, which is not repeated.
    Reflect,
}

/// How output positions of one axis map to input positions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Window {
    /// Output `o` reads input `o`.
    Same,
    /// Tap `k` reads `o · stride − pad + k · dilation`. Convolution and pooling; with one tap, a
    /// pad (`pad` > 0), a crop (`pad` < 0) or a strided slice; with `kernel == stride`, space to
    /// depth.
    Taps {
        /// Number of taps.
        kernel: u64,
        /// Input positions from one output to the next, at least 1.
        stride: u64,
        /// Input positions from one tap to the next, at least 1.
        dilation: u64,
        /// Positions before the image (negative: positions of the image that are skipped).
        pad: i64,
        /// What taps outside read.
        border: Border,
    },
    /// Transposed convolution: tap `k` reads `i` where `i · stride − pad + k · dilation == o`.
    Transposed {
        /// Number of taps.
        kernel: u64,
        /// Output positions from one input to the next, at least 1.
        stride: u64,
        /// Output positions from one tap to the next, at least 1.
        dilation: u64,
        /// Output positions cut off at the start.
        pad: i64,
    },
    /// Output `o` reads `o / factor`: depth to space, nearest resize by a whole factor.
    Repeat {
        /// Outputs per input, at least 1.
        factor: u64,
    },
    /// Interpolation: output `o` reads a few positions with weights.
    Interp(Interp),
}

/// A [`Window`] between an input and an output of known lengths.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Axis {
    /// The map.
    pub window: Window,
    /// Input length in positions.
    pub input: u64,
    /// Output length in positions.
    pub output: u64,
}

impl Axis {
    /// Number of taps of every output position.
    pub fn taps(&self) -> u64 {
        match &self.window {
            Window::Same | Window::Repeat { .. } => 1,
            Window::Taps { kernel, .. } | Window::Transposed { kernel, .. } => *kernel,
            Window::Interp(interp) => interp.taps(),
        }
    }

    /// The input position that tap `k` of output `o` reads; `None` where that is outside.
    pub fn tap(&self, o: u64, k: u64) -> Option<u64> {
        let len = self.input as i64;
        let i = self.position(o, k)?;
        let i = match self.window {
            Window::Taps {
                border: Border::Edge,
                ..
            } => i.clamp(0, (len - 1).max(0)),
            Window::Taps {
                border: Border::Reflect,
                ..
            } => reflect(i, len),
            _ => i,
        };
        (0..len).contains(&i).then_some(i as u64)
    }

    /// Where tap `k` of output `o` falls, inside or outside the input; `None` where a transposed
    /// convolution's tap falls between two positions.
    pub fn position(&self, o: u64, k: u64) -> Option<i64> {
        match &self.window {
            Window::Same => Some(o as i64),
            Window::Repeat { factor } => Some((o / factor) as i64),
            Window::Taps {
                stride,
                dilation,
                pad,
                ..
            } => Some((o * stride) as i64 - pad + (k * dilation) as i64),
            Window::Transposed {
                stride,
                dilation,
                pad,
                ..
            } => {
                let (at, stride) = (o as i64 + pad - (k * dilation) as i64, *stride as i64);
                (at.rem_euclid(stride) == 0).then(|| at.div_euclid(stride))
            }
            Window::Interp(interp) => Some(interp.tap(o, k).0 as i64),
        }
    }

    /// The weight of tap `k` of output `o`: 1 except under interpolation.
    pub fn weight(&self, o: u64, k: u64) -> f32 {
        match &self.window {
            Window::Interp(interp) => interp.tap(o, k).1,
            _ => 1.0,
        }
    }

    /// The share of its taps that one output of a transposed convolution uses; 1 otherwise.
    pub fn stride_share(&self) -> f64 {
        match self.window {
            Window::Transposed { stride, .. } => 1.0 / stride as f64,
            _ => 1.0,
        }
    }

    /// How many taps of output `o` count in a mean that counts `after` padded positions behind the
    /// image and all of those before it.
    pub fn counted(&self, o: u64, after: u64) -> u64 {
        let Window::Taps {
            kernel,
            stride,
            dilation,
            pad,
            ..
        } = &self.window
        else {
            return self.taps();
        };
        let first = (o * stride) as i64 - pad;
        let end = (self.input + after) as i64;
        (0..*kernel)
            .filter(|k| first + ((k * dilation) as i64) < end)
            .count() as u64
    }

    /// A position such that no output from `o` on reads below it: what a consumer at front `o`
    /// leaves needed. Never falls as `o` grows; the input's length once `o` is past the end.
    pub fn tail(&self, o: u64) -> u64 {
        if o >= self.output {
            return self.input;
        }
        let (len, low) = (self.input as i64, self.low(o));
        let low = match self.border() {
            Border::Fill => low,
            Border::Edge => low.min(len - 1),
            // where the last output is mirrored to, if it is
            Border::Reflect => match self.high(self.output - 1) {
                end if end <= len => low,
                end => low.min(2 * len - 1 - end),
            },
        };
        low.clamp(0, len) as u64
    }

    /// How many input positions must exist before outputs `0..=o` can be made. Never falls as
    /// `o` grows.
    pub fn needs(&self, o: u64) -> u64 {
        let high = self.high(o);
        let high = match self.border() {
            Border::Fill => high,
            Border::Edge => high.max(1),
            // where the first output is mirrored to, if it is
            Border::Reflect => high.max(1).max(1 - self.low(0)),
        };
        high.clamp(0, self.input as i64) as u64
    }

    /// The first position of the window of output `o`, inside or outside the input.
    fn low(&self, o: u64) -> i64 {
        let at = o as i64;
        match &self.window {
            Window::Same => at,
            Window::Repeat { factor } => (o / factor) as i64,
            Window::Taps { stride, pad, .. } => (o * stride) as i64 - pad,
            Window::Transposed {
                kernel,
                stride,
                dilation,
                pad,
            } => {
                let stride = *stride as i64;
                (at + pad - ((kernel - 1) * dilation) as i64 + stride - 1).div_euclid(stride)
            }
            Window::Interp(interp) => interp.tap(o, 0).0 as i64,
        }
    }

    /// The end of the window of output `o`, inside or outside the input.
    fn high(&self, o: u64) -> i64 {
        match &self.window {
            Window::Same | Window::Repeat { .. } => self.low(o) + 1,
            Window::Taps {
                kernel, dilation, ..
            } => self.low(o) + ((kernel - 1) * dilation) as i64 + 1,
            Window::Transposed { stride, pad, .. } => {
                (o as i64 + pad).div_euclid(*stride as i64) + 1
            }
            Window::Interp(interp) => interp.tap(o, interp.taps() - 1).0 as i64 + 1,
        }
    }

    fn border(&self) -> Border {
        match self.window {
            Window::Taps { border, .. } => border,
            _ => Border::Fill,
        }
    }

    /// The outputs among which windows repeat: what `o + k · out` reads, needs and leaves needed is
    /// that of `o`, `k · by` positions further. The borders are left out; empty where windows do not
    /// move so, or (under interpolation) are rounded.
    pub fn repeats(&self, out: u64, by: u64) -> Range<u64> {
        let (outs, ins) = match self.window {
            Window::Same => (1, 1),
            Window::Taps { stride, .. } => (1, stride),
            Window::Transposed { stride, .. } => (stride, 1),
            Window::Repeat { factor } => (factor, 1),
            Window::Interp(_) => return 0..0,
        };
        let even = out.is_multiple_of(outs)
            && by.is_multiple_of(ins)
            && u128::from(out) * u128::from(ins) == u128::from(by) * u128::from(outs);
        if !even {
            return 0..0;
        }
        let tail = |o| (self.tail(o) as i64).cmp(&self.low(o));
        let needs = |o| (self.needs(o) as i64).cmp(&self.high(o));
        let start = self.first(|o| tail(o).is_le() && needs(o).is_le());
        let end = self.first(|o| tail(o).is_lt() || needs(o).is_lt());
        start..end.max(start)
    }

    /// The first output for which `holds`, which stays true once it is; the end where none.
    fn first(&self, holds: impl Fn(u64) -> bool) -> u64 {
        let (mut low, mut high) = (0, self.output);
        while low < high {
            let middle = low + (high - low) / 2;
            if holds(middle) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }

    /// The positions that outputs `out` (at least one) may read, without gaps; empty where all their
    /// taps are outside.
    pub fn span(&self, out: &Range<u64>) -> Range<u64> {
        let from = self.tail(out.start);
        from..self.needs(out.end - 1).max(from)
    }

    /// How many outputs can be made when `front` inputs exist, at least `from` and at most `most`
    /// (`from` outputs are known to be ready).
    pub fn ready(&self, front: u64, from: u64, most: u64) -> u64 {
        let most = most.min(self.output);
        if front >= self.input {
            return most.max(from);
        }
        // the answer is most often near: strips are short, and needs never falls
        let (mut low, mut step) = (from, 1);
        while low < most && self.needs((low + step - 1).min(most - 1)) <= front {
            low = (low + step).min(most);
            step *= 2;
        }
        let mut high = (low + step - 1).min(most);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.needs(middle) <= front {
                low = middle + 1
            } else {
                high = middle
            }
        }
        low
    }
}

/// `i` mirrored into `0..len` at the outermost positions, which are not repeated.
fn reflect(i: i64, len: i64) -> i64 {
    if len <= 1 {
        return if len == 1 { 0 } else { i };
    }
    let period = 2 * (len - 1);
    let m = i.rem_euclid(period);
    if m < len { m } else { period - m }
}

#[cfg(test)]
mod tests;
