//! What accounts have: every mailbox of every account is listed, in slices of UIDs.

use std::collections::{BTreeMap, VecDeque};

use vere_ports::mail_accounts::{Answer, Fault, Listed, Request, UidRange};

use crate::format::{MailCopy, MailId, Subject};
use vere_placement::accounts::{FIRST_DATA_MAILBOX, LOG_MAILBOX, mailbox_name};

/// UIDs asked for at once.
const SLICE: u32 = 1_000;
/// The same where mails are rare: their subjects fit an answer of 64 MiB, and 4,294,967,295 UIDs are 16,400 requests.
const SLICE_MAX: u32 = 1 << 18;
/// Characters of a foreign subject that are kept for people.
const SHOWN: usize = 60;

/// A look at an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Which mailboxes there are.
    Mailboxes,
    /// A slice of a mailbox.
    Slice {
        /// The mailbox.
        mailbox: u16,
        /// The first UID.
        first: u32,
        /// The last UID; absent where the account does not tell UIDNEXT.
        last: Option<u32>,
    },
}

impl Look {
    /// The request of the look.
    #[must_use]
    pub fn request(self) -> Request {
        match self {
            Self::Mailboxes => Request::Mailboxes,
            Self::Slice {
                mailbox,
                first,
                last,
            } => Request::List {
                mailbox: mailbox_name(mailbox),
                range: UidRange { first, last },
            },
        }
    }

    fn slice(mailbox: u16, first: u32, uids: u32) -> Self {
        let last = first.saturating_add(uids.saturating_sub(1));
        Self::Slice {
            mailbox,
            first,
            last: Some(last),
        }
    }

    /// The slice behind one with so many mails.
    fn behind(mailbox: u16, (first, last): (u32, u32), mails: usize) -> Self {
        let uids = last.saturating_sub(first).saturating_add(1);
        let is_rare = u32::try_from(mails).is_ok_and(|mails| mails < uids / 2);
        let uids = match is_rare {
            true => uids.saturating_mul(2).min(SLICE_MAX),
            false => SLICE,
        };
        Self::slice(mailbox, last.saturating_add(1), uids)
    }
}

/// A mail as its account lists the mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Octets as the account keeps the mail.
    pub size: u32,
    /// The mail's subject: parsed if the mail is one of this volume, else the text as the account gives it.
    pub subject: Result<Subject, String>,
}

/// A mailbox as listed.
#[derive(Debug, Default)]
pub struct Shelf {
    /// UIDVALIDITY.
    pub uid_validity: u32,
    /// The first UID that the listing says nothing about.
    end: u32,
    /// The mails by their UIDs.
    pub mails: BTreeMap<u32, Seen>,
}

/// An account as listed.
#[derive(Debug, Default)]
pub struct Holding {
    /// Why the account could not be read, if so.
    pub fault: Option<String>,
    /// The mailboxes by number.
    pub mailboxes: BTreeMap<u16, Shelf>,
    /// Mailboxes in the volume's folder that the volume does not use.
    pub strange: Vec<String>,
}

/// All accounts as listed.
#[derive(Debug, Default)]
pub struct Inventory {
    /// The accounts by number.
    pub accounts: BTreeMap<u16, Holding>,
    by_mail: BTreeMap<(u16, MailId), Vec<MailCopy>>,
}

/// What the inventory says about a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// The mail is there.
    There,
    /// No such mail is there.
    Absent,
    /// The listing ends before the place: no such mail was there at the time of the listing.
    Behind,
    /// The account was not read.
    Unknown,
}

impl Inventory {
    /// The mail at a place.
    pub fn at(&self, copy: MailCopy) -> Option<&Seen> {
        let holding = self.accounts.get(&copy.account)?;
        holding.mailboxes.get(&copy.mailbox)?.mails.get(&copy.uid)
    }

    /// The numbers of a mailbox; absent for a mailbox that does not exist or was not read.
    pub fn uid_validity(&self, account: u16, mailbox: u16) -> Option<u32> {
        let shelf = self.accounts.get(&account)?.mailboxes.get(&mailbox)?;
        Some(shelf.uid_validity).filter(|number| *number != 0)
    }

