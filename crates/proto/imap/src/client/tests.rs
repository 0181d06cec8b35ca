use super::*;
use vere_sasl::Mechanism;
use vere_sasl::client::Credentials;

const GREETING: &str = "* OK [CAPABILITY IMAP4rev1 LITERAL+ SASL-IR] hello\r\n";

/// Gives octets in pieces and tells all events.
fn feed(client: &mut Client, octets: &str, piece: usize) -> Vec<String> {
    let mut events = Vec::new();
    for piece in octets.as_bytes().chunks(piece) {
        let mut rest = piece;
        while !rest.is_empty() {
            let (taken, event) = client.input(rest).unwrap();
            rest = &rest[taken..];
            events.extend(event.map(|event| format!("{event:?}")));
        }
    }
    events
}

fn sent(client: &mut Client) -> String {
    let mut all = String::new();
    while !client.output().is_empty() {
        let octets = client.output().len();
        all += std::str::from_utf8(client.output()).unwrap();
        client.sent(octets);
    }
    all
}

fn begun(greeting: &str) -> Client {
    let mut client = Client::new(ClientLimits::default());
    assert_eq!(feed(&mut client, greeting, 3).len(), 1);
    client
}

fn to(mailbox: &str) -> AppendTo {
    AppendTo {
        mailbox: mailbox.as_bytes().to_vec(),
        flags: vec!["\\Seen".to_owned()],
        date: None,
        binary: false,
    }
}

#[test]
fn messages_are_given_in_pieces_without_waiting() {
    let mut client = begun(GREETING);
    let token = client.append(&to("a\"b"), 5);
    client.append_octets(b"abc");
    client.append_octets(b"defgh");
    let other = client.send(&Command::Noop);
    assert_eq!(
        sent(&mut client),
        "c1 APPEND \"a\\\"b\" (\\Seen) {5+}\r\nabcde\r\nc2 NOOP\r\n"
    );
    assert_eq!(client.under_way(), 2);
    let said = "* 3 EXISTS\r\nc1 OK [APPENDUID 7 12] kept\r\nc2 OK\r\n";
    let events = feed(&mut client, said, 1);
    assert_eq!(events[0], "Said(Exists(3))");
    assert!(events[1].contains("AppendUid { uid_validity: 7, uids: [(12, 12)] }"));
    assert!(events[1].contains(&format!("{token:?}")) && events[2].contains(&format!("{other:?}")));
    assert_eq!(client.under_way(), 0);
}

#[test]
fn literals_wait_for_leave_where_they_must() {
    let mut client = begun("* OK hello\r\n");
    client.append(&to("x"), 2);
    client.append_octets(b"ab");
    client.send(&Command::Noop);
    assert_eq!(sent(&mut client), "c1 APPEND \"x\" (\\Seen) {2}\r\n");
    assert!(feed(&mut client, "+ go\r\n", 1).is_empty());
    assert_eq!(sent(&mut client), "ab\r\nc2 NOOP\r\n");
    // What is refused is not sent, nor what comes of it later.
    client.append(&to("y"), 2);
    client.append_octets(b"a");
    assert_eq!(sent(&mut client), "c3 APPEND \"y\" (\\Seen) {2}\r\n");
    assert_eq!(
        feed(&mut client, "c2 OK\r\nc3 NO [TRYCREATE] none\r\n", 2).len(),
        2
    );
    client.append_octets(b"b");
    client.send(&Command::Noop);
    assert_eq!(sent(&mut client), "c4 NOOP\r\n");
    // LITERAL- lets small ones go.
    let mut client = begun("* PREAUTH [CAPABILITY LITERAL-] hello\r\n");
    client.append(&to("x"), 4_097);
    assert!(sent(&mut client).ends_with("{4097}\r\n"));
    assert!(client.input(b"+\r\n").is_ok());
    client.append_octets(&[b'x'; 4_097]);
    client.append(&to("x"), 4_096);
    assert!(sent(&mut client).ends_with("{4096+}\r\n"));
}

