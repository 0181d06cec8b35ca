//! The promises of docs/internals/mailfs.md, tried with seeds: programs call, disks and servers fail, and every mount shows a
//! state that the promises allow.
//!
//! The promises of a single machine are strict here: after a power cut the tree is one that programs have seen, call by call, and
//! none older than the last sync of the journal, the last fsync, or `journal_sync` before. `VERE_SIM_SEED=7` runs one seed and
//! prints what happened, `VERE_SIM_SEEDS=5000` runs so many.

mod bites;
mod calls;
mod lies;
mod model;
mod torn;

use self::model::{Model, Seen};
use vere_faults::Seeds;

use super::checks::check;
use super::*;

const ROOT: Inode = Inode::ROOT;
/// Calls of a life, about.
const CALLS: usize = 14;
const LIVES: usize = 4;
/// Octets of a segment of the journal: many segments begin and end.
const SEGMENT: u64 = 24 << 10;
/// How long a call may wait: `call_timeout` and a step of time.
const PATIENCE: u64 = 62_000;

/// Why a seed fails.
type Wrong = String;

/// The end of a life, or a broken promise.
enum Stop {
    /// The power is off.
    Off,
    /// A call needs a server that lies.
    Failed,
    Wrong(Wrong),
}

impl From<Wrong> for Stop {
    fn from(wrong: Wrong) -> Self {
        Self::Wrong(wrong)
    }
}

impl Stop {
    fn wrong(self) -> Wrong {
        match self {
            Self::Off => "the power is off".to_owned(),
            Self::Failed => "a call fails".to_owned(),
            Self::Wrong(wrong) => wrong,
        }
    }
}

