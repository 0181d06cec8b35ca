//! A plain SMTP dialogue, octet by octet, with TLS when a test wants it.

use std::fmt::Display;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use vere_script::daemon::Stream;

use super::{Authority, PATIENCE};

/// A connection.
#[derive(Debug)]
pub(crate) struct Session {
    reader: BufReader<Stream>,
}

impl Session {
    /// Connects and reads the greeting.
    pub(crate) fn connect(address: SocketAddr) -> Self {
        Self::try_connect(address).expect("a greeting")
    }

    /// Connects and reads the greeting, which must begin with 220.
    pub(crate) fn try_connect(address: SocketAddr) -> io::Result<Self> {
        let mut session = Self::open(address)?;
        let greeting = session.try_reply()?;
        if greeting.starts_with("220") {
            Ok(session)
        } else {
            Err(io::Error::other(greeting))
        }
    }

    /// Connects and reads nothing.
    pub(crate) fn open(address: SocketAddr) -> io::Result<Self> {
        Self::over(TcpStream::connect_timeout(&address, PATIENCE)?)
    }

    /// A session over a connection of which nothing was read.
    pub(crate) fn over(stream: TcpStream) -> io::Result<Self> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self {
            reader: BufReader::with_capacity(4096, Stream::Plain(stream)),
        })
    }

    /// Connects, says EHLO.
    pub(crate) fn greeted(address: SocketAddr) -> Self {
        let mut session = Self::connect(address);
        session.command("EHLO client.example.net", "250");
        session
    }

    /// Connects to an LMTP server, says LHLO.
    pub(crate) fn lmtp(address: SocketAddr) -> Self {
        let mut session = Self::connect(address);
        session.command("LHLO client.example.net", "250");
        session
    }

    /// Connects with TLS from the first octet and reads the greeting.
    pub(crate) fn connect_tls(address: SocketAddr, trust: &Authority, name: &str) -> Self {
        let mut session = Self::open(address).expect("a connection");
        session = session.handshake(trust, name);
        let greeting = session.reply();
        assert!(greeting.starts_with("220"), "{greeting}");
        session
    }

    /// Sends STARTTLS and makes the handshake.
    pub(crate) fn starttls(mut self, trust: &Authority, name: &str) -> Self {
        self.command("STARTTLS", "220");
        self.handshake(trust, name)
    }

    /// Makes a handshake as a client that asks for `name` and checks the certificate for the name.
    pub(crate) fn handshake(self, trust: &Authority, name: &str) -> Self {
        assert!(self.reader.buffer().is_empty(), "octets before TLS");
        self.try_handshake(trust, name).expect("a handshake")
    }

    /// As [`handshake`](Self::handshake), where the server may end the connection.
    pub(crate) fn try_handshake(self, trust: &Authority, name: &str) -> io::Result<Self> {
        let Stream::Plain(stream) = self.reader.into_inner() else {
            panic!("TLS within TLS");
        };
        let name = ServerName::try_from(name.to_owned()).expect("a name");
        let client = ClientConnection::new(Arc::clone(&trust.client), name);
        let mut tls = StreamOwned::new(client.expect("a client"), stream);
        while tls.conn.is_handshaking() {
            tls.conn.complete_io(&mut tls.sock)?;
        }
        Ok(Self {
            reader: BufReader::with_capacity(4096, Stream::Tls(Box::new(tls))),
        })
    }

    /// Ends TLS properly and keeps the connection.
    pub(crate) fn close_tls(self) -> Self {
        let Stream::Tls(mut stream) = self.reader.into_inner() else {
            panic!("no TLS");
        };
        stream.conn.send_close_notify();
        stream
            .conn
            .write_tls(&mut stream.sock)
            .expect("the farewell is sent");
        Self {
            reader: BufReader::with_capacity(4096, Stream::Plain(stream.sock)),
        }
    }

    /// The server's certificate in DER.
    pub(crate) fn certificate(&self) -> Vec<u8> {
        let Stream::Tls(stream) = self.reader.get_ref() else {
            panic!("no TLS");
        };
        let chain = stream.conn.peer_certificates().expect("a certificate");
        chain[0].to_vec()
    }

    /// How long reads and writes may take from now on.
    pub(crate) fn set_patience(&self, patience: Duration) {
        let socket = self.reader.get_ref().socket();
        socket.set_read_timeout(Some(patience)).expect("a time");
        socket.set_write_timeout(Some(patience)).expect("a time");
    }

    /// The socket below.
    pub(crate) fn socket(&self) -> &TcpStream {
        self.reader.get_ref().socket()
    }

    /// Reads a reply, all its lines.
    pub(crate) fn try_reply(&mut self) -> io::Result<String> {
        let mut reply = String::new();
        loop {
            let start = reply.len();
            if self.reader.read_line(&mut reply)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if reply.as_bytes().get(start + 3) != Some(&b'-') {
                return Ok(reply);
            }
        }
    }

    /// Reads a reply, all its lines.
    pub(crate) fn reply(&mut self) -> String {
        self.try_reply().expect("a reply")
    }

    /// Reads a reply that must begin with `expected`.
    pub(crate) fn expect(&mut self, expected: &str) -> String {
        let reply = self.reply();
        assert!(
            reply.starts_with(expected),
            "expected {expected}, got {reply}"
        );
        reply
    }

    /// Sends octets unchanged.
    pub(crate) fn send(&mut self, octets: &[u8]) {
        self.try_send(octets).expect("octets are taken");
    }

    /// Sends octets unchanged, if the server accepts the octets.
    pub(crate) fn try_send(&mut self, octets: &[u8]) -> io::Result<()> {
        let wire = self.reader.get_mut();
        wire.write_all(octets)?;
        wire.flush()
    }

    /// Sends a command and expects a reply that starts with `expected`.
    pub(crate) fn command(&mut self, line: &str, expected: &str) -> String {
        self.send(format!("{line}\r\n").as_bytes());
        let reply = self.reply();
        assert!(
            reply.starts_with(expected),
            "{line}: expected {expected}, got {reply}"
        );
        reply
    }

    /// Logs a usual account in.
    pub(crate) fn log_in(&mut self, account: &str) {
        let plain = STANDARD.encode(format!("\0{account}\0secret"));
        self.command(&format!("AUTH PLAIN {plain}"), "235 2.7.0");
    }

    /// Sends MAIL and RCPT.
    pub(crate) fn transaction(&mut self, from: &str, to: &[&str]) {
        self.command(&format!("MAIL FROM:<{from}>"), "250");
        for recipient in to {
            self.command(&format!("RCPT TO:<{recipient}>"), "250");
        }
    }

    /// Sends an envelope up to the server's 354.
    pub(crate) fn envelope(&mut self, from: &str, to: &[&str]) {
        self.transaction(from, to);
        self.command("DATA", "354");
    }

    /// Sends a message and returns the final reply.
    pub(crate) fn message(&mut self, from: &str, to: &[&str], text: &str) -> String {
        self.envelope(from, to);
        self.send(format!("{text}\r\n.\r\n").as_bytes());
        self.reply()
    }

    /// Sends a message and returns the final reply, or the reply to MAIL when MAIL is refused.
    pub(crate) fn offer(&mut self, from: &str, to: &str, text: &str) -> String {
        self.send(format!("MAIL FROM:<{from}>\r\n").as_bytes());
        let reply = self.reply();
        if !reply.starts_with("250") {
            return reply;
        }
        self.command(&format!("RCPT TO:<{to}>"), "250");
        self.command("DATA", "354");
        self.send(format!("{text}\r\n.\r\n").as_bytes());
        self.reply()
    }

    /// Sends a message that must be accepted and returns its queue id.
    pub(crate) fn submit(&mut self, from: &str, to: &[&str], text: &str) -> String {
        let reply = self.message(from, to, text);
        assert!(reply.starts_with("250 2."), "{reply}");
        queue_id(&reply)
    }

    /// Sends a short message with a subject, which must be accepted; returns its queue id.
    pub(crate) fn submit_about(
        &mut self,
        from: &str,
        to: &[&str],
        subject: impl Display,
    ) -> String {
        self.submit(from, to, &format!("Subject: {subject}\r\n\r\nbody"))
    }

    /// Sends EHLO and a short message that must be accepted.
    pub(crate) fn submit_after_ehlo(&mut self, to: &str) {
        self.command("EHLO client.example.net", "250");
        self.submit("a@example.net", &[to], "Subject: short\r\n\r\nbody");
    }

    /// Reads until the server closes the connection, as required.
    pub(crate) fn rest(mut self) -> String {
        let mut octets = Vec::new();
        match self.reader.read_to_end(&mut octets) {
            Ok(_) => {}
            Err(error) => match error.kind() {
                // The server closed with our octets unread, or without TLS's own farewell.
                io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof => {}
                _ => panic!("the connection stays open: {error}"),
            },
        }
        String::from_utf8_lossy(&octets).into_owned()
    }

    /// What the server still says until the end, which TLS has to announce (close_notify).
    pub(crate) fn rest_within_tls(mut self) -> String {
        let mut rest = String::new();
        let read = self.reader.read_to_string(&mut rest);
        read.expect("an end that TLS announces");
        rest
    }
}

/// The queue id in a final reply.
pub(crate) fn queue_id(reply: &str) -> String {
    let id = reply.trim_end().rsplit(' ').next().unwrap_or_default();
    assert_eq!(id.len(), 13, "no queue id in {reply:?}");
    id.to_owned()
}
