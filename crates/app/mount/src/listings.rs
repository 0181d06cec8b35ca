//! Listings of mailboxes by commands that have accounts to themselves.

use std::collections::BTreeMap;
use std::sync::mpsc::Receiver;

use vere_mailfs::format::Subject;
use vere_mailfs::volume::{LOG_COPY_MAILBOX, LOG_MAILBOX, mailbox_name};
use vere_ports::mail_accounts::{
    AccountId, Answer, Fault, Listed, Request, RequestId, UidRange, Urgency,
};

use crate::accounts::{ANSWER_TIMEOUT, Ask};
use crate::host::Event;
use crate::volume::Live;

/// The way to the accounts and back.
pub(crate) type Between<'a> = (&'a dyn Fn(Ask), &'a Receiver<Event<Live>>);

/// Requests for listings have numbers from here on: those of promotions are lower.
const FIRST: u64 = 1 << 39;

/// Lists a mailbox of each account from a UID on, all at once. An account without an answer in time has failed.
pub(crate) fn list(
    accounts: &[u16],
    (mailbox, first): (u16, u32),
    (ask, happened): Between<'_>,
) -> BTreeMap<u16, Result<Vec<Listed>, Fault>> {
    let mut asked = BTreeMap::new();
    for (id, account) in (FIRST..).map(RequestId).zip(accounts) {
        let request = Request::List {
            mailbox: mailbox_name(mailbox),
            range: UidRange { first, last: None },
        };
        asked.insert(id, *account);
        ask(Ask(id, AccountId(*account), Urgency::Waited, request));
    }
    let mut found = BTreeMap::new();
    while !asked.is_empty()
        && let Ok(event) = happened.recv_timeout(ANSWER_TIMEOUT)
    {
        if let Event::Answer(id, answer) = event
            && let Some(account) = asked.remove(&id)
        {
            let mails = answer.map(|answer| match answer {
                Answer::Listed { mails, .. } => mails,
                _ => Vec::new(),
            });
            found.insert(account, mails);
        }
    }
    for account in asked.into_values() {
        let text = "expected a listing within 60 s; found none".to_owned();
        found.insert(account, Err(Fault::Unreachable(text)));
    }
    found
}

/// Whether an account lists its log now.
pub(crate) fn answers(account: u16, between: Between<'_>) -> bool {
    let listed = list(&[account], (LOG_MAILBOX, u32::MAX), between);
    listed.values().all(Result::is_ok)
}

/// The copies on accounts with the generations of their newest commits, as their subjects tell, the newest first.
pub(crate) fn copies(accounts: &[u16], between: Between<'_>) -> Vec<(u64, u16)> {
    let listed = list(accounts, (LOG_COPY_MAILBOX, 1), between);
    let newest = |mails: Vec<Listed>| {
        let subjects = mails
            .iter()
            .filter_map(|mail| Subject::parse(&mail.subject).ok());
        subjects.filter_map(|subject| subject.generation).max()
    };
    let found = listed.into_iter();
    let found = found.filter_map(|(account, mails)| Some((newest(mails.ok()?)?, account)));
    let mut found: Vec<(u64, u16)> = found.collect();
    found.sort_unstable_by_key(|(newest, account)| (std::cmp::Reverse(*newest), *account));
    found
}
