//! Gists: the content that a segment keeps of a message, extracted once for all mailboxes with the message.

use std::collections::HashMap;
use std::sync::Arc;

use vere_mime::Zone;

use crate::crossings::{self, Crossings};
use crate::edges::{self, Edges};
use crate::long::{ANYTHING, Grams};
use crate::runs::{in_word, runs};
use crate::words::Words;
use crate::{MESSAGE_OCTETS_MAX, RUN_OCTETS_MAX, SHELF_OCTETS_MAX};

/// Content kept of one zone's texts.
#[derive(Debug, Default)]
pub(crate) struct ZoneGist {
    /// Numbers of the zone's runs, each at least once, edges included.
    pub(crate) runs: Vec<u32>,
    edges: Edges,
    grams: Grams,
    crossings: Crossings,
    /// Whether more text exists than the gist has.
    beyond: bool,
    /// The signature of long runs; absent if the texts have no long runs.
    pub(crate) long: Option<Vec<u8>>,
    /// The signature of crossings.
    pub(crate) crossed: Vec<u8>,
}

impl ZoneGist {
    fn text(&mut self, text: &[u8], crossed: bool, words: &mut Words, taking: u64) {
        // The last word, and the octets after the word.
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
            } else if let Some(number) = words.take(taking, run) {
                self.runs.push(number);
            }
        }
    }

    fn end(&mut self, words: &mut Words) {
        let mut edges = std::mem::take(&mut self.edges);
        let known = edges.take(|edge| self.runs.push(words.number(&edge)));
        self.runs.shrink_to_fit();
        self.sign(known);
    }

    /// Makes the signatures. `known` says whether the runs include all edges.
    fn sign(&mut self, known: bool) {
        if self.beyond {
            self.crossings.take_all();
        }
        self.crossings.settle();
        self.crossed = self.crossings.signature();
        self.long = match self.beyond || !known {
            true => Some(ANYTHING.to_vec()),
            false if self.grams.is_empty() => None,
            false => Some(self.grams.signature()),
        };
    }

    /// Drops the sources of the signatures.
    fn close(&mut self) {
        self.grams = Grams::default();
        self.crossings = Crossings::default();
    }

    fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.long.is_none()
    }

    fn resident(&self) -> usize {
        let signatures = self.crossed.len() + self.long.as_ref().map_or(0, Vec::len);
        self.runs.len() * 4 + signatures + self.grams.resident() + self.crossings.resident()
    }
}

/// Returns the signatures of one zone's texts, those of the shared message and of a mailbox's own copy together: of
/// long runs, and of crossings.
pub(crate) fn signatures(
    shared: &ZoneGist,
    own: &ZoneGist,
    zone: Zone,
) -> (Option<Vec<u8>>, Vec<u8>) {
    let mut both = ZoneGist {
        // A closed zone has lost the sources of its signatures.
        beyond: shared.beyond || own.beyond || !is_open(zone),
        grams: shared.grams.with(&own.grams),
        crossings: shared.crossings.with(&own.crossings),
        ..ZoneGist::default()
    };
    both.sign(true);
    (both.long, both.crossed)
}

/// Whether a mailbox's copy may add texts to a zone. A copy can only add header fields.
fn is_open(zone: Zone) -> bool {
    zone != Zone::Body
}

/// Content kept of a message, or of the texts that only a mailbox's copy has.
#[derive(Debug)]
pub(crate) struct Gist {
    /// One gist for each zone of [`Zone::ALL`].
    zones: Vec<ZoneGist>,
    pub(crate) summary: Option<Vec<u8>>,
    /// Day of the Date field.
    pub(crate) sent: Option<i64>,
    /// Octets of text and summary.
    pub(crate) octets: usize,
    takings: Vec<u64>,
}

impl Gist {
    pub(crate) fn new(sent: Option<i64>, words: &mut Words) -> Self {
        Self {
            zones: Zone::ALL.iter().map(|_| ZoneGist::default()).collect(),
            summary: None,
            sent,
            octets: 0,
            takings: Zone::ALL.iter().map(|_| words.begin()).collect(),
        }
    }

    /// Adds a text in the form in which texts are compared.
    pub(crate) fn text(&mut self, zone: Zone, text: &str, words: &mut Words) {
        let taking = self.takings.get(zone as usize).copied();
        let Some((gist, taking)) = self.zones.get_mut(zone as usize).zip(taking) else {
            return;
        };
        self.octets = self.octets.saturating_add(text.len());
        if self.octets > MESSAGE_OCTETS_MAX {
            gist.beyond = true;
            return;
        }
        if edges::are_kept(zone) {
            gist.edges.add(text.as_bytes());
        }
        gist.text(text.as_bytes(), crossings::are_kept(zone), words, taking);
    }

    /// Marks the message as incomplete: further or other texts exist, so every needle may match.
    pub(crate) fn and_more(&mut self) {
        self.zones.iter_mut().for_each(|gist| gist.beyond = true);
    }

    /// Completes the gist after the last text.
    pub(crate) fn end(&mut self, words: &mut Words) {
        self.zones.iter_mut().for_each(|gist| gist.end(words));
        self.takings = Vec::new();
        let closed = Zone::ALL.iter().filter(|zone| !is_open(**zone));
        for zone in closed {
            if let Some(gist) = self.zones.get_mut(*zone as usize) {
                gist.close();
            }
        }
    }

    /// Returns the gist of a zone, if the zone has content.
    pub(crate) fn zone(&self, zone: Zone) -> Option<&ZoneGist> {
        let gist = self.zones.get(zone as usize)?;
        (!gist.is_empty()).then_some(gist)
    }

    fn resident(&self) -> usize {
        let zones: usize = self.zones.iter().map(ZoneGist::resident).sum();
        let own = size_of::<Self>() + self.zones.len() * size_of::<ZoneGist>();
        own + zones + self.summary.as_ref().map_or(0, Vec::len)
    }
}

/// Gists of recent messages, so that a message in many mailboxes is analysed once. The shelf drops all gists when it
/// grows too large.
#[derive(Debug, Default)]
pub struct Shelf {
    pub(crate) words: Words,
    gists: HashMap<u64, Arc<Gist>>,
    octets: usize,
}

impl Shelf {
    /// Whether the shelf is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.gists.is_empty()
    }

    /// Octets in memory, estimated.
    pub(crate) fn resident(&self) -> usize {
        self.octets + self.words.resident()
    }

    #[cfg(test)]
    pub(crate) fn has(&self, body: u64) -> bool {
        self.gists.contains_key(&body)
    }

    /// Makes room, while nothing is being made with it.
    pub(crate) fn tidy(&mut self) {
        if self.resident() > SHELF_OCTETS_MAX {
            *self = Self::default();
        }
    }

    pub(crate) fn get(&self, body: u64) -> Option<Arc<Gist>> {
        self.gists.get(&body).cloned()
    }

    pub(crate) fn put(&mut self, body: u64, gist: &Arc<Gist>) {
        self.octets += gist.resident();
        self.gists.insert(body, Arc::clone(gist));
    }
}
