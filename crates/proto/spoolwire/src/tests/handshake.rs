//! How gateway and node come to know each other.

use super::*;

#[test]
fn a_proof_holds_for_one_greeting_group_and_secret_only() {
    let secret = Secret::new([1; SECRET_LEN]);
    let signed = hello().sign(&greeting(), &secret);
    let octets = encoded(|out| signed.encode(out));
    let frame = Frame::read(&octets, HANDSHAKE_FRAME_MAX).unwrap().unwrap();
    let read = Hello::decode(&frame).unwrap();
    assert_eq!(read, signed);
    assert!(read.is_proven(&greeting(), &secret));
    assert!(!read.is_proven(&greeting(), &Secret::new([2; SECRET_LEN])));
    assert!(!read.is_proven(
        &Greeting {
            challenge: [8; SECRET_LEN],
            ..greeting()
        },
        &secret
    ));
    assert!(
        !Hello {
            group: "other",
            ..read
        }
        .is_proven(&greeting(), &secret)
    );
    assert!(
        !Hello {
            role: Role::Reader,
            ..read
        }
        .is_proven(&greeting(), &secret)
    );
    for other in [
        Hello { epoch: 7, ..read },
        Hello {
            logged: false,
            ..read
        },
        Hello {
            role: Role::Standby,
            ..read
        },
        Hello { owner: 1, ..read },
        Hello {
            account: "west",
            ..read
        },
        // The same octets, cut otherwise.
        Hello {
            group: "gatewaye",
            account: "ast",
            ..read
        },
        Hello {
            charter: Charter::OWN,
            ..read
        },
    ] {
        assert!(!other.is_proven(&greeting(), &secret), "{other:?}");
        let octets = encoded(|out| other.encode(out));
        let frame = Frame::read(&octets, HANDSHAKE_FRAME_MAX).unwrap().unwrap();
        assert_eq!(Hello::decode(&frame), Ok(other));
    }
    assert_ne!(read.answer(&greeting(), &secret), read.proof);
}

#[test]
fn handshake_frames_are_read_back() {
    let octets = encoded(|out| greeting().encode(out));
    let frame = Frame::read(&octets, HANDSHAKE_FRAME_MAX).unwrap().unwrap();
    assert_eq!(Greeting::decode(&frame), Ok(greeting()));
    for (synced, syncing) in [(false, false), (true, false), (false, true), (true, true)] {
        let welcome = Welcome {
            synced,
            syncing,
            ..welcome()
        };
        let octets = encoded(|out| welcome.encode(out));
        let frame = Frame::read(&octets, WELCOME_FRAME_MAX).unwrap().unwrap();
        assert_eq!(Welcome::decode(&frame), Ok(welcome));
        assert!(matches!(
            Greeting::decode(&frame),
            Err(WireError::Operation(_))
        ));
    }
}

/// Octets that count up from a number.
fn counting(from: u8) -> [u8; SECRET_LEN] {
    std::array::from_fn(|at| from + at as u8)
}

/// The vectors on the page, by which a client is written that shares no code with this.
#[test]
fn the_proofs_of_the_page_are_right() {
    let secret = Secret::new(counting(0));
    let greeting = Greeting {
        incarnation: Incarnation(0x0102_0304_0506_0708),
        version_min: VERSION,
        version_max: VERSION,
        challenge: counting(0x20),
    };
    let hello = Hello {
        acknowledged: Txn(0),
        version: VERSION,
        role: Role::Owner,
        owner: 1,
        epoch: 0,
        logged: true,
        group: "gateway",
        account: DEFAULT_ACCOUNT,
        charter: Charter::OWN,
        nonce: counting(0x40),
        proof: [0; SECRET_LEN],
    };
    let hello = hello.sign(&greeting, &secret);
    let hex =
        |octets: &[u8]| -> String { octets.iter().map(|octet| format!("{octet:02x}")).collect() };
    let page = include_str!("../../../../../docs/internals/spoolwire.md");
    let page: String = page.split_whitespace().collect();
    let vectors = [
        ("GREETING", encoded(|out| greeting.encode(out))),
        ("owner's proof", hello.proof.to_vec()),
        ("HELLO", encoded(|out| hello.encode(out))),
        ("node's proof", hello.answer(&greeting, &secret).to_vec()),
    ];
    let vectors = vectors.map(|(name, octets)| (name, hex(&octets)));
    let missing = vectors.iter().filter(|(_, octets)| !page.contains(octets));
    assert_eq!(missing.collect::<Vec<_>>(), <Vec<&(&str, String)>>::new());
}
