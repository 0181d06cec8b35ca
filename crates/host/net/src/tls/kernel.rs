//! TLS by the kernel behind a handshake (`Documentation/networking/tls.rst` of Linux): the socket of the client reads and writes
//! plaintext, and a process that gets the socket needs neither keys nor a library.
//!
//! The kernel knows records and their keys alone. Alerts and other records without data fail a read by EIO, which the owner of a
//! socket takes for the end ([`read`]); the alert of the end is [`close_notify`].
//!
//! Not covered: TLS 1.2, whose nonces the kernel counts from a start that rustls has used already; new keys amid a connection
//! (RFC 8446 section 4.6.3), which the kernel learned in Linux 6.14. A client that announces new keys is disconnected.

use std::fmt;
use std::io::{self, IoSlice, Read};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::sockopt::{TcpTlsRx, TcpTlsTx, TcpUlp, TlsCryptoInfo};
use nix::sys::socket::{SetSockOpt, setsockopt};
use rustix::net::{SendFlags, send};
use rustls::crypto::cipher::Iv;
use rustls::{CipherSuite, ConnectionTrafficSecrets, ExtractedSecrets};
use socket2::{MsgHdr, SockRef};
use zeroize::Zeroize as _;

/// The type of a record with an alert (RFC 8446 section 5.1).
const ALERT: u8 = 21;
/// A warning, close_notify (RFC 8446 section 6.1).
const CLOSE_NOTIFY: [u8; 2] = [1, 0];
/// Octets of a control message with one octet (cmsg(3)): length, level, type, the octet.
const CONTROL_OCTETS: usize = size_of::<libc::size_t>() + 2 * size_of::<libc::c_int>() + 1;

/// The ciphers of TLS 1.3 that the kernel carries out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelTls {
    aes_128: bool,
    aes_256: bool,
    chacha: bool,
}

impl KernelTls {
    /// Asks the kernel, by connections of this process to itself.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] where the kernel has no TLS: built without it, or the module `tls` is not loaded, which needs
    /// CAP_NET_ADMIN. [`io::ErrorKind::Unsupported`] where none of the ciphers is known. Errors of sockets.
    pub fn probe() -> io::Result<Self> {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let knows = |cipher: &TlsCryptoInfo| -> io::Result<bool> {
            let socket = TcpStream::connect(port.local_addr()?)?;
            let (_other, _) = port.accept()?;
            enable(&socket)?;
            let both = setsockopt(&socket, TcpTlsTx, cipher)
                .and_then(|()| setsockopt(&socket, TcpTlsRx, cipher));
            Ok(both.is_ok())
        };
        let known = Self {
            aes_128: knows(&TlsCryptoInfo::Aes128Gcm(aes_128([0; 12], 0)))?,
            aes_256: knows(&TlsCryptoInfo::Aes256Gcm(aes_256([0; 12], 0)))?,
            chacha: knows(&TlsCryptoInfo::Chacha20Poly1305(chacha([0; 12], 0)))?,
        };
        match known == Self::default() {
            true => Err(io::ErrorKind::Unsupported.into()),
            false => Ok(known),
        }
    }

    /// Whether the kernel carries out any cipher.
    #[must_use]
    pub fn is_there(self) -> bool {
        self != Self::default()
    }

    /// Whether the kernel carries out a suite.
    pub(super) const fn takes(self, suite: CipherSuite) -> bool {
        match suite {
            CipherSuite::TLS13_AES_128_GCM_SHA256 => self.aes_128,
            CipherSuite::TLS13_AES_256_GCM_SHA384 => self.aes_256,
            CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => self.chacha,
            _ => false,
        }
    }
}

impl fmt::Display for KernelTls {
    /// The names of the ciphers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suites = [
            CipherSuite::TLS13_AES_128_GCM_SHA256,
            CipherSuite::TLS13_AES_256_GCM_SHA384,
            CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
        ];
        let taken = suites.into_iter().filter(|suite| self.takes(*suite));
        let names: Vec<_> = taken.filter_map(|suite| suite.as_str()).collect();
        f.write_str(&names.join(", "))
    }
}

