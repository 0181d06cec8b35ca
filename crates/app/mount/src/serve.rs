//! The process of a mount.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use vere_fuse::{Ended, Mount, Options, Strength, Unmounted};
use vere_mailfs::volume::CheckTerms;
use vere_ports::files::Errno;
use vere_ports::mail_accounts::AccountId;
use vere_process::failure::Failure;
use vere_settings::Volume as Described;

use crate::accounts::Asks;
use crate::args::StrategyWord;
use crate::attempts::Means;
use crate::budgets;
use crate::change::Keeper;
use crate::collections::{self, Daily};
use crate::control::{Request, Server};
use crate::folders::{self, Description};
use crate::host::{Event, Host, with};
use crate::leads::Known;
use crate::lines::{self, Level};
use crate::links::{Calls, Links};
use crate::news::News;
pub(crate) use crate::open::{Opened, open, read_slot, start_accounts, tag};
use crate::runs;
use crate::secrets::{self, Opener};
use crate::status;
use crate::succession::Succession;
use crate::swap;
use crate::volume::{self, How, Live, Upkeep};

/// Time for the last changes to reach the servers after an unmount. The journal keeps the rest.
pub(crate) const LAST_SYNC: Duration = Duration::from_secs(60);
/// As [`LAST_SYNC`], while the lead account fails.
const LAST_SYNC_FAILING: Duration = Duration::from_secs(10);
/// Time between looks at the lead account.
const LEAD_LOOK: Duration = Duration::from_millis(500);
/// The longest time of a status.
const STATUS_TIMEOUT: Duration = Duration::from_secs(10);
/// Time between looks at what a mount does once a day.
const LOOK: Duration = Duration::from_secs(600);
/// Time between looks at the lead, at most.
const SUCCESSION_LOOK: Duration = Duration::from_secs(10);
/// The longest time of a sync.
const SYNC_TIMEOUT: Duration = Duration::from_secs(24 * 3600);

/// A volume to be mounted.
pub(crate) struct Task {
    pub(crate) description: Description,
    pub(crate) volume: Described,
    pub(crate) opener: Opener,
    pub(crate) point: PathBuf,
    pub(crate) options: Options,
    /// Whether the process has left its terminal: a hang-up is none of its matters then.
    pub(crate) background: bool,
    pub(crate) how: How,
}

/// Mounts, and serves until the end of the mount. `ready` is called as soon as programs may use the mount.
pub(crate) fn serve(
    task: &Task,
    news: &mut dyn FnMut(News),
    ready: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    guard_process();
    let Opened {
        mut live,
        clock,
        asks,
        events,
        happened,
        state,
        lock: _lock,
        cache: _cache,
    } = open(
        &task.description,
        &task.volume,
        &task.opener,
        &task.how,
        news,
    )?;
    // The changes of the journal are in the volume now, even where a command was killed behind the change of journals.
    swap::end(&folders::journal(&state))?;
    live.reopens(means(task, &state, &asks)?);
    clear_dead_mount(task, news)?;
    let tag = tag(&read_slot(&task.description)?);
    let succession = Succession::new(task.description.clone(), task.volume.clone(), tag);
    let shared = Arc::new(OnceLock::new());
    // Whatever may fail comes before the mount: programs would see a mount without a process.
    let server = Server::start(
        &folders::control(&state),
        handler(
            Arc::clone(&shared),
            Keeper {
                description: task.description.clone(),
                asks: asks.clone(),
                events: events.clone(),
            },
        ),
    )?;
    unmount_by_signal(Arc::clone(&shared), task.background)?;
    let started = Mount::start(&task.point, &task.options, Arc::new(Calls(events.clone())))?;
    let replies = started.replies();
    let mount = shared.get_or_init(|| started);
    let links = Links {
        kernel: Some((replies, Arc::clone(&shared))),
        accounts: asks,
        events: events.clone(),
    };
    let garbage = events.clone();
    let begun = Host::start(live, clock, (events, happened), links)
        .map_err(Failure::from)
        .and_then(|host| ready().map(|()| host));
    let host = match begun {
        Ok(host) => host,
        Err(failure) => {
            // The failure counts; a mount that stays can be unmounted by hand.
            let _stays = mount.unmount(Strength::Forced);
            return Err(failure);
        }
    };
    lines::log(Level::Info, &format!("mounted at {}", task.point.display()));

    let ended = wait_for_end(mount, &succession, &garbage);
    finish(&host);
    host.stop();
    server.finish();
    lines::log(Level::Info, "unmounted");
    match ended {
        Ended::Unmounted => Ok(()),
        Ended::Failed(text) => Err(Failure::new(format!("the mount has failed: {text}"))),
    }
}

