//! Certificates and keys from PEM files, and the choice among them by server name.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use rustls::client::ResolvesClientCert;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys, SignatureScheme};
use sha2::{Digest as _, Sha256};
use vere_units::Timestamp;

use super::options::{CertificateFiles, Fingerprint, ServerTlsOptions};
use super::{TlsError, Validity, provider};
use crate::aside::write_private;

/// Octets read of one PEM file; the largest chains have some 20 KiB, root bundles some 300 KiB.
const FILE_OCTETS_MAX: u64 = 4 * 1024 * 1024;

pub(super) fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    let failed = |source| TlsError::Read {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(failed)?;
    let mut text = Vec::new();
    file.take(FILE_OCTETS_MAX + 1)
        .read_to_end(&mut text)
        .map_err(failed)?;
    if text.len() as u64 > FILE_OCTETS_MAX {
        return Err(failed(io::Error::other(
            "expected at most 4 MiB; the file is larger",
        )));
    }
    Ok(text)
}

/// All certificates of a PEM file, at least one.
pub(super) fn chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    chain_in(path, &read(path)?)
}

fn chain_in(path: &Path, text: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    let chain = chain.map_err(|error| invalid(path, &error))?;
    if chain.is_empty() {
        return Err(TlsError::Missing {
            path: path.to_owned(),
            what: "certificate",
        });
    }
    Ok(chain)
}

fn invalid(path: &Path, problem: &dyn std::fmt::Display) -> TlsError {
    TlsError::Invalid {
        path: path.to_owned(),
        problem: problem.to_string(),
    }
}

fn key_in(path: &Path, text: &[u8]) -> Result<PrivateKeyDer<'static>, TlsError> {
    use rustls::pki_types::pem::Error as PemError;
    PrivateKeyDer::from_pem_slice(text).map_err(|error| match error {
        PemError::NoItemsFound => TlsError::Missing {
            path: path.to_owned(),
            what: "private key",
        },
        other => invalid(path, &other),
    })
}

/// A chain with a matching key. Usable files are copied where the options request a copy.
pub(super) fn load(files: &CertificateFiles) -> Result<CertifiedKey, TlsError> {
    let chain_text = read(&files.certificate)?;
    let chain = chain_in(&files.certificate, &chain_text)?;
    let key_text = read(&files.key)?;
    let key = provider()
        .key_provider
        .load_private_key(key_in(&files.key, &key_text)?)
        .map_err(|error| invalid(&files.key, &error))?;
    let certified = CertifiedKey::new(chain, key);
    match certified.keys_match() {
        // Unknown: the key cannot show its public half; the handshake would tell.
        Ok(()) | Err(Error::InconsistentKeys(InconsistentKeys::Unknown)) => {}
        Err(Error::InconsistentKeys(_)) => {
            return Err(TlsError::Mismatch {
                certificate: files.certificate.clone(),
                key: files.key.clone(),
            });
        }
        Err(error) => return Err(invalid(&files.certificate, &error)),
    }
    warn_if_expired(&certified, &files.certificate);
    if let Some(kept) = &files.kept {
        let same_file = files.certificate == files.key;
        let chain_text = if same_file { &[][..] } else { &chain_text };
        if let Err(error) = keep(kept, &key_text, chain_text) {
            tracing::warn!(%error, file = %kept.display(), "cannot keep a copy of the certificate");
        }
    }
    Ok(certified)
}

/// As [`load`], at a start: with unusable files the copy of the last usable files is loaded instead, if
/// there is one.
pub(super) fn load_or_kept(files: &CertificateFiles) -> Result<CertifiedKey, TlsError> {
    load(files).or_else(|error| {
        let Some(kept) = &files.kept else {
            return Err(error);
        };
        let Ok(certified) = load(&CertificateFiles::new(kept, kept)) else {
            return Err(error);
        };
        tracing::error!(%error, kept = %kept.display(), "the certificate that was used last serves");
        Ok(certified)
    })
}

