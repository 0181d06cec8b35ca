//! How a CA sees that a name is ours: one of the challenges of RFC 8555 section 8 and RFC 8737.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use instant_acme::ChallengeType;

/// How the CA sees that the names are ours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Proof {
    /// By a file over HTTP, at port 80 of every name (http-01).
    #[default]
    Http,
    /// By a certificate in a TLS handshake, at port 443 of every name (tls-alpn-01).
    TlsAlpn,
    /// By a TXT record below every name (dns-01); no port of this machine has to be reachable.
    Dns(DnsProof),
}

impl Proof {
    pub(super) const fn challenge(&self) -> ChallengeType {
        match self {
            Self::Http => ChallengeType::Http01,
            Self::TlsAlpn => ChallengeType::TlsAlpn01,
            Self::Dns(_) => ChallengeType::Dns01,
        }
    }

    /// Time that other name servers get before the CA looks.
    pub(super) const fn wait(&self) -> Duration {
        match self {
            Self::Http | Self::TlsAlpn => Duration::ZERO,
            Self::Dns(proof) => proof.wait,
        }
    }

    /// The name of the challenge in the standards and the settings.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Http => "http-01",
            Self::TlsAlpn => "tls-alpn-01",
            Self::Dns(_) => "dns-01",
        }
    }
}

/// Who publishes TXT records, and the wait for other name servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsProof {
    /// Who publishes the records.
    pub by: Publisher,
    /// Time between the records and the CA's look: secondary name servers need time.
    pub wait: Duration,
}

/// Who publishes TXT records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Publisher {
    /// A name server that takes updates.
    Update(UpdateOptions),
    /// A program: `PROGRAM add NAME VALUE`, later `PROGRAM remove NAME VALUE`.
    Hook(PathBuf),
}

/// A name server that takes updates (RFC 2136).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdateOptions {
    /// The primary name server of the zone.
    pub server: SocketAddr,
    /// The zone; `None` for the nearest zone above the name that the server knows.
    pub zone: Option<String>,
    /// The file of the key that signs updates (TSIG, RFC 8945), as `tsig-keygen` writes the file.
    pub key: Option<PathBuf>,
}
