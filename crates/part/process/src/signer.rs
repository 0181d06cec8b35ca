//! A client of the signer for threads: certificates, and signatures of handshakes.

use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use vere_net::packets::PacketSocket;
use vere_net::tls::{Fingerprint, KeyHolder, RemoteCertificates, Shown};
use vere_signwire::{Answer, Certificate, Frame, Reason, Request};

/// Longest wait for an answer; all connections of the thread wait as well.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long no question is asked once a signer has not answered in time.
const PAUSE: Duration = Duration::from_secs(1);
/// How often the signer is asked for certificates, before the first answer and after that.
const CALL: Duration = Duration::from_millis(100);
const LOOK: Duration = Duration::from_secs(2);

/// The octet beside the descriptor of a connection.
const PASSED: u8 = 1;

/// The certificates of a signer at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificates {
    /// Different for different lists.
    pub revision: u64,
    /// Perhaps none.
    pub shown: Vec<Shown>,
}

/// How a connection to the signer is made.
#[derive(Debug)]
enum Door {
    /// A socket in the file system.
    Path(PathBuf),
    /// A socket by which the signer is given one end of each connection.
    Passing(PacketSocket),
}

impl Door {
    fn connect(&self) -> io::Result<UnixStream> {
        match self {
            Self::Path(path) => UnixStream::connect(path),
            Self::Passing(socket) => {
                let (own, other) = UnixStream::pair()?;
                socket.send(&[PASSED], &[other.as_fd()])?;
                Ok(own)
            }
        }
    }
}

/// Connections to the signer: one for each simultaneous question.
#[derive(Debug)]
pub struct SignerClient {
    door: Door,
    idle: Mutex<Vec<UnixStream>>,
    number: AtomicU64,
    /// No question is asked before this time.
    silent_until: Mutex<Option<Instant>>,
}

impl SignerClient {
    /// Asks the signer at this socket. The first question connects.
    #[must_use]
    pub fn new(socket: &Path) -> Self {
        Self::by(Door::Path(socket.to_owned()))
    }

    /// Asks the signer that holds the other end of this socket, for a process that may not connect. The signer answers questions about
    /// handshakes alone there.
    #[must_use]
    pub fn passing(socket: PacketSocket) -> Self {
        Self::by(Door::Passing(socket))
    }

    fn by(door: Door) -> Self {
        Self {
            door,
            idle: Mutex::default(),
            number: AtomicU64::new(1),
            silent_until: Mutex::default(),
        }
    }

    /// Returns the revision of the signer's certificates.
    ///
    /// # Errors
    /// When the signer does not answer.
    pub fn revision(&self) -> io::Result<u64> {
        Ok(self.certificate(u16::MAX)?.0)
    }

    /// Fetches the signer's certificates.
    ///
    /// # Errors
    /// When the signer does not answer, or changes its certificates meanwhile.
    pub fn certificates(&self) -> io::Result<Certificates> {
        let (revision, count, mut next) = self.certificate(0)?;
        let mut shown = Vec::new();
        for index in 1..=count {
            shown.extend(next.map(of_wire));
            let (now, _, following) = self.certificate(index)?;
            if now != revision {
                return Err(io::Error::other("the certificates change"));
            }
            next = following;
        }
        match shown.len() == usize::from(count) {
            true => Ok(Certificates { revision, shown }),
            false => Err(io::Error::other(format!(
                "expected {count} certificates; found {}",
                shown.len()
            ))),
        }
    }

    fn certificate(&self, index: u16) -> io::Result<(u64, u16, Option<Certificate>)> {
        match self.ask(&Request::Certificate { index })? {
            Answer::Certificate {
                revision,
                count,
                certificate,
            } => Ok((revision, count, certificate)),
            other => Err(unexpected(&other)),
        }
    }

    /// Asks, and asks again over a new connection where the signer has closed the old one.
    fn ask(&self, request: &Request<'_>) -> io::Result<Answer> {
        if locked(&self.silent_until).is_some_and(|until| Instant::now() < until) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        while let Some(line) = self.take() {
            match self.ask_over(line, request) {
                Err(error) if is_lost(&error) => {}
                answered => return answered,
            }
        }
        let line = self.door.connect()?;
        line.set_read_timeout(Some(PATIENCE))?;
        line.set_write_timeout(Some(PATIENCE))?;
        self.ask_over(line, request)
    }

