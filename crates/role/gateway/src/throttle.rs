//! Decides whether new mail is accepted, by the limits of [`pressure`](vere_meters::pressure).

use std::cell::Cell;

use super::group::Group;
use super::process::Process;
use vere_groups::throttle::{shares, throttled};
use vere_meters::pressure::{Bound, Closed, QUARANTINE_SHARE_MAX, share};
use vere_queue::Destination;
use vere_smtp::command::RcptTo;
use vere_smtp::refusal::Refusal;

/// Returns why clients, authenticated or not, can begin no message now; `None` if messages are accepted.
pub(super) fn closed(group: &Group, authenticated: bool) -> Option<Closed> {
    if !group.is_recovered() {
        return Some(Closed::Recovering);
    }
    if !group.host.link.state().borrow().is_up() {
        return Some(Closed::Spool);
    }
    if let Some(bound) = throttled(group) {
        return Some(Closed::Pressure(bound));
    }
    if !authenticated && group.host.process.is_short() {
        return Some(Closed::Pressure(Bound::Bodies));
    }
    has_too_many_lines(group).then_some(Closed::Lines)
}

/// Whether the waiting event lines exceed their limit; then no mail is accepted.
fn has_too_many_lines(group: &Group) -> bool {
    let settings = group.host.process.settings();
    let max = settings.records.as_ref().map(|records| records.waiting_max);
    max.is_some_and(|max| group.event_lines.waiting() > max.as_u64())
}

/// Whether the quarantine has room for a message to these recipients. Without a bound of its own a flood of unwanted mail would fill the queues, and all mail
/// would be refused until the quarantine ages out.
///
/// # Errors
/// The refusal for the client, which is temporary.
pub(super) fn quarantine_room<'a>(
    group: &'a Group,
    recipients: &[RcptTo],
) -> Result<Coming<'a>, Refusal> {
    let process = &group.host.process;
    let settings = process.settings();
    let coming = Coming::one(&process.pressure.quarantine_coming);
    // Without this message itself.
    let before = coming.0.get().saturating_sub(1);
    let shares = shares(group, &settings.limits, before);
    let is_full = shares.iter().any(|(_, share)| has_no_room(*share));
    let before = process.pressure.quarantine_is_full.replace(is_full);
    match (before, is_full) {
        (false, true) => {
            tracing::warn!("quarantine full: further messages for the quarantine get 452");
        }
        (true, false) => tracing::info!("quarantine has room again"),
        _ => {}
    }
    if is_full {
        return Err(Refusal::StorageFull);
    }
    let messages_max = settings.limits.messages_per_destination_max;
    let octets_max = settings.limits.octets_per_destination_max.as_u64();
    let is_full = |destination: Destination| {
        let (messages, octets) = group.queues.look(|queues| queues.fill(&destination));
        has_no_room(share(messages as u64, messages_max)) || has_no_room(share(octets, octets_max))
    };
    let find = |rcpt: &RcptTo| process.router.find(&settings, &rcpt.forward_path).ok();
    let found = recipients.iter().filter_map(find);
    let mut destinations = found.flat_map(|found| found.destinations());
    match destinations.any(is_full) {
        true => Err(Refusal::DestinationFull),
        false => Ok(coming),
    }
}

/// A message on the way into the quarantine, counted until it is stored or refused: many come at once.
#[derive(Debug)]
pub(super) struct Coming<'a>(&'a Cell<u64>);

impl<'a> Coming<'a> {
    fn one(count: &'a Cell<u64>) -> Self {
        count.set(count.get().saturating_add(1));
        Self(count)
    }
}

impl Drop for Coming<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}

const fn has_no_room(share: u64) -> bool {
    share >= QUARANTINE_SHARE_MAX
}

impl Process {
    /// Whether memory for messages of unauthenticated clients remains short after stalled messages were refused. Then
    /// these clients begin no message.
    pub(super) fn is_short(&self) -> bool {
        let settings = self.settings();
        let limits = &settings.limits;
        let before = self.pressure.short.get();
        let (from, until) = (limits.throttle_from, limits.throttle_until);
        let now = self.memory.is_short(from, until, before);
        self.pressure.short.set(now);
        match (before, now) {
            (false, true) => {
                let heaviest = self.memory.heaviest();
                let client =
                    heaviest.map_or_else(String::new, |heaviest| heaviest.client.to_string());
                let octets = heaviest.map_or(0, |heaviest| heaviest.octets);
                let bound = Bound::Bodies;
                tracing::warn!(%bound, %client, octets, "intake throttled: new messages of clients that have not authenticated get 452");
            }
            (true, false) => tracing::info!("intake throttling ended"),
            _ => {}
        }
        self.show_throttled();
        now
    }

    /// Whether memory for messages that are being received is short, or was a moment ago.
    pub(super) fn is_memory_short(&self) -> bool {
        self.pressure.short.get() || self.memory.was_short()
    }

    /// Shows whether new mail is throttled.
    pub(super) fn show_throttled(&self) {
        let throttled = self.pressure.bound.get().is_some() || self.pressure.short.get();
        self.metrics.throttled(throttled);
    }
}
