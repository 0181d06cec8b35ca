//! The beginning of a mount: the log is read, the chain gives the tree, and the journal gives what no commit has.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use vere_ports::files::{Caller, Errno};
use vere_ports::mail_accounts::{
    AccountId, Answer, Fault, Listed, Request, RequestId, UidRange, Urgency,
};
use vere_ports::storage::Storage;

use super::accounts::{Accounts, LOG_MAILBOX, mailbox_name};
use super::chain::Chain;
use super::job::Seals;
use super::journal::Journal;
use super::packs::{ChunkCache, Fates};
use super::record::Won;
use super::replay::Replay;
use super::state::Machine;
use super::state::commits::Commits;
use super::state::deadlines::Deadlines;
use super::state::opening::{Found, OpenError};
use super::state::reads::Reads;
use super::state::replicas::Replicas;
use super::state::uploads::Uploads;
use super::state::{Terms, Volume};
use super::step::{Moment, Notice};
use crate::format::commit::Record;
use crate::format::{FormatError, Keys, Kind, MailCopy, MailId, Subject, VolumeId, mail, open};
use crate::posix::{Files, Numbers, root_folder};
use crate::rows::{Key, PackRow, RowValue};
use crate::tree::{Change, Tree};

/// Permissions of a new root folder.
const ROOT_MODE: u16 = 0o755;

/// Commits read at once.
const READS_MAX: usize = 64;

/// What a volume is, besides its terms.
#[derive(Debug, Clone)]
pub struct Create {
    /// The volume.
    pub volume: VolumeId,
    /// The epoch of the key.
    pub epoch: u16,
    /// The keys of the epoch.
    pub keys: Arc<Keys>,
    /// This machine, for the list of writers.
    pub machine: Machine,
}

/// What an opening asks for.
#[derive(Debug)]
pub enum OpenStep {
    /// Asks an account; the answer goes to [`Opening::answered`].
    Ask(RequestId, AccountId, Urgency, Request),
    /// A line for the log.
    Log(Notice),
}

/// A volume that is being opened.
#[derive(Debug)]
pub struct Opening<S> {
    terms: Terms,
    of: Create,
    storage: S,
    random: [u8; 16],
    steps: VecDeque<OpenStep>,
    uid_validity: u32,
    /// The highest UID seen.
    known: u32,
    /// Commits to be read.
    unread: VecDeque<u32>,
    reading: HashMap<RequestId, u32>,
    commits: Vec<Found>,
    last_id: u64,
    is_listed: bool,
    error: Option<OpenError>,
}

impl<S: Storage> Opening<S> {
    /// Begins. The random begins the journal's new segment, and must never repeat.
    pub fn new(terms: Terms, of: Create, storage: S, random: [u8; 16]) -> Self {
        let mut opening = Self {
            terms,
            of,
            storage,
            random,
            steps: VecDeque::new(),
            uid_validity: 0,
            known: 0,
            unread: VecDeque::new(),
            reading: HashMap::new(),
            commits: Vec::new(),
            last_id: 0,
            is_listed: false,
            error: None,
        };
        let range = UidRange {
            first: 1,
            last: None,
        };
        opening.ask(Request::List {
            mailbox: mailbox_name(LOG_MAILBOX),
            range,
        });
        opening
    }

    fn ask(&mut self, request: Request) -> RequestId {
        self.last_id = self.last_id.wrapping_add(1);
        let id = RequestId(self.last_id);
        let lead = AccountId(self.terms.lead);
        self.steps
            .push_back(OpenStep::Ask(id, lead, Urgency::Waited, request));
        id
    }

    /// The next step to carry out.
    pub fn poll(&mut self) -> Option<OpenStep> {
        self.steps.pop_front()
    }

