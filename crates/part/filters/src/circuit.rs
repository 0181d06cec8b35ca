//! Leaves a filter alone that failed several times in a row, so that messages do not wait for nothing.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Failures in a row from which the filter is left alone.
pub(crate) const FAILURES_MAX: u32 = 5;
/// How long the filter is left alone; then one message tries again.
pub(crate) const REST: Duration = Duration::from_secs(10);

/// The recent failures of a filter.
#[derive(Debug, Default)]
pub(crate) struct Circuit(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    failures: u32,
    /// Set from the failure on by which the filter is left alone.
    rests_until: Option<Instant>,
    is_probed: bool,
}

/// A question under way.
#[derive(Debug)]
pub(crate) struct Attempt<'a> {
    circuit: &'a Circuit,
    is_probe: bool,
}

impl Circuit {
    /// Begins a question; `None` while the filter is left alone, or another question finds out whether the filter is back.
    pub(crate) fn begin(&self) -> Option<Attempt<'_>> {
        let mut state = self.state();
        let is_probe = match state.rests_until {
            None => false,
            Some(until) if state.is_probed || Instant::now() < until => return None,
            Some(_) => true,
        };
        state.is_probed |= is_probe;
        Some(Attempt {
            circuit: self,
            is_probe,
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Attempt<'_> {
    /// Notes the end of the question.
    pub(crate) fn ends(self, has_failed: bool) {
        let mut state = self.circuit.state();
        if has_failed {
            state.failures = state.failures.saturating_add(1);
            if state.failures >= FAILURES_MAX {
                state.rests_until = Some(Instant::now() + REST);
            }
        } else {
            state.failures = 0;
            state.rests_until = None;
        }
    }
}

impl Drop for Attempt<'_> {
    /// A question may be given up without an end, such as when the process stops.
    fn drop(&mut self) {
        if self.is_probe {
            self.circuit.state().is_probed = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_question_at_a_time_finds_out_whether_the_filter_is_back() {
        let circuit = Circuit::default();
        let fails = || circuit.begin().expect("begins").ends(true);
        for _ in 1..FAILURES_MAX {
            fails();
        }
        circuit.begin().expect("begins").ends(false);
        for _ in 0..FAILURES_MAX {
            fails();
        }
        assert!(circuit.begin().is_none());
        tokio::time::advance(REST).await;
        let probe = circuit.begin().expect("a probe");
        assert!(circuit.begin().is_none());
        drop(probe);
        circuit.begin().expect("a probe again").ends(true);
        assert!(circuit.begin().is_none());
        tokio::time::advance(REST).await;
        circuit.begin().expect("a probe").ends(false);
        let both = (circuit.begin(), circuit.begin());
        assert!(both.0.is_some() && both.1.is_some());
    }
}
