//! `vere-bench trouble`: thousands of clients that begin a dialogue and stop, and their cost to a whole system:
//! memory beside the bounds of the settings, and the experience of honest clients meanwhile.

mod account;
mod counts;
mod crowd;
mod filter;
mod flood;
mod honest;
mod judged;
mod kinds;
mod mta;
mod names;
mod parked;
mod report;
mod system;

use std::time::{Duration, Instant};

use clap::Args;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::error::BenchError;
use crate::output::{Common, Header, note};
use crate::peer;
use crate::process::guard;
use crate::store::usage;
use account::Account;
use counts::Counts;
pub(crate) use crowd::Crowd;
use flood::{Flood, Flooded};
use judged::Judged;
pub use kinds::Kind;
pub(crate) use kinds::Scripts;
use parked::Parked;
use report::{Report, Trouble};
use system::{Memory, Shape, System};

/// Connections of each kind, and the addresses of the connections.
const CLIENTS: usize = 10_000;
const CLIENTS_QUICK: usize = 1_000;
pub(crate) const ADDRESSES: usize = 100;

/// Honest clients of each protocol in a measurement.
const HONEST: usize = 300;
const HONEST_QUICK: usize = 100;

/// Longest time until each client of a crowd holds or was ended.
const GATHER_MAX: Duration = Duration::from_secs(180);
/// How long a crowd holds before anything is measured.
const HOLD: Duration = Duration::from_secs(3);
/// How long memory may take to come back after the end of a crowd.
const RETURN_MAX: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(250);
/// How long the last messages of a crowd may be judged.
const ANSWER_MAX: Duration = Duration::from_secs(60);

/// The reply to an honest message.
const ACCEPTED: &str = "250";

/// Memory after a crowd may be at most this multiple of the memory before.
pub(crate) const AFTER_MAX: f64 = 1.2;

/// A crowd is ended when memory exceeds this multiple of its bound: the machine has other users.
const CEILING: u64 = 3;

/// Descriptors of a process beside the connections of a crowd.
const SPARE_DESCRIPTORS: u64 = 1_000;

/// Measures the cost of clients that do nothing.
#[derive(Debug, Clone, Args)]
pub struct TroubleArgs {
    /// Arguments of all benchmarks.
    #[command(flatten)]
    pub common: Common,
    /// Run only these kinds of trouble, separated by commas.
    #[arg(long, value_enum, value_name = "KIND", value_delimiter = ',')]
    pub only: Vec<Kind>,
    /// Connections of each kind.
    #[arg(long, value_name = "COUNT")]
    pub connections: Option<usize>,
    /// Measure with front and two workers at port 25, each with this many sessions at once.
    #[arg(long, value_name = "TASKS", num_args = 0..=1, default_missing_value = "10000")]
    pub front: Option<u32>,
}

/// Runs the benchmark, prints its table, and writes the requested files.
///
/// # Errors
/// [`BenchError`] when a part of the benchmark itself fails, or a signal ended it. Figures that miss their bars are
/// not an error.
pub fn run(args: &TroubleArgs) -> Result<(), BenchError> {
    guard::stop_on_signals();
    let quick = args.common.quick;
    let wanted = args.connections.unwrap_or(match quick {
        true => CLIENTS_QUICK,
        false => CLIENTS,
    });
    let base = args.common.base();
    let mut report = Report {
        header: Header::new("trouble", quick, &base),
        troubles: Vec::new(),
        front: args.front,
    };
    let clients = possible(wanted);
    if clients < wanted {
        report.header.skip(format!(
            "{wanted} connections of each kind were wanted; the limit of open files leaves {clients}"
        ));
    }
    let program = peer::program(args.common.vere.as_deref())?;
    let kinds = match args.only.as_slice() {
        [] => Kind::ALL.to_vec(),
        some => some.to_vec(),
    };
    let honest = if quick { HONEST_QUICK } else { HONEST };
    for kind in kinds {
        // Each kind meets a fresh system, without leftovers of the kind before.
        let shape = Shape {
            quick,
            front: args.front,
            has_lists: kind.is_of_lists(),
            has_x400: kind.is_of_x400(),
            judged: kind.judged().map(|judged| (judged, clients)),
        };
        let system = System::start(&program, &base, shape)?;
        let trouble = measure(&system, kind, clients, honest);
        if guard::is_stopped() {
            return Err(BenchError::Stopped);
        }
        let trouble = trouble?;
        note(&trouble.line());
        report.troubles.push(trouble);
    }
    report.header.end();
    args.common
        .publish(&report.table(), &report.json(), &report.page())?;
    Ok(())
}

