//! A mail account in memory, as requests of [`vere_ports::mail_accounts`] see it. A test decides about each request whether it
//! is carried out and whether its answer arrives.

use std::collections::BTreeMap;

use bytes::Bytes;
use vere_ports::mail_accounts::{Answer, Fault, Listed, Part, Request, UidRange};

/// An account.
#[derive(Debug, Clone, Default)]
pub struct MemoryAccount {
    mailboxes: BTreeMap<String, MemoryMailbox>,
    /// Octets of all mails that the account takes; no bound if absent.
    pub quota: Option<u64>,
    /// Octets of a mail that the account takes; no bound if absent.
    pub mail_max: Option<usize>,
    /// Whether the account takes no change.
    pub read_only: bool,
    /// Whether the answer to APPEND tells the UID (UIDPLUS).
    pub tells_uids: bool,
    last_validity: u32,
}

/// A mailbox.
#[derive(Debug, Clone)]
pub struct MemoryMailbox {
    /// UIDVALIDITY.
    pub uid_validity: u32,
    /// UIDNEXT.
    pub uid_next: u32,
    /// The mails.
    pub mails: BTreeMap<u32, Bytes>,
}

impl MemoryAccount {
    /// An empty account that tells UIDs.
    #[must_use]
    pub fn new() -> Self {
        Self {
            tells_uids: true,
            ..Self::default()
        }
    }

    /// A mailbox, to look into or to damage.
    pub fn mailbox(&mut self, name: &str) -> Option<&mut MemoryMailbox> {
        self.mailboxes.get_mut(name)
    }

    /// Puts a mailbox there, such as one of another program that takes room.
    pub fn add_mailbox(&mut self, name: &str, mailbox: MemoryMailbox) {
        self.mailboxes.insert(name.to_owned(), mailbox);
    }

