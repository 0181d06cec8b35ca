//! Which connections between gateway and nodes are encrypted.

use std::net::SocketAddr;

use vere_net::tls::{CertificateFiles, MutualTls, MutualTlsOptions, TlsError};
use vere_settings::{LineTls, Settings, SpoolNode};

use crate::kept::{Kept, kept_certificate};

/// Mutual TLS with one node.
#[derive(Debug, Clone)]
pub struct Encryption {
    /// The certificates.
    pub tls: MutualTls,
    /// On loopback as well.
    pub everywhere: bool,
}

impl Encryption {
    /// What the settings want with that node.
    pub fn of(tls: Option<&MutualTls>, node: &SpoolNode) -> Option<Self> {
        let tls = tls?.clone();
        match node.tls {
            LineTls::Off => None,
            LineTls::Auto | LineTls::Required => Some(Self {
                tls,
                everywhere: node.tls == LineTls::Required,
            }),
        }
    }

    /// The certificates, when a connection to this address of the node is encrypted.
    pub fn covers(&self, address: SocketAddr) -> Option<&MutualTls> {
        let loopback = address.ip().to_canonical().is_loopback();
        (self.everywhere || !loopback).then_some(&self.tls)
    }
}

/// The certificates of `[spool.tls]`, when there are some. A role keeps what can be used for its next
/// start.
///
/// # Errors
/// When a file is missing or wrong, and none that could be used is kept.
pub fn certificates(settings: &Settings) -> Result<Option<MutualTls>, TlsError> {
    let Some(tls) = &settings.spool.tls else {
        return Ok(None);
    };
    Ok(Some(MutualTls::new(MutualTlsOptions {
        files: CertificateFiles {
            kept: kept_certificate(settings, Kept::Spool),
            ..CertificateFiles::new(&tls.files.certificate, &tls.files.key)
        },
        ca: tls.ca.clone(),
    })?))
}
