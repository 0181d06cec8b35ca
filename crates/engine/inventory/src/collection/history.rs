//! Checkpoints of the past: which ones stay, and which commits and pages nobody needs without the others.
//!
//! A checkpoint has a row from its first commit on. The first collection that sees a newer checkpoint notes the time; after
//! `keep_versions` from then on the pages may go, and the commits that an older checkpoint than the oldest kept one covers. The
//! row stays behind without a root: a machine that comes back tells by the row that the volume was not set back.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use super::rows::RowChange;
use crate::format::{Kind, Locator, MailCopy, MailId, Subject};
use crate::rows::{Key, RowValue, StateRow};

/// Checkpoints that stay whatever their age: an older one serves for one with a damaged page.
const KEPT_MIN: usize = 2;
/// Rows of checkpoints without pages; the oldest go first. A machine that was away for longer is not told of a rollback.
const BARE_MAX: usize = 4_096;
/// Commits of the log that a run looks at; later ones are left to the next run.
pub const LOG_MAX: usize = 100_000;

/// The past as a run finds the past.
#[derive(Debug, Default)]
pub struct History {
    /// Checkpoints with pages or without, by generation.
    states: Vec<(u64, StateRow)>,
    /// The oldest checkpoint that stays.
    pub oldest: Option<(u64, StateRow)>,
    /// The roots of all that stay.
    pub roots: Vec<Locator>,
    /// Rows to be written.
    pub changes: Vec<RowChange>,
    /// Checkpoints whose pages may go from now on.
    pub ended: usize,
}

impl History {
    /// Decides which checkpoints stay. `named` is the generation that the newest commit's checkpoint covers.
    pub fn new(
        mut states: Vec<(u64, StateRow)>,
        named: Option<u64>,
        (now, wait): (i64, Duration),
    ) -> Self {
        states.sort_by_key(|(generation, _)| *generation);
        let wait = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
        let whole = states.iter().filter(|(_, row)| row.has_pages()).count();
        let newest = states.last().map(|(generation, _)| *generation);
        let bare = states.len().saturating_sub(whole);
        let mut history = Self::default();
        let (mut seen, mut forgotten) = (0_usize, bare.saturating_sub(BARE_MAX));
        for (generation, row) in &mut states {
            let key = || Key::State(*generation).encode();
            if !row.has_pages() {
                if forgotten > 0 {
                    forgotten = forgotten.saturating_sub(1);
                    history.changes.push((key(), None));
                }
                continue;
            }
            seen = seen.saturating_add(1);
            let is_new = whole.saturating_sub(seen) < KEPT_MIN;
            if row.superseded_ms == 0 && Some(*generation) != newest {
                row.superseded_ms = now.max(1);
                history.changes.push((key(), Some(row.encode())));
            }
            let is_over = row.superseded_ms != 0 && now.saturating_sub(row.superseded_ms) >= wait;
            if is_over && !is_new && history.oldest.is_none() {
                let key = key();
                row.root = Locator::default();
                history.changes.retain(|(of, _)| *of != key);
                history.changes.push((key, Some(row.encode())));
                history.ended = history.ended.saturating_add(1);
            } else {
                history.oldest.get_or_insert((*generation, *row));
                history.roots.push(row.root);
            }
        }
        // A mount begins at the checkpoint that the newest commit names, or at an older one.
        let is_named =
            |(generation, _): &(u64, StateRow)| named.is_some_and(|at| *generation <= at);
        history.oldest = history.oldest.filter(is_named);
        // Without an ended checkpoint everything from the first commit on is within its time.
        if bare == 0 && history.ended == 0 {
            history.oldest = None;
        }
        if history.oldest.is_none() {
            history.changes.retain(|(_, value)| match value {
                Some(value) => StateRow::decode(value).is_ok_and(|row| row.has_pages()),
                None => false,
            });
            history.ended = 0;
        }
        history.states = states;
        history
    }

    /// Commits without any use: those below the oldest checkpoint that stays, oldest first. Commits with content are not
    /// among them, but for a content that no row names any more.
    pub fn old_commits(
        &self,
        log: &[(u32, Subject)],
        has_row: &dyn Fn(&Subject) -> bool,
    ) -> Vec<(u32, MailId)> {
        let old = self.chain(log).into_iter().skip(1);
        let old = old.filter(|(_, subject)| !has_row(subject));
        let mails = old.flat_map(|(uids, subject)| {
            let uids = uids.into_iter().rev();
            uids.map(|uid| (uid, subject.mail))
        });
        let mut found: Vec<(u32, MailId)> = mails.collect();
        found.reverse();
        found
    }

