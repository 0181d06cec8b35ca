//! Every flag of the negotiation, every macro, and the bounds to the octet.

use super::talk::{Commands, LIMITS, MESSAGE, new, options, packet, session, talk};
use crate::{Client, Ending, Limits, MilterError, Packet, Verdict};

/// A filter with these options that answers commands of `code` with `given`.
fn with(
    options: &[u8],
    code: u8,
    given: Option<&[u8]>,
) -> (Result<Option<Ending>, MilterError>, Commands) {
    talk(new(LIMITS), |command, _| match command {
        b'O' => Some(options.to_vec()),
        command if command == code => given.map(<[u8]>::to_vec),
        _ => Some(packet(b'c', &[])),
    })
}

#[test]
fn each_answer_needs_its_flag() {
    for (code, data, flags) in [
        (b'h', &b"X\0y\0"[..], 1 | 1 << 4),
        (b'i', b"\0\0\0\0X\0y\0", 1 | 1 << 4),
        (b'm', b"\0\0\0\x01X\0y\0", 1 << 4),
        (b'b', b"new", 1 << 1),
        (b'+', b"<z@d.example>\0", 1 << 2),
        (b'-', b"<c@d.example>\0", 1 << 3),
        (b'q', b"why\0", 1 << 5),
        (b'e', b"<z@d.example>\0", 1 << 6),
        (b'2', b"<z@d.example>\0\0", 1 << 7),
    ] {
        let answers = [packet(code, data), packet(b'c', &[])].concat();
        let given = |actions| with(&options(6, actions, 0), b'E', Some(&answers)).0;
        for bit in (0..9).map(|bit| 1 << bit) {
            match flags & bit {
                0 => assert_eq!(given(bit), Err(MilterError::Code(code)), "{code} {bit}"),
                _ => assert!(given(bit).is_ok(), "{code} {bit}"),
            }
        }
        assert_eq!(given(0x1ff & !flags), Err(MilterError::Code(code)));
    }
    let skip = packet(b's', &[]);
    let given = |protocol| with(&options(6, 0x1ff, protocol), b'B', Some(&skip)).0;
    assert!(given(1 << 10).is_ok());
    assert_eq!(given(0), Err(MilterError::Code(b's')));
    assert_eq!(given(1 << 9), Err(MilterError::Code(b's')));
}

#[test]
fn each_command_has_a_flag_for_itself_and_one_for_its_answer() {
    for (code, unwanted, unanswered) in [
        (b'C', 0, 12),
        (b'H', 1, 13),
        (b'M', 2, 14),
        (b'R', 3, 15),
        (b'B', 4, 19),
        (b'L', 5, 7),
        (b'N', 6, 18),
        (b'T', 9, 16),
    ] {
        let has = |commands: &Commands| commands.iter().any(|(sent, _)| *sent == code);
        let accepts = |ending: Result<Option<Ending>, MilterError>| {
            ending.unwrap().unwrap().verdict == Verdict::Accept
        };
        let (ending, commands) = with(&options(6, 0, 1 << unwanted), b'-', None);
        assert!(accepts(ending) && !has(&commands), "{code}");
        let (ending, commands) = with(&options(6, 0, 1 << unanswered), code, None);
        assert!(accepts(ending) && has(&commands), "{code}");
    }
    // Rejected recipients and flags without a number are not on offer.
    for flag in [1 << 11, 1 << 21, 1 << 31] {
        let (ending, _) = with(&options(6, 0, flag), b'-', None);
        assert_eq!(ending, Err(MilterError::Protocol(flag)));
    }
    for (version, has_data) in [(2, false), (3, false), (4, true), (6, true)] {
        let (_, commands) = with(&options(version, 0, 0), b'-', None);
        let has = commands.iter().any(|(code, _)| *code == b'T');
        assert_eq!(has, has_data, "{version}");
    }
}

/// Negotiates macros of a stage, and returns what the filter got with a command.
fn macros(stage: u32, names: &str, code: u8) -> Vec<Vec<u8>> {
    let mut data = Vec::new();
    for word in [6_u32, 0, 0, stage] {
        data.extend_from_slice(&word.to_be_bytes());
    }
    data.extend_from_slice(names.as_bytes());
    data.push(0);
    let (_, commands) = with(&packet(b'O', &data), b'-', None);
    let found = commands
        .iter()
        .filter(|(sent, data)| *sent == b'D' && data[0] == code);
    found.map(|(_, data)| data[1..].to_vec()).collect()
}

