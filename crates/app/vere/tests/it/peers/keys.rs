//! Certificates for both sides, and how each program is told of them.

use std::os::unix::fs::PermissionsExt as _;

use crate::harness::{Authority, Options};

use super::exim::EximOptions;

/// The files of a test for TLS.
pub(super) struct Keys(pub(super) Authority);

impl Keys {
    pub(super) fn new() -> Self {
        Self(Authority::new())
    }

    pub(super) fn path(&self, name: &str) -> String {
        self.0.folder().join(name).display().to_string()
    }

    /// Our side with a certificate for `mx.example.org` and the loopback address.
    pub(super) fn ours(&self, options: Options) -> Options {
        let names = ["mx.example.org", "127.0.0.1"];
        let files = self.0.sign("mx", &names);
        options.certificate(&files)
    }

    /// The next hop's certificate: as it should be, for another name, or of years ago.
    pub(super) fn next_hop(&self, kind: Kind) {
        match kind {
            Kind::Good => self.0.sign("hop", &["hop.example.com"]),
            Kind::OtherName => self.0.sign("hop", &["other.example.com"]),
            Kind::Expired => self.0.sign_expired("hop", &["hop.example.com"]),
        };
        // Exim reads its key after giving up root.
        let mode = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(self.path("hop.key"), mode).expect("its mode");
    }

    pub(super) fn postfix_server(&self) -> String {
        format!(
            "smtpd_tls_security_level = may\nsmtpd_tls_loglevel = 1\n\
             smtpd_tls_received_header = yes\n\
             smtpd_tls_cert_file = {}\nsmtpd_tls_key_file = {}",
            self.path("hop.pem"),
            self.path("hop.key")
        )
    }

    pub(super) fn exim_server(&self) -> EximOptions {
        EximOptions {
            main: format!(
                "tls_advertise_hosts = *\ntls_certificate = {}\ntls_privatekey = {}",
                self.path("hop.pem"),
                self.path("hop.key")
            ),
            ..EximOptions::default()
        }
    }

    /// The route to `hop.example.com`, the loopback address, with a mode of TLS.
    pub(super) fn route(&self, port: u16, tls: &str) -> Options {
        Options::default()
            .set("delivery.ca", &format!("\"{}\"", self.path("ca.pem")))
            .record("hop.example.com A 127.0.0.1")
            .route(
                "example.com",
                format!("hop.example.com:{port}"),
                &format!("tls = \"{tls}\""),
            )
    }
}

#[derive(Clone, Copy)]
pub(super) enum Kind {
    Good,
    OtherName,
    Expired,
}
