//! A session that is cut says the same as a session that is not.

use std::sync::Arc;
use std::time::Duration;

use vere_units::Timestamp;

use super::super::{Host, codes};
use super::cases::{Case, all};
use crate::server::{Answer, Handover, Message, Server, Step, Tally};

/// Where a host hands its session over.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::server) enum Cut {
    Never,
    /// At the first accepted recipient, after so many octets of the replies were sent.
    First(usize),
    /// Behind each answer while a recipient is accepted.
    Each,
    /// Wherever the machine allows; everywhere else the session comes back.
    Anywhere,
}

pub(in super::super) fn between_steps(host: &mut Host) {
    if host.cut == Cut::Anywhere {
        try_to_cut(host);
    }
}

pub(in super::super) fn behind_answer(host: &mut Host) {
    let sent = match host.cut {
        Cut::First(sent) if host.cuts == 0 => sent,
        Cut::Each => 0,
        Cut::Anywhere => return try_to_cut(host),
        Cut::First(_) | Cut::Never => return,
    };
    if !host.server.has_recipient() {
        return;
    }
    let sent = sent.min(host.server.output().len());
    host.sent.extend_from_slice(&host.server.output()[..sent]);
    host.server.sent(sent);
    let before = host.cuts;
    try_to_cut(host);
    assert_eq!(host.cuts, before + 1, "{:?}", host.server);
}

fn try_to_cut(host: &mut Host) {
    if host.server.check_hand_over().is_ok() {
        host.take_tally();
        take_notes(host);
    }
    let config = Arc::clone(&host.server.config);
    let other = Server::new(Arc::clone(&config), host.server.peer.clone(), host.now);
    let (helo, account) = (
        host.server.helo().cloned(),
        host.server.account().map(str::to_owned),
    );
    match std::mem::replace(&mut host.server, other).hand_over() {
        Ok(handover) => {
            let mut octets = Vec::new();
            handover.encode(&mut octets);
            let decoded = Handover::decode(&octets).unwrap();
            assert_eq!(decoded, handover);
            host.cuts += 1;
            host.server = Server::resume(config, decoded, host.now);
            assert_eq!(host.server.helo(), helo.as_ref());
            assert_eq!(host.server.account(), account.as_deref());
            assert!(host.server.has_recipient());
            assert_eq!(host.server.take_tally(), Tally::default(), "counted twice");
            assert!(host.server.take_notes().is_empty());
        }
        Err((server, _)) => host.server = *server,
    }
}

fn take_notes(host: &mut Host) {
    let notes = host.server.take_notes();
    let logins = notes.logins.iter().map(|login| format!("{login:?}"));
    host.noted.extend(logins);
    let refused = notes.refused.iter().map(|refused| format!("{refused:?}"));
    host.noted.extend(refused);
}

/// Everything that can be told about a session from outside.
#[derive(Debug, PartialEq)]
struct Outcome {
    sent: String,
    questions: Vec<String>,
    messages: Vec<Message>,
    closed: bool,
    tally: Tally,
    logins: Vec<String>,
    refused: Vec<String>,
    deadlines: Vec<Timestamp>,
}

/// A client whose pieces are cut in pieces of at most `size` octets, and once more at octet `split` of all.
fn run(case: &Case, cut: Cut, split: usize, size: usize) -> (Outcome, usize) {
    let mut host = Host::new(case.config.clone(), case.peer.clone());
    // A part of the replies may leave before the session is cut.
    host.sends_whole = false;
    host.cut = cut;
    let mut deadlines = Vec::new();
    let mut at = 0;
    for piece in case.pieces {
        let (before, behind) = piece
            .as_bytes()
            .split_at(split.saturating_sub(at).min(piece.len()));
        at += piece.len();
        for octets in before.chunks(size).chain(behind.chunks(size)) {
            host.now = host.now + Duration::from_secs(1);
            host.give(octets);
            deadlines.push(host.server.deadline());
            if std::mem::take(&mut host.start_tls) {
                host.server.tls_started(super::super::tls());
            }
        }
    }
    host.take_tally();
    take_notes(&mut host);
    let (logins, refused) = host
        .noted
        .into_iter()
        .partition(|noted| noted.starts_with("Login"));
    let outcome = Outcome {
        sent: String::from_utf8(host.sent).unwrap(),
        questions: host.questions,
        messages: host.messages,
        closed: host.closed,
        tally: host.tally,
        logins,
        refused,
        deadlines,
    };
    (outcome, host.cuts)
}

