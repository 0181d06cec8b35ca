//! Checking a store against itself, in steps, so that a store can serve clients meanwhile.
//!
//! [`Store::check_rows`] compares the rows of one account or mailbox at one moment. [`Check::compare`] reads the bodies
//! of a mailbox, and [`LogSurvey::run`] the log, both without access to the store.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use vere_ports::directory::AccountName;
use vere_ports::mail_meta::{MetaEngine, Partition};
use vere_ports::storage::Storage;

use crate::account::Account;
use crate::body::BodyReader;
use crate::committed::Committed;
use crate::error::StoreError;
use crate::log::{Damage, LogFile, Survey};
use crate::model::{BlobId, MailboxId, MailboxName, Uid};
use crate::rows::{KeptCount, MailboxHead, RecipientFields};
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

/// Partitions read at once.
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

/// A check under way. Takes eight octets of memory for each body.
#[derive(Debug, Default)]
pub struct Check {
    /// Partitions that were read, and not looked at.
    ahead: VecDeque<Partition>,
    after: Option<Partition>,
    /// The mailboxes of accounts.
    listed: BTreeMap<MailboxId, Place>,
    bodies: BTreeSet<BlobId>,
    report: CheckReport,
}

/// The place of a mailbox in its account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In the list.
    Listed,
    /// Deleted, with kept messages.
    Aside,
    /// Deleted, and not empty yet.
    Purged,
}

/// A message whose body is to be compared with its row.
#[derive(Debug)]
pub struct Claim {
    mailbox: MailboxId,
    message: Message,
    /// Octets of the message's own fields, which stand before the body.
    own: Result<usize, StoreError>,
    kept: bool,
}

impl Claim {
    /// Octets of the message.
    #[must_use]
    pub fn octets(&self) -> u64 {
        u64::from(self.message.size)
    }
}

impl Check {
    /// Reads the body of a message, once for all messages with the body, and compares it with the claim.
    pub fn compare<S: Storage>(&mut self, reader: &BodyReader<S>, claim: Claim) {
        let (mailbox, uid, kept) = (claim.mailbox, claim.message.uid, claim.kept);
        if let Err(error) = self.compared(reader, claim) {
            self.report.found(match kept {
                true => Finding::Kept {
                    mailbox,
                    uid,
                    error,
                },
                false => Finding::Body {
                    mailbox,
                    uid,
                    error,
                },
            });
        }
    }

    fn compared<S: Storage>(
        &mut self,
        reader: &BodyReader<S>,
        claim: Claim,
    ) -> Result<(), StoreError> {
        let message = claim.message;
        let mut body = reader.open(message.blob)?;
        if body.octets() + claim.own? != message.size as usize {
            return Err(StoreError::Damaged(
                "the size of the message differs from the record".to_owned(),
            ));
        }
        if self.bodies.insert(message.blob) {
            let octets = body.message()?;
            if blake3::hash(&octets).as_bytes() != body.hash() {
                return Err(StoreError::Damaged(
                    "the hash of the message differs from the record".to_owned(),
                ));
            }
            self.report.bodies += 1;
            self.report.shared_octets += octets.len() as u64;
            self.report.stored_octets += body.stored_octets();
        }
        Ok(())
    }

    /// Octets of the bodies that were read, as the log has them.
    #[must_use]
    pub fn stored_octets(&self) -> u64 {
        self.report.stored_octets
    }

    /// Takes over what a survey of the log found.
    pub fn surveyed(&mut self, octets: u64, findings: Vec<Finding>) {
        self.report.log_octets = octets;
        for finding in findings {
            self.report.found(finding);
        }
    }

    /// The contents in figures, and the faults found so far.
    #[must_use]
    pub fn finish(self) -> CheckReport {
        self.report
    }
}

/// Looks for damage in records that nobody reads while the metadata are whole, without access to the store.
#[derive(Debug)]
#[must_use = "nothing is looked at until it runs"]
pub struct LogSurvey<S> {
    storage: S,
    /// Changes before this position are safe.
    synced: u64,
    /// The files, each with the octets that belong to this moment.
    files: Vec<LogFile>,
}