#[test]
fn several_messages_are_given_by_one_command() {
    let mut client = begun(GREETING);
    client.append_several(&to("x"), 2, 3);
    client.append_octets(b"ab");
    // What is between two messages is not for octets.
    client.append_octets(b"c");
    let mut other = to("elsewhere");
    (other.flags, other.binary) = (Vec::new(), true);
    client.append_next(&other, 1);
    // Nor is the next one begun before this one is whole.
    client.append_next(&other, 9);
    client.append_octets(b"\0");
    client.append_next(&to("x"), 0);
    client.append_next(&to("x"), 7);
    client.send(&Command::Noop);
    assert_eq!(
        sent(&mut client),
        "c1 APPEND \"x\" (\\Seen) {2+}\r\nab () ~{1+}\r\n\0 (\\Seen) {0+}\r\n\r\nc2 NOOP\r\n"
    );
    let said = "c1 OK [APPENDUID 7 3,5:6] kept\r\n";
    let events = feed(&mut client, said, 5);
    assert!(events[0].contains("uids: [(3, 3), (5, 6)]"), "{events:?}");
    // Refused where it waits for leave: what is behind goes nowhere.
    let mut client = begun("* OK hello\r\n");
    client.append_several(&to("x"), 1, 2);
    assert_eq!(sent(&mut client), "c1 APPEND \"x\" (\\Seen) {1}\r\n");
    feed(&mut client, "+\r\n", 1);
    client.append_octets(b"a");
    client.append_next(&to("x"), 1);
    assert!(sent(&mut client).ends_with("a (\\Seen) {1}\r\n"));
    feed(&mut client, "c1 NO [OVERQUOTA] full\r\n", 3);
    client.append_octets(b"b");
    client.append_next(&to("x"), 1);
    client.send(&Command::Noop);
    assert_eq!(sent(&mut client), "c2 NOOP\r\n");
}

#[test]
fn passwords_that_cannot_be_quoted_are_literals() {
    let mut client = begun("* OK hello\r\n");
    client.send(&Command::Login(Credentials::new("me", "pä\"ss")));
    assert_eq!(sent(&mut client), "c1 LOGIN \"me\" {6}\r\n");
    feed(&mut client, "+\r\n", 1);
    assert_eq!(sent(&mut client), "pä\"ss\r\n");
}

#[test]
fn large_literals_are_passed_on() {
    let body = "x".repeat(5_000);
    let said = format!(
        "* 2 FETCH (UID 9 FLAGS (\\Seen $x) INTERNALDATE \"17-Jul-1996 02:44:25 -0700\" \
         BODY[] {{5000}}\r\n{body} RFC822.SIZE 5000)\r\n* 3 FETCH (UID 10 BODY[] {{2}}\r\nab)\r\n"
    );
    for piece in [1, 999, 100_000] {
        let mut client = begun(GREETING);
        let mut rest = said.as_bytes();
        let (mut passed, mut fetched, mut announced) = (0, Vec::new(), 0);
        while !rest.is_empty() {
            let part = &rest[..piece.min(rest.len())];
            let (taken, event) = client.input(part).unwrap();
            rest = &rest[taken..];
            match event {
                Some(Event::Literal(octets)) => announced += octets,
                Some(Event::Piece(piece)) => passed += piece.len(),
                Some(Event::Said(Response::Fetched(one))) => fetched.push(*one),
                _ => {}
            }
        }
        assert_eq!((passed, announced), (5_000, 5_000));
        assert_eq!(fetched[0].body, Some(Value::PassedOn(5_000)));
        assert_eq!((fetched[0].uid, fetched[0].size), (Some(9), Some(5_000)));
        assert_eq!(fetched[0].flags.as_deref().unwrap(), ["\\Seen", "$x"]);
        assert_eq!(fetched[0].date.unwrap().moment().seconds(), 837_596_665);
        assert_eq!(fetched[1].body, Some(Value::String(b"ab".to_vec())));
    }
}

#[test]
fn a_server_that_did_not_prove_itself_is_not_believed() {
    let credentials = Credentials::new("tim", "secret");
    let nonces = vere_sasl::NonceSource::new([7; 32]);
    let begin = |mechanism| Exchange::begin(mechanism, &credentials, nonces.next()).unwrap();
    let mut client = begun(GREETING);
    let (exchange, initial) = begin(Mechanism::Plain);
    client.authenticate("PLAIN", exchange, initial);
    assert_eq!(
        sent(&mut client),
        "c1 AUTHENTICATE PLAIN AHRpbQBzZWNyZXQ=\r\n"
    );
    let events = feed(&mut client, "c1 OK in\r\n", 1);
    assert!(events[0].contains("condition: Ok"), "{events:?}");
    let (exchange, initial) = begin(Mechanism::ScramSha256);
    client.authenticate("SCRAM-SHA-256", exchange, initial);
    let events = feed(&mut client, "c2 OK in\r\n", 1);
    assert!(events[0].contains("condition: No"), "{events:?}");
    // Without SASL-IR the first response waits to be asked for.
    let mut client = begun("* OK hello\r\n");
    let (exchange, initial) = begin(Mechanism::Plain);
    client.authenticate("PLAIN", exchange, initial);
    assert_eq!(sent(&mut client), "c1 AUTHENTICATE PLAIN\r\n");
    feed(&mut client, "+ \r\n", 1);
    assert_eq!(sent(&mut client), "AHRpbQBzZWNyZXQ=\r\n");
    assert_eq!(feed(&mut client, "c1 NO wrong\r\n", 1).len(), 1);
}

