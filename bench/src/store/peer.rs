//! Mail stores of other projects, for tests over IMAP.

use std::net::SocketAddr;
use std::path::Path;

use super::systems::{READER, System, SystemName, address_of};
use crate::peer::PeerError;

/// A mail store that runs in a separate directory until the value is dropped. The password is `secret`.
#[derive(Debug)]
pub struct MailPeer(System);

impl MailPeer {
    /// Starts another project's system below a directory that every user may enter.
    ///
    /// # Errors
    /// [`PeerError::Unavailable`] where the system is not installed, or the process is not root.
    pub fn start(system: SystemName, base: &Path) -> Result<Self, PeerError> {
        System::start(system, Path::new(""), base).map(Self)
    }

    /// The address of the plaintext IMAP listener.
    #[must_use]
    pub fn imap(&self) -> SocketAddr {
        self.0.imap
    }

    /// The name of the only account.
    #[must_use]
    pub fn account(&self) -> String {
        address_of(READER)
    }
}
