//! Which slot each live row is in.

use std::collections::VecDeque;
use std::ops::Range;

use crate::error::{Error, Result};
use crate::plan::{Home, PhasePlan, Plan};

/// Hands out the slots of a phase's pools: the lowest number that was given back last comes first, so
/// that runs repeat.
#[derive(Debug)]
pub(super) struct Slots<'a> {
    plan: &'a Plan,
    phase: &'a PhasePlan,
    /// Free slots of each pool, the next to hand out last.
    free: Vec<Vec<u32>>,
    /// For each of the sweep's rows, the first live row and the slots from it on.
    live: Vec<(u64, VecDeque<u32>)>,
}

impl<'a> Slots<'a> {
    /// All slots free.
    pub(super) fn new(plan: &'a Plan, phase: &'a PhasePlan) -> Self {
        let free = phase
            .pools
            .iter()
            .map(|p| (0..p.slots as u32).rev().collect())
            .collect();
        let live = phase
            .sweep
            .rows
            .iter()
            .map(|_| (0, VecDeque::new()))
            .collect();
        Slots {
            plan,
            phase,
            free,
            live,
        }
    }

    /// Slots for `made` of `rows`.
    pub(super) fn take(&mut self, rows: usize, made: Range<u64>) -> Result<()> {
        let Home::Slots(pool) = self.phase.homes[rows] else {
            return Ok(());
        };
        for y in made {
            let none = || Error::Plan(format!("no slot is left for row {y} of rows {rows}"));
            let slot = self.free[pool].pop().ok_or_else(none)?;
            self.live[rows].1.push_back(slot);
        }
        Ok(())
    }

    /// Gives back the slots of rows below `tail`.
    pub(super) fn drop_below(&mut self, rows: usize, tail: u64) {
        let Home::Slots(pool) = self.phase.homes[rows] else {
            return;
        };
        let (first, live) = &mut self.live[rows];
        while *first < tail {
            let Some(slot) = live.pop_front() else { break };
            self.free[pool].push(slot);
            *first += 1;
        }
    }

    /// The arena bytes of columns `cols` of row `y` of `rows`, whose window starts at `window.start`
    /// and whose pixels have `pixel` bytes; `item` is the batch item and `height` and `width` those
    /// of the tensor.
    pub(super) fn bytes(
        &self,
        rows: usize,
        place: &Place,
        y: u64,
        cols: &Range<u64>,
    ) -> Result<Range<usize>> {
        let start = match self.phase.homes[rows] {
            Home::Slots(pool) => {
                let (first, live) = &self.live[rows];
                let gone = || Error::Plan(format!("row {y} of rows {rows} is not alive"));
                let slot = y
                    .checked_sub(*first)
                    .and_then(|k| live.get(k as usize))
                    .ok_or_else(gone)?;
                let pool = &self.phase.pools[pool];
                let column = (cols.start - place.window.start) * place.pixel;
                self.plan.buffers[pool.mem.at()].offset
                    + u64::from(*slot) * pool.slot_bytes
                    + column
            }
            Home::Stored(mem) => {
                let pixels = (place.item * place.height + y) * place.width + cols.start;
                self.plan.buffers[mem.at()].offset + pixels * place.pixel
            }
        };
        Ok(start as usize..(start + (cols.end - cols.start) * place.pixel) as usize)
    }
}

/// What turns a row's number into a place.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// Columns that exist in this panel.
    pub(super) window: Range<u64>,
    /// Bytes of a pixel.
    pub(super) pixel: u64,
    /// Batch item.
    pub(super) item: u64,
    /// Rows of the tensor.
    pub(super) height: u64,
    /// Columns of the tensor.
    pub(super) width: u64,
}