struct Run {
    world: World,
    seeded: Seeded,
    model: Model,
    /// Every state since the last mount, the first one being the mount's.
    history: Vec<Model>,
    /// No state before this one may come back after a power cut.
    synced: usize,
    /// No state before this one may come back after a kill.
    answered: usize,
    /// Calls of fsync without a reply, and the state at their begin.
    fsyncs: BTreeMap<CallId, usize>,
    /// Whether something of the disk has failed in this life.
    has_failed: bool,
    /// Whether calls that need servers may fail.
    may_fail: bool,
    /// Mails that are still on the way.
    late: Vec<(AccountId, Request)>,
    trace: Vec<String>,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut world = World::new(2);
        world.cache_max = 1 << 20;
        let mut run = Self {
            world,
            seeded: Seeded(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 5),
            model: Model::default(),
            history: vec![Model::default()],
            synced: 0,
            answered: 0,
            fsyncs: BTreeMap::new(),
            has_failed: false,
            may_fail: false,
            late: Vec::new(),
            trace: Vec::new(),
        };
        run.world.volume().journal.limit_segments(SEGMENT);
        run
    }

    fn below(&mut self, count: usize) -> usize {
        usize::try_from(self.seeded.next_u64() % u64::try_from(count).unwrap()).unwrap()
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    fn log(&mut self, what: impl Into<String>) {
        let steps = self.world.disk.steps();
        self.trace.push(format!("{steps}: {}", what.into()));
    }

    /// One step of the world, with the replies that it brings. Returns whether anything was done.
    fn step(&mut self) -> Result<bool, Stop> {
        let did = self.world.step();
        let fsyncs = std::mem::take(&mut self.fsyncs);
        for (id, state) in fsyncs {
            match self.world.replies.remove(&id) {
                Some(Ok(_)) => {
                    self.log(format!("fsync of state {state} acknowledged"));
                    self.synced = self.synced.max(state);
                }
                Some(Err(Errno::Io | Errno::RoFs)) => {}
                Some(Err(error)) => return Err(format!("fsync: {error}").into()),
                None => drop(self.fsyncs.insert(id, state)),
            }
        }
        if self.world.disk.is_off() {
            return Err(Stop::Off);
        }
        Ok(did)
    }

    fn settle(&mut self) -> Result<(), Stop> {
        while self.step()? {}
        Ok(())
    }

    fn pass(&mut self, millis: u64) -> Result<(), Stop> {
        let state = self.history.len() - 1;
        self.world.now += millis;
        let now = self.world.moment();
        self.world.volume().wake(now);
        self.settle()?;
        let is_well = !self.has_failed && self.world.volume().read_only().is_none();
        if millis >= 1_000 && is_well {
            self.synced = self.synced.max(state);
        }
        Ok(())
    }

    /// The reply to a call, within the time that a call may take.
    fn reply(&mut self, id: CallId) -> Result<Result<Reply, Errno>, Stop> {
        let begun = self.world.now;
        loop {
            if let Some(reply) = self.world.replies.remove(&id) {
                return Ok(reply);
            }
            if self.step()? {
                continue;
            }
            if self.world.now - begun > PATIENCE {
                return Err(format!("{id:?} has no reply").into());
            }
            self.pass(1_000)?;
        }
    }

    fn call(&mut self, call: Call) -> Result<Result<Reply, Errno>, Stop> {
        let id = self.world.begin(call);
        self.reply(id)
    }

    /// A call that changes the tree, as the model has changed.
    fn change(&mut self, call: Call, model: Model) -> Result<Option<Reply>, Stop> {
        self.log(format!("state {}: {}", self.history.len(), short(&call)));
        self.history.push(model.clone());
        let before = std::mem::replace(&mut self.model, model);
        match self.call(call)? {
            Ok(reply) => {
                self.answered = self.history.len() - 1;
                Ok(Some(reply))
            }
            Err(error) => {
                self.log(format!("refused: {error}"));
                let is_fault =
                    matches!(error, Errno::Io | Errno::RoFs | Errno::NoSpc | Errno::DQuot);
                if !(is_fault && (self.has_failed || self.may_fail)) {
                    return Err(format!("{error} without a fault").into());
                }
                // A call that waits for servers has changed nothing; one that the disk fails may have.
                if self.may_fail || Some(self.tree()?) != self.history.last().map(Model::seen) {
                    self.history.pop();
                    self.model = before;
                }
                Ok(None)
            }
        }
    }

    /// What a program sees.
    fn tree(&mut self) -> Result<Seen, Stop> {
        let mut all = Seen::new();
        let mut folders = vec![(String::new(), ROOT)];
        while let Some((begin, inode)) = folders.pop() {
            for (name, is_folder) in self.entries(inode)? {
                let path = format!("{begin}{name}");
                let lookup = Call::Lookup {
                    parent: inode,
                    name: name.into(),
                };
                let of = match self.call(lookup)? {
                    Ok(Reply::Entry(of)) => of,
                    other => return Err(self.trouble(&path, &other)),
                };
                if is_folder {
                    all.insert(format!("{path}/"), Bytes::new());
                    folders.push((format!("{path}/"), of.inode));
                } else {
                    let content = self.content(&path, of.inode)?;
                    all.insert(path, content);
                }
            }
        }
        Ok(all)
    }

    fn entries(&mut self, inode: Inode) -> Result<Vec<(String, bool)>, Stop> {
        let opened = self.call(Call::OpenFolder { inode })?;
        let Ok(Reply::Opened { handle, .. }) = opened else {
            return Err(self.trouble("a folder", &opened));
        };
        let read = self.call(Call::ReadFolder {
            handle,
            cursor: 0,
            with_attributes: false,
        })?;
        let Ok(Reply::Entries(entries)) = read else {
            return Err(self.trouble("a folder", &read));
        };
        let _ = self.call(Call::ReleaseFolder { handle })?;
        let names = entries.into_iter().map(|entry| {
            let is_folder = entry.kind == vere_ports::files::FileKind::Folder;
            (String::from_utf8(entry.name).unwrap(), is_folder)
        });
        Ok(names
            .filter(|(name, _)| name != "." && name != "..")
            .collect())
    }

    fn content(&mut self, path: &str, inode: Inode) -> Result<Bytes, Stop> {
        let content = self.read_whole(inode)?;
        content.map_err(|error| self.trouble(path, &Err(error)))
    }

    /// The content of a file, or the error of the open or of the read.
    fn read_whole(&mut self, inode: Inode) -> Result<Result<Bytes, Errno>, Stop> {
        let flags = OpenFlags {
            read: true,
            ..OpenFlags::default()
        };
        let handle = match self.call(Call::Open { inode, flags })? {
            Ok(Reply::Opened { handle, .. }) => handle,
            Ok(reply) => return Err(format!("{reply:?}").into()),
            Err(error) => return Ok(Err(error)),
        };
        let read = self.call(Call::Read {
            handle,
            offset: 0,
            size: 1 << 20,
        })?;
        let _ = self.call(Call::Release { handle })?;
        match read {
            Ok(Reply::Octets(content)) => Ok(Ok(content)),
            Ok(reply) => Err(format!("{reply:?}").into()),
            Err(error) => Ok(Err(error)),
        }
    }

    /// A call fails, which is a broken promise unless servers lie.
    fn trouble(&self, what: &str, reply: &Result<Reply, Errno>) -> Stop {
        match reply {
            Err(Errno::Io) if self.may_fail => Stop::Failed,
            reply => format!("{what}: {reply:?}").into(),
        }
    }

    /// The next mount after a kill or a power cut: a state that the promises allow.
    fn judge(&mut self, least: usize) -> Result<(), Wrong> {
        let seen = self.tree().map_err(Stop::wrong)?;
        let mut states = self.history.iter();
        let Some(state) = states.rposition(|state| state.seen() == seen) else {
            let last = self.history.last().unwrap().seen();
            return Err(format!("no state: {}", differences(&last, &seen)));
        };
        if state < least {
            let last = differences(&self.history[least].seen(), &seen);
            return Err(format!("state {state}, older than {least}: {last}"));
        }
        self.log(format!("mounted at state {state}"));
        self.model = self.history.swap_remove(state);
        self.history = vec![self.model.clone()];
        (self.synced, self.answered) = (0, 0);
        self.has_failed = false;
        let notices = self.world.notices.iter();
        let mut bad =
            notices.filter(|notice| matches!(notice, Notice::Conflict(_) | Notice::Copied(_)));
        if let Some(notice) = bad.next() {
            return Err(format!("a single machine has a conflict: {notice}"));
        }
        if let Some(notice) = self.world.volume().read_only() {
            return Err(format!("read-only after a mount: {notice}"));
        }
        check(self.world.volume().files.tree())
    }

    /// Prints what happened, where one seed runs.
    fn told(&self, ended: Result<(), Wrong>) -> Result<(), Wrong> {
        if Seeds::or(1).is_one {
            let notices = self.world.notices.iter().map(ToString::to_string);
            let notices: Vec<String> = notices.collect();
            eprintln!("{}\n{}", self.trace.join("\n"), notices.join("\n"));
        }
        ended
    }

    /// Everything is sent; another machine sees the same, and every mail is in order.
    fn finish(&mut self) -> Result<(), Wrong> {
        self.world.fortune = Box::new(|_, _| Luck::Good);
        for (account, request) in std::mem::take(&mut self.late) {
            let account = self.world.accounts.get_mut(&account.0).unwrap();
            let _ = account.carry_out(&request);
        }
        for _ in 0..30 {
            self.world.pass(Duration::from_secs(20));
        }
        let synced = self.world.sync();
        if synced != Ok(Reply::Done) || !self.world.volume().is_quiet() {
            return Err(format!("not quiet: {synced:?}"));
        }
        self.judge(self.history.len() - 1)?;
        let report = self.world.check(true, false);
        if !report.is_clean() {
            return Err(format!("check: {report:?}"));
        }
        let own = super::checks::rows_of(self.world.volume().files.tree());
        self.world.lose_folder();
        self.world
            .mount()
            .map_err(|error| format!("another machine: {error}"))?;
        self.judge(0)?;
        let others = super::checks::rows_of(self.world.volume().files.tree());
        let differ = super::checks::differences(&own, &others);
        if differ.is_empty() {
            Ok(())
        } else {
            Err(format!("another machine has other rows: {differ:?}"))
        }
    }
}

