//! The newest commits of the chain, with the mails that the mount has sent: what copies on further accounts are made from.

use std::collections::VecDeque;

use bytes::Bytes;
use vere_keep::record::Won;
use vere_units::Timestamp;

use crate::format::MailId;

/// Commits in memory; a copy that needs an older one compares whole logs.
const COMMITS_MAX: usize = 4_096;
/// Octets of their mails; a commit without a mail in memory is read from the lead.
const OCTETS_MAX: usize = 16 << 20;

/// A commit of the chain.
#[derive(Debug)]
pub struct Known {
    /// Its place on the lead.
    pub won: Won,
    /// The parent.
    pub parent: MailId,
    /// The mail as the lead has it, where the mount has sent the mail.
    pub mail: Option<Bytes>,
    /// Whether the mount has sent the mail.
    pub is_own: bool,
    /// When the commit was seen in the chain.
    pub since: Timestamp,
}

/// The newest commits of the chain, oldest first, without a gap.
#[derive(Debug, Default)]
pub struct Recent {
    commits: VecDeque<Known>,
    octets: usize,
}

impl Recent {
    /// A further commit of the chain.
    pub fn note(&mut self, known: Known) {
        let expected = self.head().map(|head| head.generation.saturating_add(1));
        if expected.is_some_and(|expected| expected != known.won.generation) {
            self.commits.clear();
            self.octets = 0;
        }
        self.octets = self.octets.saturating_add(octets_of(&known));
        self.commits.push_back(known);
        if self.commits.len() > COMMITS_MAX
            && let Some(oldest) = self.commits.pop_front()
        {
            self.octets = self.octets.saturating_sub(octets_of(&oldest));
        }
        let mut commits = self.commits.iter_mut();
        while self.octets > OCTETS_MAX
            && let Some(oldest) = commits.next()
        {
            self.octets = self.octets.saturating_sub(octets_of(oldest));
            oldest.mail = None;
        }
    }

    /// Every copy has the commits up to this generation: their mails leave memory.
    pub fn copied(&mut self, generation: u64) {
        let mut commits = self.commits.iter_mut();
        while let Some(known) = commits.next().filter(|of| of.won.generation <= generation) {
            self.octets = self.octets.saturating_sub(octets_of(known));
            known.mail = None;
        }
    }

    /// The newest commit.
    #[must_use]
    pub fn head(&self) -> Option<Won> {
        self.commits.back().map(|known| known.won)
    }

    /// The oldest one in memory.
    #[must_use]
    pub fn oldest(&self) -> Option<&Known> {
        self.commits.front()
    }

    /// The commit of a generation.
    #[must_use]
    pub fn at(&self, generation: u64) -> Option<&Known> {
        let first = self.commits.front()?.won.generation;
        let place = usize::try_from(generation.checked_sub(first)?).ok()?;
        self.commits.get(place)
    }

    /// Whether a commit of the mount lies behind a generation.
    #[must_use]
    pub fn has_own_behind(&self, generation: u64) -> bool {
        let mut newest = self.commits.iter().rev();
        newest.any(|known| known.is_own && known.won.generation > generation)
    }

    /// All, newest first.
    pub fn newest_first(&self) -> impl Iterator<Item = &Known> {
        self.commits.iter().rev()
    }
}

fn octets_of(known: &Known) -> usize {
    known.mail.as_ref().map_or(0, Bytes::len)
}
