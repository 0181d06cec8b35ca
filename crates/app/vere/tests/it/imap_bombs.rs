//! Mail of every bad shape in the mail store: kept octet by octet, asked about, at a cost in proportion to its size.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use crate::harness::{ATTACK_CPU_MAX, Options, assert_starts, cpu_time, private_memory};
use crate::imap::{Imap, start_with_store};

const ACCOUNT: &str = "alice@example.org";

/// Growth of a store's memory afterwards: caches, and not the expanded texts of messages.
const GROWTH_MAX: u64 = 256 << 20;

/// Large messages: a cost of the square of the size is far beyond the bound.
fn bombs() -> Vec<Vec<u8>> {
    let multiparts: String = (0..20_000)
        .map(|n| format!("Content-Type: multipart/mixed; boundary={n}\r\n\r\n--{n}\r\n"))
        .collect();
    let parts = "Content-Type: multipart/mixed; boundary=b\r\n\r\n".to_owned();
    let texts = [
        format!(
            "Subject: deep\r\n{}",
            "Content-Type: message/rfc822\r\n\r\n".repeat(50_000)
        ),
        multiparts,
        parts + &"--b\r\n\r\n".repeat(200_000),
        format!(
            "To: {} z@x.example\r\n\r\nx\r\n",
            "a@b.example,\r\n ".repeat(200_000)
        ),
        format!("To: {}\r\n\r\nx\r\n", "(".repeat(1_000_000)),
        format!("Subject: {}\r\n\r\nx\r\n", "x".repeat(3_000_000)),
        format!("Subject:\r\n{} end\r\n\r\nx\r\n", " x\r\n".repeat(500_000)),
        format!("{}\r\nx\r\n", "Received: x\r\n".repeat(300_000)),
        format!(
            "Subject: {}\r\n\r\nx\r\n",
            "=?utf-8?Q?=C3=A9?= ".repeat(100_000)
        ),
        format!("Subject: {}\r\n\r\nx\r\n", "=?utf-8?Q?".repeat(200_000)),
        format!(
            "References: {}\r\n\r\nx\r\n",
            "<a@b.example> ".repeat(150_000)
        ),
        format!(
            "Content-Type: text/plain{}\r\n\r\nx\r\n",
            ";a=b".repeat(300_000)
        ),
        format!("Subject: line\r\n\r\n{}\r\n", "x".repeat(3_000_000)),
        format!(
            "Content-Type: text/html\r\n\r\n{}\r\n",
            "<b>".repeat(600_000)
        ),
    ];
    texts.into_iter().map(String::into_bytes).collect()
}

/// Small malformed messages.
fn broken() -> Vec<Vec<u8>> {
    let cases: [&[u8]; 12] = [
        b"Subject: =?x-no-such?Q?abc?= =?utf-8?B?!!!?= =?utf-8?Q?=ff=fe?=\r\n\r\nencoded\r\n",
        b"Subject: \xff\xfe\xe9 raw\r\nFrom: \xe9 <a@b.example>\r\n\r\nraw\r\n",
        b"Content-Type: text/plain; charset=x-no-such\r\n\r\n\xe9\xff unknown\r\n",
        b"Content-Type: text/plain; charset=utf-8\r\n\r\n\xe9\xff\xc3 invalid\r\n",
        b"Content-Type: text/plain; charset=utf-7\r\n\r\n+AOk-+ //// \r\n",
        b"Content-Type: text/plain; charset=\"\r\n\r\nquote\r\n",
        b"Content-Transfer-Encoding: base64\r\n\r\n====a=b=\xff\r\nZm9v\r\n",
        b"Content-Transfer-Encoding: quoted-printable\r\n\r\n=\r\n=Z=4\xff=\r\n",
        b"this line is no field\r\n: nor this\r\n\tnor that\r\nSubject : blank\r\n\r\nlines\r\n",
        b"X-First: x\r\nSubject: lone\rcr and\nlf\r\nTo: <<>@,;:\r\nDate: never\r\n\r\nlone\rcr\nlf\r\n",
        b"no header at all and no end",
        b"\r\n\r\nempty header\r\n",
    ];
    cases.map(<[u8]>::to_vec).into()
}

#[test]
fn mail_of_any_shape_is_kept_and_costs_time_in_proportion() {
    let (system, ports) = start_with_store(Options::default());
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("in");
    for part in ["cur", "new", "tmp"] {
        fs::create_dir_all(root.join(part)).expect("room");
    }
    let wanted: BTreeSet<Vec<u8>> = broken().into_iter().chain(bombs()).collect();
    for (number, message) in wanted.iter().enumerate() {
        // Without CRLF at the end of its first line, a file's lines would get CRLF.
        fs::write(root.join(format!("cur/{number}.a.host:2,")), message).expect("room");
    }
    let store = system.role_pids("store")[0];
    let cpu = || {
        let parsers = system.role_pids("parser");
        let all = std::iter::once(store).chain(parsers);
        all.map(cpu_time).sum::<Duration>()
    };
    let (before, spent) = (private_memory(store), cpu());
    let place = root.display().to_string();
    let said = system.command(&["import", "-a", ACCOUNT, &place]);
    assert_starts(&said, &format!("{} messages (", wanted.len()));
    let mut alice = Imap::login(ports.imap, ACCOUNT, "secret");
    alice.ok("EXAMINE INBOX");
    let kept: BTreeSet<Vec<u8>> = (1..=wanted.len())
        .map(|number| alice.octets(number))
        .collect();
    assert!(kept == wanted, "other octets");
    for query in [
        "FETCH 1:* (ENVELOPE BODYSTRUCTURE)",
        "FETCH 1:* (BODY.PEEK[HEADER.FIELDS (SUBJECT TO)] BODY.PEEK[1]<0.100>)",
        "SEARCH SUBJECT end",
        "SEARCH OR TEXT zqxjk BODY x",
    ] {
        alice.ok(query);
    }
    // A message with broken words is found by the other words.
    assert_eq!(found(&mut alice, "SEARCH BODY encoded"), 1);
    assert_eq!(found(&mut alice, "SEARCH SUBJECT raw"), 1);
    assert_eq!(found(&mut alice, "SEARCH BODY unknown BODY plain"), 0);
    assert_eq!(found(&mut alice, "SEARCH BODY invalid"), 1);
    let spent = cpu().saturating_sub(spent);
    assert!(spent < ATTACK_CPU_MAX * 2, "{spent:?} of CPU");
    let growth = private_memory(store).saturating_sub(before);
    assert!(growth < GROWTH_MAX, "memory grew by {growth} octets");
    assert_eq!(system.role_pids("store"), [store], "the store lives");
}

/// How many messages a search finds.
fn found(session: &mut Imap, query: &str) -> usize {
    let said = session.ok(query);
    let line = said.lines().find_map(|line| line.strip_prefix("* SEARCH"));
    line.map_or(0, |numbers| numbers.split_whitespace().count())
}
