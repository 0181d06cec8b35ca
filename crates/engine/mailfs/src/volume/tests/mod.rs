//! A volume with accounts, a disk and programs in memory.

mod ahead;
mod basics;
mod budgets;
mod cache;
mod checkpoints;
mod checks;
mod conflicts;
mod crashes;
mod dedup;
mod facts;
mod fingerprints;
mod follows;
mod key_races;
mod late_mails;
mod leads;
mod leaving;
mod local_disk;
mod local_start;
mod long_merges;
mod losses;
mod many_rows;
mod mirrors;
mod outages;
mod own_slot;
mod pages;
mod promises;
mod provider_faults;
mod races;
mod random;
mod reading;
mod reopenings;
mod rig;
mod salvaged_pages;
mod salvages;
mod several;
mod stand_ins;
mod states;
mod stranded;
mod strategies;
mod upkeep;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use vere_faults::accounts::MemoryAccount;
use vere_faults::{MemoryDisk, Seeded};
use vere_ports::files::{
    Attributes, Call, CallId, Caller, Errno, FileTime, Handle, Inode, OpenFlags, Reply, XattrMode,
};
use vere_ports::mail_accounts::{AccountId, Answer, Fault, Request, RequestId, Urgency};
use vere_units::Timestamp;

use super::{
    AccountTerms, Create, GroupTerms, Machine, Moment, Notice, OpenError, OpenStep, Opening, Step,
    Stranded, Terms, Volume,
};
use crate::format::{Encoding, Keys, ROWS_MAX, VolumeId, VolumeKey};

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Luck {
    /// Carried out and answered.
    Good,
    /// Not carried out; the connection ends.
    Lost,
    /// Carried out; the connection ends before the answer.
    Unanswered,
    /// Not carried out: the budget of the day has no octets, for so long.
    Scarce(Duration),
}

/// Decides about each request.
pub(super) type Fortune = Box<dyn FnMut(AccountId, &Request) -> Luck>;

/// The answer to a request.
pub(super) type Said = Result<Answer, Fault>;
/// What a server makes of an answer.
pub(super) type Lie =
    Box<dyn FnMut(&mut BTreeMap<u16, MemoryAccount>, AccountId, &Request, Said) -> Said>;

/// A world with a mount.
pub(super) struct World {
    pub(super) accounts: BTreeMap<u16, MemoryAccount>,
    pub(super) disk: MemoryDisk,
    /// The folder of the cache.
    pub(super) cache: MemoryDisk,
    pub(super) cache_max: u64,
    pub(super) volume: Option<Volume<MemoryDisk>>,
    pub(super) now: u64,
    pub(super) notices: Vec<Notice>,
    pub(super) replies: BTreeMap<CallId, Result<Reply, Errno>>,
    pub(super) fortune: Fortune,
    pub(super) lie: Lie,
    /// Requests carried out, by name.
    pub(super) counts: BTreeMap<&'static str, usize>,
    /// Octets of mails appended.
    pub(super) appended: usize,
    /// Milliseconds that an account needs for a request, and for each MiB.
    pub(super) slow: BTreeMap<u16, (u64, u64)>,
    /// When answers come that take time.
    due: BTreeMap<RequestId, u64>,
    /// When accounts that need time are free.
    free_at: BTreeMap<u16, u64>,
    waiting: VecDeque<(RequestId, AccountId, Request)>,
    last_call: u64,
    starts: u8,
    pub(super) terms: Terms,
    pub(super) of: Create,
}

pub(super) const CALLER: Caller = Caller {
    uid: 1000,
    gid: 100,
};

pub(super) fn keys() -> Arc<Keys> {
    Arc::new(Keys::derive(&VolumeKey([7; 32])))
}

pub(super) fn terms(accounts: u16) -> Terms {
    let numbers = 1..=accounts;
    Terms {
        accounts: numbers
            .clone()
            .map(|account| AccountTerms {
                account,
                encoding: Encoding::EightBit,
            })
            .collect(),
        lead: 1,
        metadata_accounts: 1,
        groups: numbers
            .map(|account| GroupTerms {
                group: account,
                accounts: vec![account],
            })
            .collect(),
        strong: false,
        call_timeout: Duration::from_secs(60),
        sync_copies: 1,
        flush_interval: Duration::from_secs(5),
        journal_sync: Duration::from_secs(1),
        unsent_max: 64 << 20,
        cache_max: 64 << 20,
        fetches_max: 64,
        rows_max: ROWS_MAX,
        lead_epoch: 1,
        is_new_lead: false,
        refresh: Duration::from_secs(30),
    }
}

