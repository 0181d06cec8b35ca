//! STARTTLS: the threads of TLS, and the certificates; the signer has the keys.

use std::io;
use std::net::TcpStream as StdTcpStream;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};

use mio::Waker;
use mio::net::{TcpStream, UnixStream};
use vere_net::tls::{
    Carrier, Handshakes, Job, JobName, KernelTls, ProxyOptions, RemoteCertificates, Secured,
    TlsInfo as Handshake, TlsProxy,
};
use vere_process::signer::{self, SignerClient};
use vere_screen::Ticket;
use vere_settings::{Front, Settings};
use vere_smtp::server::TlsInfo;

/// The threads and the certificates, for all loops.
#[derive(Debug)]
struct Threads {
    proxy: TlsProxy,
    certificates: Arc<RemoteCertificates>,
    /// The signer has answered.
    is_told: AtomicBool,
}

/// What a loop knows of the threads.
#[derive(Debug)]
pub(crate) struct Tls {
    threads: Arc<Threads>,
    /// The number of the loop.
    number: usize,
    done: Receiver<(u64, Handshake, Carrier)>,
}

impl Tls {
    /// Starts the threads for the loops of the wakers; a finished handshake wakes the loop of the client.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub(crate) fn start(
        settings: &Settings,
        front: &Front,
        wakers: &[Arc<Waker>],
    ) -> io::Result<Vec<Self>> {
        let signer = Arc::new(SignerClient::new(&settings.signer_socket()));
        let certificates = Arc::new(RemoteCertificates::new(signer.clone()));
        let (mut homes, mut receivers) = (Vec::new(), Vec::new());
        for waker in wakers {
            let (tell, done) = channel();
            homes.push((tell, Arc::clone(waker)));
            receivers.push(done);
        }
        let secured: Secured = Arc::new(move |name: JobName, info, carrier| {
            if let Some((tell, waker)) = homes.get(name.owner) {
                // Without a receiver the front is at an end.
                let _ = tell.send((name.number, info, carrier));
                let _ = waker.wake();
            }
        });
        let options = ProxyOptions {
            threads: usize::try_from(front.tls_threads).unwrap_or(usize::MAX),
            kernel: kernel(front),
            ..ProxyOptions::default()
        };
        let threads = Arc::new(Threads {
            proxy: TlsProxy::start(&certificates, options, &secured)?,
            certificates,
            is_told: AtomicBool::new(false),
        });
        let shared = Arc::clone(&threads);
        std::thread::Builder::new()
            .name("certificates".to_owned())
            .spawn(move || {
                signer::follow(&signer, &shared.certificates, "STARTTLS", || {
                    shared.is_told.store(true, Ordering::Release);
                })
            })?;
        let of_loop = |(number, done)| Self {
            threads: Arc::clone(&threads),
            number,
            done,
        };
        Ok(receivers.into_iter().enumerate().map(of_loop).collect())
    }

    /// Whether the certificates are known.
    pub(crate) fn is_there(&self) -> bool {
        self.threads.is_told.load(Ordering::Acquire)
    }

    /// Number of connections of the threads, for all loops.
    pub(crate) fn open(&self) -> usize {
        self.threads.proxy.open()
    }

    /// The handshakes of the threads, for all loops.
    pub(crate) fn handshakes(&self) -> Handshakes {
        self.threads.proxy.handshakes()
    }

    /// Whether clients are offered STARTTLS.
    pub(crate) fn is_offered(&self) -> bool {
        self.threads.certificates.has_certificate()
    }

    /// Gives a thread a client before a handshake, and the end of a pair for the plaintext. The first plaintext comes behind the
    /// handshake; a failed handshake closes the pair.
    pub(crate) fn take(&self, ticket: Ticket, client: TcpStream, plain: StdUnixStream) {
        self.threads.proxy.take(Job {
            name: JobName {
                owner: self.number,
                number: ticket.to_bits(),
            },
            client: StdTcpStream::from(client),
            plain,
        });
    }

    /// The clients with finished handshakes.
    pub(crate) fn secured(&self) -> Vec<(Ticket, TlsInfo, Carrier)> {
        let of = |(number, info, carrier): (u64, Handshake, Carrier)| {
            let info = TlsInfo {
                version: info.version.to_owned(),
                cipher: info.cipher.to_owned(),
                sni: info.sni,
            };
            (Ticket::from_bits(number), info, carrier)
        };
        self.done.try_iter().map(of).collect()
    }
}

/// The ciphers that the kernel carries out behind handshakes.
fn kernel(front: &Front) -> KernelTls {
    if !front.kernel_tls {
        tracing::info!(reason = "front.kernel_tls is off", "TLS stays with threads");
        return KernelTls::default();
    }
    match KernelTls::probe() {
        Ok(kernel) => {
            tracing::info!(ciphers = %kernel, "TLS 1.3 by the kernel");
            kernel
        }
        Err(reason) if is_without(&reason) => {
            tracing::info!(%reason, "TLS stays with threads: the kernel has none");
            KernelTls::default()
        }
        Err(error) => {
            tracing::warn!(%error, "TLS stays with threads: the kernel cannot be asked");
            KernelTls::default()
        }
    }
}

/// Whether the error of a probe says that the kernel has no TLS.
fn is_without(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::Unsupported
    )
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
