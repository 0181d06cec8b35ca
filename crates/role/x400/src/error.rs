//! Why the role ends.

use std::io;
use std::path::{Path, PathBuf};

use vere_groups::OwnError;
use vere_net::listen::ListenError;
use vere_outbound::OutboundError;
use vere_process::tls::ServerTlsError;
use vere_switch::SwitchError;

/// Why the MTA cannot start, or ends.
#[derive(Debug, thiserror::Error)]
pub enum X400Error {
    /// The settings have no section for the role.
    #[error("expected a section [x400] in the settings; found none")]
    NoSection,
    /// The settings cannot be used.
    #[error(transparent)]
    Settings(#[from] SwitchError),
    /// A port cannot be opened.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// A folder, a file or a socket of the MTA.
    #[error("cannot use {}: {source}", path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The group of queues cannot be had.
    #[error(transparent)]
    Own(#[from] OwnError),
    /// Certificates.
    #[error(transparent)]
    Tls(#[from] ServerTlsError),
    /// The way to the mail store or to names.
    #[error(transparent)]
    Outbound(#[from] OutboundError),
    /// Names cannot be looked up.
    #[error(transparent)]
    Resolver(#[from] vere_net::resolver::ResolverError),
    /// The archive or the audit log.
    #[error(transparent)]
    Archive(#[from] vere_archive::OpenError),
    /// The trace log.
    #[error(transparent)]
    Trace(#[from] vere_telemetry::trace::OpenError),
    /// The endpoint of metrics.
    #[error("cannot serve metrics: {0}")]
    Metrics(io::Error),
    /// A signal or a socket cannot be used.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Another process has the queues.
    #[error("another process has taken the queues of this MTA")]
    Fenced,
}

impl X400Error {
    /// The error of a path.
    pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Path { path, source }
    }
}