#[test]
fn reads_what_servers_say_of_mailboxes() {
    let mut client = begun(GREETING);
    let events = feed(
        &mut client,
        "* LIST (\\HasNoChildren \\Sent) \"/\" \"Sent [x\"\r\n* LIST () NIL INBOX\r\n\
         * LIST () \".\" a[b\r\n* STATUS {2}\r\nab (MESSAGES 3 UIDNEXT 9)\r\n* SEARCH 3 4 (MODSEQ 9)\r\n\
         * NAMESPACE ((\"INBOX.\" \".\")(\"#x\" NIL)) NIL NIL\r\n* NAMESPACE NIL ((\"~\" \"/\")) NIL\r\n\
         * OK [UIDNEXT 12] next\r\n* 9 RECENT\r\n* FLAGS (\\Seen)\r\n",
        4,
    );
    let wanted = [
        "Listed { attributes: [\"\\\\HasNoChildren\", \"\\\\Sent\"], delimiter: Some('/'), name: [83, 101",
        "Listed { attributes: [], delimiter: None, name: [73, 78, 66, 79, 88]",
        "Listed { attributes: [], delimiter: Some('.'), name: [97, 91, 98]",
        "MailboxStatus { name: [97, 98], numbers: [(\"MESSAGES\", 3), (\"UIDNEXT\", 9)]",
        "Found([3, 4])",
        "Namespace(Some(Namespace { prefix: [73, 78, 66, 79, 88, 46], delimiter: Some('.') }))",
        "Namespace(None)",
        "code: Some(UidNext(12))",
        "Said(Other)",
        "Said(Other)",
    ];
    assert_eq!(events.len(), wanted.len());
    for (event, wanted) in events.iter().zip(wanted) {
        assert!(event.contains(wanted), "{event} and not {wanted}");
    }
}

#[test]
fn what_is_out_of_place_ends_the_session() {
    for said in [
        "c9 OK\r\n",
        "x OK\r\n",
        "+ go\r\n",
        "c1 MAYBE\r\n",
        "* 1 FETCH x\r\n",
        "* NAMESPACE (\"\" \"/\") NIL NIL\r\n",
    ] {
        let mut client = begun(GREETING);
        assert!(client.input(said.as_bytes()).is_err(), "{said}");
    }
    let mut client = Client::new(ClientLimits::default());
    assert!(client.input(b"* 1 EXISTS\r\n").is_err());
}

