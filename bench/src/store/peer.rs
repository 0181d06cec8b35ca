//! Mail stores of others by themselves, for tests that speak to them.

use std::net::SocketAddr;
use std::path::Path;

use super::systems::{READER, System, SystemName, address_of};
use crate::peer::PeerError;

/// A mail store that runs in a folder of its own until this is dropped. Its password is `secret`.
#[derive(Debug)]
pub struct MailPeer(System);

impl MailPeer {
    /// Starts one that is not ours below a folder that other users may enter.
    ///
    /// # Errors
    /// [`PeerError::Unavailable`] where it is not installed, or we are not root.
    pub fn start(system: SystemName, base: &Path) -> Result<Self, PeerError> {
        System::start(system, Path::new(""), base).map(Self)
    }

    /// Where it speaks IMAP in the clear.
    #[must_use]
    pub fn imap(&self) -> SocketAddr {
        self.0.imap
    }

    /// The account that there is.
    #[must_use]
    pub fn account(&self) -> String {
        address_of(READER)
    }
}
