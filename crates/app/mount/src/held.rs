//! Commits and pages of the lead, for the rows of an account that was the lead before and leaves.

use std::collections::HashMap;
use std::sync::mpsc::channel;

use vere_mailfs::format::{MailCopy, MailId, Subject};
use vere_mailfs::volume::{LOG_MAILBOX, PAGES_MAILBOX};
use vere_process::failure::Failure;
use vere_settings::Volume as Described;

use crate::folders::Description;
use crate::listings::list;
use crate::open::{read_slot, start_accounts, tag};

/// Where the lead has each mail of its log and pages, as the subjects tell. Who needs a mail verifies the mail.
pub(crate) fn of_lead(
    description: &Description,
    of: (&Described, u16),
) -> Result<HashMap<MailId, MailCopy>, String> {
    listed(description, of).map_err(|failure| failure.to_string())
}

fn listed(
    description: &Description,
    (described, lead): (&Described, u16),
) -> Result<HashMap<MailId, MailCopy>, Failure> {
    let slot = read_slot(description)?;
    let (events, happened) = channel();
    let asks = start_accounts(described, &tag(&slot), &events)?;
    let ask = |request| {
        // Without the thread no answer comes, and the wait ends by its time-out.
        let _gone = asks.send(request);
    };
    let mut found = HashMap::new();
    for mailbox in [LOG_MAILBOX, PAGES_MAILBOX] {
        let mails = list(&[lead], (mailbox, 1), (&ask, &happened)).remove(&lead);
        let mails = mails.transpose();
        let mails = mails.map_err(|fault| Failure::new(format!("account {lead}: {fault}")))?;
        for mail in mails.into_iter().flatten() {
            if let Ok(subject) = Subject::parse(&mail.subject) {
                found.entry(subject.mail).or_insert(MailCopy {
                    account: lead,
                    mailbox,
                    uid: mail.uid,
                });
            }
        }
    }
    Ok(found)
}
