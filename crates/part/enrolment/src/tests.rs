//! Both sides over loopback, and strangers.

mod content;
mod formats;
mod protocol;
mod renewing;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use vere_net::tls::{CertificateFiles, Leaf, MutualTls, MutualTlsOptions};
use vere_units::Secret;

use super::message::{Membership, Reply, Request};
use super::*;

fn owner(folder: &Path) -> Owner {
    Owner::of(folder).unwrap()
}

fn membership() -> Membership {
    Membership {
        node: "b".to_owned(),
        listen: "192.0.2.2:2600".parse().unwrap(),
        gateway: "gateway".to_owned(),
        certificate: String::new(),
        ca: String::new(),
        key: "0a".repeat(32),
        durability: "synced".to_owned(),
        queues_max: 16,
        groups_max: 4,
        accounts: Vec::new(),
    }
}

fn invitation(folder: &Path, limits: Limits) -> Invitation {
    let machine = Machine::below(folder);
    let authority = Authority::open_or_create(&machine, owner(folder)).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    Invitation::new(listener, authority, membership(), limits).unwrap()
}

/// Runs an invitation beside a closure, which is the other machine.
fn beside<T>(
    invitation: Invitation,
    record: &(impl Fn() -> Result<(), String> + Sync),
    other: impl FnOnce(&Token) -> T,
) -> (T, Ending) {
    let stop = AtomicBool::new(false);
    let token = invitation.token().clone();
    std::thread::scope(|scope| {
        let served = scope.spawn(|| invitation.serve(&stop, record));
        // An invitation that has not ended by itself is ended.
        let end = Stop(&stop);
        let result = other(&token);
        drop(end);
        (result, served.join().unwrap().unwrap())
    })
}

/// Ends the invitation, also when an assertion fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[test]
fn names_of_nodes_are_labels() {
    for name in ["a", "mail2", "a-b", &"x".repeat(63)] {
        assert!(is_node_name(name), "{name}");
    }
    for name in ["", "A", "-a", "a-", "a.b", "a_b", "ä", &"x".repeat(64)] {
        assert!(!is_node_name(name), "{name}");
    }
}

#[test]
fn a_ca_is_made_once_and_goes_on_after_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let machine = Machine::below(folder.path());
    let who = owner(folder.path());
    let pin = Authority::open_or_create(&machine, who).unwrap().pin();
    assert_eq!(Authority::open_or_create(&machine, who).unwrap().pin(), pin);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&machine.ca_key), 0o600);
    assert_eq!(mode(&machine.folder), 0o700);
    // Killed between key and certificate: the key stays.
    let key = fs::read(&machine.ca_key).unwrap();
    fs::remove_file(&machine.ca).unwrap();
    Authority::open_or_create(&machine, who).unwrap();
    assert_eq!(fs::read(&machine.ca_key).unwrap(), key);
    // A key of another CA is noticed.
    let other = tempfile::tempdir().unwrap();
    let others = Machine::below(other.path());
    Authority::open_or_create(&others, who).unwrap();
    let error = Authority::open(&machine.ca, &others.ca_key).unwrap_err();
    assert!(error.to_string().contains("another key"), "{error}");
    let missing = Authority::open(&machine.ca, &other.path().join("none")).unwrap_err();
    assert!(missing.to_string().contains("found none"), "{missing}");
}