/// Does what is due now and then until the mount ends.
fn wait_for_end(mount: &Mount, succession: &Succession, events: &Sender<Event<Live>>) -> Ended {
    let daily = Daily::default();
    let look = SUCCESSION_LOOK.min(succession.patience().max(LEAD_LOOK));
    let mut looked = Instant::now();
    loop {
        if let Some(ended) = mount.wait(look) {
            return ended;
        }
        succession.look(events);
        if looked.elapsed() >= LOOK {
            looked = Instant::now();
            daily.look(events);
        }
    }
}

/// What the mount opens its volume anew with: the description may name further accounts by then.
fn means(task: &Task, state: &Path, asks: &Asks) -> Result<Means, Failure> {
    let (description, mut described) = (task.description.clone(), task.volume.clone());
    let (asks, tag) = (asks.clone(), tag(&read_slot(&description)?));
    let state = state.to_owned();
    let journal = folders::journal(&state);
    let terms = move || {
        match description.read() {
            Ok(present) => described = present,
            Err(failure) => lines::log(Level::Warn, &failure.to_string()),
        }
        for account in &described.accounts {
            let number = AccountId(account.number);
            if asks.states().of(number).is_some() {
                continue;
            }
            match secrets::account(account, &tag) {
                // Without the thread of the accounts the opening fails, and tells so.
                Ok(settings) => drop(asks.join(number, settings)),
                Err(failure) => lines::log(Level::Warn, &failure.to_string()),
            }
        }
        let mut terms = volume::terms(&described);
        match Known::read(&state) {
            Ok(Some(known)) => known.apply(&mut terms),
            Ok(None) => {}
            Err(failure) => lines::log(Level::Warn, &failure.to_string()),
        }
        terms
    };
    Ok(Means {
        journal,
        terms: Box::new(terms),
    })
}

/// A thread that panics must not leave a mount that answers nobody; and no dump may have the keys.
fn guard_process() {
    // Without the right the system's own limits count.
    let _kept = nix::sys::prctl::set_dumpable(false);
    std::panic::set_hook(Box::new(|panic| {
        lines::log(Level::Error, &panic.to_string());
        std::process::abort();
    }));
}

/// A mount of this volume whose process was killed is no use to anybody, and in the way.
fn clear_dead_mount(task: &Task, news: &mut dyn FnMut(News)) -> Result<(), Failure> {
    if vere_fuse::clear_dead(&task.point, &task.options.name)? {
        let line = format!(
            "{}: the mount of an ended process is removed",
            task.point.display()
        );
        lines::log(Level::Warn, &line);
        news(News::Line(line));
    }
    Ok(())
}

/// Sends the last changes.
pub(crate) fn finish(host: &Host<Live>) {
    let (done, all_done) = channel();
    let asked = host.with(STATUS_TIMEOUT, move |live, now| live.finish(now, done));
    let synced = asked.and_then(|()| await_end(host, &all_done));
    if !matches!(synced, Some(Ok(()))) {
        lines::log(
            Level::Warn,
            "the last changes are not on the servers yet; the journal keeps them for the next mount",
        );
    }
}

/// Waits for the last changes: shortly where the lead account fails all the time.
fn await_end(
    host: &Host<Live>,
    all_done: &Receiver<Result<(), Errno>>,
) -> Option<Result<(), Errno>> {
    let start = Instant::now();
    let mut wait = LastWait::default();
    loop {
        match all_done.recv_timeout(LEAD_LOOK) {
            Ok(result) => return Some(result),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {}
        }
        let fails = host.with(STATUS_TIMEOUT, |live, _| live.volume().lead_fails());
        // An engine that is busy works on the last changes.
        if wait.is_over(start.elapsed(), fails == Some(true)) {
            return None;
        }
    }
}

/// The wait for the last changes.
#[derive(Debug, Default)]
struct LastWait {
    /// When the lead account was first seen to fail, without an answer since.
    fails_since: Option<Duration>,
}

impl LastWait {
    /// Whether the wait ends after so much time.
    fn is_over(&mut self, passed: Duration, fails: bool) -> bool {
        if !fails {
            self.fails_since = None;
            return passed >= LAST_SYNC;
        }
        let since = *self.fails_since.get_or_insert(passed);
        passed >= LAST_SYNC || passed.saturating_sub(since) >= LAST_SYNC_FAILING
    }
}

/// Commands that may wait for the servers at once: others must still be heard.
const SYNCS_MAX: usize = 8;

