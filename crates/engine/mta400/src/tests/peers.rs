use std::sync::LazyLock;

use vere_ber::{Ia5String, Kept, Null};
use vere_units::Secret;
use vere_x400::*;

use super::sample::{address, domain, terms, user};
use crate::*;

fn identity(name: &str, password: &str) -> Option<Identity> {
    Some(Identity {
        mta_name: name.to_owned(),
        password: Secret::new(password.as_bytes().to_vec()),
    })
}

/// A peer with a password, and one that gives no name.
fn peers() -> Peers {
    let mut named = Terms::new("named", domain("A"));
    named.theirs = identity("mta-a", "secret-a");
    named.ours = identity("mta-b", "secret-b");
    named.associations_max = 2;
    let mut nameless = Terms::new("nameless", domain("C"));
    nameless.addresses = vec!["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()];
    nameless.certificate = Some("mta.c.example".to_owned());
    Peers::new(vec![named, nameless]).unwrap()
}

static CERTIFICATE: LazyLock<Vec<String>> =
    LazyLock::new(|| vec!["www.c.example".to_owned(), "MTA.c.example".to_owned()]);

fn caller(address: &str) -> Caller<'static> {
    Caller {
        address: address.parse().unwrap(),
        certificate: CERTIFICATE.as_slice(),
    }
}

fn argument(name: &str, password: &str) -> MtaBindArgument {
    let mut terms = Terms::new("x", domain("A"));
    terms.ours = identity(name, password);
    terms.argument()
}

const NULL: MtaBindArgument = MtaBindArgument::Unauthenticated(Null);

#[test]
fn a_name_and_its_password_are_admitted() {
    let peers = peers();
    let admitted = peers
        .admit(
            &argument("mta-a", "secret-a"),
            caller("198.51.100.1"),
            |_| 1,
        )
        .unwrap();
    assert_eq!(admitted.peer, "named");
    let MtaBindResult::Authenticated(responder) = &admitted.result else {
        panic!("no credentials")
    };
    assert_eq!(responder.responder_name.text(), "mta-b");
    let Credentials::Simple(password) = &responder.responder_credentials else {
        panic!("no password")
    };
    assert!(password.is(b"secret-b"));
}

#[test]
fn binds_are_refused_with_a_reason_for_the_log() {
    let peers = peers();
    let authentication = MtaBindError::AuthenticationError;
    let mut strong = argument("mta-a", "");
    if let MtaBindArgument::Authenticated(initiator) = &mut strong {
        initiator.initiator_credentials = Credentials::Strong(Kept::default());
    }
    for (argument, from, busy, error, why) in [
        (
            argument("mta-a", "secret-b"),
            "192.0.2.1",
            0,
            authentication,
            Why::Password,
        ),
        (
            argument("mta-x", "secret-a"),
            "192.0.2.1",
            0,
            authentication,
            Why::UnknownName,
        ),
        (
            argument("mta-a", "secret-a"),
            "192.0.2.1",
            2,
            MtaBindError::Busy,
            Why::Busy,
        ),
        (strong, "192.0.2.1", 0, authentication, Why::Credentials),
        (NULL, "192.0.2.2", 0, authentication, Why::Unauthenticated),
    ] {
        let denied = peers.admit(&argument, caller(from), |_| busy);
        assert_eq!(denied, Err(Denied { error, why }), "{why}");
    }
}

#[test]
fn a_peer_without_a_name_is_known_by_address_and_certificate() {
    let peers = peers();
    for from in ["192.0.2.1", "::ffff:192.0.2.1", "2001:db8::1"] {
        let admitted = peers.admit(&NULL, caller(from), |name| {
            assert_eq!(name, "nameless");
            63
        });
        let result = MtaBindResult::Unauthenticated(Null);
        let peer = "nameless".to_owned();
        assert_eq!(admitted, Ok(Admitted { peer, result }));
    }
    let bare = Caller {
        certificate: &[],
        ..caller("192.0.2.1")
    };
    assert_eq!(
        peers.admit(&NULL, bare, |_| 0).unwrap_err().why,
        Why::Unauthenticated
    );
    // Two peers behind one address cannot be told apart.
    let mut other = terms("other", "D");
    other.certificate = None;
    let twice = Peers::new(peers.iter().cloned().chain([other]).collect()).unwrap();
    let denied = twice.admit(&NULL, caller("192.0.2.1"), |_| 0).unwrap_err();
    assert_eq!(denied.why, Why::Unauthenticated);
}

#[test]
fn an_argument_without_a_name_has_a_result_without_a_name() {
    let mut nameless = terms("nameless", "C");
    nameless.ours = identity("mta-b", "secret-b");
    let peers = Peers::new(vec![nameless]).unwrap();
    let admitted = peers.admit(&NULL, caller("192.0.2.1"), |_| 0).unwrap();
    assert_eq!(admitted.result, MtaBindResult::Unauthenticated(Null));
}