#[test]
fn macros_have_stages_and_values() {
    for (stage, code) in (0..).zip(b"CHMRTEN") {
        let found = macros(stage, "i", *code);
        assert!(
            !found.is_empty() && found.iter().all(|data| data == b"i\0ID1\0"),
            "{stage}"
        );
        assert!(macros(stage, "", *code).is_empty(), "{stage}");
        assert!(
            macros(stage, "nothing, tls_cipher", *code).is_empty(),
            "{stage}"
        );
    }
    let stage = |number: u32| {
        let data: Vec<u8> = [6, 0, 0, number]
            .iter()
            .flat_map(|word: &u32| word.to_be_bytes())
            .collect();
        with(&packet(b'O', &[&data[..], b"i\0"].concat()), b'-', None).0
    };
    assert_eq!(stage(7), Err(MilterError::Stage(7)));
    for (name, value) in [
        ("j", "mail.example"),
        ("{daemon_name}", "mail.example"),
        ("if_name", "mail.example"),
        ("v", "Veredarius"),
        ("_", "mx.example [192.0.2.7]"),
        ("client_addr", "192.0.2.7"),
        ("client_name", "mx.example"),
        ("client_ptr", "mx.example"),
        ("client_port", "4321"),
        ("client_resolve", "OK"),
        ("s", "helo.example"),
        ("i", "ID1"),
        ("tls_version", "TLSv1.3"),
        ("mail_addr", "a@b.example"),
        ("f", "a@b.example"),
        ("mail_host", "b.example"),
        ("mail_mailer", "smtp"),
        ("rcpt_mailer", "smtp"),
        ("rcpt_addr", "c@d.example"),
        ("rcpt_host", "d.example"),
        ("nrcpts", "2"),
    ] {
        let name = name.trim_matches(['{', '}']);
        let shown = match name.len() {
            1 => name.to_owned(),
            _ => format!("{{{name}}}"),
        };
        let found = macros(3, name, b'R');
        assert_eq!(found[0], format!("{shown}\0{value}\0").as_bytes(), "{name}");
    }
    let found = macros(3, "rcpt_addr", b'R');
    assert_eq!(found[1], b"{rcpt_addr}\0e@d.example\0");
    let unnamed = crate::Session {
        client_name: "",
        ..session()
    };
    let client = Client::new(unnamed, MESSAGE, LIMITS);
    let (_, commands) = talk(client, |command, _| {
        Some(match command {
            b'O' => options(6, 0, 0),
            _ => packet(b'c', &[]),
        })
    });
    let connect = commands.iter().find(|(code, _)| *code == b'C').unwrap();
    assert_eq!(connect.1, b"[192.0.2.7]\x004\x10\xe1192.0.2.7\0");
    let symbols = &commands[1].1;
    let has = |part: &[u8]| symbols.windows(part.len()).any(|found| found == part);
    assert!(has(b"{client_resolve}\0FAIL\0") && has(b"_\0[192.0.2.7] [192.0.2.7]\0"));
}

#[test]
fn bounds_hold_to_the_octet() {
    let all = options(6, 0x1ff, 0x400);
    let given = |answers: &[Vec<u8>]| {
        let answers = [answers.concat(), packet(b'c', &[])].concat();
        with(&all, b'E', Some(&answers)).0.map(|_| ())
    };
    let header = |octets: usize| packet(b'h', &[b"X\0", &vec![b'y'; octets][..], b"\0"].concat());
    // A blank is put in front of the value.
    assert_eq!(given(&[header(98)]), Ok(()));
    assert_eq!(given(&[header(99)]), Err(MilterError::ChangedOctets(100)));
    assert_eq!(given(&[header(48), header(48)]), Ok(()));
    assert_eq!(
        given(&[header(48), header(49)]),
        Err(MilterError::ChangedOctets(100))
    );
    assert_eq!(given(&vec![header(1); 3]), Ok(()));
    assert_eq!(given(&vec![header(1); 4]), Err(MilterError::Changes(3)));
    let body = |octets: usize| packet(b'b', &vec![b'x'; octets]);
    assert_eq!(given(&[body(10)]), Ok(()));
    assert_eq!(given(&[body(4), body(6)]), Ok(()));
    assert_eq!(given(&[body(4), body(7)]), Err(MilterError::Body(10)));
    let none = Limits {
        changes: 0,
        ..LIMITS
    };
    let (ending, _) = talk(new(none), |command, _| {
        Some(match command {
            b'O' => all.clone(),
            b'E' => body(1),
            _ => packet(b'c', &[]),
        })
    });
    assert_eq!(ending, Err(MilterError::Changes(0)));
}