    /// The commits of the chain that are older than every checkpoint that stays, newest first, each with its UIDs; the first one
    /// is that of a checkpoint itself.
    pub(super) fn chain<'a>(&self, log: &'a [(u32, Subject)]) -> Vec<(Vec<u32>, &'a Subject)> {
        let (Some((limit, _)), Some((last, _))) = (&self.oldest, log.last()) else {
            return Vec::new();
        };
        // The walk begins at a commit that a row names, and not at a subject.
        let mut states = self.states.iter().rev();
        let begin = states.find(|(generation, row)| generation <= limit && row.uid <= *last);
        let Some((generation, begin)) = begin else {
            return Vec::new();
        };
        let mut commits: HashMap<MailId, (Vec<u32>, &Subject)> = HashMap::new();
        for (uid, subject) in log {
            if subject.kind == Kind::Commit {
                let of = commits.entry(subject.mail);
                of.or_insert_with(|| (Vec::new(), subject)).0.push(*uid);
            }
        }
        let mut found = Vec::new();
        let (mut at, mut generation) = (begin.commit, *generation);
        // Each commit leaves the map, so that a circle ends.
        while let Some((uids, subject)) = commits.remove(&at)
            && subject.generation == Some(generation)
        {
            found.push((uids, subject));
            generation = generation.saturating_sub(1);
            at = subject.parent.unwrap_or(MailId::NONE);
        }
        found
    }

    /// Copies on further accounts without any use: commits below the oldest checkpoint that stays, and pages that no kept
    /// checkpoint reaches. Whatever lies in a copy's log is part of the chain, so that the generation alone decides.
    pub fn old_copies(
        &self,
        copies: &[(MailCopy, Subject)],
        has_row: &dyn Fn(&Subject) -> bool,
        reached: Option<&HashSet<MailId>>,
    ) -> Vec<(MailCopy, MailId)> {
        let Some((limit, _)) = &self.oldest else {
            return Vec::new();
        };
        let is_old = |subject: &Subject| subject.generation.is_some_and(|of| of < *limit);
        let is_needless = |(_, subject): &&(MailCopy, Subject)| match subject.kind {
            Kind::Commit => is_old(subject) && !has_row(subject),
            Kind::Pages => is_old(subject) && reached.is_some_and(|of| !of.contains(&subject.mail)),
            _ => false,
        };
        let needless = copies.iter().filter(is_needless);
        needless
            .map(|(copy, subject)| (*copy, subject.mail))
            .collect()
    }

    /// Mails of pages without any use.
    pub fn old_pages(
        &self,
        pages: &[(u32, Subject)],
        reached: &HashSet<MailId>,
    ) -> Vec<(u32, Subject)> {
        let Some((limit, _)) = &self.oldest else {
            return Vec::new();
        };
        let is_old = |subject: &Subject| {
            subject.kind == Kind::Pages
                && subject.generation.is_some_and(|covers| covers < *limit)
                && !reached.contains(&subject.mail)
        };
        let old = pages.iter().filter(|(_, subject)| is_old(subject));
        old.copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 24 * 3_600_000;

    fn state(generation: u64, superseded_ms: i64, has_pages: bool) -> (u64, StateRow) {
        let row = StateRow {
            commit: MailId([u8::try_from(generation % 256).unwrap(); 16]),
            uid: u32::try_from(generation).unwrap(),
            time_ms: 0,
            superseded_ms,
            root: Locator {
                at: u32::from(has_pages),
                ..Locator::default()
            },
        };
        (generation, row)
    }

    fn history(states: Vec<(u64, StateRow)>, now: i64) -> History {
        History::new(
            states,
            Some(900),
            (now, Duration::from_secs(7 * 24 * 3_600)),
        )
    }

    #[test]
    fn a_checkpoint_stays_for_its_time_and_two_stay_for_ever() {
        let states = vec![
            state(100, DAY, true),
            state(200, 2 * DAY, true),
            state(300, 3 * DAY, true),
            state(400, 0, true),
        ];
        let kept = |now| history(states.clone(), now).oldest.map(|(at, _)| at);
        assert_eq!(kept(8 * DAY - 1), None);
        assert_eq!(kept(8 * DAY), Some(200));
        assert_eq!(kept(100 * DAY), Some(300));
        let history = history(states, 8 * DAY);
        assert_eq!((history.roots.len(), history.ended), (3, 1));
    }

    #[test]
    fn nothing_goes_that_a_mount_may_begin_at() {
        let states = (1..9).map(|number| state(number * 200, 1, true)).collect();
        let history = History::new(states, Some(300), (100 * DAY, Duration::ZERO));
        assert_eq!((history.oldest, history.ended), (None, 0));
        assert!(history.changes.iter().all(|(_, value)| value.is_some()));
    }

    #[test]
    fn rows_without_pages_are_bounded() {
        let bare = (0..5_000).map(|number| state(number, 1, false));
        let states = bare.chain([state(9_000, 0, true)]).collect();
        let history = History::new(states, Some(9_000), (0, Duration::ZERO));
        assert_eq!(history.changes.len(), 5_000 - BARE_MAX);
        assert_eq!(history.changes[0].0, Key::State(0).encode());
    }
}
