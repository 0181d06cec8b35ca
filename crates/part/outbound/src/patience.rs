//! How long one address may take, where somebody waits for the connection: a silent host leaves time for the next one.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

/// Part of the time left that an address may take while others are left.
const PARTS: u32 = 2;

/// The time limit of a search for a host that takes messages; without a limit the limits of SMTP are enough (RFC 5321 section
/// 4.5.3.2).
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience(pub(super) Option<Instant>);

impl Patience {
    /// Waits for an address: for the half of the time left, or for all of it where no other address is left.
    ///
    /// # Errors
    /// The time that a silent address has had.
    pub(super) async fn wait<F: Future>(
        self,
        is_last: bool,
        begun: F,
    ) -> Result<F::Output, Duration> {
        let Some(by) = self.0.filter(|_| !is_last) else {
            return Ok(begun.await);
        };
        let now = Instant::now();
        let patience = by.saturating_duration_since(now) / PARTS;
        timeout_at(now + patience, begun)
            .await
            .map_err(|_| patience)
    }
}
