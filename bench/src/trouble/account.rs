//! What became of judged mail: every acknowledged message is looked for.

use std::thread::sleep;
use std::time::{Duration, Instant};

use super::filter::Manner;
use super::honest;
use super::kinds::RECIPIENT;
use super::system::{DOMAIN, HONEST, System, user};
use crate::process::guard;

/// How long the filter may take to be asked again: the filter is left alone for 10 s, and a message has to come.
pub(super) const BACK_MAX: Duration = Duration::from_secs(12);

/// How long mail may be on the way, and how long the filter is waited for.
const PATIENCE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(250);

/// What became of judged mail.
#[derive(Debug)]
pub(super) struct Account {
    /// Messages of the crowd and of honest clients with 250.
    pub(super) acknowledged: u64,
    /// Messages in mailboxes and in the quarantine.
    pub(super) found: u64,
    /// Messages in the quarantine.
    pub(super) quarantined: u64,
    /// Until the filter was asked again; `None` without filter.
    pub(super) back: Option<Duration>,
}

/// Looks for acknowledged mail until all is found: mail of honest clients, and so many messages of a crowd after its end.
pub(super) fn account(system: &System, crowd: u64, back: Option<Duration>) -> Account {
    let acknowledged = system.acknowledged.get() + crowd;
    let until = Instant::now() + PATIENCE;
    loop {
        let quarantined = system.quarantined();
        let inbox = |account: &str| system.stored(account).unwrap_or_default();
        let found = inbox(&format!("{HONEST}@{DOMAIN}")) + inbox(&user(RECIPIENT)) + quarantined;
        if found >= acknowledged || Instant::now() > until || guard::is_stopped() {
            return Account {
                acknowledged,
                found,
                quarantined,
                back,
            };
        }
        sleep(POLL);
    }
}

/// Lets the filter answer well, and measures the time until a message is shown to it again.
pub(super) fn await_filter(system: &System) -> Option<Duration> {
    let filter = system.filter.as_ref()?;
    filter.behave(Manner::Good);
    let (began, asked) = (Instant::now(), filter.asked());
    while filter.asked() == asked && began.elapsed() < PATIENCE && !guard::is_stopped() {
        // While the filter is left alone, the settings decide about messages.
        let _ = honest::send(system, "250");
        sleep(POLL);
    }
    Some(began.elapsed())
}