fn of() -> Create {
    Create {
        volume: VolumeId([3; 16]),
        epoch: 1,
        keys: keys(),
        machine: Machine {
            id: [9; 16],
            name: "test".to_owned(),
        },
    }
}

/// A folder with this mode.
pub(super) fn make_folder(world: &mut World, parent: Inode, name: &str, mode: u16) -> Inode {
    let call = Call::MakeFolder {
        parent,
        name: name.into(),
        mode,
    };
    match world.call(call).unwrap() {
        Reply::Entry(attributes) => attributes.inode,
        reply => panic!("{reply:?}"),
    }
}

/// Gives an inode the attribute `user.NAME`.
pub(super) fn set_xattr(world: &mut World, inode: Inode, name: &str, value: Vec<u8>) {
    let call = Call::SetXattr {
        inode,
        name: format!("user.{name}").into_bytes(),
        value,
        mode: XattrMode::Any,
    };
    assert_eq!(world.call(call), Ok(Reply::Done));
}

impl World {
    /// A new volume over so many accounts.
    pub(super) fn new(accounts: u16) -> Self {
        let mut world = Self {
            accounts: (1..=accounts)
                .map(|number| (number, MemoryAccount::new()))
                .collect(),
            disk: MemoryDisk::default(),
            cache: MemoryDisk::default(),
            cache_max: 64 << 20,
            volume: None,
            now: 1_700_000_000_000,
            notices: Vec::new(),
            replies: BTreeMap::new(),
            fortune: Box::new(|_, _| Luck::Good),
            lie: Box::new(|_, _, _, answer| answer),
            counts: BTreeMap::new(),
            appended: 0,
            slow: BTreeMap::new(),
            due: BTreeMap::new(),
            free_at: BTreeMap::new(),
            waiting: VecDeque::new(),
            last_call: 0,
            starts: 1,
            terms: terms(accounts),
            of: of(),
        };
        let moment = world.moment();
        let volume = Volume::create(
            of(),
            world.terms.clone(),
            world.disk.clone(),
            [1; 16],
            (CALLER, moment),
        );
        world.volume = Some(volume.unwrap());
        world.use_cache();
        world.settle();
        assert!(world.volume().is_quiet());
        world
    }

    pub(super) fn volume(&mut self) -> &mut Volume<MemoryDisk> {
        self.volume.as_mut().unwrap()
    }

    pub(super) fn moment(&self) -> Moment {
        Moment {
            steady: Timestamp::from_millis(self.now),
            wall: FileTime {
                seconds: (self.now / 1_000).cast_signed(),
                nanoseconds: 0,
            },
        }
    }

    /// Carries out every step until none is left.
    pub(super) fn settle(&mut self) {
        while self.step() {}
    }

    /// Carries out the steps that are there, or else answers a request. Returns whether anything was done.
    pub(super) fn step(&mut self) -> bool {
        let did = self.take_steps();
        self.answer_next() || did
    }

    /// Carries out the steps that are there; requests wait.
    fn take_steps(&mut self) -> bool {
        let now = self.moment();
        let mut did = false;
        while let Some(step) = self.volume().poll() {
            did = true;
            match step {
                Step::Reply(id, reply) => {
                    assert!(
                        self.replies.insert(id, reply).is_none(),
                        "two replies to {id:?}"
                    );
                }
                // No other mount changes the log.
                Step::Ask(_, _, _, Request::Watch { .. }) => {}
                Step::Ask(id, account, _, request) => {
                    self.queue(id, account.0, &request);
                    self.waiting.push_back((id, account, request));
                }
                Step::Work(id, job) => {
                    let result = job.run();
                    self.volume().done(now, id, result);
                }
                Step::Sync(file) => {
                    *self.counts.entry("sync").or_default() += 1;
                    let result = vere_ports::storage::StorageFile::sync(&file);
                    self.volume()
                        .synced(result.map_err(|error| error.to_string()));
                }
                Step::Invalidate(_) => {}
                Step::Log(notice) => self.notices.push(notice),
            }
        }
        did
    }

    fn answer_next(&mut self) -> bool {
        let due = |(id, _, _): &(RequestId, _, _)| self.due.get(id).copied().unwrap_or(0);
        let places = self.waiting.iter().enumerate();
        let Some((place, _)) = places.min_by_key(|(place, request)| (due(request), *place)) else {
            return false;
        };
        let (id, account, request) = self.waiting.remove(place).unwrap();
        self.now = self.due.remove(&id).unwrap_or(0).max(self.now);
        let now = self.moment();
        let answer = self.carry_out(account, &request);
        self.volume().answered(now, id, answer);
        true
    }

