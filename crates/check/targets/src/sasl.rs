//! Both sides of an authentication exchange; `0xff` ends a message.

use vere_sasl::client::{Credentials, Exchange as Ours};
use vere_sasl::server::{Exchange as Theirs, Step};
use vere_sasl::{
    FakeKeys, Mechanism, NAME_LENGTH_MAX, NonceSource, PASSWORD_LENGTH_MAX, ScramKeys,
};

use crate::choice::choice;

pub(crate) const SERVER_SEEDS: &[&[u8]] = &[
    b"\x01\0tim\0secret",
    b"\x02tim\xffsecret",
    b"\x00n,a=tim,n=tim,r=abc\xffc=biws,r=abcdef,p=AAAA\xff",
    b"\x00y,,n=a=2Cb=3D,r=abc",
];

pub(crate) const CLIENT_SEEDS: &[&[u8]] = &[
    b"\x00r=x,s=QQ==,i=4096\xffv=AAAA",
    b"\x02Username:\xffPassword:",
];

fn mechanism(kind: u8) -> Mechanism {
    Mechanism::ALL[usize::from(kind) % Mechanism::ALL.len()]
}

/// No messages without the password lead to success, and what is asked of the host is bounded.
pub(crate) fn server(octets: &[u8]) {
    let (kind, octets) = choice(octets);
    let fake = FakeKeys::new([2; 32], ScramKeys::ITERATIONS_MIN);
    let mut messages = octets.split(|octet| *octet == 0xff);
    let initial = if kind & 0x80 == 0 {
        messages.next()
    } else {
        None
    };
    let nonce = NonceSource::new([1; 32]).next();
    let (mut exchange, mut step) = Theirs::begin(mechanism(kind & 0x7f), initial, nonce);
    loop {
        step = match step {
            Step::Challenge(challenge) => {
                assert!(challenge.len() < 4096);
                match messages.next() {
                    Some(message) => exchange.respond(message),
                    None => return,
                }
            }
            Step::ScramUser(name) => {
                assert!(!name.is_empty() && !name.contains('\0'));
                exchange.keys(None, &fake)
            }
            Step::Password(attempt) => {
                assert!((1..=NAME_LENGTH_MAX).contains(&attempt.authcid.len()));
                assert!((1..=PASSWORD_LENGTH_MAX).contains(&attempt.password.expose().len()));
                return;
            }
            Step::Authenticated { .. } => panic!("authenticated with fake keys"),
            Step::Failed(_) => return,
        };
    }
}

/// No server without the password is believed.
pub(crate) fn client(octets: &[u8]) {
    let (kind, octets) = choice(octets);
    let mechanism = mechanism(kind);
    let nonce = NonceSource::new([1; 32]).next();
    let credentials = Credentials::new("tim", "secret");
    let Ok((mut exchange, _)) = Ours::begin(mechanism, &credentials, nonce) else {
        panic!("good credentials refused");
    };
    for challenge in octets.split(|octet| *octet == 0xff) {
        if exchange.respond(challenge).is_err() {
            break;
        }
    }
    let believed = exchange.succeeded().is_ok();
    assert!(
        !(believed && mechanism == Mechanism::ScramSha256),
        "an impostor is believed"
    );
    if let Ok(text) = std::str::from_utf8(octets) {
        if let Ok(keys) = text.parse::<ScramKeys>() {
            assert_eq!(keys.encode().parse(), Ok(keys));
        }
        if let Ok(message) = vere_sasl::decode(octets) {
            assert_eq!(vere_sasl::encode(&message), text);
        }
    }
}
