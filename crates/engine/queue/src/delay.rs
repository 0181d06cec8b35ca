//! Delay reports (RFC 3461 section 4.1, NOTIFY=DELAY): one report per message that is not delivered
//! yet. Both tried messages and messages waiting behind others in their queue cause reports.

use vere_units::Timestamp;

use crate::envelope::{Envelope, Recipient};
use crate::policy::Policy;
use crate::report::{Report, ReportKind, ReportedRecipient};

/// Composes the delay report of a waiting message that was not tried itself. `reply` is the answer
/// of `remote` to another message of the queue. Returns the report, if a recipient asked for delay
/// reports, and the envelope to store with REPLACE, which differs in the noted report only. Returns
/// `None` if no report is due yet, or the sender was notified before.
#[must_use]
pub fn notice(
    envelope: &Envelope,
    policy: &Policy,
    now: Timestamp,
    remote: &str,
    reply: &str,
) -> Option<(Envelope, Report)> {
    if !is_due(envelope, policy, now) {
        return None;
    }
    let mut rest = envelope.clone();
    let report = tell(&mut rest, policy, remote, reply)?;
    Some((rest, report))
}

/// Whether a delay report is due now.
pub(crate) fn is_due(envelope: &Envelope, policy: &Policy, now: Timestamp) -> bool {
    let age = now.saturating_since(envelope.head.accepted);
    !envelope.head.delay_noticed && policy.delay_notice.is_some_and(|after| age >= after)
}

/// Notes in the envelope that the sender was notified, and returns the report if a recipient asked
/// for delay reports. A null reverse-path never causes a report (RFC 5321 section 4.5.5).
pub(crate) fn tell(
    rest: &mut Envelope,
    policy: &Policy,
    remote: &str,
    reply: &str,
) -> Option<Report> {
    rest.head.delay_noticed = true;
    let delayed = |recipient: &Recipient| ReportedRecipient {
        address: recipient.address.clone(),
        orcpt: recipient.orcpt.clone(),
        status: "4.4.7".to_owned(),
        diagnostic: reply.to_owned(),
        from_remote: false,
        remote: remote.to_owned(),
    };
    let asked = rest.mail.recipients.iter().filter(|one| one.notify.delay());
    let recipients: Vec<_> = asked.map(delayed).collect();
    let to = rest
        .mail
        .reverse_path
        .clone()
        .filter(|_| !recipients.is_empty())?;
    Some(Report {
        kind: ReportKind::Delayed,
        to,
        recipients,
        retry_until: Some(rest.head.end(policy.expire)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envelope::tests::sample;
    use crate::envelope::{Mail, Notify, ScheduleHead};

    fn waiting() -> (Envelope, Policy, Timestamp) {
        let mut envelope = sample();
        envelope.head.delay_noticed = false;
        envelope.mail.reverse_path = Some("a@example.org".to_owned());
        for recipient in &mut envelope.mail.recipients {
            recipient.notify = Notify::default();
        }
        let policy = Policy::default();
        let late = envelope.head.accepted + policy.delay_notice.expect("default");
        (envelope, policy, late)
    }

    #[test]
    fn who_waits_behind_others_is_told_once_and_nothing_else_changes() {
        let (envelope, policy, late) = waiting();
        let (rest, report) = notice(&envelope, &policy, late, "host", "450 no").expect("due");
        assert_eq!(report.recipients.len(), envelope.mail.recipients.len());
        assert_eq!(report.recipients[0].diagnostic, "450 no");
        assert_eq!(
            report.retry_until,
            Some(envelope.head.accepted + policy.expire)
        );
        assert_eq!(notice(&rest, &policy, late, "host", "450 no"), None);
        let before = Envelope {
            head: ScheduleHead {
                delay_noticed: false,
                ..rest.head.clone()
            },
            ..rest
        };
        assert_eq!(before, envelope);
    }

    #[test]
    fn who_is_told_of_a_delay_hears_the_own_end_of_the_message() {
        let (mut envelope, policy, late) = waiting();
        let end = Timestamp::from_millis(late.as_millis() + 60_000);
        envelope.head.expires = Some(end);
        let (rest, report) = notice(&envelope, &policy, late, "host", "450 no").expect("due");
        assert_eq!(report.retry_until, Some(end));
        assert_eq!(rest.head.expires, Some(end));
    }

    #[test]
    fn who_does_not_want_to_know_is_not_told() {
        let (envelope, policy, late) = waiting();
        let told = |envelope: &Envelope, now| notice(envelope, &policy, now, "host", "450 no");
        let soon = Timestamp::from_millis(late.as_millis() - 1);
        assert_eq!(told(&envelope, soon), None);
        let null = Envelope {
            mail: Mail {
                reverse_path: None,
                ..envelope.mail.clone()
            },
            ..envelope.clone()
        };
        assert_eq!(told(&null, late), None);
        let mut silent = envelope;
        for recipient in &mut silent.mail.recipients {
            recipient.notify = Notify::on(true, true, false);
        }
        assert_eq!(told(&silent, late), None);
    }
}