    fn carry_out(&mut self, account: AccountId, request: &Request) -> Result<Answer, Fault> {
        let luck = (self.fortune)(account, request);
        if luck == Luck::Lost {
            return Err(Fault::Unreachable("cut".to_owned()));
        }
        let name = match request {
            Request::Append { mailbox, mail, .. } => {
                self.appended += mail.len();
                match mailbox.as_str() {
                    "log" => "commit",
                    "pages" => "pages",
                    _ => "pack",
                }
            }
            Request::Read { .. } => "read",
            Request::List { .. } => "list",
            Request::Find { .. } => "find",
            _ => "other",
        };
        *self.counts.entry(name).or_default() += 1;
        if let Luck::Scarce(wait) = luck {
            let text = "the budget is used up".to_owned();
            let millis = u64::try_from(wait.as_millis()).unwrap();
            return Err(Fault::Scarce(text, Urgency::Synced, millis));
        }
        let answer = self
            .accounts
            .get_mut(&account.0)
            .unwrap()
            .carry_out(request);
        let answer = (self.lie)(&mut self.accounts, account, request, answer);
        match luck {
            Luck::Unanswered => Err(Fault::Unreachable("cut".to_owned())),
            _ => answer,
        }
    }

    /// All inodes that have rows.
    pub(super) fn inodes(&mut self) -> Vec<Inode> {
        let keys = self.volume().files.tree().keys(&[2]).unwrap();
        let inode = |key: &Vec<u8>| match crate::rows::Key::decode(key) {
            Ok(crate::rows::Key::Inode(inode)) => Some(inode),
            _ => None,
        };
        keys.iter().filter_map(inode).collect()
    }

    pub(super) fn count(&self, name: &str) -> usize {
        self.counts.get(name).copied().unwrap_or(0)
    }

    /// Lets time pass.
    pub(super) fn pass(&mut self, time: Duration) {
        self.now += u64::try_from(time.as_millis()).unwrap();
        let now = self.moment();
        self.volume().wake(now);
        self.settle();
    }

    /// Begins a call.
    pub(super) fn begin(&mut self, call: Call) -> CallId {
        self.last_call += 1;
        let id = CallId(self.last_call);
        let now = self.moment();
        self.volume().call(now, id, CALLER, call);
        id
    }

    /// The reply to a call, after as much time as the call needs.
    fn reply(&mut self, id: CallId) -> Result<Reply, Errno> {
        for _ in 0..100 {
            self.settle();
            if let Some(reply) = self.replies.remove(&id) {
                return reply;
            }
            self.pass(Duration::from_secs(1));
        }
        panic!("no reply");
    }

    /// A call and its reply.
    pub(super) fn call(&mut self, call: Call) -> Result<Reply, Errno> {
        let id = self.begin(call);
        self.reply(id)
    }

    pub(super) fn create(&mut self, parent: Inode, name: &str) -> (Attributes, Handle) {
        let flags = OpenFlags {
            read: true,
            write: true,
            ..OpenFlags::default()
        };
        let call = Call::Create {
            parent,
            name: name.into(),
            mode: 0o644,
            flags,
        };
        match self.call(call).unwrap() {
            Reply::Created(attributes, handle) => (attributes, handle),
            reply => panic!("{reply:?}"),
        }
    }

    pub(super) fn lookup(&mut self, parent: Inode, name: &str) -> Result<Attributes, Errno> {
        match self.call(Call::Lookup {
            parent,
            name: name.into(),
        })? {
            Reply::Entry(attributes) => Ok(attributes),
            reply => panic!("{reply:?}"),
        }
    }

    pub(super) fn write(&mut self, handle: Handle, offset: u64, data: &[u8]) {
        let data = Bytes::copy_from_slice(data);
        let length = u32::try_from(data.len()).unwrap();
        let call = Call::Write {
            handle,
            offset,
            data,
            kill_set_id: false,
        };
        assert_eq!(self.call(call), Ok(Reply::Written(length)));
    }

    pub(super) fn fsync(&mut self, handle: Handle) -> Result<Reply, Errno> {
        self.call(Call::Fsync {
            handle,
            data_only: false,
        })
    }

