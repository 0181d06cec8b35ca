//! Adoption: lost commits of a mount that stays away are merged by another mount.

use std::time::Duration;

use bytes::Bytes;
use vere_ports::files::Errno;
use vere_ports::mail_accounts::Urgency;
use vere_ports::storage::Storage;

use super::state::Volume;
use super::step::{Notice, Step};
use crate::breakage::{Breakage, is_broken};
use crate::format::MailId;
use crate::format::commit::{RowChange, rows_that_fit};
use crate::rows::{Key, RowValue, WriterRow, states_prefix};
use crate::tree::{Side, Sides};

/// Time for the mount of a lost commit to merge the commit.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time between two looks at lost commits.
const PAUSE: Duration = Duration::from_secs(1);
/// Commits merged by one.
const ADOPTED_MAX: usize = 64;

impl<S: Storage> Volume<S> {
    /// Merges a commit that has waited long enough, with those that lie on it.
    pub(super) fn adopt(&mut self) {
        if self.adoption_due().is_none_or(|at| at > self.now.steady) {
            return;
        }
        self.follow.adopt_at = Some(self.now.steady + PAUSE);
        let is_busy = self.chain.under_way() > 0 || self.chain.is_blocked() || self.is_behind();
        let is_early = self.is_registering() || self.is_unconfirmed();
        if is_busy || is_early || self.read_only.is_some() {
            return;
        }
        let Some(line) = self.abandoned_line() else {
            return;
        };
        match self.adopt_line(&line) {
            Ok(()) => {}
            Err(Errno::Again) => {
                // The next try comes after a pause.
                self.fetch_missing(Urgency::Background);
            }
            Err(Errno::Stale) => self.leave_open(&line),
            Err(error) => self.steps.push_back(Step::Log(Notice::Rows(error))),
        }
    }

    /// Commits that only their own mount can merge stay open, and are told once.
    fn leave_open(&mut self, line: &[MailId]) {
        for id in line {
            if let Some(outside) = self.follow.outside.get_mut(id)
                && !std::mem::replace(&mut outside.is_told, true)
            {
                let uid = outside.found.uid;
                self.steps.push_back(Step::Log(Notice::Stranded(uid)));
            }
        }
    }

    /// When a commit has waited long enough.
    pub(super) fn adoption_due(&self) -> Option<vere_units::Timestamp> {
        let open = self.follow.outside.values();
        let open =
            open.filter(|outside| !outside.is_told && self.follow.is_open(outside.found.id()));
        let ripe = open.map(|outside| outside.since + PATIENCE).min();
        ripe.map(|ripe| self.follow.adopt_at.map_or(ripe, |at| at.max(ripe)))
    }

    /// Commits outside the chain that nobody has merged.
    pub(super) fn open_commits(&self) -> usize {
        let open = self.follow.outside.keys();
        open.filter(|id| self.follow.is_open(**id)).count()
    }

    /// The oldest open commit that lies on a state of the chain, and its descendants.
    fn abandoned_line(&mut self) -> Option<Vec<MailId>> {
        let now = self.now.steady;
        let mut ripe: Vec<(u32, MailId, MailId)> = self
            .follow
            .outside
            .iter()
            .filter(|(id, outside)| self.follow.is_open(**id) && outside.since + PATIENCE <= now)
            .map(|(id, outside)| (outside.found.uid, *id, outside.found.record.parent))
            .collect();
        ripe.sort_unstable();
        let roots = ripe.iter();
        let mut roots = roots.filter(|(_, id, parent)| {
            let outside = self.follow.outside.get(id);
            outside.is_some_and(|outside| !outside.is_told)
                && !self.follow.is_open(*parent)
                && self.follow.since(*parent).is_some()
                && !self.is_replaced(*id)
        });
        let root = roots.next();
        let Some((_, root, _)) = root else {
            self.tell_stranded(&ripe);
            return None;
        };
        let mut line = vec![*root];
        // Descendants come along however young they are: later their parent's state would not be known.
        while line.len() < ADOPTED_MAX
            && let Some(child) = self.open_child(line.last().copied(), &line)
        {
            line.push(child);
        }
        Some(line)
    }

    /// Whether the mount of a commit has rebased the commit, and the result is in the log: that is merged instead.
    fn is_replaced(&self, id: MailId) -> bool {
        let mut others = self.follow.outside.values();
        others.any(|other| {
            let record = &other.found.record;
            let is_adoptable =
                || self.follow.is_open(record.parent) || self.follow.since(record.parent).is_some();
            record.merged.contains(&id) && self.follow.is_open(other.found.id()) && is_adoptable()
        })
    }

    fn open_child(&self, parent: Option<MailId>, line: &[MailId]) -> Option<MailId> {
        let open = self.follow.outside.iter();
        let children = open.filter(|(id, outside)| {
            Some(outside.found.record.parent) == parent
                && self.follow.is_open(**id)
                && !line.contains(id)
        });
        let first = children.min_by_key(|(_, outside)| outside.found.uid);
        first.map(|(id, _)| *id)
    }

