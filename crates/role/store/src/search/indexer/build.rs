//! Builds segments: asks for the texts of several messages at a time, and adds the texts to a builder.

use std::panic::{AssertUnwindSafe, catch_unwind};

use vere_disk::log::Directory as LogDirectory;
use vere_imap::message::header_fields;
use vere_mime::header_len;
use vere_mime::wire::Texts;
use vere_search::{Builder, Document, SUMMARY_FIELDS};
use vere_store::{BodyReader, MailboxId, Message, StoreError, Uid, Unpacker};
use vere_units::LogId;

use crate::search::own_fields::OwnFields;
use crate::search::texts::{ALL, sent_in, sought};
use vere_parsing::{Decoders, Sought, are_enough};

/// Sources of the recipients' own fields, and of the messages' texts.
type With<'a> = (&'a dyn OwnFields, &'a Decoders);

/// Puts the first messages into a segment, as many as fit, and returns their number.
///
/// # Errors
/// When a message cannot be read, or no process to decode texts is available.
pub(super) fn build(
    mut builder: Builder,
    id: MailboxId,
    batch: &[Message],
    reader: &BodyReader<LogDirectory>,
    (own, decoders): With<'_>,
) -> Result<(usize, Builder), StoreError> {
    let with_own: Vec<_> = batch
        .iter()
        .filter(|message| message.own_fields)
        .map(|message| message.uid)
        .collect();
    let mut fields = match with_own.as_slice() {
        [] => Vec::new(),
        uids => own.own_fields(id, uids)?,
    }
    .into_iter();
    let mut taking = Taking::new(reader, decoders);
    let mut count = 0;
    for (place, message) in batch.iter().enumerate() {
        let own = match message.own_fields {
            true => fields.next().unwrap_or_default(),
            false => Vec::new(),
        };
        taking.gather(message, own, &builder)?;
        if taking.is_enough() || place + 1 == batch.len() {
            count += taking.put(&mut builder, |builder| !builder.is_full())?;
            if builder.is_full() {
                break;
            }
        }
    }
    Ok((count, builder))
}

/// Builds a segment of all these messages. Returns the segment, and the UIDs of messages that could not be decoded.
///
/// # Errors
/// As [`build`].
pub(in crate::search) fn build_all(
    log: LogId,
    id: MailboxId,
    messages: &[Message],
    reader: &BodyReader<LogDirectory>,
    (own, decoders): With<'_>,
) -> Result<(Option<Vec<u8>>, Vec<Uid>), StoreError> {
    let uids: Vec<_> = messages.iter().map(|message| message.uid).collect();
    let fields = own.own_fields(id, &uids)?;
    let mut builder = Builder::new(log, id);
    let mut taking = Taking::new(reader, decoders);
    let mut left = messages.iter().zip(fields).peekable();
    while let Some((message, own)) = left.next() {
        taking.gather(message, own, &builder)?;
        if taking.is_enough() || left.peek().is_none() {
            taking.put(&mut builder, |_| true)?;
        }
    }
    Ok((builder.finish(), taking.undecoded))
}

/// A message that waits to be put into a segment.
struct Gathered {
    message: Message,
    /// Day of the Date field.
    sent: Option<i64>,
    /// Header fields that message lists need.
    summary: Vec<u8>,
    /// Whether the shared content was read, and whether the copy has own fields. Each adds one request for texts, in
    /// this order.
    read: bool,
    own: bool,
}

/// Gathers messages, and asks for all their texts at once.
struct Taking<'a> {
    reader: &'a BodyReader<LogDirectory>,
    decoders: &'a Decoders,
    unpacker: Unpacker,
    gathered: Vec<Gathered>,
    sought: Vec<Sought>,
    /// Messages that could not be decoded.
    undecoded: Vec<Uid>,
}

impl<'a> Taking<'a> {
    fn new(reader: &'a BodyReader<LogDirectory>, decoders: &'a Decoders) -> Self {
        Self {
            reader,
            decoders,
            unpacker: Unpacker::default(),
            gathered: Vec::new(),
            sought: Vec::new(),
            undecoded: Vec::new(),
        }
    }

