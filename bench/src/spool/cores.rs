//! Client and servers on one core.
//!
//! Left alone, the scheduler puts both ends of a connection on one core or on two as it likes and as
//! others let it, and throughput halves or doubles with it: a comparison needs one or the other. On
//! one core it is the inverse of the CPU time of both ends, which hardly depends on what else the
//! machine does.

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// This thread.
const SELF: Pid = Pid::from_raw(0);

/// This thread and all it starts are on one core, until it is dropped.
#[derive(Debug)]
pub(super) struct OneCore {
    before: CpuSet,
}

impl OneCore {
    /// Goes to the last core that this thread may use; `None` when it may not choose.
    pub(super) fn enter() -> Option<Self> {
        let before = sched_getaffinity(SELF).ok()?;
        let last = (0..CpuSet::count())
            .rev()
            .find(|core| before.is_set(*core).unwrap_or(false))?;
        let mut one = CpuSet::new();
        one.set(last).ok()?;
        sched_setaffinity(SELF, &one).ok()?;
        Some(Self { before })
    }
}

impl Drop for OneCore {
    fn drop(&mut self) {
        // What was allowed before still is.
        let _ = sched_setaffinity(SELF, &self.before);
    }
}
