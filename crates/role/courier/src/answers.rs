//! The answers to the gateway.

use std::io;
use std::time::Duration;

use tokio::net::unix::OwnedWriteHalf;
use vere_handoff::delivery::Answer;
use vere_outbound::OutboundMetrics;
use vere_process::frames::Outbox;

/// How often the gateway hears that the courier is alive.
const BEAT: Duration = Duration::from_secs(2);
/// How long the gateway may leave answers unread.
const UNREAD_PATIENCE: Duration = Duration::from_secs(30);

/// The answers to the gateway.
#[derive(Debug)]
pub(crate) struct Answers {
    outbox: Outbox,
    metrics: OutboundMetrics,
}

impl Answers {
    /// Nothing to say yet.
    pub(crate) fn new(metrics: &OutboundMetrics) -> Self {
        Self {
            outbox: Outbox::default(),
            metrics: metrics.clone(),
        }
    }

    /// Writes answers as they come.
    ///
    /// # Errors
    /// When the connection breaks, or the gateway reads nothing.
    pub(crate) async fn write_to(&self, to: OwnedWriteHalf) -> io::Result<()> {
        self.outbox.write_to(to, UNREAD_PATIENCE).await
    }

    /// Says something, behind what was counted before.
    pub(crate) fn say(&self, answer: &Answer) {
        let counts = self.metrics.take();
        self.outbox.put(|to| {
            if !counts.is_empty() {
                Answer::Counts(counts).encode(to);
            }
            answer.encode(to);
        });
    }

    /// Says which connections reports about TLS will show.
    fn say_sessions(&self) {
        let (frames, beyond) = self.metrics.sessions.take_frames();
        if beyond > 0 {
            tracing::warn!(
                sessions = beyond,
                "too many kinds of TLS sessions for reports"
            );
        }
        for frame in frames {
            self.say(&Answer::Sessions(Box::new(frame)));
        }
    }

    /// Says for ever that the courier is alive.
    pub(crate) async fn beat(&self) {
        loop {
            self.say_sessions();
            self.say(&Answer::Beat);
            tokio::time::sleep(BEAT).await;
        }
    }
}
