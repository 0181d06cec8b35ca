//! The gateway in Python (docs/examples/x400_gateway.py) against the machine of the MTA, over a real socket.

use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, Stdio};
use std::thread;

use bytes::Bytes;
use vere_attach::{Bounds, Deliver, Fate, Message, Recipient, Server, ServerEvent, UnitKind};
use vere_mta400::{Site, Submission};
use vere_x400::{Apdu, Content, GlobalDomainIdentifier};

const EXAMPLE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../docs/examples/x400_gateway.py"
);
const JONES: &str = "S=Jones;P=Acme;A=Carrier;C=GB";
const SMITH: &str = "S=Smith;P=Acme;A=Carrier;C=GB";

/// Whether Python is there; prints that the test is skipped otherwise.
fn has_python() -> bool {
    let tried = Command::new("python3")
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    let there = tried.is_ok_and(|status| status.success());
    if !there {
        let _ = writeln!(std::io::stderr(), "skipped: python3 is not installed");
    }
    there
}

fn message(subject: &str, text: &str) -> vere_x400::Message {
    let domain = GlobalDomainIdentifier::new("GB", "Carrier", Some("Acme")).unwrap();
    let submission = Submission {
        originator: JONES.parse().unwrap(),
        recipients: vec![SMITH.parse().unwrap()],
        ..Submission::default()
    };
    let site = Site::new(domain, "mta1").unwrap();
    site.compose(&submission, subject, text, "1").unwrap()
}

fn deliver(id: usize, kind: UnitKind, content_type: &str) -> Deliver {
    Deliver {
        id: id.to_string(),
        trace: format!("01HXYZ000000{id}"),
        kind,
        identifier: "[/PRMD=Acme/ADMD=Carrier/C=GB/;1]".to_owned(),
        originator: (kind != UnitKind::Report).then(|| JONES.to_owned()),
        recipients: vec![Recipient {
            place: 0,
            address: SMITH.to_owned(),
        }],
        content_type: Some(content_type.to_owned()),
        ..Deliver::default()
    }
}

/// The constructed values of an encoding with lengths that are not given, strings in two pieces.
fn indefinite(octets: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = octets;
    while let [tag, after @ ..] = rest {
        assert_ne!(tag & 0x1F, 0x1F, "short tags only");
        let (length, head) = match after[0] {
            short @ 0..=0x7F => (usize::from(short), 1),
            0x81 => (usize::from(after[1]), 2),
            0x82 => (usize::from(after[1]) << 8 | usize::from(after[2]), 3),
            other => panic!("a length of {other}"),
        };
        let (content, behind) = after[head..].split_at(length);
        if tag & 0x20 != 0 {
            out.extend([*tag, 0x80]);
            out.extend(indefinite(content));
            out.extend([0, 0]);
        } else if *tag == 0x04 {
            let (first, second) = content.split_at(length / 2);
            out.extend([0x24, 0x80]);
            for piece in [first, second] {
                out.extend([0x04, 0x82]);
                out.extend(u16::try_from(piece.len()).unwrap().to_be_bytes());
                out.extend(piece);
            }
            out.extend([0, 0]);
        } else {
            out.push(*tag);
            out.extend(&after[..head]);
            out.extend(content);
        }
        rest = behind;
    }
    out
}

/// The deliveries of the test, in order.
fn deliveries() -> Vec<(Deliver, Bytes)> {
    let plain = Apdu::Message(message("Lunch", "At noon?\r\nHere.\r\n"));
    let octets = plain.to_bytes();
    let in_pieces = Bytes::from(indefinite(&octets));
    assert!(matches!(Apdu::split(&in_pieces), Ok(Apdu::Message(_))));
    let mut other = message("x", "y");
    other.content = Content::new(Bytes::from_static(b"UNB+"));
    vec![
        (deliver(0, UnitKind::Message, "22"), octets),
        (
            deliver(1, UnitKind::Message, "22"),
            Apdu::Message(message("Gr\u{fc}\u{df}e", "\u{e4}")).to_bytes(),
        ),
        (deliver(2, UnitKind::Message, "22"), in_pieces),
        (
            deliver(3, UnitKind::Message, "35"),
            Apdu::Message(other).to_bytes(),
        ),
        (
            deliver(4, UnitKind::Report, "22"),
            Bytes::from_static(b"\xa1\x00"),
        ),
        (
            deliver(5, UnitKind::Message, "22"),
            Bytes::from_static(b"\xa0\x7f"),
        ),
    ]
}

