//! Deliveries of one message to many mailboxes by LMTP.

use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Instant;

use super::imap::ImapError;
use super::report::Figure;
use super::systems::{RECIPIENTS, System, recipients};
use super::tasks::figure;
use super::usage;

/// Delivers messages to fifteen mailboxes each over one LMTP connection.
pub(crate) fn deliver(
    system: &System,
    mail: &[Vec<u8>],
    count: usize,
) -> Result<Vec<Figure>, ImapError> {
    let written = || usage::written(&system.processes());
    let messages = &mail[..count.min(mail.len())];
    let mut lmtp = Lmtp::connect(system)?;
    lmtp.deliver(&messages[0])?;
    let before = written();
    let started = Instant::now();
    for message in messages {
        lmtp.deliver(message)?;
    }
    let writes = messages.len() * RECIPIENTS;
    let rate = writes as f64 / started.elapsed().as_secs_f64();
    let kib = written().saturating_sub(before) as f64 / messages.len() as f64 / 1024.0;
    Ok(vec![
        figure(system, "delivered to 15", rate),
        figure(system, "written by delivery to 15", kib),
    ])
}

/// An LMTP connection (RFC 2033) that sends each transaction in one piece.
struct Lmtp {
    reader: BufReader<TcpStream>,
    envelope: String,
}

impl Lmtp {
    fn connect(system: &System) -> io::Result<Self> {
        let stream = TcpStream::connect(system.lmtp)?;
        stream.set_nodelay(true)?;
        let mut envelope = "MAIL FROM:<sender@bench.test>\r\n".to_owned();
        for account in recipients() {
            envelope.push_str(&format!("RCPT TO:<{account}>\r\n"));
        }
        envelope.push_str("DATA\r\n");
        let mut lmtp = Self {
            reader: BufReader::new(stream),
            envelope,
        };
        lmtp.reply('2')?;
        lmtp.reader.get_mut().write_all(b"LHLO bench.test\r\n")?;
        lmtp.reply('2')?;
        Ok(lmtp)
    }

    fn reply(&mut self, class: char) -> io::Result<()> {
        let mut line = String::new();
        loop {
            line.clear();
            self.reader.read_line(&mut line)?;
            if !line.starts_with(class) {
                return Err(io::Error::other(format!("LMTP: {}", line.trim_end())));
            }
            if line.as_bytes().get(3) != Some(&b'-') {
                return Ok(());
            }
        }
    }

    fn deliver(&mut self, message: &[u8]) -> io::Result<()> {
        let envelope = std::mem::take(&mut self.envelope);
        let sent = self.reader.get_mut().write_all(envelope.as_bytes());
        self.envelope = envelope;
        sent?;
        for _ in 0..=RECIPIENTS {
            self.reply('2')?;
        }
        self.reply('3')?;
        let mut text = Vec::with_capacity(message.len() + 64);
        for line in message.split_inclusive(|octet| *octet == b'\n') {
            if line.starts_with(b".") {
                text.push(b'.');
            }
            text.extend_from_slice(line);
        }
        if !text.ends_with(b"\r\n") {
            text.extend_from_slice(b"\r\n");
        }
        text.extend_from_slice(b".\r\n");
        self.reader.get_mut().write_all(&text)?;
        for _ in 0..RECIPIENTS {
            self.reply('2')?;
        }
        Ok(())
    }
}
