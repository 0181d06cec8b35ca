use vere_imap::client::{ClientLimits, Namespace};
use vere_ports::mail_accounts::{Answer, Fault, Part, Request, RequestId, UidRange};

use super::*;
use crate::task;

/// A session after the greeting of a server with these capabilities.
fn begun(capabilities: &str) -> Session {
    let own = Namespace {
        prefix: Vec::new(),
        delimiter: Some('/'),
    };
    let mut session = Session::new(
        Client::new(ClientLimits::default()),
        Folder::new(&["V".to_owned()], &own),
    );
    let greeting = format!("* PREAUTH [CAPABILITY {capabilities}] hello\r\n");
    session.input(greeting.as_bytes()).expect("a greeting");
    session
}

fn ask(session: &mut Session, id: u64, request: Request) {
    session.begin(task::of(RequestId(id), request).expect("no watch"));
}

fn sent(session: &mut Session) -> String {
    let mut all = String::new();
    while !session.client().output().is_empty() {
        let octets = session.client().output().to_vec();
        all += &String::from_utf8_lossy(&octets);
        session.client().sent(octets.len());
    }
    all
}

fn say(session: &mut Session, said: &str) -> Answers {
    session.input(said.as_bytes()).expect("a session");
    session.answers()
}

fn read(mailbox: &str, uid: u32) -> Request {
    Request::Read {
        mailbox: mailbox.to_owned(),
        uid_validity: 5,
        uid,
        parts: vec![Part {
            offset: 3,
            length: 2,
        }],
    }
}

fn list(mailbox: &str, last: Option<u32>) -> Request {
    Request::List {
        mailbox: mailbox.to_owned(),
        range: UidRange { first: 1, last },
    }
}

fn remove(mailbox: &str, uids: &[u32]) -> Request {
    Request::Remove {
        mailbox: mailbox.to_owned(),
        uid_validity: 5,
        uids: uids.to_vec(),
    }
}

const OPEN: &str = "* 9 EXISTS\r\n* OK [UIDVALIDITY 5] x\r\n* OK [UIDNEXT 10] x\r\n";

#[test]
fn reads_share_a_selection_and_are_told_apart_by_uid() {
    let mut session = begun("UIDPLUS");
    ask(&mut session, 1, read("a", 7));
    ask(&mut session, 2, read("a", 8));
    assert_eq!(
        sent(&mut session),
        "c1 SELECT \"V/a\"\r\nc2 UID FETCH 7:7 (UID BODY.PEEK[TEXT]<3.2>)\r\n\
         c3 UID FETCH 8:8 (UID BODY.PEEK[TEXT]<3.2>)\r\n"
    );
    assert!(say(&mut session, &format!("{OPEN}c1 OK [READ-WRITE] open\r\n")).is_empty());
    let said = "* 8 FETCH (UID 8 BODY[TEXT]<3> \"bb\")\r\n* 7 FETCH (UID 7 BODY[TEXT]<3> \"aa\")\r\n\
                c2 OK\r\nc3 OK\r\n";
    let part = |octets: &'static str| Ok(Answer::Read(vec![octets.into()]));
    assert_eq!(
        say(&mut session, said),
        [(RequestId(1), part("aa")), (RequestId(2), part("bb"))]
    );
    // A mail behind UIDNEXT of the selection needs another look at the mailbox.
    ask(&mut session, 3, read("a", 9));
    ask(&mut session, 4, read("a", 10));
    assert_eq!(
        sent(&mut session),
        "c4 UID FETCH 9:9 (UID BODY.PEEK[TEXT]<3.2>)\r\nc5 SELECT \"V/a\"\r\n\
         c6 UID FETCH 10:10 (UID BODY.PEEK[TEXT]<3.2>)\r\n"
    );
    let said = format!("c4 OK\r\n{OPEN}c5 OK\r\nc6 OK\r\n");
    let gone = |id| (RequestId(id), Ok(Answer::Gone));
    assert_eq!(say(&mut session, &said), [gone(3), gone(4)]);
    // Asked while the mailbox is being opened for another request: once more, since the mail may be newer.
    let mut session = begun("UIDPLUS");
    ask(&mut session, 1, read("a", 9));
    ask(&mut session, 2, read("a", 10));
    let said = format!("{OPEN}c1 OK\r\nc2 OK\r\nc3 OK\r\n");
    assert_eq!(say(&mut session, &said), [gone(1)]);
    assert!(sent(&mut session).contains("c4 SELECT \"V/a\"\r\nc5 UID FETCH 10:10 "));
    let said = format!("{OPEN}c4 OK\r\nc5 OK\r\n");
    assert_eq!(say(&mut session, &said), [gone(2)]);
}

