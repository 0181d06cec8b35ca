//! Why the role cannot begin, take other settings, or go on.

use std::error::Error;
use std::fmt;
use std::io;

use vere_net::listen::ListenError;
use vere_ports::directory::StoreError as DirectoryError;
use vere_process::secret::SecretError;
use vere_process::tls::ServerTlsError;
use vere_store::StoreError;

use super::files::FilesError;
use super::quota::QuotaError;

/// Why the role cannot begin, take other settings, or go on.
#[derive(Debug)]
pub(super) enum RoleError {
    /// A port cannot be listened on.
    Listen(ListenError),
    /// The system refused a socket, a thread, a signal, or the folder of the search index.
    System(io::Error),
    /// The files of the store cannot be used.
    Files(FilesError),
    /// The directory of accounts cannot be opened.
    Directory(DirectoryError),
    /// The settings name an account that cannot exist.
    Quota(QuotaError),
    /// The certificates cannot be shown.
    Tls(ServerTlsError),
    /// The secret behind the keys of unknown users cannot be used.
    Secret(SecretError),
    /// The kernel gives no random numbers.
    NoRandomNumbers(getrandom::Error),
    /// The running store failed, and accepts no change until it is opened again.
    Failed(StoreError),
}

impl fmt::Display for RoleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRandomNumbers(error) => write!(f, "no random numbers: {error}"),
            Self::Failed(error) => write!(
                f,
                "the mail store has to be opened anew, nothing acknowledged is lost: {error}"
            ),
            Self::Listen(error) => error.fmt(f),
            Self::System(error) => error.fmt(f),
            Self::Files(error) => error.fmt(f),
            Self::Directory(error) => error.fmt(f),
            Self::Quota(error) => error.fmt(f),
            Self::Tls(error) => error.fmt(f),
            Self::Secret(error) => error.fmt(f),
        }
    }
}

impl Error for RoleError {
    /// The display holds the text of the direct cause already; deeper causes follow here.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Listen(error) => error.source(),
            Self::System(error) => error.source(),
            Self::Files(error) => error.source(),
            Self::Directory(error) => error.source(),
            Self::Quota(error) => error.source(),
            Self::Tls(error) => error.source(),
            Self::Secret(error) => error.source(),
            Self::NoRandomNumbers(_) | Self::Failed(_) => None,
        }
    }
}

macro_rules! passes_on {
    ($($variant:ident($error:ty)),* $(,)?) => {$(
        impl From<$error> for RoleError {
            fn from(error: $error) -> Self {
                Self::$variant(error)
            }
        }
    )*};
}

passes_on! {
    Listen(ListenError),
    System(io::Error),
    Files(FilesError),
    Directory(DirectoryError),
    Quota(QuotaError),
    Tls(ServerTlsError),
    Secret(SecretError),
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use vere_process::failure::Failure;

    use super::*;

    /// The supervisor shows the text to the operator: an error that is passed on reads as it did where it came from.
    #[test]
    fn an_error_passed_on_keeps_its_text_and_its_causes() {
        let taken = || ListenError::Bind {
            address: SocketAddr::from(([127, 0, 0, 1], 143)),
            source: io::ErrorKind::AddrInUse.into(),
        };
        let text = Failure::from(RoleError::from(taken())).to_string();
        assert_eq!(text, Failure::from(taken()).to_string());
        let failed = RoleError::Failed(StoreError::DiskFull);
        assert_eq!(
            Failure::from(failed).to_string(),
            "the mail store has to be opened anew, nothing acknowledged is lost: no room on the disk"
        );
    }
}
