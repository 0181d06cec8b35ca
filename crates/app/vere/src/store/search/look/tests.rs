//! Looking into messages whose decoding takes too long for a while.

use vere_imap::command::SearchKey;
use vere_imap::set::UidSet;
use vere_store::{Prepared, SystemFlags, Uid};

use super::*;
use crate::store::filled::{self, deliver, inbox};
use crate::store::keeper::MailStore;
use crate::store::parser::tests::{POISON, decoders, hanging};

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
fn delivered(store: &mut MailStore, message: &[u8]) -> vere_store::Snapshot {
    let body = Prepared::new(message, &[], &[]).unwrap();
    deliver(store, &body, SystemFlags::default(), 1);
    let mailbox = inbox(store);
    let snapshot = store.snapshot(mailbox).unwrap();
    snapshot.when(store.synced()).unwrap()
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
    let snapshot = delivered(&mut store, &message.concat());
    let (reader, verdicts) = (store.body_reader(), Verdicts::default());
    let found = |decoders: &Decoders, text: &str| {
        let with = (&NoOwnFields as &dyn OwnFields, decoders, &verdicts);
        let (recent, now) = (UidSet::new(), Timestamp::from_millis(1));
        let mut look = Look::new(
            snapshot.clone(),
            reader.clone(),
            Vec::new(),
            with,
            recent,
            now,
        );
        let body = SearchKey::Body(text.to_owned());
        let opposite = SearchKey::Not(Box::new(body.clone()));
        let found = [body, opposite].map(|key| look.all(&key).unwrap().uids.len());
        found.map(|uids| uids as usize)
    };
    let late = hanging();
    assert_eq!(found(&late, "aGVs"), [1, 0]);
    assert_eq!(found(&late, "hello"), [0, 0]);
    let decoders = decoders();
    assert_eq!(found(&decoders, "aGVs"), [0, 1]);
    assert_eq!(found(&decoders, "hello"), [1, 0]);
}

/// Whoever goes while messages are read and decoded for him has no more of them read.
#[test]
fn a_search_that_is_for_nobody_ends() {
    let (_folder, mut store) = filled::store();
    let snapshot = delivered(&mut store, b"Subject: x\r\n\r\nhello\r\n");
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
    octets(look.look_at_days(&which, |_| true)).unwrap_err();
    let asked = Asked {
        own: false,
        wanted: &|_| BODY,
        question: Question::Zones(b"NOWHERE"),
    };
    octets(look.look_into(&which, &asked)).unwrap_err();
    for key in [SearchKey::All, body] {
        look.all(&SearchKey::Not(Box::new(key))).unwrap_err();
    }
    assert_eq!(look.leaves().len(), 1);
}