#[test]
fn a_machine_joins_once() {
    let folder = tempfile::tempdir().unwrap();
    let invitation = invitation(folder.path(), Limits::default());
    let recorded = AtomicUsize::new(0);
    let record = || {
        recorded.fetch_add(1, Ordering::AcqRel);
        Ok(())
    };
    let (given, ending) = beside(invitation, &record, |token| {
        let candidate = Candidate::new().unwrap();
        // A first attempt that is killed before it has written its files uses nothing up.
        drop(join(token, &candidate).unwrap());
        assert_eq!(recorded.load(Ordering::Acquire), 0);
        let joining = join(token, &candidate).unwrap();
        let given = joining.membership.clone();
        joining.confirm().unwrap();
        // Afterwards nobody listens, or the secret is refused.
        let late = join(token, &candidate).and_then(Joining::confirm);
        late.unwrap_err();
        given
    });
    assert!(matches!(ending, Ending::Joined(_)), "{ending:?}");
    assert_eq!(recorded.load(Ordering::Acquire), 1);
    assert_eq!(given.key, membership().key);
    let pem = folder.path().join("given.pem");
    fs::write(&pem, &given.certificate).unwrap();
    assert_eq!(Leaf::of_file(&pem).unwrap().names, ["b"]);
    assert!(format!("{given:?}").contains("redacted"));
}

#[test]
fn a_refused_record_leaves_the_invitation_open() {
    let folder = tempfile::tempdir().unwrap();
    let invitation = invitation(folder.path(), Limits::default());
    let fails = AtomicBool::new(true);
    let record = || match fails.swap(false, Ordering::AcqRel) {
        true => Err("the disk is full".to_owned()),
        false => Ok(()),
    };
    let ((), ending) = beside(invitation, &record, |token| {
        let candidate = Candidate::new().unwrap();
        let error = join(token, &candidate)
            .and_then(Joining::confirm)
            .unwrap_err();
        assert!(error.to_string().contains("disk is full"), "{error}");
        join(token, &candidate).and_then(Joining::confirm).unwrap();
    });
    assert!(matches!(ending, Ending::Joined(_)), "{ending:?}");
}

#[test]
fn wrong_secrets_end_nothing_and_a_wrong_pin_shows_none() {
    const GUESSES: usize = 12;
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits {
        wrong: Duration::from_millis(700),
        ..Limits::default()
    };
    let invitation = invitation(folder.path(), limits);
    let ((), ending) = beside(invitation, &|| Ok(()), |token| {
        let candidate = Candidate::new().unwrap();
        let stranger = Token {
            pin: [1; 32],
            ..token.clone()
        };
        let error = join(&stranger, &candidate).unwrap_err();
        assert!(
            matches!(error, EnrolmentError::OtherMachine { .. }),
            "{error:?}"
        );
        let guess = Token {
            secret: Secret::new([0; 32]),
            ..token.clone()
        };
        let guessing = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..SOURCE_MAX {
                scope.spawn(|| {
                    while guessing.fetch_add(1, Ordering::AcqRel) < GUESSES {
                        // Refused, or closed for a newer connection.
                        join(&guess, &candidate).unwrap_err();
                    }
                });
            }
        });
        let began = Instant::now();
        let error = join(&guess, &candidate).unwrap_err().to_string();
        assert!(error.contains("earlier invitation"), "{error}");
        // The refusal was kept back.
        assert!(began.elapsed() >= limits.wrong);
        join(token, &candidate).and_then(Joining::confirm).unwrap();
    });
    assert!(matches!(ending, Ending::Joined(_)), "{ending:?}");
}

/// Silent strangers of the same network: the newest connection has a place.
#[test]
fn a_machine_joins_while_strangers_hold_every_place() {
    let folder = tempfile::tempdir().unwrap();
    let invitation = invitation(folder.path(), Limits::default());
    let ((), ending) = beside(invitation, &|| Ok(()), |token| {
        let connect = || TcpStream::connect(token.address).unwrap();
        let _silent: Vec<_> = (0..CONNECTIONS_MAX * 2).map(|_| connect()).collect();
        let began = Instant::now();
        join(token, &Candidate::new().unwrap())
            .and_then(Joining::confirm)
            .unwrap();
        assert!(began.elapsed() < Limits::default().stranger);
    });
    assert!(matches!(ending, Ending::Joined(_)), "{ending:?}");
}

