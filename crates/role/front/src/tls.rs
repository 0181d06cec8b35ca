//! STARTTLS: the threads of TLS, and the certificates; the signer has the keys.

use std::io;
use std::net::TcpStream as StdTcpStream;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use mio::Waker;
use mio::net::{TcpStream, UnixStream};
use vere_net::tls::{
    Job, ProxyOptions, RemoteCertificates, Secured, TlsInfo as Handshake, TlsProxy,
};
use vere_process::signer::SignerClient;
use vere_screen::Ticket;
use vere_settings::{Front, Settings};
use vere_smtp::server::TlsInfo;

/// How often the signer is asked for certificates, before the first answer and after that.
const CALL: Duration = Duration::from_millis(100);
const LOOK: Duration = Duration::from_secs(2);

/// The threads and the certificates.
#[derive(Debug)]
pub(crate) struct Tls {
    proxy: TlsProxy,
    certificates: Arc<RemoteCertificates>,
    /// The signer has answered.
    is_told: Arc<AtomicBool>,
    done: Receiver<(u64, Handshake)>,
}

impl Tls {
    /// Starts the threads. `waker` wakes the loop when a handshake is done.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub(crate) fn start(settings: &Settings, front: &Front, waker: Arc<Waker>) -> io::Result<Self> {
        let signer = Arc::new(SignerClient::new(&settings.signer_socket()));
        let certificates = Arc::new(RemoteCertificates::new(signer.clone()));
        let is_told = Arc::new(AtomicBool::new(false));
        let (tell, done) = channel();
        let secured: Secured = Arc::new(move |number, info| {
            // Without a receiver the front is at an end.
            let _ = tell.send((number, info));
            let _ = waker.wake();
        });
        let options = ProxyOptions {
            threads: usize::try_from(front.tls_threads).unwrap_or(usize::MAX),
            ..ProxyOptions::default()
        };
        let proxy = TlsProxy::start(&certificates, options, &secured)?;
        let (shown, told) = (Arc::clone(&certificates), Arc::clone(&is_told));
        std::thread::Builder::new()
            .name("certificates".to_owned())
            .spawn(move || follow(&signer, &shown, &told))?;
        Ok(Self {
            proxy,
            certificates,
            is_told,
            done,
        })
    }

    /// Whether the certificates are known.
    pub(crate) fn is_there(&self) -> bool {
        self.is_told.load(Ordering::Acquire)
    }

    /// Number of connections of the threads.
    pub(crate) fn open(&self) -> usize {
        self.proxy.open()
    }

    /// Whether clients are offered STARTTLS.
    pub(crate) fn is_offered(&self) -> bool {
        self.certificates.has_certificate()
    }

    /// Gives a thread a client before a handshake, and the end of a pair for the plaintext. The first plaintext comes behind the
    /// handshake; a failed handshake closes the pair.
    pub(crate) fn take(&mut self, ticket: Ticket, client: TcpStream, plain: StdUnixStream) {
        self.proxy.take(Job {
            number: ticket.to_bits(),
            client: StdTcpStream::from(client),
            plain,
        });
    }

    /// The clients with finished handshakes.
    pub(crate) fn secured(&self) -> Vec<(Ticket, TlsInfo)> {
        let of = |(number, info): (u64, Handshake)| {
            let info = TlsInfo {
                version: info.version.to_owned(),
                cipher: info.cipher.to_owned(),
                sni: info.sni,
            };
            (Ticket::from_bits(number), info)
        };
        self.done.try_iter().map(of).collect()
    }
}

/// Sockets for the plaintext of a connection: the session's, and the thread's.
///
/// # Errors
/// When the system gives none.
pub(crate) fn pair() -> io::Result<(UnixStream, StdUnixStream)> {
    let (here, plain) = StdUnixStream::pair()?;
    here.set_nonblocking(true)?;
    plain.set_nonblocking(true)?;
    Ok((UnixStream::from_std(here), plain))
}

/// Shows the signer's certificates, for ever. While the signer is away, the last known certificates are shown.
fn follow(signer: &SignerClient, shown: &RemoteCertificates, is_told: &AtomicBool) {
    let mut revision = None;
    loop {
        match look(signer, shown, revision) {
            Ok(now) => {
                revision = Some(now);
                is_told.store(true, Ordering::Release);
            }
            Err(error) if revision.is_some() => {
                tracing::warn!(%error, "the signer tells no certificates; the last ones are shown");
            }
            Err(error) => tracing::debug!(%error, "the signer tells no certificates yet"),
        }
        std::thread::sleep(match revision {
            Some(_) => LOOK,
            None => CALL,
        });
    }
}

fn look(signer: &SignerClient, shown: &RemoteCertificates, known: Option<u64>) -> io::Result<u64> {
    let revision = signer.revision()?;
    if known == Some(revision) {
        return Ok(revision);
    }
    let certificates = signer.certificates()?;
    tracing::info!(
        certificates = certificates.shown.len(),
        "certificates for STARTTLS"
    );
    shown.show(certificates.shown);
    Ok(certificates.revision)
}
