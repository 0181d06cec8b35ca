//! A blocking client of SMTP and LMTP, which sends text and expects replies.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A connection after the greeting.
pub(crate) struct Dialogue {
    stream: BufReader<TcpStream>,
}

impl Dialogue {
    /// Connects, and reads the greeting; the server may be silent for as long as `patience`.
    pub(crate) fn connect(address: SocketAddr, patience: Duration) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, patience)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(patience))?;
        let mut dialogue = Self {
            stream: BufReader::new(stream),
        };
        dialogue.reply("220")?;
        Ok(dialogue)
    }

    /// Sends a text without waiting for a reply.
    pub(crate) fn send(&mut self, text: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(text)
    }

    /// Sends a text, whose reply must begin with `expected`.
    pub(crate) fn ask(&mut self, text: &str, expected: &str) -> io::Result<()> {
        self.send(text.as_bytes())?;
        self.reply(expected)
    }

    /// Reads a reply, whose lines must begin with `expected`; another line is the error.
    pub(crate) fn reply(&mut self, expected: &str) -> io::Result<()> {
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if !line.starts_with(expected) {
                return Err(io::Error::other(line.trim_end().to_owned()));
            }
            if line.as_bytes().get(3) != Some(&b'-') {
                return Ok(());
            }
        }
    }
}
