use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::{RunningSink, SaveMode, SinkOptions, read_index};
use crate::ids::MessageId;

/// A blocking client connection.
struct Client {
    stream: TcpStream,
    lines: BufReader<TcpStream>,
}

impl Client {
    fn open(sink: &RunningSink) -> Self {
        let stream = TcpStream::connect(sink.handle().address()).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        Self {
            lines: BufReader::new(stream.try_clone().unwrap()),
            stream,
        }
    }

    /// The code of the next reply; 0 when the connection is closed.
    fn code(&mut self) -> u16 {
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).unwrap_or(0) == 0 {
                return 0;
            }
            if line.as_bytes()[3] == b' ' {
                return line[..3].parse().unwrap();
            }
        }
    }

    fn say(&mut self, line: &str) -> u16 {
        let _ = self.stream.write_all(line.as_bytes());
        self.code()
    }
}

fn dialogue(client: &mut Client) -> Vec<u16> {
    let mut codes = vec![client.code()];
    for line in [
        "EHLO c.test\r\n",
        "MAIL FROM:<a@b.test>\r\n",
        "RCPT TO:<bob@x.test>\r\n",
        "DATA\r\n",
        "X-Bench-Id: 0000000100000002\r\nSubject: hi\r\n\r\n..dot\r\n.\r\n",
        "QUIT\r\n",
    ] {
        codes.push(client.say(line));
    }
    codes
}

#[test]
fn keeps_one_readable_file_per_message() {
    let dir = tempfile::tempdir().unwrap();
    let save = dir.path().join("new");
    let sink = RunningSink::start(SinkOptions {
        save: Some(save.clone()),
        ..SinkOptions::default()
    })
    .unwrap();
    assert_eq!(
        dialogue(&mut Client::open(&sink)),
        [220, 250, 250, 250, 354, 250, 221]
    );
    let files: Vec<_> = std::fs::read_dir(&save)
        .unwrap()
        .map(|entry| entry.unwrap())
        .collect();
    assert_eq!(files.len(), 1);
    assert!(files[0].file_name().to_string_lossy().ends_with(".eml"));
    assert_eq!(
        std::fs::read_to_string(files[0].path()).unwrap(),
        "Return-Path: <a@b.test>\r\nX-Envelope-To: <bob@x.test>\r\n\
         X-Bench-Id: 0000000100000002\r\nSubject: hi\r\n\r\n.dot\r\n"
    );
    assert_eq!(sink.stop().unwrap().messages, 1);
}

#[test]
fn keeps_an_index_over_restarts() {
    let dir = tempfile::tempdir().unwrap();
    let options = || SinkOptions {
        save: Some(dir.path().to_owned()),
        mode: SaveMode::Log,
        ..SinkOptions::default()
    };
    for _ in 0..2 {
        let sink = RunningSink::start(options()).unwrap();
        dialogue(&mut Client::open(&sink));
        sink.stop().unwrap();
    }
    let entries = read_index(dir.path()).unwrap();
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[1].offset, entries[0].length);
    assert_eq!(entries[1].id, Some(MessageId::new(1, 2)));
    assert_eq!(entries[1].message_id, None);
    let messages = std::fs::read(dir.path().join("messages")).unwrap();
    assert_eq!(messages.len() as u64, entries[1].offset + entries[1].length);
}

#[test]
fn misbehaves_as_told() {
    let sink = RunningSink::faulty(&["connect=421 4.3.2 full*1"]);
    assert_eq!(Client::open(&sink).code(), 421);
    assert_eq!(dialogue(&mut Client::open(&sink))[..2], [220, 250]);

    let sink = RunningSink::faulty(&["rcpt:bob@=550 5.1.1 no bob*1", "data=451*1"]);
    let mut client = Client::open(&sink);
    assert_eq!(dialogue(&mut client)[..5], [220, 250, 250, 550, 503]);
    assert_eq!(
        dialogue(&mut Client::open(&sink))[..5],
        [220, 250, 250, 250, 451]
    );

    let sink = RunningSink::faulty(&["dot:bob=452 4.3.1 full*1", "dot:bob=lose*1", "dot=close"]);
    assert_eq!(dialogue(&mut Client::open(&sink))[4..], [354, 452, 221]);
    assert_eq!(sink.handle().counts().messages, 0);
    assert_eq!(dialogue(&mut Client::open(&sink))[4..], [354, 0, 0]);
    assert_eq!(dialogue(&mut Client::open(&sink))[4..], [354, 0, 0]);
    let counts = sink.stop().unwrap();
    assert_eq!((counts.messages, counts.faults), (1, 3));
}

#[test]
fn a_delay_holds_only_its_own_session() {
    // The first delay is longer than any test, the second short.
    let sink = RunningSink::faulty(&["mail=delay:1h*1", "mail=delay:50ms*1"]);
    let mut slow = Client::open(&sink);
    slow.code();
    slow.say("EHLO c.test\r\n");
    slow.stream.write_all(b"MAIL FROM:<a@b.test>\r\n").unwrap();
    slow.stream.flush().unwrap();
    // The rule is used up once the slow session has met the rule.
    while sink.handle().counts().faults == 0 {
        std::thread::yield_now();
    }
    for _ in 0..2 {
        assert_eq!(
            dialogue(&mut Client::open(&sink)),
            [220, 250, 250, 250, 354, 250, 221]
        );
    }
    slow.stream.set_nonblocking(true).unwrap();
    let nothing = slow.stream.peek(&mut [0; 1]).unwrap_err();
    assert_eq!(nothing.kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn remembers_ids_and_stops_idle_sessions() {
    let sink = RunningSink::faulty(&[]);
    dialogue(&mut Client::open(&sink));
    let mut idle = Client::open(&sink);
    assert_eq!(idle.code(), 220);
    assert_eq!(sink.handle().deliveries()[0].id, MessageId::new(1, 2));
    sink.handle().stop();
    assert_eq!(idle.code(), 421);
    assert_eq!(idle.code(), 0);
}

#[test]
fn more_sessions_than_allowed_are_turned_away() {
    let sink = RunningSink::start(SinkOptions {
        sessions_max: 1,
        ..SinkOptions::default()
    })
    .unwrap();
    let mut first = Client::open(&sink);
    assert_eq!(first.code(), 220);
    assert_eq!(Client::open(&sink).code(), 421);
    assert_eq!(first.say("NOOP\r\n"), 250);
}