/// Gives all deliveries to the first client, and collects what it says.
fn serve(mut stream: UnixStream) -> Vec<ServerEvent> {
    let mut server = Server::new(Bounds::default());
    let mut waiting = deliveries().into_iter();
    let mut events = Vec::new();
    let mut buffer = [0; 4_096];
    loop {
        while let Some(event) = server.event() {
            match &event {
                ServerEvent::Attach { name, .. } => {
                    assert_eq!(name.as_deref(), Some("aftn"));
                    server.attached("mta1", "/PRMD=Acme/ADMD=Carrier/C=GB/");
                }
                ServerEvent::Submit { tag, .. } if tag == "3" => {
                    server.refuse(tag, true, "the spool is full")
                }
                ServerEvent::Submit { tag, .. } => {
                    server.submitted(tag, "[reply]", "01HXYZ0000009")
                }
                _ => (),
            }
            events.push(event);
        }
        if server.room() > 0
            && let Some((deliver, apdu)) = waiting.next()
        {
            server.deliver(deliver, vec![apdu]).unwrap();
        }
        while let Some(piece) = server.output() {
            stream.write_all(&piece).unwrap();
        }
        match stream.read(&mut buffer).unwrap_or(0) {
            0 => return events,
            count => server.receive(&buffer[..count]),
        }
    }
}

#[test]
fn the_gateway_in_python_prints_messages_and_submits_replies() {
    if !has_python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("attach.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let server = thread::spawn(move || serve(listener.accept().unwrap().0));
    let output = Command::new("python3")
        .arg("-B")
        .arg(EXAMPLE)
        .arg(&socket)
        .args(["aftn", "--count", "6", "--reply", "Thank you.\nÄ"])
        .env("PYTHONIOENCODING", "utf-8")
        .output()
        .unwrap();
    let (said, faults) = (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    );
    assert!(output.status.success(), "{said}{faults}");
    let plain = |id: usize| {
        format!(
            "message [/PRMD=Acme/ADMD=Carrier/C=GB/;1] (01HXYZ000000{id})\n  from {JONES}\n  to {SMITH}\n  subject Lunch\n  | At noon?\n  | Here.\n"
        )
    };
    for part in [
        "attached to mta1 in /PRMD=Acme/ADMD=Carrier/C=GB/\n",
        &plain(0),
        "submitted [reply] (01HXYZ0000009)\n",
        "  subject Grüße\n  | ä\n",
        &plain(2),
        "  content 554e422b\n",
        "report [/PRMD=Acme/ADMD=Carrier/C=GB/;1] (01HXYZ0000004)\n  from (a report)\n",
        "  cannot read: a value longer than its surroundings; a07f\n",
    ] {
        assert!(said.contains(part), "{part:?} in {said}");
    }
    assert_eq!(faults, "not submitted: the spool is full\n");

    let events = server.join().unwrap();
    let done = events.iter().filter(|event| {
        matches!(event, ServerEvent::Done { results, .. } if results[0].result == Fate::Delivered)
    });
    assert_eq!(done.count(), 6);
    let reply = events.iter().find_map(|event| match event {
        ServerEvent::Submit {
            message, octets, ..
        } => Some((message.clone().unwrap(), octets.clone())),
        _ => None,
    });
    let expected = Message {
        originator: SMITH.to_owned(),
        recipients: vec![JONES.to_owned()],
        subject: Some("Re: Lunch".to_owned()),
        ..Message::default()
    };
    let octets = Bytes::from("Thank you.\nÄ");
    assert_eq!(reply, Some((Box::new(expected), octets)));
}

#[test]
fn the_gateway_in_python_says_why_it_was_refused() {
    if !has_python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("attach.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream
            .write_all(
                b"{\"refused\":{\"error\":\"expected a gateway of the settings; found aftn\"}}\n",
            )
            .unwrap();
        let _ = stream.read(&mut [0; 100]);
    });
    let output = Command::new("python3")
        .arg("-B")
        .arg(EXAMPLE)
        .arg(&socket)
        .arg("aftn")
        .output()
        .unwrap();
    server.join().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        said,
        "x400_gateway: expected a gateway of the settings; found aftn\n"
    );
}
