//! Goes through the messages of a queue in blocks and settles those that an operator has named, without an
//! attempt. Takes the same memory for ten messages as for a million, and
//! lets everybody else go on after each block.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use vere_queue::{
    Attempt, Disposition, Envelope, MessageSummary, Notify, RecipientResult, Standing,
};
use vere_spoolwire::{QueueId, RecordId, SpoolError};
use vere_units::{Timestamp, TraceId};

use crate::ending::Ending;
use crate::group::Group;
use crate::host::{Happened, Host};
use crate::reading;

/// Records in one block.
const BLOCK_RECORDS: u32 = 100;
/// Octets in one block, about.
const BLOCK_OCTETS: u32 = 1 << 20;
/// Messages looked at in one go.
const PAGE: usize = 500;
/// The pause after each message returned to its sender: no more than 100 reports leave in a second.
const REPORT_PAUSE: Duration = Duration::from_millis(10);

/// An action on a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// The message is counted.
    Count,
    /// The message is tried again now.
    Retry,
    /// The message is returned to its sender.
    Bounce,
    /// As when its time were over.
    Expire,
    /// The message is removed; nobody is told.
    Purge,
}

/// Which messages of a queue: all for which everything given holds.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Selection {
    /// The sender's address, in any case of letters, or its domain, with or without `@` in front; empty for
    /// the null reverse-path.
    pub sender: Option<String>,
    /// The address of a recipient, or its domain, in the same way.
    pub recipient: Option<String>,
    /// The least age in seconds.
    pub older_than: Option<u64>,
    /// The message's id.
    pub id: Option<TraceId>,
}

/// The result of an action.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Acted {
    /// Messages for which the action was done.
    pub messages: usize,
    /// Octets of their bodies.
    pub octets: u64,
    /// Messages left alone because they were being delivered.
    pub busy: usize,
    /// Why the action ended early.
    pub trouble: Option<String>,
}

/// Whether an address matches an operator's filter: an address, or a domain.
#[must_use]
pub fn is_meant(wanted: &str, address: &str) -> bool {
    match wanted.rsplit_once('@') {
        Some((local, _)) if !local.is_empty() => wanted.eq_ignore_ascii_case(address),
        None if wanted.is_empty() => address.is_empty(),
        _ => {
            let domain = wanted.trim_start_matches('@');
            let of = address.rsplit_once('@').map(|(_, domain)| domain);
            of.is_some_and(|of| of.eq_ignore_ascii_case(domain))
        }
    }
}

/// An operator's wish on the messages of one queue.
#[derive(Debug)]
pub struct Sweep<H: Host> {
    /// The group of the queue.
    pub group: Rc<Group<H>>,
    /// The queue.
    pub queue: QueueId,
    /// Which messages.
    pub selection: Selection,
    /// The action.
    pub action: Action,
    /// Whether senders are told of messages that are returned.
    pub report: bool,
}

impl<H: Host> Sweep<H> {
    /// Acts on every selected message that is in the queue now.
    ///
    /// # Errors
    /// When the spool does not answer. The count has the messages of the earlier blocks.
    pub async fn run(&self, acted: &mut Acted) -> Result<(), SpoolError> {
        let begun = self.group.host.now();
        if self.action == Action::Retry {
            self.group.queues.change(|queues| queues.resume(self.queue));
        }
        let newest = self.group.queues.look(|queues| queues.newest(self.queue));
        let Some(newest) = newest else { return Ok(()) };
        let mut after = None;
        loop {
            let page = self.page(after);
            let mut named = page.clone();
            named
                .retain(|message| message.record <= newest.record && self.is_named(message, begun));
            let busy = |message: &MessageSummary| message.standing == Standing::InFlight;
            if self.action != Action::Count {
                acted.busy += named.iter().filter(|one| busy(one)).count();
                named.retain(|message| !busy(message));
            }
            if self.needs_records() {
                // As the spool gives them.
                named.sort_unstable_by_key(|message| message.record);
                self.act_on_records(&named, acted).await?;
            } else {
                self.act_on_entries(&named, acted).await;
            }
            if page.len() < PAGE || page.iter().any(|message| message.record > newest.record) {
                break;
            }
            after = self.last_left(&page).or(after);
            self.group.queues.wake();
            self.group.host.pause(Duration::ZERO).await;
        }
        self.group.queues.wake();
        Ok(())
    }

    fn page(&self, after: Option<(RecordId, TraceId)>) -> Vec<MessageSummary> {
        self.group
            .queues
            .look(|queues| queues.list_behind(self.queue, after, PAGE).collect())
    }

    /// The last message of a page that is there still: the next page begins behind it. Ids say nothing of the order
    /// of messages that came in the same moment.
    fn last_left(&self, page: &[MessageSummary]) -> Option<(RecordId, TraceId)> {
        let last = self.group.queues.look(|queues| {
            let is_there = |message: &&MessageSummary| {
                let found = queues.message(self.queue, message.record, message.trace);
                found.is_some()
            };
            page.iter().rev().find(is_there)
        })?;
        Some((last.record, last.trace))
    }

    fn is_named(&self, message: &MessageSummary, begun: Timestamp) -> bool {
        let Selection { id, older_than, .. } = &self.selection;
        let age = begun.saturating_since(message.accepted).as_secs();
        id.is_none_or(|id| id == message.trace) && older_than.is_none_or(|seconds| age >= seconds)
    }

    /// Whether envelopes have to be read: for addresses, or for reports.
    fn needs_records(&self) -> bool {
        self.selection.sender.is_some()
            || self.selection.recipient.is_some()
            || matches!(self.action, Action::Bounce | Action::Expire)
            || self.tells_removal()
    }

