//! Checking a store against itself.

use std::collections::BTreeSet;

use vere_ports::directory::AccountName;
use vere_ports::mail_meta::{MetaEngine, Partition};
use vere_ports::storage::Storage;

use crate::error::StoreError;
use crate::log::Damage;
use crate::model::{BlobId, MailboxId, MailboxName, Uid};
use crate::rows::{KeptCount, MailboxHead};
use crate::snapshot::Message;
use crate::store::Store;

/// A fault found in a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// A mailbox of an account's list does not exist, or belongs to another account.
    Unlisted {
        /// The account.
        account: AccountName,
        /// The name in its list.
        name: MailboxName,
    },
    /// A mailbox is in no list, so no client reaches the mailbox. A crash during creation leaves such a mailbox,
    /// without messages.
    Unreachable {
        /// The mailbox.
        mailbox: MailboxId,
        /// Messages in it.
        messages: u32,
    },
    /// Counters of a mailbox differ from the sums over its messages.
    Counters {
        /// The mailbox.
        mailbox: MailboxId,
        /// What is wrong.
        reason: &'static str,
    },
    /// A message's body cannot be read.
    Body {
        /// The mailbox.
        mailbox: MailboxId,
        /// The message.
        uid: Uid,
        /// Why.
        error: StoreError,
    },
    /// An expunged message that is kept cannot be read, so it cannot be brought back.
    Kept {
        /// The mailbox.
        mailbox: MailboxId,
        /// The message.
        uid: Uid,
        /// Why.
        error: StoreError,
    },
    /// Records of the log are damaged, referenced or not. Metadata may still have their changes, but a backup of this
    /// log alone lacks the changes.
    Log(Damage),
    /// A segment's head or index is damaged; all records of the segment are intact.
    Segment {
        /// Its file.
        file: String,
    },
    /// The log cannot be looked through.
    Unread {
        /// Why.
        reason: String,
    },
}

/// The contents of a store in figures, and the faults found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CheckReport {
    /// Accounts.
    pub accounts: u64,
    /// Mailboxes.
    pub mailboxes: u64,
    /// Messages, each reference counted.
    pub messages: u64,
    /// Octets of messages, each reference counted.
    pub logical_octets: u64,
    /// Expunged messages that are kept.
    pub kept_messages: u64,
    /// Octets of these.
    pub kept_octets: u64,
    /// Bodies with references, of kept messages too.
    pub bodies: u64,
    /// Octets of messages, each body counted once.
    pub shared_octets: u64,
    /// Octets that referenced bodies take in the log.
    pub stored_octets: u64,
    /// Octets of the log.
    pub log_octets: u64,
    /// What is wrong.
    pub findings: Vec<Finding>,
}

/// Partitions looked at in one go.
const PARTITIONS: usize = 1_000;
/// Maximum number of listed findings.
const FINDINGS_MAX: usize = 1_000;

impl CheckReport {
    fn count(&mut self, message: &Message, kept: bool) {
        let (messages, octets) = match kept {
            true => (&mut self.kept_messages, &mut self.kept_octets),
            false => (&mut self.messages, &mut self.logical_octets),
        };
        *messages += 1;
        *octets += u64::from(message.size);
    }

    fn found(&mut self, finding: Finding) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(finding);
        }
    }
}

impl<S: Storage, M: MetaEngine> Store<S, M> {
    /// Reads every row, every body and every record of the log, and verifies that rows, counters and bodies agree.
    /// All changes must be synced before. Takes as long as reading the store twice, and eight octets of memory per
    /// body.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if metadata cannot be read.
    pub fn check_all(&mut self) -> Result<CheckReport, StoreError> {
        let mut report = CheckReport {
            log_octets: self.log.octets()?,
            ..CheckReport::default()
        };
        self.check_log(&mut report);
        let (mut listed, mut bodies) = (BTreeSet::new(), BTreeSet::new());
        let mut after = None;
        loop {
            let partitions = self.meta.partitions(after.as_ref(), PARTITIONS)?;
            // Accounts sort before mailboxes, so all lists are known when mailboxes come.
            for partition in &partitions {
                match partition {
                    Partition::Account(name) => {
                        self.check_account(name, &mut listed, &mut report)?
                    }
                    Partition::Mailbox(id) => {
                        self.check_mailbox(MailboxId(*id), &listed, &mut bodies, &mut report)?;
                    }
                }
            }
            let Some(last) = partitions.into_iter().next_back() else {
                return Ok(report);
            };
            after = Some(last);
        }
    }

    /// Looks for damage in records that nobody reads while the metadata are whole.
    fn check_log(&self, report: &mut CheckReport) {
        let survey = match self.log.survey() {
            Ok(survey) => survey,
            Err(error) => {
                let reason = error.to_string();
                return report.found(Finding::Unread { reason });
            }
        };
        let lost = survey.damage.iter().map(|damage| damage.file.as_str());
        let lost: BTreeSet<&str> = lost.collect();
        let unsound = survey
            .unsound()
            .filter(|file| !lost.contains(file.as_str()));
        for file in unsound {
            report.found(Finding::Segment { file });
        }
        for damage in &survey.damage {
            report.found(Finding::Log(damage.clone()));
        }
    }

