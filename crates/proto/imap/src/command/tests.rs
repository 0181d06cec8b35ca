use proptest::prelude::*;

use super::*;
use crate::date::Day;
use crate::flags::SystemFlag;
use crate::set::SeqNumber;

fn ok(text: &str) -> Command {
    let parsed = parse(format!("a {text}").as_bytes(), false);
    assert_eq!(parsed.tag.as_deref(), Some("a"));
    parsed
        .command
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn error(text: &str) -> CommandError {
    match parse(format!("a {text}").as_bytes(), false).command {
        Ok(command) => panic!("{text}: {command:?}"),
        Err(error) => error,
    }
}

fn key(text: &str) -> SearchKey {
    match ok(&format!("SEARCH {text}")) {
        Command::Search(search) => search.key,
        other => panic!("{other:?}"),
    }
}

/// One command could else ask for a message some thousand times over.
#[test]
fn items_to_fetch_are_different_and_not_many() {
    let items = |items: &str| match ok(&format!("fetch 1:* ({items})")) {
        Command::Fetch(fetch) => fetch.items,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        items("ENVELOPE uid Envelope BODY[1] BODY[1] BODY[1]<0.9>").len(),
        4
    );
    let again = ["ENVELOPE"; 7_000].join(" ");
    assert_eq!(items(&again), [FetchItem::Envelope]);
    let different = |count: usize| {
        let items: Vec<_> = (0..count).map(|at| format!("BODY[]<{at}.1>")).collect();
        items.join(" ")
    };
    assert_eq!(items(&different(100)).len(), 100);
    let refused = error(&format!("fetch 1 ({})", different(101)));
    assert_eq!(refused.to_string(), "more than 100 items to fetch");
}

/// Each name is held against all of them.
#[test]
fn patterns_are_not_many_and_together_not_long() {
    let list = |patterns: usize, octets: usize| {
        let patterns = vec!["a".repeat(octets); patterns].join(" ");
        format!("list \"{}\" ({patterns})", "r".repeat(100))
    };
    assert!(matches!(ok(&list(16, 50)), Command::List(list) if list.patterns.len() == 16));
    assert_eq!(error(&list(17, 1)).to_string(), "more than 16 patterns");
    assert!(matches!(ok(&list(2, 1_000)), Command::List(_)));
    let refused = error(&list(3, 1_000)).to_string();
    assert!(refused.starts_with("more than 2500 octets"), "{refused}");
}

#[test]
fn tags_are_kept() {
    assert_eq!(parse(b"a]1.x noop", false).tag.as_deref(), Some("a]1.x"));
    for text in ["", " noop", "+ noop", "noop", "a+b noop", "* noop"] {
        assert_eq!(parse(text.as_bytes(), false).tag, None, "{text}");
    }
    assert_eq!(
        parse(b"GET / HTTP/1.1", false).command.unwrap_err(),
        CommandError::OtherProtocol
    );
}

#[test]
fn arguments_are_neither_missing_nor_left() {
    assert_eq!(error("nonsense"), CommandError::Unknown);
    assert_eq!(error("uid noop x"), CommandError::Unknown);
    for text in [
        "noop ",
        "noop x",
        "login tim",
        "login tim a b",
        "select",
        "select (",
        "list \"\"",
        "uid",
        "fetch",
        "fetch 1",
        "fetch 1 ()",
        "fetch 0 flags",
        "fetch 1: flags",
        "fetch 1 body[",
        "fetch 1 body[mime]",
        "fetch 1 body[0]",
        "fetch 1 body[]<0.0>",
        "store 1 flags",
        "store 1 +flag (\\seen)",
        "store 1 flags (\\recent)",
        "search",
        "search foo",
        "search on 1-1-1",
        "search not",
        "copy 1",
        "enable",
        "status inbox ()",
        "status inbox (x)",
        "append x \"1\" {1}\r\nx",
        "append x {2}\r\nx",
        "create x (use \\sent)",
        "list (recursivematch) \"\" *",
        "fetch 1 flags (vanished)",
        "select x (qresync (0 1))",
    ] {
        error(text);
    }
}

#[test]
fn strings_come_in_three_forms() {
    for text in [
        "login tim pass",
        "login \"tim\" \"pass\"",
        "login {3}\r\ntim {4+}\r\npass",
    ] {
        match ok(text) {
            Command::Login { user, password } => {
                assert_eq!((user.as_str(), password.expose().as_str()), ("tim", "pass"));
            }
            other => panic!("{other:?}"),
        }
    }
    match ok("login \"a\\\"b\\\\\" {0}\r\n") {
        Command::Login { user, password } => {
            assert_eq!((user.as_str(), password.expose().as_str()), ("a\"b\\", ""));
        }
        other => panic!("{other:?}"),
    }
    error("login \"a\\b\" x");
    error("login \"a x");
    error("login {5}\r\ntim x");
}

#[test]
fn mailbox_names_are_what_they_mean() {
    let name = |text: &str| match ok(&format!("subscribe {text}")) {
        Command::Subscribe(name) => name,
        other => panic!("{other:?}"),
    };
    assert_eq!(name("iNbOx"), "INBOX");
    assert_eq!(name("inbox/Work"), "INBOX/Work");
    assert_eq!(name("inboxes"), "inboxes");
    assert_eq!(name("\"Entw&APw-rfe\""), "Entwürfe");
    assert_eq!(name("\"Entwürfe\""), "Entwürfe");
    assert_eq!(error("subscribe a&b"), CommandError::NameEncoding);
    error("subscribe \"a\x07\"");
    assert_eq!(
        error(&format!("subscribe {}", "x".repeat(1_001))),
        CommandError::NameTooLong
    );
    let utf8 = parse(b"a subscribe \"a&b\"", true).command;
    assert!(matches!(utf8, Ok(Command::Subscribe(name)) if name == "a&b"));
}

#[test]
fn sets_are_read_as_written() {
    use SeqNumber::{Largest, Value};
    match ok("uid copy 5,*:3,7:9 x") {
        Command::Copy {
            uid, set, remove, ..
        } => {
            assert!(uid && !remove);
            let ranges = vec![
                (Value(5), Value(5)),
                (Largest, Value(3)),
                (Value(7), Value(9)),
            ];
            assert_eq!(set, SequenceSet::Ranges(ranges));
            assert_eq!(set.resolve(4).to_string(), "3:5,7:9");
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(
        ok("move $ x"),
        Command::Copy {
            set: SequenceSet::Saved,
            remove: true,
            ..
        }
    ));
}

#[test]
fn select_takes_parameters() {
    let select = |text: &str| match ok(text) {
        Command::Select(select) => select,
        other => panic!("{other:?}"),
    };
    assert!(select("select x (condstore)").condstore);
    let known = select("examine x (qresync (67890007 20050715194045000 41,43:211 (1:2 3:4)))");
    assert!(known.read_only);
    let qresync = known.qresync.unwrap();
    assert_eq!(
        (qresync.uid_validity, qresync.mod_seq),
        (67_890_007, 20_050_715_194_045_000)
    );
    assert_eq!(qresync.known.unwrap().to_string(), "41,43:211");
}

#[test]
fn list_takes_options() {
    match ok(
        "list (subscribed recursivematch) \"\" (\"INBOX\" \"a/%\") return (children status (messages size))",
    ) {
        Command::List(list) => {
            assert!(list.selection.unwrap().subscribed);
            assert_eq!(list.patterns, ["INBOX", "a/%"]);
            let returns = list.returns.unwrap();
            assert!(returns.children && !returns.subscribed);
            assert_eq!(returns.status, [StatusItem::Messages, StatusItem::Size]);
        }
        other => panic!("{other:?}"),
    }
    match ok("list \"\" %") {
        Command::List(list) => assert_eq!((list.selection, list.returns), (None, None)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn fetch_items_are_read() {
    match ok(
        "fetch 1:* (uid body.peek[1.2.header.fields (from \"to\")]<5.10> binary.size[2] rfc822.text)",
    ) {
        Command::Fetch(fetch) => {
            let section = Section {
                path: vec![1, 2],
                part: Part::Fields(vec!["from".to_owned(), "to".to_owned()]),
            };
            let partial = Some(Partial {
                first: 5,
                count: 10,
            });
            let items = [
                FetchItem::Uid,
                FetchItem::Section {
                    section,
                    partial,
                    peek: true,
                },
                FetchItem::BinarySize(vec![2]),
                FetchItem::Rfc822(Part::Text),
            ];
            assert_eq!(fetch.items, items);
            assert!(!fetch.items[1].sets_seen() && fetch.items[3].sets_seen());
        }
        other => panic!("{other:?}"),
    }
    match ok("uid fetch 1 full (changedsince 5 vanished)") {
        Command::Fetch(fetch) => {
            assert_eq!((fetch.changed_since, fetch.vanished), (Some(5), true));
            assert_eq!(fetch.items.len(), 5);
        }
        other => panic!("{other:?}"),
    }
    for text in [
        "body[]",
        "body[text]",
        "body[1]",
        "body[1.mime]",
        "body[header.fields.not (a)]",
        "all",
        "fast",
    ] {
        ok(&format!("fetch 1 {text}"));
    }
}

#[test]
fn store_is_read() {
    match ok("store 1 (unchangedsince 0) -flags.silent (\\Seen Work)") {
        Command::Store(store) => {
            assert_eq!(store.unchanged_since, Some(0));
            assert_eq!(store.action, StoreAction::Remove);
            assert!(store.silent);
            let flags = [Flag::System(SystemFlag::Seen), Flag::Keyword("Work".into())];
            assert_eq!(store.flags, flags);
        }
        other => panic!("{other:?}"),
    }
    assert!(
        matches!(ok("store 1 +flags \\seen \\draft"), Command::Store(store) if store.flags.len() == 2)
    );
}

#[test]
fn search_keys_nest() {
    let seen = SearchKey::Flag(Flag::System(SystemFlag::Seen));
    assert_eq!(key("unseen"), SearchKey::Not(Box::new(seen.clone())));
    assert_eq!(
        key("or seen (not subject \"a b\" since 1-Feb-1994) 5:7"),
        SearchKey::And(vec![
            SearchKey::Or(Box::new((
                seen,
                SearchKey::And(vec![
                    SearchKey::Not(Box::new(SearchKey::Header {
                        name: "SUBJECT".to_owned(),
                        text: "a b".to_owned()
                    })),
                    SearchKey::Since(Day::from_date(1994, 2, 1).unwrap()),
                ])
            ))),
            SearchKey::Sequence(SequenceSet::Ranges(vec![(
                SeqNumber::Value(5),
                SeqNumber::Value(7)
            )])),
        ])
    );
    assert_eq!(
        key("charset utf-8 text {4}\r\nhäl"),
        SearchKey::Text("häl".to_owned())
    );
    assert_eq!(error("search charset x all"), CommandError::Charset);
    assert_eq!(
        key("modseq \"/flags/\\\\draft\" all 620162338"),
        SearchKey::ModSeq(620_162_338)
    );
    let deep = |depth: usize| format!("search {}all{}", "(".repeat(depth), ")".repeat(depth));
    ok(&deep(32));
    assert_eq!(error(&deep(33)), CommandError::TooDeep);
    assert_eq!(
        error(&format!("search {}all", "not ".repeat(10_000))),
        CommandError::TooDeep
    );
}

#[test]
fn append_ends_with_its_message() {
    match ok("append x (\\seen) \" 7-Jul-1996 02:44:25 -0700\" ~{3}\r\nabc") {
        Command::Append(append) => {
            assert!(append.binary && append.date.is_some());
            assert_eq!((append.octets, append.behind), (3, 0));
        }
        other => panic!("{other:?}"),
    }
    match ok("append x utf8 (~{3}\r\nabc)") {
        Command::Append(append) => assert_eq!((append.octets, append.behind), (3, 1)),
        other => panic!("{other:?}"),
    }
}

proptest! {
    #[test]
    fn any_octets_are_answered(octets in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&octets, false);
    }

    #[test]
    fn any_arguments_are_answered(
        word in prop::sample::select(vec!["search", "uid fetch", "list", "append", "store", "select", "id"]),
        text in "[ (){}\"\\\\a-z0-9:*,.\\[\\]<>+$\r\n-]{0,60}",
    ) {
        let _ = parse(format!("a {word} {text}").as_bytes(), true);
    }
}
