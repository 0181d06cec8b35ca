//! The texts of one message, read from the log.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use vere_disk::log::Directory as LogDirectory;
use vere_imap::message::header_fields;
use vere_mime::{Parsed, Part, Searched, Zone};
use vere_search::{Builder, Document, SUMMARY_FIELDS};
use vere_store::{BodyReader, Message, StoreError, Unpacker};

/// Zones that are wanted, by their number.
pub(super) type Zones = [bool; Zone::ALL.len()];

/// A message as far as it was read.
pub(super) struct Texts {
    own: Vec<u8>,
    octets: Vec<u8>,
    parts: Vec<Part>,
    sent: Option<i64>,
}

impl Texts {
    /// Reads what of a message is needed for some zones: its header alone where that does.
    ///
    /// # Errors
    /// When it is damaged or gone.
    pub(super) fn read(
        reader: &BodyReader<LogDirectory>,
        message: &Message,
        own: Vec<u8>,
        zones: &Zones,
        unpacker: &mut Unpacker,
    ) -> Result<Self, StoreError> {
        let mut body = reader.open(message.blob)?;
        let parsed = Parsed::decode(body.parsed()?).ok();
        let fields_within =
            |parsed: &Parsed| zones[Zone::Header as usize] && parsed.parts.len() > 1;
        let header_alone = |parsed: &Parsed| !zones[Zone::Body as usize] && !fields_within(parsed);
        let (octets, parsed) = match parsed {
            Some(parsed) if header_alone(&parsed) => (body.header()?.to_vec(), parsed),
            Some(parsed) => (body.message_with(unpacker)?, parsed),
            None => {
                // Written by another version.
                let octets = body.message_with(unpacker)?;
                let parsed = Parsed::of(&octets);
                (octets, parsed)
            }
        };
        let sent = parsed.envelope().and_then(|envelope| envelope.sent);
        Ok(Self {
            own,
            octets,
            sent: sent.map(|sent| sent.day),
            parts: parsed.parts,
        })
    }

    /// Octets that were read of the message.
    pub(super) fn octets(&self) -> usize {
        self.octets.len()
    }

    /// The day that its Date field names.
    pub(super) fn sent(&self) -> Option<i64> {
        self.sent
    }

    fn searched(&self) -> Searched<'_> {
        Searched {
            own: &self.own,
            message: &self.octets,
            parts: &self.parts,
        }
    }

    /// Whether a text of the zones has something that `holds` finds.
    pub(super) fn any(&self, zones: &Zones, holds: impl Fn(&[u8]) -> bool) -> bool {
        let mut each = |_: Zone, text: &str| match holds(text.as_bytes()) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let wanted = |zone: Zone| zones[zone as usize];
        self.searched().texts(wanted, &mut each).is_break()
    }

    /// Whether a field of a name has something that `holds` finds.
    pub(super) fn any_field(&self, name: &str, holds: impl Fn(&[u8]) -> bool) -> bool {
        self.searched()
            .field(name)
            .any(|value| holds(value.as_bytes()))
    }

    /// Puts all texts into a segment that is being made, but the own ones of the mailbox's copy.
    fn index(&self, message: &Message, builder: &mut Builder) {
        builder.message(Document {
            uid: message.uid.get(),
            body: message.blob.0,
            sent: self.sent,
        });
        let header = &self.octets[..vere_mime::header_len(&self.octets)];
        builder.summary(header_fields(header, &SUMMARY_FIELDS, true));
        let mut each = |zone: Zone, text: &str| {
            builder.text(zone, text);
            ControlFlow::Continue(())
        };
        let all = guarded(message, || self.searched().texts(|_| true, &mut each));
        if all.is_none() {
            // It is looked into when something is looked for.
            builder.and_more();
        }
    }
}

/// Puts a message with the fields of its mailbox's copy into a segment that is being made. It is read when
/// the builder does not know it.
///
/// # Errors
/// As [`Texts::read`].
pub(super) fn index(
    reader: &BodyReader<LogDirectory>,
    message: &Message,
    own: &[u8],
    builder: &mut Builder,
    unpacker: &mut Unpacker,
) -> Result<(), StoreError> {
    if !builder.known(message.uid.get(), message.blob.0) {
        let all: Zones = [true; Zone::ALL.len()];
        Texts::read(reader, message, Vec::new(), &all, unpacker)?.index(message, builder);
    }
    let alone = Searched {
        own,
        message: &[],
        parts: &[],
    };
    let mut each = |zone: Zone, text: &str| {
        builder.own_text(zone, text);
        ControlFlow::Continue(())
    };
    if guarded(message, || alone.texts(|_| true, &mut each)).is_none() {
        builder.and_more();
    }
    Ok(())
}

/// Does something with the texts of a message. Whoever wrote it may have found a fault in what decodes
/// charsets: then nothing comes of this message, and everything goes on with the others.
pub(super) fn guarded<T>(message: &Message, work: impl FnOnce() -> T) -> Option<T> {
    let done = catch_unwind(AssertUnwindSafe(work));
    if done.is_err() {
        let (uid, body) = (message.uid.get(), message.blob.0);
        tracing::error!(uid, body, "the texts of a message cannot be decoded");
    }
    done.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_cannot_be_decoded_ends_nothing() {
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
        assert_eq!(guarded(&message, || 7), Some(7));
        let none: Option<()> = guarded(&message, || panic!("as a decoder may"));
        assert_eq!(none, None);
    }
}
