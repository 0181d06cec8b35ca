//! Renewal of certificates: the machine with the key of the CA brings each node its next certificate.
//!
//! A connection has mutual TLS by the certificates that are about to end, and a protocol name of its own, at the port
//! where the node listens for gateways anyway. The gateway reads the node's key from the handshake and signs the
//! successor for the same key; the node verifies the successor and writes it in place of its certificate. So neither a
//! private key nor a listener is needed, and a machine that was removed gets no successor, because no gateway connects
//! to it.

use std::io::{self, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, SystemTime};

use vere_net::tls::{Leaf, Line, MutualTls};
use vere_process::encryption::{Encryption, certificates};
use vere_settings::{Settings, SpoolNode, SpoolTls};
use vere_units::Timestamp;

use crate::EnrolmentError;
use crate::authority::{Authority, Purpose};
use crate::files::{Owner, write};
use crate::wire::Timed;
use vere_joinwire::wire::{receive_octets, send_octets};

/// Octets of the longest certificate in PEM, and of the longest answer.
const CERTIFICATE_MAX: usize = 16 * 1024;
/// How long a connection attempt, and then the exchange may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The state of a certificate after a renewal pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The certificate is young enough, and ends then.
    Young(Timestamp),
    /// The certificate was renewed, and ends then.
    Renewed(Timestamp),
}

/// The result for one machine.
#[derive(Debug)]
pub struct Renewal {
    /// `None`: this machine.
    pub node: Option<String>,
    /// What became of its certificate.
    pub state: Result<State, EnrolmentError>,
}

/// Whether a certificate has reached two thirds of its life.
#[must_use]
pub fn is_due(leaf: &Leaf, now: SystemTime) -> bool {
    let since = now
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let now = Timestamp::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX));
    now.saturating_since(leaf.validity.not_before) >= leaf.validity.lifetime() / 3 * 2
}

/// Renews the certificates of this machine and of its nodes elsewhere that are due, or all. Empty on a machine without
/// `spool.tls.ca_key`.
///
/// # Errors
/// The CA or the certificates of this machine cannot be used.
pub fn renew(settings: &Settings, all: bool) -> Result<Vec<Renewal>, EnrolmentError> {
    let Some((tls, ca_key)) = with_key(settings) else {
        return Ok(Vec::new());
    };
    let authority = Authority::open(&tls.ca, ca_key)?;
    let mut done = vec![Renewal {
        node: None,
        state: renew_own(&authority, &tls.files.certificate, all),
    }];
    let mutual = certificates(settings).map_err(|error| EnrolmentError::Unusable {
        path: tls.files.certificate.clone(),
        problem: error.to_string(),
    })?;
    for node in settings.spool.nodes.iter().filter(|node| node.remote) {
        let encryption = Encryption::of(mutual.as_ref(), node);
        let Some(line) = encryption
            .as_ref()
            .and_then(|wanted| wanted.covers(node.listen))
        else {
            continue;
        };
        done.push(Renewal {
            node: Some(node.name.clone()),
            state: renew_node(&authority, line, node, all),
        });
    }
    Ok(done)
}

/// The certificates of the spool and the key of their CA, on the machine that renews.
fn with_key(settings: &Settings) -> Option<(&SpoolTls, &Path)> {
    let tls = settings.spool.tls.as_ref()?;
    Some((tls, tls.ca_key.as_deref()?))
}

pub(crate) fn renew_own(
    authority: &Authority,
    file: &Path,
    all: bool,
) -> Result<State, EnrolmentError> {
    let leaf = read_leaf(file)?;
    if !all && !is_due(&leaf, SystemTime::now()) {
        return Ok(State::Young(leaf.validity.not_after));
    }
    let issued = authority.sign_successor(&leaf, Purpose::Gateway)?;
    put(file, &issued.pem)?;
    Ok(State::Renewed(read_leaf(file)?.validity.not_after))
}

fn read_leaf(file: &Path) -> Result<Leaf, EnrolmentError> {
    Leaf::of_file(file).map_err(|error| EnrolmentError::Unusable {
        path: file.to_owned(),
        problem: error.to_string(),
    })
}

/// Replaces a certificate. The owner of the directory is the user that the system runs as.
fn put(file: &Path, pem: &str) -> Result<(), EnrolmentError> {
    let folder = file.parent().unwrap_or_else(|| Path::new("."));
    write(file, pem, 0o644, Owner::of(folder)?)
}

