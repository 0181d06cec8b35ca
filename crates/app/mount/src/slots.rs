//! The key slots that accounts have.

use std::collections::BTreeMap;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use vere_mailfs::format::slot::Slot;
use vere_mailfs::format::{Kind, MailId, Subject, mail};
use vere_ports::mail_accounts::{AccountId, Answer, Request, RequestId, UidRange, Urgency};
use vere_settings::{Volume as Described, VolumeAccount};

use crate::accounts::{Ask, Asks};
use crate::host::Event;
use crate::volume::{self, Live};

/// The mailbox of slots.
const MAILBOX: &str = "head";
/// Slots looked at: a server may keep any number of mails, and each slot costs the time and memory of argon2id.
const SLOTS_MAX: usize = 32;
/// The longest silence of an account.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// The slots of the volume in accounts, newest first, without the known slot.
pub(crate) fn of_accounts(
    described: &Described,
    known: &Slot,
    asks: &Asks,
    happened: &Receiver<Event<Live>>,
) -> Vec<Slot> {
    let mut found: BTreeMap<MailId, Slot> = BTreeMap::new();
    let mut order = Vec::new();
    let mut asker = Asker {
        asks,
        happened,
        last: 0,
    };
    for account in &described.accounts {
        for (id, uid, uid_validity) in asker.listed(account, known).unwrap_or_default() {
            if id == known.head.mail || found.contains_key(&id) || found.len() >= SLOTS_MAX {
                continue;
            }
            let slot = asker.read(account, uid, uid_validity);
            let is_ours = |slot: &Slot| slot.head.volume == known.head.volume;
            if let Some(slot) = slot.filter(is_ours) {
                order.push(slot.head.mail);
                found.insert(slot.head.mail, slot);
            }
        }
    }
    order.iter().filter_map(|id| found.remove(id)).collect()
}

struct Asker<'a> {
    asks: &'a Asks,
    happened: &'a Receiver<Event<Live>>,
    last: u64,
}

impl Asker<'_> {
    /// The answer to a request; `None` where the account fails or says nothing.
    fn ask(&mut self, account: &VolumeAccount, request: Request) -> Option<Answer> {
        self.last = self.last.wrapping_add(1);
        let id = RequestId(self.last);
        let number = AccountId(account.number);
        let ask = Ask(id, number, Urgency::Waited, request);
        self.asks.send(ask).ok()?;
        let end = Instant::now().checked_add(ANSWER_TIMEOUT)?;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.happened.recv_timeout(left).ok()? {
                Event::Answer(of, answer) if of == id => return answer.ok(),
                _ => {}
            }
        }
    }

    /// Slots by the subjects of their mails: id, UID and UIDVALIDITY.
    fn listed(&mut self, account: &VolumeAccount, known: &Slot) -> Option<Vec<(MailId, u32, u32)>> {
        let request = Request::List {
            mailbox: MAILBOX.to_owned(),
            range: UidRange {
                first: 1,
                last: None,
            },
        };
        let Answer::Listed {
            uid_validity,
            mails,
            ..
        } = self.ask(account, request)?
        else {
            return None;
        };
        let slot = |mail: &vere_ports::mail_accounts::Listed| {
            let subject = Subject::parse(&mail.subject).ok()?;
            let is_slot = subject.kind == Kind::Slot && subject.volume == known.head.volume.tag();
            is_slot.then_some((subject.mail, mail.uid, uid_validity))
        };
        Some(mails.iter().rev().filter_map(slot).collect())
    }

    fn read(&mut self, account: &VolumeAccount, uid: u32, uid_validity: u32) -> Option<Slot> {
        let request = Request::Read {
            mailbox: MAILBOX.to_owned(),
            uid_validity,
            uid,
            parts: Vec::new(),
        };
        let Answer::Read(parts) = self.ask(account, request)? else {
            return None;
        };
        let body = mail::unwrap(&parts.concat(), volume::encoding(account.base64)).ok()?;
        Slot::decode(&body).ok()
    }
}