    /// Names of mailboxes.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.mailboxes.keys().map(String::as_str)
    }

    /// Octets of all mails.
    #[must_use]
    pub fn octets(&self) -> u64 {
        let mails = self
            .mailboxes
            .values()
            .flat_map(|mailbox| mailbox.mails.values());
        mails.map(|mail| mail.len() as u64).sum()
    }

    /// Mails of all mailboxes.
    #[must_use]
    pub fn mails(&self) -> usize {
        self.mailboxes
            .values()
            .map(|mailbox| mailbox.mails.len())
            .sum()
    }

    /// Carries a request out.
    ///
    /// # Errors
    ///
    /// The fault that an account in this state has.
    pub fn carry_out(&mut self, request: &Request) -> Result<Answer, Fault> {
        match request {
            Request::Append { mailbox, mail, .. } => self.append(mailbox, mail),
            Request::Read {
                mailbox,
                uid_validity,
                uid,
                parts,
            } => {
                let Some(found) = self.expect(mailbox, *uid_validity)? else {
                    return Ok(Answer::Gone);
                };
                let mail = found.mails.get(uid);
                Ok(mail.map_or(Answer::Gone, |mail| Answer::Read(body_parts(mail, parts))))
            }
            Request::List { mailbox, range } => Ok(self.list(mailbox, *range)),
            Request::Find { mailbox, word } => {
                let Some(found) = self.mailboxes.get(mailbox) else {
                    return Ok(Answer::Found(0, Vec::new()));
                };
                let has = |mail: &Bytes| subject(mail).contains(word.as_str());
                let uids = found.mails.iter().filter(|(_, mail)| has(mail));
                Ok(Answer::Found(
                    found.uid_validity,
                    uids.map(|(uid, _)| *uid).collect(),
                ))
            }
            Request::Remove {
                mailbox,
                uid_validity,
                uids,
            } => {
                if self.read_only {
                    return Err(Fault::ReadOnly("NO [READ-ONLY]".to_owned()));
                }
                if let Some(found) = self.expect(mailbox, *uid_validity)? {
                    found.mails.retain(|uid, _| !uids.contains(uid));
                }
                Ok(Answer::Removed)
            }
            Request::Mailboxes => Ok(Answer::Mailboxes(self.mailboxes.keys().cloned().collect())),
            Request::Quota => Ok(Answer::Quota(
                self.quota.map(|limit| (self.octets(), limit)),
            )),
            Request::Watch { .. } => Ok(Answer::Changed),
        }
    }

    fn append(&mut self, mailbox: &str, mail: &Bytes) -> Result<Answer, Fault> {
        if self.read_only {
            return Err(Fault::ReadOnly("NO [READ-ONLY]".to_owned()));
        }
        if let Some(max) = self.mail_max.filter(|max| mail.len() > *max) {
            return Err(Fault::TooBig(
                "NO [TOOBIG]".to_owned(),
                u32::try_from(max).ok(),
            ));
        }
        let after = self.octets() + mail.len() as u64;
        if self.quota.is_some_and(|quota| after > quota) {
            return Err(Fault::OverQuota("NO [OVERQUOTA]".to_owned()));
        }
        let last_validity = &mut self.last_validity;
        let found = self.mailboxes.entry(mailbox.to_owned()).or_insert_with(|| {
            *last_validity += 1;
            MemoryMailbox {
                uid_validity: *last_validity,
                uid_next: 1,
                mails: BTreeMap::new(),
            }
        });
        let uid = found.uid_next;
        found.uid_next += 1;
        found.mails.insert(uid, mail.clone());
        let place = self.tells_uids.then_some((found.uid_validity, uid));
        Ok(Answer::Appended(place))
    }

    fn list(&self, mailbox: &str, range: UidRange) -> Answer {
        let Some(found) = self.mailboxes.get(mailbox) else {
            return Answer::Listed {
                uid_validity: 0,
                uid_next: 0,
                mails: Vec::new(),
            };
        };
        let last = range.last.unwrap_or(u32::MAX);
        let within = if range.first <= last {
            range.first..=last
        } else {
            last..=range.first
        };
        let listed = |(uid, mail): (&u32, &Bytes)| Listed {
            uid: *uid,
            size: u32::try_from(mail.len()).unwrap_or(u32::MAX),
            subject: subject(mail),
        };
        Answer::Listed {
            uid_validity: found.uid_validity,
            uid_next: found.uid_next,
            mails: found.mails.range(within).map(listed).collect(),
        }
    }

    fn expect(
        &mut self,
        mailbox: &str,
        expected: u32,
    ) -> Result<Option<&mut MemoryMailbox>, Fault> {
        let Some(found) = self.mailboxes.get_mut(mailbox) else {
            return Ok(None);
        };
        if found.uid_validity != expected {
            return Err(Fault::Renumbered {
                expected,
                found: found.uid_validity,
            });
        }
        Ok(Some(found))
    }
}

/// The octets behind the empty line.
fn body(mail: &Bytes) -> Bytes {
    let end = mail.windows(4).position(|octets| octets == b"\r\n\r\n");
    end.map_or_else(Bytes::new, |end| mail.slice(end + 4..))
}

fn body_parts(mail: &Bytes, parts: &[Part]) -> Vec<Bytes> {
    let body = body(mail);
    if parts.is_empty() {
        return vec![body];
    }
    let cut = |part: &Part| {
        let begin = body.len().min(part.offset as usize);
        let end = body.len().min(begin + part.length as usize);
        body.slice(begin..end)
    };
    parts.iter().map(cut).collect()
}

/// The subject, unfolded.
fn subject(mail: &Bytes) -> String {
    // Packs have millions of octets behind their header.
    let end = memchr::memmem::find(mail, b"\r\n\r\n").unwrap_or(mail.len());
    let header = String::from_utf8_lossy(&mail[..end]);
    let unfolded = header.replace("\r\n ", " ").replace("\r\n\t", " ");
    let subject = unfolded
        .lines()
        .find_map(|line| line.strip_prefix("Subject: "));
    subject.unwrap_or_default().to_owned()
}
