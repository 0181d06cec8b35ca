use super::*;
use crate::server::{self, Step};
use crate::{FakeKeys, NonceSource, ScramKeys};

const FIRST: &[u8] = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
    s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";

fn begin(mechanism: Mechanism) -> (Exchange, Option<Vec<u8>>) {
    let nonce = Nonce::new("rOprNGfwEbeRWgbNEkqO").unwrap();
    Exchange::begin(mechanism, &Credentials::new("user", "pencil"), nonce).unwrap()
}

/// The example of RFC 7677 section 3.
#[test]
fn scram_rfc_7677() {
    let (mut exchange, initial) = begin(Mechanism::ScramSha256);
    assert_eq!(initial.unwrap(), b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
    let last = exchange.respond(FIRST).unwrap();
    assert_eq!(
        String::from_utf8(last).unwrap(),
        "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
         p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    );
    let end = exchange
        .respond(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")
        .unwrap();
    assert!(end.is_empty());
    exchange.succeeded().unwrap();
}

#[test]
fn scram_does_not_believe_an_unproven_server() {
    let (exchange, _) = begin(Mechanism::ScramSha256);
    assert_eq!(exchange.succeeded(), Err(ExchangeError::Unproven));

    let (mut exchange, _) = begin(Mechanism::ScramSha256);
    exchange.respond(FIRST).unwrap();
    assert_eq!(exchange.succeeded(), Err(ExchangeError::Unproven));

    let (mut exchange, _) = begin(Mechanism::ScramSha256);
    exchange.respond(FIRST).unwrap();
    let forged = exchange.respond(b"v=7rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
    assert_eq!(forged, Err(ExchangeError::Signature));
    assert_eq!(exchange.succeeded(), Err(ExchangeError::Unproven));
}

#[test]
fn scram_refuses_other_first_messages() {
    let count = |text: &str| ExchangeError::Keys(KeyError::Iterations(text.parse().unwrap()));
    for (message, is) in [
        ("", ExchangeError::Malformed("server-first-message")),
        (
            "m=x,r=rOprNGfwEbeRWgbNEkqOx,s=QQ==,i=4096",
            ExchangeError::Malformed("server-first-message"),
        ),
        (
            "r=rOprNGfwEbeRWgbNEkqOx,s=QQ==,i=+4096",
            ExchangeError::Malformed("server-first-message"),
        ),
        (
            "r=rOprNGfwEbeRWgbNEkqOx,s=Q,i=4096",
            ExchangeError::Malformed("server-first-message"),
        ),
        ("r=rOprNGfwEbeRWgbNEkqO,s=QQ==,i=4096", ExchangeError::Nonce),
        ("r=other,s=QQ==,i=4096", ExchangeError::Nonce),
        ("r=rOprNGfwEbeRWgbNEkqOx,s=QQ==,i=1", count("1")),
        ("r=rOprNGfwEbeRWgbNEkqOx,s=QQ==,i=600001", count("600001")),
        (
            "r=rOprNGfwEbeRWgbNEkqOx,s=QQ==,i=99999999999999999999",
            count("4294967295"),
        ),
        (
            "r=rOprNGfwEbeRWgbNEkqOx,s=,i=4096",
            ExchangeError::Keys(KeyError::SaltLength(0)),
        ),
    ] {
        let (mut exchange, _) = begin(Mechanism::ScramSha256);
        assert_eq!(exchange.respond(message.as_bytes()), Err(is), "{message}");
        assert!(exchange.respond(FIRST).is_err(), "broken for good");
    }
}

#[test]
fn scram_server_error_is_reported() {
    let (mut exchange, _) = begin(Mechanism::ScramSha256);
    exchange.respond(FIRST).unwrap();
    let told = exchange.respond(b"e=other-error\x07");
    assert_eq!(told, Err(ExchangeError::Server("other-error".to_owned())));
}

#[test]
fn login_and_plain() {
    let (mut exchange, initial) = begin(Mechanism::Login);
    assert_eq!(initial, None);
    assert_eq!(exchange.respond(b"User Name\0").unwrap(), b"user");
    assert_eq!(exchange.respond(b"Password\0").unwrap(), b"pencil");
    assert_eq!(exchange.respond(b"Once more:"), Err(ExchangeError::Surplus));

    let (exchange, initial) = begin(Mechanism::Plain);
    assert_eq!(initial.unwrap(), b"\0user\0pencil");
    exchange.succeeded().unwrap();
}

#[test]
fn unusable_credentials_are_refused() {
    for (name, password) in [("", "p"), ("u", ""), ("u\0", "p"), ("u", "p\0")] {
        for mechanism in Mechanism::ALL {
            let begun = Exchange::begin(
                mechanism,
                &Credentials::new(name, password),
                Nonce::new("n").unwrap(),
            );
            assert_eq!(begun.err(), Some(ExchangeError::Credentials));
        }
    }
}

/// Both sides together, with names that need escaping and preparation.
#[test]
fn client_and_server_agree() {
    let (ours, theirs) = (NonceSource::new([1; 32]), NonceSource::new([2; 32]));
    for (name, password) in [("user", "pencil"), ("a,b=c", "p,=w"), ("Ⅸ", "é")] {
        let keys = ScramKeys::derive(password, b"0123456789abcdef", 4096).unwrap();
        let mut credentials = Credentials::new(name, password);
        credentials.authzid = Some(name.to_owned());
        let (mut client, initial) =
            Exchange::begin(Mechanism::ScramSha256, &credentials, ours.next()).unwrap();
        let (mut server, mut step) =
            server::Exchange::begin(Mechanism::ScramSha256, initial.as_deref(), theirs.next());
        let user = loop {
            step = match step {
                Step::ScramUser(_) => {
                    server.keys(Some(keys.clone()), &FakeKeys::new([0; 32], 4096))
                }
                Step::Challenge(challenge) => server.respond(&client.respond(&challenge).unwrap()),
                Step::Authenticated { authcid } => break authcid,
                other => panic!("{other:?}"),
            };
        };
        assert_eq!(user, crate::prepare(name).unwrap());
        client.succeeded().unwrap();
    }
}

fn bearer() -> Bearer {
    Bearer {
        username: "user@example.com".to_owned(),
        token: Secret::new("vF9dft4qmTc2Nvb3RlckBhbHRhdmlzdGEuY29tCg==".to_owned()),
        host: "server.example.com".to_owned(),
        port: 143,
    }
}

/// The example of RFC 7628 section 4.1, and the form of XOAUTH2.
#[test]
fn tokens_travel_in_the_first_message() {
    let (exchange, initial) =
        Exchange::begin_bearer(BearerMechanism::OAuthBearer, &bearer()).unwrap();
    assert_eq!(
        String::from_utf8(initial).unwrap(),
        "n,a=user@example.com,\x01host=server.example.com\x01port=143\x01auth=Bearer \
         vF9dft4qmTc2Nvb3RlckBhbHRhdmlzdGEuY29tCg==\x01\x01"
    );
    assert_eq!(exchange.succeeded(), Ok(()));
    let (_, initial) = Exchange::begin_bearer(BearerMechanism::XOAuth2, &bearer()).unwrap();
    assert_eq!(
        String::from_utf8(initial).unwrap(),
        "user=user@example.com\x01auth=Bearer vF9dft4qmTc2Nvb3RlckBhbHRhdmlzdGEuY29tCg==\x01\x01"
    );
}

#[test]
fn the_error_of_a_token_is_answered_and_ends_the_exchange() {
    for (mechanism, end) in [
        (BearerMechanism::OAuthBearer, &b"\x01"[..]),
        (BearerMechanism::XOAuth2, b""),
    ] {
        let (mut exchange, _) = Exchange::begin_bearer(mechanism, &bearer()).unwrap();
        assert_eq!(
            exchange.respond(b"{\"status\":\"invalid_token\"}").unwrap(),
            end
        );
        assert!(exchange.respond(b"").is_err());
        assert_eq!(exchange.succeeded(), Err(ExchangeError::Unproven));
    }
    for wrong in ["", "a\x01auth=b"] {
        let mut bearer = bearer();
        bearer.username = wrong.to_owned();
        assert!(Exchange::begin_bearer(BearerMechanism::XOAuth2, &bearer).is_err());
    }
}
