//! A listening daemon as subject, over TCP.
//!
//! The messages stored by the daemon are out of sight, so `M:` lines pass unchecked; the clock cannot
//! be moved, so long waits skip the script; the limits are the daemon's own.

mod tls;

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use crate::parse::{Requirement, Script};
use crate::runner::{Dialect, Failure, Heard, Subject, SubjectError, Verdict, run, take_line};

pub use tls::Stream;

/// The longest wait carried out in real time.
const WAIT_MAX: Duration = Duration::from_secs(3);

/// How long to listen before silence is believed.
const SILENCE: Duration = Duration::from_millis(100);

/// The longest line in octets.
const LINE_MAX: usize = 64 * 1024;

/// A daemon, and its grants to connections from here.
#[derive(Clone, Debug)]
pub struct Target {
    /// The address for mail from servers.
    pub smtp: SocketAddr,
    /// The address for mail from users.
    pub submission: Option<SocketAddr>,
    /// The address for IMAP.
    pub imap: Option<SocketAddr>,
    /// The rights of this client, as in `@peer`: `relay`, `auth-in-clear`, `xclient`, `proxy`, `tls`, `auth`.
    pub rights: Vec<String>,
    /// The known limits, as in `@limit`.
    pub limits: BTreeMap<String, u64>,
    /// How long to wait for a reply.
    pub patience: Duration,
}

impl From<SocketAddr> for Target {
    /// A daemon at one address with TLS and without further grants.
    fn from(smtp: SocketAddr) -> Self {
        Self {
            smtp,
            submission: None,
            imap: None,
            rights: vec!["tls".to_owned(), "auth".to_owned()],
            limits: BTreeMap::new(),
            patience: Duration::from_secs(10),
        }
    }
}

/// Runs a script against a daemon.
///
/// # Errors
///
/// [`Failure`] at the first line at which the daemon does something else.
pub fn run_against(target: impl Into<Target>, script: &Script) -> Result<Verdict, Failure> {
    let target = target.into();
    let listener = script
        .requirements
        .iter()
        .find(|needed| matches!(needed, Requirement::Submission | Requirement::Imap))
        .cloned();
    let mut daemon = Daemon {
        target,
        listener,
        connections: BTreeMap::new(),
    };
    run(script, &mut daemon)
}

#[derive(Debug)]
struct Daemon {
    target: Target,
    /// The port that the script needs, if other than SMTP.
    listener: Option<Requirement>,
    connections: BTreeMap<u32, Connection>,
}

#[derive(Debug)]
struct Connection {
    /// `None` once either side has closed.
    stream: Option<Stream>,
    heard: Vec<u8>,
}

impl Daemon {
    fn connection(&mut self, number: u32) -> Result<&mut Connection, SubjectError> {
        if !self.connections.contains_key(&number) {
            let wanted = match self.listener {
                Some(Requirement::Submission) => self.target.submission,
                Some(Requirement::Imap) => self.target.imap,
                _ => None,
            };
            let address = wanted.unwrap_or(self.target.smtp);
            let stream = TcpStream::connect_timeout(&address, self.target.patience)
                .and_then(|stream| stream.set_nodelay(true).map(|()| stream))
                .map_err(|error| SubjectError(format!("cannot connect to {address}: {error}")))?;
            let connection = Connection {
                stream: Some(Stream::Plain(stream)),
                heard: Vec::new(),
            };
            self.connections.insert(number, connection);
        }
        let lost = || SubjectError("no such connection".to_owned());
        self.connections.get_mut(&number).ok_or_else(lost)
    }
}

impl Subject for Daemon {
    fn lacks(&self, requirement: &Requirement) -> Option<String> {
        match requirement {
            Requirement::Submission if self.target.submission.is_none() => {
                Some("needs the submission port".to_owned())
            }
            Requirement::Imap if self.target.imap.is_none() => {
                Some("needs the IMAP port".to_owned())
            }
            Requirement::Submission | Requirement::Imap => None,
            Requirement::Right { right, has } => {
                let granted = self.target.rights.contains(right);
                (granted != *has).then(|| match has {
                    true => format!("needs the right {right}"),
                    false => format!("needs a client without the right {right}"),
                })
            }
            Requirement::Limit { name, value } => (self.target.limits.get(name) != Some(value))
                .then(|| format!("needs {name} = {value}")),
            Requirement::Switch(name) => Some(format!("needs {name}")),
            Requirement::Bare(reason) => Some(reason.clone()),
            Requirement::Together(_) => None,
        }
    }

    fn lacks_wait(&self, time: Duration) -> Option<String> {
        (time > WAIT_MAX).then(|| format!("needs {} s of waiting", time.as_secs()))
    }

    fn dialect(&self) -> Dialect {
        match self.listener {
            Some(Requirement::Imap) => Dialect::Imap,
            _ => Dialect::Smtp,
        }
    }

    fn send(&mut self, connection: u32, octets: &[u8]) -> Result<(), SubjectError> {
        let connection = self.connection(connection)?;
        if let Some(stream) = &mut connection.stream {
            // A close by the server is noticed after the last line is read.
            let _ = stream.write_all(octets).and_then(|()| stream.flush());
        }
        Ok(())
    }

    fn hear(&mut self, connection: u32) -> Result<Heard, SubjectError> {
        let patience = self.target.patience;
        Ok(self.connection(connection)?.hear(patience))
    }

    fn has_more(&mut self, connection: u32) -> bool {
        self.connections
            .get_mut(&connection)
            .is_some_and(|connection| !connection.heard.is_empty() || connection.listen(SILENCE))
    }

    fn wait(&mut self, time: Duration) {
        std::thread::sleep(time);
    }

    fn start_tls(&mut self, connection: u32) -> Result<(), SubjectError> {
        let connection = self.connection(connection)?;
        match connection.stream.take() {
            Some(Stream::Plain(stream)) if connection.heard.is_empty() => {
                connection.stream = Some(tls::shake_hands(stream)?);
                Ok(())
            }
            _ => Err(SubjectError(
                "the connection is not ready for the handshake".to_owned(),
            )),
        }
    }

    fn close(&mut self, connection: u32) {
        if let Some(stream) = self
            .connections
            .remove(&connection)
            .and_then(|open| open.stream)
        {
            let _ = stream.socket().shutdown(Shutdown::Both);
        }
    }

    fn shut_down(&mut self) -> bool {
        false
    }

    fn message(&mut self) -> Option<String> {
        None
    }
}

impl Connection {
    fn hear(&mut self, patience: Duration) -> Heard {
        loop {
            if let Some(line) = take_line(&mut self.heard) {
                return Heard::Line(line);
            }
            if self.heard.len() > LINE_MAX {
                return Heard::Line(std::mem::take(&mut self.heard));
            }
            if self.listen(patience) {
                continue;
            }
            return if self.stream.is_some() {
                Heard::Nothing
            } else {
                Heard::Closed
            };
        }
    }

    /// Reads once, and says whether anything came.
    fn listen(&mut self, patience: Duration) -> bool {
        let Some(stream) = &mut self.stream else {
            return false;
        };
        let _ = stream.socket().set_read_timeout(Some(patience));
        let mut piece = [0; 4096];
        match stream.read(&mut piece) {
            Ok(0) => self.stream = None,
            Ok(octets) => {
                self.heard.extend_from_slice(&piece[..octets]);
                return true;
            }
            Err(error) => {
                let waited = [
                    ErrorKind::WouldBlock,
                    ErrorKind::TimedOut,
                    ErrorKind::Interrupted,
                ];
                if !waited.contains(&error.kind()) {
                    self.stream = None;
                }
            }
        }
        false
    }
}
