//! The machine against filters that answer with given octets.

use crate::{
    Change, Client, Ending, Event, FieldError, Limits, MilterError, Packet, Refusal, Session,
    Verdict,
};

pub(super) const LIMITS: Limits = Limits {
    changes: 3,
    octets: 100,
    body: 10,
};
pub(super) const MESSAGE: &[u8] = b"From x\r\nA: 1\r\nSubject:  two\r\n words\r\n\r\nbody\r\n";

pub(super) fn session() -> Session<'static> {
    Session {
        client: [192, 0, 2, 7].into(),
        port: 4_321,
        client_name: "mx.example",
        helo: "helo.example",
        reverse_path: "a@b.example",
        recipients: &["c@d.example", "e@d.example"],
        account: "",
        id: "ID1",
        host: "mail.example",
        tls_version: "TLSv1.3",
        tls_cipher: "",
    }
}

pub(super) fn packet(code: u8, data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    crate::packet::put(&mut out, code, data);
    out
}

pub(super) fn options(version: u32, actions: u32, protocol: u32) -> Vec<u8> {
    let words = [version, actions, protocol];
    packet(
        b'O',
        &words
            .iter()
            .flat_map(|word| word.to_be_bytes())
            .collect::<Vec<_>>(),
    )
}

fn all() -> Vec<u8> {
    options(6, 0x1ff, 0x400)
}

/// Codes and data.
pub(super) type Commands = Vec<(u8, Vec<u8>)>;

/// Says everything to a filter that answers each command as given, and `c` where nothing is given; returns the commands too.
pub(super) fn talk(
    mut client: Client<'_>,
    mut answer: impl FnMut(u8, &[u8]) -> Option<Vec<u8>>,
) -> (Result<Option<Ending>, MilterError>, Commands) {
    let mut commands = Vec::new();
    while let Some(out) = client.output() {
        let mut rest = out.as_slice();
        while let Some((packet, behind)) = Packet::read(rest).unwrap() {
            rest = behind;
            commands.push((packet.code, packet.data.to_vec()));
            if client.is_over() || matches!(packet.code, b'D' | b'Q' | b'K') {
                continue;
            }
            let Some(answer) = answer(packet.code, packet.data) else {
                continue;
            };
            // Octet by octet, as the worst of networks would.
            for octet in answer {
                if let Err(error) = client.input(&[octet]) {
                    return (Err(error), commands);
                }
            }
        }
        assert!(rest.is_empty());
    }
    (Ok(client.end()), commands)
}

pub(super) fn new(limits: Limits) -> Client<'static> {
    Client::new(session(), MESSAGE, limits)
}

/// A filter of all commands that answers those of `code` with `given`.
fn with(code: u8, given: &[u8]) -> Result<Ending, MilterError> {
    let (ending, _) = talk(new(LIMITS), |command, _| {
        Some(match command {
            command if command == code => given.to_vec(),
            b'O' => all(),
            _ => packet(b'c', &[]),
        })
    });
    ending.map(|ending| ending.expect("an end"))
}

#[test]
fn a_filter_sees_the_whole_session() {
    let (ending, commands) = talk(new(LIMITS), |command, _| {
        Some(if command == b'O' {
            all()
        } else {
            packet(b'c', &[])
        })
    });
    let ending = ending.unwrap().unwrap();
    assert_eq!(ending.verdict, Verdict::Accept);
    let seen: Vec<(u8, &[u8])> = commands
        .iter()
        .filter(|(code, _)| *code != b'D')
        .map(|(code, data)| (*code, data.as_slice()))
        .collect();
    let expected: &[(u8, &[u8])] = &[
        (b'O', b"\0\0\0\x06\0\0\x01\xff\0\x1f\xf7\xff"),
        (b'C', b"mx.example\x004\x10\xe1192.0.2.7\0"),
        (b'H', b"helo.example\0"),
        (b'M', b"<a@b.example>\0"),
        (b'R', b"<c@d.example>\0"),
        (b'R', b"<e@d.example>\0"),
        (b'T', b""),
        (b'L', b"A\x001\0"),
        (b'L', b"Subject\0two\n words\0"),
        (b'N', b""),
        (b'B', b"body\r\n"),
        (b'E', b""),
        (b'Q', b""),
    ];
    assert_eq!(seen, expected);
    let macros = commands
        .iter()
        .find(|(code, data)| *code == b'D' && data[0] == b'M');
    let macros = &macros.expect("macros of MAIL").1;
    assert!(
        macros.windows(6).any(|part| part == b"i\0ID1\0"),
        "{macros:?}"
    );
    assert!(
        macros
            .windows(24)
            .any(|part| part == b"{mail_addr}\0a@b.example\0")
    );
}

