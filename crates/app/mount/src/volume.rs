//! The engine of a volume, as the host runs engines.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use vere_disk::log::Directory;
use vere_mailfs::format::{Encoding, Keys, MailCopy, MailId, ROWS_MAX, VolumeId};
use vere_mailfs::volume::{
    AccountTerms, CacheTerms, CheckTerms, CollectTerms, Create, FactsChange, FactsReport,
    Fingerprint, GroupTerms, Leaving, Machine, Membership, Moment, OpenError, Placed, Salvaged,
    Step as Asked, Strategy, Terms, Upkept, Volume,
};
use vere_ports::files::{Call, CallId, Caller, Errno};
use vere_ports::mail_accounts::{Answer, Fault, RequestId};
use vere_ports::storage::StorageFile as _;
use vere_process::failure::Failure;
use vere_settings::Volume as Description;
use vere_units::Timestamp;

use crate::attempts::Reopening;
use crate::host::{Engine, Now, Step};
use crate::lines::Level;
use crate::rollback::{self, Leave};
use crate::tags::tagged;

/// Calls of our own have numbers from here on; the kernel's count from 1.
const OWN: u64 = 1 << 63;
/// The number of the machine.
const MACHINE_ID: &str = "/etc/machine-id";

/// A run of upkeep.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Upkeep {
    Check(CheckTerms),
    Collect(CollectTerms),
}

/// A volume with its state on the disk.
pub(crate) struct Live {
    pub(crate) volume: Volume<Directory>,
    /// The number of the volume's opening.
    pub(crate) number: u64,
    /// Absent where a stop is final, as for a command.
    pub(crate) reopening: Option<Reopening>,
    /// Steps of an attempt to open the volume anew.
    pub(crate) steps: VecDeque<Step<Self>>,
    /// The mount ends: no attempt begins any more.
    pub(crate) is_ending: bool,
    waiting: HashMap<CallId, Sender<Result<(), Errno>>>,
    last: u64,
}

pub(crate) const fn moment(now: Now) -> Moment {
    Moment {
        steady: now.steady,
        wall: now.wall,
    }
}

impl Live {
    pub(crate) fn new(volume: Volume<Directory>) -> Self {
        Self {
            volume,
            number: 0,
            reopening: None,
            steps: VecDeque::new(),
            is_ending: false,
            waiting: HashMap::new(),
            last: OWN,
        }
    }

    pub(crate) const fn volume(&self) -> &Volume<Directory> {
        &self.volume
    }

    /// Has the volume use a folder of the local disk.
    pub(crate) fn use_cache(&mut self, storage: &Directory, terms: CacheTerms) {
        self.volume.use_cache(storage, terms);
    }

    /// Begins a run of upkeep. Returns whether no other run is under way.
    pub(crate) fn begin(&mut self, now: Now, what: Upkeep) -> bool {
        match what {
            Upkeep::Check(terms) => self.volume.check(moment(now), terms),
            Upkeep::Collect(terms) => self.volume.collect(moment(now), terms),
        }
    }

    /// Begins a change of facts. Returns whether no other change is under way.
    pub(crate) fn change_facts(&mut self, now: Now, change: FactsChange) -> Result<bool, Errno> {
        self.volume.change_facts(moment(now), change)
    }

    /// The result of a change that has ended.
    pub(crate) fn take_changed(&mut self) -> Option<Result<FactsReport, String>> {
        self.volume.take_changed()
    }

    /// Tells the engine which slot has opened the volume.
    pub(crate) fn use_slot(&mut self, number: u8, mail: MailId) {
        self.volume.use_slot(number, mail);
    }

    /// Has the engine use these accounts and groups.
    pub(crate) fn use_accounts(&mut self, now: Now, members: Membership) {
        self.volume.use_accounts(moment(now), members);
    }

    /// What an account has; absent while rows are on the way.
    pub(crate) fn leaving(
        &mut self,
        now: Now,
        account: u16,
        elsewhere: &HashMap<MailId, MailCopy>,
    ) -> Result<Option<Leaving>, Errno> {
        self.volume.leaving(moment(now), account, elsewhere)
    }

    /// Puts the findings of a salvage into the tree. `known` is the generation up to which the chain has everything.
    pub(crate) fn salvage(
        &mut self,
        now: Now,
        owner: Caller,
        (found, known): (&Arc<Salvaged>, u64),
    ) -> Result<Placed, Errno> {
        self.volume.salvage(moment(now), owner, found, known)
    }

