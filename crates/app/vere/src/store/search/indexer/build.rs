//! Segments of messages: the texts of some at a time are asked for, and put in.

use std::panic::{AssertUnwindSafe, catch_unwind};

use vere_disk::log::Directory as LogDirectory;
use vere_imap::message::header_fields;
use vere_mime::header_len;
use vere_mime::wire::Texts;
use vere_search::{Builder, Document, SUMMARY_FIELDS};
use vere_store::{BodyReader, MailboxId, Message, StoreError, Uid, Unpacker};

use crate::store::parser::{Decoders, Sought, are_enough};
use crate::store::search::OwnFields;
use crate::store::search::texts::{ALL, sent_in, sought};

/// What is needed beside the messages: their own fields, and what their texts are.
type With<'a> = (&'a dyn OwnFields, &'a Decoders);

/// Puts the first of these messages into a segment, as many as go in, and says how many.
///
/// # Errors
/// When a message cannot be read, or there is no process that decodes texts.
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

/// The segment of these messages, all of them, and those that could not be decoded.
///
/// # Errors
/// As [`build`].
pub(in crate::store::search) fn build_all(
    log: u64,
    id: MailboxId,
    messages: &[Message],
    reader: &BodyReader<LogDirectory>,
    (own, decoders): With<'_>,
) -> Result<(Option<Vec<u8>>, Vec<Uid>), StoreError> {
    let uids: Vec<_> = messages.iter().map(|message| message.uid).collect();
    let fields = own.own_fields(id, &uids)?;
    let mut builder = Builder::new(log, id.0);
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

/// A message that is to be put into a segment.
struct Gathered {
    message: Message,
    /// The day that its Date field names.
    sent: Option<i64>,
    /// The fields of its header that lists are made of.
    summary: Vec<u8>,
    /// Whether what all its copies share was read, and whether it has fields of its own: both are asked for,
    /// one behind the other.
    read: bool,
    own: bool,
}

/// Gathers messages, and asks for the texts of all at once.
struct Taking<'a> {
    reader: &'a BodyReader<LogDirectory>,
    decoders: &'a Decoders,
    unpacker: Unpacker,
    gathered: Vec<Gathered>,
    sought: Vec<Sought>,
    /// Messages without texts.
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

    /// Reads a message, unless the builder knows it.
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

    /// Puts what was gathered into a segment, as long as more is wanted, and says of how many messages; the
    /// others are forgotten.
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

/// Puts a message in, with the texts that were asked for; one that cannot be decoded has none, and more.
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
            // It is looked into when something is looked for.
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

/// Cuts the texts of a message. Were there a fault in that, nothing would come of this message, and
/// everything would go on with the others.
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
