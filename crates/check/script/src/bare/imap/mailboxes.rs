//! Mailboxes in memory: the simplest implementation that answers all questions.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use vere_imap::command::StoreAction;
use vere_imap::flags::{Flags, SystemFlag};
use vere_imap::message::header_fields;
use vere_imap::server::{
    Answer, AppendQuery, Appended, Changes, Copied, FetchQuery, FlagsChanged, Found, MailboxChange,
    MailboxEntry, Messages, Need, Opened, PieceQuery, Question, Quota, Refusal, Row, Status,
    StoreQuery,
};
use vere_imap::set::UidSet;
use vere_mime::{Parsed, header_len};
use vere_units::Timestamp;

use super::mailbox::{Mailbox, Message};
use super::search;

/// The special uses there are.
const SPECIAL_USES: [&str; 5] = ["Archive", "Drafts", "Junk", "Sent", "Trash"];

/// Octets in the quota of an account.
const QUOTA_OCTETS: u64 = 1 << 30;

#[derive(Debug, Default)]
pub(super) struct Mailboxes {
    accounts: BTreeMap<String, Account>,
    last_key: u64,
    changed: BTreeSet<u64>,
}

#[derive(Debug, Default)]
struct Account {
    mailboxes: BTreeMap<String, Mailbox>,
    subscribed: BTreeSet<String>,
}