/// Dovecot 2.3 does so: the end of an APPEND waits until no FETCH is under way, and further FETCHes are begun meanwhile.
#[test]
fn mails_that_come_before_the_end_of_an_earlier_append_are_read() {
    let mut session = begun("UIDPLUS");
    ask(&mut session, 1, read("a", 7));
    let append = Request::Append {
        mailbox: "a".to_owned(),
        mail: "x: y\r\n\r\n".into(),
        alone: true,
    };
    ask(&mut session, 2, append);
    ask(&mut session, 3, read("a", 8));
    sent(&mut session);
    say(&mut session, &format!("{OPEN}c1 OK [READ-WRITE] open\r\n"));
    let said = "* 7 FETCH (UID 7 BODY[TEXT]<3> \"aa\")\r\nc2 OK\r\n\
                * 8 FETCH (UID 8 BODY[TEXT]<3> \"bb\")\r\n* 10 EXISTS\r\n\
                c3 OK [APPENDUID 5 10] stored\r\nc4 OK\r\n";
    let part = |octets: &'static str| Ok(Answer::Read(vec![octets.into()]));
    assert_eq!(
        say(&mut session, said),
        [
            (RequestId(1), part("aa")),
            (RequestId(2), Ok(Answer::Appended(Some((5, 10))))),
            (RequestId(3), part("bb")),
        ]
    );
}

#[test]
fn the_text_of_a_whole_mail_begins_behind_the_empty_line() {
    let whole = |mut request| {
        if let Request::Read { parts, .. } = &mut request {
            parts.clear();
        }
        request
    };
    for (said, text) in [
        ("{14}\r\na: b\r\n\r\ntext\r\n", "text\r\n"),
        ("{11}\r\na: b\n\ntext\n", "text\n"),
        ("{8}\r\n\r\ntext\r\n", "text\r\n"),
        ("{10}\r\na: b\r\nc: d", ""),
        ("\"text\"", ""),
        ("NIL", ""),
    ] {
        let mut session = begun("UIDPLUS");
        ask(&mut session, 1, whole(read("a", 7)));
        assert!(sent(&mut session).ends_with("c2 UID FETCH 7:7 (UID BODY.PEEK[])\r\n"));
        say(&mut session, &format!("{OPEN}c1 OK [READ-WRITE] open\r\n"));
        let answers = say(
            &mut session,
            &format!("* 7 FETCH (UID 7 BODY[] {said})\r\nc2 OK\r\n"),
        );
        let expected = Ok(Answer::Read(vec![text.into()]));
        assert_eq!(answers, [(RequestId(1), expected)], "{said:?}");
    }
    // A part beside the message leaves in doubt which literal is whose.
    let mut session = begun("UIDPLUS");
    ask(&mut session, 1, whole(read("a", 7)));
    say(&mut session, &format!("{OPEN}c1 OK [READ-WRITE] open\r\n"));
    let said = "* 7 FETCH (UID 7 BODY[TEXT] {1}\r\na BODY[] {1}\r\nb)\r\nc2 OK\r\n";
    assert_eq!(say(&mut session, said), [(RequestId(1), Ok(Answer::Gone))]);
}

