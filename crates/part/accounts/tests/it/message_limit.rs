//! A server with a limit of mails a command (MESSAGELIMIT, RFC 9738).

use std::sync::{Arc, Mutex};

use vere_ports::mail_accounts::{Answer, Request, Urgency};

use crate::harness::{Volume, append, list, mail, remove, run};
use crate::liar::server_with;

/// The most mails of a command.
const LIMIT: u32 = 100;
/// The mails of the mailbox.
const MAILS: u32 = 450;

fn range(command: &str) -> (u32, u32) {
    let set = command
        .split(' ')
        .find(|word| word.contains(':'))
        .expect("a range");
    let (first, last) = set.split_once(':').expect("two ends");
    let last = last.parse().unwrap_or(u32::MAX);
    (first.parse().expect("a number"), last)
}

#[test]
fn commands_stay_within_the_limit() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&heard);
    let address = server_with("MULTIAPPEND MESSAGELIMIT=100", move |command| {
        log.lock().expect("a log").push(command.to_owned());
        if command.starts_with("SELECT") {
            return format!(
                "* {MAILS} EXISTS\r\n* OK [UIDVALIDITY 5] x\r\n* OK [UIDNEXT {}] x\r\nOK [READ-WRITE] open",
                MAILS + 1
            );
        }
        if command.starts_with("UID FETCH") {
            let (first, last) = range(command);
            let lines = (first..=last.min(MAILS)).map(|uid| {
                format!(
                    "* {uid} FETCH (UID {uid} RFC822.SIZE 9 BODY[HEADER.FIELDS (SUBJECT)] \"Subject: s\")\r\n"
                )
            });
            return lines.collect::<String>() + "OK done";
        }
        if command.starts_with("UID SEARCH UID") {
            let (first, last) = range(command);
            let found = [7, 333]
                .into_iter()
                .filter(|uid| (first..=last).contains(uid));
            let found: String = found.map(|uid| format!(" {uid}")).collect();
            return format!("* SEARCH{found}\r\nOK done");
        }
        "OK done".to_owned()
    });
    run(async {
        let mut volume = Volume::at(address, 1);
        let Ok(Answer::Listed { mails, .. }) = volume.ask(list("data", 1, None)).await else {
            panic!("no listing");
        };
        assert_eq!(mails.len(), MAILS as usize);
        let find = Request::Find {
            mailbox: "data".to_owned(),
            word: "word".to_owned(),
        };
        assert_eq!(volume.ask(find).await, Ok(Answer::Found(5, vec![7, 333])));
        let uids: Vec<u32> = (1..=250).collect();
        assert_eq!(
            volume.ask(remove("data", 5, &uids)).await,
            Ok(Answer::Removed)
        );
        let small = mail("x", b"y");
        let ids: Vec<_> = (0..150)
            .map(|_| volume.send(Urgency::Background, append("data", &small)))
            .collect();
        for id in ids {
            assert_eq!(volume.wait(id).await, Ok(Answer::Appended(None)));
        }
    });
    let heard = heard.lock().expect("a log");
    let mut ranges = 0;
    for command in heard.iter().filter(|command| command.contains(':')) {
        if command.starts_with("UID") {
            let (first, last) = range(command);
            assert!(last - first < LIMIT, "{command}");
            ranges += 1;
        }
    }
    assert!(ranges >= 5 + 5 + 6, "{ranges}");
}

/// A server that stops early without an announcement: nothing is missing from the listing.
#[test]
fn a_partial_listing_is_asked_for_again() {
    let address = server_with("", |command| {
        if command.starts_with("SELECT") {
            return "* 90 EXISTS\r\n* OK [UIDVALIDITY 5] x\r\n* OK [UIDNEXT 91] x\r\nOK open"
                .to_owned();
        }
        let (first, last) = range(command);
        let last = last.min(90);
        // From the highest UID down, as RFC 9738 section 3.1 has it.
        let lowest = first.max(last.saturating_sub(19));
        let lines = (lowest..=last).map(|uid| {
            format!("* {uid} FETCH (UID {uid} RFC822.SIZE 9 BODY[HEADER.FIELDS (SUBJECT)] \"Subject: s\")\r\n")
        });
        let code = if lowest > first {
            format!("[MESSAGELIMIT 20 {lowest}] ")
        } else {
            String::new()
        };
        lines.collect::<String>() + &format!("OK {code}done")
    });
    run(async {
        let mut volume = Volume::at(address, 1);
        let (_, _, mails) = volume.list("data").await;
        assert_eq!(mails.len(), 90);
    });
}
