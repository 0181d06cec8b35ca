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
