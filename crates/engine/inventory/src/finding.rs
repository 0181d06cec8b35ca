//! What a check finds.

use std::fmt;

use crate::format::{MailCopy, MailId};

use vere_placement::accounts::mailbox_name;

/// Findings of a report; further ones are counted.
const FINDINGS_MAX: usize = 100_000;

/// How thorough a check is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CheckTerms {
    /// Whether every pack and commit is read and opened.
    pub data: bool,
    /// Whether rows are corrected and copies made again.
    pub repair: bool,
}

/// The place of a mail.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct MailPlace {
    /// The account.
    pub account: u16,
    /// The mailbox, below the volume's folder.
    pub mailbox: String,
    /// The UID.
    pub uid: u32,
}

impl MailPlace {
    /// The place of a copy.
    #[must_use]
    pub fn of(copy: MailCopy) -> Self {
        Self {
            account: copy.account,
            mailbox: mailbox_name(copy.mailbox),
            uid: copy.uid,
        }
    }
}

impl fmt::Display for MailPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            account,
            mailbox,
            uid,
        } = self;
        write!(f, "account {account}, mailbox {mailbox}, UID {uid}")
    }
}

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Nothing of the volume is in danger.
    Note,
    /// Mails that only cost room; `gc` removes them.
    Waste,
    /// A copy or a row is wrong, or an account cannot be read.
    Damage,
    /// Content that no account has.
    Loss,
}

/// Something that a check has found.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[allow(missing_docs, reason = "the messages tell what the fields are")]
pub enum Finding {
    #[error("account {account} was not read: {fault}")]
    Unread { account: u16, fault: String },
    #[error("account {account}, mailbox {mailbox}: expected UIDVALIDITY {expected}; found {found}")]
    Renumbered {
        account: u16,
        mailbox: String,
        expected: u32,
        found: u32,
    },
    #[error("{place}: expected a copy of pack {pack:x}; found no such mail. Files: {}", listed(.paths))]
    Missing {
        place: MailPlace,
        pack: u64,
        paths: Vec<String>,
    },
    #[error("{place}: the copy of pack {pack:x} is damaged: {reason}. Files: {}", listed(.paths))]
    Damaged {
        place: MailPlace,
        pack: u64,
        reason: String,
        paths: Vec<String>,
    },
    #[error("{place}: the copy of pack {pack:x} has UID {uid} now")]
    Moved {
        place: MailPlace,
        pack: u64,
        uid: u32,
    },
    #[error("{place}: a copy of pack {pack:x} that no row names")]
    Unnamed { place: MailPlace, pack: u64 },
    #[error("account {account} has no copy of pack {pack:x} yet")]
    Lacking { account: u16, pack: u64 },
    #[error("{path}: no account has the octets from {offset} on (pack {pack:x})")]
    Lost {
        path: String,
        offset: u64,
        pack: u64,
    },
    #[error("{place}: a duplicate of UID {of}")]
    Duplicate { place: MailPlace, of: u32 },
    #[error("{place}: mail {mail} of this volume, which no row names")]
    Orphan { place: MailPlace, mail: MailId },
    #[error("{place}: no mail of this volume: `{subject}`")]
    Foreign { place: MailPlace, subject: String },
    #[error("account {account}: mailbox {mailbox} is none of this volume")]
    Strange { account: u16, mailbox: String },
    #[error("{place}: wrong subject: {reason}")]
    Subject { place: MailPlace, reason: String },
    #[error("{place}: forged or damaged: {reason}")]
    Forged { place: MailPlace, reason: String },
    #[error("the chain of commits, generation {generation}: {reason}")]
    Chain { generation: u64, reason: String },
    #[error("{name}: {reason}")]
    Tree { name: String, reason: String },
    #[error("pack {pack:x}: {reason}")]
    Pack { pack: u64, reason: String },
}

impl Finding {
    /// A word for the kind, for machines.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Unread { .. } => "unread",
            Self::Renumbered { .. } => "renumbered",
            Self::Missing { .. } => "missing",
            Self::Damaged { .. } => "damaged",
            Self::Moved { .. } => "moved",
            Self::Unnamed { .. } => "unnamed",
            Self::Lacking { .. } => "lacking",
            Self::Lost { .. } => "lost",
            Self::Duplicate { .. } => "duplicate",
            Self::Orphan { .. } => "orphan",
            Self::Foreign { .. } => "foreign",
            Self::Strange { .. } => "strange",
            Self::Subject { .. } => "subject",
            Self::Forged { .. } => "forged",
            Self::Chain { .. } => "chain",
            Self::Tree { .. } => "tree",
            Self::Pack { .. } => "pack",
        }
    }

    /// How much the finding matters.
    #[must_use]
    pub const fn weight(&self) -> Weight {
        match self {
            Self::Lost { .. } => Weight::Loss,
            Self::Duplicate { .. } | Self::Orphan { .. } | Self::Unnamed { .. } => Weight::Waste,
            Self::Lacking { .. } | Self::Foreign { .. } | Self::Strange { .. } => Weight::Note,
            _ => Weight::Damage,
        }
    }
}

/// Paths for people.
fn listed(paths: &[String]) -> String {
    match paths {
        [] => "none".to_owned(),
        paths => paths.join(", "),
    }
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CheckReport {
    /// What was found, in order of kinds and places.
    pub findings: Vec<Finding>,
    /// Findings beyond the bound of a report.
    pub left_out: usize,
    /// Mails listed.
    pub mails: usize,
    /// Packs that rows name.
    pub packs: usize,
    /// Inodes.
    pub inodes: usize,
    /// Mails read whole and verified.
    pub verified: usize,
    /// Rows corrected and copies made again.
    pub repaired: usize,
}

impl CheckReport {
    /// Adds a finding, or counts one beyond the bound.
    pub fn add(&mut self, finding: Finding) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(finding);
        } else {
            self.left_out = self.left_out.saturating_add(1);
        }
    }

    /// The weight of the worst finding; absent without findings.
    #[must_use]
    pub fn worst(&self) -> Option<Weight> {
        self.findings.iter().map(Finding::weight).max()
    }

    /// Whether nothing is wrong: waste and notes are no harm.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.worst() < Some(Weight::Damage)
    }
}
