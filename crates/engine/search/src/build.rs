//! Making a segment of messages.

use std::collections::HashMap;

use vere_mime::Zone;

use crate::crossings::{self, Crossings};
use crate::edges::{self, Edges};
use crate::long::{ANYTHING, Grams};
use crate::runs::{in_word, runs};
use crate::summary::SummaryWriter;
use crate::write::{Owner, ZoneWriter, segment};
use crate::{BUILD_DOCUMENTS_MAX, BUILD_OCTETS_MAX, MESSAGE_OCTETS_MAX, RUN_OCTETS_MAX};

/// A message of a mailbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Document {
    /// Its UID.
    pub uid: u32,
    /// Where its body is: the same UID with another body is another message.
    pub body: u64,
    /// The day that its Date field names (RFC 9051 section 6.4.4), counted from 1970.
    pub sent: Option<i64>,
}

/// Takes the texts of messages and makes a segment of them.
#[derive(Debug)]
pub struct Builder {
    owner: Owner,
    documents: Vec<Document>,
    zones: Vec<ZoneBuilder>,
    summaries: SummaryWriter,
    /// Of the message that is being taken.
    summary: Option<Vec<u8>>,
    octets: usize,
    /// Octets of the message that is being taken.
    taken: usize,
    /// Whether it is left out.
    left_out: bool,
}

#[derive(Debug, Default)]
struct ZoneBuilder {
    runs: HashMap<Box<[u8]>, Vec<u32>>,
    long: Vec<(u32, Vec<u8>)>,
    /// Signatures of crossings, one after the other, and where each ends.
    crossed: Vec<u8>,
    ends: Vec<u32>,
    /// Of the message that is being taken.
    grams: Grams,
    crossings: Crossings,
    edges: Edges,
    /// Whether it has more text than is kept.
    beyond: bool,
}

/// Notes that a message has a run.
fn post(runs: &mut HashMap<Box<[u8]>, Vec<u32>>, run: &[u8], ordinal: u32) {
    match runs.get_mut(run) {
        Some(ordinals) if ordinals.last() == Some(&ordinal) => {}
        Some(ordinals) => ordinals.push(ordinal),
        None => drop(runs.insert(run.into(), vec![ordinal])),
    }
}

impl ZoneBuilder {
    fn text(&mut self, text: &[u8], ordinal: u32, crossed: bool) {
        // A word, and what stands behind it.
        let (mut word, mut between): (&[u8], &[u8]) = (&[], &[]);
        for run in runs(text) {
            let run = &text[run];
            match in_word(run[0]) {
                false => between = run,
                true if crossed && !word.is_empty() => self.crossings.add(word, between, run),
                true => {}
            }
            if in_word(run[0]) {
                word = run;
            }
            if run.len() > RUN_OCTETS_MAX {
                self.grams.add(run);
            } else {
                post(&mut self.runs, run, ordinal);
            }
        }
    }

    fn end(&mut self, ordinal: u32) {
        let grams = std::mem::take(&mut self.grams);
        let mut beyond = std::mem::take(&mut self.beyond);
        if beyond {
            self.crossings.take_all();
        }
        let runs = &mut self.runs;
        beyond |= !self.edges.take(|edge| post(runs, &edge, ordinal));
        self.crossings.put_signature(&mut self.crossed);
        self.ends.push(self.crossed.len() as u32);
        if beyond {
            self.long.push((ordinal, ANYTHING.to_vec()));
        } else if !grams.is_empty() {
            self.long.push((ordinal, grams.signature()));
        }
    }

    fn finish(self) -> ZoneWriter {
        let mut writer = ZoneWriter::default();
        let mut runs: Vec<_> = self.runs.into_iter().collect();
        runs.sort_unstable();
        for (run, ordinals) in &runs {
            writer.run(run, ordinals);
        }
        for (ordinal, signature) in &self.long {
            writer.long(*ordinal, signature);
        }
        let mut start = 0;
        for end in &self.ends {
            writer.crossed(&self.crossed[start..*end as usize]);
            start = *end as usize;
        }
        writer
    }
}

impl Builder {
    /// For messages of a mailbox of the store with this log.
    #[must_use]
    pub fn new(log: u64, mailbox: u64) -> Self {
        Self {
            owner: Owner { log, mailbox },
            documents: Vec::new(),
            zones: Zone::ALL.iter().map(|_| ZoneBuilder::default()).collect(),
            summaries: SummaryWriter::default(),
            summary: None,
            octets: 0,
            taken: 0,
            left_out: false,
        }
    }

    /// Begins a message; UIDs rise, else it is left out with what is said of it.
    pub fn message(&mut self, document: Document) {
        self.end();
        self.taken = 0;
        let rises = self
            .documents
            .last()
            .is_none_or(|last| last.uid < document.uid);
        debug_assert!(rises, "UIDs rise");
        self.left_out = !rises;
        if rises {
            self.documents.push(document);
        }
    }

    /// Takes a text of the message that was begun, in the form in which it is compared.
    pub fn text(&mut self, zone: Zone, text: &str) {
        let Some(ordinal) = self
            .documents
            .len()
            .checked_sub(1)
            .filter(|_| !self.left_out)
        else {
            return;
        };
        let Some(builder) = self.zones.get_mut(zone as usize) else {
            return;
        };
        self.taken = self.taken.saturating_add(text.len());
        if self.taken > MESSAGE_OCTETS_MAX {
            builder.beyond = true;
            return;
        }
        self.octets += text.len();
        if edges::are_kept(zone) {
            builder.edges.add(text.as_bytes());
        }
        builder.text(text.as_bytes(), ordinal as u32, crossings::are_kept(zone));
    }

    /// The message that was begun has more texts, or others, than come: it may hold anything.
    pub fn and_more(&mut self) {
        if !self.left_out {
            self.zones.iter_mut().for_each(|zone| zone.beyond = true);
        }
    }

    /// Takes the summary of the message that was begun: its fields of [`crate::SUMMARY_FIELDS`] as they
    /// were written, in their order, and whatever follows them.
    pub fn summary(&mut self, octets: Vec<u8>) {
        self.octets += octets.len();
        self.summary = Some(octets);
    }

    fn end(&mut self) {
        let summary = self.summary.take();
        if let Some(ordinal) = self
            .documents
            .len()
            .checked_sub(1)
            .filter(|_| !self.left_out)
        {
            self.summaries.put(summary.as_deref());
            self.zones
                .iter_mut()
                .for_each(|zone| zone.end(ordinal as u32));
        }
    }

    /// Whether no more messages should come.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.octets >= BUILD_OCTETS_MAX || self.documents.len() >= BUILD_DOCUMENTS_MAX
    }

    /// Octets of text that came.
    #[must_use]
    pub fn octets(&self) -> usize {
        self.octets
    }

    /// The segment; none of no messages.
    #[must_use]
    pub fn finish(mut self) -> Option<Vec<u8>> {
        self.end();
        if self.documents.is_empty() {
            return None;
        }
        let zones = self.zones.into_iter().map(ZoneBuilder::finish).collect();
        Some(segment(self.owner, &self.documents, zones, self.summaries))
    }
}
