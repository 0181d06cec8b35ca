//! Machines that have spool nodes and no mail system: the gateway runs on another machine (`vere node join`).

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde::Serialize;
use vere_settings::{Settings, SpoolNode};

/// How long a node of this machine may take to accept a connection.
const PATIENCE: Duration = Duration::from_secs(3);
/// Sections without settings about mail.
const SECTIONS: &[&str] = &["spool", "cluster", "log", "control", "backup"];

/// A node of this machine, used by a gateway elsewhere.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct NodeHere {
    pub(crate) name: String,
    pub(crate) address: SocketAddr,
    /// Why no connection was possible; `None` when the node accepted the connection.
    pub(crate) error: Option<String>,
}

/// The nodes of a machine that has nodes alone; empty where the settings are those of a mail system.
///
/// Two facts have to agree: a gateway elsewhere can reach every node, and no setting is about mail. A mail system with the
/// default settings fails the first, a gateway with nodes on other machines both.
pub(crate) fn alone(settings: &Settings) -> Vec<&SpoolNode> {
    let nodes = &settings.spool.nodes;
    let is_alone =
        nodes.iter().all(|node| is_for_others(node, settings)) && has_no_mail_settings(settings);
    match is_alone {
        true => nodes.iter().collect(),
        false => Vec::new(),
    }
}

/// Whether the node runs here, and a gateway elsewhere can reach it. A tunnel may lead to a loopback address with TLS.
fn is_for_others(node: &SpoolNode, settings: &Settings) -> bool {
    // The key of the CA is on the machine of a gateway alone.
    let tls = settings.spool.tls.as_ref();
    let renews = tls.is_some_and(|tls| tls.ca_key.is_some());
    let outside = !node.listen.ip().to_canonical().is_loopback();
    !node.remote && !renews && (outside || tls.is_some())
}

/// Whether all further settings are as in a file with a host name alone.
fn has_no_mail_settings(settings: &Settings) -> bool {
    let text = format!("version = 1\nhostname = {:?}\n", settings.hostname);
    let Ok(bare) = Settings::parse(&text, "vere.toml") else {
        return false;
    };
    let changes = bare.changes(settings);
    let mut keys = changes.live.iter().chain(&changes.restart);
    keys.all(|key| match key.split_once(['.', '[']) {
        Some((section, _)) => SECTIONS.contains(&section),
        None => true,
    })
}

/// The nodes of a machine that has nodes alone, each asked for a connection.
pub(crate) fn asked(settings: &Settings) -> Vec<NodeHere> {
    let ask = |node: &SpoolNode| NodeHere {
        name: node.name.clone(),
        address: node.listen,
        error: TcpStream::connect_timeout(&node.listen, PATIENCE)
            .err()
            .map(|error| error.to_string()),
    };
    alone(settings).into_iter().map(ask).collect()
}

/// The unit of a node alone.
pub(crate) fn unit(name: &str) -> String {
    format!("vere-node@{name}")
}

#[cfg(test)]
pub(crate) mod tests {
    use std::net::TcpListener;

    use super::*;

    /// The settings that `vere node join` writes.
    pub(crate) fn joined(listen: &str) -> String {
        format!(
            "version = 1\nhostname = \"mail2.spool.invalid\"\ndata = \"data\"\nuser = \"root\"\n\n[spool]\n\
             durability = \"synced\"\nreplicas_min = 1\nqueues_max = 1000\ngroups_max = 8\n\n[spool.tls]\n\
             certificate = \"m.pem\"\nkey = \"m.key\"\nca = \"ca.pem\"\n\n[[spool.node]]\nname = \"mail2\"\n\
             listen = \"{listen}\"\n\n[[spool.account]]\nname = \"east\"\nsecret = \"account-1.key\"\n\
             groups = \"makes\"\n"
        )
    }

    fn is_alone(text: &str) -> bool {
        let settings = Settings::parse(text, "vere.toml").unwrap();
        !alone(&settings).is_empty()
    }

    #[test]
    fn machines_with_nodes_alone_are_known_by_their_settings() {
        let joined = joined("192.0.2.2:2600");
        assert!(is_alone(&joined));
        assert!(is_alone(&(joined.clone() + "[log]\nlevel = \"warn\"\n")));
        let by_hand = "version = 1\nhostname = \"b.example.org\"\n[[spool.node]]\nname = \"b\"\n\
                       listen = \"192.0.2.2:2600\"\n";
        assert!(is_alone(by_hand));
        // Mail systems: by default, with a section about mail, with a node elsewhere, with the key of the CA.
        assert!(!is_alone("version = 1\nhostname = \"mx.example.org\"\n"));
        assert!(!is_alone(&by_hand.replace("192.0.2.2", "127.0.0.1")));
        assert!(!is_alone(
            &(joined.clone() + "[smtp]\nlisten = [\"[::]:2525\"]\n")
        ));
        assert!(!is_alone(&(joined.clone() + "[front]\n")));
        let elsewhere =
            "[[spool.node]]\nname = \"c\"\nlisten = \"192.0.2.3:2600\"\nruns = \"elsewhere\"\n";
        assert!(!is_alone(&(joined.clone() + elsewhere)));
        assert!(!is_alone(
            &joined.replace("ca = ", "ca_key = \"ca.key\"\nca = ")
        ));
    }

    #[test]
    fn a_connection_shows_whether_a_node_answers() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let text = joined(&address.to_string());
        let settings = Settings::parse(&text, "vere.toml").unwrap();
        let error = || asked(&settings).remove(0).error;
        assert_eq!(error(), None);
        drop(listener);
        assert!(error().is_some());
    }
}