    /// Whether an account was read whole.
    pub fn is_read(&self, account: u16) -> bool {
        let holding = self.accounts.get(&account);
        holding.is_some_and(|holding| holding.fault.is_none())
    }

    /// Whether a mail is at a place that has these numbers.
    pub fn sees(&self, copy: MailCopy, mail: MailId, uid_validity: Option<u32>) -> Sight {
        if !self.is_read(copy.account) {
            return Sight::Unknown;
        }
        let Some(shelf) = self
            .accounts
            .get(&copy.account)
            .and_then(|holding| holding.mailboxes.get(&copy.mailbox))
        else {
            return Sight::Absent;
        };
        if uid_validity.is_some_and(|expected| expected != shelf.uid_validity) {
            return Sight::Absent;
        }
        match shelf.mails.get(&copy.uid) {
            Some(seen) if seen.is(mail) => Sight::There,
            None if copy.uid >= shelf.end => Sight::Behind,
            _ => Sight::Absent,
        }
    }

    /// Every place at an account where the subject names a mail, lowest UID first.
    pub fn places(&self, account: u16, mail: MailId) -> &[MailCopy] {
        self.by_mail
            .get(&(account, mail))
            .map_or(&[], Vec::as_slice)
    }

    /// Mails listed.
    pub fn mails(&self) -> usize {
        let shelves = self
            .accounts
            .values()
            .flat_map(|holding| holding.mailboxes.values());
        shelves.map(|shelf| shelf.mails.len()).sum()
    }

    /// Every mail of a range of mailboxes.
    pub fn of_mailboxes(
        &self,
        mailboxes: std::ops::RangeInclusive<u16>,
    ) -> impl Iterator<Item = (MailCopy, &Seen)> {
        self.accounts.iter().flat_map(move |(account, holding)| {
            let shelves = holding.mailboxes.range(mailboxes.clone());
            shelves.flat_map(move |(mailbox, shelf)| {
                shelf.mails.iter().map(move |(uid, seen)| {
                    let copy = MailCopy {
                        account: *account,
                        mailbox: *mailbox,
                        uid: *uid,
                    };
                    (copy, seen)
                })
            })
        })
    }
}

impl Seen {
    /// Whether the subject names a mail.
    pub fn is(&self, mail: MailId) -> bool {
        self.subject
            .as_ref()
            .is_ok_and(|subject| subject.mail == mail)
    }
}

/// A survey of accounts.
#[derive(Debug)]
pub struct Survey {
    tag: u32,
    waiting: VecDeque<(u16, Look)>,
    asked: usize,
    looks: usize,
    found: Inventory,
    /// The last UID of interest in an account's log.
    log_last: Option<(u16, u32)>,
}

impl Survey {
    /// A survey of these accounts for a volume with this tag.
    pub fn new(accounts: impl Iterator<Item = u16>, tag: u32) -> Self {
        let mut survey = Self {
            tag,
            waiting: VecDeque::new(),
            asked: 0,
            looks: 0,
            found: Inventory::default(),
            log_last: None,
        };
        for account in accounts {
            survey.found.accounts.insert(account, Holding::default());
            survey.waiting.push_back((account, Look::Mailboxes));
        }
        survey
    }

    /// The log of an account is of interest up to this UID only.
    pub const fn ends_log(mut self, account: u16, last: u32) -> Self {
        self.log_last = Some((account, last));
        self
    }

    /// Hands over the mails that were listed since the last call; the survey forgets them.
    pub fn drain(&mut self, see: &mut dyn FnMut(MailCopy, Seen)) {
        for (account, holding) in &mut self.found.accounts {
            for (mailbox, shelf) in &mut holding.mailboxes {
                for (uid, seen) in std::mem::take(&mut shelf.mails) {
                    let copy = MailCopy {
                        account: *account,
                        mailbox: *mailbox,
                        uid,
                    };
                    see(copy, seen);
                }
            }
        }
    }

    /// The next look, if any.
    pub fn poll(&mut self) -> Option<(u16, Look)> {
        let next = self.waiting.pop_front()?;
        self.asked = self.asked.saturating_add(1);
        Some(next)
    }

