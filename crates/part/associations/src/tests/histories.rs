//! Histories.

use bytes::Bytes;
use vere_osi::rtse::Checkpoint;

use crate::*;

fn activity(session: u32, number: u8) -> Activity {
    let session = vere_osi::rtse::SessionConnectionIdentifier {
        calling: Bytes::from(format!("mta-a-{session}")),
        ..Default::default()
    };
    Activity {
        session: Some(session),
        identifier: Bytes::from(vec![2, 1, number]),
    }
}

fn resumption(old: &Activity, new: &Activity, checkpoint: u32) -> Resumption {
    Resumption {
        old: old.clone(),
        new: new.clone(),
        checkpoint,
    }
}

#[test]
fn a_transfer_is_known_by_each_of_its_names() {
    let mut history = History::new(10);
    let names = [activity(1, 1), activity(2, 1), activity(3, 1)];
    assert!(history.begun(&names[0]));
    assert_eq!(
        history.resumed(&resumption(&names[0], &names[1], 0)),
        Known::Busy
    );
    let mut partial = Partial::default();
    partial.push(Bytes::from_static(b"abcdef"));
    partial.secure(Checkpoint {
        serial: 1,
        position: 4,
    });
    partial.secure(Checkpoint {
        serial: 2,
        position: 6,
    });
    partial.push(Bytes::from_static(b"gh"));
    history.broke(&names[0], partial);
    let Known::Partial(before) = history.resumed(&resumption(&names[0], &names[1], 1)) else {
        panic!("the octets before the checkpoint")
    };
    assert_eq!(before.length(), 4);
    history.received(&names[1]);
    for name in &names[..2] {
        assert_eq!(
            history.resumed(&resumption(name, &names[2], 1)),
            Known::Received
        );
    }
}

#[test]
fn the_beginning_is_always_known_and_a_checkpoint_is_not() {
    let mut history = History::new(2);
    let (old, new) = (activity(1, 1), activity(2, 1));
    assert_eq!(history.resumed(&resumption(&old, &new, 3)), Known::Unknown);
    let begins = history.resumed(&resumption(&old, &new, 0));
    assert_eq!(begins, Known::Partial(Partial::default()));
    history.forget(&new);
    for number in 1..=3 {
        history.received(&activity(9, number));
    }
    let oldest = resumption(&activity(9, 1), &new, 1);
    assert_eq!(history.resumed(&oldest), Known::Unknown);
}

/// A receiver answered a discard before it read the first octet of the transfer from another connection, and then took the transfer: the
/// message arrived twice.
#[test]
fn a_transfer_that_was_discarded_before_it_came_does_not_begin() {
    let mut history = History::new(10);
    let names = [activity(1, 1), activity(2, 1), activity(3, 1)];
    let asked = resumption(&names[0], &names[1], 0);
    assert_eq!(history.resumed(&asked), Known::Partial(Partial::default()));
    assert!(!history.begun(&names[0]), "while it is being discarded");
    assert!(history.begun(&names[1]));
    history.forget(&names[1]);
    assert!(!history.begun(&names[0]), "afterwards");
    // The sender did not hear that the transfer was discarded, and asks again.
    let again = resumption(&names[0], &names[2], 0);
    assert_eq!(history.resumed(&again), Known::Partial(Partial::default()));
    assert!(history.begun(&names[2]));
    let behind = resumption(&names[0], &activity(4, 1), 1);
    history.forget(&names[2]);
    assert_eq!(history.resumed(&behind), Known::Unknown);
    // The APDU under another name is another transfer.
    assert!(history.begun(&activity(1, 2)));
}

/// A peer that uses the name of a discarded transfer again, on the same association.
#[test]
fn a_transfer_may_begin_again_where_it_was_discarded() {
    let mut history = History::new(10);
    let name = activity(1, 1);
    assert!(history.begun(&name));
    history.forget(&name);
    assert!(history.begun(&name));
    history.received(&name);
    assert!(history.begun(&name));
}

#[test]
fn a_transfer_without_the_name_of_a_session_is_not_remembered() {
    let mut history = History::new(2);
    let nameless = Activity {
        session: None,
        ..activity(1, 1)
    };
    history.received(&nameless);
    assert_eq!(
        history.resumed(&resumption(&nameless, &activity(1, 2), 1)),
        Known::Unknown
    );
}
