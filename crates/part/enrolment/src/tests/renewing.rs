//! Renewals over loopback: the gateway's side and the node's.

use std::path::PathBuf;

use super::*;
use crate::renewal::{State, look, receive, renew_node, renew_own};
use vere_settings::{LineTls, Settings, SpoolNode};
use vere_units::Timestamp;

/// A gateway with the CA, and a node with its certificate.
struct Both {
    _folders: [tempfile::TempDir; 2],
    authority: Authority,
    gateway: Machine,
    node: Machine,
}

impl Both {
    fn new() -> Self {
        let folders = [0, 1].map(|_| tempfile::tempdir().unwrap());
        let [gateway, node] = [0, 1].map(|place: usize| Machine::below(folders[place].path()));
        let who = owner(folders[0].path());
        let authority = Authority::open_or_create(&gateway, who).unwrap();
        authority
            .certify_own(&gateway, &["gateway".to_owned()], who)
            .unwrap();
        node.make_folder(who).unwrap();
        let key = rcgen::KeyPair::generate().unwrap();
        let issued = authority.sign(&["b".to_owned()], Purpose::Node, &key);
        write(&node.key, &key.serialize_pem(), 0o600, who).unwrap();
        write(&node.certificate, &issued.unwrap().pem, 0o644, who).unwrap();
        Self {
            _folders: folders,
            authority,
            gateway,
            node,
        }
    }

    /// Runs the gateway's side beside a node that serves one connection.
    fn meet<T: Send>(
        &self,
        gateway: impl FnOnce(&MutualTls, &SpoolNode) -> T,
    ) -> (T, Result<Option<Timestamp>, EnrolmentError>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let node = SpoolNode {
            name: "b".to_owned(),
            listen: listener.local_addr().unwrap(),
            standby: None,
            remote: true,
            tls: LineTls::Required,
            data: PathBuf::new(),
        };
        std::thread::scope(|scope| {
            let received = scope.spawn(|| {
                let tls = mutual(&self.node, &self.gateway);
                let (mut stream, peer) = listener.accept().unwrap();
                let mut line = tls.accept().unwrap();
                line.shake_hands(&mut stream).unwrap();
                assert!(line.take_renewal());
                receive(stream, line, &tls, peer)
            });
            let result = gateway(&mutual(&self.gateway, &self.gateway), &node);
            (result, received.join().unwrap())
        })
    }

    fn end(&self) -> Timestamp {
        Leaf::of_file(&self.node.certificate)
            .unwrap()
            .validity
            .not_after
    }
}

#[test]
fn a_node_gets_its_next_certificate_when_it_is_due_or_wanted() {
    let both = Both::new();
    let before = fs::read(&both.node.certificate).unwrap();
    let (seen, received) = both.meet(|tls, node| look(tls, node).unwrap());
    assert_eq!(seen, Leaf::of_file(&both.node.certificate).unwrap());
    assert_eq!(received.unwrap(), None);
    let renew = |all: bool| both.meet(|tls, node| renew_node(&both.authority, tls, node, all));
    let (state, received) = renew(false);
    assert_eq!(state.unwrap(), State::Young(both.end()));
    assert_eq!(received.unwrap(), None);
    assert_eq!(fs::read(&both.node.certificate).unwrap(), before);
    // A successor lasts longer, by a second at least.
    std::thread::sleep(Duration::from_millis(1100));
    let (state, received) = renew(true);
    let end = both.end();
    assert_eq!(state.unwrap(), State::Renewed(end));
    assert_eq!(received.unwrap(), Some(end));
    assert_ne!(fs::read(&both.node.certificate).unwrap(), before);
    // The node works with the new one.
    let (seen, _) = both.meet(|tls, node| look(tls, node).unwrap());
    assert_eq!(seen.validity.not_after, end);
}

