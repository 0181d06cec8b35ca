//! Certificates for the web names of local domains (`mta-sts.`, `autoconfig.`, `autodiscover.`): the gateway orders them, a file for each
//! domain, and the signer shows them by the names in them.

use std::fs;
use std::path::{Path, PathBuf};

use vere_net::tls::{CertificateFiles, Leaf, check_files};
use vere_settings::Settings;

use super::published::{Stamp, stamp};

/// Files of certificates that are loaded.
const FILES_MAX: usize = 10_000;
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
    let entries = fs::read_dir(settings.web_certificates())
        .into_iter()
        .flatten();
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let paths = paths.filter(|path| path.extension().is_some_and(|found| found == EXTENSION));
    let mut paths: Vec<PathBuf> = paths.take(FILES_MAX).collect();
    paths.sort();
    let stamped = |path: PathBuf| (path.clone(), stamp(&path));
    paths.into_iter().map(stamped).collect()
}

/// The certificates, by each name in them. A file that cannot be used costs no other.
pub(super) fn certificates(settings: &Settings) -> Vec<(String, CertificateFiles)> {
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
    }
}
