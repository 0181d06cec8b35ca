//! Peers that deviate from the protocol, message by message.

use vere_joinwire::wire;

use super::*;
use crate::invitation::PROTOCOL;
use crate::joining::{Encrypted, check, shake_hands};
use crate::message::{Account, REPLY_MAX};

/// A refusal, as the other machine shows it.
fn refusal(stream: &mut Encrypted) -> String {
    match wire::receive(stream, REPLY_MAX).unwrap() {
        Reply::Refused(reason) => reason,
        other => panic!("expected a refusal; found {other:?}"),
    }
}

fn request(token: &Token, candidate: &Candidate, version: u32) -> Request {
    Request::Join {
        version,
        secret: invitation::hexadecimal(token.secret.expose()),
        request: candidate.request.clone(),
    }
}

#[test]
fn requests_out_of_order_and_of_other_versions_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let invitation = invitation(folder.path(), Limits::default());
    let record = || panic!("nobody joins");
    let ((), ending) = beside(invitation, &record, |token| {
        let candidate = Candidate::new().unwrap();
        let short = Duration::from_millis(500);
        let connect = || shake_hands(token, short).unwrap();
        let mut stream = connect();
        assert_eq!(stream.conn.alpn_protocol(), Some(PROTOCOL));
        // The time of the exchange is another one than that of the handshake.
        std::thread::sleep(short);
        wire::send(&mut stream, &Request::Done).unwrap();
        assert_eq!(refusal(&mut stream), "expected a request to join");
        let mut stream = connect();
        wire::send(&mut stream, &request(token, &candidate, 2)).unwrap();
        let said = refusal(&mut stream);
        assert!(
            said.contains("expected version 1 of the messages; found 2"),
            "{said}"
        );
        let mut stream = connect();
        wire::send(&mut stream, &request(token, &candidate, 1)).unwrap();
        let reply: Reply = wire::receive(&mut stream, REPLY_MAX).unwrap();
        assert!(matches!(reply, Reply::Accepted(_)));
        wire::send(&mut stream, &request(token, &candidate, 1)).unwrap();
        assert!(refusal(&mut stream).contains("files are written"));
        // A request for a certificate that is none.
        let mut stream = connect();
        let odd = Request::Join {
            version: 1,
            secret: invitation::hexadecimal(token.secret.expose()),
            request: "text".to_owned(),
        };
        wire::send(&mut stream, &odd).unwrap();
        assert!(refusal(&mut stream).contains("certificate request"));
    });
    assert_eq!(ending, Ending::Stopped);
}

/// An accepted machine has more time than a stranger.
#[test]
fn an_accepted_machine_has_time_to_write_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits {
        stranger: Duration::from_millis(700),
        ..Limits::default()
    };
    let invitation = invitation(folder.path(), limits);
    let ((), ending) = beside(invitation, &|| Ok(()), |token| {
        let joining = join(token, &Candidate::new().unwrap()).unwrap();
        std::thread::sleep(limits.stranger);
        joining.confirm().unwrap();
    });
    assert!(matches!(ending, Ending::Joined(_)), "{ending:?}");
}

#[test]
fn the_second_of_two_accepted_machines_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let invitation = invitation(folder.path(), Limits::default());
    let recorded = AtomicUsize::new(0);
    let record = || {
        recorded.fetch_add(1, Ordering::AcqRel);
        Ok(())
    };
    let ((), _) = beside(invitation, &record, |token| {
        let candidate = Candidate::new().unwrap();
        let first = join(token, &candidate).unwrap();
        let second = join(token, &candidate).unwrap();
        first.confirm().unwrap();
        let error = second.confirm().unwrap_err().to_string();
        assert!(error.contains("the invitation has ended"), "{error}");
    });
    assert_eq!(recorded.load(Ordering::Acquire), 1);
}

/// The operator stopped the invitation while a machine wrote its files.
#[test]
fn a_machine_that_was_accepted_before_the_end_is_refused_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let invitation = invitation(folder.path(), Limits::default());
    let token = invitation.token().clone();
    let stop = AtomicBool::new(false);
    let record = || panic!("nobody joins");
    std::thread::scope(|scope| {
        let served = scope.spawn(|| invitation.serve(&stop, &record));
        let end = Stop(&stop);
        let candidate = Candidate::new().unwrap();
        let accepted = join(&token, &candidate).unwrap();
        // A connection that is there, and whose request comes after the end.
        let mut late = shake_hands(&token, Duration::from_secs(9)).unwrap();
        drop(end);
        // The end is noticed within a look, and shows nowhere before the last connection has ended.
        std::thread::sleep(Duration::from_millis(500));
        wire::send(&mut late, &request(&token, &candidate, 1)).unwrap();
        assert_eq!(refusal(&mut late), "the invitation has ended");
        let error = accepted.confirm().unwrap_err().to_string();
        assert!(error.contains("the invitation has ended"), "{error}");
        assert_eq!(served.join().unwrap().unwrap(), Ending::Stopped);
    });
}

