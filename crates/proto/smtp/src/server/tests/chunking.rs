//! BDAT: refused chunks are eaten, counters have 64 bits, strictness as after DATA.

use super::{Host, codes, config, peer};
use crate::server::Role;
use vere_units::ByteSize;

const LEAD: &str = "EHLO x\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\n";

fn in_transaction() -> Host {
    let mut host = Host::mx();
    host.say(LEAD);
    host
}

#[test]
fn chunks_make_a_message() {
    let mut host = in_transaction();
    host.gets("BDAT 5\r\nab\r\n.BDAT 0\r\n", &["250 2.0.0", "250 2.0.0"]);
    host.gets(
        "BDAT 4 LAST\r\n.\r\ncMAIL FROM:<>\r\n",
        &["250 2.0.0", "250 2.1.0"],
    );
    assert_eq!(host.messages[0].body, b"ab\r\n..\r\nc");
}

/// Nothing in a chunk is a command, least of all in one that is refused.
#[test]
fn refused_chunks_are_eaten() {
    let chunk = "BDAT 6\r\nQUIT\r\nBDAT 6 LAST\r\nQUIT\r\nNOOP\r\n";
    let mut greeted = Host::mx();
    greeted.say("EHLO x\r\n");
    greeted.gets(chunk, &["503 5.5.1", "503 5.5.1", "250 2.0.0"]);
    let mut no_recipient = Host::mx();
    no_recipient.say("EHLO x\r\nMAIL FROM:<a@b>\r\nRCPT TO:<nobody@d>\r\n");
    no_recipient.gets(chunk, &["554 5.5.1", "554 5.5.1", "250 2.0.0"]);
    assert!(!greeted.closed && !no_recipient.closed);
}

#[test]
fn text_in_chunks_is_as_strict_as_after_data() {
    for (text, code) in [
        ("a\nb", "554 5.5.2"),
        ("a\rb", "554 5.5.2"),
        ("a\0b", "554 5.6.0"),
        ("ab\r", "554 5.5.2"),
        ("a\r\n", "250 2.0.0"),
    ] {
        let reply = in_transaction().say(format!("BDAT {} LAST\r\n{text}NOOP\r\n", text.len()));
        assert_eq!(codes(&reply), [code, "250 2.0.0"], "{text:?}");
    }
    // CRLF may be divided between chunks.
    let mut host = in_transaction();
    host.say("BDAT 2\r\na\rBDAT 2 LAST\r\n\nb");
    assert_eq!(host.messages[0].body, b"a\r\nb");
}

#[test]
fn a_fault_spoils_the_chunks_that_follow() {
    let mut host = in_transaction();
    host.gets(
        "BDAT 1\r\n\nBDAT 1\r\naBDAT 1 LAST\r\nbDATA\r\n",
        &["554 5.5.2", "554 5.5.2", "554 5.5.2", "503 5.5.1"],
    );
    assert!(host.messages.is_empty());
}

#[test]
fn binary_is_carried_as_it_is() {
    let mut host = Host::mx();
    host.say("EHLO x\r\nMAIL FROM:<a@b> BODY=BINARYMIME\r\nRCPT TO:<c@d>\r\n");
    host.gets("DATA\r\n", &["503 5.5.1"]);
    host.say(b"BDAT 7 LAST\r\n\0\r\r\n\n.\xff");
    assert_eq!(host.messages[0].body, b"\0\r\r\n\n.\xff");
}

#[test]
fn sizes_beyond_the_limit_are_refused_before_their_octets_come() {
    let mut config = config(Role::Mx);
    config.limits.message_size_max = ByteSize::new(10);
    config.limits.refused_size_max = ByteSize::new(100);
    let mut host = Host::new(config.clone(), peer());
    host.say(LEAD);
    host.gets(
        "BDAT 8\r\n12345678BDAT 3\r\nabcBDAT 1 LAST\r\nxNOOP\r\n",
        &["250 2.0.0", "552 5.3.4", "552 5.3.4", "250 2.0.0"],
    );
    assert!(host.messages.is_empty());
    for size in ["101", "4294967296", "18446744073709551615"] {
        let mut host = Host::new(config.clone(), peer());
        host.say(LEAD);
        assert_eq!(
            codes(&host.say(format!("BDAT {size}\r\nQUIT\r\n"))),
            ["552 5.3.4"],
            "{size}"
        );
        assert!(host.closed, "{size}");
    }
}

/// Where a chunk of unknown length ends cannot be known: nothing behind it may run.
#[test]
fn malformed_bdat_ends_the_session() {
    for line in [
        "BDAT\r\n",
        "BDAT x\r\n",
        "BDAT 6 LATE\r\n",
        "BDAT 18446744073709551616\r\n",
        "BDAT 6\n",
        "bdat 6\r \r\n",
        "BDAT 6\0\r\n",
    ] {
        let mut host = in_transaction();
        let reply = host.say(format!("{line}NOOP\r\nNOOP\r\n"));
        assert_eq!(codes(&reply).len(), 1, "{line:?}: {reply}");
        assert!(host.closed, "{line:?}");
    }
    let mut host = in_transaction();
    host.gets(
        format!("BDAT {}\r\nNOOP\r\n", "0".repeat(600)),
        &["500 5.5.2"],
    );
    assert!(host.closed);
}