impl Mailboxes {
    /// The mailboxes changed since the last call.
    pub(super) fn take_changed(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.changed).into_iter().collect()
    }

    pub(super) fn answer(&mut self, account: &str, question: Question, now: Timestamp) -> Answer {
        self.open_account(account);
        match question {
            Question::Mailboxes => Answer::Mailboxes(Ok(self.list(account))),
            Question::Status { mailbox, .. } => Answer::Status(self.status(account, &mailbox)),
            Question::Change(change) => Answer::Done(self.change(account, change)),
            Question::Open { mailbox, read_only } => {
                Answer::Opened(self.open(account, &mailbox, read_only).map(Box::new))
            }
            Question::Changes {
                mailbox,
                since,
                uid_next,
                read_only,
            } => Answer::Changes(self.changes(mailbox, since, uid_next, read_only)),
            Question::Fetch(query) => Answer::Messages(self.fetch(&query)),
            Question::Piece(query) => Answer::Piece(self.piece(&query)),
            Question::Store(query) => Answer::Flags(self.store(&query)),
            Question::Expunge { mailbox, uids } => {
                Answer::Done(self.expunge(mailbox, uids.as_ref()))
            }
            Question::Copy {
                mailbox,
                uids,
                target,
                remove,
            } => Answer::Copied(self.copy(account, mailbox, &uids, &target, remove)),
            Question::Append(query) => Answer::Appended(self.append(account, *query, now)),
            Question::Search {
                mailbox,
                key,
                recent,
            } => Answer::Found(self.open_mailbox(mailbox).map(|found| {
                let fits =
                    |uid: &u32, message: &Message| search::fits(&key, *uid, message, &recent, now);
                let hits = found
                    .messages
                    .iter()
                    .filter(|(uid, message)| fits(uid, message));
                let mut found = Found::default();
                hits.for_each(|(uid, message)| found.push(*uid, message.mod_seq));
                found
            })),
            Question::Quota => Answer::Quota(Ok(self.quota(account))),
            Question::Password(_) | Question::ScramUser { .. } => {
                Answer::Done(Err(Refusal::Unavailable))
            }
        }
    }

    fn open_account(&mut self, name: &str) {
        if !self.accounts.contains_key(name) {
            self.accounts.insert(name.to_owned(), Account::default());
            let _ = self.create(name, "INBOX", None);
        }
    }

    fn account(&mut self, name: &str) -> Result<&mut Account, Refusal> {
        self.accounts.get_mut(name).ok_or(Refusal::Unavailable)
    }

    fn named(&mut self, account: &str, name: &str) -> Result<&mut Mailbox, Refusal> {
        let account = self.account(account)?;
        account.mailboxes.get_mut(name).ok_or(Refusal::NoMailbox)
    }

    fn open_mailbox(&mut self, key: u64) -> Result<&mut Mailbox, Refusal> {
        let all = self.accounts.values_mut();
        let mut mailboxes = all.flat_map(|account| account.mailboxes.values_mut());
        mailboxes
            .find(|mailbox| mailbox.key == key)
            .ok_or(Refusal::Gone)
    }

    fn list(&mut self, account: &str) -> Vec<MailboxEntry> {
        let Ok(account) = self.account(account) else {
            return Vec::new();
        };
        let names: BTreeSet<&String> = account
            .mailboxes
            .keys()
            .chain(&account.subscribed)
            .collect();
        let entry = |name: &String| MailboxEntry {
            exists: account.mailboxes.contains_key(name),
            subscribed: account.subscribed.contains(name),
            special_use: account
                .mailboxes
                .get(name)
                .and_then(|mailbox| mailbox.special_use),
            name: name.clone(),
        };
        names.into_iter().map(entry).collect()
    }

    fn status(&mut self, account: &str, name: &str) -> Result<Status, Refusal> {
        let mailbox = self.named(account, name)?;
        Ok(Status {
            messages: mailbox.messages.len() as u32,
            recent: mailbox.messages.range(mailbox.claimed + 1..).count() as u32,
            uid_next: mailbox.last_uid + 1,
            uid_validity: mailbox.key as u32,
            unseen: mailbox.count(|message| !message.flags.has(SystemFlag::Seen)),
            deleted: mailbox.count(|message| message.flags.has(SystemFlag::Deleted)),
            deleted_octets: mailbox.octets(|message| message.flags.has(SystemFlag::Deleted)),
            size: mailbox.octets(|_| true),
            mod_seq: mailbox.mod_seq,
        })
    }

    fn create(
        &mut self,
        account: &str,
        name: &str,
        special_use: Option<&str>,
    ) -> Result<(), Refusal> {
        let special_use = match special_use {
            None => None,
            Some(wanted) => {
                let known = SPECIAL_USES
                    .iter()
                    .find(|known| known.eq_ignore_ascii_case(wanted));
                Some(*known.ok_or(Refusal::SpecialUse)?)
            }
        };
        if name.split('/').any(str::is_empty) {
            return Err(Refusal::Name);
        }
        self.last_key += 1;
        let key = self.last_key;
        let account = self.account(account)?;
        if account.mailboxes.contains_key(name) {
            return Err(Refusal::Exists);
        }
        let mailbox = Mailbox {
            key,
            special_use,
            mod_seq: 1,
            ..Mailbox::default()
        };
        account.mailboxes.insert(name.to_owned(), mailbox);
        Ok(())
    }

    fn change(&mut self, account: &str, change: MailboxChange) -> Result<(), Refusal> {
        match change {
            MailboxChange::Create {
                mailbox,
                special_use,
            } => self.create(account, &mailbox, special_use.as_deref()),
            MailboxChange::Delete(name) if name == "INBOX" => Err(Refusal::Inbox),
            MailboxChange::Delete(name) => {
                let gone = self.account(account)?.mailboxes.remove(&name);
                let gone = gone.ok_or(Refusal::NoMailbox)?;
                self.changed.insert(gone.key);
                Ok(())
            }
            MailboxChange::Rename { from, to } => self.rename(account, &from, &to),
            MailboxChange::Subscribe {
                mailbox,
                subscribed,
            } => {
                let account = self.account(account)?;
                if subscribed {
                    account.subscribed.insert(mailbox);
                } else {
                    account.subscribed.remove(&mailbox);
                }
                Ok(())
            }
        }
    }

    fn rename(&mut self, account: &str, from: &str, to: &str) -> Result<(), Refusal> {
        if from == "INBOX" {
            // RENAME of INBOX moves the messages, and INBOX remains (RFC 9051 section 6.3.6).
            self.create(account, to, None)?;
            let inbox = self.named(account, "INBOX")?;
            let (key, uids) = (inbox.key, inbox.messages.keys().copied().collect());
            return self.copy(account, key, &uids, to, true).map(drop);
        }
        let account = self.account(account)?;
        if account.mailboxes.contains_key(to) {
            return Err(Refusal::Exists);
        }
        let below = format!("{from}/");
        let moving: Vec<String> = account
            .mailboxes
            .keys()
            .filter(|name| *name == from || name.starts_with(&below))
            .cloned()
            .collect();
        if moving.is_empty() {
            return Err(Refusal::NoMailbox);
        }
        for name in moving {
            if let Some(mailbox) = account.mailboxes.remove(&name) {
                account
                    .mailboxes
                    .insert(format!("{to}{}", &name[from.len()..]), mailbox);
            }
        }
        Ok(())
    }

    fn open(&mut self, account: &str, name: &str, read_only: bool) -> Result<Opened, Refusal> {
        let mailbox = self.named(account, name)?;
        let unseen = |(_, message): &(&u32, &Message)| !message.flags.has(SystemFlag::Seen);
        let mut keywords: Vec<std::sync::Arc<str>> = Vec::new();
        for word in mailbox
            .messages
            .values()
            .flat_map(|message| message.flags.keywords())
        {
            if !keywords.contains(word) {
                keywords.push(word.clone());
            }
        }
        Ok(Opened {
            mailbox: mailbox.key,
            uid_validity: mailbox.key as u32,
            uid_next: mailbox.last_uid + 1,
            mod_seq: mailbox.mod_seq,
            uids: mailbox.messages.keys().copied().collect(),
            first_unseen: mailbox.messages.iter().find(unseen).map(|(uid, _)| *uid),
            recent_from: mailbox.claim(read_only),
            keywords,
        })
    }

    fn changes(
        &mut self,
        key: u64,
        since: u64,
        uid_next: u32,
        read_only: bool,
    ) -> Result<Changes, Refusal> {
        let mailbox = self.open_mailbox(key)?;
        let changed = mailbox
            .messages
            .iter()
            .filter(|(_, message)| message.mod_seq > since);
        let changed: Vec<u32> = changed.map(|(uid, _)| *uid).collect();
        Ok(Changes {
            mod_seq: mailbox.mod_seq,
            uid_next: mailbox.last_uid + 1,
            added: mailbox
                .messages
                .range(uid_next..)
                .map(|(uid, _)| *uid)
                .collect(),
            gone: mailbox.gone(since),
            changed: changed
                .iter()
                .filter_map(|uid| mailbox.flags_of(*uid))
                .collect(),
            recent_from: mailbox.claim(read_only),
        })
    }

    fn fetch(&mut self, query: &FetchQuery) -> Result<Messages, Refusal> {
        let mailbox = self.open_mailbox(query.mailbox)?;
        let mut rest = query.uids.clone();
        // In small batches, so that every script tests the joins; every second message comes in pieces.
        let in_pieces = query.large_from.is_some()
            && query.need == Need::Whole
            && rest.iter().next().is_some_and(|uid| uid % 2 == 0);
        let batch = rest.split_front(if in_pieces { 1 } else { 3 });
        let rows = batch.iter().filter_map(|uid| {
            let message = mailbox.messages.get(&uid)?;
            let header = || message.octets.slice(..header_len(&message.octets));
            let content = match query.need {
                Need::Header if let Some(fields) = &query.fields => {
                    header_fields(&header(), fields, true).into()
                }
                Need::Nothing | Need::Parsed => Bytes::new(),
                Need::Header => header(),
                Need::Whole if in_pieces => Bytes::new(),
                Need::Whole => message.octets.clone(),
            };
            let behind = if in_pieces { message.octets.len() } else { 0 };
            // A missing request for the structure shows when the structure is used.
            let parsed = match query.parsed {
                true => Parsed::of(&message.octets).encode().into(),
                false => Bytes::new(),
            };
            Some(Row {
                flags: mailbox.flags_of(uid)?,
                date: message.date,
                size: message.octets.len() as u64,
                parsed,
                content,
                own: 0,
                behind,
                header: header_len(&message.octets),
            })
        });
        let since = query.changed_since.unwrap_or(0);
        let rows = rows.filter(|row| row.flags.mod_seq > since).collect();
        Ok(Messages {
            rows,
            rest,
            damaged: 0,
            unavailable: 0,
        })
    }

    fn piece(&mut self, query: &PieceQuery) -> Result<Bytes, Refusal> {
        let mailbox = self.open_mailbox(query.mailbox)?;
        let message = mailbox.messages.get(&query.uid).ok_or(Refusal::Gone)?;
        let end = query.first + query.octets;
        Ok(message.octets.slice(query.first..end))
    }

    fn store(&mut self, query: &StoreQuery) -> Result<FlagsChanged, Refusal> {
        let mailbox = self.open_mailbox(query.mailbox)?;
        let mut done = FlagsChanged::default();
        let next = mailbox.mod_seq + 1;
        for uid in query.uids.iter() {
            let Some(message) = mailbox.messages.get_mut(&uid) else {
                continue;
            };
            if query
                .unchanged_since
                .is_some_and(|since| message.mod_seq > since)
            {
                done.modified.insert(uid);
                continue;
            }
            let mut flags = match query.action {
                StoreAction::Replace => Flags::new(),
                StoreAction::Add | StoreAction::Remove => message.flags.clone(),
            };
            for flag in &query.flags {
                match query.action {
                    StoreAction::Remove => flags.remove(flag),
                    StoreAction::Replace | StoreAction::Add => flags.insert(flag),
                }
            }
            if flags != message.flags {
                (message.flags, message.mod_seq) = (flags, next);
                mailbox.mod_seq = next;
                done.changed.insert(uid);
            }
            done.rows.extend(mailbox.flags_of(uid));
        }
        if !done.changed.is_empty() {
            self.changed.insert(query.mailbox);
        }
        Ok(done)
    }

    fn expunge(&mut self, key: u64, uids: Option<&UidSet>) -> Result<(), Refusal> {
        let mailbox = self.open_mailbox(key)?;
        let deleted = |(uid, message): &(&u32, &Message)| {
            message.flags.has(SystemFlag::Deleted) && uids.is_none_or(|uids| uids.contains(**uid))
        };
        let gone: Vec<u32> = mailbox
            .messages
            .iter()
            .filter(deleted)
            .map(|(uid, _)| *uid)
            .collect();
        if !gone.is_empty() {
            mailbox.remove(&gone);
            self.changed.insert(key);
        }
        Ok(())
    }

    fn copy(
        &mut self,
        account: &str,
        key: u64,
        uids: &UidSet,
        target: &str,
        remove: bool,
    ) -> Result<Copied, Refusal> {
        let source = self.open_mailbox(key)?;
        let found: Vec<(u32, Message)> = uids
            .iter()
            .filter_map(|uid| Some((uid, source.messages.get(&uid)?.clone())))
            .collect();
        let to = self.named(account, target).map_err(|_| Refusal::NoTarget)?;
        let mut copied = Copied {
            uid_validity: to.key as u32,
            from: UidSet::new(),
            to: UidSet::new(),
        };
        let target_key = to.key;
        for (uid, message) in found {
            copied.from.insert(uid);
            copied.to.insert(to.add(message));
        }
        if remove {
            let gone: Vec<u32> = copied.from.iter().collect();
            self.open_mailbox(key)?.remove(&gone);
        }
        self.changed.extend([key, target_key]);
        Ok(copied)
    }

    fn append(
        &mut self,
        account: &str,
        query: AppendQuery,
        now: Timestamp,
    ) -> Result<Appended, Refusal> {
        let mailbox = self.named(account, &query.mailbox)?;
        let uid = mailbox.add(Message {
            flags: query.flags.into_iter().collect(),
            mod_seq: 0,
            date: query.date.unwrap_or_else(|| now.into()),
            octets: query.message,
        });
        let key = mailbox.key;
        self.changed.insert(key);
        Ok(Appended {
            uid_validity: key as u32,
            uid,
        })
    }

    fn quota(&mut self, account: &str) -> Quota {
        let mailboxes = self.accounts.get(account).map(|account| &account.mailboxes);
        let messages = || {
            mailboxes
                .into_iter()
                .flat_map(|all| all.values())
                .flat_map(|each| each.messages.values())
        };
        Quota {
            octets: messages().map(|message| message.octets.len() as u64).sum(),
            octets_max: Some(QUOTA_OCTETS),
            messages: messages().count() as u64,
            messages_max: None,
        }
    }
}
