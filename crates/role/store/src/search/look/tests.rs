//! Looking into messages whose decoding takes too long for a while.

use vere_imap::command::SearchKey;
use vere_imap::set::UidSet;
use vere_mime::Parsed;
use vere_store::{Prepared, Snapshot, SystemFlags, Uid};

use super::*;
use crate::decoding::{POISON, decoders, hanging};
use crate::filled::{self, deliver, inbox};
use crate::mail_store::MailStore;

/// Nobody has fields of their own.
struct NoOwnFields;

impl OwnFields for NoOwnFields {
    fn own_fields(
        &self,
        _: vere_store::MailboxId,
        uids: &[Uid],
    ) -> Result<Vec<Vec<u8>>, StoreError> {
        Ok(vec![Vec::new(); uids.len()])
    }
}

/// The mailbox with that message in it.
fn delivered(store: &mut MailStore, message: &[u8], record: &[u8]) -> Snapshot {
    let body = Prepared::new(message, record, &[]).unwrap();
    deliver(store, &body, SystemFlags::default(), 1);
    let mailbox = inbox(store);
    let snapshot = store.snapshot(mailbox).unwrap();
    snapshot.when(store.synced()).unwrap()
}

/// How many messages have something in their text, and how many have not.
fn found(
    store: &MailStore,
    snapshot: &Snapshot,
    with: (&Decoders, &Verdicts),
    text: &str,
) -> [u32; 2] {
    let with = (&NoOwnFields as &dyn OwnFields, with.0, with.1);
    let (recent, now) = (UidSet::new(), Timestamp::from_millis(1));
    let (snapshot, reader) = (snapshot.clone(), store.body_reader());
    let mut look = Look::new(snapshot, reader, Vec::new(), with, recent, now);
    let body = SearchKey::Body(text.to_owned());
    let opposite = SearchKey::Not(Box::new(body.clone()));
    [body, opposite].map(|key| look.all(&key).unwrap().uids.len())
}

/// What is found in octets as they are is no verdict: later the message may be decoded.
#[test]
fn what_octets_have_as_they_are_is_not_remembered() {
    let (_folder, mut store) = filled::store();
    let message = [
        b"Subject: ".as_slice(),
        POISON,
        b"\r\nContent-Transfer-Encoding: base64\r\n\r\naGVsbG8=\r\n",
    ];
    let message = message.concat();
    let snapshot = delivered(&mut store, &message, &Parsed::of(&message).encode());
    let verdicts = Verdicts::default();
    let late = (&hanging(), &verdicts);
    assert_eq!(found(&store, &snapshot, late, "aGVs"), [1, 0]);
    assert_eq!(found(&store, &snapshot, late, "hello"), [0, 0]);
    let honest = (&decoders(), &verdicts);
    assert_eq!(found(&store, &snapshot, honest, "aGVs"), [0, 1]);
    assert_eq!(found(&store, &snapshot, honest, "hello"), [1, 0]);
}

/// Of what stands there in ASCII it is known for certain what it has, even when nothing can be decoded.
#[test]
fn plain_text_is_looked_into_without_processes() {
    let (_folder, mut store) = filled::store();
    let message = [b"Subject: ".as_slice(), POISON, b"\r\n\r\nHello\r\n"].concat();
    let snapshot = delivered(&mut store, &message, &Parsed::of(&message).encode());
    let (decoders, verdicts) = (hanging(), Verdicts::default());
    let with = (&decoders, &verdicts);
    assert_eq!(found(&store, &snapshot, with, "hello"), [1, 0]);
    assert_eq!(found(&store, &snapshot, with, "other"), [0, 1]);
}

/// Whoever goes while messages are read and decoded for him has no more of them read.
#[test]
fn a_search_that_is_for_nobody_ends() {
    let (_folder, mut store) = filled::store();
    let snapshot = delivered(&mut store, b"Subject: x\r\n\r\nhello\r\n", &[]);
    let (reader, verdicts, decoders) = (store.body_reader(), Verdicts::default(), decoders());
    let with = (&NoOwnFields as &dyn OwnFields, &decoders, &verdicts);
    let (recent, now) = (UidSet::new(), Timestamp::from_millis(1));
    let (stop, waiting) = Stop::unless_waiting();
    let look = Look::new(snapshot, reader, Vec::new(), with, recent, now);
    let mut look = look.until(stop);
    let body = SearchKey::Body("hello".to_owned());
    assert_eq!(look.all(&body).unwrap().uids.len(), 1);
    drop(waiting);
    let which = Bits::all(1);
    let octets = |looked: Result<Looked, StoreError>| looked.map(|looked| looked.octets);
    octets(look.contents.look_at_days(&which, |_| true)).unwrap_err();
    let asked = Asked {
        own: false,
        wanted: &|_| BODY,
        question: Question::Zones(b"NOWHERE"),
    };
    octets(look.contents.look_into(&which, &asked)).unwrap_err();
    for key in [SearchKey::All, body] {
        look.all(&SearchKey::Not(Box::new(key))).unwrap_err();
    }
    assert_eq!(look.leaves().len(), 1);
}