/// Prepares a connected socket. A socket without keys carries octets as before.
///
/// # Errors
/// As [`KernelTls::probe`].
pub(super) fn enable(socket: &impl AsFd) -> io::Result<()> {
    setsockopt(socket, TcpUlp::default(), b"tls").map_err(io::Error::from)
}

/// Gives the kernel the keys of an [enabled](enable) socket, for both directions. The socket is of no use after an error.
///
/// # Errors
/// The kernel refuses the keys.
pub(super) fn install(socket: &impl AsFd, secrets: ExtractedSecrets) -> io::Result<()> {
    let ExtractedSecrets { tx, rx } = secrets;
    give(socket, TcpTlsTx, tx)?;
    give(socket, TcpTlsRx, rx)
}

/// Gives the kernel the key of a direction and the number of its next record.
fn give<O: SetSockOpt<Val = TlsCryptoInfo>>(
    socket: &impl AsFd,
    direction: O,
    (next, secrets): (u64, ConnectionTrafficSecrets),
) -> io::Result<()> {
    let nonce = |iv: &Iv| <[u8; 12]>::try_from(iv.as_ref()).map_err(|_| wrong());
    // The key comes last, and to the place where it is cleared: a value that moves leaves copies on the stack.
    let (info, key) = match &secrets {
        ConnectionTrafficSecrets::Aes128Gcm { key, iv } => {
            (TlsCryptoInfo::Aes128Gcm(aes_128(nonce(iv)?, next)), key)
        }
        ConnectionTrafficSecrets::Aes256Gcm { key, iv } => {
            (TlsCryptoInfo::Aes256Gcm(aes_256(nonce(iv)?, next)), key)
        }
        ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => (
            TlsCryptoInfo::Chacha20Poly1305(chacha(nonce(iv)?, next)),
            key,
        ),
        _ => return Err(wrong()),
    };
    let mut keyed = Keyed(info);
    keyed.fill(key.as_ref())?;
    Ok(setsockopt(socket, direction, &keyed.0)?)
}

fn wrong() -> io::Error {
    io::ErrorKind::InvalidInput.into()
}

/// The parameters of a direction for the kernel, with a key that is cleared at the end.
struct Keyed(TlsCryptoInfo);

impl Keyed {
    fn key(&mut self) -> &mut [u8] {
        match &mut self.0 {
            TlsCryptoInfo::Aes128Gcm(info) => &mut info.key,
            TlsCryptoInfo::Aes256Gcm(info) => &mut info.key,
            TlsCryptoInfo::Chacha20Poly1305(info) => &mut info.key,
        }
    }

    fn fill(&mut self, key: &[u8]) -> io::Result<()> {
        let place = self.key();
        if place.len() != key.len() {
            return Err(wrong());
        }
        place.copy_from_slice(key);
        Ok(())
    }
}

impl Drop for Keyed {
    fn drop(&mut self) {
        self.key().zeroize();
    }
}

const fn head(cipher: u16) -> libc::tls_crypto_info {
    libc::tls_crypto_info {
        version: libc::TLS_1_3_VERSION,
        cipher_type: cipher,
    }
}

/// The parameters of a direction, without the key.
fn aes_128(iv: [u8; 12], next: u64) -> libc::tls12_crypto_info_aes_gcm_128 {
    libc::tls12_crypto_info_aes_gcm_128 {
        info: head(libc::TLS_CIPHER_AES_GCM_128),
        iv: last(&iv),
        key: [0; 16],
        salt: first(&iv),
        rec_seq: next.to_be_bytes(),
    }
}

/// The parameters of a direction, without the key.
fn aes_256(iv: [u8; 12], next: u64) -> libc::tls12_crypto_info_aes_gcm_256 {
    libc::tls12_crypto_info_aes_gcm_256 {
        info: head(libc::TLS_CIPHER_AES_GCM_256),
        iv: last(&iv),
        key: [0; 32],
        salt: first(&iv),
        rec_seq: next.to_be_bytes(),
    }
}