    /// Looks taken, and looks known to be left.
    pub fn progress(&self) -> (usize, usize) {
        (self.looks, self.waiting.len().saturating_add(self.asked))
    }

    /// Whether everything is listed.
    pub fn is_over(&self) -> bool {
        self.waiting.is_empty() && self.asked == 0
    }

    /// An account has answered.
    pub fn answered(&mut self, account: u16, look: Look, answer: Result<Answer, Fault>) {
        self.asked = self.asked.saturating_sub(1);
        self.looks = self.looks.saturating_add(1);
        let failed = match (look, answer) {
            (Look::Mailboxes, Ok(Answer::Mailboxes(names))) => {
                self.named(account, names);
                None
            }
            (
                Look::Slice {
                    mailbox,
                    first,
                    last,
                },
                Ok(Answer::Listed {
                    uid_validity,
                    uid_next,
                    mails,
                }),
            ) => {
                let slice = (mailbox, first, last);
                self.listed(account, slice, (uid_validity, uid_next), mails)
            }
            (_, Ok(_)) => Some("the answer is to another request".to_owned()),
            (_, Err(fault)) => Some(fault.to_string()),
        };
        if let (Some(reason), Some(holding)) = (failed, self.found.accounts.get_mut(&account)) {
            holding.fault.get_or_insert(reason);
            self.waiting.retain(|(of, _)| *of != account);
        }
    }

    fn named(&mut self, account: u16, names: Vec<String>) {
        for name in names {
            match mailbox_of(&name) {
                Some(mailbox) => {
                    let look = Look::slice(mailbox, 1, SLICE);
                    self.waiting.push_back((account, look));
                }
                None => {
                    if let Some(holding) = self.found.accounts.get_mut(&account) {
                        holding.strange.push(name);
                    }
                }
            }
        }
    }

    /// Adds a slice; the reason why the mailbox cannot be listed, if so.
    fn listed(
        &mut self,
        account: u16,
        (mailbox, first, last): (u16, u32, Option<u32>),
        (uid_validity, uid_next): (u32, u32),
        mails: Vec<Listed>,
    ) -> Option<String> {
        let tag = self.tag;
        let holding = self.found.accounts.get_mut(&account)?;
        let shelf = holding.mailboxes.entry(mailbox).or_default();
        if shelf.uid_validity == 0 {
            shelf.uid_validity = uid_validity;
        }
        if shelf.uid_validity != uid_validity {
            let name = mailbox_name(mailbox);
            return Some(format!("UIDVALIDITY of {name} changed during the listing"));
        }
        let came = mails.len();
        for mail in mails {
            let subject = ours(&mail.subject, tag);
            let seen = Seen {
                size: mail.size,
                subject,
            };
            shelf.mails.insert(mail.uid, seen);
        }
        match last {
            // Nothing behind is of interest.
            Some(last)
                if mailbox == LOG_MAILBOX
                    && self
                        .log_last
                        .is_some_and(|(of, end)| of == account && last >= end) => {}
            Some(last) if uid_next == 0 => {
                let first = last.saturating_add(1);
                let look = Look::Slice {
                    mailbox,
                    first,
                    last: None,
                };
                self.waiting.push_back((account, look));
            }
            Some(last) if last < uid_next.saturating_sub(1) => {
                let look = Look::behind(mailbox, (first, last), came);
                self.waiting.push_back((account, look));
            }
            Some(last) => shelf.end = uid_next.min(last.saturating_add(1)),
            None => {
                let end = shelf.mails.last_key_value().map_or(0, |(uid, _)| *uid);
                shelf.end = end.saturating_add(1);
            }
        }
        None
    }

    /// What was found.
    pub fn finish(mut self) -> Inventory {
        let mut by_mail: BTreeMap<(u16, MailId), Vec<MailCopy>> = BTreeMap::new();
        for (copy, seen) in self.found.of_mailboxes(0..=u16::MAX) {
            if let Ok(subject) = &seen.subject {
                let places = by_mail.entry((copy.account, subject.mail));
                places.or_default().push(copy);
            }
        }
        self.found.by_mail = by_mail;
        self.found
    }
}