#[test]
fn errors_of_a_connection_name_its_stage() {
    let folder = tempfile::tempdir().unwrap();
    let mut invitation = invitation(folder.path(), Limits::default());
    let patience = Duration::from_secs(5);
    let recorded = AtomicUsize::new(0);
    let advertised = "192.0.2.77:2610".parse().unwrap();
    let bound = invitation.token().address;
    invitation.advertise(advertised);
    let record = || {
        recorded.fetch_add(1, Ordering::AcqRel);
        Ok(())
    };
    let ((), ending) = beside(invitation, &record, |token| {
        assert_eq!(token.address, advertised);
        let near = Token {
            address: bound,
            ..token.clone()
        };
        probe(&near, patience).unwrap();
        let stranger = Token {
            pin: [1; 32],
            ..near.clone()
        };
        let error = probe(&stranger, patience).unwrap_err();
        assert!(matches!(error, EnrolmentError::OtherMachine { .. }));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let other = Token {
            address: listener.local_addr().unwrap(),
            ..near.clone()
        };
        // Programs in place of the inviting machine: a closing program, a mail server, a silent program, and no program.
        std::thread::scope(|scope| {
            scope.spawn(|| {
                drop(listener.accept().unwrap());
                let (mut stream, _) = listener.accept().unwrap();
                let _ = stream.write_all(b"220 mx.example.org ESMTP\r\n");
                let _ = stream.read_to_end(&mut Vec::new());
                let (mut stream, _) = listener.accept().unwrap();
                let _ = stream.read_to_end(&mut Vec::new());
                drop(listener);
            });
            for patience in [patience, patience, Duration::from_millis(50)] {
                let error = probe(&other, patience).unwrap_err();
                assert!(
                    matches!(error, EnrolmentError::OtherProgram { .. }),
                    "{error:?}"
                );
            }
        });
        let error = join(&other, &Candidate::new().unwrap()).unwrap_err();
        assert!(error.to_string().contains("has ended"), "{error}");
    });
    assert_eq!(ending, Ending::Stopped);
    assert_eq!(recorded.load(Ordering::Acquire), 0);
}

#[test]
fn silence_garbage_and_crowds_end_with_the_deadline() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits {
        stranger: Duration::from_millis(300),
        ..Limits::default()
    };
    let invitation = invitation(folder.path(), limits);
    let ((), ending) = beside(invitation, &|| Ok(()), |token| {
        let connect = || TcpStream::connect(token.address).unwrap();
        let mut silent: Vec<_> = (0..CONNECTIONS_MAX + SOURCE_MAX)
            .map(|_| connect())
            .collect();
        let mut garbage = connect();
        let _ = garbage.write_all(&[0xFF; 64]);
        silent.push(garbage);
        for mut stream in silent {
            stream
                .set_read_timeout(Some(Duration::from_secs(30)))
                .unwrap();
            let mut octets = Vec::new();
            // Closed or reset; an alert may come first.
            let closed = stream.read_to_end(&mut octets);
            let timed_out = |error: &std::io::Error| error.kind() == std::io::ErrorKind::WouldBlock;
            assert!(!closed.as_ref().is_err_and(timed_out), "{closed:?}");
        }
        join(token, &Candidate::new().unwrap())
            .and_then(Joining::confirm)
            .unwrap();
    });
    assert!(matches!(ending, Ending::Joined(_)), "{ending:?}");
}

#[test]
fn an_invitation_ends_with_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits {
        valid: Duration::from_millis(10),
        ..Limits::default()
    };
    let invitation = invitation(folder.path(), limits);
    let never = AtomicBool::new(false);
    assert_eq!(
        invitation.serve(&never, &|| Ok(())).unwrap(),
        Ending::Expired
    );
}

/// Files of a node whose CA is in another directory.
fn mutual(node: &Machine, ca: &Machine) -> MutualTls {
    MutualTls::new(MutualTlsOptions {
        files: CertificateFiles::new(&node.certificate, &node.key),
        ca: ca.ca.clone(),
    })
    .unwrap()
}