    /// Reads a message, unless the builder knows the message already.
    fn gather(
        &mut self,
        message: &Message,
        own: Vec<u8>,
        builder: &Builder,
    ) -> Result<(), StoreError> {
        let mut gathered = Gathered {
            message: *message,
            sent: None,
            summary: Vec::new(),
            read: !builder.knows(message.blob.0),
            own: !own.is_empty(),
        };
        if gathered.read {
            let read = sought(self.reader, message, Vec::new(), &ALL, &mut self.unpacker)?;
            gathered.sent = sent_in(&read.record, || Ok(read.octets.clone()), self.decoders)?;
            let header = read.octets.get(..header_len(&read.octets));
            gathered.summary = header_fields(header.unwrap_or_default(), &SUMMARY_FIELDS, true);
            self.sought.push(read);
        }
        if gathered.own {
            self.sought.push(Sought {
                body: message.blob.0,
                zones: 0,
                own,
                record: Vec::new(),
                octets: Vec::new(),
            });
        }
        self.gathered.push(gathered);
        Ok(())
    }

    fn is_enough(&self) -> bool {
        are_enough(&self.sought)
    }

    /// Puts gathered messages into a segment as long as `more` allows, and returns their number. The remaining
    /// messages are forgotten.
    fn put(
        &mut self,
        builder: &mut Builder,
        more: impl Fn(&Builder) -> bool,
    ) -> Result<usize, StoreError> {
        let sought = std::mem::take(&mut self.sought);
        let mut texts = self.decoders.texts(&sought)?.into_iter();
        let mut count = 0;
        for gathered in self.gathered.drain(..) {
            let mut decoded = true;
            let mut next = || {
                let texts = texts.next().flatten();
                decoded &= texts.is_some();
                texts.unwrap_or_default()
            };
            let shared = gathered.read.then(&mut next);
            let own = gathered.own.then(&mut next);
            if !decoded {
                self.undecoded.push(gathered.message.uid);
            }
            put_one(builder, gathered, shared, own);
            count += 1;
            if !more(builder) {
                break;
            }
        }
        Ok(count)
    }
}

/// Puts a message and its texts into a segment. A message that cannot be decoded has no texts, and is marked as
/// incomplete.
fn put_one(builder: &mut Builder, gathered: Gathered, shared: Option<Texts>, own: Option<Texts>) {
    let message = &gathered.message;
    let (uid, body) = (message.uid.get(), message.blob.0);
    if !builder.known(uid, body) {
        let sent = gathered.sent;
        builder.message(Document { uid, body, sent });
        builder.summary(gathered.summary);
        let texts = shared.unwrap_or_default();
        let put = || {
            texts
                .iter()
                .for_each(|(zone, text)| builder.text(zone, text))
        };
        if guarded(message, put).is_none() || !texts.complete {
            // The mark makes every search read the message itself.
            builder.and_more();
        }
    }
    if let Some(texts) = own {
        let put = || {
            texts
                .iter()
                .for_each(|(zone, text)| builder.own_text(zone, text))
        };
        if guarded(message, put).is_none() || !texts.complete {
            builder.and_more();
        }
    }
}

/// Adds the texts of a message. A panic would only make this message incomplete, while indexing continues with the
/// remaining messages.
fn guarded(message: &Message, work: impl FnOnce()) -> Option<()> {
    let done = catch_unwind(AssertUnwindSafe(work));
    if done.is_err() {
        let (uid, body) = (message.uid.get(), message.blob.0);
        tracing::error!(uid, body, "the texts of a message cannot be indexed");
    }
    done.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_cannot_be_cut_ends_nothing() {
        let message = Message {
            uid: vere_store::Uid::FIRST,
            mod_seq: vere_store::ModSeq(1),
            flags: vere_store::SystemFlags::default(),
            keywords: 0,
            internal_date: vere_store::InternalDate {
                seconds: 0,
                zone_minutes: 0,
            },
            size: 1,
            blob: vere_store::BlobId(64),
            thread: 0,
            own_fields: false,
        };
        assert_eq!(guarded(&message, || ()), Some(()));
        assert_eq!(guarded(&message, || panic!("as a fault does")), None);
    }
}