pub(crate) fn renew_node(
    authority: &Authority,
    tls: &MutualTls,
    node: &SpoolNode,
    all: bool,
) -> Result<State, EnrolmentError> {
    let (mut encrypted, leaf) = connect(tls, node)?;
    if !all && !is_due(&leaf, SystemTime::now()) {
        encrypted.close();
        return Ok(State::Young(leaf.validity.not_after));
    }
    let issued = authority.sign_successor(&leaf, Purpose::Node)?;
    let failed = || EnrolmentError::connection(node.listen);
    send_octets(&mut encrypted, issued.pem.as_bytes()).map_err(failed())?;
    let answer = receive_octets(&mut encrypted, CERTIFICATE_MAX).map_err(failed())?;
    encrypted.close();
    if !answer.is_empty() {
        let reason = String::from_utf8_lossy(&answer).into_owned();
        return Err(EnrolmentError::Refused(reason));
    }
    let end = Leaf::of(&issued.der.into()).map(|leaf| leaf.validity.not_after);
    Ok(State::Renewed(end.unwrap_or(leaf.validity.not_after)))
}

/// The certificate that a node shows, with all that a connection to the node needs: its name, the CA, the period.
///
/// # Errors
/// The node does not answer, or one side refuses the other's certificate.
pub fn look(tls: &MutualTls, node: &SpoolNode) -> Result<Leaf, EnrolmentError> {
    let (mut encrypted, leaf) = connect(tls, node)?;
    encrypted.close();
    Ok(leaf)
}

fn connect(tls: &MutualTls, node: &SpoolNode) -> Result<(Encrypted, Leaf), EnrolmentError> {
    let failed = || EnrolmentError::connection(node.listen);
    let stream = TcpStream::connect_timeout(&node.listen, PATIENCE).map_err(failed())?;
    let mut socket = Timed::new(stream, PATIENCE).map_err(failed())?;
    let line = tls.connect_to_renew(&node.name, node.listen.ip());
    let mut line = line.map_err(|error| failed()(io::Error::other(error.to_string())))?;
    line.shake_hands(&mut socket).map_err(failed())?;
    let old = || {
        failed()(io::Error::other(
            "the node's version cannot renew certificates",
        ))
    };
    if !line.is_renewal() {
        return Err(old());
    }
    let leaf = line.peer_leaf().ok_or_else(old)?;
    Ok((Encrypted { line, socket }, leaf))
}

/// A node's side: receives the successor of the node's certificate, and writes it in place. `line` has completed its
/// handshake. Returns the end of the new certificate, or `None` when the gateway only looked.
///
/// # Errors
/// The successor is refused or cannot be written, which the other side is told; or the connection breaks.
pub fn receive(
    stream: TcpStream,
    line: Line,
    tls: &MutualTls,
    peer: SocketAddr,
) -> Result<Option<Timestamp>, EnrolmentError> {
    let failed = || EnrolmentError::connection(peer);
    let socket = Timed::new(stream, PATIENCE).map_err(failed())?;
    let mut encrypted = Encrypted { line, socket };
    let pem = match receive_octets(&mut encrypted, CERTIFICATE_MAX) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        pem => pem.map_err(failed())?,
    };
    let put = replace(tls, &pem);
    let answer = put.as_ref().err().map(ToString::to_string);
    let told = send_octets(&mut encrypted, answer.unwrap_or_default().as_bytes());
    encrypted.close();
    let end = put?;
    told.map_err(failed())?;
    Ok(Some(end))
}

fn replace(tls: &MutualTls, pem: &[u8]) -> Result<Timestamp, EnrolmentError> {
    let refused = |text: String| EnrolmentError::Refused(text);
    tls.check_successor(pem)
        .map_err(|error| refused(error.to_string()))?;
    let own = || refused("the node has no certificate".to_owned());
    let (file, _) = tls.certificate_end().ok_or_else(own)?;
    let text = std::str::from_utf8(pem).map_err(|error| refused(error.to_string()))?;
    put(&file, text)?;
    Ok(read_leaf(&file)?.validity.not_after)
}

/// A blocking connection whose octets are encrypted.
struct Encrypted {
    line: Line,
    socket: Timed,
}

impl Encrypted {
    fn close(&mut self) {
        self.line.close(&mut self.socket);
    }
}

impl Read for Encrypted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.line.read(&mut self.socket, buffer)
    }
}

impl Write for Encrypted {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.line.write(&mut self.socket, &[IoSlice::new(buffer)])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.line.flush(&mut self.socket)
    }
}