/// Runs the seeds that the environment asks for, or so many.
fn hold(seeds: u64, run: impl Fn(u64) -> Result<(), Wrong> + std::panic::RefUnwindSafe) {
    let failed = failures(seeds, run);
    let few: Vec<&Wrong> = failed.iter().take(8).collect();
    assert!(failed.is_empty(), "{} failed: {few:#?}", failed.len());
}

/// What goes wrong with the seeds.
fn failures(
    seeds: u64,
    run: impl Fn(u64) -> Result<(), Wrong> + std::panic::RefUnwindSafe,
) -> Vec<Wrong> {
    let one = |seed: u64| {
        let wrong = match std::panic::catch_unwind(|| run(seed)) {
            Ok(run) => run.err()?,
            Err(_) => "panicked".to_owned(),
        };
        Some(format!("seed {seed}: {wrong}"))
    };
    Seeds::or(seeds).range.filter_map(one).collect()
}

/// Where two states differ.
fn differences(expected: &Seen, found: &Seen) -> String {
    let all: std::collections::BTreeSet<&String> = expected.keys().chain(found.keys()).collect();
    let length = |of: &Seen, path: &String| {
        let content = of.get(path);
        content.map_or("absent".to_owned(), |content| {
            format!("{} octets", content.len())
        })
    };
    let differ = all
        .into_iter()
        .filter(|path| expected.get(*path) != found.get(*path));
    let each = differ.map(|path| {
        let (expected, found) = (length(expected, path), length(found, path));
        format!("{path}: {expected}, found {found}")
    });
    each.collect::<Vec<_>>().join("; ")
}

fn short(call: &Call) -> String {
    let text = format!("{call:?}");
    text.chars().take(160).collect()
}
