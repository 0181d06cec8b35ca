//! Making a segment of messages.

use std::sync::Arc;
use vere_units::{LogId, MailboxId};

use vere_mime::Zone;

use crate::crossings;
use crate::document::Document;
use crate::format::Origin;
use crate::gist::{Gist, Shelf, signatures};
use crate::summary::SummaryWriter;
use crate::words::Words;
use crate::write::{ZoneWriter, segment};
use crate::{BUILD_DOCUMENTS_MAX, BUILD_OCTETS_MAX};

/// Takes the texts of messages and makes a segment of them.
#[derive(Debug)]
pub struct Builder {
    owner: Origin,
    documents: Vec<Document>,
    messages: Vec<Taken>,
    summaries: SummaryWriter,
    shelf: Shelf,
    /// The current message.
    current: Option<Current>,
    octets: usize,
}

/// The data taken from a message: the part shared by all mailboxes, and the part of the mailbox's own
/// copy.
#[derive(Debug)]
struct Taken {
    shared: Arc<Gist>,
    own: Option<Gist>,
}

/// The current message.
#[derive(Debug)]
struct Current {
    document: Document,
    shared: Source,
    own: Option<Gist>,
    /// Whether the message is left out.
    left_out: bool,
}

/// The source of the part shared by all mailboxes.
#[derive(Debug)]
enum Source {
    Known(Arc<Gist>),
    Texts(Gist),
}

impl Builder {
    /// For messages of a mailbox of the store with this log.
    #[must_use]
    pub fn new(log: LogId, mailbox: MailboxId) -> Self {
        Self::with(log, mailbox, Shelf::default())
    }

    /// Makes a builder with the gists of earlier messages; [`Builder::finish_with`] returns the shelf.
    #[must_use]
    pub fn with(log: LogId, mailbox: MailboxId, mut shelf: Shelf) -> Self {
        shelf.tidy();
        Self {
            owner: Origin { log, mailbox },
            documents: Vec::new(),
            messages: Vec::new(),
            summaries: SummaryWriter::default(),
            shelf,
            current: None,
            octets: 0,
        }
    }

    /// Begins a message; a UID that does not rise leaves the message out, with all its texts.
    pub fn message(&mut self, document: Document) {
        let gist = Gist::new(document.sent, &mut self.shelf.words);
        self.begin(document, Source::Texts(gist));
    }

    /// Whether the texts of a message that all mailboxes share are known.
    #[must_use]
    pub fn knows(&self, body: u64) -> bool {
        self.shelf.get(body).is_some()
    }

    /// Begins a message whose shared texts are known from an earlier mailbox; false when the texts are
    /// unknown.
    pub fn known(&mut self, uid: u32, body: u64) -> bool {
        let Some(gist) = self.shelf.get(body) else {
            return false;
        };
        let sent = gist.sent;
        self.begin(Document { uid, body, sent }, Source::Known(gist));
        true
    }

    fn begin(&mut self, document: Document, shared: Source) {
        self.end();
        let last = self.documents.last();
        let rises = last.is_none_or(|last| last.uid < document.uid);
        debug_assert!(rises, "UIDs rise");
        self.current = Some(Current {
            document,
            shared,
            own: None,
            left_out: !rises,
        });
    }

    /// Adds a text of the current message, in the form used for comparison.
    pub fn text(&mut self, zone: Zone, text: &str) {
        if let Some(current) = &mut self.current
            && let Source::Texts(gist) = &mut current.shared
        {
            gist.text(zone, text, &mut self.shelf.words);
        }
    }

    /// Adds a text found only in this mailbox's copy of the message.
    pub fn own_text(&mut self, zone: Zone, text: &str) {
        if let Some(current) = &mut self.current {
            let words = &mut self.shelf.words;
            let own = current.own.get_or_insert_with(|| Gist::new(None, words));
            own.text(zone, text, &mut self.shelf.words);
        }
    }

    /// Marks the current message as having further or other texts: the message may contain any text.
    pub fn and_more(&mut self) {
        let words = &mut self.shelf.words;
        match &mut self.current {
            Some(Current {
                shared: Source::Texts(gist),
                ..
            }) => gist.and_more(),
            Some(Current { own, .. }) => {
                own.get_or_insert_with(|| Gist::new(None, words)).and_more();
            }
            None => {}
        }
    }

    /// Sets the summary of the current message: the fields of [`crate::SUMMARY_FIELDS`] as written, in
    /// order, and any octets behind.
    pub fn summary(&mut self, octets: Vec<u8>) {
        if let Some(current) = &mut self.current
            && let Source::Texts(gist) = &mut current.shared
        {
            gist.octets = gist.octets.saturating_add(octets.len());
            gist.summary = Some(octets);
        }
    }

    fn end(&mut self) {
        let Some(current) = self.current.take().filter(|current| !current.left_out) else {
            return;
        };
        let shared = match current.shared {
            Source::Known(gist) => gist,
            Source::Texts(mut gist) => {
                gist.end(&mut self.shelf.words);
                let gist = Arc::new(gist);
                self.shelf.put(current.document.body, &gist);
                gist
            }
        };
        let mut own = current.own;
        if let Some(own) = &mut own {
            own.end(&mut self.shelf.words);
        }
        self.summaries.put(shared.summary.as_deref());
        self.octets += shared.octets + own.as_ref().map_or(0, |own| own.octets);
        self.documents.push(current.document);
        self.messages.push(Taken { shared, own });
    }

    #[cfg(test)]
    pub(crate) fn shelf(&self) -> &Shelf {
        &self.shelf
    }