#[test]
fn a_removal_begins_when_the_mailbox_is_known_and_holds_the_mailbox() {
    let mut session = begun("UIDPLUS");
    ask(&mut session, 1, remove("a", &[7, 8]));
    ask(&mut session, 2, list("b", Some(9)));
    ask(&mut session, 3, read("a", 4));
    // The listing of another mailbox waits, the read does not.
    let begin = "c1 SELECT \"V/a\"\r\nc2 UID FETCH 4:4 (UID BODY.PEEK[TEXT]<3.2>)\r\n";
    assert_eq!(sent(&mut session), begin);
    say(&mut session, &format!("{OPEN}c1 OK [READ-WRITE] open\r\n"));
    assert_eq!(
        sent(&mut session),
        "c3 UID STORE 7:8 +FLAGS.SILENT (\\Deleted)\r\nc4 UID EXPUNGE 7:8\r\n"
    );
    let answers = say(&mut session, "c2 OK\r\nc3 OK\r\n* 7 EXPUNGE\r\nc4 OK\r\n");
    assert_eq!(answers.len(), 2);
    assert!(answers.contains(&(RequestId(1), Ok(Answer::Removed))));
    assert!(sent(&mut session).starts_with("c5 SELECT \"V/b\"\r\nc6 UID FETCH 1:9 "));
    // Without UIDPLUS, mails that others marked stay.
    let mut session = begun("IMAP4rev1");
    ask(&mut session, 1, remove("a", &[7]));
    say(&mut session, &format!("{OPEN}c1 OK [READ-WRITE] open\r\n"));
    say(&mut session, "c2 OK\r\n");
    assert!(sent(&mut session).ends_with("c3 UID SEARCH DELETED\r\n"));
    let answers = say(&mut session, "* SEARCH 3 7\r\nc3 OK\r\n");
    assert!(
        matches!(answers[..], [(_, Err(Fault::Refused(_)))]),
        "{answers:?}"
    );
    assert_eq!(sent(&mut session), "");
    // A mailbox that takes no change.
    let mut session = begun("UIDPLUS");
    ask(&mut session, 1, remove("a", &[7]));
    let answers = say(&mut session, &format!("{OPEN}c1 OK [READ-ONLY] open\r\n"));
    assert!(
        matches!(answers[..], [(_, Err(Fault::ReadOnly(_)))]),
        "{answers:?}"
    );
}

#[test]
fn a_refused_mailbox_is_looked_up() {
    for (exists, answers) in [("", true), ("* LIST () \"/\" V/a\r\n", false)] {
        let mut session = begun("UIDPLUS");
        ask(&mut session, 1, list("a", None));
        let refused = "c1 NO cannot\r\nc2 BAD no mailbox selected\r\n";
        assert!(say(&mut session, refused).is_empty());
        assert!(sent(&mut session).ends_with("c3 LIST \"\" \"V/a\"\r\n"));
        let end = say(&mut session, &format!("{exists}c3 OK\r\n"));
        let none = Answer::Listed {
            uid_validity: 0,
            uid_next: 0,
            mails: Vec::new(),
        };
        let expected = match answers {
            true => Ok(none),
            false => Err(Fault::Refused("cannot".to_owned())),
        };
        assert_eq!(end, [(RequestId(1), expected)]);
    }
}

#[test]
fn literals_need_a_reason() {
    let mut session = begun("UIDPLUS");
    ask(&mut session, 1, list("a", None));
    let said = "* 1 FETCH (UID 1 BODY[TEXT] {300000}\r\n";
    assert!(matches!(
        session.input(said.as_bytes()),
        Err(SessionEnd::Literal(300_000))
    ));
    let mut session = begun("UIDPLUS");
    ask(&mut session, 1, read("a", 1));
    assert!(session.input(said.as_bytes()).is_ok());
    let long = "* 1 FETCH (UID 1 BODY[TEXT] {99999999}\r\n";
    let mut session = begun("UIDPLUS");
    ask(&mut session, 1, read("a", 1));
    assert!(session.input(long.as_bytes()).is_err());
    let mut session = begun("UIDPLUS");
    assert!(session.input(b"* BYE x\r\n").is_err());
}

#[test]
fn a_mailbox_without_uidvalidity_is_no_absent_one() {
    for said in ["", "* OK [UIDVALIDITY 0] x\r\n"] {
        let mut session = begun("UIDPLUS");
        ask(&mut session, 1, list("a", None));
        ask(&mut session, 2, read("a", 7));
        let answers = say(&mut session, &format!("{said}c1 OK\r\nc2 OK\r\nc3 OK\r\n"));
        let are_refused = answers.iter().all(|(_, answer)| {
            matches!(answer, Err(Fault::Refused(text)) if text.contains("expected UIDVALIDITY"))
        });
        assert!(answers.len() == 2 && are_refused, "{answers:?}");
    }
}

/// The octets that a session takes of a response said again and again.
fn taken(session: &mut Session, said: &str) -> usize {
    let mut octets = 0;
    while octets < 4 * UNASKED_MAX {
        match session.input(said.as_bytes()) {
            Ok(()) => octets += said.len(),
            Err(SessionEnd::Unasked) => return octets,
            Err(other) => panic!("{other}"),
        }
    }
    panic!("{octets} octets");
}

