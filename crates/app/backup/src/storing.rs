//! Pieces on the way into a place: each content once.

use std::collections::{HashMap, HashSet};

use indicatif::ProgressBar;
use vere_process::failure::Failure;

use crate::manifest::Piece;
use crate::pace::Pace;
use crate::repository::Repository;

/// Counts of a backup.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Octets read from the system's files.
    pub(crate) read: u64,
    /// Octets taken over from the backup before, unread.
    pub(crate) reused: u64,
    /// Octets of new objects, and the number of new objects.
    pub(crate) stored: u64,
    pub(crate) objects: u64,
}

/// Stores the pieces of a backup.
#[derive(Debug)]
pub(crate) struct Storing<'a> {
    repository: &'a Repository,
    /// The objects in the place, with the octets of each.
    present: HashMap<String, u64>,
    /// Objects found damaged, until stored again.
    damaged: HashSet<String>,
    /// Damaged objects that were stored again.
    mended: Vec<String>,
    bar: &'a ProgressBar,
    pace: Pace,
    pub(crate) counts: Counts,
}

impl<'a> Storing<'a> {
    /// # Errors
    /// When the objects of the place cannot be listed.
    pub(crate) fn new(
        repository: &'a Repository,
        bar: &'a ProgressBar,
        pace: Pace,
    ) -> Result<Self, Failure> {
        let mut present = repository.objects()?;
        let damaged = repository.damaged()?;
        present.retain(|name, _| !damaged.contains(name));
        Ok(Self {
            pace,
            present,
            damaged,
            mended: Vec::new(),
            repository,
            bar,
            counts: Counts::default(),
        })
    }

    /// The damaged objects that were stored again.
    pub(crate) fn mended(self) -> Vec<String> {
        self.mended
    }

    /// Whether the place has all objects of the pieces, judged by length.
    pub(crate) fn has_all(&self, pieces: &[Piece]) -> bool {
        let has = |Piece(octets, name): &Piece| self.present.get(name) == Some(octets);
        pieces.iter().all(has)
    }

    /// The pace at which files are read and objects are written.
    pub(crate) const fn pace(&self) -> &Pace {
        &self.pace
    }

    /// Notes octets already in the previous backup.
    pub(crate) fn reuse(&mut self, octets: u64) {
        self.counts.reused += octets;
        self.bar.inc(octets);
    }

    /// Notes read octets without a new piece.
    pub(crate) const fn note_read(&mut self, octets: u64) {
        self.counts.read += octets;
    }

    /// Stores a piece, unless already in the place.
    ///
    /// # Errors
    /// When the place cannot be written.
    pub(crate) fn piece(&mut self, content: &[u8]) -> Result<Piece, Failure> {
        let octets = content.len() as u64;
        let name = self.repository.name(content);
        self.counts.read += octets;
        if self.present.get(&name) != Some(&octets) {
            self.repository.put(&name, content, &self.pace)?;
            self.present.insert(name.clone(), octets);
            self.counts.stored += octets;
            self.counts.objects += 1;
            self.mended.extend(self.damaged.take(&name));
        }
        self.pace.moved(octets, self.bar);
        Ok(Piece(octets, name))
    }
}
