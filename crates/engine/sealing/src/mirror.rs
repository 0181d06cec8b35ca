//! Commits and pages for a further account: the mail of the lead with equal octets, and a subject that the body confirms.

use std::sync::Arc;

use bytes::Bytes;
use vere_units::Timestamp;

use crate::format::commit::Record;
use crate::format::{
    Encoding, FormatError, Head, Index, Keys, Kind, MailId, Subject, VolumeId, mail, open,
};

/// A commit or a mail of pages as the lead has given it.
#[derive(Debug)]
pub struct MirrorJob {
    /// The keys.
    pub keys: Arc<Keys>,
    /// The volume.
    pub volume: VolumeId,
    /// The mail.
    pub id: MailId,
    /// The parent that a commit must have, if any.
    pub parent: Option<MailId>,
    /// The encoding of the lead.
    pub from: Encoding,
    /// The encoding of the other account.
    pub to: Encoding,
    /// The body as given.
    pub body: Bytes,
    /// The date of the new mail.
    pub date: Timestamp,
}

impl MirrorJob {
    /// The mail for the other account. The whole mail is opened first: a damaged or forged one must not spread.
    ///
    /// # Errors
    ///
    /// A mail that the keys do not open, that is neither commit nor pages, or has another parent.
    pub fn run(self) -> Result<Bytes, FormatError> {
        let body = mail::unwrap(&self.body, self.from)?;
        let opened = open(&body, &self.keys, Some(self.id))?;
        if opened.head.volume != self.volume {
            return Err(FormatError::Form {
                what: "volume of the head",
                expected: "this volume",
            });
        }
        let (parent, generation) = match opened.head.kind {
            Kind::Commit => {
                let record = Record::decode(opened.last())?;
                (Some(record.parent), Some(record.generation))
            }
            Kind::Pages => {
                let index = Index::decode(opened.last())?;
                (None, index.entries.first().map(|entry| entry.offset))
            }
            kind => {
                return Err(FormatError::Differs {
                    what: "kind of the mail",
                    expected: Kind::Commit as u64,
                    found: kind as u64,
                });
            }
        };
        if let (Some(expected), Some(found)) = (self.parent, parent)
            && expected != found
        {
            return Err(FormatError::Mail { expected, found });
        }
        let subject = Subject::of(&opened.head, parent, generation);
        Ok(mail::wrap(&subject, self.date, self.to, &body).into())
    }
}

/// A commit of the mount in another encoding.
///
/// # Errors
///
/// If the mail is not one of the encoding.
pub fn recoded(
    mail: &[u8],
    (from, to): (Encoding, Encoding),
    (parent, generation): (MailId, u64),
    date: Timestamp,
) -> Result<Bytes, FormatError> {
    const END: &[u8] = b"\r\n\r\n";
    let end = mail.windows(END.len()).position(|octets| octets == END);
    let text = end.and_then(|end| mail.get(end.saturating_add(END.len())..));
    let body = mail::unwrap(text.unwrap_or_default(), from)?;
    let head = Head::decode(&body)?;
    let subject = Subject::of(&head, Some(parent), Some(generation));
    Ok(mail::wrap(&subject, date, to, &body).into())
}