#[test]
fn a_refused_successor_is_not_written_and_the_gateway_hears_why() {
    let both = Both::new();
    let before = fs::read(&both.node.certificate).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let who = owner(elsewhere.path());
    let other = Authority::open_or_create(&Machine::below(elsewhere.path()), who).unwrap();
    std::thread::sleep(Duration::from_millis(1100));
    let (state, received) = both.meet(|tls, node| renew_node(&other, tls, node, true));
    let refused = |error: &EnrolmentError| matches!(error, EnrolmentError::Refused(_));
    assert!(state.is_err_and(|error| refused(&error)));
    assert!(received.is_err_and(|error| refused(&error)));
    assert_eq!(fs::read(&both.node.certificate).unwrap(), before);
}

#[test]
fn the_gateway_renews_its_own_certificate() {
    let both = Both::new();
    let file = &both.gateway.certificate;
    let end = || Leaf::of_file(file).unwrap().validity.not_after;
    let first = end();
    assert_eq!(
        renew_own(&both.authority, file, false).unwrap(),
        State::Young(first)
    );
    std::thread::sleep(Duration::from_millis(1100));
    let State::Renewed(renewed) = renew_own(&both.authority, file, true).unwrap() else {
        panic!("not renewed");
    };
    assert!(renewed > first && renewed == end());
}

#[test]
fn a_certificate_is_due_after_two_thirds_of_its_life_and_not_before() {
    let both = Both::new();
    let leaf = Leaf::of_file(&both.node.certificate).unwrap();
    let begin =
        SystemTime::UNIX_EPOCH + Duration::from_millis(leaf.validity.not_before.as_millis());
    let due = leaf.validity.lifetime() / 3 * 2;
    let second = Duration::from_secs(1);
    assert!(!renewal::is_due(&leaf, begin));
    assert!(!renewal::is_due(&leaf, begin + due - second));
    assert!(renewal::is_due(&leaf, begin + due));
    assert!(renewal::is_due(&leaf, begin + due + second));
    // A clock before the beginning asks for nothing.
    assert!(!renewal::is_due(&leaf, SystemTime::UNIX_EPOCH));
}

/// The settings of a gateway with a node elsewhere.
fn settings(both: &Both, node: &SpoolNode, more: &str) -> Settings {
    let text = |path: &Path| path.display().to_string();
    let Machine {
        folder,
        ca,
        certificate,
        key,
        ..
    } = &both.gateway;
    let text = format!(
        "version = 1\nhostname = \"mx.example.org\"\ndata = \"{}\"\n[spool]\nreplicas = 1\n[spool.tls]\ncertificate = \"{}\"\nkey = \
         \"{}\"\nca = \"{}\"\n{more}\n[[spool.node]]\nname = \"a\"\nlisten = \"127.0.0.1:1\"\n[[spool.node]]\nname = \"b\"\nlisten = \
         \"{}\"\nruns = \"elsewhere\"\ntls = \"required\"\n",
        text(folder),
        text(certificate),
        text(key),
        text(ca),
        node.listen
    );
    Settings::parse(&text, "vere.toml").unwrap()
}

#[test]
fn a_pass_renews_this_machine_and_its_nodes_where_the_key_of_the_ca_is() {
    let both = Both::new();
    let ca_key = format!("ca_key = \"{}\"", both.gateway.ca_key.display());
    let (done, received) = both.meet(|_, node| {
        let without = settings(&both, node, "");
        assert!(renewal::renew(&without, true).unwrap().is_empty());
        renewal::renew(&settings(&both, node, &ca_key), false).unwrap()
    });
    assert_eq!(received.unwrap(), None);
    let names: Vec<_> = done.iter().map(|one| one.node.as_deref()).collect();
    assert_eq!(names, [None, Some("b")]);
    assert!(
        done.iter()
            .all(|one| matches!(one.state, Ok(State::Young(_)))),
        "{done:?}"
    );
    std::thread::sleep(Duration::from_millis(1100));
    let (done, received) =
        both.meet(|_, node| renewal::renew(&settings(&both, node, &ca_key), true).unwrap());
    assert_eq!(received.unwrap(), Some(both.end()));
    assert!(
        done.iter()
            .all(|one| matches!(one.state, Ok(State::Renewed(_)))),
        "{done:?}"
    );
}