    /// Makes a file with this content, closed.
    pub(super) fn put(&mut self, parent: Inode, name: &str, data: &[u8]) {
        let (_, handle) = self.create(parent, name);
        for (number, part) in data.chunks(1 << 20).enumerate() {
            self.write(handle, (number << 20) as u64, part);
        }
        self.close(handle);
    }

    pub(super) fn close(&mut self, handle: Handle) {
        self.call(Call::Flush { handle }).unwrap();
        self.call(Call::Release { handle }).unwrap();
    }

    pub(super) fn open(&mut self, inode: Inode) -> Handle {
        let flags = OpenFlags {
            read: true,
            write: true,
            ..OpenFlags::default()
        };
        match self.call(Call::Open { inode, flags }).unwrap() {
            Reply::Opened { handle, .. } => handle,
            reply => panic!("{reply:?}"),
        }
    }

    /// The content of a file.
    pub(super) fn get(&mut self, parent: Inode, name: &str) -> Result<Vec<u8>, Errno> {
        let attributes = self.lookup(parent, name)?;
        let handle = self.open(attributes.inode);
        let mut all = Vec::new();
        while (all.len() as u64) < attributes.size {
            let call = Call::Read {
                handle,
                offset: all.len() as u64,
                size: 1 << 20,
            };
            match self.call(call)? {
                Reply::Octets(octets) if octets.is_empty() => break,
                Reply::Octets(octets) => all.extend_from_slice(&octets),
                reply => panic!("{reply:?}"),
            }
        }
        self.close(handle);
        Ok(all)
    }

    /// Everything so far goes to the servers.
    pub(super) fn sync(&mut self) -> Result<Reply, Errno> {
        self.last_call += 1;
        let id = CallId(self.last_call);
        let now = self.moment();
        self.volume().sync(now, id);
        self.reply(id)
    }

    /// The mount ends as it should.
    pub(super) fn finish(&mut self) -> Result<Reply, Errno> {
        self.last_call += 1;
        let id = CallId(self.last_call);
        let now = self.moment();
        self.volume().finish(now, id);
        self.reply(id)
    }

    /// The client is killed, and what was under way is lost.
    pub(super) fn kill(&mut self) {
        self.volume = None;
        self.waiting.clear();
        self.replies.clear();
    }

    /// The state folder is lost too.
    pub(super) fn lose_folder(&mut self) {
        self.kill();
        self.disk = MemoryDisk::default();
        self.cache = MemoryDisk::default();
    }

    /// Mounts again.
    pub(super) fn mount(&mut self) -> Result<(), OpenError> {
        self.mount_with(|_| {})
    }

    /// Mounts again, with something to be said to the opening.
    fn mount_with(&mut self, say: impl FnOnce(&mut Opening<MemoryDisk>)) -> Result<(), OpenError> {
        self.starts += 1;
        let random = [self.starts; 16];
        let mut opening = Opening::new(
            self.terms.clone(),
            self.of.clone(),
            self.disk.clone(),
            random,
        );
        say(&mut opening);
        self.open_by(opening)
    }

    /// Mounts again, and brings changes onto the newest state whose base is gone.
    pub(super) fn mount_stranded(&mut self, stranded: Stranded) -> Result<(), OpenError> {
        self.starts += 1;
        let (terms, of, disk) = (self.terms.clone(), self.of.clone(), self.disk.clone());
        let opening = Opening::bring_in(terms, of, disk, [self.starts; 16], stranded);
        self.open_by(opening)
    }

    /// Has an opening read all its needs.
    fn read_for(&mut self, mut opening: Opening<MemoryDisk>) -> Opening<MemoryDisk> {
        while !opening.is_over() {
            match opening.poll() {
                Some(OpenStep::Ask(id, account, _, request)) => {
                    let answer = self.carry_out(account, &request);
                    opening.answered(id, answer);
                }
                Some(OpenStep::Log(notice)) => self.notices.push(notice),
                None => panic!("the opening stands still"),
            }
        }
        opening
    }

    fn open_by(&mut self, opening: Opening<MemoryDisk>) -> Result<(), OpenError> {
        let opening = self.read_for(opening);
        let now = self.moment();
        self.volume = Some(Volume::open(opening, now)?);
        self.use_cache();
        self.settle();
        Ok(())
    }
}

/// Octets that do not repeat.
pub(super) fn noise(seed: u64, octets: usize) -> Vec<u8> {
    let mut seeded = Seeded(seed);
    let mut all: Vec<u8> = Vec::with_capacity(octets + 8);
    while all.len() < octets {
        all.extend_from_slice(&seeded.next_u64().to_le_bytes());
    }
    all.truncate(octets);
    all
}