/// Replaces a different copy atomically, key first: readers find either the old copy or the new copy.
fn keep(kept: &Path, key: &[u8], chain: &[u8]) -> io::Result<()> {
    let text = [key, chain].join(&b'\n');
    if fs::read(kept).is_ok_and(|there| there == text) {
        return Ok(());
    }
    if let Some(folder) = kept.parent() {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(folder)?;
    }
    fs::rename(write_private(kept, &text)?, kept)
}

/// Whether the files can be used.
///
/// # Errors
/// A file cannot be read or is wrong, or the key does not fit the certificate.
pub fn check(files: &CertificateFiles) -> Result<(), TlsError> {
    load(files).map(drop)
}

fn warn_if_expired(certified: &CertifiedKey, path: &Path) {
    let validity = certified.cert.first().and_then(|der| Validity::of(der));
    if let Some(validity) = validity
        && !validity.contains(std::time::SystemTime::now())
    {
        tracing::warn!(file = %path.display(), %validity, "certificate is not valid now");
    }
}

/// [`load`] or [`load_or_kept`].
pub(super) type Loader = fn(&CertificateFiles) -> Result<CertifiedKey, TlsError>;

/// The certificates of a server at one moment.
#[derive(Debug, Default)]
pub(super) struct Set {
    default: Option<Arc<CertifiedKey>>,
    by_name: HashMap<String, Arc<CertifiedKey>>,
    by_fingerprint: HashMap<Fingerprint, Arc<CertifiedKey>>,
    /// When the certificate of each file ends.
    ends: Vec<(PathBuf, Timestamp)>,
}

impl Set {
    /// Loads every pair of files by `load`; the first that is wrong is the error.
    pub(super) fn load(options: &ServerTlsOptions, load: Loader) -> Result<Self, TlsError> {
        let mut set = Self::default();
        if let Some(files) = &options.default {
            set.default = load_present(files, load)?;
            set.note_end(files, set.default.clone().as_deref());
            set.note_fingerprint(set.default.clone().as_ref());
        }
        for (name, files) in &options.sni {
            let Some(certified) = load_present(files, load)? else {
                continue;
            };
            set.note_end(files, Some(&certified));
            set.note_fingerprint(Some(&certified));
            // Without a default the first certificate serves clients that request no known name.
            set.default.get_or_insert_with(|| Arc::clone(&certified));
            set.by_name.insert(name.to_ascii_lowercase(), certified);
        }
        for (name, files) in &options.named {
            if let Some(certified) = load_present(files, load)? {
                set.note_end(files, Some(&certified));
                set.note_fingerprint(Some(&certified));
                set.by_name
                    .entry(name.to_ascii_lowercase())
                    .or_insert(certified);
            }
        }
        Ok(set)
    }

    fn note_end(&mut self, files: &CertificateFiles, certified: Option<&CertifiedKey>) {
        let own = certified.and_then(|certified| certified.cert.first());
        let validity = own.and_then(|own| Validity::of(own));
        let path = &files.certificate;
        if let Some(validity) = validity
            && !self.ends.iter().any(|(noted, _)| noted == path)
        {
            self.ends.push((path.clone(), validity.not_after));
        }
    }

    fn note_fingerprint(&mut self, certified: Option<&Arc<CertifiedKey>>) {
        if let Some(certified) = certified
            && let Some(fingerprint) = fingerprint(certified)
        {
            self.by_fingerprint
                .insert(fingerprint, Arc::clone(certified));
        }
    }

    fn has_certificates_of(&self, other: &Self) -> bool {
        let (own, others) = (&self.by_fingerprint, &other.by_fingerprint);
        own.len() == others.len()
            && own
                .keys()
                .all(|fingerprint| others.contains_key(fingerprint))
    }

    /// The certificate with this fingerprint.
    pub(super) fn with(&self, fingerprint: &Fingerprint) -> Option<&Arc<CertifiedKey>> {
        self.by_fingerprint.get(fingerprint)
    }

    /// When the certificate of each file ends, each file once.
    pub(super) fn ends(&self) -> &[(PathBuf, Timestamp)] {
        &self.ends
    }

    pub(super) fn is_empty(&self) -> bool {
        self.default.is_none()
    }