    /// Commits on a state that is not known any more stay open.
    fn tell_stranded(&mut self, ripe: &[(u32, MailId, MailId)]) {
        for (uid, id, parent) in ripe {
            let is_root = !self.follow.is_open(*parent) && self.follow.since(*parent).is_none();
            if let Some(outside) = self.follow.outside.get_mut(id)
                && is_root
                && !outside.is_told
            {
                outside.is_told = true;
                self.steps.push_back(Step::Log(Notice::Stranded(*uid)));
            }
        }
    }

    fn adopt_line(&mut self, line: &[MailId]) -> Result<(), Errno> {
        self.collect_rows();
        self.reserve_homes();
        let saved = self.files.tree().save(std::iter::empty());
        let (numbers, last_copy) = (self.files.numbers().clone(), self.follow.last_copy);
        self.files.tree().take_missing();
        let taken = self.files.tree_mut().take_local();
        let adopted = taken.and_then(|_| self.adopted_rows(line));
        // The tree is as before, whatever came out.
        self.files.tree_mut().restore(saved);
        if adopted.is_err() {
            *self.files.numbers() = numbers;
            // The home of the copy is free again.
            self.follow.last_copy = last_copy;
        }
        let (rows, mut merged) = adopted?;
        if is_broken(Breakage::MergeTwice) {
            merged.clear();
        }
        self.follow.is_adopting = true;
        if let Err(reason) = self.send_adoption(merged, rows) {
            self.follow.is_adopting = false;
            self.fail(Notice::Journal(reason));
        }
        Ok(())
    }

    /// What open commits change on top of the chain, and what the merge names.
    fn adopted_rows(&mut self, line: &[MailId]) -> Result<(Vec<RowChange>, Vec<MailId>), Errno> {
        let mut named = Vec::new();
        let mut changed: Vec<RowChange> = Vec::new();
        let mut writer = 0;
        let mut parent = None;
        for id in line {
            let Some(outside) = self.follow.outside.get(id) else {
                continue;
            };
            parent.get_or_insert(outside.found.record.parent);
            writer = outside.found.head.pack.writer();
            let rows = outside.found.rows(self.terms.lead).into_iter();
            // A checkpoint under a former lead has the UIDs of another log.
            let is_displaced = outside.found.record.lead_epoch < self.lead_epoch();
            let states = states_prefix();
            changed.extend(rows.filter(|row| !is_displaced || !row.key.starts_with(&states)));
            named.push(*id);
            named.extend(&outside.found.record.merged);
        }
        let (ours, theirs) = self.sides(parent.unwrap_or_default(), changed)?;
        if self.has_ended(&ours, parent.unwrap_or_default())? {
            // The mount of the commit has the content, and nobody else.
            return Err(Errno::Stale);
        }
        let host = self.machine_of(writer, &ours);
        let merged =
            self.merge_rows((&ours, &theirs), &std::collections::BTreeSet::new(), &host)?;
        let tree = self.files.tree();
        let mut rows = Vec::new();
        for key in tree.local_keys() {
            let value = tree.get(key)?;
            if tree.in_chain(key)? != value {
                let (key, value) = (key.to_vec(), value.map(Vec::from));
                rows.push(RowChange { key, value });
            }
        }
        if !tree.has_all() {
            return Err(Errno::Again);
        }
        if rows_that_fit(&rows) < rows.len() {
            // Only their own mount can merge them by several commits.
            return Err(Errno::Stale);
        }
        self.tell(merged);
        Ok((rows, named))
    }

    /// The changes of open commits and those of the chain since their common parent.
    fn sides(&self, parent: MailId, changed: Vec<RowChange>) -> Result<(Sides, Sides), Errno> {
        let tree = self.files.tree();
        let before = self.follow.since(parent).ok_or(Errno::Io)?;
        let mut theirs = Sides::new();
        for (key, base) in &before {
            let base = base.map(Bytes::copy_from_slice);
            let now = tree.get(key)?;
            if base != now {
                theirs.insert(key.to_vec(), Side { base, now });
            }
        }
        let mut ours = Sides::new();
        for RowChange { key, value } in changed {
            let base = match before.get(key.as_slice()) {
                Some(base) => base.map(Bytes::copy_from_slice),
                None => tree.get(&key)?,
            };
            let side = ours.entry(key).or_insert(Side { base, now: None });
            side.now = value.map(Bytes::from);
        }
        ours.retain(|_, side| side.base != side.now);
        Ok((ours, theirs))
    }

    fn machine_of(&self, writer: u16, ours: &Sides) -> String {
        let key = Key::Writer(writer).encode();
        let ours = ours.get(&key).and_then(|side| side.now.clone());
        let known = || self.files.tree().get(&key).ok().flatten();
        let row = ours.or_else(known);
        let row = row.and_then(|row| WriterRow::decode(&row).ok());
        row.map_or_else(|| format!("writer {writer}"), |row| row.name)
    }
}
