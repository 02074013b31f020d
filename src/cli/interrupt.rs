//! SIGINT and SIGTERM end a run at the next turn, so that nothing is left behind; a second one at once.

use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{flag, low_level};
use stripmill::{Error, Result};

/// The signal that came, 0 before.
static CAME: OnceLock<Arc<AtomicUsize>> = OnceLock::new();

/// Catches the signals from here on.
pub(super) fn catch() -> Result<()> {
    let came = CAME.get_or_init(Arc::default);
    let again = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        let caught = flag::register_conditional_default(signal, again.clone())
            .and_then(|_| flag::register(signal, again.clone()))
            .and_then(|_| flag::register_usize(signal, came.clone(), signal as usize));
        caught.map_err(|e| Error::Usage(format!("signals cannot be caught: {e}")))?;
    }
    Ok(())
}

/// Whether to go on.
pub(super) fn asked() -> ControlFlow<()> {
    if signal() == 0 {
        ControlFlow::Continue(())
    } else {
        ControlFlow::Break(())
    }
}

/// Ends the process as the signal would have.
pub(super) fn end() -> ExitCode {
    // it returns only where the signal's own way to end the process fails
    let _ = low_level::emulate_default_handler(signal() as i32);
    ExitCode::FAILURE
}

fn signal() -> usize {
    CAME.get().map_or(0, |came| came.load(Ordering::Relaxed))
}