    fn check_account(
        &mut self,
        name: &AccountName,
        listed: &mut BTreeSet<MailboxId>,
        report: &mut CheckReport,
    ) -> Result<(), StoreError> {
        report.accounts += 1;
        let account = self.account(name)?;
        let asides = account.asides_by_age().into_iter();
        let asides = asides.map(|(id, row)| (row.name.clone(), id));
        let mailboxes = account.mailboxes.iter();
        let mailboxes = mailboxes.map(|(mailbox, row)| (mailbox.clone(), row.id));
        let all: Vec<_> = mailboxes.chain(asides).collect();
        for (mailbox, id) in all {
            listed.insert(id);
            let owner = self.any_mailbox(id).map(|mailbox| &mailbox.owner);
            if !owner.is_ok_and(|owner| owner == name) {
                report.found(Finding::Unlisted {
                    account: name.clone(),
                    name: mailbox,
                });
            }
        }
        Ok(())
    }

    fn check_mailbox(
        &mut self,
        id: MailboxId,
        listed: &BTreeSet<MailboxId>,
        bodies: &mut BTreeSet<BlobId>,
        report: &mut CheckReport,
    ) -> Result<(), StoreError> {
        let head = match self.any_mailbox(id) {
            Ok(mailbox) => mailbox.head,
            // Deleted: the partition is empty, its version stays.
            Err(StoreError::NoMailbox) => return Ok(()),
            Err(error) => return Err(error),
        };
        let aside = self.kept.is_aside(id);
        report.mailboxes += u64::from(!aside);
        if !listed.contains(&id) {
            report.found(Finding::Unreachable {
                mailbox: id,
                messages: head.messages,
            });
        }
        let chunks = self.any_messages(id)?;
        let mut counted = MailboxHead::new(head.uid_validity);
        let mut reason = None;
        for message in chunks.iter_from(0) {
            counted.count_in(message.flags, message.size);
            if message.uid >= head.uid_next {
                reason = Some("a UID is not below UIDNEXT");
            }
            if message.mod_seq > head.mod_seq {
                reason = Some("a mod-sequence is above HIGHESTMODSEQ");
            }
            report.count(message, aside);
            if let Err(error) = self.check_body(id, message, bodies, report) {
                report.found(Finding::Body {
                    mailbox: id,
                    uid: message.uid,
                    error,
                });
            }
        }
        drop(chunks);
        reason = self.check_kept(id, &head, bodies, report)?.or(reason);
        let numbers = |head: &MailboxHead| (head.messages, head.unseen, head.deleted, head.octets);
        if numbers(&counted) != numbers(&head) {
            reason = Some("the counters do not match the messages");
        }
        if let Some(reason) = reason {
            report.found(Finding::Counters {
                mailbox: id,
                reason,
            });
        }
        Ok(())
    }

    /// Reads the kept messages of a mailbox. Returns what is wrong with their numbers.
    fn check_kept(
        &mut self,
        id: MailboxId,
        head: &MailboxHead,
        bodies: &mut BTreeSet<BlobId>,
        report: &mut CheckReport,
    ) -> Result<Option<&'static str>, StoreError> {
        let (mut counted, mut reason) = (KeptCount::default(), None);
        let mut after = Vec::new();
        while let Some((key, _, row)) = self.kept_row_after(&Partition::Mailbox(id.0), &after)? {
            for (uid, row) in &row.messages {
                counted.add(row.size);
                if *uid >= head.uid_next {
                    reason = Some("the UID of an expunged message is not below UIDNEXT");
                }
                let message = Message::of(*uid, row);
                report.count(&message, true);
                if let Err(error) = self.check_body(id, &message, bodies, report) {
                    report.found(Finding::Kept {
                        mailbox: id,
                        uid: *uid,
                        error,
                    });
                }
            }
            after = key;
        }
        if head.kept.unwrap_or_default() != counted {
            reason = Some("the counters do not match the expunged messages");
        }
        Ok(reason)
    }

    fn check_body(
        &self,
        id: MailboxId,
        message: &Message,
        bodies: &mut BTreeSet<BlobId>,
        report: &mut CheckReport,
    ) -> Result<(), StoreError> {
        let mut body = self.body_reader().open(message.blob)?;
        let own = if message.own_fields {
            self.own_fields(id, message.uid)?.render().len()
        } else {
            0
        };
        if body.octets() + own != message.size as usize {
            return Err(StoreError::Damaged(
                "the size of the message differs from the record".to_owned(),
            ));
        }
        if bodies.insert(message.blob) {
            let octets = body.message()?;
            if blake3::hash(&octets).as_bytes() != body.hash() {
                return Err(StoreError::Damaged(
                    "the hash of the message differs from the record".to_owned(),
                ));
            }
            report.bodies += 1;
            report.shared_octets += octets.len() as u64;
            report.stored_octets += body.stored_octets();
        }
        Ok(())
    }
}