    /// A set of certificates, each with a name or as the default. Without a default, clients that request no known name get no
    /// certificate.
    pub(super) fn of(
        certificates: impl IntoIterator<Item = (Option<String>, CertifiedKey)>,
    ) -> Self {
        let mut set = Self::default();
        for (name, certified) in certificates {
            let certified = Arc::new(certified);
            match name {
                None => set.default = Some(certified),
                Some(name) => {
                    set.by_name.insert(name, certified);
                }
            }
        }
        set
    }

    /// Every certificate with a name, and the default.
    pub(super) fn named(&self) -> impl Iterator<Item = (Option<&str>, &Arc<CertifiedKey>)> {
        let default = self.default.iter().map(|certified| (None, certified));
        let named =
            |(name, certified)| -> (Option<&str>, _) { (Some(String::as_str(name)), certified) };
        default.chain(self.by_name.iter().map(named))
    }

    /// The certificate for a name: exactly, by a wildcard for its first label, or the default.
    fn choose(&self, name: Option<&str>) -> Option<Arc<CertifiedKey>> {
        let exact = name.and_then(|name| self.by_name.get(name));
        let wildcard = || {
            let (_, parent) = name?.split_once('.')?;
            self.by_name.get(&format!("*.{parent}"))
        };
        exact.or_else(wildcard).or(self.default.as_ref()).cloned()
    }
}

/// The fingerprint of the server's own certificate.
pub(super) fn fingerprint(certified: &CertifiedKey) -> Option<Fingerprint> {
    Some(Sha256::digest(certified.cert.first()?).into())
}

fn load_present(
    files: &CertificateFiles,
    load: Loader,
) -> Result<Option<Arc<CertifiedKey>>, TlsError> {
    let missing = files.may_be_missing && !(files.certificate.exists() && files.key.exists());
    if missing {
        Ok(None)
    } else {
        load(files).map(|certified| Some(Arc::new(certified)))
    }
}

/// The set in use, replaced whole, and the one before.
#[derive(Debug, Default)]
pub(super) struct Certificates {
    sets: RwLock<(Arc<Set>, Arc<Set>)>,
}

impl Certificates {
    pub(super) fn current(&self) -> Arc<Set> {
        Arc::clone(&self.sets.read().unwrap_or_else(PoisonError::into_inner).0)
    }

    pub(super) fn previous(&self) -> Arc<Set> {
        Arc::clone(&self.sets.read().unwrap_or_else(PoisonError::into_inner).1)
    }

    pub(super) fn replace(&self, set: Set) {
        let mut sets = self.sets.write().unwrap_or_else(PoisonError::into_inner);
        let is_equal = sets.0.has_certificates_of(&set);
        let previous = std::mem::replace(&mut sets.0, Arc::new(set));
        // A second reload in a row changes nothing.
        if !is_equal {
            sets.1 = previous;
        }
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        // rustls gives the name in lower case.
        self.current().choose(hello.server_name())
    }
}

impl ResolvesClientCert for Certificates {
    /// The issuers that a server names are hints alone.
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.current().choose(None)
    }

    fn has_certs(&self) -> bool {
        !self.current().is_empty()
    }
}

/// Distinguishes contents of a file without reading the file; `None` for a missing file.
pub(super) type FileStamp = Option<(u64, i64, i64, u64)>;

/// Stamps of several files.
pub(super) type Stamp = Vec<FileStamp>;

/// The stamp of all files of the options.
pub(super) fn stamp(options: &ServerTlsOptions) -> Stamp {
    let named = options.sni.iter().chain(&options.named);
    let named = named.map(|(_, files)| files);
    options
        .default
        .iter()
        .chain(named)
        .flat_map(|files| [file_stamp(&files.certificate), file_stamp(&files.key)])
        .collect()
}

pub(super) fn file_stamp(path: &Path) -> FileStamp {
    let metadata = fs::metadata(path).ok()?;
    Some((
        metadata.ino(),
        metadata.mtime(),
        metadata.mtime_nsec(),
        metadata.len(),
    ))
}
