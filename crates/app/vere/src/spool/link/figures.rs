//! What an operator wants to see of the link: how long the lease lasts, when certificates end.

use std::path::PathBuf;
use std::time::Duration;

use vere_units::Timestamp;

use super::{Link, Shared, SpoolLink};

impl SpoolLink {
    /// For how long deliveries may begin if nothing prolongs the lease.
    pub(crate) fn lease_left(&self) -> Duration {
        let lease = self.shared.lease.borrow();
        lease.left(self.shared.clock.now())
    }

    /// When the certificate ends that is shown to nodes, by the path of its file.
    pub(crate) fn certificate_end(&self) -> Option<(PathBuf, Timestamp)> {
        let mut nodes = self.shared.options.nodes.iter();
        let encryption = nodes.find_map(|node| node.encryption.as_ref())?;
        encryption.tls.certificate_end()
    }

    /// When the certificates end that nodes have shown, by name.
    pub(crate) fn node_certificate_ends(&self) -> Vec<(String, Timestamp)> {
        let inner = self.shared.inner.borrow();
        let ends = inner.certificate_ends.iter();
        ends.map(|(node, end)| (node.clone(), *end)).collect()
    }
}

impl Shared {
    /// Notes when the certificate of a node ends.
    pub(super) fn note_certificate(&self, link: Link, end: Timestamp) {
        let node = self.options.nodes[link.node].name.clone();
        self.inner.borrow_mut().certificate_ends.insert(node, end);
    }
}