    /// Whether [`Self::finish`] has what it needs, or an error.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.error.is_some()
            || (self.is_listed && self.unread.is_empty() && self.reading.is_empty())
    }

    /// Commits read so far, and in all.
    #[must_use]
    pub fn progress(&self) -> (usize, usize) {
        let left = self.unread.len().saturating_add(self.reading.len());
        (self.commits.len(), self.commits.len().saturating_add(left))
    }

    /// The account has answered.
    pub fn answered(&mut self, id: RequestId, answer: Result<Answer, Fault>) {
        let reading = self.reading.remove(&id);
        match (answer, reading) {
            (
                Ok(Answer::Listed {
                    uid_validity,
                    mails,
                    ..
                }),
                None,
            ) => self.listed(uid_validity, &mails),
            (Ok(Answer::Read(parts)), Some(uid)) => {
                let body = parts.into_iter().next().unwrap_or_default();
                self.read(uid, &body);
            }
            (Err(fault), _) => self.error = Some(OpenError::Account(self.terms.lead, fault)),
            // A mail that is gone was no part of the chain, or the chain breaks there.
            _ => {}
        }
        while self.reading.len() < READS_MAX
            && let Some(uid) = self.unread.pop_front()
        {
            let request = Request::Read {
                mailbox: mailbox_name(LOG_MAILBOX),
                uid_validity: self.uid_validity,
                uid,
                parts: Vec::new(),
            };
            let id = self.ask(request);
            self.reading.insert(id, uid);
        }
    }

    fn listed(&mut self, uid_validity: u32, mails: &[Listed]) {
        self.is_listed = true;
        self.uid_validity = uid_validity;
        for mail in mails {
            self.known = self.known.max(mail.uid);
            if Subject::parse(&mail.subject).is_ok_and(|subject| subject.kind == Kind::Commit) {
                self.unread.push_back(mail.uid);
            }
        }
    }

    fn read(&mut self, uid: u32, body: &[u8]) {
        match self.commit(uid, body) {
            Ok(found) => self.commits.push(found),
            Err(error) => self.steps.push_back(OpenStep::Log(Notice::Forged {
                account: AccountId(self.terms.lead),
                mailbox: mailbox_name(LOG_MAILBOX),
                uid,
                reason: error.to_string(),
            })),
        }
    }

    fn commit(&self, uid: u32, body: &[u8]) -> Result<Found, FormatError> {
        let encoding = self
            .terms
            .accounts
            .iter()
            .find(|terms| terms.account == self.terms.lead);
        let encoding = encoding.map_or(crate::format::Encoding::Base64, |terms| terms.encoding);
        let body = mail::unwrap(body, encoding)?;
        let opened = open(&body, &self.of.keys, None)?;
        let record = Record::decode(opened.last())?;
        if opened.head.kind != Kind::Commit {
            return Err(FormatError::Differs {
                what: "kind of the mail",
                expected: Kind::Commit as u64,
                found: opened.head.kind as u64,
            });
        }
        Ok(Found {
            uid,
            head: opened.head,
            octets: u32::try_from(body.len()).unwrap_or(u32::MAX),
            record,
        })
    }

    /// The volume, as the log and the journal have it.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn finish(self, now: Moment) -> Result<Volume<S>, OpenError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let lead = self.terms.lead;
        let chain = in_order(self.commits);
        let newest = chain.last().ok_or(OpenError::NoVolume(lead))?;
        let head = Won {
            commit: newest.head.mail,
            generation: newest.record.generation,
            uid_validity: self.uid_validity,
            uid: newest.uid,
        };
        let mut tree = Tree::new();
        for found in &chain {
            apply(&mut tree, found, lead)?;
        }
        let mut records = Vec::new();
        let journal = Journal::open(
            self.storage,
            self.of.keys.local(),
            self.random,
            |position, parts| {
                records.push((position, parts));
            },
        )?;
        let mut volume = assemble(
            self.terms,
            self.of,
            (tree, journal),
            now,
            Chain::new(head, self.known),
        );
        volume.accounts.number(lead, LOG_MAILBOX, self.uid_validity);
        let replay = Replay::of(&records, &chain)?;
        volume.replay(records, &replay)?;
        volume.number_mailboxes()?;
        volume.find_missing_copies()?;
        volume.begin()?;
        volume.make_copies();
        Ok(volume)
    }
}

