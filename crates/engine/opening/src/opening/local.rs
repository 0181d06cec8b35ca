//! An opening from the local disk alone: the journal, the commits from a checkpoint on, and the first pages of the
//! volume. The mount compares with the log when the lead answers, and sends nothing before.
//!
//! Where the local disk does not suffice, the log is read as ever.

use std::collections::HashMap;
use std::mem;
use std::time::Duration;

use vere_ports::storage::Storage;

use super::{Asked, Local, OpenStep, Opening, Stage};
use crate::error::OpenError;
use crate::format::MailId;
use crate::notice::{Moment, Notice};
use crate::rows::{Key, RowValue, SettingsRow};
use crate::terms::Create;
use crate::terms::Terms;
use crate::tree::Tree;
use vere_keep::record::{Part, Won};
use vere_order::found::Found;

/// How long commits stay in the log at least, where no row says more.
const KEPT_MIN: Duration = Duration::from_secs(24 * 3_600);

impl<S: Storage> Opening<S> {
    /// Begins with the local disk: the opening is over at once, or goes on with the log. After any error of [`Self::finish`] the
    /// volume is to be opened by the log.
    /// Requests of the volume count from a number on, and late answers to an earlier opening are told apart.
    pub fn local(
        terms: Terms,
        of: Create,
        storage: (S, [u8; 16]),
        (how, first): (Local, u64),
    ) -> Self {
        let mut opening = Self::prepare(terms, of, storage, None, None);
        opening.last_id = first;
        if !opening.open_locally(how) {
            opening.ask_log();
        }
        opening
    }

    /// Whether the opening is over without an account.
    #[must_use]
    pub const fn is_local(&self) -> bool {
        self.local.is_some()
    }

    fn open_locally(&mut self, how: Local) -> bool {
        let kept = mem::take(&mut self.kept);
        // The local disk has commits by their places in the lead's log.
        let has_place = |won: &Won| won.has_place() && self.error.is_none();
        let Some(won) = self.remembered.filter(has_place) else {
            return false;
        };
        if self.terms.is_new_lead {
            return false;
        }
        if self.is_distrusted {
            self.tell_lack("a page that the last mount has missed");
            return false;
        }
        if self.last_writer() == 0 {
            self.tell_lack("a writer's number");
            return false;
        }
        self.local = Some(how);
        self.uid_validity = won.uid_validity;
        self.listed_from = 1;
        for commit in kept {
            if commit.uid_validity == won.uid_validity
                && let Ok(found) = self.commit(commit.uid, &commit.body)
            {
                self.known = self.known.max(commit.uid);
                self.listed.insert(commit.uid);
                self.commits.insert(commit.uid, Some(found));
            }
        }
        let newest = self.commits.get(&won.uid);
        if !matches!(newest, Some(Some(found)) if found.id() == won.commit) {
            self.lacking = Some(format!("the newest commit, UID {} of the log", won.uid));
        } else if !self.leave_gaps(won) {
            self.lacking = Some("a commit behind the newest one of the journal".to_owned());
        } else if self.has_doubtful_merge() {
            self.lacking = Some("the outcome of a merge".to_owned());
        } else {
            self.stage = Stage::Newest;
            self.advance();
        }
        if self.stage == Stage::Over && self.error.is_none() {
            return true;
        }
        self.leave_local();
        let lacking = self.lacking.take();
        self.tell_lack(lacking.as_deref().unwrap_or("a checkpoint that serves"));
        false
    }