#[test]
fn commands_that_a_filter_does_not_want_or_answer_are_left_out() {
    // Without HELO, body and answers to header fields; values with their blank; of the macros only `j`.
    let mut data = Vec::new();
    for word in [6_u32, 0x100, 1 << 1 | 1 << 4 | 1 << 7 | 1 << 20, 2] {
        data.extend_from_slice(&word.to_be_bytes());
    }
    data.extend_from_slice(b"j, {rcpt_addr}\0");
    let (ending, commands) = talk(new(LIMITS), |command, _| match command {
        b'O' => Some(packet(b'O', &data)),
        b'L' => None,
        _ => Some(packet(b'c', &[])),
    });
    assert_eq!(ending.unwrap().unwrap().verdict, Verdict::Accept);
    let codes: Vec<u8> = commands
        .iter()
        .map(|(code, _)| *code)
        .filter(|code| *code != b'D')
        .collect();
    assert_eq!(codes, b"OCMRRTLLNEQ");
    assert!(commands.contains(&(b'L', b"Subject\0  two\n words\0".to_vec())));
    assert!(commands.contains(&(b'D', b"Mj\0mail.example\0".to_vec())));
}

#[test]
fn an_old_filter_gets_no_data_command() {
    let (ending, commands) = talk(new(LIMITS), |command, _| {
        Some(if command == b'O' {
            options(2, 0x3f, 0)
        } else {
            packet(b'c', &[])
        })
    });
    assert!(ending.is_ok());
    assert!(commands.iter().all(|(code, _)| *code != b'T'));
}

#[test]
fn skip_ends_commands_of_a_kind() {
    let mut seen = 0;
    let body = vec![b'x'; 200_000];
    let message = [b"A: b\r\n\r\n".as_slice(), &body].concat();
    let client = Client::new(session(), &message, LIMITS);
    let (ending, _) = talk(client, |command, _| {
        seen += usize::from(command == b'B');
        Some(match command {
            b'O' => all(),
            b'B' => packet(b's', &[]),
            _ => packet(b'c', &[]),
        })
    });
    assert_eq!(ending.unwrap().unwrap().verdict, Verdict::Accept);
    assert_eq!(seen, 1);
}

#[test]
fn verdicts_end_the_talk() {
    let accepted = with(b'C', &packet(b'a', &[])).unwrap();
    assert_eq!(accepted.verdict, Verdict::Accept);
    assert_eq!(
        with(b'N', &packet(b'd', &[])).unwrap().verdict,
        Verdict::Discard
    );
    let refusal = |temporary, text: &str| Refusal {
        temporary,
        text: text.to_owned(),
    };
    let refused = with(
        b'R',
        &packet(b'y', b"550-5.7.1 no 100%%\r\n550 5.7.1 mo\xffre\0"),
    )
    .unwrap();
    assert_eq!(
        refused.verdict,
        Verdict::Refuse(
            Event::Recipient,
            Some("c@d.example".to_owned()),
            refusal(false, "5.7.1 no 100% 5.7.1 mo?re")
        )
    );
    let deferred = with(b'E', &packet(b't', &[])).unwrap();
    assert_eq!(
        deferred.verdict,
        Verdict::Refuse(Event::EndOfMessage, None, refusal(true, ""))
    );
    let held = with(b'E', &[packet(b'q', b"why\0"), packet(b'a', &[])].concat()).unwrap();
    assert_eq!(held.verdict, Verdict::Quarantine("why".to_owned()));
}

#[test]
fn changes_come_in_order_and_a_body_once() {
    let answers = [
        packet(b'p', &[]),
        packet(b'i', b"\0\0\0\x01X\0y\0"),
        packet(b'b', b"new"),
        packet(b'2', b"<z@d.example>\0NOTIFY=NEVER\0"),
        packet(b'b', b" body"),
        packet(b'c', &[]),
    ];
    let ending = with(b'E', &answers.concat()).unwrap();
    let expected = [
        Change::InsertHeader {
            index: 1,
            name: "X".to_owned(),
            value: b" y".to_vec(),
        },
        Change::ReplaceBody(b"new body".to_vec()),
        Change::AddRecipient {
            address: "z@d.example".to_owned(),
            parameters: "NOTIFY=NEVER".to_owned(),
        },
    ];
    assert_eq!(ending.changes, expected);
}

