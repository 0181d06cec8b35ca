//! Fields of headers without the messages: what the index keeps of them ([`vere_search::Summaries`]).

use bytes::Bytes;
use vere_disk::log::{Directory as LogDirectory, DirectoryFile as LogFile};
use vere_imap::message::header_fields;
use vere_search::{SearchError, Segment, Summaries, is_summarized};
use vere_store::{BodyReader, Message, StoreError};

use super::search::Segments;

/// Octets that the summary of a message is taken for until it is read.
pub(crate) const SUMMARY_OCTETS: usize = 512;

/// Whether summaries have all of these fields.
pub(crate) fn has_all(fields: &[String]) -> bool {
    fields.iter().all(|name| is_summarized(name))
}

/// Reads fields of messages of one mailbox whose UIDs rise.
pub(crate) struct Fields<'a> {
    names: &'a [String],
    reader: &'a BodyReader<LogDirectory>,
    segments: &'a Segments,
    /// The segment that was read last.
    open: Option<(usize, Summaries<'a, LogFile>)>,
    /// A segment did not answer.
    pub(crate) doubt: bool,
    /// Messages that no segment knows.
    pub(crate) unknown: usize,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(
        names: &'a [String],
        reader: &'a BodyReader<LogDirectory>,
        segments: &'a Segments,
    ) -> Self {
        Self {
            names,
            reader,
            segments,
            open: None,
            doubt: false,
            unknown: 0,
        }
    }

    /// The fields of a message, others with them, and an empty line.
    ///
    /// # Errors
    /// When no segment knows it, and it cannot be read.
    pub(crate) fn of(&mut self, message: &Message) -> Result<Bytes, StoreError> {
        match self.kept(message) {
            Ok(Some(summary)) => return Ok(Bytes::copy_from_slice(summary)),
            Ok(None) => {}
            Err(_) => self.doubt = true,
        }
        let mut body = self.reader.open(message.blob)?;
        // The fields of the recipient's own are none of these.
        Ok(header_fields(body.header()?, self.names, true).into())
    }

    fn kept(&mut self, message: &Message) -> Result<Option<&[u8]>, SearchError> {
        let uid = message.uid.get();
        let ends_before = |segment: &std::sync::Arc<Segment<LogFile>>| {
            let last = segment.documents().last();
            last.is_none_or(|last| last.uid < uid)
        };
        let at = self.segments.partition_point(ends_before);
        let Some(segment) = self.segments.get(at) else {
            self.unknown += 1;
            return Ok(None);
        };
        let documents = segment.documents();
        let number = documents.binary_search_by_key(&uid, |document| document.uid);
        let known = |number: &usize| documents.get(*number).map(|known| known.body);
        let number = number
            .ok()
            .filter(|number| known(number) == Some(message.blob.0));
        let Some(number) = number else {
            self.unknown += 1;
            return Ok(None);
        };
        if self.open.as_ref().is_none_or(|(open, _)| *open != at) {
            self.open = Some((at, segment.summaries()?));
        }
        match &mut self.open {
            Some((_, summaries)) => summaries.get(number),
            None => Ok(None),
        }
    }
}
