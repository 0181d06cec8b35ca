//! APPEND of a mail, or of several mails together.

use bytes::Bytes;
use vere_imap::client::{Code, Command, Status};
use vere_ports::mail_accounts::{Answer, RequestId};

use crate::fault;
use crate::wire::Wire;
use crate::work::{After, Answers, Task};

/// The steps: CREATE, all mails by a single command; then the mails singly.
const CREATE: usize = 0;
const TOGETHER: usize = 1;
const SINGLE: usize = 2;

/// Mails to store in a mailbox.
#[derive(Debug)]
pub(crate) struct Append {
    mailbox: String,
    mails: Vec<(RequestId, Bytes)>,
    /// Whether the mailbox is to be created first.
    create: bool,
    /// Whether each mail was sent again after a CREATE.
    again: Vec<bool>,
    /// Mails without an answer.
    open: usize,
}

impl Append {
    pub(crate) fn new(mailbox: String, mails: Vec<(RequestId, Bytes)>, create: bool) -> Self {
        Self {
            mailbox,
            create,
            again: vec![false; mails.len()],
            open: mails.len(),
            mails,
        }
    }

    fn send_create(&self, wire: &mut Wire) {
        let command = Command::Create {
            mailbox: wire.folder().wire(&self.mailbox),
            special_use: None,
        };
        wire.send(CREATE, &command);
    }

    fn send_single(&self, place: usize, wire: &mut Wire) {
        if let Some((_, mail)) = self.mails.get(place) {
            let step = SINGLE.saturating_add(place);
            wire.append(step, &self.mailbox, std::iter::once(mail));
        }
    }

    fn together_ended(&self, status: &Status, wire: &mut Wire) -> After {
        if !status.is_ok() {
            // The server stored no mail (RFC 3502); singly, each mail gets an answer.
            for place in 0..self.mails.len() {
                self.send_single(place, wire);
            }
            return After::Waits;
        }
        let uids = uids(status, self.mails.len());
        let answers = self.mails.iter().enumerate().map(|(place, (id, _))| {
            let uid = uids.as_ref().and_then(|uids| uids.get(place)).copied();
            (*id, Ok(Answer::Appended(uid)))
        });
        After::Ends(answers.collect())
    }

    fn single_ended(&mut self, place: usize, status: &Status, wire: &mut Wire) -> After {
        let Some((id, _)) = self.mails.get(place) else {
            return After::Waits;
        };
        if !status.is_ok()
            && fault::names_no_mailbox(status)
            && let Some(again) = self.again.get_mut(place)
            && !std::mem::replace(again, true)
        {
            self.send_create(wire);
            self.send_single(place, wire);
            return After::Waits;
        }
        let answer = match status.is_ok() {
            true => Ok(Answer::Appended(
                uids(status, 1).and_then(|uids| uids.first().copied()),
            )),
            false => Err(fault::of(status)),
        };
        let answers: Answers = vec![(*id, answer)];
        self.open = self.open.saturating_sub(1);
        match self.open {
            0 => After::Ends(answers),
            _ => After::Some(answers),
        }
    }
}

impl Task for Append {
    fn begin(&mut self, wire: &mut Wire) -> After {
        if self.create {
            // A refusal, because the mailbox exists, does no harm.
            self.send_create(wire);
        }
        match self.mails.len() {
            1 => self.send_single(0, wire),
            _ => wire.append(
                TOGETHER,
                &self.mailbox,
                self.mails.iter().map(|(_, mail)| mail),
            ),
        }
        After::Waits
    }

    fn gives(&self) -> bool {
        true
    }

    fn ended(&mut self, step: usize, status: &Status, wire: &mut Wire) -> After {
        match step {
            // The following APPEND tells whether the mailbox can be used.
            CREATE => After::Waits,
            TOGETHER => self.together_ended(status, wire),
            step => self.single_ended(step.saturating_sub(SINGLE), status, wire),
        }
    }
}

/// UIDVALIDITY and UID of each of `count` mails, where the server tells as many.
fn uids(status: &Status, count: usize) -> Option<Vec<(u32, u32)>> {
    let Some(Code::AppendUid { uid_validity, uids }) = &status.code else {
        return None;
    };
    // The server's word for how many there are is not taken.
    let each = uids.iter().flat_map(|(first, last)| *first..=*last);
    let each = each.map(|uid| (*uid_validity, uid));
    let all: Vec<_> = each.take(count.saturating_add(1)).collect();
    let are_numbers = all.iter().all(|(of, uid)| *of != 0 && *uid != 0);
    (all.len() == count && are_numbers).then_some(all)
}