impl<S: Storage> LogSurvey<S> {
    /// Octets of the files.
    #[must_use]
    pub fn octets(&self) -> u64 {
        self.files.iter().map(|file| file.octets).sum()
    }

    /// Reads all records. The files must not be reclaimed meanwhile. `told` gets the octets that were read, file by file.
    #[must_use]
    pub fn run(&self, told: &dyn Fn(u64)) -> Vec<Finding> {
        // Before the first change there is no record that could be damaged.
        if self.files.is_empty() {
            return Vec::new();
        }
        let survey = match Survey::of_growing(&self.storage, self.synced, &self.files, told) {
            Ok(survey) => survey,
            Err(error) => {
                let reason = error.to_string();
                return vec![Finding::Unread { reason }];
            }
        };
        let lost = survey.damage.iter().map(|damage| damage.file.as_str());
        let lost: BTreeSet<&str> = lost.collect();
        let unsound = survey
            .unsound()
            .filter(|file| !lost.contains(file.as_str()));
        let unsound = unsound.map(|file| Finding::Segment { file });
        let damage = survey.damage.iter().cloned().map(Finding::Log);
        unsound.chain(damage).collect()
    }
}

impl Account {
    /// The places of all mailboxes.
    fn places(&self) -> BTreeMap<MailboxId, Place> {
        let listed = self.mailboxes.values().map(|row| (row.id, Place::Listed));
        let aside = self.asides_by_age().into_iter();
        let aside = aside.map(|(id, _)| (id, Place::Aside));
        let purged = self.purged().map(|id| (id, Place::Purged));
        listed.chain(aside).chain(purged).collect()
    }
}

impl<S: Storage, M: MetaEngine> Store<S, M> {
    /// Reads every row, every body and every record of the log, and verifies that rows, counters and bodies agree.
    /// All changes must be synced before. Takes as long as reading the store twice.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if metadata cannot be read.
    pub fn check_all(&mut self) -> Result<CheckReport, StoreError> {
        let mut check = Check::default();
        let survey = self.log_survey()?.into_value();
        check.surveyed(self.log.octets()?, survey.run(&|_| {}));
        let reader = self.body_reader();
        while let Some(claims) = self.check_rows(&mut check)?.into_value() {
            for claim in claims {
                check.compare(&reader, claim);
            }
        }
        Ok(check.finish())
    }

    /// The survey of the log up to the last synced change.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the files cannot be listed.
    pub fn log_survey(&self) -> Result<Committed<LogSurvey<S>>, StoreError> {
        let survey = LogSurvey {
            storage: self.log.storage().clone(),
            synced: self.log.synced(),
            files: self.log_files()?,
        };
        Ok(Committed::new(survey, self.log.synced()))
    }

    /// Looks at the rows of the next account or mailbox. Returns the messages of the mailbox, to be compared with their
    /// bodies, which a reader of a later moment has once the claims are safe; `None` behind the last mailbox.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if metadata cannot be read.
    pub fn check_rows(
        &mut self,
        check: &mut Check,
    ) -> Result<Committed<Option<Vec<Claim>>>, StoreError> {
        let claims = self.next_rows(check)?;
        Ok(Committed::new(claims, self.log.end()))
    }

    fn next_rows(&mut self, check: &mut Check) -> Result<Option<Vec<Claim>>, StoreError> {
        if check.ahead.is_empty() {
            let partitions = self.meta.partitions(check.after.as_ref(), PARTITIONS)?;
            check.ahead = partitions.into();
        }
        let Some(partition) = check.ahead.pop_front() else {
            return Ok(None);
        };
        check.after = Some(partition.clone());
        // Accounts sort before mailboxes, so all lists are known when mailboxes come.
        match partition {
            Partition::Account(name) => {
                self.check_account(&name, check)?;
                Ok(Some(Vec::new()))
            }
            Partition::Mailbox(id) => self.check_mailbox(MailboxId(id), check).map(Some),
        }
    }

