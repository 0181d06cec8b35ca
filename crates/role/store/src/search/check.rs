//! Verifies the index against the messages.

use std::collections::HashSet;

use vere_disk::log::DirectoryFile as LogFile;
use vere_search::{Document, Segment, merge};
use vere_store::{MailboxId, Message, Snapshot, StoreError, Uid};

use super::indexer::build_all;
use super::own_fields::{OwnFields, own_fields};
use crate::index::SharedIndex;
use crate::mail_store::MailStore;
use crate::steps::at_once;
use vere_parsing::Decoders;

/// Recipients' own fields, read in the store's own thread.
struct Read(std::collections::HashMap<Uid, Vec<u8>>);

impl OwnFields for Read {
    fn own_fields(&self, _: MailboxId, uids: &[Uid]) -> Result<Vec<Vec<u8>>, StoreError> {
        let field = |uid: &Uid| self.0.get(uid).cloned().unwrap_or_default();
        Ok(uids.iter().map(field).collect())
    }
}

/// Builds every segment again from the messages that still exist, and compares. Returns the octets of the index, and
/// a sentence for each segment that differs.
///
/// # Errors
/// When the store or the index cannot be read.
pub(crate) fn check(
    store: &mut MailStore,
    index: &SharedIndex,
    decoders: &Decoders,
) -> Result<(u64, Vec<String>), StoreError> {
    let failed = |error: std::io::Error| StoreError::Failed(error.to_string());
    let (mut octets, mut findings) = (0, Vec::new());
    let mailboxes = index.lock().mailboxes();
    for id in mailboxes {
        let snapshot = match store.snapshot(id) {
            Err(StoreError::NoMailbox) => continue,
            snapshot => at_once(store, snapshot?)?,
        };
        octets += index.lock().octets(id).map_err(failed)?;
        for segment in index.segments(id) {
            let whole = is_right(store, &segment, &snapshot, decoders)?;
            findings.extend(whole.err().map(|why| format!("mailbox {id}: {why}")));
        }
    }
    Ok((octets, findings))
}

/// Verifies a segment by building it again. Messages that could not be decoded, then or now, are left out, as are
/// messages with too much text: the segment claims nothing about their content.
///
/// # Errors
/// When the store cannot be read.
fn is_right(
    store: &MailStore,
    segment: &Segment<LogFile>,
    snapshot: &Snapshot,
    decoders: &Decoders,
) -> Result<Result<(), String>, StoreError> {
    let id = snapshot.mailbox();
    let unknown = match segment.unknown() {
        Ok(unknown) => unknown,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let documents = segment.documents().iter().enumerate();
    let unknown = documents.filter(|(at, _)| unknown.has(*at));
    let mut left_out: HashSet<u32> = unknown.map(|(_, document)| document.uid).collect();
    let known = |document: &Document, left_out: &HashSet<u32>| {
        let message = snapshot.find(Uid::new(document.uid)?)?;
        let same = message.blob.0 == document.body && !left_out.contains(&document.uid);
        same.then_some(*message)
    };
    let made = loop {
        let documents = segment.documents().iter();
        let messages: Vec<Message> = documents
            .filter_map(|document| known(document, &left_out))
            .collect();
        let uids: Vec<_> = messages.iter().map(|message| message.uid).collect();
        let fields = own_fields(store, id, &uids)?;
        let own = Read(uids.into_iter().zip(fields).collect());
        let with = (&own as &dyn OwnFields, decoders);
        let log = store.log_id();
        let (made, undecoded) = build_all(log, id, &messages, &store.body_reader(), with)?;
        if undecoded.is_empty() {
            break made;
        }
        left_out.extend(undecoded.into_iter().map(Uid::get));
    };
    let there = merge(&[segment], |document| known(document, &left_out).is_some());
    Ok(match there {
        Ok(there) if there == made => Ok(()),
        Ok(_) => Err("the search index is not that of its messages".to_owned()),
        Err(error) => Err(error.to_string()),
    })
}
