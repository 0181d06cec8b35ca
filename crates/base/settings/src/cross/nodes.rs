//! Checks for nodes with conflicting addresses.

use super::found::Found;
use crate::model::{LineTls, Spool, SpoolNode};

pub(super) fn check(spool: &Spool, found: &mut Found<'_>) {
    for (n, node) in spool.nodes.iter().enumerate() {
        let earlier = &spool.nodes[..n];
        let key = |name: &str| format!("spool.node[{}].{name}", n + 1);
        if earlier.iter().any(|other| other.name == node.name) {
            found.add(&key("name"), format!("{:?} stands twice", node.name));
        }
        if earlier
            .iter()
            .any(|other| other.listen == node.listen && node.listen.port() != 0)
        {
            found.add(&key("listen"), format!("{} stands twice", node.listen));
        }
        standby(spool, n, &key, found);
        if earlier.iter().any(|other| other.data == node.data) {
            found.add(
                &key("data"),
                format!("{} stands twice", node.data.display()),
            );
        }
        if node.tls == LineTls::Required && spool.tls.is_none() {
            found.add(&key("tls"), "needs certificates: [spool.tls]");
        }
    }
}

/// At a standby address only the same node may answer: another node there would be taken for a second
/// copy.
fn standby(spool: &Spool, n: usize, key: &impl Fn(&str) -> String, found: &mut Found<'_>) {
    let node = &spool.nodes[n];
    let Some(standby) = node.standby.filter(|standby| standby.port() != 0) else {
        return;
    };
    let others = spool.nodes.iter().enumerate();
    let mut others = others.filter(|(m, _)| *m != n).map(|(_, other)| other);
    let its = |other: &&SpoolNode| other.addresses().any(|address| address == standby);
    if node.listen == standby {
        found.add(&key("standby"), format!("{standby} is listen, too"));
    } else if let Some(other) = others.find(its) {
        let text = format!("{standby} is an address of node {:?}, too", other.name);
        found.add(&key("standby"), text);
    }
}
