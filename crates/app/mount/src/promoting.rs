//! A change of the lead, carried out between the engine of a promotion and the accounts.

use std::collections::BTreeMap;
use std::sync::mpsc::Receiver;

use vere_mailfs::format::Subject;
use vere_mailfs::volume::{Create, LOG_COPY_MAILBOX, LOG_MAILBOX, Terms, mailbox_name};
use vere_ports::mail_accounts::{AccountId, Answer, Fault, Request, RequestId, UidRange, Urgency};
use vere_process::failure::Failure;
use vere_promotion::{Promoted, Promotion, PromotionError, PromotionStep, Source};

use crate::accounts::{ANSWER_TIMEOUT, Ask};
use crate::host::{Clock, Event};
use crate::lines::{self, Level};
use crate::news::News;
use crate::volume::{Live, moment};

/// Requests for listings of copies have numbers from here on.
const COPIES: u64 = 1 << 39;

/// The way to the accounts and back.
pub(crate) type Between<'a> = (&'a dyn Fn(Ask), &'a Receiver<Event<Live>>);

/// Has a promotion read and write all its needs.
pub(crate) fn run(
    (terms, of): (&Terms, &Create),
    (source, to): (Source, u16),
    (first, clock): (u64, Clock),
    between: Between<'_>,
    news: &mut dyn FnMut(News),
) -> Result<Promoted, Failure> {
    attempt((terms, of), (source, to), (first, clock), between, news).map_err(Failure::from)
}

/// As [`run`], with the error as the engine has it.
pub(crate) fn attempt(
    (terms, of): (&Terms, &Create),
    (source, to): (Source, u16),
    (first, clock): (u64, Clock),
    (ask, answers): Between<'_>,
    news: &mut dyn FnMut(News),
) -> Result<Promoted, PromotionError> {
    let date = moment(clock.now()).date();
    let mut promotion = Promotion::new(terms, of.clone(), (source, to), (first, date));
    loop {
        while let Some(step) = promotion.poll() {
            match step {
                PromotionStep::Ask(id, account, urgency, request) => {
                    ask(Ask(id, account, urgency, request));
                }
                PromotionStep::Left(account, uid, reason) => lines::log(
                    Level::Warn,
                    &format!("account {account}: the mail of UID {uid} is not copied: {reason}"),
                ),
            }
        }
        if promotion.is_over() {
            return promotion.finish();
        }
        match answers.recv_timeout(ANSWER_TIMEOUT) {
            Ok(Event::Answer(id, answer)) => promotion.answered(id, answer),
            Ok(_) => {}
            Err(_) => {
                let text = "expected an answer within 60 s; found none".to_owned();
                promotion.give_up(Fault::Unreachable(text));
            }
        }
        let (done, all) = promotion.progress();
        news(News::Progress(done, all));
    }
}

/// Whether an account lists its log now.
pub(crate) fn answers(account: u16, (ask, happened): Between<'_>) -> bool {
    let request = Request::List {
        mailbox: mailbox_name(LOG_MAILBOX),
        range: UidRange {
            first: u32::MAX,
            last: None,
        },
    };
    let id = RequestId(1);
    ask(Ask(id, AccountId(account), Urgency::Waited, request));
    loop {
        match happened.recv_timeout(ANSWER_TIMEOUT) {
            Ok(Event::Answer(answered, answer)) if answered == id => return answer.is_ok(),
            Ok(_) => {}
            Err(_) => return false,
        }
    }
}

/// The copies on accounts with the generations of their newest commits, as their subjects tell, the newest first.
pub(crate) fn copies(accounts: &[u16], (ask, happened): Between<'_>) -> Vec<(u64, u16)> {
    let mut asked = BTreeMap::new();
    for (id, account) in (COPIES..).map(RequestId).zip(accounts) {
        let request = Request::List {
            mailbox: mailbox_name(LOG_COPY_MAILBOX),
            range: UidRange {
                first: 1,
                last: None,
            },
        };
        asked.insert(id, *account);
        ask(Ask(id, AccountId(*account), Urgency::Waited, request));
    }
    let mut found = Vec::new();
    while !asked.is_empty()
        && let Ok(event) = happened.recv_timeout(ANSWER_TIMEOUT)
    {
        let Event::Answer(id, answer) = event else {
            continue;
        };
        if let Some(account) = asked.remove(&id)
            && let Ok(Answer::Listed { mails, .. }) = answer
        {
            let subjects = mails
                .iter()
                .filter_map(|mail| Subject::parse(&mail.subject).ok());
            let newest = subjects.filter_map(|subject| subject.generation).max();
            found.extend(newest.map(|newest| (newest, account)));
        }
    }
    found.sort_unstable_by_key(|(newest, account)| (std::cmp::Reverse(*newest), *account));
    found
}
