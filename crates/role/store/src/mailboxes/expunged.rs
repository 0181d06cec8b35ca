//! Expunged messages that are kept, page by page.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;
use vere_control::{Expunged, ExpungedAfter};
use vere_disk::log::Directory as LogDirectory;
use vere_mime::{AddressesView, EnvelopeView};
use vere_ports::directory::AccountName;
use vere_store::{
    BodyReader, Committed, KeptAt, KeptMailbox, KeptPiece, MailboxName, Message, StoreError,
    SystemFlags, Uid,
};

use super::{MailboxError, known};
use crate::keeper::Keeper;
use crate::mail_store::MailStore;
use crate::reception::Reception;
use crate::steps::at_once;

/// Messages of a page, unless the request says less. The messages of one change stay together, up to 255 more.
const PAGE: u32 = 500;
/// Messages inspected for a page: the page ends then, even if not full.
const LOOKED_AT: usize = 2_000;
/// UIDs and Message-IDs in a request.
const UIDS_MAX: usize = 1_000;
const MESSAGE_IDS_MAX: usize = 100;
/// Octets of a field that are shown.
const FIELD_OCTETS_MAX: usize = 1_024;

/// A kept expunged message. Header fields are as in the message, neither decoded nor cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ExpungedRow {
    pub(crate) mailbox: String,
    /// Whether the mailbox was deleted.
    pub(crate) mailbox_deleted: bool,
    pub(crate) uid: u32,
    pub(crate) size: u32,
    /// When it arrived, in seconds since 1970.
    pub(crate) arrived: i64,
    /// When it was expunged, in milliseconds since 1970.
    pub(crate) expunged: u64,
    pub(crate) flags: Vec<String>,
    pub(crate) from: Option<String>,
    pub(crate) subject: Option<String>,
    pub(crate) message_id: Option<String>,
}

/// Some expunged messages.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ExpungedPage {
    pub(crate) messages: Vec<ExpungedRow>,
    /// Where the next page begins; none on the last page.
    pub(crate) after: Option<ExpungedAfter>,
}

/// A message with its place.
#[derive(Debug, Clone)]
pub(super) struct Chosen {
    pub(super) mailbox: KeptMailbox,
    pub(super) at: KeptAt,
    pub(super) message: Message,
    row: ExpungedRow,
}

/// Messages with their places, and where the next page begins.
pub(super) type Choice = (Vec<Chosen>, Option<ExpungedAfter>);

/// Returns a page of expunged messages.
///
/// # Errors
/// When there is no such account or mailbox, or the store cannot be read.
pub(crate) async fn page(
    reception: &Reception,
    wanted: Expunged,
) -> Result<ExpungedPage, MailboxError> {
    let account = known(reception, &wanted.account)?;
    let limit = wanted.limit.unwrap_or(PAGE).clamp(1, PAGE);
    let limit = (limit as usize, true);
    let (chosen, after) = choose(reception.keeper(), &account, &wanted, limit).await?;
    Ok(ExpungedPage {
        messages: chosen.into_iter().map(|chosen| chosen.row).collect(),
        after,
    })
}

/// Finds the messages of a page, at most `limit` and those of the last change; with `wants_header` or a Message-ID to look
/// for, their headers are read.
///
/// # Errors
/// When there is no such mailbox, or the store cannot be read.
pub(super) async fn choose(
    keeper: &Keeper,
    account: &AccountName,
    wanted: &Expunged,
    (limit, wants_header): (usize, bool),
) -> Result<Choice, MailboxError> {
    if wanted.uids.len() > UIDS_MAX || wanted.message_ids.len() > MESSAGE_IDS_MAX {
        return Err(MailboxError::TooMany);
    }
    let keepers = keepers(keeper, account, wanted).await?;
    let (mut chosen, mut after, mut looked_at) = (Vec::new(), wanted.after, 0);
    while chosen.len() < limit && looked_at < LOOKED_AT {
        let (name, of) = (account.clone(), keepers.clone());
        let next = move |store: &mut MailStore| next_piece(store, &name, &of, after);
        let Some((mailbox, piece, reader)) = keeper.ask(next).await? else {
            return Ok((chosen, None));
        };
        looked_at += piece.messages.len();
        after = Some(ExpungedAfter {
            mailbox: mailbox.id.0,
            position: piece.at.position,
            first: piece.at.first.get(),
        });
        let query = wanted.clone();
        let reads = wants_header || !wanted.message_ids.is_empty();
        let read = spawn_blocking(move || {
            let reader = reads.then_some(&reader);
            matching(&query, &mailbox, &piece, reader)
        });
        let found = read
            .await
            .map_err(|error| StoreError::Failed(error.to_string()))?;
        chosen.extend(found);
    }
    Ok((chosen, after))
}

/// The mailboxes with kept messages that a request means, in a stable order.
async fn keepers(
    keeper: &Keeper,
    account: &AccountName,
    wanted: &Expunged,
) -> Result<Vec<KeptMailbox>, MailboxError> {
    let name = wanted.mailbox.as_deref().map(named).transpose()?;
    let account = account.clone();
    let asked = keeper.ask(move |store| {
        let kept = store.kept_mailboxes(&account)?;
        let list = store.list(&account)?;
        let listed = at_once(store, list)?;
        Ok(kept.map(|kept| (kept, listed)))
    });
    let (mut kept, listed) = asked.await?;
    if let Some(name) = name {
        kept.retain(|kept| kept.name == name);
        let exists = |entry: &vere_store::ListEntry| entry.name == name && entry.mailbox.is_some();
        // On later pages everything may be back or gone.
        let is_first = wanted.after.is_none();
        if is_first && kept.is_empty() && !listed.iter().any(exists) {
            return Err(MailboxError::NoMailbox(name.to_string()));
        }
    }
    kept.sort_by_key(|kept| kept.id);
    Ok(kept)
}

