//! Reads ahead of need: what a program that reads in order will want, from all accounts at once.

use super::state::Volume;
use super::state::reads::{AHEAD_MAX, AHEAD_MIN, AHEAD_NEAR, AHEAD_STEP, Ahead, WHOLE_MAX};
use super::state::uploads::PACK_MAX;
use crate::content::Source;
use crate::posix::ReadPlan;
use crate::rows::Extent;
use vere_ports::files::Inode;
use vere_ports::mail_accounts::Urgency;
use vere_ports::storage::Storage;

impl<S: Storage> Volume<S> {
    /// Chunks behind a read in order, four times as many each time, and the rest of the last one's pack: a pack costs an account
    /// about as much as its half. Returns the chunks that nobody has asked for yet.
    pub(super) fn read_ahead(&mut self, plan: &ReadPlan) -> Vec<Extent> {
        let end = plan.offset.saturating_add(plan.octets());
        let ahead = match self.reads.ahead.get(&plan.inode).copied() {
            // Reads of a kernel that reads ahead arrive in any order near the last one.
            Some(ahead) if plan.offset.abs_diff(ahead.next) <= AHEAD_NEAR => Ahead {
                next: ahead.next.max(end),
                window: ahead.window.saturating_mul(4).clamp(AHEAD_MIN, AHEAD_MAX),
                asked: ahead.asked.max(end),
            },
            _ => Ahead {
                next: end,
                window: if plan.offset == 0 {
                    // A program that asks for much at once will read on.
                    plan.octets().saturating_mul(4).clamp(AHEAD_MIN, AHEAD_MAX)
                } else {
                    0
                },
                asked: end,
            },
        };
        self.reads.ahead.insert(plan.inode, ahead);
        self.ask_ahead(plan.inode)
    }

    /// A chunk of a file has come: another one may be on the way in its place, whether the program reads on already or still waits
    /// for an earlier chunk of a slow account.
    pub(super) fn go_on_ahead(&mut self, inode: Inode) {
        let new = self.ask_ahead(inode);
        self.fetch_together(new);
    }

    /// Chunks within the window of a reader, as many as may be on the way at once. Returns those that nobody has asked for yet.
    fn ask_ahead(&mut self, inode: Inode) -> Vec<Extent> {
        let mut new = Vec::new();
        while let Some(ahead) = self.reads.ahead.get(&inode).copied()
            && ahead.asked < ahead.next.saturating_add(ahead.window)
            && self.reads.fetching() < self.terms.fetches_max
        {
            let asked = self.ask_step(inode, ahead, &mut new);
            if asked <= ahead.asked {
                // Rows are missing: the next read, or the next chunk, tries again.
                break;
            }
            self.reads.ahead.insert(inode, Ahead { asked, ..ahead });
        }
        new
    }

    /// Asks for a step of the window; returns the offset up to which everything is asked for then.
    fn ask_step(&mut self, inode: Inode, ahead: Ahead, new: &mut Vec<Extent>) -> u64 {
        let window_end = ahead.next.saturating_add(ahead.window);
        let until = window_end.min(ahead.asked.saturating_add(AHEAD_STEP));
        let length = until.saturating_sub(ahead.asked);
        let length = length.saturating_add(PACK_MAX as u64);
        if !self.has_packs(inode, ahead.asked, length) {
            return ahead.asked;
        }
        let coming = self.files.plan_ahead(inode, ahead.asked, length);
        let (mut asked, mut last) = (ahead.asked, None);
        for (offset, piece) in coming.iter().flat_map(ReadPlan::at_offsets) {
            let pack = match piece.source {
                Source::Chunk { extent, .. } => Some(extent.pack),
                _ => None,
            };
            let goes_on = pack.is_some() && pack == last;
            if !goes_on && offset >= until {
                break;
            }
            if !goes_on && self.reads.fetching() >= self.terms.fetches_max {
                return asked;
            }
            last = pack;
            if let Source::Chunk { extent, .. } = piece.source
                && !self.cache.has(&extent)
            {
                new.extend(self.wait_for(extent, (inode, offset), None, Urgency::Ahead));
            }
            asked = offset.saturating_add(piece.length.into());
        }
        asked.max(until)
    }

    /// A program opens a file for reading: a short one is fetched whole, behind everything that calls wait for.
    pub(super) fn fetch_opened(&mut self, inode: Inode) {
        if self.reads.fetching() >= self.terms.fetches_max || !self.has_whole(inode) {
            // The first read brings content and rows.
            return;
        }
        let Some(whole) = self.files.plan_whole(inode, WHOLE_MAX) else {
            return;
        };
        let mut new = Vec::new();
        for (offset, piece) in whole.at_offsets() {
            if let Source::Chunk { extent, .. } = piece.source
                && !self.cache.has(&extent)
            {
                new.extend(self.wait_for(extent, (inode, offset), None, Urgency::Ahead));
            }
        }
        let ahead = Ahead {
            next: 0,
            window: AHEAD_MIN,
            asked: whole.octets(),
        };
        self.reads.ahead.insert(inode, ahead);
        self.fetch_together(new);
    }
}