#[test]
fn a_name_does_not_help_from_another_place() {
    let mut strict = Terms::new("strict", domain("A"));
    strict.theirs = identity("mta-a", "secret-a");
    strict.addresses = vec!["192.0.2.1".parse().unwrap()];
    strict.certificate = Some("mta.a.example".to_owned());
    let peers = Peers::new(vec![strict]).unwrap();
    let right = argument("mta-a", "secret-a");
    let why = |from, certificate: Option<&str>| {
        let names: Vec<String> = certificate.iter().map(ToString::to_string).collect();
        let caller = Caller {
            certificate: &names,
            ..caller(from)
        };
        peers
            .admit(&right, caller, |_| 0)
            .map_err(|denied| denied.why)
            .err()
    };
    assert_eq!(why("192.0.2.1", Some("mta.a.example")), None);
    assert_eq!(why("192.0.2.2", Some("mta.a.example")), Some(Why::Address));
    assert_eq!(
        why("192.0.2.1", Some("mta.c.example")),
        Some(Why::Certificate)
    );
    assert_eq!(why("192.0.2.1", None), Some(Why::Certificate));
}

#[test]
fn the_answer_is_checked_as_well() {
    let peers = peers();
    let named = peers.get("named").unwrap();
    let answer = |name: &str, password: &str| {
        MtaBindResult::Authenticated(MtaResponder {
            responder_name: Ia5String::new(name).unwrap(),
            responder_credentials: Credentials::Simple(Password::ia5(password.as_bytes())),
            ..Default::default()
        })
    };
    let why = |terms: &Terms, result| {
        terms
            .check_result(&result)
            .map_err(|denied| denied.why)
            .err()
    };
    let null = MtaBindResult::Unauthenticated(Null);
    assert_eq!(why(named, answer("mta-a", "secret-a")), None);
    assert_eq!(why(named, answer("mta-a", "secret-b")), Some(Why::Password));
    assert_eq!(
        why(named, answer("mta-x", "secret-a")),
        Some(Why::OtherName)
    );
    assert_eq!(why(named, null.clone()), Some(Why::Unauthenticated));
    assert_eq!(why(peers.get("nameless").unwrap(), null), None);
    assert_eq!(peers.get("nameless").unwrap().argument(), NULL);
    // The argument survives its encoding.
    let argument = named.argument();
    let octets = argument.encode(BindForm::Tagged);
    assert_eq!(MtaBindArgument::decode(&octets).unwrap().0, argument);
}

#[test]
fn terms_that_cannot_be_are_named() {
    let text = |list: Vec<Terms>| Peers::new(list).unwrap_err().to_string();
    let open = Terms::new("open", domain("A"));
    let unprotected =
        "peer open: expected a password, an address or the name in a certificate; found none";
    assert_eq!(text(vec![open.clone()]), unprotected);
    let empty = Terms {
        theirs: identity("mta", ""),
        ..open.clone()
    };
    assert_eq!(text(vec![empty]), unprotected);
    let with = |name: &str, mta: &str| Terms {
        theirs: identity(mta, "x"),
        ..Terms::new(name, domain("A"))
    };
    assert_eq!(
        text(vec![with("a", "m"), with("a", "n")]),
        "peer a: expected the name once; found it twice"
    );
    assert_eq!(
        text(vec![with("a", "m"), with("b", "m")]),
        "peers a and b: expected different names of MTAs; both have m"
    );
    let certified = Terms {
        certificate: Some("x".to_owned()),
        ..open
    };
    assert!(Peers::new(vec![certified]).is_ok());
}

#[test]
fn passwords_are_not_printed() {
    let text = format!("{:?}", peers());
    assert!(
        !text.contains("115, 101") && text.contains("[redacted]"),
        "{text}"
    );
}

#[test]
fn ranges_permit_by_the_longest_part() {
    let part = "P=A;A=Carrier;C=GB";
    let range = AddressRange::new(&["A=Carrier;C=GB"], &[part]).unwrap();
    assert!(range.permits(&user("x", "B")));
    assert!(!range.permits(&user("x", "A")));
    assert!(!range.permits(&address("S=x;A=Other;C=GB")));
    let exception = AddressRange::new(&["S=x;P=A;A=Carrier;C=GB"], &[part]).unwrap();
    assert!(exception.permits(&user("x", "A")));
    assert!(!exception.permits(&user("y", "A")));
    assert!(!exception.permits(&user("y", "B")));
    let denied = AddressRange::new(&[], &[part]).unwrap();
    assert!(denied.permits(&user("x", "B")));
    assert!(!denied.permits(&user("x", "A")));
    // Of equal parts the denial counts.
    let both = AddressRange::new(&[part], &[part]).unwrap();
    assert!(!both.permits(&user("x", "A")));
    assert!(AddressRange::default().permits(&user("x", "A")));
    assert!(AddressRange::new(&["P"], &[]).is_err());
}