#[test]
fn a_successor_has_the_key_and_the_names_and_lasts_longer() {
    let folder = tempfile::tempdir().unwrap();
    let who = owner(folder.path());
    let machine = Machine::below(folder.path());
    let authority = Authority::open_or_create(&machine, who).unwrap();
    let names = ["b".to_owned()];
    assert!(authority.certify_own(&machine, &names, who).unwrap());
    assert!(!authority.certify_own(&machine, &names, who).unwrap());
    let leaf = Leaf::of_file(&machine.certificate).unwrap();
    let now = SystemTime::now();
    assert!(!renewal::is_due(&leaf, now));
    let days = |days: u64| Duration::from_secs(days * 24 * 3600);
    assert!(renewal::is_due(&leaf, now + days(LIFE_DAYS * 2 / 3)));
    let tls = mutual(&machine, &machine);
    // The next second has a later end.
    std::thread::sleep(Duration::from_millis(1100));
    let next = authority.sign_successor(&leaf, Purpose::Node).unwrap();
    tls.check_successor(next.pem.as_bytes()).unwrap();
    let refused = |pem: &str, why: &str| {
        let error = tls.check_successor(pem.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    };
    let own = fs::read_to_string(&machine.certificate).unwrap();
    refused(&own, "not last longer");
    let other_name = Leaf {
        names: vec!["c".to_owned()],
        ..leaf.clone()
    };
    let other_name = authority
        .sign_successor(&other_name, Purpose::Node)
        .unwrap();
    refused(&other_name.pem, "names differ");
    let elsewhere = tempfile::tempdir().unwrap();
    let stranger = Authority::open_or_create(&Machine::below(elsewhere.path()), who).unwrap();
    refused(
        &stranger.sign_successor(&leaf, Purpose::Node).unwrap().pem,
        "certificate",
    );
    refused("text", "refused");
}

/// Whether both sides of a connection accept each other.
fn meet(server: &MutualTls, client: &MutualTls) -> bool {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::scope(|scope| {
        let accepts = scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            server.accept().unwrap().shake_hands(&mut stream).is_ok()
        });
        let mut stream = TcpStream::connect(address).unwrap();
        let mut line = client.connect("b", address.ip()).unwrap();
        let connects = line.shake_hands(&mut stream).is_ok();
        accepts.join().unwrap() && connects
    })
}

#[test]
fn a_node_cannot_connect_to_nodes() {
    let folder = tempfile::tempdir().unwrap();
    let who = owner(folder.path());
    let gateway = Machine::below(folder.path());
    let authority = Authority::open_or_create(&gateway, who).unwrap();
    authority
        .certify_own(&gateway, &["b".to_owned()], who)
        .unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let node = Machine::below(elsewhere.path());
    node.make_folder(who).unwrap();
    let key = rcgen::KeyPair::generate().unwrap();
    let issued = authority
        .sign(&["b".to_owned()], Purpose::Node, &key)
        .unwrap();
    write(&node.key, &key.serialize_pem(), 0o600, who).unwrap();
    write(&node.certificate, &issued.pem, 0o644, who).unwrap();
    let (gateway_tls, node_tls) = (mutual(&gateway, &gateway), mutual(&node, &gateway));
    assert!(meet(&node_tls, &gateway_tls));
    assert!(meet(&gateway_tls, &gateway_tls));
    assert!(!meet(&gateway_tls, &node_tls));
}

#[test]
fn a_removed_name_is_kept_for_the_life_of_its_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let machine = Machine::below(folder.path());
    assert_eq!(machine.removed_until("b"), None);
    machine.note_removed("b", owner(folder.path())).unwrap();
    assert!(machine.removed_until("b").is_some());
    let note = machine.folder.join("removed-b");
    for text in ["1\n", "", "text"] {
        fs::write(&note, text).unwrap();
        assert_eq!(machine.removed_until("b"), None);
    }
}
