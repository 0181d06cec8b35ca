//! What an operator wants to see of the link: how long the lease lasts, when certificates end, what the nodes
//! hold.

use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};
use vere_owner::Link;
use vere_spoolwire::NodeStat;
use vere_units::Timestamp;

use super::SpoolLink;
use super::shared::{Forget, Inner, Read, Shared};

impl SpoolLink {
    /// The nodes that hold everything and this group there in figures, of those that answer in time.
    pub async fn stats(&self, patience: Duration) -> Vec<NodeStat> {
        let shared = &*self.shared;
        let asked: Vec<_> = {
            let mut inner = shared.inner.borrow_mut();
            let numbers = inner.owner.stats().into_iter();
            let asked = numbers.map(|seq| {
                let (sender, receiver) = oneshot::channel();
                inner.reads.insert(seq, sender);
                (Forget { shared, seq }, receiver)
            });
            asked.collect()
        };
        shared.wake();
        let until = Instant::now() + patience;
        let mut stats = Vec::new();
        for (_forget, receiver) in asked {
            if let Ok(Ok(Read::Stat(stat))) = timeout_at(until, receiver).await {
                stats.push(stat);
            }
        }
        stats
    }

    /// For how long deliveries may begin if nothing prolongs the lease.
    pub fn lease_left(&self) -> Duration {
        let lease = self.shared.lease.borrow();
        lease.left(self.shared.clock.now())
    }

    /// When the certificate ends that is shown to nodes, by the path of its file.
    pub fn certificate_end(&self) -> Option<(PathBuf, Timestamp)> {
        let mut nodes = self.shared.options.nodes.iter();
        let encryption = nodes.find_map(|node| node.encryption.as_ref())?;
        encryption.tls.certificate_end()
    }

    /// When the certificates end that nodes have shown, by name; not of those that are not needed any more.
    pub fn node_certificate_ends(&self) -> Vec<(String, Timestamp)> {
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