/// The subject of a mail of the volume.
fn ours(text: &str, tag: u32) -> Result<Subject, String> {
    match Subject::parse(text) {
        Ok(subject) if subject.volume == tag => Ok(subject),
        _ => Err(text.chars().take(SHOWN).collect()),
    }
}

/// The number of a mailbox by name.
fn mailbox_of(name: &str) -> Option<u16> {
    let number = match name {
        "log" => LOG_MAILBOX,
        "pages" => 2,
        "head" => 3,
        "log-copy" => 4,
        "pages-copy" => 5,
        data => {
            let number: u16 = data.strip_prefix("data-")?.parse().ok()?;
            number.checked_sub(1)?.checked_add(FIRST_DATA_MAILBOX)?
        }
    };
    (mailbox_name(number) == name).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_mailboxes_come_back() {
        for number in [1, 2, 3, 4, 5, 16, 17, 1_000] {
            assert_eq!(mailbox_of(&mailbox_name(number)), Some(number));
        }
        for name in ["data-1", "data-0000", "data-x", "Log", ""] {
            assert_eq!(mailbox_of(name), None, "{name}");
        }
    }

    fn listed(uids: impl Iterator<Item = u32>, uid_next: u32) -> Answer {
        let mail = |uid| Listed {
            uid,
            size: 1,
            subject: format!("lunch {uid}"),
        };
        Answer::Listed {
            uid_validity: 1,
            uid_next,
            mails: uids.map(mail).collect(),
        }
    }

    #[test]
    fn a_long_mailbox_is_listed_in_slices() {
        for tells in [true, false] {
            let mut survey = Survey::new(std::iter::once(7), 1);
            let (_, look) = survey.poll().unwrap();
            let names = vec!["data-0001".to_owned(), "other".to_owned()];
            survey.answered(7, look, Ok(Answer::Mailboxes(names)));
            let mut slices = 0;
            while let Some((_, look)) = survey.poll() {
                slices += 1;
                let Look::Slice { first, last, .. } = look else {
                    panic!("{look:?}");
                };
                let uids = first..=last.unwrap_or(u32::MAX).min(2_499);
                let uid_next = if tells { 2_500 } else { 0 };
                survey.answered(7, look, Ok(listed(uids, uid_next)));
            }
            assert_eq!(slices, if tells { 3 } else { 2 });
            assert!(survey.is_over());
            let found = survey.finish();
            assert_eq!(found.mails(), 2_499);
            assert_eq!(found.accounts[&7].strange, ["other"]);
            let copy = |uid| MailCopy {
                account: 7,
                mailbox: 16,
                uid,
            };
            let sees = |uid| found.sees(copy(uid), MailId::NONE, None);
            assert_eq!((sees(2_499), sees(2_500)), (Sight::Absent, Sight::Behind));
        }
    }

    /// A server tells a UIDNEXT far behind its mails.
    #[test]
    fn no_number_of_uids_takes_many_requests() {
        let mut survey = Survey::new(std::iter::once(7), 1);
        let (_, look) = survey.poll().unwrap();
        survey.answered(7, look, Ok(Answer::Mailboxes(vec!["log".to_owned()])));
        let mut slices = 0;
        while let Some((_, look)) = survey.poll() {
            let Look::Slice { first, last, .. } = look else {
                panic!("{look:?}");
            };
            let last = last.unwrap();
            assert!(last - first < SLICE_MAX);
            // Mails in the middle of nowhere.
            let mails = 1_000_000..1_003_000;
            let uids = mails.filter(|uid| (first..=last).contains(uid));
            survey.answered(7, look, Ok(listed(uids, u32::MAX)));
            slices += 1;
        }
        assert!(slices < 17_000, "{slices}");
        assert_eq!(survey.finish().mails(), 3_000);
    }

    #[test]
    fn an_account_that_fails_says_nothing() {
        let mut survey = Survey::new(std::iter::once(7), 1);
        let (_, look) = survey.poll().unwrap();
        survey.answered(7, look, Err(Fault::Refused("no".to_owned())));
        assert!(survey.is_over());
        let found = survey.finish();
        let copy = MailCopy {
            account: 7,
            mailbox: 16,
            uid: 1,
        };
        assert_eq!(found.sees(copy, MailId::NONE, None), Sight::Unknown);
    }
}
