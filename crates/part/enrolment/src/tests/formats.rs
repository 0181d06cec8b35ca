//! The octets of tokens and messages, the lives of certificates, and the bounds of reads, as the documents have them.

use std::io::{self, Cursor};

use super::*;
use crate::message::{Account, REPLY_MAX, REQUEST_MAX};
use crate::wire::{Timed, receive_octets, send_octets};

/// A token that an operator may have on paper is read by every later version.
#[test]
fn the_octets_of_a_token_stay() {
    let four = Token {
        address: "192.0.2.1:2610".parse().unwrap(),
        pin: [0x11; 32],
        secret: Secret::new([0x22; 32]),
    };
    assert!(four.reveal().starts_with("vere1-BMAAAgEKMhERERERER"));
    let octets = decoded(&four);
    assert_eq!(octets[..7], [4, 192, 0, 2, 1, 0x0A, 0x32]);
    assert_eq!(octets[7..39], [0x11; 32]);
    assert_eq!(octets[39..71], [0x22; 32]);
    assert_eq!(octets.len(), 75);
    let six = Token {
        address: "[2001:db8::1]:1".parse().unwrap(),
        ..four
    };
    let octets = decoded(&six);
    assert_eq!(octets[..4], [16, 0x20, 0x01, 0x0D]);
    assert_eq!(
        (octets[16], &octets[17..19], octets.len()),
        (1, &[0, 1][..], 87)
    );
    assert!(!six.to_string().contains("IiIi") && six.to_string().contains("2001:db8::1"));
}

fn decoded(token: &Token) -> Vec<u8> {
    use base64::Engine as _;
    let text = token.reveal();
    let text = text.strip_prefix("vere1-").unwrap();
    base64::engine::general_purpose::URL_SAFE_NO_PAD
        .decode(text)
        .unwrap()
}

#[test]
fn a_token_with_a_right_sum_and_another_form_is_damaged() {
    use base64::Engine as _;
    let with_sum = |mut content: Vec<u8>| {
        content.extend(vere_checksum::crc32c(&content).to_be_bytes());
        let text = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(content);
        format!("vere1-{text}").parse::<Token>()
    };
    let rest = [0; 2 + 32 + 32];
    assert!(with_sum([&[4][..], &[1; 4], &rest].concat()).is_ok());
    assert!(with_sum([&[16][..], &[1; 16], &rest].concat()).is_ok());
    for wrong in [
        [&[5][..], &[1; 5], &rest].concat(),
        [&[4][..], &[1; 4], &rest, &[0]].concat(),
        [&[4][..], &[1; 4], &rest[1..]].concat(),
        [&[255][..], &[1; 4], &rest].concat(),
        vec![4],
        Vec::new(),
    ] {
        assert_eq!(with_sum(wrong), Err(TokenError::Damaged));
    }
}

/// Machines of different versions exchange these texts.
#[test]
fn the_octets_of_messages_stay() {
    let join = Request::Join {
        version: message::VERSION,
        secret: "ab".to_owned(),
        request: "pem".to_owned(),
    };
    let text = r#"{"join":{"version":1,"secret":"ab","request":"pem"}}"#;
    let behind_length = |text: &str| {
        let length = u32::try_from(text.len()).unwrap();
        [&length.to_be_bytes()[..], text.as_bytes()].concat()
    };
    assert_eq!(join.encode(), behind_length(text));
    assert_eq!(Request::Done.encode(), behind_length("\"done\""));
    assert_eq!(Reply::Recorded.encode(), behind_length("\"recorded\""));
    let refused = Reply::Refused("no".to_owned());
    assert_eq!(refused.encode(), behind_length(r#"{"refused":"no"}"#));
    let account = Account {
        name: "east".to_owned(),
        makes_groups: true,
        key: "0b".to_owned(),
    };
    let given = Membership {
        key: "0a".to_owned(),
        certificate: "own".to_owned(),
        ca: "ca".to_owned(),
        accounts: vec![account],
        ..membership()
    };
    let text = r#"{"accepted":{"node":"b","listen":"192.0.2.2:2600","gateway":"gateway","certificate":"own","ca":"ca","key":"0a","durability":"synced","queues_max":16,"groups_max":4,"accounts":[{"name":"east","makes_groups":true,"key":"0b"}]}}"#;
    let accepted = Reply::Accepted(Box::new(given));
    assert_eq!(accepted.encode(), behind_length(text));
    assert_eq!(Reply::decode(&behind_length(text)), Some(accepted));
    assert_eq!(Request::decode(&join.encode()), Some(join));
    assert_eq!(Request::decode(b"\0\0\0\x02{}"), None);
}

#[test]
fn lengths_have_their_bounds_exactly() {
    for (max, of) in [(REQUEST_MAX, 8 * 1024), (REPLY_MAX, 256 * 1024)] {
        let mut octets = Vec::new();
        send_octets(&mut octets, &vec![7; of]).unwrap();
        assert_eq!(
            receive_octets(&mut octets.as_slice(), max).unwrap().len(),
            of
        );
        let mut octets = Vec::new();
        send_octets(&mut octets, &vec![7; of + 1]).unwrap();
        let mut stream = Cursor::new(octets);
        let error = receive_octets(&mut stream, max).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        // Nothing was read behind the length.
        assert_eq!(stream.position(), 4);
    }
}

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
