//! The end of a message and its line ends: nothing but CRLF.CRLF ends it (CVE-2023-51764 and others).

use super::{Host, codes, config, peer};
use crate::server::Role;
use proptest::prelude::{prop, proptest};

const LEAD: &str = "EHLO x\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\n";

fn in_data() -> Host {
    let mut host = Host::mx();
    let reply = host.say(LEAD);
    assert_eq!(codes(&reply).last(), Some(&"354"));
    host
}

/// A second message hidden behind each false end is never run, and the first is refused whole.
#[test]
fn false_ends_smuggle_nothing() {
    let hidden = "MAIL FROM:<evil@b>\r\nRCPT TO:<c@d>\r\nDATA\r\nsmuggled\r\n.\r\n";
    for end in [
        "\n.\n",
        "\n.\r\n",
        "\r\n.\n",
        "\r.\r",
        "\r.\r\n",
        "\r\n.\r",
        "\r\r\n.\r\r\n",
        "\n\r.\n\r",
        "\r\n.\r\r\n",
        "\r\n\0.\r\n",
        "\r\n.\0\r\n",
        "\0\r\n.\r",
        "\n.\r",
        "\r.\n",
        "\r\n.\n\r\n",
    ] {
        let script = format!("first{end}{hidden}");
        for split in 0..=script.len() {
            let mut host = in_data();
            let mut reply = host.say(&script[..split]);
            reply.push_str(&host.say(&script[split..]));
            assert_eq!(codes(&reply).len(), 1, "{end:?} split at {split}: {reply}");
            assert!(
                reply.starts_with("554 5."),
                "{end:?} split at {split}: {reply}"
            );
            assert!(host.messages.is_empty(), "{end:?}");
            assert_eq!(codes(&host.say("NOOP\r\n")), ["250 2.0.0"], "{end:?}");
        }
    }
}

#[test]
fn faults_have_their_reply() {
    for (text, reply) in [
        (
            "a\rb\r\n.\r\n",
            "554 5.5.2 message refused: CR without LF\r\n",
        ),
        (
            "a\nb\r\n.\r\n",
            "554 5.5.2 message refused: LF without CR\r\n",
        ),
        ("a\0b\r\n.\r\n", "554 5.6.0 message refused: NUL\r\n"),
        (
            ".\rb\r\n.\r\n",
            "554 5.5.2 message refused: CR without LF\r\n",
        ),
        (
            ".\n\r\n.\r\n",
            "554 5.5.2 message refused: LF without CR\r\n",
        ),
        // The first fault counts.
        ("a\0b\nc\r\n.\r\n", "554 5.6.0 message refused: NUL\r\n"),
    ] {
        assert_eq!(in_data().say(text), reply, "{text:?}");
    }
}

#[test]
fn dots_are_taken_off() {
    for (text, body) in [
        (".\r\n", ""),
        ("..\r\n.\r\n", ".\r\n"),
        (".a\r\n.\r\n", "a\r\n"),
        ("a.\r\n.\r\n", "a.\r\n"),
        ("\r\n.\r\n", "\r\n"),
        ("a\r\n..b\r\n....\r\nc\r\n.\r\n", "a\r\n.b\r\n...\r\nc\r\n"),
        ("...\r\n.\r\n", "..\r\n"),
    ] {
        for split in 0..=text.len() {
            let mut host = in_data();
            host.say(&text[..split]);
            host.say(&text[split..]);
            assert_eq!(
                host.messages[0].body,
                body.as_bytes(),
                "{text:?} split at {split}"
            );
        }
    }
}

#[test]
fn nul_is_kept_where_it_may_be() {
    let mut config = config(Role::Mx);
    config.limits.text_nul = true;
    let body = "\0a\0b\r\n\0\r\n.\0\r\n";
    let text = "\0a\0b\r\n\0\r\n..\0\r\n.\r\n";
    for split in 0..=text.len() {
        let mut host = Host::new(config.clone(), peer());
        host.say(LEAD);
        host.say(&text[..split]);
        host.say(&text[split..]);
        assert_eq!(host.messages[0].body, body.as_bytes(), "split at {split}");
    }
    // Line ends are as strict as without.
    let mut host = Host::new(config, peer());
    host.say(LEAD);
    host.say("a\0\nb\r\n.\r\n");
    assert_eq!(host.messages.len(), 0);
}

#[test]
fn lines_are_bounded() {
    let mut config = config(Role::Mx);
    config.limits.text_line_octets_max = 998;
    for (text, reply) in [
        (format!("{}\r\n.\r\n", "x".repeat(998)), "250 2.0.0"),
        (format!("{}\r\n.\r\n", "x".repeat(999)), "554 5.6.0"),
        (
            format!("a\r\n.{}\r\nb\r\n.\r\n", "x".repeat(998)),
            "250 2.0.0",
        ),
        (
            format!("a\r\n.{}\r\nb\r\n.\r\n", "x".repeat(999)),
            "554 5.6.0",
        ),
        (
            format!("{}\r\n{}\r\n.\r\n", "x".repeat(998), "y".repeat(998)),
            "250 2.0.0",
        ),
    ] {
        for piece in [1, 7, 100, 5000] {
            let mut host = Host::new(config.clone(), peer());
            host.say(LEAD);
            text.as_bytes()
                .chunks(piece)
                .for_each(|octets| host.give(octets));
            let transcript = String::from_utf8(host.sent).unwrap();
            assert_eq!(codes(&transcript).last(), Some(&reply), "pieces of {piece}");
        }
    }
}

/// The oracle: what a reader octet by octet makes of a text, and how many octets it needs.
fn slowly(text: &[u8]) -> (Option<Vec<u8>>, Option<usize>) {
    let mut seen = b"\r\n".to_vec();
    let mut end = None;
    for (index, octet) in text.iter().enumerate() {
        seen.push(*octet);
        if seen.ends_with(b"\r\n.\r\n") {
            end = Some(index + 1);
            break;
        }
    }
    let Some(end) = end else { return (None, None) };
    let lines = &text[..end - 3];
    let mut body = Vec::new();
    let mut index = 0;
    let mut line_start = true;
    while index < lines.len() {
        let rest = &lines[index..];
        if rest.starts_with(b"\r\n") {
            body.extend_from_slice(b"\r\n");
            index += 2;
            line_start = true;
            continue;
        }
        if matches!(rest[0], b'\r' | b'\n' | 0) {
            return (None, Some(end));
        }
        if !(line_start && rest[0] == b'.') {
            body.push(rest[0]);
        }
        line_start = false;
        index += 1;
    }
    (Some(body), Some(end))
}

proptest! {
    #[test]
    fn text_is_read_as_an_octet_wise_reader_would(
        tokens in prop::collection::vec(
            prop::sample::select(vec!["\r\n", ".", "\r", "\n", "a", "bc", "\r\n.", "\0", "\r\n.\r\n"]),
            0..40,
        ),
        sizes in prop::collection::vec(1_usize..9, 1..5),
    ) {
        let text = tokens.concat();
        let mut host = in_data();
        let mut rest = text.as_bytes();
        for size in sizes.iter().cycle() {
            if rest.is_empty() || rest.len() == text.len() && host.closed {
                break;
            }
            let (piece, after) = rest.split_at((*size).min(rest.len()));
            host.give(piece);
            rest = after;
        }
        match slowly(text.as_bytes()) {
            (Some(body), _) => assert_eq!(host.messages[0].body, body),
            (None, _) => assert!(host.messages.is_empty()),
        }
    }
}
