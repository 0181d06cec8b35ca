//! Certificates for the web names of local domains (`mta-sts.`, `autoconfig.`, `autodiscover.`): the gateway orders them, a file for each
//! domain, and the signer shows them by the names in them.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use vere_net::tls::{CertificateFiles, Leaf, check_files};
use vere_settings::Settings;

use super::published::{Stamp, stamp};

/// Files of certificates that are loaded: the first in the order of the domains.
pub const FILES_MAX: usize = 10_000;
const EXTENSION: &str = "pem";

/// The file of a domain.
#[must_use]
pub fn file(settings: &Settings, domain: &str) -> PathBuf {
    // A domain has no slash, and may have a dot.
    let directory = settings.web_certificates();
    directory.join(format!("{domain}.{EXTENSION}"))
}

/// The files, with stamps that are others after a change; empty without a web server.
#[must_use]
pub fn listing(settings: &Settings) -> Vec<(PathBuf, Option<Stamp>)> {
    if settings.web.is_none() {
        return Vec::new();
    }
    let stamped = |path: PathBuf| (path.clone(), stamp(&path));
    first(files(settings), FILES_MAX)
        .into_iter()
        .map(stamped)
        .collect()
}

/// The number of files, also of those beyond the bound.
#[must_use]
pub fn count(settings: &Settings) -> usize {
    match &settings.web {
        Some(_) => files(settings).count(),
        None => 0,
    }
}

fn files(settings: &Settings) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(settings.web_certificates())
        .into_iter()
        .flatten();
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.filter(|path| path.extension().is_some_and(|found| found == EXTENSION))
}

/// The first paths in their order: a directory lists files in an order that changes.
fn first(paths: impl Iterator<Item = PathBuf>, most: usize) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = paths.collect();
    paths.sort();
    paths.truncate(most);
    paths
}

/// Removes the certificates and keys of domains that are no local domains any more. An empty list of domains changes nothing.
pub fn remove_others(settings: &Settings, domains: &HashSet<String>) {
    if domains.is_empty() {
        return;
    }
    for path in files(settings) {
        let domain = path.file_stem().and_then(OsStr::to_str);
        if domain.is_some_and(|domain| domains.contains(domain)) {
            continue;
        }
        match fs::remove_file(&path) {
            Ok(()) => {
                tracing::info!(file = %path.display(), "certificate of a removed domain deleted")
            }
            Err(error) => {
                tracing::warn!(%error, file = %path.display(), "certificate of a removed domain not deleted");
            }
        }
    }
}

/// The certificates, by each name in them. A file that cannot be used costs no other.
pub(super) fn certificates(settings: &Settings) -> Vec<(String, CertificateFiles)> {
    let found = count(settings);
    if found > FILES_MAX {
        tracing::error!(
            found,
            used = FILES_MAX,
            "too many certificates of web names, the last domains have none"
        );
    }
    let files = listing(settings).into_iter();
    files.flat_map(|(path, _)| of_file(&path)).collect()
}

fn of_file(path: &Path) -> Vec<(String, CertificateFiles)> {
    let files = CertificateFiles {
        may_be_missing: true,
        ..CertificateFiles::new(path, path)
    };
    match (check_files(&files), Leaf::of_file(path)) {
        (Ok(()), Ok(leaf)) => {
            let named = |name| (name, files.clone());
            leaf.names.into_iter().map(named).collect()
        }
        (Err(error), _) | (_, Err(error)) => {
            tracing::warn!(%error, file = %path.display(), "certificate of web names not shown");
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_file_costs_no_other_certificate() {
        let folder = tempfile::tempdir().unwrap();
        let text = |rest: &str| {
            let data = folder.path().display();
            let text =
                format!("version = 1\nhostname = \"mx.example.org\"\ndata = \"{data}\"\n{rest}");
            Settings::parse(&text, "/etc/vere/vere.toml").unwrap()
        };
        let settings = text("[acme]\n[web]\n");
        assert!(listing(&settings).is_empty());
        fs::create_dir_all(settings.web_certificates()).unwrap();
        let names = [
            "mta-sts.example.org".to_owned(),
            "autoconfig.example.org".to_owned(),
        ];
        let signed = rcgen::generate_simple_self_signed(names.clone()).unwrap();
        let pem = signed.cert.pem() + &signed.signing_key.serialize_pem();
        fs::write(file(&settings, "example.org"), pem).unwrap();
        fs::write(file(&settings, "broken.example"), "x").unwrap();
        fs::write(settings.web_certificates().join("other.txt"), "x").unwrap();
        assert_eq!(listing(&settings).len(), 2);
        let found = certificates(&settings).into_iter().map(|(name, _)| name);
        assert_eq!(found.collect::<Vec<_>>(), names);
        assert!(certificates(&text("")).is_empty(), "without a web server");
        // The certificates of removed domains go, but not for want of a list.
        remove_others(&settings, &HashSet::new());
        assert_eq!(count(&settings), 2);
        remove_others(&settings, &HashSet::from(["example.org".to_owned()]));
        assert_eq!(listing(&settings).len(), 1);
        assert!(file(&settings, "example.org").exists());
        assert!(settings.web_certificates().join("other.txt").exists());
    }

    /// Any 10,000 files were loaded, others after each restart.
    #[test]
    fn beyond_the_bound_the_first_domains_keep_their_certificates() {
        let paths = ["c", "a", "d", "b"].map(PathBuf::from);
        let expected = ["a", "b"].map(PathBuf::from);
        assert_eq!(first(paths.iter().cloned(), 2), expected);
        assert_eq!(first(paths.into_iter().rev(), 2), expected);
    }

    /// A client of port 25 was shown the certificate of a policy's name while the order for the host name failed.
    #[test]
    fn no_certificate_of_a_web_name_serves_other_clients() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().display();
        let text = format!(
            "version = 1\nhostname = \"mx.example.org\"\ndata = \"{data}\"\n[acme]\n[web]\n"
        );
        let settings = Settings::parse(&text, "/etc/vere/vere.toml").unwrap();
        fs::create_dir_all(settings.web_certificates()).unwrap();
        let signed = rcgen::generate_simple_self_signed(["mta-sts.example.org".to_owned()]);
        let signed = signed.unwrap();
        let pem = signed.cert.pem() + &signed.signing_key.serialize_pem();
        fs::write(file(&settings, "example.org"), pem).unwrap();
        let keyring = crate::tls::keyring(&settings).unwrap();
        assert!(!keyring.has_certificate());
        let shown: Vec<_> = keyring.shown().into_iter().map(|one| one.name).collect();
        assert_eq!(shown, [Some("mta-sts.example.org".to_owned())]);
    }
}
