//! Whether the index says of messages what they say.

use vere_search::merge;
use vere_store::{MailboxId, Message, StoreError};

use super::indexer::build_all;
use super::{OwnFields, SharedIndex, own_fields};
use crate::store::keeper::MailStore;
use crate::store::parser::Decoders;
use crate::store::steps::at_once;

/// Fields of messages, read in the store's own thread.
struct Read(std::collections::HashMap<vere_store::Uid, Vec<u8>>);

impl OwnFields for Read {
    fn own_fields(
        &self,
        _: MailboxId,
        uids: &[vere_store::Uid],
    ) -> Result<Vec<Vec<u8>>, StoreError> {
        let field = |uid: &vere_store::Uid| self.0.get(uid).cloned().unwrap_or_default();
        Ok(uids.iter().map(field).collect())
    }
}

/// Makes every segment again of the messages that are still there, and compares. Gives how many
/// octets the index has, and a sentence for each segment that is another one.
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
    for mailbox in mailboxes {
        let id = MailboxId(mailbox);
        let snapshot = match store.snapshot(id) {
            Err(StoreError::NoMailbox) => continue,
            snapshot => at_once(store, snapshot?)?,
        };
        octets += index.lock().octets(mailbox).map_err(failed)?;
        for segment in index.segments(id) {
            let known = |document: &vere_search::Document| {
                let uid = vere_store::Uid::new(document.uid)?;
                let message = snapshot.find(uid)?;
                (message.blob.0 == document.body).then_some(*message)
            };
            let messages: Vec<Message> = segment.documents().iter().filter_map(known).collect();
            let uids: Vec<_> = messages.iter().map(|message| message.uid).collect();
            let fields = own_fields(store, id, &uids)?;
            let own = Read(uids.into_iter().zip(fields).collect());
            let log = index.lock().log();
            let with = (&own as &dyn OwnFields, decoders);
            let made = build_all(log, id, &messages, &store.body_reader(), with)?;
            let there = merge(&[&segment], |document| known(document).is_some());
            match there {
                Ok(there) if there == made => {}
                Ok(_) => findings.push(format!(
                    "mailbox {mailbox}: the search index is not that of its messages"
                )),
                Err(error) => findings.push(format!("mailbox {mailbox}: {error}")),
            }
        }
    }
    Ok((octets, findings))
}
