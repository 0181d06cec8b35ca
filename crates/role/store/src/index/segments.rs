//! Segments of a mailbox, and their documents beside the mailbox's messages.

use std::sync::Arc;

use vere_disk::log::DirectoryFile as LogFile;
use vere_search::{Document, Segment};
use vere_store::{Message, Snapshot, Uid};

/// The segments of a mailbox.
pub(crate) type Segments = Vec<Arc<Segment<LogFile>>>;

/// Pairs the documents of a segment with the mailbox's messages of the same UIDs, where such messages exist.
pub(crate) fn beside<'a>(
    segment: &'a Segment<LogFile>,
    snapshot: &'a Snapshot,
) -> impl Iterator<Item = (&'a Document, Option<(usize, &'a Message)>)> {
    let first = segment.documents().first();
    let first = first.and_then(|document| Uid::new(document.uid));
    let start = first.map_or(0, |uid| snapshot.below(uid));
    let mut messages = (start..).zip(snapshot.iter_from(start)).peekable();
    segment.documents().iter().map(move |document| {
        // UIDs rise in both sequences.
        let before = |(_, message): &(usize, &Message)| message.uid.get() < document.uid;
        while messages.next_if(before).is_some() {}
        let same = |(_, message): &(usize, &Message)| message.uid.get() == document.uid;
        (document, messages.peek().copied().filter(same))
    })
}
