//! The comparison of the local disk with the log.

use std::collections::HashSet;

use vere_keep::record::Won;
use vere_ports::mail_accounts::Listed;

use crate::format::{Kind, MailId, Subject};
use crate::found::Found;

/// Commits outside the chain that are read at once.
const READS_MAX: usize = 16;

/// The comparison.
#[derive(Debug)]
pub struct Confirm {
    /// The newest commit of the local disk.
    pub head: Won,
    /// The log is listed from this UID on: commits outside the chain may be there that no mount has merged.
    pub first: u32,
    /// The parent of the oldest commit of the chain on the local disk.
    pub below: MailId,
    /// Commits of the local disk, and mails of the log that were read since.
    pub uids: HashSet<u32>,
    /// The ids of these commits.
    pub ids: HashSet<MailId>,
    /// Questions without an answer.
    pub asked: usize,
    /// The listing of the log: UIDVALIDITY, the next UID, and mails.
    pub log: Option<(u32, u32, Vec<Listed>)>,
    /// Whether the log has the newest commit, as far as known.
    pub has_head: Option<bool>,
    /// Whether a question of this round has failed.
    pub has_failed: bool,
    /// Whether the log is another log than that of the local disk.
    pub is_refused: bool,
}

/// A question of the comparison.
#[derive(Debug, Clone, Copy)]
pub enum ConfirmTicket {
    /// The log from a UID on.
    Log,
    /// The newest commit.
    Head,
    /// A mail below the newest commit, absent on the local disk.
    Outside(u32),
}

impl Confirm {
    /// With every commit of the local disk.
    pub fn new<'a>(
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
    pub fn unread(&self) -> Vec<u32> {
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