#[test]
fn a_server_that_talks_without_an_end_is_given_up() {
    let long = "x".repeat(1_000);
    for (request, said) in [
        (Request::Quota, format!("* OK {long}\r\n")),
        (Request::Quota, format!("* QUOTA {long} (STORAGE 1 2)\r\n")),
        (Request::Mailboxes, format!("* LIST () \"/\" V/{long}\r\n")),
        (Request::Mailboxes, format!("* LIST () \"/\" W/{long}\r\n")),
        (list("a", None), format!("* SEARCH{}\r\n", " 7".repeat(500))),
        (
            list("a", None),
            format!(
                "* 1 FETCH (UID 7 RFC822.SIZE 1 BODY[HEADER.FIELDS (SUBJECT)] \"s: {long}\")\r\n"
            ),
        ),
        (
            read("a", 7),
            format!("* 1 FETCH (UID 7 BODY[TEXT]<3> {{1000}}\r\n{long})\r\n"),
        ),
    ] {
        let mut session = begun("QUOTA");
        ask(&mut session, 1, request);
        let octets = taken(&mut session, &said);
        // 10,000 mailboxes and quota roots of 1,000 octets.
        assert!(octets <= UNASKED_MAX + (11 << 20), "{said:.40}: {octets}");
    }
    // The end of a command, or a response that was asked for, is a reason to go on.
    let mut session = begun("UIDPLUS");
    ask(&mut session, 1, list("a", None));
    say(&mut session, &format!("{OPEN}c1 OK [READ-WRITE] open\r\n"));
    let noise = format!("* OK {}\r\n", "x".repeat(1 << 19)).repeat(20);
    say(&mut session, &noise);
    say(
        &mut session,
        "* 1 FETCH (UID 7 RFC822.SIZE 1 BODY[HEADER.FIELDS (SUBJECT)] \"\")\r\n",
    );
    say(&mut session, &noise);
    let answers = say(&mut session, "c2 OK\r\n");
    assert!(matches!(answers[..], [(_, Ok(Answer::Listed { .. }))]));
}

/// A server whose limit makes a request ask for a mail at a time, in a mailbox of 4,294,967,294 UIDs.
#[test]
fn a_mailbox_in_tiny_slices_has_an_end() {
    let find = Request::Find {
        mailbox: "a".to_owned(),
        word: "i00".to_owned(),
    };
    for (capabilities, request, code) in [
        ("", list("a", None), "[MESSAGELIMIT 1] "),
        ("MESSAGELIMIT=1", list("a", None), ""),
        ("MESSAGELIMIT=1", find, ""),
    ] {
        let mut session = begun(capabilities);
        ask(&mut session, 1, request);
        let open = "* OK [UIDVALIDITY 5] x\r\n* OK [UIDNEXT 4294967295] x\r\nc1 OK\r\n";
        let mut answers = say(&mut session, open);
        let mut commands = 1;
        while answers.is_empty() {
            commands += 1;
            assert!(commands < 100_000);
            answers = say(&mut session, &format!("c{commands} OK {code}done\r\n"));
            sent(&mut session);
        }
        assert!(
            matches!(&answers[..], [(_, Err(Fault::Refused(text)))] if text.contains("commands")),
            "{answers:?}"
        );
    }
}

#[test]
fn a_search_finds_no_more_mails_than_a_mailbox_has() {
    let mut session = begun("MESSAGELIMIT=9");
    let find = Request::Find {
        mailbox: "a".to_owned(),
        word: "i00".to_owned(),
    };
    ask(&mut session, 1, find);
    let open = "* OK [UIDVALIDITY 5] x\r\n* OK [UIDNEXT 4294967295] x\r\nc1 OK\r\n";
    let mut answers = say(&mut session, open);
    let found = format!("* SEARCH{}\r\n", " 7".repeat(500_000));
    let mut commands = 1;
    while answers.is_empty() {
        commands += 1;
        answers = say(&mut session, &format!("{found}c{commands} OK done\r\n"));
    }
    assert!(commands < 5, "{commands}");
    assert!(
        matches!(answers[..], [(_, Err(Fault::Refused(_)))]),
        "{answers:?}"
    );
}

/// Without UIDPLUS, a server that names further deleted mails and takes them back has none of them removed.
#[test]
fn a_deleted_mail_of_others_is_not_forgotten() {
    let mut session = begun("IMAP4rev1");
    ask(&mut session, 1, remove("a", &[7]));
    say(&mut session, &format!("{OPEN}c1 OK [READ-WRITE] open\r\n"));
    say(&mut session, "c2 OK\r\n");
    let said = "* SEARCH 3 7\r\n* SEARCH 7\r\n* SEARCH\r\nc3 OK\r\n";
    let answers = say(&mut session, said);
    assert!(
        matches!(answers[..], [(_, Err(Fault::Refused(_)))]),
        "{answers:?}"
    );
}
