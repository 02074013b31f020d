//! Panels, kept as the steps from each to the next.
//!
//! ```text
//!  ├────┤                          away from the borders panels of one width are alike but for
//!   ───▶├────┤                     their place, so that the steps between them are few, however
//!        ───▶├────┤                many panels there are
//! ```

use std::ops::Range;

use serde::{Serialize, Serializer};

use super::Panel;

/// Panels, left to right, in memory that does not grow with their number where they are alike.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Panels {
    /// The different steps: what is added, modulo 2⁶⁴, to every end of every range.
    steps: Vec<Panel>,
    /// For each panel the step from the one before it, the first from nothing.
    order: Vec<u32>,
}

impl Panels {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// The panels.
    pub fn iter(&self) -> impl Iterator<Item = Panel> {
        self.order.iter().scan(Panel::default(), |last, &step| {
            *last = moved(last, &self.steps[step as usize], u64::wrapping_add);
            Some(last.clone())
        })
    }
}

impl FromIterator<Panel> for Panels {
    fn from_iter<I: IntoIterator<Item = Panel>>(panels: I) -> Self {
        let (mut all, mut last) = (Panels::default(), Panel::default());
        for panel in panels {
            let step = moved(&last, &panel, |from, to| to.wrapping_sub(from));
            let known = all.steps.iter().position(|s| *s == step);
            all.order.push(known.unwrap_or(all.steps.len()) as u32);
            if known.is_none() {
                all.steps.push(step);
            }
            last = panel;
        }
        all
    }
}

impl Serialize for Panels {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

/// As many ranges as `by` has, each of `from`'s and `by`'s ends.
fn moved(from: &Panel, by: &Panel, end: fn(u64, u64) -> u64) -> Panel {
    let all = |from: &[Range<u64>], by: &[Range<u64>]| {
        let from = from.iter().cloned().chain(std::iter::repeat(0..0));
        let pairs = from.zip(by);
        pairs
            .map(|(a, b)| end(a.start, b.start)..end(a.end, b.end))
            .collect()
    };
    Panel {
        windows: all(&from.windows, &by.windows),
        owned: all(&from.owned, &by.owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One window of `halo` columns on both sides of what is owned.
    fn panel(owned: Range<u64>, halo: u64, width: u64) -> Panel {
        let window = owned.start.saturating_sub(halo)..(owned.end + halo).min(width);
        Panel {
            windows: vec![window],
            owned: vec![0..0, owned],
        }
    }

    #[test]
    fn panels_come_back_as_they_were() {
        let odd = Panel {
            windows: vec![3..5, 0..u64::MAX],
            owned: vec![],
        };
        let mut panels = vec![panel(0..64, 9, 700), panel(64..128, 9, 700)];
        panels.extend([Panel::default(), odd, panel(3..64, 9, 700)]);
        let kept: Panels = panels.iter().cloned().collect();
        assert_eq!(kept.iter().collect::<Vec<_>>(), panels);
        assert_eq!(kept.len(), panels.len());
    }

    /// Panels of one and two blocks of columns, in any order, are few steps.
    #[test]
    fn panels_that_are_alike_are_kept_once() {
        let (count, blocks) = (4096, 6250);
        let at = |p: u64| p * blocks / count * 64;
        let panels = (0..count).map(|p| panel(at(p)..at(p + 1), 100, blocks * 64));
        let kept: Panels = panels.collect();
        assert_eq!(kept.len(), 4096);
        assert!(kept.steps.len() <= 16, "{} steps", kept.steps.len());
    }
}
