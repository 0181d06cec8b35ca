//! How long one address may take, where somebody waits for the connection: a silent host leaves time for the next one.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

/// Part of the time left that an address may take while others are left.
const PARTS: u32 = 2;
/// The least time of an address, where so much is left: the greeting of Postfix's postscreen comes after 6 s (`postscreen_greet_wait`), and
/// its address would count as silent with less.
const LEAST: Duration = Duration::from_secs(7);

/// The time limit of a search for a host that takes messages; without a limit the limits of SMTP are enough (RFC 5321 section
/// 4.5.3.2).
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience(pub(super) Option<Instant>);

impl Patience {
    /// Waits for an address: for the half of the time left and at least for [`LEAST`], or for all of the time left where no other address is left.
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
        let patience = part(by.saturating_duration_since(now));
        timeout_at(now + patience, begun)
            .await
            .map_err(|_| patience)
    }
}

/// Returns the part of the time left that an address may take.
fn part(left: Duration) -> Duration {
    (left / PARTS).max(LEAST).min(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_time_for_a_late_greeting() {
        for (left, of_address) in [
            (20_000, 10_000),
            (15_000, 7_500),
            (10_000, 7_000),
            (3_000, 3_000),
        ] {
            let part = part(Duration::from_millis(left));
            assert_eq!(part, Duration::from_millis(of_address), "{left}");
        }
    }
}
