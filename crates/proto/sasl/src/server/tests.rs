use super::*;

const NONCE: &str = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
const FIRST: &[u8] = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO";
const FINAL: &[u8] = b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
    p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";

fn begin(mechanism: Mechanism, initial: Option<&[u8]>) -> (Exchange, Step) {
    Exchange::begin(mechanism, initial, Nonce::new(NONCE).unwrap())
}

fn scram(first: &[u8]) -> (Exchange, Step) {
    begin(Mechanism::ScramSha256, Some(first))
}

fn fake() -> FakeKeys {
    FakeKeys::new([3; 32], 4096)
}

fn keys() -> ScramKeys {
    let salt = crate::decode(b"W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
    ScramKeys::derive("pencil", &salt, 4096).unwrap()
}

fn failure(step: Step) -> Failure {
    match step {
        Step::Failed(failure) => failure,
        other => panic!("not a failure: {other:?}"),
    }
}

fn challenge(step: Step) -> String {
    match step {
        Step::Challenge(challenge) => String::from_utf8(challenge).unwrap(),
        other => panic!("not a challenge: {other:?}"),
    }
}

fn attempt(step: Step) -> PasswordAttempt {
    match step {
        Step::Password(attempt) => attempt,
        other => panic!("not a password: {other:?}"),
    }
}

/// The example of RFC 7677 section 3.
#[test]
fn scram_rfc_7677() {
    let (mut exchange, step) = scram(FIRST);
    assert!(matches!(step, Step::ScramUser(name) if name == "user"));
    let first = challenge(exchange.keys(Some(keys()), &fake()));
    assert_eq!(
        first,
        "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    );
    let last = challenge(exchange.respond(FINAL));
    assert_eq!(last, "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
    let step = exchange.respond(b"");
    assert!(matches!(step, Step::Authenticated { authcid } if authcid == "user"));
    assert_eq!(failure(exchange.respond(b"")), Failure::OutOfOrder);
}

/// The first example of RFC 4616 section 4, and the third with an authorisation identity.
#[test]
fn plain_rfc_4616() {
    let (_, step) = begin(Mechanism::Plain, Some(b"\0tim\0tanstaaftanstaaf"));
    let tim = attempt(step);
    assert_eq!((tim.authzid, tim.authcid.as_str()), (None, "tim"));
    assert_eq!(tim.password.expose(), "tanstaaftanstaaf");

    let (mut exchange, step) = begin(Mechanism::Plain, None);
    assert_eq!(challenge(step), "");
    let kurt = attempt(exchange.respond(b"Ursel\0Kurt\0xipj3plmq"));
    assert_eq!(
        (kurt.authzid.as_deref(), kurt.authcid.as_str()),
        (Some("Ursel"), "Kurt")
    );
}

#[test]
fn plain_refuses_other_forms() {
    let long = [b"\0".as_slice(), &[b'a'; 321], b"\0p"].concat();
    for (message, is) in [
        (&b""[..], Failure::Malformed("PLAIN message")),
        (b"\0tim", Failure::Malformed("PLAIN message")),
        (b"\0tim\0p\0", Failure::Malformed("PLAIN message")),
        (b"\0\0p", Failure::Malformed("user name")),
        (b"\0t\xffm\0p", Failure::Malformed("user name")),
        (&long, Failure::TooLong("user name")),
    ] {
        let failed = failure(begin(Mechanism::Plain, Some(message)).1);
        assert_eq!(failed, is);
        assert!(failed.is_syntax());
    }
    let empty = failure(begin(Mechanism::Plain, Some(b"\0tim\0")).1);
    assert_eq!(empty, Failure::Credentials);
}

#[test]
fn login_asks_for_both() {
    let (mut exchange, step) = begin(Mechanism::Login, None);
    assert_eq!(challenge(step), "Username:");
    assert_eq!(challenge(exchange.respond(b"tim")), "Password:");
    let tim = attempt(exchange.respond(b"secret"));
    assert_eq!(
        (tim.mechanism, tim.authcid.as_str()),
        (Mechanism::Login, "tim")
    );

    let (mut exchange, step) = begin(Mechanism::Login, Some(b"tim"));
    assert_eq!(challenge(step), "Password:");
    assert_eq!(failure(exchange.respond(b"")), Failure::Credentials);
}

#[test]
fn scram_binding_flags() {
    // "y": the client could bind, we do not offer it: goes on, and its header is checked later.
    let (mut exchange, step) = scram(b"y,,n=user,r=abc");
    assert!(matches!(step, Step::ScramUser(_)));
    let _ = exchange.keys(Some(keys()), &fake());
    let forged = format!("c=biws,r=abc{NONCE},p={}", crate::encode(&[0; 32]));
    assert_eq!(
        failure(exchange.respond(forged.as_bytes())),
        Failure::ChannelBinding
    );

    let (_, step) = scram(b"p=tls-unique,,n=user,r=abc");
    assert_eq!(failure(step), Failure::ChannelBinding);
}

#[test]
fn scram_refuses_other_first_messages() {
    let long = format!("n,,n={},r=a", "u".repeat(321));
    for message in [
        &b""[..],
        b"n",
        b"n,,",
        b"z,,n=user,r=a",
        b"n,x,n=user,r=a",
        b"n,a=,n=user,r=a",
        b"n,,m=x,n=user,r=a",
        b"n,,r=a,n=user",
        b"n,,n=,r=a",
        b"n,,n=a=b,r=a",
        b"n,,n=user,r=",
        b"n,,n=user,r=a b",
        b"n,,n=user",
        b"n,,n=us\xffer,r=a",
        b"n,,n=us\0er,r=a",
        b"n,,n=\xc2\xad,r=a",
        long.as_bytes(),
    ] {
        let text = String::from_utf8_lossy(message).into_owned();
        assert!(failure(scram(message).1).is_syntax(), "{text}");
    }
}

#[test]
fn scram_acts_only_as_oneself() {
    let (_, step) = scram(b"n,a=us=2Cer,n=us=2Cer,r=a");
    assert!(matches!(step, Step::ScramUser(name) if name == "us,er"));
    assert_eq!(failure(scram(b"n,a=admin,n=user,r=a").1), Failure::Authzid);
}

#[test]
fn scram_wrong_proof_and_unknown_user_look_the_same() {
    let wrong = String::from_utf8(FINAL.to_vec())
        .unwrap()
        .replace("p=dH", "p=dX");
    for found in [Some(keys()), None] {
        let (mut exchange, _) = scram(FIRST);
        let first = challenge(exchange.keys(found, &fake()));
        assert_eq!(first.len(), 86, "{first}");
        assert_eq!(
            failure(exchange.respond(wrong.as_bytes())),
            Failure::Credentials
        );
        assert_eq!(failure(exchange.respond(FINAL)), Failure::OutOfOrder);
    }
}

/// Somebody who learnt the fake secret still cannot log in as nobody.
#[test]
fn scram_fake_keys_never_fit() {
    let secret = fake();
    let (mut exchange, _) = scram(FIRST);
    let first = challenge(exchange.keys(None, &secret));
    let bound = format!("c=biws,r=rOprNGfwEbeRWgbNEkqO{NONCE}");
    let bare = std::str::from_utf8(&FIRST[3..]).unwrap();
    let stored = secret.for_user("user").stored_key;
    let proof = crate::scram::signature(&stored, bare, &first, &bound);
    let message = format!("{bound},p={}", crate::encode(&proof));
    assert_eq!(
        failure(exchange.respond(message.as_bytes())),
        Failure::Credentials
    );
}

#[test]
fn scram_refuses_other_final_messages() {
    let good = std::str::from_utf8(FINAL).unwrap();
    for (bad, is) in [
        (String::new(), Failure::Malformed("client-final-message")),
        (
            good.replace(",p=", ",q="),
            Failure::Malformed("client-final-message"),
        ),
        (
            good.replace("ndVQ=", "ndV="),
            Failure::Malformed("client-final-message"),
        ),
        (
            good.replace("c=biws", "c=bi"),
            Failure::Malformed("client-final-message"),
        ),
        (good.replace("c=biws", "c=eSws"), Failure::ChannelBinding),
        (good.replace("$k0", "$k1"), Failure::Credentials),
    ] {
        let (mut exchange, _) = scram(FIRST);
        let _ = exchange.keys(Some(keys()), &fake());
        assert_eq!(failure(exchange.respond(bad.as_bytes())), is, "{bad}");
    }
    let (mut exchange, _) = scram(FIRST);
    let _ = exchange.keys(Some(keys()), &fake());
    let _ = exchange.respond(FINAL);
    assert!(failure(exchange.respond(b"x")).is_syntax());
}

#[test]
fn out_of_order_is_refused() {
    let (mut exchange, _) = scram(FIRST);
    assert_eq!(failure(exchange.respond(FINAL)), Failure::OutOfOrder);
    let (mut exchange, _) = begin(Mechanism::Plain, None);
    assert_eq!(failure(exchange.keys(None, &fake())), Failure::OutOfOrder);
}

#[test]
fn passwords_are_not_printed() {
    let (_, step) = begin(Mechanism::Plain, Some(b"\0tim\0tanstaaf"));
    assert!(!format!("{step:?}").contains("tanstaaf"));
}