    /// The result of a run that has ended.
    pub(crate) fn take_upkept(&mut self) -> Option<Upkept> {
        self.volume.take_upkept()
    }

    /// Switches the mode.
    pub(crate) fn set_strong(&mut self, now: Now, strong: bool) {
        self.volume.set_strong(moment(now), strong);
    }

    /// Gives every group a strategy.
    pub(crate) fn set_strategy(&mut self, now: Now, strategy: Strategy) {
        self.volume.set_strategy(moment(now), strategy);
    }

    /// Tells when all changes so far are on the servers.
    pub(crate) fn sync(&mut self, now: Now, done: Sender<Result<(), Errno>>) {
        let id = self.begin_waiting(done);
        self.volume.sync(moment(now), id);
    }

    /// Tells when all changes are on the servers, with a checkpoint for the next mount.
    pub(crate) fn finish(&mut self, now: Now, done: Sender<Result<(), Errno>>) {
        self.is_ending = true;
        let Some(done) = self.wait_for_attempt(done) else {
            return;
        };
        let id = self.begin_waiting(done);
        self.volume.finish(moment(now), id);
    }

    /// Tells the volume of an opening the end of work; the work of an earlier volume ends with that volume.
    fn at(&mut self, number: u64, now: Now, tell: impl FnOnce(&mut Volume<Directory>)) {
        if number == self.number {
            tell(&mut self.volume);
            self.tend(now);
        }
    }

    fn begin_waiting(&mut self, done: Sender<Result<(), Errno>>) -> CallId {
        let id = CallId(self.last);
        self.last = self.last.checked_add(1).unwrap_or(OWN);
        self.waiting.insert(id, done);
        id
    }
}

impl Engine for Live {
    fn call(&mut self, now: Now, id: CallId, caller: Caller, call: Call) {
        self.volume.call(moment(now), id, caller, call);
        self.tend(now);
    }

    fn answered(&mut self, now: Now, id: RequestId, answer: Result<Answer, Fault>) {
        self.route(now, id, answer);
        self.tend(now);
    }

    fn wake(&mut self, now: Now) {
        self.volume.wake(moment(now));
        self.tend(now);
    }

    fn poll(&mut self) -> Option<Step<Self>> {
        let number = self.number;
        loop {
            let Some(step) = self.volume.poll() else {
                return self.steps.pop_front();
            };
            return Some(match step {
                Asked::Reply(id, result) => {
                    if let Some(done) = self.waiting.remove(&id) {
                        // The waiter may have given up.
                        let _late = done.send(result.map(|_| ()));
                        continue;
                    }
                    Step::Reply(id, result)
                }
                Asked::Ask(id, account, urgency, request) => {
                    Step::Ask(tagged(number, id), account, urgency, request)
                }
                Asked::Work(id, job) => Step::Work(Box::new(move || {
                    let result = job.run();
                    Box::new(move |engine: &mut Self, now| {
                        engine.at(number, now, |volume| volume.done(moment(now), id, result));
                    })
                })),
                Asked::Sync(file) => Step::Disk(Box::new(move || {
                    let result = file.sync().map_err(|error: io::Error| error.to_string());
                    Box::new(move |engine: &mut Self, now| {
                        engine.at(number, now, |volume| volume.synced(result));
                    })
                })),
                Asked::Invalidate(what) => Step::Invalidate(what),
                Asked::Log(notice) => Step::Log(Level::of(&notice), notice.to_string()),
            });
        }
    }

    fn next_wake(&self) -> Option<Timestamp> {
        let all = self.volume.next_wake().into_iter();
        all.chain(self.attempt_due()).min()
    }
}

/// A description as terms of the engine.
pub(crate) fn terms(description: &Description) -> Terms {
    let mut groups: Vec<GroupTerms> = Vec::new();
    for account in &description.accounts {
        match groups.iter_mut().find(|group| group.group == account.group) {
            Some(group) => group.accounts.push(account.number),
            None => groups.push(GroupTerms {
                group: account.group,
                accounts: vec![account.number],
            }),
        }
    }
    let accounts = description.accounts.iter().map(|account| AccountTerms {
        account: account.number,
        encoding: encoding(account.base64),
    });
    Terms {
        accounts: accounts.collect(),
        lead: description.lead,
        lead_epoch: 1,
        is_new_lead: false,
        metadata_accounts: description.metadata_accounts,
        groups,
        strong: description.strong,
        call_timeout: description.call_timeout.duration(),
        sync_copies: description.sync_copies,
        flush_interval: description.flush_interval.duration(),
        journal_sync: description.journal_sync.duration(),
        unsent_max: description.unsent_max.as_u64(),
        cache_max: description.cache_memory.as_usize(),
        fetches_max: description.ahead_max,
        rows_max: ROWS_MAX,
        refresh: description.refresh.duration(),
    }
}

