//! Whether the log has every commit of the chain.

use std::collections::HashMap;

use super::finding::{CheckReport, Finding, MailPlace};
use super::survey::Inventory;
use crate::format::{Kind, MailCopy, MailId, Subject};
use vere_placement::accounts::LOG_MAILBOX;

/// Walks from the head to the first commit, or to the oldest checkpoint (`floor`): `gc` may have removed earlier commits. The way goes by the parents in the subjects, and reports mails of the log that are no commits.
pub fn check_chain(
    inventory: &Inventory,
    lead: u16,
    ((head, generation), floor): ((MailId, u64), u64),
    report: &mut CheckReport,
) {
    if !inventory.is_read(lead) {
        return;
    }
    let mut commits: HashMap<MailId, (u32, Subject)> = HashMap::new();
    for (copy, seen) in inventory.of_mailboxes(LOG_MAILBOX..=LOG_MAILBOX) {
        if copy.account != lead {
            continue;
        }
        let place = MailPlace::of(copy);
        match &seen.subject {
            Err(text) => report.add(Finding::Foreign {
                place,
                subject: text.clone(),
            }),
            Ok(subject) if subject.kind != Kind::Commit => report.add(Finding::Subject {
                place,
                reason: format!("expected a commit; found {}", subject.kind),
            }),
            Ok(subject) => {
                // UIDs rise: the first one counts.
                let first = commits.entry(subject.mail).or_insert((copy.uid, *subject));
                if first.0 != copy.uid {
                    let of = first.0;
                    report.add(Finding::Duplicate { place, of });
                }
            }
        }
    }
    walk(&mut commits, (head, generation, floor), lead, report);
}

/// Takes every commit of the chain out of the map, so that a circle ends.
fn walk(
    commits: &mut HashMap<MailId, (u32, Subject)>,
    (head, generation, floor): (MailId, u64, u64),
    lead: u16,
    report: &mut CheckReport,
) {
    let (mut at, mut generation) = (head, generation);
    // The first commit behind a lost log has a generation above 1, and no parent.
    while generation > 0 && at != MailId::NONE {
        let Some((uid, subject)) = commits.remove(&at) else {
            if generation < floor {
                return;
            }
            let reason = format!("expected commit {at} in the log; found none");
            report.add(Finding::Chain { generation, reason });
            return;
        };
        if subject.generation != Some(generation) {
            let found = subject.generation.unwrap_or(0);
            let reason = format!("generation: expected {generation}; found {found}");
            let copy = MailCopy {
                account: lead,
                mailbox: LOG_MAILBOX,
                uid,
            };
            let place = MailPlace::of(copy);
            report.add(Finding::Subject { place, reason });
        }
        at = subject.parent.unwrap_or(MailId::NONE);
        generation = generation.saturating_sub(1);
    }
    if at != MailId::NONE {
        let reason = format!("expected no commit before the first; found {at}");
        report.add(Finding::Chain { generation, reason });
    }
}
