//! What a check found, in figures and sentences.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use vere_process::wording::{self, size};
use vere_store::{CheckReport, Finding};

/// The contents of the mail store, and the faults found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoreFigures {
    accounts: u64,
    mailboxes: u64,
    messages: u64,
    /// Octets of messages, each reference counted.
    logical_octets: u64,
    /// Expunged messages that are kept, and their octets.
    kept_messages: u64,
    kept_octets: u64,
    bodies: u64,
    /// Octets of messages, each body counted once.
    shared_octets: u64,
    /// Octets of bodies with references in the log.
    stored_octets: u64,
    log_octets: u64,
    search_index_octets: u64,
    /// Octets of the log that nothing needs.
    pub(crate) reclaimable_octets: u64,
    /// A sentence for each fault.
    findings: Vec<String>,
}

impl StoreFigures {
    /// Joins what was found in the store and in the search index.
    pub(crate) fn of(report: &CheckReport, index: (u64, Vec<String>), reclaimable: u64) -> Self {
        let (search_index_octets, index_findings) = index;
        let findings = report.findings.iter().map(sentence);
        Self {
            accounts: report.accounts,
            mailboxes: report.mailboxes,
            messages: report.messages,
            logical_octets: report.logical_octets,
            kept_messages: report.kept_messages,
            kept_octets: report.kept_octets,
            bodies: report.bodies,
            shared_octets: report.shared_octets,
            stored_octets: report.stored_octets,
            log_octets: report.log_octets,
            search_index_octets,
            reclaimable_octets: reclaimable,
            findings: findings.chain(index_findings).collect(),
        }
    }

    /// Whether a fault was found.
    pub(crate) fn is_wrong(&self) -> bool {
        !self.findings.is_empty()
    }

    /// The figures as a table.
    pub(crate) fn counts(&self) -> String {
        let rows = [
            ("accounts", self.accounts.to_string()),
            ("mailboxes", self.mailboxes.to_string()),
            ("messages", self.messages.to_string()),
            ("  as clients count them", size(self.logical_octets)),
            ("expunged messages kept", self.kept_messages.to_string()),
            ("  as clients counted them", size(self.kept_octets)),
            ("bodies", self.bodies.to_string()),
            ("  each counted once", size(self.shared_octets)),
            ("  as they are stored", size(self.stored_octets)),
            ("log", size(self.log_octets)),
            ("search index", size(self.search_index_octets)),
        ];
        rows.iter().fold(String::new(), |mut text, (name, value)| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name:<24} {value:>14}");
            text
        })
    }

    /// The faults, a line each.
    pub(crate) fn findings(&self) -> String {
        match self.findings.as_slice() {
            [] => "nothing is wrong\n".to_owned(),
            sentences => sentences.join("\n") + "\n",
        }
    }

    /// For programs.
    pub(crate) fn as_json(&self) -> String {
        format!("{:#}\n", serde_json::json!(self))
    }
}

/// A finding in words.
pub(crate) fn sentence(finding: &Finding) -> String {
    match finding {
        Finding::Unlisted { account, name } => {
            format!("{account}: the list names {name}, which is not there")
        }
        Finding::Unreachable { mailbox, messages } => {
            format!(
                "mailbox {}: in no list, {} in it",
                mailbox.0,
                wording::messages(*messages)
            )
        }
        Finding::Counters { mailbox, reason } => format!("mailbox {}: {reason}", mailbox.0),
        Finding::Body {
            mailbox,
            uid,
            error,
        } => {
            format!("mailbox {}, message {uid}: {error}", mailbox.0)
        }
        Finding::Kept {
            mailbox,
            uid,
            error,
        } => {
            format!(
                "mailbox {}, expunged message {uid}: cannot be brought back: {error}",
                mailbox.0
            )
        }
        Finding::Log(damage) => format!(
            "{}: {} octets of the log, from position {} on, are not what was written \
             (`vere store repair --dry-run` says what is lost with them)",
            damage.file,
            damage.to - damage.from,
            damage.from
        ),
        Finding::Segment { file } => {
            format!("{file}: its head or its index is damaged, its records are whole")
        }
        Finding::Unread { reason } => format!("the log cannot be read: {reason}"),
    }
}