    /// Whether no more messages should come.
    #[must_use]
    pub fn is_full(&self) -> bool {
        let current = match self.current.as_ref().map(|current| &current.shared) {
            Some(Source::Texts(gist)) => gist.octets,
            Some(Source::Known(gist)) => gist.octets,
            None => 0,
        };
        let count = self.documents.len() + usize::from(self.current.is_some());
        self.octets + current >= BUILD_OCTETS_MAX || count >= BUILD_DOCUMENTS_MAX
    }

    /// The segment; `None` without messages.
    #[must_use]
    pub fn finish(self) -> Option<Vec<u8>> {
        self.finish_with().0
    }

    /// The segment, and the shelf of gists.
    #[must_use]
    pub fn finish_with(mut self) -> (Option<Vec<u8>>, Shelf) {
        self.end();
        if self.documents.is_empty() {
            return (None, self.shelf);
        }
        let mut gathering = Gathering::new(&self.shelf.words);
        let zones = Zone::ALL
            .iter()
            .map(|zone| gathering.zone(&self.messages, *zone))
            .collect();
        let octets = segment(self.owner, &self.documents, zones, self.summaries);
        (Some(octets), self.shelf)
    }
}

impl Taken {
    /// The numbers of the message's runs in a zone, with repetitions.
    fn runs(&self, zone: Zone) -> impl Iterator<Item = u32> + '_ {
        let gists = [Some(&*self.shared), self.own.as_ref()];
        let gists = gists.into_iter().flatten();
        let zones = gists.filter_map(move |gist| gist.zone(zone));
        zones.flat_map(|gist| gist.runs.iter().copied())
    }

    fn put_signatures(&self, ordinal: u32, zone: Zone, writer: &mut ZoneWriter) {
        let shared = self.shared.zone(zone);
        let own = self.own.as_ref().and_then(|own| own.zone(zone));
        let made = shared
            .zip(own)
            .map(|(shared, own)| signatures(shared, own, zone));
        let (long, crossed) = match (&made, shared.or(own)) {
            (Some((long, crossed)), _) => (long.as_deref(), crossed.as_slice()),
            (None, Some(only)) => (only.long.as_deref(), only.crossed.as_slice()),
            (None, None) => (None, &[][..]),
        };
        if let Some(long) = long {
            writer.long(ordinal, long);
        }
        if crossings::are_kept(zone) {
            writer.crossed(crossed);
        }
    }
}

/// No place.
const NONE: u32 = u32::MAX;

/// A run of a zone, and where its messages are in a list of all.
#[derive(Debug)]
struct Gathered {
    number: u32,
    /// The first octets of the run, which usually suffice for the comparison.
    first: u64,
    count: u32,
    /// The last message recorded.
    last: u32,
    end: u32,
}

/// Inverts messages with runs into runs with messages.
struct Gathering<'a> {
    words: &'a Words,
    /// The index of each run among the runs of the zone.
    places: Vec<u32>,
}

/// The first eight octets, padded with zeros: in the order of the runs, or equal.
fn first_octets(run: &[u8]) -> u64 {
    let mut first = [0; 8];
    let count = run.len().min(first.len());
    first[..count].copy_from_slice(&run[..count]);
    u64::from_be_bytes(first)
}

impl<'a> Gathering<'a> {
    fn new(words: &'a Words) -> Self {
        Self {
            words,
            places: vec![NONE; words.len()],
        }
    }

    fn zone(&mut self, messages: &[Taken], zone: Zone) -> ZoneWriter {
        let mut runs = self.count(messages, zone);
        let ordinals = self.gather(messages, zone, &mut runs);
        for run in &runs {
            self.places[run.number as usize] = NONE;
        }
        let run_of = |run: &Gathered| self.words.run(run.number);
        runs.sort_unstable_by(|one, other| {
            let first = one.first.cmp(&other.first);
            first.then_with(|| run_of(one).cmp(run_of(other)))
        });
        let mut writer = ZoneWriter::default();
        for run in &runs {
            let start = (run.end - run.count) as usize;
            writer.run(run_of(run), &ordinals[start..run.end as usize]);
        }
        for (ordinal, message) in messages.iter().enumerate() {
            message.put_signatures(ordinal as u32, zone, &mut writer);
        }
        writer
    }

    /// The runs of the zone, with the number of messages for each.
    fn count(&mut self, messages: &[Taken], zone: Zone) -> Vec<Gathered> {
        let mut runs: Vec<Gathered> = Vec::new();
        for (ordinal, message) in messages.iter().enumerate() {
            for number in message.runs(zone) {
                let place = &mut self.places[number as usize];
                if *place == NONE {
                    *place = runs.len() as u32;
                    runs.push(Gathered {
                        number,
                        first: first_octets(self.words.run(number)),
                        count: 0,
                        last: NONE,
                        end: 0,
                    });
                }
                let run = &mut runs[*place as usize];
                if run.last != ordinal as u32 {
                    run.last = ordinal as u32;
                    run.count += 1;
                }
            }
        }
        runs
    }

    /// The messages of all runs, concatenated.
    fn gather(&self, messages: &[Taken], zone: Zone, runs: &mut [Gathered]) -> Vec<u32> {
        let mut total = 0;
        for run in &mut *runs {
            (run.end, run.last) = (total, NONE);
            total += run.count;
        }
        let mut ordinals = vec![0; total as usize];
        for (ordinal, message) in messages.iter().enumerate() {
            for number in message.runs(zone) {
                let run = &mut runs[self.places[number as usize] as usize];
                if run.last != ordinal as u32 {
                    run.last = ordinal as u32;
                    ordinals[run.end as usize] = ordinal as u32;
                    run.end += 1;
                }
            }
        }
        ordinals
    }
}
