//! The link and a node with mutual TLS between them, and everybody who is refused.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};
use tokio::net::TcpListener as TokioListener;
use vere_net::tls::{CertificateFiles, MutualTls, MutualTlsOptions};

use super::faults::{Dice, cutting_proxy, load};
use super::*;
use vere_process::encryption::Encryption;

/// An authority with `ca.pem` in a folder.
struct Authority {
    folder: tempfile::TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        // Authorities of one name would be told apart by signatures only.
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("ca.pem"), issuer.pem()).unwrap();
        Self { folder, issuer }
    }

    /// Writes `own.pem` and `own.key` for this name.
    fn sign(&self, name: &str, expired: bool) {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        if expired {
            params.not_before = date_time_ymd(2019, 1, 1);
            params.not_after = date_time_ymd(2020, 1, 1);
        }
        let key = KeyPair::generate().unwrap();
        let signed = params.signed_by(&key, &self.issuer).unwrap();
        fs::write(self.folder.path().join("own.pem"), signed.pem()).unwrap();
        fs::write(self.folder.path().join("own.key"), key.serialize_pem()).unwrap();
    }

    /// What is in the folder, trusting `trusted`.
    fn side(&self, trusted: &Self) -> Encryption {
        let path = |name: &str| self.folder.path().join(name);
        let tls = MutualTls::new(MutualTlsOptions {
            files: CertificateFiles::new(path("own.pem"), path("own.key")),
            ca: trusted.folder.path().join("ca.pem"),
        });
        Encryption {
            tls: tls.unwrap(),
            everywhere: true,
        }
    }
}

/// One side for node and gateway, with a certificate for this name.
fn both(name: &str) -> (Authority, Encryption) {
    let authority = Authority::new("own");
    authority.sign(name, false);
    let side = authority.side(&authority);
    (authority, side)
}

fn start(encryption: Option<Encryption>, config: NodeConfig) -> RunningNode {
    let options = NodeOptions {
        config,
        durability: Durability::Memory,
        spill: None,
        encryption,
        alive: || {},
    };
    RunningNode::start_options(TcpListener::bind("127.0.0.1:0").unwrap(), options)
}

fn encrypted(
    address: SocketAddr,
    register: &TestRegister,
    encryption: Option<Encryption>,
) -> LinkOptions {
    let mut options = LinkOptions {
        backoff_min: Duration::from_millis(1),
        backoff_max: Duration::from_millis(5),
        commit_timeout: Duration::from_secs(60),
        ..options(address, register)
    };
    options.nodes[0].encryption = encryption;
    options
}