#[test]
fn commands_of_a_file_system() {
    let mut client = begun("* OK [CAPABILITY LITERAL+ APPENDLIMIT=35651584 UIDPLUS] hello\r\n");
    assert_eq!(client.capability_value("APPENDLIMIT"), Some("35651584"));
    assert_eq!(client.capability_value("UIDPLUS"), None);
    let items = String::from("(UID BODY.PEEK[TEXT]<0.64> BODY.PEEK[TEXT]<974.9>)");
    let fetch = Command::Fetch {
        first: 7,
        last: Some(7),
        items: items.into(),
    };
    for command in [
        fetch,
        Command::SearchSubject(b"i5d41".to_vec()),
        Command::SearchDeleted,
        Command::StoreDeleted("7,9:12".to_owned()),
        Command::ExpungeSet("7".to_owned()),
        Command::Expunge,
        Command::QuotaRoot(b"INBOX".to_vec()),
        Command::ListMatching(b"VereFS/*".to_vec()),
        Command::Delete(b"x".to_vec()),
        Command::StatusOf(b"x".to_vec(), "(UIDNEXT)"),
        Command::Enable("CONDSTORE"),
        Command::Id,
    ] {
        client.send(&command);
    }
    assert_eq!(
        sent(&mut client),
        "c1 UID FETCH 7:7 (UID BODY.PEEK[TEXT]<0.64> BODY.PEEK[TEXT]<974.9>)\r\n\
         c2 UID SEARCH HEADER SUBJECT \"i5d41\"\r\nc3 UID SEARCH DELETED\r\n\
         c4 UID STORE 7,9:12 +FLAGS.SILENT (\\Deleted)\r\nc5 UID EXPUNGE 7\r\nc6 EXPUNGE\r\n\
         c7 GETQUOTAROOT \"INBOX\"\r\nc8 LIST \"\" \"VereFS/*\"\r\nc9 DELETE \"x\"\r\n\
         c10 STATUS \"x\" (UIDNEXT)\r\nc11 ENABLE CONDSTORE\r\nc12 ID NIL\r\n"
    );
    let said = "* 1 FETCH (UID 7 BODY[TEXT]<0> {3}\r\nab) BODY[TEXT]<974> \"\" BODY[HEADER.FIELDS (SUBJECT)] NIL)\r\n\
                * QUOTA \"User quota\" (STORAGE 10 512 message 3 9)\r\n* QUOTA \"ROOT\"\r\nc1 NO [LIMIT a 9] no\r\n";
    for piece in [1, 1_000] {
        let mut client = begun(GREETING);
        client.send(&Command::Noop);
        let events = feed(&mut client, said, piece);
        let string = |octets: &str| format!("value: String({:?})", octets.as_bytes());
        for wanted in [
            format!(
                "Section {{ name: \"BODY[TEXT]\", origin: Some(0), {}",
                string("ab)")
            ),
            format!(
                "Section {{ name: \"BODY[TEXT]\", origin: Some(974), {}",
                string("")
            ),
            "name: \"BODY[HEADER.FIELDS (SUBJECT)]\", origin: None, value: Nil".to_owned(),
        ] {
            assert!(
                events[0].contains(&wanted),
                "{} and not {wanted}",
                events[0]
            );
        }
        assert!(
            events[1].contains("[(\"STORAGE\", 10, 512), (\"MESSAGE\", 3, 9)]"),
            "{events:?}"
        );
        // Courier, of a root without limits.
        assert!(events[2].contains("Quota { resources: [] }"), "{events:?}");
        assert!(events[3].contains("Other(\"LIMIT a 9\")"), "{events:?}");
    }
    let code = Code::Other("limit a 9".to_owned());
    assert_eq!(
        (code.values("LIMIT"), code.values("LI")),
        (Some("a 9"), None)
    );
}

#[test]
fn idle_ends_before_the_next_command() {
    let mut client = begun(GREETING);
    let token = client.idle();
    assert_eq!(sent(&mut client), "c1 IDLE\r\n");
    client.send(&Command::Noop);
    assert_eq!(sent(&mut client), "");
    assert!(feed(&mut client, "+ idling\r\n", 1).is_empty());
    assert_eq!(sent(&mut client), "DONE\r\nc2 NOOP\r\n");
    let events = feed(&mut client, "* 4 EXISTS\r\nc1 OK\r\nc2 OK\r\n", 9);
    assert!(events[1].contains(&format!("{token:?}")), "{events:?}");
    // Refused: no DONE is sent.
    client.idle();
    client.end_idle();
    assert_eq!(sent(&mut client), "c3 IDLE\r\n");
    feed(&mut client, "c3 BAD what\r\n", 9);
    client.send(&Command::Noop);
    assert_eq!(sent(&mut client), "c4 NOOP\r\n");
}

#[test]
fn long_messages_are_sent_from_the_octets_of_the_host() {
    let mut client = begun(GREETING);
    let mail = Bytes::from(vec![b'x'; 100_000]);
    client.append(&to("x"), 100_000);
    client.append_bytes(mail.clone());
    client.append(&to("x"), 2);
    client.append_bytes(Bytes::from_static(b"abc"));
    assert!(client.output().ends_with(b"{100000+}\r\n"));
    let slices: Vec<usize> = client
        .output_slices(3)
        .iter()
        .map(|slice| slice.len())
        .collect();
    assert_eq!(slices, [client.output().len(), 100_000, 2]);
    let head = client.output().len();
    assert_eq!(client.unsent(), head + 100_000 + 2 + (head - 5) + 4);
    client.sent(head);
    assert_eq!(client.output().as_ptr(), mail.as_ptr());
    client.sent(99_999);
    assert_eq!(client.output(), b"x");
    assert_eq!(&*client.output_slices(9)[0], b"x");
    assert!(sent(&mut client).ends_with("{2+}\r\nab\r\n"));
    assert_eq!(client.unsent(), 0);
}
