//! Where each buffer goes in the arena: interval placement.
//!
//! ```text
//!  address ▲
//!          │ ┌─────┐   ┌───────┐      a buffer is a rectangle: its lifetime wide, its size high;
//!          │ │  B  │   │   D   │      no two may overlap, and the highest edge is the arena
//!          │ └─────┘┌──┴──┬────┘
//!          │ ┌──────┴┐ C  │
//!          │ │   A   ├────┘
//!          └─┴───────┴──────────▶ time
//! ```
//!
//! Best of several greedy orders, each first fit at the lowest address that is free for the whole
//! lifetime (including the space below the first live buffer).

use std::ops::Range;

use super::ALIGN;

/// A buffer to place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Its size in bytes.
    pub bytes: u64,
    /// When it is alive, half-open, in any unit of time.
    pub life: Range<usize>,
}

/// The largest sum of sizes alive at one time: no placement can be smaller. Sizes count as rounded
/// up to [`ALIGN`].
pub fn load(requests: &[Request]) -> u64 {
    let mut events: Vec<(usize, bool, u64)> = Vec::with_capacity(2 * requests.len());
    for r in requests.iter().filter(|r| !r.life.is_empty()) {
        events.push((r.life.start, true, aligned(r.bytes)));
        events.push((r.life.end, false, aligned(r.bytes)));
    }
    events.sort_unstable();
    let (mut now, mut most) = (0u64, 0u64);
    for (_, starts, bytes) in events {
        now = if starts { now + bytes } else { now - bytes };
        most = most.max(now);
    }
    most
}

/// Offsets for `requests`, in their order, and the size of the arena.
pub fn place(requests: &[Request]) -> (Vec<u64>, u64) {
    let least = load(requests);
    let area = |r: &Request| u128::from(r.bytes) * r.life.len() as u128;
    let orders: [&dyn Fn(usize) -> (u128, u128); 4] = [
        &|i| {
            (
                u128::MAX - u128::from(requests[i].bytes),
                u128::MAX - requests[i].life.len() as u128,
            )
        },
        &|i| {
            (
                u128::MAX - requests[i].life.len() as u128,
                u128::MAX - u128::from(requests[i].bytes),
            )
        },
        &|i| (u128::MAX - area(&requests[i]), 0),
        &|i| {
            (
                requests[i].life.start as u128,
                u128::MAX - requests[i].life.len() as u128,
            )
        },
    ];
    let mut best: Option<(Vec<u64>, u64)> = None;
    for key in orders {
        let mut order: Vec<usize> = (0..requests.len()).collect();
        order.sort_by_key(|&i| (key(i), i));
        let found = first_fit(requests, &order);
        if best.as_ref().is_none_or(|b| found.1 < b.1) {
            best = Some(found);
        }
        if best.as_ref().is_some_and(|b| b.1 == least) {
            break;
        }
    }
    best.unwrap_or_default()
}

fn first_fit(requests: &[Request], order: &[usize]) -> (Vec<u64>, u64) {
    let mut offsets = vec![0u64; requests.len()];
    let mut placed: Vec<usize> = Vec::with_capacity(order.len());
    let mut top = 0;
    for &i in order {
        let request = &requests[i];
        let mut taken: Vec<(u64, u64)> = placed
            .iter()
            .filter(|&&j| overlaps(&requests[j].life, &request.life))
            .map(|&j| (offsets[j], offsets[j] + aligned(requests[j].bytes)))
            .collect();
        taken.sort_unstable();
        let mut at = 0;
        for (start, end) in taken {
            if start >= at + aligned(request.bytes) {
                break;
            }
            at = at.max(end);
        }
        offsets[i] = at;
        top = top.max(at + aligned(request.bytes));
        placed.push(i);
    }
    (offsets, top)
}

fn overlaps(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

fn aligned(bytes: u64) -> u64 {
    bytes.next_multiple_of(ALIGN)
}