    /// Whether removed messages are told to other systems.
    fn tells_removal(&self) -> bool {
        self.action == Action::Purge && self.group.event_lines.is_on()
    }

    async fn act_on_entries(&self, page: &[MessageSummary], acted: &mut Acted) {
        let mut ends = Vec::new();
        for message in page {
            self.act_on_entry(message, None, &mut ends, acted);
        }
        self.group.end_records(&ends).await;
    }

    /// Acts on a message. The envelope is needed where the message's end is told to other systems.
    fn act_on_entry(
        &self,
        message: &MessageSummary,
        envelope: Option<&Envelope>,
        ends: &mut Vec<Ending>,
        acted: &mut Acted,
    ) {
        let MessageSummary { record, trace, .. } = *message;
        let queues = &self.group.queues;
        let done = match self.action {
            Action::Retry => queues.change(|queues| queues.retry(self.queue, record, trace)),
            Action::Purge => {
                let gone = self.discard(message);
                if gone {
                    let lines = |envelope| self.group.removed_lines(self.queue, record, envelope);
                    ends.push(Ending {
                        queue: self.queue,
                        record,
                        size: message.size,
                        lines: envelope.map(lines).unwrap_or_default(),
                    });
                }
                gone
            }
            Action::Count | Action::Bounce | Action::Expire => true,
        };
        if done {
            acted.messages += 1;
            acted.octets += u64::from(message.size);
        }
    }

    /// Removes a message from its queue. False: the message is gone, or in delivery.
    fn discard(&self, message: &MessageSummary) -> bool {
        let MessageSummary { record, trace, .. } = *message;
        let gone = self
            .group
            .queues
            .change(|queues| queues.discard(self.queue, record, trace));
        if gone {
            self.group.host.tell(&Happened::Purged(trace));
        }
        gone
    }

    async fn act_on_records(
        &self,
        mut page: &[MessageSummary],
        acted: &mut Acted,
    ) -> Result<(), SpoolError> {
        while let Some(first) = page.first() {
            let left = u32::try_from(page.len()).unwrap_or(u32::MAX);
            let block = self
                .group
                .host
                .fetch(
                    self.queue,
                    first.record,
                    left.min(BLOCK_RECORDS),
                    BLOCK_OCTETS,
                )
                .await?;
            let next = if block.end {
                RecordId(u64::MAX)
            } else {
                block.next
            };
            let mut ends = Vec::new();
            for (record, envelope, body) in reading::readable(block.records) {
                let named = page.iter().find(|message| message.record == record);
                let Some(message) = named.filter(|_| self.is_addressed(&envelope)) else {
                    continue;
                };
                if matches!(self.action, Action::Bounce | Action::Expire) {
                    self.give_up(record, envelope, body, acted).await;
                } else {
                    self.act_on_entry(message, Some(&envelope), &mut ends, acted);
                }
            }
            self.group.end_records(&ends).await;
            page = &page[page.partition_point(|message| message.record < next)..];
        }
        Ok(())
    }

    fn is_addressed(&self, envelope: &Envelope) -> bool {
        let Selection {
            sender, recipient, ..
        } = &self.selection;
        let reverse_path = envelope.mail.reverse_path.as_deref().unwrap_or_default();
        let is = |wanted: &String, address: &str| is_meant(wanted, address);
        sender
            .as_ref()
            .is_none_or(|wanted| is(wanted, reverse_path))
            && recipient.as_ref().is_none_or(|wanted| {
                let mut recipients = envelope.mail.recipients.iter();
                recipients.any(|one| is(wanted, &one.address))
            })
    }

    /// Returns a message to its sender, or ends the message without a report.
    async fn give_up(&self, record: RecordId, envelope: Envelope, body: Bytes, acted: &mut Acted) {
        let claimed = self
            .group
            .queues
            .change(|queues| queues.claim(self.queue, record, envelope, body));
        let Some(mut job) = claimed else {
            acted.busy += 1;
            return;
        };
        acted.messages += 1;
        acted.octets += u64::from(job.envelope.head.size);
        if !self.report {
            let mut silent = Envelope::clone(&job.envelope);
            for recipient in &mut silent.mail.recipients {
                recipient.notify = Notify::NEVER;
            }
            job.envelope = Rc::new(silent);
        }
        let (status, reply) = match self.action {
            Action::Expire => ("5.4.7", "delivery time expired by order of an operator"),
            _ => ("5.3.0", "returned by order of an operator"),
        };
        let result = RecipientResult {
            disposition: Disposition::Failed,
            status: status.to_owned(),
            reply: reply.to_owned(),
            from_remote: false,
        };
        let attempt = Attempt {
            remote: self.group.host.hostname(),
            reports_taken_over: false,
            results: vec![result; job.envelope.mail.recipients.len()],
        };
        if self.group.settle(self.queue, &job, &attempt) > 0 {
            self.group.host.pause(REPORT_PAUSE).await;
            self.group.room_for_reports().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_meant;

    #[test]
    fn a_filter_is_an_address_or_a_domain() {
        for wanted in ["ann@a.example", "ANN@A.example", "@a.example", "A.EXAMPLE"] {
            assert!(is_meant(wanted, "ann@A.example"), "{wanted}");
        }
        for wanted in ["bob@a.example", "@example", "b.example", "ann", ""] {
            assert!(!is_meant(wanted, "ann@a.example"), "{wanted}");
        }
        assert!(is_meant("", ""));
        assert!(!is_meant("@a.example", ""));
    }
}
