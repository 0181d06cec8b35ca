//! Verifies the index against the messages.

use std::collections::HashSet;

use vere_disk::log::{Directory as LogDirectory, DirectoryFile as LogFile};
use vere_search::{Document, Segment, merge};
use vere_store::{BodyReader, MailboxId, Message, Snapshot, StoreError, Uid};

use super::indexer::build_all;
use super::own_fields::{Asking, OwnFields, own_fields};
use crate::index::SharedIndex;
use crate::keeper::Keeper;
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
        let reader = store.body_reader();
        let fields = |uids: &[Uid]| own_fields(store, id, uids);
        let mailbox = (&snapshot, &reader, &fields as &Fields<'_>);
        findings.extend(mailbox_findings(index, mailbox, decoders)?);
    }
    Ok((octets, findings))
}

/// As [`check`], of a store that serves clients; `goes_on` is asked before each mailbox.
///
/// # Errors
/// When the store or the index cannot be read.
pub(crate) fn check_running(
    keeper: &Keeper,
    goes_on: &dyn Fn() -> bool,
) -> Result<(u64, Vec<String>), StoreError> {
    let index = keeper.index();
    let (mut octets, mut findings) = (0, Vec::new());
    let mailboxes = index.lock().mailboxes();
    let asking = Asking(keeper.clone());
    for id in mailboxes {
        if !goes_on() {
            break;
        }
        let asked = keeper.ask_blocking(move |store| {
            let reader = store.body_reader();
            Ok(store.snapshot(id)?.map(|snapshot| (snapshot, reader)))
        });
        let (snapshot, reader) = match asked {
            Err(StoreError::NoMailbox) => continue,
            asked => asked?,
        };
        // A mailbox that is indexed again meanwhile has no octets to be counted for a moment.
        octets += index.lock().octets(id).unwrap_or_default();
        let fields = |uids: &[Uid]| asking.own_fields(id, uids);
        let mailbox = (&snapshot, &reader, &fields as &Fields<'_>);
        match mailbox_findings(index, mailbox, &keeper.processes().indexing) {
            // A message that was expunged since the snapshot has no fields any more.
            Err(StoreError::NoMailbox | StoreError::Gone) => {}
            found => findings.extend(found?),
        }
    }
    Ok((octets, findings))
}

/// Reads the recipients' own fields of messages.
type Fields<'a> = dyn Fn(&[Uid]) -> Result<Vec<Vec<u8>>, StoreError> + 'a;

/// A mailbox, the bodies of its messages, and their fields.
type Mailbox<'a> = (&'a Snapshot, &'a BodyReader<LogDirectory>, &'a Fields<'a>);

fn mailbox_findings(
    index: &SharedIndex,
    mailbox: Mailbox<'_>,
    decoders: &Decoders,
) -> Result<Vec<String>, StoreError> {
    let id = mailbox.0.mailbox();
    let mut findings = Vec::new();
    for segment in index.segments(id) {
        let whole = is_right((index, &segment), mailbox, decoders)?;
        findings.extend(whole.err().map(|why| format!("mailbox {id}: {why}")));
    }
    Ok(findings)
}

/// Verifies a segment by building it again. Messages that could not be decoded, then or now, are left out, as are
/// messages with too much text: the segment claims nothing about their content.
///
/// # Errors
/// When the store cannot be read.
fn is_right(
    (index, segment): (&SharedIndex, &Segment<LogFile>),
    (snapshot, reader, fields): Mailbox<'_>,
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
        let fields = fields(&uids)?;
        let own = Read(uids.into_iter().zip(fields).collect());
        let with = (&own as &dyn OwnFields, decoders);
        let log = index.lock().log();
        let (made, undecoded) = build_all(log, id, &messages, reader, with)?;
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