/// A place among the commands that wait.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(places: &Arc<AtomicUsize>) -> Option<Self> {
        let place = Self(Arc::clone(places));
        (places.fetch_add(1, Ordering::Relaxed) < SYNCS_MAX).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn handler(mount: Arc<OnceLock<Mount>>, keeper: Keeper) -> crate::control::Handler {
    let events = keeper.events.clone();
    let syncs = Arc::new(AtomicUsize::new(0));
    Arc::new(move |request| match request {
        Request::Mode { strong, strategy } => mode(&events, strong, strategy),
        Request::Status => {
            let mut status = status(&events, mount.get().map(Mount::point))?;
            budgets::add(&mut status, keeper.asks.states());
            Ok(status)
        }
        Request::Sync => {
            let _place = Place::take(&syncs)
                .ok_or("expected fewer commands that wait for the servers; found 8")?;
            let (done, all_done) = channel();
            with(&events, STATUS_TIMEOUT, move |live: &mut Live, now| {
                live.sync(now, done)
            })
            .ok_or("expected an engine; found none")?;
            match all_done.recv_timeout(SYNC_TIMEOUT) {
                Ok(Ok(())) => Ok(json!({ "synced": true })),
                Ok(Err(errno)) => Err(format!("the changes are not on the servers: {errno}")),
                Err(_) => Err("expected an end of the sync within a day; found none".to_owned()),
            }
        }
        Request::Check { data, repair } => {
            let what = Upkeep::Check(CheckTerms { data, repair });
            runs::run(&events, what)
        }
        Request::Facts => keeper.facts(),
        Request::ChangeSlots(order) => logged("key slots changed", keeper.change_slots(&order)),
        Request::Join(order) => logged("account added", keeper.join(&order)),
        Request::Leave(order) => logged("account removed", keeper.leave(&order)),
        Request::Collect => collections::run(&events),
        Request::Progress => Ok(runs::progress(&events)),
        Request::Umount { force } => {
            let mount = mount.get().ok_or("expected a mount; found none")?;
            let strength = if force {
                Strength::Forced
            } else {
                Strength::Soft
            };
            match mount.unmount(strength) {
                // By force the loops end at once, busy or not.
                Ok(unmounted) => Ok(json!({ "clean": force || unmounted == Unmounted::Clean })),
                Err(error) => Err(error.to_string()),
            }
        }
    })
}

/// A change of the volume's facts is a line of the log, with the accounts that are behind.
fn logged(what: &str, result: Result<Value, String>) -> Result<Value, String> {
    match &result {
        Ok(done) => lines::log(Level::Info, &format!("{what}: {done}")),
        Err(reason) => lines::log(Level::Warn, &format!("{what}: failed: {reason}")),
    }
    result
}

/// Tells the mode, after a change if asked for.
fn mode(
    events: &Sender<Event<Live>>,
    strong: Option<bool>,
    strategy: Option<StrategyWord>,
) -> Result<Value, String> {
    let (strong, strategy) = with(events, STATUS_TIMEOUT, move |live: &mut Live, now| {
        if let Some(strong) = strong {
            live.set_strong(now, strong);
        }
        if let Some(strategy) = strategy {
            live.set_strategy(now, strategy.strategy());
        }
        let strong = live.volume().status_at(volume::moment(now)).strong;
        // All groups have one, unless another program has written their rows.
        let strategy = live.volume().strategy();
        (strong, strategy)
    })
    .ok_or("expected an answer of the engine within 10 s; found none")?;
    let strategy = status::strategy_word(strategy);
    Ok(json!({ "mode": status::mode_word(strong), "strategy": strategy }))
}

fn status(events: &Sender<Event<Live>>, point: Option<&Path>) -> Result<Value, String> {
    let (status, groups, reopening) = with(events, STATUS_TIMEOUT, |live: &mut Live, now| {
        let volume = live.volume();
        let status = volume.status_at(volume::moment(now));
        (status, volume.groups(), live.reopening_lines())
    })
    .ok_or("expected an answer of the engine within 10 s; found none")?;
    let mut json = status::json(&status, &groups, point);
    (json["reopening"], json["reopened"]) = (reopening.0.into(), reopening.1.into());
    Ok(json)
}

/// A signal unmounts; a second one by force.
fn unmount_by_signal(mount: Arc<OnceLock<Mount>>, background: bool) -> Result<(), Failure> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    let wait = move || {
        let ours = signals
            .forever()
            .filter(|signal| !(background && *signal == SIGHUP));
        for (count, _) in ours.enumerate() {
            let strength = if count == 0 {
                Strength::Soft
            } else {
                Strength::Forced
            };
            match mount.get().map(|mount| mount.unmount(strength)) {
                Some(Ok(Unmounted::Detached)) => {
                    let line =
                        "programs still use the mount; a second signal ends the mount by force";
                    lines::log(Level::Warn, line);
                }
                Some(Err(error)) => lines::log(Level::Error, &error.to_string()),
                _ => {}
            }
        }
    };
    thread::Builder::new()
        .name("fs-signals".into())
        .spawn(wait)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_waits_shortly_while_the_lead_fails_all_the_time() {
        let at = Duration::from_secs;
        let mut wait = LastWait::default();
        for second in 0..30 {
            assert!(!wait.is_over(at(second), false));
        }
        // A short failure late in the wait is none of the whole wait.
        assert!(!wait.is_over(at(30), true));
        assert!(!wait.is_over(at(39), true));
        assert!(!wait.is_over(at(40), false));
        assert!(!wait.is_over(at(41), true));
        assert!(!wait.is_over(at(50), true));
        assert!(wait.is_over(at(51), true));
        assert!(wait.is_over(at(60), false));
    }
}