    fn take(&self) -> Option<UnixStream> {
        locked(&self.idle).pop()
    }

    fn ask_over(&self, mut line: UnixStream, request: &Request<'_>) -> io::Result<Answer> {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let answered = exchange(&mut line, number, request);
        match &answered {
            Ok(_) => locked(&self.idle).push(line),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                tracing::warn!("the signer does not answer in time");
                *locked(&self.silent_until) = Some(Instant::now() + PAUSE);
            }
            Err(_) => {}
        }
        answered
    }
}

impl KeyHolder for SignerClient {
    fn sign(&self, certificate: &Fingerprint, scheme: u16, octets: &[u8]) -> io::Result<Vec<u8>> {
        let request = Request::Handshake {
            scheme,
            certificate: *certificate,
            octets,
        };
        match self.ask(&request)? {
            Answer::Signed(signature) => Ok(signature),
            other => Err(unexpected(&other)),
        }
    }
}

/// Shows the signer's certificates, for ever; `told` is called after each answer. While the signer is away, the last known certificates
/// are shown. `purpose` is for the log.
pub fn follow(
    signer: &SignerClient,
    shown: &RemoteCertificates,
    purpose: &'static str,
    told: impl Fn(),
) {
    let mut revision = None;
    loop {
        match look(signer, shown, purpose, revision) {
            Ok(now) => {
                revision = Some(now);
                told();
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

fn look(
    signer: &SignerClient,
    shown: &RemoteCertificates,
    purpose: &'static str,
    known: Option<u64>,
) -> io::Result<u64> {
    let revision = signer.revision()?;
    if known == Some(revision) {
        return Ok(revision);
    }
    let certificates = signer.certificates()?;
    tracing::info!(
        certificates = certificates.shown.len(),
        "certificates for {purpose}"
    );
    shown.show(certificates.shown);
    Ok(certificates.revision)
}

/// Sends a request, and reads a whole answer.
fn exchange(line: &mut UnixStream, number: u64, request: &Request<'_>) -> io::Result<Answer> {
    let mut octets = Vec::new();
    request.encode(number, &mut octets);
    line.write_all(&octets)?;
    octets.clear();
    let mut buffer = [0; 4_096];
    loop {
        let read = match line.read(&mut buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        octets.extend_from_slice(buffer.get(..read).unwrap_or_default());
        let wrong = |error| io::Error::new(io::ErrorKind::InvalidData, error);
        if let Some(frame) = Frame::read(&octets).map_err(wrong)? {
            let answer = Answer::decode(&frame).map_err(wrong)?;
            return match frame.number == number {
                true => Ok(answer),
                false => Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("expected answer {number}; found {}", frame.number),
                )),
            };
        }
    }
}

fn of_wire(certificate: Certificate) -> Shown {
    Shown {
        name: (!certificate.name.is_empty()).then_some(certificate.name),
        fingerprint: certificate.fingerprint,
        schemes: certificate.schemes,
        chain: certificate.chain,
    }
}

fn unexpected(answer: &Answer) -> io::Error {
    io::Error::other(match answer {
        Answer::Refused(Reason::NoKey) => "the signer has no such key",
        Answer::Refused(Reason::NotUnderstood) => "the signer does not understand the question",
        Answer::Refused(Reason::Failed) => "the signer could not sign",
        _ => "the signer answers another question",
    })
}

/// Whether the signer has closed an idle connection.
fn is_lost(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof
    )
}

fn locked<T>(what: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    fn certificate(name: &str) -> Certificate {
        Certificate {
            name: name.to_owned(),
            fingerprint: [3; 32],
            schemes: vec![0x0807],
            chain: vec![b"own".to_vec()],
        }
    }

    /// Serves one connection after another, `each` questions of every one.
    fn signer(
        each: usize,
        answer: fn(&Request<'_>) -> Answer,
    ) -> (tempfile::TempDir, SignerClient) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("signer");
        let listener = UnixListener::bind(&path).unwrap();
        std::thread::spawn(move || {
            while let Ok((line, _)) = listener.accept() {
                answer_all(line, each, answer);
            }
        });
        (folder, SignerClient::new(&path))
    }

    fn answer_all(mut line: UnixStream, count: usize, answer: fn(&Request<'_>) -> Answer) {
        for _ in 0..count {
            let mut octets = vec![0; 65_536];
            let Ok(read @ 1..) = line.read(&mut octets) else {
                break;
            };
            let frame = Frame::read(&octets[..read]).unwrap().unwrap();
            let answer = answer(&Request::decode(&frame).unwrap());
            let mut out = Vec::new();
            answer.encode(frame.number, &mut out);
            line.write_all(&out).unwrap();
        }
    }

    fn two(request: &Request<'_>) -> Answer {
        match request {
            Request::Certificate { index } => Answer::Certificate {
                revision: 7,
                count: 2,
                certificate: ["", "a.example"]
                    .get(usize::from(*index))
                    .map(|name| certificate(name)),
            },
            Request::Handshake { octets, .. } => Answer::Signed(octets.to_vec()),
            _ => Answer::Refused(Reason::NoKey),
        }
    }

    #[test]
    fn certificates_come_one_by_one() {
        let (_folder, client) = signer(100, two);
        assert_eq!(client.revision().unwrap(), 7);
        let certificates = client.certificates().unwrap();
        let names: Vec<_> = certificates
            .shown
            .iter()
            .map(|shown| shown.name.as_deref())
            .collect();
        assert_eq!(
            (certificates.revision, names),
            (7, vec![None, Some("a.example")])
        );
        assert_eq!(client.sign(&[3; 32], 0x0807, b"octets").unwrap(), b"octets");
    }

    #[test]
    fn a_signer_that_has_closed_an_idle_connection_is_asked_again() {
        let (_folder, client) = signer(1, two);
        for _ in 0..5 {
            assert_eq!(client.revision().unwrap(), 7);
        }
    }

    #[test]
    fn connections_are_passed_to_a_signer_without_a_name() {
        let (own, other) = PacketSocket::pair().unwrap();
        let client = SignerClient::passing(own);
        let serving = std::thread::spawn(move || {
            let (_, mut passed) = loop {
                match other.receive(&mut [0; 8]) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        std::thread::yield_now();
                    }
                    received => break received.unwrap().unwrap(),
                }
            };
            answer_all(UnixStream::from(passed.pop().unwrap()), 2, two);
        });
        assert_eq!(client.revision().unwrap(), 7);
        assert_eq!(client.sign(&[3; 32], 0x0807, b"octets").unwrap(), b"octets");
        serving.join().unwrap();
    }

    #[test]
    fn a_list_that_changes_or_is_short_is_an_error() {
        let (_folder, client) = signer(100, |request| match request {
            Request::Certificate { index } => Answer::Certificate {
                revision: u64::from(*index),
                count: 2,
                certificate: Some(certificate("")),
            },
            _ => Answer::Refused(Reason::Failed),
        });
        let error = client.certificates().unwrap_err().to_string();
        assert_eq!(error, "the certificates change");
        let error = client.sign(&[0; 32], 1, b"").unwrap_err().to_string();
        assert_eq!(error, "the signer could not sign");
        let (_folder, client) = signer(100, |_| Answer::Certificate {
            revision: 0,
            count: 2,
            certificate: None,
        });
        let error = client.certificates().unwrap_err().to_string();
        assert_eq!(error, "expected 2 certificates; found 0");
        assert!(client.sign(&[0; 32], 1, b"").is_err());
    }

    #[test]
    fn a_signer_that_holds_still_is_not_asked_for_a_while() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("signer");
        let listener = UnixListener::bind(&path).unwrap();
        let client = SignerClient::new(&path);
        assert_eq!(
            client.revision().unwrap_err().kind(),
            io::ErrorKind::WouldBlock
        );
        // The next question is not even sent.
        assert_eq!(
            client.revision().unwrap_err().kind(),
            io::ErrorKind::TimedOut
        );
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_ok());
        assert!(listener.accept().is_err());
    }

    #[test]
    fn without_a_signer_the_question_fails_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let client = SignerClient::new(&folder.path().join("none"));
        assert_eq!(
            client.revision().unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
        assert_eq!(
            client.revision().unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
    }
}
