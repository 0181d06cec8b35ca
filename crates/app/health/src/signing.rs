//! The keys in use for mail now: by the files, and by the running signer. `vere dkim` and `vere dns check` judge
//! by this alone.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use vere_dkim::{KeyError, KeyStore, StoredKey, store};
use vere_settings::{Dkim, Settings};
use vere_signwire::{Answer, Frame, Request};
use vere_units::Timestamp;

/// The longest wait for an answer of the signer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time within which the signer takes over changed files, and the pause between two questions.
const TAKEOVER: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(100);
const READ_OCTETS: usize = 4096;

/// Why a key does not sign, against the file and the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unused {
    /// No signer runs.
    NoSigner,
    /// The running signer does not have the key.
    Unknown,
}

/// The signer as this process sees it.
#[derive(Debug)]
enum Signer {
    Running(UnixStream),
    Absent,
    /// The user may not ask the signer.
    Closed,
}

/// All keys, and the signer.
#[derive(Debug)]
pub struct Signing {
    /// Readable keys, by domain and start of signing.
    pub keys: Vec<StoredKey>,
    /// Unreadable keys, left out by the signer.
    pub wrong: Vec<KeyError>,
    signer: Signer,
    /// When a signer has taken over all changes of files that were made before.
    until: Instant,
}

impl Signing {
    /// Reads the keys and looks for the signer.
    ///
    /// # Errors
    /// When the directory of the keys cannot be read.
    pub fn of(dkim: &Dkim) -> Result<Self, KeyError> {
        let (keys, wrong) = KeyStore::new(&dkim.keys).keys()?;
        let signer = match UnixStream::connect(&dkim.socket) {
            Ok(stream) => Signer::Running(stream),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => Signer::Closed,
            Err(_) => Signer::Absent,
        };
        Ok(Self {
            keys,
            wrong,
            signer,
            until: Instant::now() + TAKEOVER,
        })
    }

    /// Whether no signer runs: mail is not signed.
    #[must_use]
    pub const fn is_absent(&self) -> bool {
        matches!(self.signer, Signer::Absent)
    }

    /// Whether a signer takes over new keys within seconds.
    #[must_use]
    pub const fn runs(&self) -> bool {
        matches!(self.signer, Signer::Running(_))
    }

