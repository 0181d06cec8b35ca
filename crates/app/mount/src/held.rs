//! Commits and pages of the lead, for the rows of an account that was the lead before and leaves.

use std::collections::HashMap;
use std::sync::mpsc::channel;
use std::time::Duration;

use vere_mailfs::format::{MailCopy, MailId, Subject};
use vere_mailfs::volume::{LOG_MAILBOX, PAGES_MAILBOX, mailbox_name};
use vere_ports::mail_accounts::{AccountId, Answer, Request, RequestId, UidRange, Urgency};
use vere_process::failure::Failure;
use vere_settings::Volume as Described;

use crate::accounts::Ask;
use crate::folders::Description;
use crate::host::Event;
use crate::open::{read_slot, start_accounts, tag};

/// The longest wait for a listing.
const LIST_MAX: Duration = Duration::from_secs(60);

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
    let silent = || Failure::new(format!("account {lead}: expected a listing; found none"));
    let mut found = HashMap::new();
    for (id, mailbox) in (1..).zip([LOG_MAILBOX, PAGES_MAILBOX]) {
        let request = Request::List {
            mailbox: mailbox_name(mailbox),
            range: UidRange {
                first: 1,
                last: None,
            },
        };
        let ask = Ask(RequestId(id), AccountId(lead), Urgency::Waited, request);
        asks.send(ask).map_err(|_| silent())?;
        let event = happened.recv_timeout(LIST_MAX).map_err(|_| silent())?;
        let mails = match event {
            Event::Answer(_, Ok(Answer::Listed { mails, .. })) => mails,
            Event::Answer(_, Err(fault)) => {
                return Err(Failure::new(format!("account {lead}: {fault}")));
            }
            _ => return Err(silent()),
        };
        for mail in mails {
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
