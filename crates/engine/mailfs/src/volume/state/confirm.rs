//! The comparison of the local disk with the log.

use hashbrown::HashSet;
use vere_ports::mail_accounts::Listed;

use crate::format::{Kind, MailId, Subject};
use crate::volume::found::Found;
use crate::volume::record::Won;

/// Commits outside the chain that are read at once.
const READS_MAX: usize = 16;

/// The comparison.
#[derive(Debug)]
pub(crate) struct Confirm {
    /// The newest commit of the local disk.
    pub(crate) head: Won,
    /// The log is listed from this UID on: commits outside the chain may be there that no mount has merged.
    pub(crate) first: u32,
    /// The parent of the oldest commit of the chain on the local disk.
    pub(crate) below: MailId,
    /// Commits of the local disk, and mails of the log that were read since.
    pub(crate) uids: HashSet<u32>,
    pub(crate) ids: HashSet<MailId>,
    /// Questions without an answer.
    pub(crate) asked: usize,
    pub(crate) log: Option<(u32, u32, Vec<Listed>)>,
    /// Whether the log has the newest commit, as far as known.
    pub(crate) has_head: Option<bool>,
    pub(crate) has_failed: bool,
    pub(crate) is_refused: bool,
}

/// A question of the comparison.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ConfirmTicket {
    /// The log from a UID on.
    Log,
    /// The newest commit.
    Head,
    /// A mail below the newest commit, absent on the local disk.
    Outside(u32),
}

impl Confirm {
    /// With every commit of the local disk.
    pub(crate) fn new<'a>(
        head: Won,
        (first, below): (u32, MailId),
        commits: impl Iterator<Item = &'a Found>,
    ) -> Box<Self> {
        let (uids, ids) = commits.map(|found| (found.uid, found.id())).unzip();
        Box::new(Self {
            head,
            first,
            below,
            uids,
            ids,
            asked: 0,
            log: None,
            has_head: None,
            has_failed: false,
            is_refused: false,
        })
    }

    /// Commits below the newest one, absent on the local disk.
    pub(crate) fn unread(&self) -> Vec<u32> {
        let mails = self.log.iter().flat_map(|(_, _, mails)| mails);
        let mails = mails.filter(|mail| mail.uid < self.head.uid && !self.uids.contains(&mail.uid));
        let is_unknown = |mail: &&Listed| {
            let subject = Subject::parse(&mail.subject);
            subject.is_ok_and(|of| of.kind == Kind::Commit && !self.ids.contains(&of.mail))
        };
        let unread = mails.filter(is_unknown).map(|mail| mail.uid);
        unread.take(READS_MAX).collect()
    }
}
