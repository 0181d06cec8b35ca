//! The meaning of an attempt's result for each recipient: done, try later, or report.

use vere_units::Timestamp;

use crate::delay;
use crate::envelope::{Envelope, HoldCause, Mail, Recipient, ScheduleHead};
use crate::policy::Policy;
use crate::report::{LOCAL, Report, ReportKind, ReportedRecipient};

/// Longest reply text kept in a record and in a report, in octets.
pub const REPLY_KEPT_MAX: usize = 500;

/// The answer of the destination for a recipient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disposition {
    /// It took responsibility.
    Delivered,
    /// Permanent failure: no further attempt.
    Failed,
    /// Not now.
    Deferred,
}

/// The result for a recipient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecipientResult {
    /// What it means.
    pub disposition: Disposition,
    /// Enhanced status code (RFC 3463), such as `5.1.1`.
    pub status: String,
    /// The reply of the destination, or the local error, in a single line.
    pub reply: String,
    /// Whether `reply` is an SMTP reply of the destination, and not a local observation.
    pub from_remote: bool,
}

/// An attempt to deliver a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The host that answered, or `local`.
    pub remote: String,
    /// Whether the destination took over the duty to report (its EHLO named DSN).
    pub reports_taken_over: bool,
    /// The result of each recipient, in the order of the envelope.
    pub results: Vec<RecipientResult>,
}

/// The consequences for the record and its sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settlement {
    /// The envelope to store with REPLACE; `None` to DELETE the record.
    pub remaining: Option<Envelope>,
    /// Reports due to the sender, to be stored in the same BATCH.
    pub reports: Vec<Report>,
    /// Recipients that expired although the last answer was "later".
    pub expired: Vec<String>,
}

impl Settlement {
    /// Defers a delay report to the next attempt, if the settlement has no other report: for lack of space,
    /// which the delivery of mail relieves. False: the other reports cannot wait.
    pub fn put_delay_off(&mut self) -> bool {
        let only = self
            .reports
            .iter()
            .all(|one| one.kind == ReportKind::Delayed);
        match &mut self.remaining {
            Some(rest) if only && !self.reports.is_empty() => {
                rest.head.delay_noticed = false;
                self.reports.clear();
                true
            }
            _ => false,
        }
    }
}

/// Decides from an attempt's results. Recipients without a result count as deferred.
#[must_use]
pub fn settle(
    envelope: &Envelope,
    attempt: &Attempt,
    policy: &Policy,
    now: Timestamp,
) -> Settlement {
    let over = now >= envelope.head.end(policy.expire);
    settle_aged(envelope, attempt, policy, now, over)
}

/// As `settle`, for a message whose expiry the caller has decided.
pub(crate) fn settle_aged(
    envelope: &Envelope,
    attempt: &Attempt,
    policy: &Policy,
    now: Timestamp,
    over: bool,
) -> Settlement {
    let mut remaining = Vec::new();
    let mut success = Vec::new();
    let mut failure = Vec::new();
    let mut expired = Vec::new();
    let mut last_reply = None;
    for (index, recipient) in envelope.mail.recipients.iter().enumerate() {
        let result = attempt.results.get(index);
        match result.map_or(Disposition::Deferred, |result| result.disposition) {
            Disposition::Delivered => {
                if recipient.notify.success() && !attempt.reports_taken_over {
                    success.extend(result.map(|result| reported(recipient, result, attempt)));
                }
            }
            Disposition::Failed => {
                if recipient.notify.failure() {
                    failure.extend(result.map(|result| reported(recipient, result, attempt)));
                }
            }
            Disposition::Deferred if over => {
                expired.push(recipient.address.clone());
                if recipient.notify.failure() {
                    failure.push(expired_report(recipient, result, envelope, attempt));
                }
            }
            Disposition::Deferred => {
                last_reply = result.map(|result| bounded(&result.reply));
                remaining.push(recipient.clone());
            }
        }
    }
    let kind = if attempt.remote == LOCAL {
        ReportKind::Delivered
    } else {
        ReportKind::Relayed
    };
    let mut reports = Vec::new();
    push_report(&mut reports, envelope, kind, success);
    push_report(&mut reports, envelope, ReportKind::Failed, failure);
    let remaining = deferred(
        envelope,
        remaining,
        last_reply,
        attempt,
        policy,
        now,
        &mut reports,
    );
    Settlement {
        remaining,
        reports,
        expired,
    }
}