impl Create {
    /// A new volume with an empty root folder of this owner. Its first commit is on its way at once: the volume is there when
    /// [`Volume::is_quiet`].
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn create<S: Storage>(
        self,
        terms: Terms,
        storage: S,
        random: [u8; 16],
        (owner, now): (Caller, Moment),
    ) -> Result<Volume<S>, OpenError> {
        let journal = Journal::open(storage, self.keys.local(), random, |_, _| {})?;
        let nothing = Won {
            commit: MailId::NONE,
            generation: 0,
            uid_validity: 0,
            uid: 0,
        };
        let mut volume = assemble(
            terms,
            self,
            (Tree::new(), journal),
            now,
            Chain::new(nothing, 0),
        );
        let (key, value) = root_folder(owner, ROOT_MODE, now.wall);
        volume.put_row(key, value);
        volume.begin()?;
        volume.want_all(Vec::new());
        Ok(volume)
    }
}

fn assemble<S: Storage>(
    terms: Terms,
    of: Create,
    (tree, journal): (Tree, Journal<S>),
    now: Moment,
    chain: Chain,
) -> Volume<S> {
    Volume {
        seals: Seals {
            volume: of.volume,
            epoch: of.epoch,
            keys: of.keys,
        },
        machine: of.machine,
        writer: 0,
        files: Files::new(tree, Numbers::new(0, 0, 0)),
        fates: Fates::default(),
        cache: ChunkCache::new(terms.cache_max),
        accounts: Accounts::new(&terms.accounts, &terms.groups),
        uploads: Uploads::default(),
        reads: Reads::default(),
        chain,
        commits: Commits::default(),
        journal,
        deadlines: Deadlines::default(),
        replicas: Replicas::default(),
        sequence: (1, 1),
        block_end: 1,
        steps: VecDeque::new(),
        asked: hashbrown::HashMap::new(),
        working: hashbrown::HashMap::new(),
        last_id: 0,
        now,
        blocked: VecDeque::new(),
        sync_at: None,
        retry_at: None,
        read_only: None,
        terms,
    }
}

/// The chain: from the first commit on, the child of a commit is the one with the lowest UID.
fn in_order(commits: Vec<Found>) -> Vec<Found> {
    let mut children: HashMap<MailId, Found> = HashMap::new();
    for found in commits {
        match children.entry(found.record.parent) {
            std::collections::hash_map::Entry::Occupied(mut elder)
                if elder.get().uid > found.uid =>
            {
                elder.insert(found);
            }
            std::collections::hash_map::Entry::Occupied(_) => {}
            std::collections::hash_map::Entry::Vacant(place) => {
                place.insert(found);
            }
        }
    }
    let mut chain: Vec<Found> = Vec::new();
    let mut parent = MailId::NONE;
    // Each commit leaves the map, so that a circle ends.
    while let Some(found) = children.remove(&parent) {
        parent = found.head.mail;
        chain.push(found);
    }
    chain
}

fn apply(tree: &mut Tree, found: &Found, lead: u16) -> Result<(), Errno> {
    for row in &found.record.rows {
        tree.apply(Change {
            key: row.key.clone(),
            value: row.value.clone(),
        })?;
    }
    if !found.record.index.entries.is_empty() {
        // A commit cannot hold its own UID: a later commit may have been lost with its mount.
        let row = PackRow {
            mail: found.head.mail,
            kind: Kind::Commit as u8,
            group: 0,
            octets: found.octets,
            copies: vec![MailCopy {
                account: lead,
                mailbox: LOG_MAILBOX,
                uid: found.uid,
            }],
        };
        let key = Key::Pack(found.head.pack.0).encode();
        tree.apply(Change {
            key,
            value: Some(row.encode()),
        })?;
    }
    Ok(())
}