    /// The domain whose keys sign the mail of a domain at this time: the domain itself, or the nearest parent domain.
    #[must_use]
    pub fn signing_domain<'a>(&self, domain: &'a str, now: Timestamp) -> Option<&'a str> {
        store::signing_domains(domain)
            .find(|domain| !store::signing(&self.keys, domain, now).is_empty())
    }

    /// Why keys of a domain do not sign as expected, by selector. Keys that were just written get the time that the
    /// signer needs to read them.
    pub fn unused(&mut self, domain: &str, now: Timestamp) -> Vec<(String, Unused)> {
        let due = store::signing(&self.keys, domain, now).into_iter();
        let due: Vec<String> = due.map(|key| key.selector.clone()).collect();
        loop {
            let stream = match &mut self.signer {
                Signer::Closed => return Vec::new(),
                Signer::Absent => return all(due, Unused::NoSigner),
                Signer::Running(stream) => stream,
            };
            let Ok(known) = ask(stream, domain) else {
                self.signer = Signer::Absent;
                continue;
            };
            let is_unknown = |selector: &&String| !known.contains(*selector);
            let unknown: Vec<String> = due.iter().filter(is_unknown).cloned().collect();
            if unknown.is_empty() || Instant::now() >= self.until {
                return all(unknown, Unused::Unknown);
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// The keys of the settings; none without `[dkim]`.
///
/// # Errors
/// As of [`Signing::of`].
pub fn of(settings: &Settings) -> Result<Option<Signing>, KeyError> {
    settings.dkim.as_ref().map(Signing::of).transpose()
}

fn all(selectors: Vec<String>, why: Unused) -> Vec<(String, Unused)> {
    let selectors = selectors.into_iter();
    selectors.map(|selector| (selector, why)).collect()
}

/// The selectors of the keys with which the running signer signs for a domain.
fn ask(stream: &mut UnixStream, domain: &str) -> io::Result<Vec<String>> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut octets = Vec::new();
    Request::Keys { domain }.encode(1, &mut octets);
    stream.write_all(&octets)?;
    octets.clear();
    let mut buffer = [0; READ_OCTETS];
    loop {
        let count = stream.read(&mut buffer)?;
        if count == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        octets.extend_from_slice(buffer.get(..count).unwrap_or_default());
        let Some(frame) = Frame::read(&octets).map_err(io::Error::other)? else {
            continue;
        };
        return match Answer::decode(&frame).map_err(io::Error::other)? {
            Answer::Keys { keys, .. } => Ok(keys.into_iter().map(|key| key.selector).collect()),
            _ => Ok(Vec::new()),
        };
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::path::Path;

    use vere_dkim::KeyAlgorithm;
    use vere_signwire::{ActiveKey, Algorithm};

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_767_225_600_000);

    fn settings(folder: &Path) -> Dkim {
        let text = "version = 1\nhostname = \"mx.example.org\"\ndata = \"data\"\n[dkim]\n";
        let config = folder.join("vere.toml");
        let settings = Settings::parse(text, &config.to_string_lossy()).unwrap();
        let dkim = settings.dkim.unwrap();
        let store = KeyStore::new(&dkim.keys);
        for selector in ["s1", "s2"] {
            let domain = format!("{selector}.example.org");
            let algorithm = KeyAlgorithm::Ed25519Sha256;
            let key = StoredKey::generate(&domain, selector, algorithm, 0, NOW, NOW).unwrap();
            store.add(&key).unwrap();
        }
        dkim
    }

    /// A signer with the key s1 alone, for one connection.
    fn serve(socket: &Path) {
        let listener = UnixListener::bind(socket).unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut buffer = [0; 512];
            while let Ok(count @ 1..) = stream.read(&mut buffer) {
                let frame = Frame::read(&buffer[..count]).unwrap().unwrap();
                let Request::Keys { domain } = Request::decode(&frame).unwrap() else {
                    return;
                };
                let key = ActiveKey {
                    algorithm: Algorithm::Ed25519Sha256,
                    selector: "s1".to_owned(),
                };
                let keys = if domain == "s1.example.org" {
                    vec![key]
                } else {
                    Vec::new()
                };
                let mut answer = Vec::new();
                Answer::Keys { holds_ms: 1, keys }.encode(frame.number, &mut answer);
                stream.write_all(&answer).unwrap();
            }
        });
    }

    /// Keys were said to sign by the files alone, with a stopped system, or without the keys in the system.
    #[test]
    fn the_running_signer_says_what_signs() {
        let folder = tempfile::tempdir().unwrap();
        let dkim = settings(folder.path());
        std::fs::write(dkim.keys.join("s2.example.org/s3.toml"), "no key").unwrap();
        let mut stopped = Signing::of(&dkim).unwrap();
        assert!(stopped.is_absent() && stopped.wrong.len() == 1);
        let unused = stopped.unused("s1.example.org", NOW);
        assert_eq!(unused, [("s1".to_owned(), Unused::NoSigner)]);
        serve(&dkim.socket);
        let mut running = Signing::of(&dkim).unwrap();
        assert!(running.runs());
        assert_eq!(running.unused("s1.example.org", NOW), []);
        let unused = running.unused("s2.example.org", NOW);
        assert_eq!(unused, [("s2".to_owned(), Unused::Unknown)]);
        assert_eq!(
            running.signing_domain("a.s1.example.org", NOW),
            Some("s1.example.org")
        );
        assert_eq!(running.signing_domain("example.org", NOW), None);
    }
}