fn deferred(
    envelope: &Envelope,
    recipients: Vec<Recipient>,
    last_reply: Option<String>,
    attempt: &Attempt,
    policy: &Policy,
    now: Timestamp,
    reports: &mut Vec<Report>,
) -> Option<Envelope> {
    if recipients.is_empty() {
        return None;
    }
    // An attempt by an operator's order, before its time, leaves the times of other messages unchanged.
    let latest = now + policy.longest_retry();
    let by_hand = envelope
        .head
        .not_before
        .filter(|due| *due > now && *due <= latest);
    let (attempts, due) = match by_hand {
        Some(due) => (envelope.head.attempts, due),
        None => (
            envelope.head.attempts.saturating_add(1),
            now + policy.retry_after(envelope.head.attempts),
        ),
    };
    let mut rest = Envelope {
        head: ScheduleHead {
            attempts,
            // An ended hold has no further meaning.
            held_until: None,
            held_since: None,
            held_for: HoldCause::Operator,
            not_before: Some(due),
            last_reply: last_reply.or_else(|| envelope.head.last_reply.clone()),
            ..envelope.head.clone()
        },
        mail: Mail {
            recipients,
            ..envelope.mail.clone()
        },
    };
    if delay::is_due(envelope, policy, now) {
        let reply = rest.head.last_reply.clone().unwrap_or_default();
        reports.extend(delay::tell(&mut rest, policy, &attempt.remote, &reply));
    }
    Some(rest)
}

/// A null reverse-path never causes a report (RFC 5321 section 4.5.5).
fn push_report(
    reports: &mut Vec<Report>,
    envelope: &Envelope,
    kind: ReportKind,
    recipients: Vec<ReportedRecipient>,
) {
    if let (Some(to), false) = (&envelope.mail.reverse_path, recipients.is_empty()) {
        reports.push(Report {
            kind,
            to: to.clone(),
            recipients,
            retry_until: None,
        });
    }
}

fn reported(
    recipient: &Recipient,
    result: &RecipientResult,
    attempt: &Attempt,
) -> ReportedRecipient {
    ReportedRecipient {
        address: recipient.address.clone(),
        orcpt: recipient.orcpt.clone(),
        status: result.status.clone(),
        diagnostic: bounded(&result.reply),
        from_remote: result.from_remote,
        remote: attempt.remote.clone(),
    }
}

fn expired_report(
    recipient: &Recipient,
    result: Option<&RecipientResult>,
    envelope: &Envelope,
    attempt: &Attempt,
) -> ReportedRecipient {
    let said = result
        .map(|result| bounded(&result.reply))
        .or_else(|| envelope.head.last_reply.clone())
        .unwrap_or_else(|| "no answer".to_owned());
    ReportedRecipient {
        address: recipient.address.clone(),
        orcpt: recipient.orcpt.clone(),
        status: "5.4.7".to_owned(),
        diagnostic: said,
        from_remote: result.is_some_and(|result| result.from_remote),
        remote: attempt.remote.clone(),
    }
}