#[test]
fn a_peer_of_another_protocol_is_refused_in_the_handshake() {
    let folder = tempfile::tempdir().unwrap();
    let (who, machine) = (owner(folder.path()), Machine::below(folder.path()));
    let invitation = invitation(folder.path(), Limits::default());
    let authority = Authority::open(&machine.ca, &machine.ca_key).unwrap();
    authority
        .certify_own(&machine, &["a".to_owned()], who)
        .unwrap();
    let ((), _) = beside(invitation, &|| Ok(()), |token| {
        let tls = mutual(&machine, &machine);
        let mut stream = TcpStream::connect(token.address).unwrap();
        let mut line = tls
            .connect_to_renew("inviter.spool.invalid", token.address.ip())
            .unwrap();
        line.shake_hands(&mut stream).unwrap_err();
    });
}

/// Makes a right membership wrong.
type Change<'a> = &'a dyn Fn(&mut Membership);

/// What an inviting machine could send wrongly, or an older or newer version.
#[test]
fn a_membership_is_checked_before_a_file_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let (who, machine) = (owner(folder.path()), Machine::below(folder.path()));
    let authority = Authority::open_or_create(&machine, who).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let other = Authority::open_or_create(&Machine::below(elsewhere.path()), who).unwrap();
    let token = Token {
        address: "192.0.2.1:2610".parse().unwrap(),
        pin: authority.pin(),
        secret: Secret::new([1; 32]),
    };
    let (candidate, stranger) = (Candidate::new().unwrap(), Candidate::new().unwrap());
    let signed = |request: &str| {
        let issued = authority.sign_request(&["b".to_owned()], Purpose::Node, request);
        issued.unwrap().pem
    };
    let right = Membership {
        certificate: signed(&candidate.request),
        ca: authority.pem().to_owned(),
        ..membership()
    };
    check(&right, &token, &candidate).unwrap();
    let account = |key: String| {
        vec![Account {
            name: "east".to_owned(),
            makes_groups: false,
            key,
        }]
    };
    let with = |change: Change<'_>| {
        let mut given = right.clone();
        change(&mut given);
        check(&given, &token, &candidate)
    };
    with(&|given| given.accounts = account("AF".repeat(32))).unwrap();
    let wrong: [(&str, Change<'_>); 9] = [
        ("no CA certificate", &|given| given.ca.clear()),
        ("another CA", &|given| other.pem().clone_into(&mut given.ca)),
        ("no certificate", &|given| given.certificate.clear()),
        ("another key", &|given| {
            given.certificate = signed(&stranger.request)
        }),
        ("64 hexadecimal digits", &|given| given.key = "0".repeat(63)),
        ("64 hexadecimal digits", &|given| given.key = "0".repeat(65)),
        ("64 hexadecimal digits", &|given| given.key = "g".repeat(64)),
        ("64 hexadecimal digits", &|given| {
            given.accounts = account("../".to_owned());
        }),
        ("64 hexadecimal digits", &|given| {
            given.accounts = account("\n".repeat(64));
        }),
    ];
    for (expected, change) in wrong {
        let error = with(change).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// A certificate whose period is over, or has not begun: a wrong clock on one of the machines.
#[test]
fn a_certificate_of_another_time_is_refused_with_advice() {
    let folder = tempfile::tempdir().unwrap();
    let (who, machine) = (owner(folder.path()), Machine::below(folder.path()));
    let authority = Authority::open_or_create(&machine, who).unwrap();
    let candidate = Candidate::new().unwrap();
    let key = rcgen::KeyPair::from_pem(&candidate.key_pem()).unwrap();
    let mut params = rcgen::CertificateParams::new(vec!["b".to_owned()]).unwrap();
    params.not_before = rcgen::date_time_ymd(2001, 1, 1);
    params.not_after = rcgen::date_time_ymd(2002, 1, 1);
    let given = Membership {
        certificate: params.self_signed(&key).unwrap().pem(),
        ca: authority.pem().to_owned(),
        ..membership()
    };
    let token = Token {
        address: "192.0.2.1:2610".parse().unwrap(),
        pin: authority.pin(),
        secret: Secret::new([1; 32]),
    };
    let error = check(&given, &token, &candidate).unwrap_err().to_string();
    assert!(error.contains("set the clock"), "{error}");
}
