//! The task for each kind of request.

use vere_ports::mail_accounts::{Request, RequestId};

use crate::work::Task;

mod append;
mod facts;
mod find;
mod list;
mod read;
mod remove;
mod slices;

pub(crate) use append::Append;

/// The task for a request other than APPEND and watching.
pub(crate) fn of(id: RequestId, request: Request) -> Option<Box<dyn Task>> {
    Some(match request {
        Request::Append { mailbox, mail, .. } => {
            Box::new(Append::new(mailbox, vec![(id, mail)], false))
        }
        Request::Read {
            mailbox,
            uid_validity,
            uid,
            parts,
        } => Box::new(read::Read::new(id, mailbox, uid_validity, uid, parts)),
        Request::List { mailbox, range } => Box::new(list::List::new(id, mailbox, range)),
        Request::Find { mailbox, word } => Box::new(find::Find::new(id, mailbox, word)),
        Request::Remove {
            mailbox,
            uid_validity,
            uids,
        } => Box::new(remove::Remove::new(id, mailbox, uid_validity, uids)),
        Request::Mailboxes => Box::new(facts::Mailboxes::new(id)),
        Request::Quota => Box::new(facts::Quota::new(id)),
        Request::Watch { .. } => return None,
    })
}
