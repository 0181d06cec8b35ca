//! Why there is no certificate.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::tls::TlsError;

/// No certificate was obtained; the stored certificate remains.
#[derive(Debug)]
pub enum AcmeError {
    /// No name is configured.
    NoDomain,
    /// The roots for the authority's server cannot be loaded.
    Roots(TlsError),
    /// A file or folder cannot be read or written.
    Storage {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file of the account is damaged; removing it makes a new account.
    Account {
        /// The file.
        path: PathBuf,
        /// The error in the file.
        problem: String,
    },
    /// The CA could not be reached, or refused the request.
    Authority(Box<instant_acme::Error>),
    /// The authority did not find the answer to its challenge, or does not serve the name.
    Refused {
        /// The name.
        domain: String,
        /// The reason given by the CA.
        reason: String,
    },
    /// The authority offers no http-01 challenge for a name, as for wildcards.
    NoChallenge {
        /// The name.
        domain: String,
    },
    /// The answer of the CA is no certificate for the key.
    Certificate(TlsError),
    /// The new certificate is due for renewal at once: the local clock or the CA's clock is wrong,
    /// or the certificate lacks a name.
    DueAgain,
    /// The order timed out.
    Timeout(Duration),
}

impl AcmeError {
    pub(super) fn authority(error: instant_acme::Error) -> Self {
        Self::Authority(Box::new(error))
    }

    /// The kind of problem the authority names (RFC 8555 section 6.7), without its prefix.
    fn kind(&self) -> Option<&str> {
        let Self::Authority(error) = self else {
            return None;
        };
        let instant_acme::Error::Api(problem) = &**error else {
            return None;
        };
        problem
            .r#type
            .as_deref()?
            .strip_prefix("urn:ietf:params:acme:error:")
    }

    pub(super) fn account_is_unknown(&self) -> bool {
        self.kind() == Some("accountDoesNotExist")
    }

    pub(super) fn asked_too_often(&self) -> bool {
        self.kind() == Some("rateLimited")
    }
}

impl fmt::Display for AcmeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDomain => f.write_str("no name for the certificate is configured"),
            Self::Roots(error) => write!(f, "certificate authority: {error}"),
            Self::Storage { path, source } => {
                write!(f, "cannot use {}: {source}", path.display())
            }
            Self::Account { path, problem } => write!(
                f,
                "{} holds no account ({problem}); remove the file to make a new account",
                path.display()
            ),
            Self::Authority(error) => write!(f, "certificate authority: {error}"),
            Self::Refused { domain, reason } => {
                write!(f, "certificate authority refuses {domain}: {reason}")
            }
            Self::NoChallenge { domain } => {
                write!(
                    f,
                    "certificate authority offers no http-01 challenge for {domain}"
                )
            }
            Self::Certificate(error) => {
                write!(
                    f,
                    "certificate authority sent no usable certificate: {error}"
                )
            }
            Self::DueAgain => {
                f.write_str("the new certificate is to be renewed at once: is the clock right?")
            }
            Self::Timeout(limit) => write!(f, "certificate order not done within {limit:?}"),
        }
    }
}

impl std::error::Error for AcmeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Roots(error) | Self::Certificate(error) => Some(error),
            Self::Storage { source, .. } => Some(source),
            Self::Authority(error) => Some(error),
            Self::NoDomain
            | Self::Account { .. }
            | Self::Refused { .. }
            | Self::NoChallenge { .. }
            | Self::DueAgain
            | Self::Timeout(_) => None,
        }
    }
}
