//! One connection: octets of TLS on the side of the client, plaintext on the side of the owner.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;

use mio::net::{TcpStream, UnixStream};
use rustls::{ServerConfig, ServerConnection};

use super::super::{KernelTls, PeerCertificate, TlsInfo, kernel};
use super::JobName;
use super::records::{ByRecord, Records};

/// Octets of plaintext carried at once.
pub(super) const CHUNK_OCTETS: usize = 16 * 1024;
/// Rounds before other connections have their turn.
const ROUNDS_MAX: usize = 16;

/// What a connection needs next.
#[derive(Debug)]
pub(super) enum Turn {
    /// The kernel tells when more can be done.
    Wait,
    /// More can be done at once, after a turn of the remaining connections.
    Again,
    /// The handshake is done, and the kernel can follow on ([`Session::into_kernel`]).
    Kernel,
    /// The connection is over.
    Over,
}

/// A connection.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) name: JobName,
    tls: ServerConnection,
    /// The ciphers that the kernel may carry out behind the handshake.
    kernel: KernelTls,
    records: Records,
    pub(super) client: Side<TcpStream>,
    pub(super) plain: Side<UnixStream>,
    /// Plaintext for the owner, and the number of written octets.
    received: Vec<u8>,
    written: usize,
    /// The owner knows of the finished handshake.
    is_open: bool,
    /// The connection goes on without an event.
    pub(super) is_busy: bool,
}

/// A socket with the last notices of the kernel.
#[derive(Debug)]
pub(super) struct Side<S> {
    pub(super) socket: S,
    can_read: bool,
    can_write: bool,
    /// The far end sends no more.
    is_ended: bool,
    /// Our end has been shut down.
    is_shut: bool,
    /// The far end reads no more.
    is_deaf: bool,
}

impl<S> Side<S> {
    const fn new(socket: S) -> Self {
        Self {
            socket,
            can_read: true,
            can_write: true,
            is_ended: false,
            is_shut: false,
            is_deaf: false,
        }
    }

    pub(super) const fn ready(&mut self, can_read: bool, can_write: bool) {
        self.can_read |= can_read;
        self.can_write |= can_write;
    }
}

/// Whether a step moved octets or changed the state of the connection.
type Progress = io::Result<bool>;

impl Session {
    /// # Errors
    /// When the TLS library refuses.
    pub(super) fn new(
        name: JobName,
        config: Arc<ServerConfig>,
        client: TcpStream,
        plain: UnixStream,
        kernel: KernelTls,
    ) -> Result<Self, rustls::Error> {
        Ok(Self {
            name,
            tls: ServerConnection::new(config)?,
            kernel,
            records: Records::default(),
            client: Side::new(client),
            plain: Side::new(plain),
            received: Vec::new(),
            written: 0,
            is_open: false,
            is_busy: false,
        })
    }

    /// Whether the handshake is under way.
    pub(super) const fn is_shaking_hands(&self) -> bool {
        !self.is_open
    }

    /// Carries octets in both directions as far as the sockets allow. `secured` hears when the handshake is done.
    pub(super) fn turn(
        &mut self,
        scratch: &mut [u8; CHUNK_OCTETS],
        secured: impl Fn(JobName, TlsInfo),
    ) -> Turn {
        for _ in 0..ROUNDS_MAX {
            let done = self.round(scratch, &secured);
            match done {
                Ok(_) if self.is_for_kernel() && !self.tls.wants_write() => {
                    if self.try_kernel() {
                        return Turn::Kernel;
                    }
                }
                Ok(true) => {}
                Ok(false) if self.is_over() => return Turn::Over,
                Ok(false) => return Turn::Wait,
                Err(error) => {
                    tracing::debug!(%error, "TLS connection broken");
                    // An alert stands behind the octets before the error.
                    while matches!(self.write_client(), Ok(true)) {}
                    return Turn::Over;
                }
            }
        }
        Turn::Again
    }

    fn round(
        &mut self,
        scratch: &mut [u8; CHUNK_OCTETS],
        secured: impl Fn(JobName, TlsInfo),
    ) -> Progress {
        let mut done = self.read_client(scratch)?;
        if !self.is_open && !self.tls.is_handshaking() && !self.is_for_kernel() {
            self.is_open = true;
            secured(self.name, self.info());
            done = true;
        }
        if self.is_open {
            done |= self.write_plain()?;
            done |= self.read_plain(scratch)?;
        } else if self.plain.can_read {
            // The owner may close, and writes only after the handshake.
            done |= self.look_at_plain()?;
        }
        done |= self.write_client()?;
        Ok(done)
    }

    fn info(&self) -> TlsInfo {
        let sni = self.tls.server_name().map(str::to_owned);
        TlsInfo::new(&self.tls, sni, PeerCertificate::NotAsked)
    }

    /// Whether the handshake is done and the kernel is to follow on; the last octets of the handshake may be unsent.
    fn is_for_kernel(&self) -> bool {
        let suite = self.tls.negotiated_cipher_suite();
        !self.is_open
            && !self.tls.is_handshaking()
            && suite.is_some_and(|suite| self.kernel.takes(suite.suite()))
    }

    /// Prepares the client's socket for the kernel. The thread goes on where the kernel refuses, as with a client that has
    /// closed its side already.
    fn try_kernel(&mut self) -> bool {
        let enabled = kernel::enable(&self.client.socket);
        if let Err(error) = &enabled {
            tracing::debug!(%error, "the kernel does not encrypt a connection");
            self.kernel = KernelTls::default();
        }
        enabled.is_ok()
    }