/// The parameters of a direction, without the key.
const fn chacha(iv: [u8; 12], next: u64) -> libc::tls12_crypto_info_chacha20_poly1305 {
    libc::tls12_crypto_info_chacha20_poly1305 {
        info: head(libc::TLS_CIPHER_CHACHA20_POLY1305),
        iv,
        key: [0; 32],
        salt: [],
        rec_seq: next.to_be_bytes(),
    }
}

/// The first octets.
fn first<const N: usize, const ALL: usize>(all: &[u8; ALL]) -> [u8; N] {
    const { assert!(N <= ALL, "expected fewer octets than there are") };
    std::array::from_fn(|place| all.get(place).copied().unwrap_or_default())
}

/// The last octets.
fn last<const N: usize, const ALL: usize>(all: &[u8; ALL]) -> [u8; N] {
    const { assert!(N <= ALL, "expected fewer octets than there are") };
    std::array::from_fn(|place| all.get(ALL - N + place).copied().unwrap_or_default())
}

/// Reads plaintext. A record without data, such as the client's close_notify or new keys, is the end: 0.
///
/// # Errors
/// Errors of the socket, also of records that cannot be decrypted.
pub fn read(socket: &mut impl Read, into: &mut [u8]) -> io::Result<usize> {
    match socket.read(into) {
        Err(error) if is_end(&error) => Ok(0),
        read => read,
    }
}

/// Whether the error of a read says that a record without data is there.
#[must_use]
pub fn is_end(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::EIO as i32)
}

/// Writes octets, and the alert of the end behind the last of them. Returns the number of octets written.
///
/// The writer's side is not shut down: at shutdown(2) the kernel loses records that TCP's buffer had no room for, and at the close
/// of the last descriptor the kernel tries these once more. No record is held back to leave with the next (`MSG_MORE`), so that
/// send(2) waits for the encryption. For the client the connection ends by the alert.
///
/// # Errors
/// Errors of send(2).
pub fn write_last(socket: &impl AsFd, octets: &[u8]) -> io::Result<usize> {
    let written = send(socket, octets, SendFlags::NOSIGNAL)?;
    if written == octets.len() {
        close_notify(socket);
    }
    Ok(written)
}

/// Sends the alert of the end (RFC 8446 section 6.1), if the socket has room: a client that reads nothing is not waited for.
pub fn close_notify(socket: &impl AsFd) {
    let mut control = Vec::with_capacity(CONTROL_OCTETS);
    control.extend_from_slice(&CONTROL_OCTETS.to_ne_bytes());
    control.extend_from_slice(&libc::SOL_TLS.to_ne_bytes());
    control.extend_from_slice(&libc::TLS_SET_RECORD_TYPE.to_ne_bytes());
    control.push(ALERT);
    let alert = [IoSlice::new(&CLOSE_NOTIFY)];
    let message = MsgHdr::new().with_buffers(&alert).with_control(&control);
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    if let Err(error) = SockRef::from(socket).sendmsg(&message, flags) {
        tracing::debug!(%error, "close_notify not sent");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ciphers_have_names() {
        let known = KernelTls {
            aes_128: true,
            aes_256: false,
            chacha: true,
        };
        let names = "TLS13_AES_128_GCM_SHA256, TLS13_CHACHA20_POLY1305_SHA256";
        assert_eq!(known.to_string(), names);
    }

    #[test]
    fn a_key_has_the_length_of_its_cipher_and_reaches_its_place() {
        let mut keyed = Keyed(TlsCryptoInfo::Aes128Gcm(aes_128([9; 12], 1)));
        assert!(keyed.fill(&[7; 32]).is_err());
        keyed.fill(&[7; 16]).unwrap();
        let TlsCryptoInfo::Aes128Gcm(info) = &keyed.0 else {
            panic!("another cipher");
        };
        assert_eq!((info.key, info.salt, info.iv), ([7; 16], [9; 4], [9; 8]));
        assert_eq!(info.rec_seq, [0, 0, 0, 0, 0, 0, 0, 1]);
    }
}
