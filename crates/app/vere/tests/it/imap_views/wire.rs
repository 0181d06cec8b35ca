//! A connection whose every response is read, literals included.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use crate::harness::PATIENCE;

/// Stands for a literal in the text of a response.
const LITERAL: char = '\u{1}';

/// A response: its text without the line end, and its literals.
#[derive(Debug, Clone)]
pub(super) struct Response {
    pub(super) text: String,
    pub(super) literals: Vec<Vec<u8>>,
}

impl Response {
    /// The number behind a name, as in `UID 7`.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        let behind = self.text.split_once(&format!("{name} "))?.1;
        let end = behind.find(|c: char| !c.is_ascii_digit());
        behind[..end.unwrap_or(behind.len())].parse().ok()
    }

    /// What stands in brackets behind a name, as in `FLAGS (a b)`.
    pub(super) fn list(&self, name: &str) -> Option<Vec<String>> {
        let behind = self.text.split_once(&format!("{name} ("))?.1;
        let inside = behind.split_once(')')?.0;
        Some(inside.split_whitespace().map(str::to_owned).collect())
    }

    /// A response code, as `COPYUID` in `OK [COPYUID 1 2 3] text`: its words.
    pub(super) fn code(&self, name: &str) -> Option<Vec<&str>> {
        let behind = self.text.split_once(&format!("[{name} "))?.1;
        Some(behind.split_once(']')?.0.split_whitespace().collect())
    }
}

/// The numbers of a set such as `1:3,7`, in the order of the set.
pub(super) fn numbers(set: &str) -> Vec<u32> {
    let number = |text: &str| -> u32 { text.parse().unwrap_or_else(|_| panic!("no set: {set}")) };
    set.split(',')
        .flat_map(|range| match range.split_once(':') {
            Some((first, last)) => number(first)..=number(last),
            None => number(range)..=number(range),
        })
        .collect()
}

/// The dialogue, printed when the test fails.
#[expect(clippy::print_stdout, reason = "it is shown when the test fails only")]
fn note(port: u16, by: char, text: &str) {
    println!("{port} {by}: {text}");
}

/// A connection.
#[derive(Debug)]
pub(super) struct Wire {
    reader: BufReader<TcpStream>,
    /// The port, which names the connection in the output of a failed test.
    port: u16,
    tags: u32,
}

impl Wire {
    pub(super) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the IMAP port");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        stream.set_nodelay(true).expect("a socket");
        let port = stream.local_addr().expect("an address").port();
        let mut wire = Self {
            port,
            reader: BufReader::new(stream),
            tags: 0,
        };
        assert!(wire.response().text.starts_with("* OK"));
        wire
    }

    /// Sends a command and returns its tag.
    pub(super) fn send(&mut self, command: &str) -> String {
        self.tags += 1;
        let tag = format!("t{}", self.tags);
        self.say(&format!("{tag} {command}\r\n"));
        tag
    }

    pub(super) fn say(&mut self, text: &str) {
        note(self.port, 'C', text.trim_end());
        let stream = self.reader.get_mut();
        stream.write_all(text.as_bytes()).expect("a connection");
    }

    /// The next response.
    pub(super) fn response(&mut self) -> Response {
        let mut response = Response {
            text: String::new(),
            literals: Vec::new(),
        };
        loop {
            let mut line = String::new();
            let octets = self.reader.read_line(&mut line).expect("a response");
            assert!(octets > 0, "closed behind {response:?}");
            let line = line.strip_suffix("\r\n").expect("a whole line");
            let literal = line
                .strip_suffix('}')
                .and_then(|rest| rest.rsplit_once('{'))
                .and_then(|(text, size)| Some((text, size.parse::<usize>().ok()?)));
            let Some((text, size)) = literal else {
                response.text.push_str(line);
                note(self.port, 'S', &response.text);
                return response;
            };
            response.text.push_str(text);
            response.text.push(LITERAL);
            let mut octets = vec![0; size];
            self.reader.read_exact(&mut octets).expect("a literal");
            response.literals.push(octets);
        }
    }
}
