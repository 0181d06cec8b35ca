//! What a segment takes of a message, found once however many mailboxes the message is in.

use std::collections::HashMap;
use std::sync::Arc;

use vere_mime::Zone;

use crate::crossings::{self, Crossings};
use crate::edges::{self, Edges};
use crate::long::{ANYTHING, Grams};
use crate::runs::{in_word, runs};
use crate::words::Words;
use crate::{MESSAGE_OCTETS_MAX, RUN_OCTETS_MAX, SHELF_OCTETS_MAX};

/// What is taken of the texts of one kind.
#[derive(Debug, Default)]
pub(crate) struct ZoneGist {
    /// The numbers of its runs, each at least once, edges among them.
    pub(crate) runs: Vec<u32>,
    edges: Edges,
    grams: Grams,
    crossings: Crossings,
    /// Whether there is more text than is kept.
    beyond: bool,
    /// The signature of long runs; none when there are none.
    pub(crate) long: Option<Vec<u8>>,
    /// The signature of crossings.
    pub(crate) crossed: Vec<u8>,
}

impl ZoneGist {
    fn text(&mut self, text: &[u8], crossed: bool, words: &mut Words, taking: u64) {
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

    /// Makes the signatures; whether all that is among the runs is known.
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

    /// Lets go of what the signatures were made of.
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

/// The signatures of texts of one kind, some shared and some of a mailbox's own: of long runs, and of
/// crossings.
pub(crate) fn signatures(
    shared: &ZoneGist,
    own: &ZoneGist,
    zone: Zone,
) -> (Option<Vec<u8>>, Vec<u8>) {
    let mut both = ZoneGist {
        // What the signature was made of is not kept.
        beyond: shared.beyond || own.beyond || !is_open(zone),
        grams: shared.grams.with(&own.grams),
        crossings: shared.crossings.with(&own.crossings),
        ..ZoneGist::default()
    };
    both.sign(true);
    (both.long, both.crossed)
}

/// Whether a mailbox's copy may have texts of this kind beside those of the message. It has fields.
fn is_open(zone: Zone) -> bool {
    zone != Zone::Body
}

/// What is taken of a message, or of the texts that only a mailbox's copy has.
#[derive(Debug)]
pub(crate) struct Gist {
    /// One for each of [`Zone::ALL`].
    zones: Vec<ZoneGist>,
    pub(crate) summary: Option<Vec<u8>>,
    /// The day that its Date field names.
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

    /// Takes a text in the form in which it is compared.
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

    /// There are more texts, or others: it may hold anything.
    pub(crate) fn and_more(&mut self) {
        self.zones.iter_mut().for_each(|gist| gist.beyond = true);
    }

    /// Ends it.
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

    /// What is taken of texts of one kind, if there is any.
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

/// What was taken of messages of late: one that comes into many mailboxes is taken apart once. It
/// forgets everything when it is too large.
#[derive(Debug, Default)]
pub struct Shelf {
    pub(crate) words: Words,
    gists: HashMap<u64, Arc<Gist>>,
    octets: usize,
}

impl Shelf {
    /// Whether there is nothing on it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.gists.is_empty()
    }

    /// Octets in memory, about.
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
