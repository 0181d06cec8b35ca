//! The lives of certificates, and the deadlines of connections, as the documents have them.

use std::io;

use super::*;
use crate::wire::Timed;

/// Both ends of a connection over loopback.
fn ends() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let far = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (listener.accept().unwrap().0, far)
}

#[test]
fn a_deadline_counts_for_all_reads_and_writes() {
    let (near, mut far) = ends();
    near.set_nonblocking(true).unwrap();
    let patience = Duration::from_millis(200);
    let mut timed = Timed::new(near, patience).unwrap();
    let began = Instant::now();
    far.write_all(b"1").unwrap();
    let mut octets = [0; 8];
    assert_eq!(timed.read(&mut octets).unwrap(), 1);
    for _ in 0..2 {
        let error = timed.read(&mut octets).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(error.to_string().contains("too slow"), "{error}");
    }
    assert!(began.elapsed() >= patience);
    timed.prolong(patience);
    // Nobody reads: the buffers of the system fill up.
    let began = Instant::now();
    let error = timed.write_all(&vec![7; 64 << 20]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    assert!(began.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_refusal_is_kept_back_unless_the_other_side_goes() {
    let long = Duration::from_secs(60);
    let (near, mut far) = ends();
    let mut timed = Timed::new(near, long).unwrap();
    far.write_all(b"text").unwrap();
    let pause = Duration::from_millis(200);
    let began = Instant::now();
    timed.sit_out(pause);
    assert!(began.elapsed() >= pause && began.elapsed() < long / 2);
    // The deadline of the connection is as before.
    far.write_all(b"more").unwrap();
    assert_eq!(timed.read(&mut [0; 8]).unwrap(), 4);
    drop(far);
    let began = Instant::now();
    timed.sit_out(long / 2);
    assert!(began.elapsed() < long / 4);
    // The deadline of the connection ends a longer pause.
    let (near, _far) = ends();
    let mut timed = Timed::new(near, pause).unwrap();
    timed.sit_out(long);
    assert!(began.elapsed() < long / 2);
}

const DAY: Duration = Duration::from_secs(24 * 3600);

/// The period of the certificate in a file, beside now.
fn life(path: &Path) -> (Duration, Duration) {
    let validity = Leaf::of_file(path).unwrap().validity;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = now.unwrap().as_millis();
    let before = now - u128::from(validity.not_before.as_millis());
    let after = u128::from(validity.not_after.as_millis()) - now;
    let span = |millis: u128| Duration::from_millis(u64::try_from(millis).unwrap());
    (span(before), span(after))
}

#[test]
fn certificates_live_for_a_year_and_the_ca_for_twenty() {
    let folder = tempfile::tempdir().unwrap();
    let (machine, who) = (Machine::below(folder.path()), owner(folder.path()));
    let authority = Authority::open_or_create(&machine, who).unwrap();
    authority
        .certify_own(&machine, &["a".to_owned()], who)
        .unwrap();
    let about = |found: Duration, days: u32| {
        assert!(
            found.abs_diff(DAY * days) < Duration::from_secs(120),
            "{found:?}"
        );
    };
    let (before, after) = life(&machine.certificate);
    about(before, 1);
    about(after, 365);
    let (before, after) = life(&machine.ca);
    about(before, 1);
    about(after, 20 * 365);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(
        [&machine.ca, &machine.certificate].map(|path| mode(path)),
        [0o644; 2]
    );
    assert_eq!(
        [&machine.ca_key, &machine.key].map(|path| mode(path)),
        [0o600; 2]
    );
    machine.note_removed("b", who).unwrap();
    let until = machine.removed_until("b").unwrap().as_millis();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    about(Duration::from_millis(until) - now.unwrap(), 365);
}

#[test]
fn the_certificate_of_this_machine_is_made_anew_for_another_key_and_never_for_odd_names() {
    let folder = tempfile::tempdir().unwrap();
    let (machine, who) = (Machine::below(folder.path()), owner(folder.path()));
    let authority = Authority::open_or_create(&machine, who).unwrap();
    let names = ["a", "not a name", "gateway"].map(str::to_owned);
    assert!(authority.certify_own(&machine, &names, who).unwrap());
    let first = Leaf::of_file(&machine.certificate).unwrap();
    assert_eq!(first.names, ["a", "gateway"]);
    fs::remove_file(&machine.key).unwrap();
    assert!(authority.certify_own(&machine, &names, who).unwrap());
    let second = Leaf::of_file(&machine.certificate).unwrap();
    assert_ne!(second.public_key, first.public_key);
    // Another kind of key cannot be continued.
    let odd = Leaf {
        public_key: vec![4; 97],
        ..second.clone()
    };
    let error = authority.sign_successor(&odd, Purpose::Node).unwrap_err();
    assert!(error.to_string().contains("P-256"), "{error}");
    let compressed = Leaf {
        public_key: vec![2; 65],
        ..second
    };
    authority
        .sign_successor(&compressed, Purpose::Node)
        .unwrap_err();
}