    /// Gives the kernel the keys. Returns the client, which carries plaintext from now on, and the end of the socket pair.
    ///
    /// # Errors
    /// When the kernel refuses; the connection is over then.
    pub(super) fn into_kernel(self) -> io::Result<(TlsInfo, TcpStream, UnixStream)> {
        let info = self.info();
        let client = self.client.socket;
        let secrets = self.tls.dangerous_extract_secrets();
        kernel::install(&client, secrets.map_err(io::Error::other)?)?;
        Ok((info, client, self.plain.socket))
    }

    /// Whether the connection is over: the owner has ended, and the client has every octet.
    fn is_over(&self) -> bool {
        let all_sent = self.plain.is_ended && !self.tls.wants_write();
        all_sent || (self.client.is_ended && !self.is_open)
    }

    /// Reads from the client once the owner has taken all octets before.
    fn read_client(&mut self, scratch: &mut [u8; CHUNK_OCTETS]) -> Progress {
        if self.plain.is_deaf || !self.received.is_empty() || self.is_for_kernel() {
            return Ok(false);
        }
        if self.take_plaintext(scratch)? {
            return Ok(true);
        }
        if self.client.is_ended || !self.client.can_read {
            return Ok(false);
        }
        match self.read_tls() {
            Ok(0) => self.client.is_ended = true,
            Ok(_) => {}
            Err(error) => return passed_over(error, &mut self.client.can_read),
        }
        let state = self.tls.process_new_packets().map_err(io::Error::other)?;
        self.client.is_ended |= state.peer_has_closed();
        self.take_plaintext(scratch)?;
        Ok(true)
    }

    /// Reads octets for the TLS library. During a handshake that the kernel may follow on, nothing behind a record is read: the
    /// library would keep it.
    fn read_tls(&mut self) -> io::Result<usize> {
        let socket = &mut self.client.socket;
        if self.is_open || !self.kernel.is_there() {
            return self.tls.read_tls(socket);
        }
        let records = &mut self.records;
        self.tls.read_tls(&mut ByRecord { records, socket })
    }

    /// Takes decrypted plaintext.
    fn take_plaintext(&mut self, scratch: &mut [u8; CHUNK_OCTETS]) -> Progress {
        match self.tls.reader().read(scratch) {
            Ok(octets) => {
                let octets = scratch.get(..octets).unwrap_or_default();
                self.received.extend_from_slice(octets);
                Ok(!octets.is_empty())
            }
            // SMTP has an end of its own, and needs no notice of TLS.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => passed_over(error, &mut true),
        }
    }

    /// Writes plaintext to the owner, and the end behind it.
    fn write_plain(&mut self) -> Progress {
        let rest = self.received.get(self.written..).unwrap_or_default();
        if rest.is_empty() {
            let is_at_end = self.client.is_ended && !self.plain.is_shut;
            if is_at_end {
                self.plain.is_shut = true;
                // The owner may be gone already.
                let _ = self.plain.socket.shutdown(Shutdown::Write);
            }
            return Ok(is_at_end);
        }
        if !self.plain.can_write {
            return Ok(false);
        }
        match self.plain.socket.write(rest) {
            Ok(octets) => self.written = self.written.saturating_add(octets),
            // The owner has closed; its last words may still wait.
            Err(error) if is_of_a_closed_end(&error) => {
                (self.received, self.written) = (Vec::new(), 0);
                (self.plain.is_deaf, self.plain.can_read) = (true, true);
            }
            Err(error) => return passed_over(error, &mut self.plain.can_write),
        }
        if self.written >= self.received.len() {
            // An idle connection holds no buffer.
            (self.received, self.written) = (Vec::new(), 0);
        }
        Ok(true)
    }

    /// Reads plaintext of the owner once the client has taken all octets before.
    fn read_plain(&mut self, scratch: &mut [u8; CHUNK_OCTETS]) -> Progress {
        if !self.plain.can_read || self.plain.is_ended || self.tls.wants_write() {
            return Ok(false);
        }
        match self.plain.socket.read(scratch) {
            Ok(0) => {
                self.plain.is_ended = true;
                self.tls.send_close_notify();
            }
            Ok(octets) => {
                let octets = scratch.get(..octets).unwrap_or_default();
                self.tls.writer().write_all(octets)?;
            }
            // An owner that left octets unread has ended too.
            Err(error) if is_of_a_closed_end(&error) => {
                (self.plain.is_ended, self.plain.is_deaf) = (true, true);
                self.tls.send_close_notify();
            }
            Err(error) => return passed_over(error, &mut self.plain.can_read),
        }
        Ok(true)
    }

    fn look_at_plain(&mut self) -> Progress {
        match self.plain.socket.read(&mut [0; 1]) {
            Ok(0) => Err(io::Error::other("owner has closed amid the handshake")),
            Ok(octets) => Err(io::Error::other(format!(
                "expected silence of the owner amid the handshake; found {octets} octets"
            ))),
            Err(error) => passed_over(error, &mut self.plain.can_read),
        }
    }

    fn write_client(&mut self) -> Progress {
        if !self.tls.wants_write() || !self.client.can_write {
            return Ok(false);
        }
        match self.tls.write_tls(&mut self.client.socket) {
            Ok(_) => Ok(true),
            Err(error) => passed_over(error, &mut self.client.can_write),
        }
    }
}

/// Whether the far end of a socket pair has been closed.
fn is_of_a_closed_end(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
    )
}

/// A socket that is not ready is waited for, an interrupted call is made again, and any other error ends the connection.
fn passed_over(error: io::Error, ready: &mut bool) -> Progress {
    match error.kind() {
        io::ErrorKind::WouldBlock => {
            *ready = false;
            Ok(false)
        }
        io::ErrorKind::Interrupted => Ok(true),
        _ => Err(error),
    }
}
