//! The task for each kind of request.

use vere_ports::mail_accounts::{Fault, Request, RequestId};

use crate::work::Task;

mod append;
mod facts;
mod find;
mod list;
mod read;
mod remove;

pub(crate) use append::Append;

/// Commands of a request that looks at a mailbox in slices. At 1,000 UIDs a slice, as at the least known limit of a server, so
/// many commands see 65 million UIDs.
const SLICES_MAX: u32 = 65_536;

/// The answer to a request that would need more commands.
fn too_many_slices() -> Fault {
    Fault::Refused(format!("the mailbox needs over {SLICES_MAX} commands"))
}

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