    /// Leaves out the commits below a gap: the local disk drops commits below a checkpoint, in whole segments, and may still have
    /// older commits. The comparison with the log reads all missing commits above its first UID. Returns whether no commit is
    /// missing behind the journal's newest.
    fn leave_gaps(&mut self, won: Won) -> bool {
        let found = self.commits.values().flatten();
        let parents: HashMap<MailId, (MailId, u64)> = found
            .map(|found| (found.id(), (found.record.parent, found.record.generation)))
            .collect();
        let mut oldest = won.generation;
        let mut next = parents.get(&won.commit);
        // Generations fall, so that a circle ends.
        while let Some((parent, generation)) = next.filter(|(_, of)| *of <= oldest) {
            oldest = *generation;
            next = parents.get(parent).filter(|(_, of)| *of < oldest);
        }
        self.commits.retain(|_, found| {
            let of = found.as_ref().map(|found| found.record.generation);
            of.is_some_and(|generation| generation >= oldest)
        });
        let (commits, listed) = (&self.commits, &mut self.listed);
        listed.retain(|uid| commits.contains_key(uid));
        let mut behind = parents.values();
        behind.all(|(parent, of)| *of <= won.generation || parents.contains_key(parent))
    }

    /// The local disk does not suffice: an account would have to be asked.
    pub(super) fn lacks(&mut self, asked: Asked) {
        self.lacking = Some(match asked {
            Asked::End | Asked::List => "commits of the log".to_owned(),
            Asked::Guess(uid) | Asked::Commit(uid) => format!("the commit of UID {uid} of the log"),
            Asked::PagesEnd => "the place of pages".to_owned(),
            Asked::Page(at) | Asked::Moved(at) => {
                format!(
                    "a page, octet {} of UID {} of the pages",
                    at.at, at.copy.uid
                )
            }
        });
        self.fail(OpenError::Unsure);
    }

    fn tell_lack(&mut self, what: &str) {
        let notice = Notice::NotLocal(what.to_owned());
        self.steps.push_back(OpenStep::Log(notice));
    }

    /// Has the local disk keep a commit of the lead's log. UIDs of a copy say nothing there.
    pub(super) fn keep_commit(&mut self, uid: u32, found: &Found, sealed: &[u8]) {
        if self.stand_in.is_some() || self.terms.is_new_lead {
            return;
        }
        let uid_validity = match (self.uid_validity, self.placed) {
            (0, Some(won)) => won.uid_validity,
            (known, _) => known,
        };
        self.memory
            .put((uid_validity, uid), found.covered_uid(), sealed);
    }

    /// Whether a merge of this mount may be in the log. A mount takes such a commit for another machine's.
    fn has_doubtful_merge(&self) -> bool {
        let parts = self.records.iter().flat_map(|(_, parts)| parts);
        let mut merges = parts.filter_map(|part| match part {
            Part::Adopts(commit) => Some(*commit),
            _ => None,
        });
        let is_known = |id| {
            let mut known = self.commits.values().flatten();
            known.any(|found| found.id() == id || found.record.merged.contains(&id))
        };
        merges.any(|id| !is_known(id))
    }

    /// The log is read from its end on, as if nothing were known.
    fn leave_local(&mut self) {
        self.local = None;
        self.error = None;
        self.stage = Stage::End;
        self.uid_validity = 0;
        self.known = 0;
        self.listed_from = u32::MAX;
        self.is_wide = false;
        self.listed.clear();
        self.commits.clear();
        self.unread.clear();
        self.wanted.clear();
        self.refused.clear();
        self.steps.clear();
        self.base = None;
        self.pages.set_root(None);
    }

    /// A log without a look for longer than commits stay there may have lost the commits of the local disk.
    /// The newest commit tells a time too.
    pub(super) fn check_age(
        &self,
        tree: &Tree,
        newest_ms: i64,
        now: Moment,
    ) -> Result<(), OpenError> {
        if self.local != Some(Local::Fresh) {
            return Ok(());
        }
        let row = tree.get(&Key::Settings.encode())?;
        let row = row.and_then(|row| SettingsRow::decode(&row).ok());
        let kept = row.map_or(Duration::ZERO, |row| {
            Duration::from_secs(row.keep_versions_s)
        });
        let kept_ms = i64::try_from(kept.max(KEPT_MIN).as_millis()).unwrap_or(i64::MAX);
        let seen = self.memory.sight().max(newest_ms);
        match now.millis().saturating_sub(seen) > kept_ms {
            true => Err(OpenError::Unsure),
            false => Ok(()),
        }
    }
}
