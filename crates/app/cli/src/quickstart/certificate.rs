//! The certificate of a new system: self-signed by this command, or already there.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{Certificate, CertificateParams, DnType, KeyPair};
use vere_net::tls::Leaf;
use vere_process::failure::Failure;

use super::files::{is_there, keep, write_file};

/// A certificate and the key, as files.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) certificate: PathBuf,
    key: PathBuf,
}

/// The certificate that a run of the command finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    /// There is none.
    Missing,
    /// Made by an earlier run, for this host name.
    Own,
    /// Made by an earlier run, for a different host name.
    Outdated,
    /// Put there by the operator, who decides; with the reason why mail programs will refuse the certificate.
    Foreign(Option<String>),
}

impl Pair {
    /// The files in a directory.
    pub(super) fn below(folder: &Path) -> Self {
        Self {
            certificate: folder.join("cert.pem"),
            key: folder.join("key.pem"),
        }
    }

    /// The files found for a host name.
    ///
    /// # Errors
    /// When one of the two files is missing: to make both would overwrite the other.
    pub(super) fn state(&self, hostname: &str) -> Result<State, Failure> {
        let Self { certificate, key } = self;
        match (is_there(certificate), is_there(key)) {
            (false, false) => Ok(State::Missing),
            (true, true) => Ok(self.judged(hostname)),
            (false, true) => Err(incomplete("certificate", certificate, "key", key)),
            (true, false) => Err(incomplete("key", key, "certificate", certificate)),
        }
    }

    fn judged(&self, hostname: &str) -> State {
        let leaf = match Leaf::of_file(&self.certificate) {
            Ok(leaf) => leaf,
            Err(error) => return State::Foreign(Some(format!("it cannot be used ({error})"))),
        };
        match (self.is_made_here(&leaf), is_for(&leaf, hostname)) {
            (true, true) => State::Own,
            (true, false) => State::Outdated,
            (false, true) => State::Foreign(None),
            (false, false) => State::Foreign(Some(format!("it does not name {hostname}"))),
        }
    }

    /// Whether this command made the files: it would make the same certificate of the key and the name again. Only
    /// signatures differ each time.
    fn is_made_here(&self, leaf: &Leaf) -> bool {
        let [name] = leaf.names.as_slice() else {
            return false;
        };
        let same = || {
            let found = der(&fs::read_to_string(&self.certificate).ok()?)?;
            let key = KeyPair::from_pem(&fs::read_to_string(&self.key).ok()?).ok()?;
            let again = self_signed(name, &key).ok()?;
            Some(signed_part(&found)? == signed_part(again.der())?)
        };
        same().unwrap_or(false)
    }

    /// Makes key and certificate for a host name; earlier files are kept beside them. Returns a note about those.
    pub(super) fn make(&self, hostname: &str) -> Result<Option<String>, Failure> {
        let failed =
            |error: rcgen::Error| Failure::new(format!("cannot make a certificate: {error}"));
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = self_signed(hostname, &key).map_err(failed)?;
        let note = self.keep(hostname)?;
        write_file(&self.key, &key.serialize_pem(), 0o600)?;
        write_file(&self.certificate, &certificate.pem(), 0o644).inspect_err(|_| {
            // The next run would refuse a key without its certificate.
            let _ = fs::remove_file(&self.key);
        })?;
        Ok(note)
    }

    fn keep(&self, hostname: &str) -> Result<Option<String>, Failure> {
        if !is_there(&self.certificate) {
            return Ok(None);
        }
        // In this order: the next run finds the key alone if this run ends here, and says so.
        let certificate = keep(&self.certificate)?;
        let key = keep(&self.key)?;
        Ok(Some(format!(
            "the earlier self-signed certificate did not name {hostname}; it is in {}, and its key in {}",
            certificate.display(),
            key.display()
        )))
    }
}

fn incomplete(missing: &str, path: &Path, other: &str, found: &Path) -> Failure {
    Failure::new(format!(
        "expected a {missing} beside the {other} {}; found none: put it at {}, or move the {other} away to get a new \
         certificate and a new key",
        found.display(),
        path.display()
    ))
}

/// Whether a certificate names a host, itself or by a wildcard for its first label (RFC 9525 section 6.3).
fn is_for(leaf: &Leaf, hostname: &str) -> bool {
    let parent = hostname.split_once('.').map(|(_, parent)| parent);
    let names_host = |name: &str| {
        name == hostname || name.strip_prefix("*.").is_some_and(|of| Some(of) == parent)
    };
    leaf.names.iter().any(|name| names_host(name))
}

/// Creates a certificate of a key for a name.
fn self_signed(name: &str, key: &KeyPair) -> Result<Certificate, rcgen::Error> {
    let mut params = CertificateParams::new([name.to_owned()])?;
    params.distinguished_name.push(DnType::CommonName, name);
    params.self_signed(key)
}

/// The content of a PEM file with a single certificate.
fn der(pem: &str) -> Option<Vec<u8>> {
    let body = pem.trim().strip_prefix("-----BEGIN CERTIFICATE-----")?;
    let body = body.strip_suffix("-----END CERTIFICATE-----")?;
    let text: String = body.split_whitespace().collect();
    STANDARD.decode(text).ok()
}

/// The signed part of a certificate, its first element (RFC 5280 section 4.1).
fn signed_part(certificate: &[u8]) -> Option<&[u8]> {
    let (outer, _) = header(certificate)?;
    let inside = certificate.get(outer..)?;
    let (own, content) = header(inside)?;
    inside.get(..own.checked_add(content)?)
}

/// The octets of the header of an element in DER, and of its content.
fn header(der: &[u8]) -> Option<(usize, usize)> {
    let first = usize::from(*der.get(1)?);
    let Some(count) = first.checked_sub(0x80) else {
        return Some((2, first));
    };
    // A certificate of this command has less than 64 KiB.
    let octets = der.get(2..)?.get(..count).filter(|_| count <= 2)?;
    let content = octets
        .iter()
        .fold(0, |sum, octet| (sum << 8) | usize::from(*octet));
    Some((2 + count, content))
}

#[cfg(test)]
mod tests;
