use std::time::{Duration, Instant};

use super::{Peer, PeerError, PostfixSetup};
use crate::load::{LoadEnd, LoadOptions, LoadProgress, run};
use crate::sink::{RunningSink, SinkOptions};

#[test]
fn postfix_relays_to_the_sink_and_leaves_nothing() {
    let sink = RunningSink::start(SinkOptions::default()).unwrap();
    let base = super::folder(&std::env::temp_dir(), "vere-bench-test-").unwrap();
    for setup in [PostfixSetup::Tuned, PostfixSetup::AsShipped] {
        let peer = match Peer::postfix(setup, sink.handle().address(), base.path()) {
            Err(error @ PeerError::Unavailable { .. }) => {
                eprintln!("skipped: {error}");
                return;
            }
            peer => peer.unwrap(),
        };
        let before = (
            sink.handle().counts().messages,
            peer.account().total().unwrap(),
        );
        let mut options = LoadOptions::new(peer.address(), LoadEnd::Count(50));
        options.sessions = 5;
        let report = run(&options, &LoadProgress::default()).unwrap();
        assert_eq!((report.acked.len(), report.failures.total()), (50, 0));
        let until = Instant::now() + Duration::from_secs(30);
        while sink.handle().counts().messages < before.0 + 50 {
            assert!(Instant::now() < until, "{setup:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(peer.account().total().unwrap() > before.1);
        let folder = peer.folder().to_owned();
        drop(peer);
        assert!(!folder.exists());
    }
}

#[test]
fn mailboxes_are_named_for_each_address() {
    let mailboxes = super::Destination::Mailboxes {
        addresses: vec!["a@x.test".to_owned(), "b@x.test".to_owned()],
        maildir: true,
    };
    let (domains, lines) = mailboxes.tables();
    assert_eq!(domains, "x.test mail\n");
    assert_eq!(lines, "a@x.test a/\nb@x.test b/\n");
    assert!(
        mailboxes
            .settings("/f".as_ref())
            .contains("\nvirtual_mailbox_base = /f/mail\n")
    );
    let next_hop = super::Destination::NextHop(([127, 0, 0, 1], 25).into());
    assert_eq!(
        next_hop.settings("/f".as_ref()),
        "relayhost = [127.0.0.1]:25\n"
    );
    let exchanged = super::Destination::Exchanged {
        addresses: vec!["a@x.test".to_owned()],
        next_hop: ([127, 0, 0, 1], 25).into(),
    };
    assert_eq!(exchanged.tables().0, "x.test mail\n");
    let text = exchanged.settings("/f".as_ref());
    assert!(text.contains("relay_recipient_maps = texthash:/f/conf/mailboxes\n"));
}

#[test]
fn a_program_that_is_no_vere_is_reported() {
    let base = tempfile::tempdir().unwrap();
    let next_hop = std::net::SocketAddr::from(([127, 0, 0, 1], 9));
    let error = Peer::vere("/bin/false".as_ref(), next_hop, base.path()).unwrap_err();
    assert!(
        matches!(error, PeerError::NotReady { name: "vere", .. }),
        "{error}"
    );
    let error = Peer::vere("/nonexistent".as_ref(), next_hop, base.path()).unwrap_err();
    assert!(
        matches!(error, PeerError::NotReady { .. } | PeerError::Spawn { .. }),
        "{error}"
    );
}
