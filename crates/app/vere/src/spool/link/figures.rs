//! What an operator wants to see of the link: how long the lease lasts, when certificates end.

use std::path::PathBuf;
use std::time::Duration;

use vere_units::Timestamp;

use super::{Inner, Link, Shared, SpoolLink};

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

    /// When the certificates end that nodes have shown, by name; not of those that are not needed any more.
    pub(crate) fn node_certificate_ends(&self) -> Vec<(String, Timestamp)> {
        let mut inner = self.shared.inner.borrow_mut();
        let Inner {
            owner,
            certificate_ends,
            ..
        } = &mut *inner;
        let nodes = &self.shared.options.nodes;
        certificate_ends.retain(|node, _| {
            let mut links = owner.links().filter(|link| nodes[link.node].name == *node);
            links.any(|link| owner.wants(link) || owner.is_connected(link))
        });
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
