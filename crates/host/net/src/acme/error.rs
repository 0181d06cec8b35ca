//! Why there is no certificate.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::tls::TlsError;

/// No certificate was obtained; the stored certificate remains.
#[derive(Debug, thiserror::Error)]
pub enum AcmeError {
    /// No name is configured.
    #[error("no name for the certificate is configured")]
    NoDomain,
    /// The settings name no publisher of records.
    #[error("neither a name server nor a program publishes the records of dns-01")]
    NoPublisher,
    /// The roots for the authority's server cannot be loaded.
    #[error("certificate authority: {0}")]
    Roots(#[source] TlsError),
    /// A file or folder cannot be read or written.
    #[error("cannot use {path}: {source}")]
    Storage {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file of the account is damaged; removing it makes a new account.
    #[error("{path} holds no account ({problem}); remove the file to make a new account")]
    Account {
        /// The file.
        path: PathBuf,
        /// The error in the file.
        problem: String,
    },
    /// The CA could not be reached, or refused the request.
    #[error("certificate authority: {0}")]
    Authority(#[source] Box<instant_acme::Error>),
    /// The authority did not find the answer to its challenge, or does not serve the name.
    #[error("certificate authority refuses {domain}: {reason}")]
    Refused {
        /// The name.
        domain: String,
        /// The reason given by the CA.
        reason: String,
    },
    /// The authority does not offer the challenge of the settings for a name, as http-01 for wildcards.
    #[error("certificate authority offers no {kind} challenge for {domain}")]
    NoChallenge {
        /// The name.
        domain: String,
        /// The challenge of the settings.
        kind: &'static str,
    },
    /// The authority asks about a name that nobody ordered.
    #[error("certificate authority asks about {domain:?}, which was not ordered")]
    OtherName {
        /// The name.
        domain: String,
    },
    /// The answer to a challenge cannot be published.
    #[error("cannot publish the answer to the challenge for {name}: {problem}")]
    Challenge {
        /// The name.
        name: String,
        /// The reason.
        problem: String,
    },
    /// The answer of the CA is no certificate for the key.
    #[error("certificate authority sent no usable certificate: {0}")]
    Certificate(#[source] TlsError),
    /// The new certificate is due for renewal at once: the local clock or the CA's clock is wrong,
    /// or the certificate lacks a name.
    #[error("the new certificate is to be renewed at once: is the clock right?")]
    DueAgain,
    /// The order timed out.
    #[error("certificate order not done within {0:?}")]
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

    /// Whether the CA says that it is asked too often: any order would only prolong that.
    #[must_use]
    pub fn asked_too_often(&self) -> bool {
        self.kind() == Some("rateLimited")
    }
}