/// Waits until the node's connection is in trouble with one of these texts in it.
async fn refused(options: LinkOptions, texts: &[&str]) {
    let (link, driver) = SpoolLink::connect(options);
    tokio::task::spawn_local(driver);
    let waiting = async {
        loop {
            let trouble = link.trouble("a").unwrap_or_default();
            if texts.iter().any(|text| trouble.contains(text)) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(30), waiting).await;
    assert!(waited.is_ok(), "{texts:?}: {:?}", link.trouble("a"));
    assert!(!link.state().borrow().is_up());
    link.close();
}

async fn works(link: &SpoolLink, text: &str) {
    let queue = link
        .create_queue("a.test", QueueLimits::UNLIMITED)
        .await
        .unwrap();
    link.commit(put(queue, text)).await.unwrap();
    assert_eq!(all(link, queue).await.last().unwrap(), text);
}

#[test]
fn messages_of_all_sizes_go_there_and_back() {
    for name in ["127.0.0.1", "a"] {
        let (_authority, side) = both(name);
        let register = TestRegister::new();
        local(async {
            let mut node = start(Some(side.clone()), config());
            let link = connect(encrypted(node.address, &register, Some(side))).await;
            let queue = link
                .create_queue("a.test", QueueLimits::UNLIMITED)
                .await
                .unwrap();
            let sizes = [1, 16_383, 16_384, 16_385, 65_537, 300_000, 5_000_000];
            let texts = sizes.map(|size| "x".repeat(size));
            let commits: Vec<_> = texts
                .iter()
                .map(|text| link.commit(put(queue, text)))
                .collect();
            for commit in commits {
                commit.await.unwrap();
            }
            assert!(all(&link, queue).await == texts);
            link.close();
            node.end();
        });
    }
}

#[test]
fn every_commit_survives_cuts_of_encrypted_connections() {
    let (_authority, side) = both("127.0.0.1");
    let register = TestRegister::new();
    local(async {
        let mut node = start(Some(side.clone()), config());
        let proxy = TokioListener::bind("127.0.0.1:0").await.unwrap();
        let address = proxy.local_addr().unwrap();
        tokio::task::spawn_local(cutting_proxy(proxy, node.address));
        let link = connect(encrypted(address, &register, Some(side.clone()))).await;
        let queue = link
            .create_queue("a.test", QueueLimits::UNLIMITED)
            .await
            .unwrap();
        let mut dice = Dice(0xfeed_beef_0000_0002);
        let expected = load(&link, queue, &mut dice, |commits| commits > 1_500).await;
        link.close();
        let link = connect(encrypted(node.address, &register, Some(side))).await;
        expected.check(&link, queue).await;
        link.close();
        node.end();
    });
}

#[test]
fn certificates_that_prove_nothing_are_refused_by_the_other_side() {
    let (authority, good) = both("127.0.0.1");
    let foreign = Authority::new("foreign");
    foreign.sign("127.0.0.1", false);
    let old = Authority::new("old");
    old.sign("127.0.0.1", true);
    let unnamed = Authority::new("unnamed");
    unnamed.sign("other.test", false);
    let register = TestRegister::new();
    // What the node refuses is an alert to the link, or a reset when that is faster.
    let cut = "connection broke";
    for (node, link, texts) in [
        // The node does not know the link's authority.
        (good.clone(), foreign.side(&authority), ["UnknownCA", cut]),
        // The link does not know the node's.
        (
            foreign.side(&authority),
            good.clone(),
            ["UnknownIssuer", "UnknownIssuer"],
        ),
        (
            authority.side(&old),
            old.side(&authority),
            ["CertificateExpired", cut],
        ),
        (
            old.side(&authority),
            authority.side(&old),
            ["expired", "Expired"],
        ),
        (
            unnamed.side(&unnamed),
            unnamed.side(&unnamed),
            ["not valid for", "not valid for"],
        ),
    ] {
        local(async {
            let mut node = start(Some(node), config());
            refused(encrypted(node.address, &register, Some(link)), &texts).await;
            node.end();
        });
    }
}

#[test]
fn plain_and_encrypted_do_not_meet() {
    let (_authority, side) = both("127.0.0.1");
    let register = TestRegister::new();
    local(async {
        let plain = start(None, config());
        let wanted = ["does not speak TLS"];
        refused(
            encrypted(plain.address, &register, Some(side.clone())),
            &wanted,
        )
        .await;
        // The node waits for the handshake and the link for the greeting: whoever is less patient ends it.
        for (node, link) in [(50, 60_000), (60_000, 50)] {
            let config = NodeConfig {
                handshake_timeout: Duration::from_millis(node),
                ..config()
            };
            let mut node = start(Some(side.clone()), config);
            let options = LinkOptions {
                connect_timeout: Duration::from_millis(link),
                ..encrypted(node.address, &register, None)
            };
            let said = if link == 50 {
                "only with TLS"
            } else {
                "connection broke"
            };
            refused(options, &[said, "frame"]).await;
            node.end();
        }
    });
}

/// Reads until the other side closes, in whichever way.
fn closed(mut stream: &TcpStream) {
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) => {
                assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
                return;
            }
        }
    }
}

#[test]
fn garbage_before_and_inside_the_handshake_harms_nobody() {
    let (_authority, side) = both("127.0.0.1");
    let register = TestRegister::new();
    let mut node = start(Some(side.clone()), config());
    let mut dice = Dice(0x1122_3344_5566_7788);
    let mut hello = Vec::new();
    let mut line = side.tls.connect("a", node.address.ip()).unwrap();
    line.flush(&mut hello).unwrap();
    for number in 0..60 {
        let mut stream = TcpStream::connect(node.address).unwrap();
        let mut octets = hello.clone();
        match number % 3 {
            // No handshake at all.
            0 => octets.fill_with(|| dice.below(256) as u8),
            // One octet of it is wrong; some say nothing to the node, hence what follows.
            1 => octets[dice.below(hello.len())] ^= 1 << dice.below(8),
            _ => {}
        }
        octets.extend((0..40_000).map(|_| dice.below(256) as u8));
        // It may be closed before all is written.
        let _ = stream.write_all(&octets);
        closed(&stream);
    }
    local(async {
        let link = connect(encrypted(node.address, &register, Some(side))).await;
        works(&link, "after all").await;
        link.close();
    });
    node.end();
}

#[test]
fn changed_certificates_hold_for_the_next_connection() {
    let authority = Authority::new("own");
    authority.sign("other.test", false);
    let node_side = authority.side(&authority);
    let gateway = Authority::new("gateway");
    gateway.sign("gateway.test", false);
    let own = gateway.side(&authority);
    let register = TestRegister::new();
    local(async {
        let mut node = start(Some(node_side), config());
        let wanted = ["not valid for"];
        refused(
            encrypted(node.address, &register, Some(own.clone())),
            &wanted,
        )
        .await;
        // The node's certificate gets its name, and the node learns the gateway's authority.
        authority.sign("127.0.0.1", false);
        let known = authority.issuer.pem() + &gateway.issuer.pem();
        fs::write(authority.folder.path().join("ca.pem"), known).unwrap();
        let link = connect(encrypted(node.address, &register, Some(own))).await;
        works(&link, "new certificates").await;
        // Files that cannot be used change nothing for those who are there or come.
        fs::write(authority.folder.path().join("own.key"), "no key").unwrap();
        works(&link, "still").await;
        link.close();
        let link = connect(encrypted(
            node.address,
            &register,
            Some(gateway.side(&authority)),
        ))
        .await;
        works(&link, "again").await;
        link.close();
        node.end();
    });
}