/// # Errors
/// When the text is no name of a mailbox.
pub(super) fn named(text: &str) -> Result<MailboxName, MailboxError> {
    MailboxName::new(text).map_err(|_| MailboxError::BadName(text.to_owned()))
}

type Found = (KeptMailbox, KeptPiece, BodyReader<LogDirectory>);

/// The next kept messages behind a place.
fn next_piece(
    store: &mut MailStore,
    account: &AccountName,
    keepers: &[KeptMailbox],
    after: Option<ExpungedAfter>,
) -> Result<Committed<Option<Found>>, StoreError> {
    for keeper in keepers {
        if after.is_some_and(|after| keeper.id.0 < after.mailbox) {
            continue;
        }
        let here = after.filter(|after| after.mailbox == keeper.id.0);
        let piece = match store.kept_after(keeper.id, here.as_ref().and_then(place)) {
            // It went meanwhile.
            Err(StoreError::NoMailbox) => continue,
            piece => piece?,
        };
        if at_once(store, piece.clone())?.is_some() {
            let reader = store.body_reader();
            let found =
                |piece: Option<KeptPiece>| piece.map(|piece| (keeper.clone(), piece, reader));
            return Ok(piece.map(found));
        }
    }
    Ok(store.kept_mailboxes(account)?.map(|_| None))
}

fn place(after: &ExpungedAfter) -> Option<KeptAt> {
    Some(KeptAt {
        position: after.position,
        first: Uid::new(after.first)?,
    })
}

/// Those messages of a piece that a request means.
fn matching(
    wanted: &Expunged,
    mailbox: &KeptMailbox,
    piece: &KeptPiece,
    reader: Option<&BodyReader<LogDirectory>>,
) -> Vec<Chosen> {
    let since = wanted.since.unwrap_or(0);
    if piece.expunged.as_millis() < since {
        return Vec::new();
    }
    let uids: BTreeSet<u32> = wanted.uids.iter().copied().collect();
    let is_meant = |message: &&Message| uids.is_empty() || uids.contains(&message.uid.get());
    let rows = piece.messages.iter().filter(is_meant).map(|message| {
        let row = row(mailbox, piece, message, reader);
        (message, row)
    });
    let has_id = |row: &ExpungedRow| {
        let id = row.message_id.as_deref().map(bare);
        wanted.message_ids.is_empty()
            || wanted
                .message_ids
                .iter()
                .any(|wanted| Some(bare(wanted)) == id)
    };
    let chosen = rows.filter(|(_, row)| has_id(row));
    let chosen = chosen.map(|(message, row)| Chosen {
        mailbox: mailbox.clone(),
        at: piece.at,
        message: *message,
        row,
    });
    chosen.collect()
}

/// A Message-ID without its angle brackets.
fn bare(id: &str) -> &str {
    id.trim().trim_start_matches('<').trim_end_matches('>')
}

fn row(
    mailbox: &KeptMailbox,
    piece: &KeptPiece,
    message: &Message,
    reader: Option<&BodyReader<LogDirectory>>,
) -> ExpungedRow {
    let system = SystemFlags::NAMED.iter();
    let system = system.filter(|(flag, _)| message.flags.contains(*flag));
    let keywords = piece.keywords.iter().enumerate();
    let keywords = keywords.filter(|(bit, _)| message.keywords >> bit & 1 == 1);
    let mut row = ExpungedRow {
        mailbox: mailbox.name.to_string(),
        mailbox_deleted: mailbox.deleted.is_some(),
        uid: message.uid.get(),
        size: message.size,
        arrived: message.internal_date.seconds,
        expunged: piece.expunged.as_millis(),
        flags: system
            .map(|(_, name)| (*name).to_owned())
            .chain(keywords.map(|(_, keyword)| keyword.as_str().to_owned()))
            .collect(),
        from: None,
        subject: None,
        message_id: None,
    };
    // A message that cannot be read is listed without the fields of its header.
    if let Some(reader) = reader
        && let Ok(mut body) = reader.open_parsed(message.blob, Vec::new())
        && let Ok(found) = body.parsed()
        && let Ok(envelope) = EnvelopeView::read(found)
    {
        let [from, ..] = &envelope.lists;
        row.from = sender(from);
        row.subject = envelope.subject.map(text);
        row.message_id = envelope.message_id.map(text);
    }
    row
}

/// The first address of a list.
fn sender(list: &AddressesView<'_>) -> Option<String> {
    let address = list.clone().find(|each| each.host.is_some())?;
    let (mailbox, host) = (address.mailbox?, address.host?);
    Some(format!("{}@{}", text(mailbox), text(host)))
}

fn text(octets: &[u8]) -> String {
    let start = octets.get(..FIELD_OCTETS_MAX).unwrap_or(octets);
    String::from_utf8_lossy(start).trim().to_owned()
}