#[test]
fn packets_have_65536_octets_at_most() {
    let of = |length: u32| {
        let octets = [&length.to_be_bytes()[..], &vec![b'c'; length as usize]].concat();
        Packet::read(&octets).map(|found| found.map(|(packet, _)| packet.data.len()))
    };
    assert_eq!(of(1), Ok(Some(0)));
    assert_eq!(of(65_536), Ok(Some(65_535)));
    assert_eq!(of(65_537), Err(MilterError::Length(65_537)));
    let whole = packet(b'c', b"x");
    for cut in 0..whole.len() {
        assert_eq!(Packet::read(&whole[..cut]), Ok(None), "{cut}");
    }
}

#[test]
fn words_of_a_refusal_are_one_printable_line() {
    let all = options(6, 0x1ff, 0);
    let text = |reply: &[u8]| {
        let reply = packet(b'y', &[reply, b"\0"].concat());
        match with(&all, b'M', Some(&reply)).0?.unwrap().verdict {
            Verdict::Refuse(_, _, refusal) => Ok((refusal.temporary, refusal.text)),
            other => panic!("{other:?}"),
        }
    };
    let is = |reply: &[u8], temporary, expected: &str| {
        assert_eq!(
            text(reply),
            Ok((temporary, expected.to_owned())),
            "{reply:?}"
        );
    };
    is(b"550 5.7.1 no", false, "5.7.1 no");
    is(b"450 4.7.1 later", true, "4.7.1 later");
    is(b"559", false, "");
    is(b"559 a\tb\x7f\x80\x1bc~", false, "a b???c~");
    is(b"550-a\r\n550-b\r\n550 c", false, "a b c");
    is(
        format!("550 {}", "x".repeat(401)).as_bytes(),
        false,
        &"x".repeat(400),
    );
    for reply in [
        &b"650 x"[..],
        b"599",
        b"350 x",
        b"560 x",
        b"55",
        b"55x no",
        b"",
    ] {
        assert_eq!(text(reply), Err(MilterError::Reply), "{reply:?}");
    }
}

#[test]
fn values_and_paths_come_in_their_forms() {
    use crate::Change;
    let all = options(6, 0x1ff, 0);
    let given = |code, data: &[u8]| {
        let answers = [packet(code, data), packet(b'c', &[])].concat();
        with(&all, b'E', Some(&answers))
            .0
            .map(|ending| ending.unwrap().changes)
    };
    let header = |value: &[u8]| {
        let name = "X".to_owned();
        let value = value.to_vec();
        Ok(vec![Change::AddHeader { name, value }])
    };
    // Line ends are LF in a change, whatever the filter writes.
    assert_eq!(
        given(b'h', b"X\0a\r\n b\r\n\tc\r\n\0"),
        header(b" a\n b\n\tc")
    );
    assert_eq!(given(b'h', b"X\0a\n b\n\0"), header(b" a\n b"));
    // The null reverse-path is a path, and no recipient.
    let from = |address: &str, parameters: &str| {
        Ok(vec![Change::ChangeFrom {
            address: address.to_owned(),
            parameters: parameters.to_owned(),
        }])
    };
    assert_eq!(given(b'e', b"<>\0"), from("", ""));
    assert_eq!(
        given(b'e', b"a@b.example\0SIZE=1\0"),
        from("a@b.example", "SIZE=1")
    );
    for code in *b"+-2" {
        assert_eq!(given(code, b"<>\0"), Err(MilterError::Address), "{code}");
    }
    let deletes = Change::ChangeHeader {
        index: 2,
        name: "X".to_owned(),
        value: None,
    };
    assert_eq!(given(b'm', b"\0\0\0\x02X\0\0"), Ok(vec![deletes]));
}