pub(crate) const fn encoding(base64: bool) -> Encoding {
    if base64 {
        Encoding::Base64
    } else {
        Encoding::EightBit
    }
}

/// Names a volume, its keys, and this machine.
pub(crate) fn create(volume: VolumeId, epoch: u16, keys: Keys) -> Result<Create, Failure> {
    Ok(Create {
        volume,
        epoch,
        keys: Arc::new(keys),
        machine: machine()?,
    })
}

/// The number in /etc/machine-id is to stay on the machine, so a hash goes into the volume (machine-id(5)).
fn machine() -> Result<Machine, Failure> {
    let number = std::fs::read(MACHINE_ID).map_err(|error| {
        let text = format!("{MACHINE_ID}: {error}; `systemd-machine-id-setup` makes the file");
        Failure::new(text)
    })?;
    let hash = blake3::derive_key("veredarius mailfs v1 machine", number.trim_ascii());
    let mut id = [0; 16];
    for (to, from) in id.iter_mut().zip(hash) {
        *to = from;
    }
    let name = nix::unistd::gethostname()
        .ok()
        .and_then(|name| name.into_string().ok());
    Ok(Machine {
        id,
        name: name.unwrap_or_else(|| "unnamed".to_owned()),
    })
}

pub(crate) fn storage(journal: &Path) -> Result<Directory, Failure> {
    Directory::open(journal)
        .map_err(|error| Failure::new(format!("{}: {error}", journal.display())))
}

/// Random octets.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], Failure> {
    let mut octets = [0; N];
    getrandom::fill(&mut octets).map_err(|error| {
        Failure::new(format!(
            "expected random octets of the kernel; found {error}"
        ))
    })?;
    Ok(octets)
}

/// Wishes about an opening.
#[derive(Debug, Clone, Default)]
pub(crate) struct How {
    /// The chain must have this commit.
    pub(crate) expect: Option<Fingerprint>,
    /// When the journal may be set aside.
    pub(crate) leave: Leave,
    /// A log that has lost commits, or all of them.
    pub(crate) lost: Option<Lost>,
    /// Whether the local disk may serve before any account answers.
    pub(crate) local: bool,
}

/// What is known about a lost log.
#[derive(Debug, Clone)]
pub(crate) struct Lost {
    /// The highest writer.
    pub(crate) last_writer: u16,
    /// The highest generation.
    pub(crate) generation: u64,
    /// Rows for a new tree.
    pub(crate) rows: Vec<(Vec<u8>, Vec<u8>)>,
    /// The owner of a new root folder.
    pub(crate) owner: Caller,
}

/// Why a slot does not open a volume.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The secret or the keys are others: another slot may open the volume.
    Key(Failure),
    /// Anything else, which no slot changes.
    Other(Failure),
}

impl Refusal {
    /// Keys of an earlier epoch open none of the newest commits: the log looks older, or empty.
    pub(crate) fn of(error: OpenError) -> Self {
        let may_be_keys = matches!(
            error,
            OpenError::NoVolume(_) | OpenError::RolledBack { .. } | OpenError::Overtaken
        );
        let failure = rollback::explained(error);
        if may_be_keys {
            Self::Key(failure)
        } else {
            Self::Other(failure)
        }
    }

    pub(crate) fn into_failure(self) -> Failure {
        match self {
            Self::Key(failure) | Self::Other(failure) => failure,
        }
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self::Other(failure)
    }
}

#[cfg(test)]
mod tests {
    use super::Refusal;
    use vere_mailfs::volume::OpenError;
    use vere_ports::mail_accounts::Fault;

    #[test]
    fn other_slots_are_no_remedy_for_an_outage() {
        let outage = Fault::Unreachable("cut".to_owned());
        assert!(matches!(
            Refusal::of(OpenError::Account(1, outage)),
            Refusal::Other(_)
        ));
        for error in [
            OpenError::NoVolume(1),
            OpenError::RolledBack { generation: 2 },
        ] {
            assert!(matches!(Refusal::of(error), Refusal::Key(_)));
        }
    }
}