#[test]
fn a_session_cut_anywhere_says_the_same() {
    for case in all() {
        let octets: usize = case.pieces.iter().map(|piece| piece.len()).sum();
        let (whole, none) = run(&case, Cut::Never, 0, usize::MAX);
        assert_eq!(
            whole.messages.len(),
            case.messages,
            "{}: {}",
            case.name,
            whole.sent
        );
        assert_eq!((whole.closed, none), (case.closed, 0), "{}", case.name);
        for split in 0..=octets {
            let (plain, _) = run(&case, Cut::Never, split, usize::MAX);
            for cut in [Cut::First(0), Cut::Each, Cut::Anywhere] {
                let (outcome, cuts) = run(&case, cut, split, usize::MAX);
                assert_eq!(outcome, plain, "{}: {cut:?}, split at {split}", case.name);
                assert!(
                    cuts > 0 && (cuts == 1 || cut != Cut::First(0)),
                    "{}",
                    case.name
                );
            }
            // Octets behind STARTTLS, and of a client that does not wait, are seen only in the same piece.
            let behind = ["STARTTLS, closing", "before its turn"];
            if !behind.iter().any(|reply| whole.sent.contains(reply)) {
                assert_eq!(plain.sent, whole.sent, "{}: split at {split}", case.name);
            }
        }
    }
}

#[test]
fn octet_by_octet_it_is_the_same() {
    for case in all() {
        let (plain, _) = run(&case, Cut::Never, 0, 1);
        for cut in [Cut::First(0), Cut::Each, Cut::Anywhere] {
            let (outcome, cuts) = run(&case, cut, 0, 1);
            assert_eq!(outcome, plain, "{}: {cut:?}", case.name);
            assert!(cuts > 0);
        }
        let allowed = run(&case, Cut::Anywhere, 0, 1).1;
        assert!(allowed >= run(&case, Cut::Each, 0, 1).1, "{}", case.name);
    }
}

#[test]
fn replies_may_have_left_in_part() {
    for case in all() {
        let (plain, _) = run(&case, Cut::Never, 0, usize::MAX);
        for sent in 0..120 {
            let (outcome, cuts) = run(&case, Cut::First(sent), 0, usize::MAX);
            assert_eq!(outcome, plain, "{}: {sent} octets were sent", case.name);
            assert_eq!(cuts, 1);
        }
    }
}

/// Octets behind RCPT that came with it would run twice, or in the clear before and encrypted behind.
#[test]
fn nothing_behind_the_accepted_recipient_is_consumed() {
    const BEFORE: &[u8] = b"MAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\n";
    const BEHIND: [&[u8]; 5] = [
        b"DATA\r\nx\r\n.\r\nMAIL FROM:<s@s>\r\n",
        b"\nDATA\r\n",
        b"RCPT TO:<e@d>\r\n",
        b"BDAT 3 LAST\r\nxyz",
        b"STARTTLS\r\n",
    ];
    for behind in BEHIND {
        let mut host = Host::mx();
        host.say("EHLO x\r\n");
        let all = [BEFORE, behind].concat();
        let mail = host.server.input(&all, host.now);
        assert_eq!(&all[..mail], b"MAIL FROM:<a@b>\r\n");
        assert!(matches!(host.server.step(), Step::Ask(_)));
        host.server.answer(Answer::Policy(Ok(())), host.now);
        assert!(!host.server.has_recipient(), "no RCPT yet");
        let rest = &all[mail..];
        let rcpt = host.server.input(rest, host.now);
        let rest = &rest[rcpt..];
        assert_eq!(rest, behind);
        assert!(matches!(host.server.step(), Step::Ask(_)));
        assert!(!host.server.has_recipient(), "no answer yet");
        assert_eq!(host.server.input(rest, host.now), 0, "a question is open");
        host.server.answer(Answer::Policy(Ok(())), host.now);
        assert!(host.server.has_recipient());
        assert_eq!(host.server.lines.memory(), 0, "an octet behind RCPT");
        let config = Arc::clone(&host.server.config);
        let handover = host.server.hand_over().unwrap();
        host.server = Server::resume(config, handover, host.now);
        host.sends_whole = false;
        let replies = host.say(rest);
        let (first, rest) = replies.split_once("\r\n").unwrap();
        assert_eq!(first, "250 2.1.0 sender ok");
        assert_eq!(codes(rest)[0], "250 2.1.5");
    }
}