/// The effect of a single kind of trouble on a running system.
fn measure(
    system: &System,
    kind: Kind,
    clients: usize,
    honest: usize,
) -> Result<Trouble, BenchError> {
    // Warms the system up: memory allocated once belongs to no crowd.
    honest::measure(system, honest / 10 + 1, ACCEPTED);
    let quiet = honest::measure(system, honest, ACCEPTED);
    let before = system.memory();
    let judged = kind.judged();
    if let (Some(Judged::Filter(manner)), Some(filter)) = (judged, &system.filter) {
        filter.behave(manner);
    }
    let burden = match kind.scripts(system) {
        Some(scripts) => Crowd::gather(scripts, clients).map(Burden::Crowd),
        None if kind.is_of_x400() => Parked::gather(system.x400, clients).map(Burden::Parked),
        None => Flood::begin(system.lists, ADDRESSES).map(Burden::Flood),
    };
    let burden = burden.map_err(BenchError::io("make a crowd"))?;
    let mut most = watch(system, &burden, GATHER_MAX, Burden::is_settled);
    most.raise(&watch(system, &burden, HOLD, |_| false));
    let held = burden.counts();
    let expected = judged.map_or(ACCEPTED, Judged::expected);
    let beside = honest::measure(system, honest, expected);
    most.raise(&system.memory());
    if judged.is_some() {
        burden.calm();
        most.raise(&watch(system, &burden, ANSWER_MAX, Burden::is_answered));
    }
    let (counts, flooded) = burden.end();
    let account = judged.map(|_| find(system, &counts));
    let after = settle(system, &before);
    Ok(Trouble {
        kind,
        quiet,
        beside,
        before,
        most,
        after,
        bounds: system.bounds.clone(),
        held: held.holding,
        counts,
        flooded,
        account,
    })
}

/// The fate of judged mail, once the filter answers well. The quarantine is emptied: messages there are kept on purpose, and memory shall come back.
fn find(system: &System, counts: &Counts) -> Account {
    let back = account::await_filter(system);
    let account = account::account(system, counts.acknowledged(), back);
    if account.quarantined > 0 {
        system.empty_quarantine();
    }
    account
}

/// The load on a system.
enum Burden {
    Crowd(Crowd),
    Flood(Flood),
    Parked(Parked),
}

impl Burden {
    fn is_settled(&self) -> bool {
        match self {
            Self::Crowd(crowd) => crowd.is_settled(),
            Self::Flood(_) => true,
            Self::Parked(parked) => parked.counts().under_way == 0,
        }
    }

    fn is_answered(&self) -> bool {
        self.counts().is_answered()
    }

    fn calm(&self) {
        match self {
            Self::Crowd(crowd) => crowd.calm(),
            Self::Flood(_) | Self::Parked(_) => {}
        }
    }

    fn counts(&self) -> Counts {
        match self {
            Self::Crowd(crowd) => crowd.counts(),
            Self::Flood(_) => Counts::default(),
            Self::Parked(parked) => parked.counts(),
        }
    }

    fn stop(&self) {
        match self {
            Self::Crowd(crowd) => crowd.close_all(),
            Self::Flood(flood) => flood.stop(),
            Self::Parked(parked) => parked.stop(),
        }
    }

    fn end(self) -> (Counts, Option<Flooded>) {
        match self {
            Self::Crowd(crowd) => (crowd.end(), None),
            Self::Flood(flood) => (Counts::default(), Some(flood.end())),
            Self::Parked(parked) => (parked.end(), None),
        }
    }
}

/// Looks at memory until something is so, or the time is up; the most that was seen.
fn watch(
    system: &System,
    burden: &Burden,
    patience: Duration,
    done: impl Fn(&Burden) -> bool,
) -> Memory {
    let until = Instant::now() + patience;
    let mut most = system.memory();
    let ceiling = ceiling(system.bounds.total());
    while Instant::now() < until && !done(burden) && !guard::is_stopped() {
        std::thread::sleep(POLL);
        let now = system.memory();
        if now.total() > ceiling {
            note("memory is far beyond its bounds: the crowd gets no larger");
            burden.stop();
        }
        most.raise(&now);
    }
    most
}

/// KiB of memory at which a crowd is ended.
fn ceiling(bounds: u64) -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let machine = usage::number_in(&text, "MemTotal:");
    (bounds * CEILING).min(machine.unwrap_or(u64::MAX) / 2)
}

/// Memory after a crowd, once the memory has fallen, or the time for the fall is over.
fn settle(system: &System, before: &Memory) -> Memory {
    let until = Instant::now() + RETURN_MAX;
    let enough = before.total() as f64 * AFTER_MAX;
    loop {
        let now = system.memory();
        let is_back = now.total() as f64 <= enough;
        if is_back || Instant::now() > until || guard::is_stopped() {
            return now;
        }
        std::thread::sleep(POLL);
    }
}

/// The possible number of connections, at most the wanted number: each connection takes a descriptor of the benchmark
/// and a descriptor of the system, which inherits the limit. Root may raise the limit.
pub(crate) fn possible(wanted: usize) -> usize {
    let needed = u64::try_from(wanted).unwrap_or(u64::MAX) + SPARE_DESCRIPTORS;
    let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else {
        return wanted;
    };
    let most = hard.max(needed);
    let raised = setrlimit(Resource::RLIMIT_NOFILE, most, most).map(|()| most);
    let limit = raised.unwrap_or_else(|_| {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
        hard
    });
    let room = limit.saturating_sub(SPARE_DESCRIPTORS);
    wanted.min(usize::try_from(room).unwrap_or(usize::MAX))
}