    fn check_account(&mut self, name: &AccountName, check: &mut Check) -> Result<(), StoreError> {
        check.report.accounts += 1;
        let account = self.known_account(name)?;
        let asides = account.asides_by_age().into_iter();
        let asides = asides.map(|(id, row)| (row.name.clone(), id));
        let mailboxes = account.mailboxes.iter();
        let mailboxes = mailboxes.map(|(mailbox, row)| (mailbox.clone(), row.id));
        let all: Vec<_> = mailboxes.chain(asides).collect();
        check.listed.extend(account.places());
        for (mailbox, id) in all {
            let owner = self.any_mailbox(id).map(|mailbox| &mailbox.owner);
            if !owner.is_ok_and(|owner| owner == name) {
                check.report.found(Finding::Unlisted {
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
        check: &mut Check,
    ) -> Result<Vec<Claim>, StoreError> {
        let (head, owner) = match self.any_mailbox(id) {
            Ok(mailbox) => (mailbox.head, mailbox.owner.clone()),
            // Deleted: the partition is empty, its version stays.
            Err(StoreError::NoMailbox) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let place = match check.listed.remove(&id) {
            // The mailbox may be younger than the look at its account.
            None => self.known_account(&owner)?.places().remove(&id),
            // The mailbox may have been deleted since.
            Some(Place::Listed) if self.kept.is_aside(id) => Some(Place::Aside),
            place => place,
        };
        match place {
            Some(Place::Purged) => return Ok(Vec::new()),
            Some(_) => {}
            None => check.report.found(Finding::Unreachable {
                mailbox: id,
                messages: head.messages,
            }),
        }
        let aside = place == Some(Place::Aside);
        check.report.mailboxes += u64::from(!aside);
        let mut claims = Vec::with_capacity(head.messages as usize);
        let counters = self.check_counters(id, &head, aside, &mut claims)?;
        let kept = self.check_kept(id, &head, &mut claims)?;
        for claim in &claims {
            check.report.count(&claim.message, claim.kept);
        }
        if let Some(reason) = counters.or(kept) {
            check.report.found(Finding::Counters {
                mailbox: id,
                reason,
            });
        }
        Ok(claims)
    }

    /// Adds up the messages of a mailbox. Returns what is wrong with their numbers.
    fn check_counters(
        &mut self,
        id: MailboxId,
        head: &MailboxHead,
        aside: bool,
        claims: &mut Vec<Claim>,
    ) -> Result<Option<&'static str>, StoreError> {
        let chunks = self.passing_messages(id)?;
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
            claims.push(self.claim(id, *message, aside));
        }
        let numbers = |head: &MailboxHead| (head.messages, head.unseen, head.deleted, head.octets);
        if numbers(&counted) != numbers(head) {
            reason = Some("the counters do not match the messages");
        }
        Ok(reason)
    }

    /// Reads the kept messages of a mailbox. Returns what is wrong with their numbers.
    fn check_kept(
        &mut self,
        id: MailboxId,
        head: &MailboxHead,
        claims: &mut Vec<Claim>,
    ) -> Result<Option<&'static str>, StoreError> {
        let (mut counted, mut reason) = (KeptCount::default(), None);
        let mut after = Vec::new();
        while let Some((key, _, row)) = self.kept_row_after(&Partition::Mailbox(id.0), &after)? {
            for (uid, row) in &row.messages {
                counted.add(row.size);
                if *uid >= head.uid_next {
                    reason = Some("the UID of an expunged message is not below UIDNEXT");
                }
                claims.push(self.claim(id, Message::of(*uid, row), true));
            }
            after = key;
        }
        if head.kept.unwrap_or_default() != counted {
            reason = Some("the counters do not match the expunged messages");
        }
        Ok(reason)
    }

    fn claim(&self, mailbox: MailboxId, message: Message, kept: bool) -> Claim {
        let own = match message.own_fields {
            true => self.own_fields(mailbox, message.uid),
            false => Ok(RecipientFields::default()),
        };
        Claim {
            mailbox,
            message,
            own: own.map(|fields| fields.render().len()),
            kept,
        }
    }
}
