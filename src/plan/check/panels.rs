//! Columns: every column that is read is there, and what leaves the sweep leaves it exactly once.
//!
//! ```text
//!  window of the input    ├──────────────┤      by the taps of the columns
//!  window of the output      ├────────┤
//!  owned                   │    ├──────┤  │    the owned ranges of all panels tile the width
//! ```

use super::super::{ALIGN, COLUMN_BLOCK, Home, Panel};
use super::span::Span;
use super::{Sweeping, ensure};
use crate::error::Result;
use crate::graph::{Gather, Op};
use crate::sweep::Work;

pub(super) fn check(at: &Sweeping<'_>) -> Result<()> {
    let (phase, sweep) = (at.phase, &at.phase.sweep);
    ensure!(!phase.panels.is_empty(), "phase {} has no panel", at.number);
    let spans: Vec<Vec<Span<'_>>> = sweep
        .steps
        .iter()
        .map(|s| s.reads.iter().map(|r| Span::new(&r.cols)).collect())
        .collect();
    // the columns that each step has given so far
    let mut given = vec![0; sweep.steps.len()];
    for (k, panel) in phase.panels.iter().enumerate() {
        let counts = (panel.windows.len(), panel.owned.len());
        let due = (sweep.rows.len(), sweep.steps.len());
        ensure!(
            counts == due,
            "phase {}, panel {k}: {counts:?} windows and owned ranges, not {due:?}",
            at.number
        );
        windows(at, k, &panel)?;
        for (s, spans) in spans.iter().enumerate() {
            reads(at, k, &panel, s, spans)?;
            owned(at, k, &panel, s, &mut given[s])?;
        }
    }
    for (s, &given) in given.iter().enumerate() {
        let width = if gives(at, s) { width(at, s) } else { 0 };
        ensure!(
            given == width,
            "{} gives {given} columns of {width}",
            at.step(s)
        );
    }
    Ok(())
}

/// Windows are inside their tensors, and rows of them inside their slots.
fn windows(at: &Sweeping<'_>, k: usize, panel: &Panel) -> Result<()> {
    let (phase, sweep) = (at.phase, &at.phase.sweep);
    for (r, window) in panel.windows.iter().enumerate() {
        let tensor = at.graph.tensor(sweep.rows[r].tensor);
        let inside = window.start <= window.end && window.end <= tensor.w();
        ensure!(
            inside,
            "{}, panel {k}: columns {window:?} of {}",
            at.rows(r),
            tensor.w()
        );
        if let Home::Slots(p) = phase.homes[r] {
            let slot = phase.pools[p].slot_bytes;
            let pixels = u128::from(window.end - window.start) * u128::from(tensor.c());
            ensure!(
                4 * pixels <= u128::from(slot),
                "{}, panel {k}: {pixels} elements in {slot} bytes",
                at.rows(r)
            );
            ensure!(
                slot.is_multiple_of(ALIGN),
                "{}: slots of {slot} bytes are not aligned",
                at.rows(r)
            );
        }
        let grain = sweep.steps[sweep.rows[r].maker].grains[1];
        let starts = |x: u64| x % grain.size == grain.offset;
        let whole = window.is_empty()
            || (window.start == 0 || starts(window.start))
                && (window.end == tensor.w() || starts(window.end));
        ensure!(
            whole,
            "{}, panel {k}: columns {window:?} cut grains of {} from {}",
            at.rows(r),
            grain.size,
            grain.offset
        );
        // a source that goes in order gives whole rows
        let whole = matches!(sweep.steps[sweep.rows[r].maker].work, Work::Load(_))
            && phase.panels.len() == 1;
        ensure!(
            !whole || *window == (0..tensor.w()),
            "{}: only columns {window:?} are loaded",
            at.rows(r)
        );
    }
    Ok(())
}

/// What a step reads for its columns is in the windows.
fn reads(at: &Sweeping<'_>, k: usize, panel: &Panel, s: usize, spans: &[Span<'_>]) -> Result<()> {
    let step = &at.phase.sweep.steps[s];
    let out = step
        .makes
        .map_or(&panel.owned[s], |rows| &panel.windows[rows]);
    if out.is_empty() {
        return Ok(());
    }
    for (read, span) in step.reads.iter().zip(spans) {
        let name = || {
            format!(
                "{}, panel {k}: columns of {}",
                at.step(s),
                at.rows(read.rows)
            )
        };
        let window = &panel.windows[read.rows];
        // a runtime gives kernels these columns, so that they must be there, read or not
        let given = read.cols.span(out);
        let there = given.is_empty() || window.start <= given.start && given.end <= window.end;
        ensure!(there, "{}: {given:?}, not only {window:?}", name());
        if let Some(cols) = span.of(out) {
            let enough = given.start <= cols.start && cols.end <= given.end;
            ensure!(enough, "{}: {cols:?} are read of {given:?}", name());
        }
    }
    Ok(())
}

/// What a step gives out of the sweep follows what the panels before gave, and is made here.
fn owned(at: &Sweeping<'_>, k: usize, panel: &Panel, s: usize, given: &mut u64) -> Result<()> {
    let (step, owned) = (&at.phase.sweep.steps[s], &panel.owned[s]);
    if owned.is_empty() {
        return Ok(());
    }
    let name = || format!("{}, panel {k}", at.step(s));
    ensure!(
        gives(at, s),
        "{}: owns columns {owned:?}, and gives none",
        name()
    );
    ensure!(
        owned.start == *given,
        "{}: owns columns {owned:?} after {given}",
        name()
    );
    ensure!(
        owned.end <= width(at, s),
        "{}: owns columns {owned:?} of {}",
        name(),
        width(at, s)
    );
    if let Some(rows) = step.makes {
        let window = &panel.windows[rows];
        let made = window.start <= owned.start && owned.end <= window.end;
        ensure!(
            made,
            "{}: owns columns {owned:?} and makes {window:?}",
            name()
        );
    }
    if let Work::Node(id) = step.work
        && matches!(
            at.graph.node(id).op,
            Op::Gather(Gather::Mean | Gather::Max | Gather::Moments(_))
        )
    {
        ensure!(
            owned.start.is_multiple_of(COLUMN_BLOCK),
            "{}: {owned:?} cuts a block of columns",
            name()
        );
    }
    *given = owned.end;
    Ok(())
}

/// Whether rows of a step leave the sweep.
fn gives(at: &Sweeping<'_>, s: usize) -> bool {
    let step = &at.phase.sweep.steps[s];
    let recalled = step.work == Work::Recall;
    step.makes
        .is_none_or(|rows| at.phase.sweep.rows[rows].stored && !recalled)
}

/// Columns of what a step passes over.
fn width(at: &Sweeping<'_>, s: usize) -> u64 {
    let step = &at.phase.sweep.steps[s];
    match step.makes {
        Some(rows) => at.graph.tensor(at.phase.sweep.rows[rows].tensor).w(),
        None => step.reads[0].cols.output,
    }
}