/// Cuts a reply to [`REPLY_KEPT_MAX`] octets and replaces control characters.
pub(crate) fn bounded(reply: &str) -> String {
    let mut kept: String = reply
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(REPLY_KEPT_MAX)
        .collect();
    while kept.len() > REPLY_KEPT_MAX {
        kept.pop();
    }
    kept
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::envelope::Notify;
    use crate::envelope::tests::sample;

    fn result(disposition: Disposition) -> RecipientResult {
        let status = match disposition {
            Disposition::Delivered => "2.1.5",
            Disposition::Failed => "5.1.1",
            Disposition::Deferred => "4.2.1",
        };
        RecipientResult {
            disposition,
            status: status.to_owned(),
            reply: format!("reply {status}"),
            from_remote: true,
        }
    }

    fn attempt(results: &[Disposition]) -> Attempt {
        Attempt {
            remote: "mx.example.net".to_owned(),
            reports_taken_over: false,
            results: results.iter().copied().map(result).collect(),
        }
    }

    fn envelope() -> Envelope {
        let recipient = |address: &str, notify| Recipient {
            address: address.to_owned(),
            notify,
            orcpt: None,
        };
        Envelope {
            head: ScheduleHead {
                attempts: 0,
                delay_noticed: false,
                accepted: Timestamp::from_millis(0),
                ..sample().head
            },
            mail: Mail {
                recipients: vec![
                    recipient("a@example.net", Notify::default()),
                    recipient("b@example.net", Notify::on(true, false, false)),
                ],
                ..sample().mail
            },
        }
    }

    const NOW: Timestamp = Timestamp::from_millis(60_000);

    #[test]
    fn all_delivered_deletes_the_record_and_reports_only_wanted_success() {
        let settled = settle(
            &envelope(),
            &attempt(&[Disposition::Delivered; 2]),
            &Policy::default(),
            NOW,
        );
        assert_eq!(settled.remaining, None);
        assert_eq!(settled.reports.len(), 1);
        assert_eq!(settled.reports[0].kind, ReportKind::Relayed);
        assert_eq!(settled.reports[0].recipients[0].address, "b@example.net");
    }

    #[test]
    fn a_destination_that_speaks_dsn_reports_success_itself() {
        let attempt = Attempt {
            reports_taken_over: true,
            ..attempt(&[Disposition::Delivered; 2])
        };
        assert_eq!(
            settle(&envelope(), &attempt, &Policy::default(), NOW).reports,
            []
        );
    }

    #[test]
    fn an_attempt_before_its_time_leaves_the_time_of_the_next_as_it_is() {
        let mut envelope = envelope();
        envelope.head.attempts = 3;
        let due = NOW + Duration::from_secs(60);
        envelope.head.not_before = Some(due);
        let attempt = attempt(&[Disposition::Deferred; 2]);
        let policy = Policy::default();
        let early = settle(&envelope, &attempt, &policy, NOW);
        let rest = early.remaining.expect("it stays");
        assert_eq!((rest.head.attempts, rest.head.not_before), (3, Some(due)));
        let in_time = settle(&rest, &attempt, &policy, due);
        let rest = in_time.remaining.expect("it stays");
        let next = due + policy.retry_after(3);
        assert_eq!((rest.head.attempts, rest.head.not_before), (4, Some(next)));
    }

    #[test]
    fn a_failure_is_reported_at_once_and_the_deferred_recipient_stays() {
        let mut envelope = envelope();
        envelope.mail.recipients.swap(0, 1);
        let attempt = attempt(&[Disposition::Deferred, Disposition::Failed]);
        let settled = settle(&envelope, &attempt, &Policy::default(), NOW);
        let rest = settled.remaining.expect("one recipient stays");
        assert_eq!(rest.mail.recipients.len(), 1);
        assert_eq!(rest.head.attempts, 1);
        assert_eq!(
            rest.head.not_before,
            Some(NOW + Policy::default().retry_after(0))
        );
        assert_eq!(rest.head.last_reply.as_deref(), Some("reply 4.2.1"));
        assert_eq!(settled.reports[0].kind, ReportKind::Failed);
        assert_eq!(settled.reports[0].recipients[0].status, "5.1.1");
    }

    #[test]
    fn notify_without_failure_keeps_a_failure_silent() {
        let envelope = Envelope {
            mail: Mail {
                recipients: envelope().mail.recipients.split_off(1),
                ..envelope().mail
            },
            ..envelope()
        };
        let settled = settle(
            &envelope,
            &attempt(&[Disposition::Failed]),
            &Policy::default(),
            NOW,
        );
        assert_eq!((settled.remaining, settled.reports), (None, vec![]));
    }

    #[test]
    fn the_null_reverse_path_never_causes_a_report() {
        let envelope = Envelope {
            mail: Mail {
                reverse_path: None,
                ..envelope().mail
            },
            ..envelope()
        };
        let settled = settle(
            &envelope,
            &attempt(&[Disposition::Failed; 2]),
            &Policy::default(),
            NOW,
        );
        assert_eq!((settled.remaining, settled.reports), (None, vec![]));
    }

    #[test]
    fn what_is_still_deferred_when_the_time_is_over_fails_with_5_4_7() {
        let late = Timestamp::from_millis(0) + Policy::default().expire;
        let settled = settle(
            &envelope(),
            &attempt(&[Disposition::Deferred; 2]),
            &Policy::default(),
            late,
        );
        assert_eq!(settled.remaining, None);
        assert_eq!(settled.expired.len(), 2);
        assert_eq!(settled.reports.len(), 1);
        assert_eq!(settled.reports[0].recipients[0].status, "5.4.7");
        assert_eq!(settled.reports[0].recipients[0].diagnostic, "reply 4.2.1");
    }

    /// If messages waited for the reports, no message would leave a full spool to free space.
    #[test]
    fn a_report_of_a_delay_alone_can_wait_for_the_next_attempt() {
        let policy = Policy::default();
        let late = Timestamp::from_millis(0) + policy.delay_notice.expect("default");
        let both = attempt(&[Disposition::Deferred, Disposition::Deferred]);
        let mut settled = settle(&envelope(), &both, &policy, late);
        let before = settled.remaining.clone().expect("it is tried again");
        assert!(settled.put_delay_off());
        let rest = settled.remaining.clone().expect("it is tried again");
        assert_eq!(rest.head.not_before, before.head.not_before);
        assert!(settled.reports.is_empty() && !settled.put_delay_off());
        let again = settle(&rest, &both, &policy, rest.head.not_before.expect("a time"));
        assert_eq!(again.reports[0].kind, ReportKind::Delayed);

        let one = attempt(&[Disposition::Failed, Disposition::Deferred]);
        let mut settled = settle(&envelope(), &one, &policy, late);
        let before = settled.clone();
        assert!(!settled.put_delay_off(), "a failure is told");
        assert_eq!(settled, before);
    }

    #[test]
    fn one_delay_notice_is_sent_and_never_a_second() {
        let late = Timestamp::from_millis(0) + Policy::default().delay_notice.expect("default");
        let attempt = attempt(&[Disposition::Deferred; 2]);
        let settled = settle(&envelope(), &attempt, &Policy::default(), late);
        assert_eq!(settled.reports[0].kind, ReportKind::Delayed);
        let until = Timestamp::from_millis(0) + Policy::default().expire;
        assert_eq!(settled.reports[0].retry_until, Some(until));
        assert_eq!(
            settled.reports[0].recipients.len(),
            1,
            "b wants success only"
        );
        let rest = settled.remaining.expect("both stay");
        assert_eq!(
            settle(&rest, &attempt, &Policy::default(), late).reports,
            []
        );
    }

    /// The own end is earlier or later than the age says.
    #[test]
    fn a_message_with_an_end_of_its_own_fails_at_that_time() {
        let policy = Policy::default();
        let age = policy.expire.as_millis() as u64;
        for end in [70_000, age + 70_000] {
            let mut envelope = envelope();
            envelope.head.expires = Some(Timestamp::from_millis(end));
            let settled = |millis| {
                let now = Timestamp::from_millis(millis);
                settle(&envelope, &attempt(&[]), &policy, now)
            };
            assert_eq!(settled(end - 1).expired.len(), 0);
            let over = settled(end);
            assert_eq!((over.remaining, over.expired.len()), (None, 2));
            assert_eq!(over.reports[0].recipients[0].status, "5.4.7");
        }
    }

    #[test]
    fn a_missing_result_counts_as_deferred() {
        let settled = settle(&envelope(), &attempt(&[]), &Policy::default(), NOW);
        assert_eq!(
            settled.remaining.map(|rest| rest.mail.recipients.len()),
            Some(2)
        );
    }
}
