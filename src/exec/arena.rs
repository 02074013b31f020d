//! The one allocation that all buffers of a plan live in, and the door to its bytes.

use std::ops::Range;

use memmap2::MmapMut;

use crate::error::{Error, Result};

/// Bytes of a plan's buffers, all resident from the start.
#[derive(Debug)]
pub(super) struct Arena {
    map: MmapMut,
}

/// Bytes of the arena, borrowed for reading and for writing.
pub(super) type Views<'a> = (Vec<&'a [u8]>, Vec<&'a mut [u8]>);

/// What [`Arena::views`] sorts in; kept to save allocations.
#[derive(Debug, Default)]
pub(super) struct Scratch(Vec<(usize, usize)>);

impl Arena {
    /// `bytes` of zeros, each page touched, so that none is missing later.
    pub(super) fn new(bytes: u64) -> Result<Self> {
        let full = || {
            Error::Usage(format!(
                "an arena of {bytes} bytes cannot be allocated: give a smaller --memory"
            ))
        };
        let len = usize::try_from(bytes.max(1)).map_err(|_| full())?;
        let mut map = MmapMut::map_anon(len).map_err(|_| full())?;
        #[cfg(target_os = "linux")]
        // fewer page faults and TLB misses; where the kernel refuses, ordinary pages do
        let _ = map.advise(memmap2::Advice::HugePage);
        for page in map.chunks_mut(4096) {
            page[0] = 0;
        }
        Ok(Arena { map })
    }

    /// All bytes.
    pub(super) fn bytes(&mut self) -> &mut [u8] {
        &mut self.map
    }

    /// Slices of `shared` and `exclusive` ranges, in order. Shared ones may overlap each other.
    ///
    /// # Errors
    /// [`Error::Plan`] where an exclusive range overlaps any other or a range is outside: a fault of
    /// the plan that its checker should have found.
    #[expect(
        unsafe_code,
        reason = "several disjoint mutable slices of one allocation"
    )]
    pub(super) fn views(
        &mut self,
        shared: &[Range<usize>],
        exclusive: &[Range<usize>],
        scratch: &mut Scratch,
    ) -> Result<Views<'_>> {
        let len = self.map.len();
        let bad = |r: &Range<usize>| {
            Error::Plan(format!(
                "bytes {}..{} of the arena are in use",
                r.start, r.end
            ))
        };
        let taken = &mut scratch.0;
        taken.clear();
        taken.extend(
            exclusive
                .iter()
                .filter(|r| !r.is_empty())
                .map(|r| (r.start, r.end)),
        );
        taken.sort_unstable();
        for (k, &(start, end)) in taken.iter().enumerate() {
            if end > len || taken.get(k + 1).is_some_and(|next| next.0 < end) {
                return Err(bad(&(start..end)));
            }
        }
        for r in shared.iter().filter(|r| !r.is_empty()) {
            // the first exclusive range that ends behind the shared one's start
            let k = taken.partition_point(|t| t.1 <= r.start);
            if r.end > len || taken.get(k).is_some_and(|t| t.0 < r.end) {
                return Err(bad(r));
            }
        }
        let base = self.map.as_mut_ptr();
        // nothing, but aligned as everything else
        let inside = |r: &Range<usize>| if r.is_empty() { 0..0 } else { r.clone() };
        let read = |r: &Range<usize>| {
            let r = inside(r);
            // SAFETY: the range is inside the mapping, which `self` is borrowed for, and no exclusive
            // range overlaps it, so that nothing writes it while this slice lives.
            unsafe { std::slice::from_raw_parts(base.add(r.start), r.len()) }
        };
        let write = |r: &Range<usize>| {
            let r = inside(r);
            // SAFETY: the range is inside the mapping, which `self` is borrowed mutably for, and
            // overlaps no other range of this call, so that this slice is the only way to its bytes.
            unsafe { std::slice::from_raw_parts_mut(base.add(r.start), r.len()) }
        };
        Ok((
            shared.iter().map(read).collect(),
            exclusive.iter().map(write).collect(),
        ))
    }
}
