use super::{Manners, Receiver, Stage, Wait, path_after};

fn manners() -> Manners {
    Manners {
        hostname: "sink.test".to_owned(),
        extensions: vec!["PIPELINING".to_owned(), "CHUNKING".to_owned()],
        message_size_max: 1000,
    }
}

/// Feeds `input` in pieces of `step` octets, accepts everything, and returns the replies and the
/// messages.
fn run(input: &[u8], step: usize) -> (String, Vec<Vec<u8>>) {
    let manners = manners();
    let mut receiver = Receiver::new();
    let mut messages = Vec::new();
    let mut pieces = input.chunks(step);
    loop {
        match receiver.advance(&manners) {
            Wait::Answer(stage) => {
                if stage == Stage::Message {
                    messages.push(receiver.message().to_vec());
                }
                receiver.accept(&manners);
            }
            Wait::Input => {
                let Some(piece) = pieces.next() else { break };
                receiver.input.space()[..piece.len()].copy_from_slice(piece);
                receiver.input.filled(piece.len());
            }
            Wait::Close => break,
        }
    }
    (
        String::from_utf8_lossy(receiver.output.pending()).into_owned(),
        messages,
    )
}

fn codes(replies: &str) -> Vec<&str> {
    replies
        .lines()
        .filter(|line| line.as_bytes().get(3) == Some(&b' '))
        .map(|l| &l[..3])
        .collect()
}

const OPEN: &[u8] = b"EHLO a\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\n";

fn with_text(text: &[u8]) -> Vec<u8> {
    [OPEN, text].concat()
}

#[test]
fn takes_pipelined_messages_in_pieces_of_any_size() {
    let one = with_text(b"Subject: x\r\n\r\n..dot\r\n.\r\n");
    let two = [
        &one,
        b"MAIL FROM:<>\r\nRCPT TO:<e@f>\r\nDATA\r\n.\r\nQUIT\r\n".as_slice(),
    ]
    .concat();
    for step in [1, 2, 3, 5, 7, 1000] {
        let (replies, messages) = run(&two, step);
        assert_eq!(
            codes(&replies),
            [
                "220", "250", "250", "250", "354", "250", "250", "250", "354", "250", "221"
            ]
        );
        assert_eq!(
            messages,
            [b"Subject: x\r\n\r\n..dot\r\n".to_vec(), Vec::new()],
            "step {step}"
        );
    }
}

#[test]
fn only_a_dot_between_two_crlf_ends_a_text() {
    for text in [
        b"a\n.\r\nb\r\n.\r\n".as_slice(),
        b"a\r\n.\nb\r\n.\r\n",
        b"a\n.\nb\r\n.\r\n",
        b"a\r.\r\nb\r\n.\r\n",
        b"a\r\n.\rb\r\n.\r\n",
        b".\nb\r\n.\r\n",
    ] {
        for step in [1, 3, 1000] {
            let (_, messages) = run(&with_text(text), step);
            assert_eq!(messages, [text[..text.len() - 3].to_vec()]);
        }
    }
}

#[test]
fn a_text_over_the_limit_is_eaten_and_refused() {
    let mut text = Vec::new();
    for _ in 0..300 {
        text.extend_from_slice(b".. 0123456789\r\n");
    }
    text.extend_from_slice(b".\r\nNOOP\r\n");
    for step in [1, 2, 3, 17, 1000, 100_000] {
        let (replies, messages) = run(&with_text(&text), step);
        assert_eq!(
            codes(&replies),
            ["220", "250", "250", "250", "354", "552", "250"]
        );
        assert!(messages.is_empty());
    }
}

#[test]
fn chunks_are_joined_and_may_hold_anything() {
    let input =
        b"EHLO a\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nBDAT 6\r\n\r\n.\r\nxBDAT 3 LAST\r\nend";
    for step in [1, 4, 1000] {
        let (replies, messages) = run(input, step);
        assert_eq!(codes(&replies), ["220", "250", "250", "250", "250", "250"]);
        assert_eq!(messages, [b"\r\n.\r\nxend".to_vec()]);
    }
}

#[test]
fn a_refused_chunk_is_not_run_as_commands() {
    let (replies, messages) = run(b"EHLO a\r\nBDAT 6 LAST\r\nQUIT\r\nNOOP\r\n", 1000);
    assert_eq!(codes(&replies), ["220", "250", "503", "250"]);
    assert!(messages.is_empty());
}

#[test]
fn bare_line_feeds_end_the_dialogue() {
    let (replies, _) = run(b"EHLO a\nNOOP\r\n", 1000);
    assert_eq!(codes(&replies), ["220", "500"]);
}

#[test]
fn paths_are_cut_out_of_their_brackets() {
    assert_eq!(
        path_after(b"FROM:<a@b> SIZE=3", b"FROM:"),
        Some((&b"a@b"[..], &b"SIZE=3"[..]))
    );
    assert_eq!(path_after(b"from:<>", b"FROM:"), Some((&b""[..], &b""[..])));
    assert_eq!(
        path_after(b"TO:<\"a>\\\"\"@b>", b"TO:"),
        Some((&b"\"a>\\\"\"@b"[..], &b""[..]))
    );
    assert_eq!(path_after(b"TO:a@b", b"TO:"), None);
    assert_eq!(path_after(b"TO:<a@b", b"TO:"), None);
    assert_eq!(path_after(b"T", b"TO:"), None);
}
