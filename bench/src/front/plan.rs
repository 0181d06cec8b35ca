//! How much is measured.

use std::path::PathBuf;
use std::time::Duration;

use super::systems::System;

/// A row of the benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// CPU time and context switches of bounced and unfinished sessions.
    Bounces,
    /// CPU time of bounced sessions behind STARTTLS, with full handshakes and with sessions of TLS taken up again.
    Encrypted,
    /// CPU time and time of a hand-over alone.
    Handover,
    /// Good mail at a fixed rate while bounces rise.
    Storm,
    /// Accepted mail for one recipient and for several.
    Accepted,
    /// Many silent connections, and the greeting of the next client.
    Open,
    /// Bounces, unfinished sessions and mail for several recipients over a long way.
    Combined,
    /// Mail that is judged: all checks, and rspamd behind, beside Postfix with rspamd.
    Judged,
}

impl Part {
    const ALL: [Self; 8] = [
        Self::Bounces,
        Self::Encrypted,
        Self::Handover,
        Self::Storm,
        Self::Accepted,
        Self::Open,
        Self::Combined,
        Self::Judged,
    ];
}

/// Connections of the part [`Part::Open`] whose memory has a bar.
pub(super) const CONNECTIONS: usize = 15_000;
const CONNECTIONS_QUICK: usize = 2_000;

/// How much is measured.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) parts: Vec<Part>,
    pub(super) systems: Vec<System>,
    pub(super) rounds: usize,
    /// Sessions at once, where a system is saturated.
    pub(super) sessions: usize,
    /// Time of sending in a round.
    pub(super) time: Duration,
    /// Time of sending for each ratio of bounces, and for the combined workload.
    pub(super) storm: Duration,
    /// Shares of bounces in all sessions.
    pub(super) ratios: &'static [f64],
    pub(super) connections: usize,
    /// Clients that ask for a greeting beside the silent connections.
    pub(super) probes: usize,
    /// Longest time until the silent connections are there.
    pub(super) gather_max: Duration,
    /// How long the silent connections hold before the clients that ask for a greeting. With enough time postscreen
    /// hands connections over.
    pub(super) hold: Duration,
    /// Longest wait of a client for its greeting.
    pub(super) greeting_max: Duration,
    /// Sessions at once over a long way.
    pub(super) distant: usize,
    /// Messages that are judged in a round.
    pub(super) judged: usize,
    /// Folder of labelled messages.
    pub(super) labelled: Option<PathBuf>,
}

impl Plan {
    /// The plan of a run: all parts and systems, unless some are chosen.
    pub(super) fn new(quick: bool, parts: &[Part], systems: Vec<System>) -> Self {
        let parts = match parts {
            [] => Part::ALL.to_vec(),
            some => some.to_vec(),
        };
        let seconds = Duration::from_secs_f64;
        match quick {
            true => Self {
                parts,
                systems,
                rounds: 3,
                sessions: 50,
                time: seconds(0.3),
                storm: seconds(1.5),
                ratios: &[0.0, 0.75, 0.95],
                connections: CONNECTIONS_QUICK,
                probes: 20,
                gather_max: seconds(5.0),
                hold: seconds(1.0),
                greeting_max: seconds(1.0),
                distant: 200,
                judged: 300,
                labelled: None,
            },
            false => Self {
                parts,
                systems,
                rounds: 3,
                sessions: 50,
                time: seconds(3.0),
                storm: seconds(20.0),
                ratios: &[0.0, 0.25, 0.5, 0.75, 0.9, 0.95],
                connections: CONNECTIONS,
                probes: 100,
                gather_max: seconds(30.0),
                hold: seconds(10.0),
                greeting_max: seconds(10.0),
                distant: 500,
                judged: 2_000,
                labelled: None,
            },
        }
    }

    /// Sends for this time in each measurement.
    pub(super) fn for_seconds(mut self, seconds: f64) -> Self {
        self.time = Duration::from_secs_f64(seconds.clamp(0.05, 3_600.0));
        self.storm = self.time;
        self
    }
}