#[test]
#[allow(clippy::too_many_lines, reason = "a table")]
fn a_filter_that_breaks_a_bound_or_the_protocol_is_an_error() {
    let header = packet(b'h', b"X\0y\0");
    let long = [b"X\0".as_slice(), &[b'y'; 100], b"\0"].concat();
    let cases: &[(u8, Vec<u8>, MilterError)] = &[
        (b'O', options(7, 0, 0), MilterError::Version(7)),
        (b'O', options(1, 0, 0), MilterError::Version(1)),
        (b'O', options(6, 0x200, 0), MilterError::Actions(0x200)),
        (
            b'O',
            options(6, 0, 0x1000_0000),
            MilterError::Protocol(0x1000_0000),
        ),
        (
            b'O',
            packet(b'O', b"\0\0\0\x06"),
            MilterError::Cut("the negotiation"),
        ),
        (b'O', packet(b'c', &[]), MilterError::NotNegotiated(b'c')),
        (
            b'C',
            b"\xff\xff\xff\xff".to_vec(),
            MilterError::Length(0xffff_ffff),
        ),
        (b'C', vec![0; 4], MilterError::Length(0)),
        (b'C', packet(b'Z', &[]), MilterError::Code(b'Z')),
        (
            b'C',
            [packet(b'c', &[]), packet(b'c', &[])].concat(),
            MilterError::Unasked,
        ),
        (
            b'M',
            header.clone(),
            MilterError::Unexpected {
                code: b'h',
                event: Event::Mail,
            },
        ),
        (
            b'M',
            packet(b's', &[]),
            MilterError::Unexpected {
                code: b's',
                event: Event::Mail,
            },
        ),
        (b'M', packet(b'y', b"250 ok\0"), MilterError::Reply),
        (b'M', packet(b'y', b"550 no"), MilterError::Cut("a reply")),
        (b'E', header.repeat(4), MilterError::Changes(3)),
        (b'E', packet(b'h', &long), MilterError::ChangedOctets(100)),
        (b'E', packet(b'b', b"12345678901"), MilterError::Body(10)),
        (
            b'E',
            packet(b'h', b"X:\0y\0"),
            MilterError::Field(FieldError::Name),
        ),
        (
            b'E',
            packet(b'h', b"\0y\0"),
            MilterError::Field(FieldError::Name),
        ),
        (
            b'E',
            packet(b'h', b"X\0y\nBcc: z\0"),
            MilterError::Field(FieldError::Line),
        ),
        (
            b'E',
            packet(b'h', b"X\0y\r z\0"),
            MilterError::Field(FieldError::Control),
        ),
        (
            b'E',
            packet(b'h', b"X\0y"),
            MilterError::Cut("a header field"),
        ),
        (
            b'E',
            packet(b'm', b"\0\0"),
            MilterError::Cut("a changed header"),
        ),
        (b'E', packet(b'+', b"<>\0"), MilterError::Address),
        (b'E', packet(b'+', b"<a b@c>\0"), MilterError::Address),
        (
            b'E',
            packet(b'e', b"a@b\0X=\r\nRCPT\0"),
            MilterError::Address,
        ),
    ];
    for (code, given, expected) in cases {
        assert_eq!(with(*code, given), Err(*expected), "{given:?}");
    }
}

#[test]
fn a_change_that_was_not_agreed_on_is_an_error() {
    let header = packet(b'h', b"X\0y\0");
    let (ending, _) = talk(new(LIMITS), |command, _| {
        Some(match command {
            b'O' => options(6, 2, 0),
            b'E' => header.clone(),
            _ => packet(b'c', &[]),
        })
    });
    assert_eq!(ending, Err(MilterError::Code(b'h')));
}

#[test]
fn no_field_ends_early_and_none_exceeds_a_packet() {
    let long = [b"A: ".as_slice(), &[b'x'; 70_000], b"\r\nB: \0y\r\n\r\n"].concat();
    let client = Client::new(session(), &long, LIMITS);
    let (ending, commands) = talk(client, |command, _| {
        Some(if command == b'O' {
            all()
        } else {
            packet(b'c', &[])
        })
    });
    assert!(ending.is_ok());
    let fields: Vec<&Vec<u8>> = commands
        .iter()
        .filter(|(code, _)| *code == b'L')
        .map(|(_, data)| data)
        .collect();
    assert_eq!(fields[0].len(), 65_535);
    assert_eq!(fields[0].last(), Some(&0));
    assert_eq!(fields[1], b"B\0y\0");
}
