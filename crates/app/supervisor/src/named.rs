//! The files named in settings: whether a system with the settings could use the files.

use std::fs::File;
use std::path::Path;

use vere_net::resolver::Zone;
use vere_net::tls::{
    CertificateFiles as Files, MutualTls, MutualTlsOptions, Roots, TlsError, check_files,
};
use vere_settings::{CertificateFiles, RecordSink, Settings};
use vere_switch::Switch;

/// A valid setting with an unusable file, and the fault of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The whole key of the setting.
    pub key: String,
    /// The fault in words.
    pub text: String,
}

impl Fault {
    /// A fault of the value of `key`.
    pub fn new(key: impl Into<String>, text: &impl ToString) -> Self {
        Self {
            key: key.into(),
            text: text.to_string(),
        }
    }
}

/// Reads certificates, keys, authorities, records and passwords as the roles will.
pub fn faults(settings: &Settings) -> Vec<Fault> {
    let mut faults = Vec::new();
    if let Some(files) = &settings.tls.default {
        faults.extend(pair("tls", files));
    }
    for (n, sni) in settings.tls.sni.iter().enumerate() {
        faults.extend(pair(&format!("tls.sni[{}]", n + 1), &sni.files));
    }
    faults.extend(spool(settings));
    let acme = settings.acme.as_ref().and_then(|acme| acme.root.as_deref());
    let records = settings.records.as_ref().map(|records| &records.to);
    let mut plain: Vec<(String, &Path)> = Vec::new();
    let mut authorities = vec![
        ("acme.root", acme),
        ("delivery.ca", settings.delivery.ca.as_deref()),
    ];
    if let Some(RecordSink::Webhook { secret, ca, .. }) = records {
        plain.push(("records.webhook_secret".to_owned(), secret));
        authorities.push(("records.webhook_ca", ca.as_deref()));
    }
    for (key, path) in authorities {
        let wrong = path.and_then(|path| Roots::only(path).err());
        faults.extend(wrong.map(|error| Fault::new(key, &error)));
    }
    if let Some(path) = &settings.resolver.zone {
        let wrong = Zone::load(path).err();
        faults.extend(wrong.map(|error| Fault::new("resolver.zone", &error)));
    }
    let anchor = settings.resolver.trust_anchor.as_deref();
    plain.extend(anchor.map(|path| ("resolver.trust_anchor".to_owned(), path)));
    for (n, route) in settings.routes.iter().enumerate() {
        let file = route.password_file.as_deref();
        plain.extend(file.map(|path| (format!("route[{}].password_file", n + 1), path)));
    }
    for (n, filter) in settings.filters.iter().enumerate() {
        let file = filter.password_file.as_deref();
        plain.extend(file.map(|path| (format!("filter[{}].password_file", n + 1), path)));
    }
    let x400 = Switch::of(settings).err();
    faults.extend(x400.map(|error| Fault::new("x400", &error)));
    faults.extend(plain.into_iter().filter_map(unreadable));
    faults
}

/// A certificate and the key; faults of the key are reported for the key.
fn pair(section: &str, files: &CertificateFiles) -> Option<Fault> {
    let error = check_files(&Files::new(&files.certificate, &files.key)).err()?;
    let of_key = match &error {
        TlsError::Mismatch { .. } => true,
        TlsError::Read { path, .. }
        | TlsError::Missing { path, .. }
        | TlsError::Invalid { path, .. } => *path == files.key && *path != files.certificate,
        TlsError::NoRoots { .. } | TlsError::Library { .. } => false,
    };
    let name = if of_key { "key" } else { "certificate" };
    Some(Fault::new(format!("{section}.{name}"), &error))
}

fn spool(settings: &Settings) -> Option<Fault> {
    let tls = settings.spool.tls.as_ref()?;
    if let Some(fault) = pair("spool.tls", &tls.files) {
        return Some(fault);
    }
    let options = MutualTlsOptions {
        files: Files::new(&tls.files.certificate, &tls.files.key),
        ca: tls.ca.clone(),
    };
    let error = MutualTls::new(options).err()?;
    Some(Fault::new("spool.tls.ca", &error))
}

fn unreadable((key, path): (String, &Path)) -> Option<Fault> {
    let error = File::open(path).err()?;
    let text = format!("cannot read {}: {error}", path.display());
    Some(Fault { key, text })
}
