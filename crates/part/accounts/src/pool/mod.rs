//! The connections of an account, and the waiting requests.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, sleep_until, timeout};
use vere_imap::client::Namespace;
use vere_ports::mail_accounts::{Answer, Fault, Request, RequestId, Urgency};
use vere_process::failure::Failure;

use crate::asked::{Asked, answer_octets, changes_nothing, cost, is_alone, octets};
use crate::budget::Budget;
use crate::connection::Report;
use crate::dial::{DialError, reach};
use crate::entry::enter;
use crate::fault;
use crate::folder::Folder;
use crate::link::Link;
use crate::pace::Pace;
use crate::settings::AccountSettings;
use crate::slots::{Kind, Slots};
use crate::state::AccountState;
use crate::steady::Clock;
use crate::work::Answers;

mod assign;
mod expire;

/// Time for connection and login.
const DIAL_MAX: Duration = Duration::from_secs(20);

/// Pause before the octets of answers are looked at again, should the caller take answers on another thread.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Octets of answers not yet taken by the caller; reads wait beyond.
pub(crate) const UNTAKEN_MAX: usize = 64 << 20;

/// Octets shared with the caller.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// The state of the account.
    pub(crate) state: Mutex<AccountState>,
    /// Octets of requests without an answer.
    pub(crate) waiting: AtomicUsize,
    /// Octets of answers not yet taken by the caller, of all accounts.
    pub(crate) untaken: Arc<AtomicUsize>,
    /// Told when the caller takes an answer.
    pub(crate) taken: Arc<Notify>,
}

impl Shared {
    /// A copy of the state.
    pub(crate) fn state(&self) -> AccountState {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.clone()
    }
}

/// The answers' way to the caller.
pub(crate) type Out = UnboundedSender<(RequestId, Result<Answer, Fault>)>;

/// What tasks of the pool tell the pool.
enum Told {
    Dialled(usize, Box<Result<(Link, Namespace), DialError>>),
    Probed(Result<(), DialError>),
}

/// An account at work.
pub(crate) struct Pool {
    settings: AccountSettings,
    namespace: Option<Namespace>,
    /// APPENDLIMIT (RFC 7889).
    append_limit: Option<u32>,
    tells_uids: bool,
    pace: Pace,
    budget: Budget,
    queue: BTreeMap<(Urgency, u64), Asked>,
    sequence: u64,
    slots: Slots,
    /// Requests under way, with the number of the connection.
    under_way: HashMap<RequestId, (Asked, usize)>,
    /// Watches without a connection, and the time of the answer.
    polls: Vec<(Instant, RequestId)>,
    /// Whether the account was ever asked to store a commit.
    has_commits: bool,
    /// Mailboxes known to exist, or under creation.
    known: HashSet<String>,
    last_fault: Fault,
    /// Whether the account has answered since the last fault.
    works: bool,
    probing: bool,
    shared: Arc<Shared>,
    out: Out,
    tell: UnboundedSender<Told>,
    reports: UnboundedSender<(usize, Report)>,
}

/// Serves an account until `asked` ends.
pub(crate) async fn run(
    settings: AccountSettings,
    mut asked: UnboundedReceiver<Asked>,
    shared: Arc<Shared>,
    out: Out,
) {
    let (tell, mut told) = unbounded_channel();
    let (reports, mut reported) = unbounded_channel();
    let now = Instant::now();
    let mut pool = Pool {
        pace: Pace::new(settings.connections_max, now),
        budget: Budget::new(&settings.budget, Clock::of_system()),
        settings,
        namespace: None,
        append_limit: None,
        tells_uids: false,
        queue: BTreeMap::new(),
        sequence: 0,
        slots: Slots::default(),
        under_way: HashMap::new(),
        polls: Vec::new(),
        has_commits: false,
        known: HashSet::new(),
        last_fault: Fault::Unreachable("not connected yet".to_owned()),
        works: false,
        probing: false,
        shared,
        out,
        tell,
        reports,
    };
    loop {
        let now = Instant::now();
        pool.expire(now);
        pool.assign(now);
        pool.connect(now);
        pool.show(now);
        let taken = Arc::clone(&pool.shared.taken);
        tokio::select! {
            request = asked.recv() => match request {
                Some(request) => pool.enqueue(request),
                None => return,
            },
            report = reported.recv() => {
                if let Some((number, report)) = report {
                    pool.reported(number, report);
                }
            }
            told = told.recv() => match told {
                Some(Told::Dialled(number, link)) => pool.dialled(number, *link),
                Some(Told::Probed(probed)) => pool.probed(probed),
                None => {}
            },
            () = taken.notified() => {}
            () = sleep_until(pool.wake(now)) => {}
        }
        // Further requests and reports are taken as well, so mails can be joined.
        while let Ok(request) = asked.try_recv() {
            pool.enqueue(request);
        }
        while let Ok((number, report)) = reported.try_recv() {
            pool.reported(number, report);
        }
    }
}

impl Pool {
    fn enqueue(&mut self, asked: Asked) {
        let limit = self.append_limit.unwrap_or(u32::MAX);
        if let Request::Append { mail, .. } = &asked.request
            && u32::try_from(mail.len()).map_or(true, |octets| octets > limit)
        {
            let text = format!("a mail of {} octets", mail.len());
            let fault = Fault::TooBig(text, self.append_limit);
            return self.answer(asked.id, octets(&asked.request), Err(fault));
        }
        if is_alone(&asked.request) && !std::mem::replace(&mut self.has_commits, true) {
            self.slots.free_lead();
        }
        self.sequence = self.sequence.saturating_add(1);
        self.queue.insert((asked.urgency, self.sequence), asked);
    }

    /// Shows the state of the account to the caller.
    fn show(&mut self, now: Instant) {
        let (upload, download) = self.budget.shown();
        let state = AccountState {
            connections: self.slots.open_count(),
            fault: (!self.works).then(|| self.last_fault.clone()),
            dial_from: Some(self.pace.dial_from).filter(|from| *from > now),
            ask_from: Some(self.pace.ask_from).filter(|from| *from > now),
            append_limit: self.append_limit,
            tells_uids: self.tells_uids,
            upload,
            download,
        };
        *self
            .shared
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = state;
    }

    /// When the pool has to act without being told.
    fn wake(&mut self, now: Instant) -> Instant {
        let far = now + Duration::from_secs(3_600);
        let wants = !self.queue.is_empty() || self.slots.lead().is_none();
        let full = self.shared.untaken.load(Ordering::Relaxed) > UNTAKEN_MAX;
        let longest = self.wait_max();
        let times = [
            Some(now + LOOK_AGAIN).filter(|_| full && wants),
            Some(self.pace.dial_from).filter(|_| wants),
            Some(self.pace.ask_from).filter(|_| !self.queue.is_empty()),
            self.queue.values().map(|asked| asked.at + longest).min(),
            self.polls.iter().map(|(due, _)| *due).min(),
            self.budget.tend().map(|wait| now + wait),
        ];
        let next = times.into_iter().flatten().filter(|time| *time > now).min();
        next.unwrap_or(far)
    }

    /// Gives an answer to the caller.
    fn answer(&self, id: RequestId, octets: usize, answer: Result<Answer, Fault>) {
        self.shared.waiting.fetch_sub(octets, Ordering::Relaxed);
        let untaken = answer_octets(&answer);
        self.shared.untaken.fetch_add(untaken, Ordering::Relaxed);
        // An absent caller needs no answer.
        let _ = self.out.send((id, answer));
    }

    /// Opens connections as waiting requests need more.
    fn connect(&mut self, now: Instant) {
        if now < self.pace.dial_from {
            return;
        }
        if self.slots.lead_number().is_none() {
            self.open(Kind::Lead, now);
        }
        let waits = self.queue.iter().any(|(key, asked)| {
            key.0 != Urgency::Commit
                && !is_alone(&asked.request)
                && !matches!(asked.request, Request::Watch { .. })
                && !self.reads_too_far(&asked.request)
        });
        let allowed = self.pace.connections(now);
        // Several requests at a start need both connections, and a login takes round trips; an account that fails is tried by one.
        let is_one = self.pace.has_failed() || self.queue.len() < 2;
        let dials = match is_one {
            true => self.slots.any_dials(),
            false => self.slots.any_common_dials(),
        };
        if waits && now >= self.pace.ask_from && self.slots.len() < allowed && !dials {
            self.open(Kind::Common, now);
        }
    }

    fn open(&mut self, kind: Kind, now: Instant) {
        if now < self.pace.dial_from {
            return;
        }
        let number = self.slots.begin(kind);
        let remote = self.settings.remote.clone();
        let known = self.namespace.clone();
        let tell = self.tell.clone();
        tokio::spawn(async move {
            let dialled = enter(&remote, known, DIAL_MAX).await;
            let _ = tell.send(Told::Dialled(number, Box::new(dialled)));
        });
    }

    fn dialled(&mut self, number: usize, dialled: Result<(Link, Namespace), DialError>) {
        let (link, namespace) = match dialled {
            Ok(dialled) => dialled,
            Err(error) => {
                self.slots.remove(number);
                return self.refused(&error);
            }
        };
        let folder = Folder::new(&self.settings.folder, &namespace);
        self.namespace = Some(namespace);
        self.append_limit = link
            .value("APPENDLIMIT")
            .and_then(|value| value.parse().ok());
        self.tells_uids = link.can("UIDPLUS") || link.can("IMAP4REV2");
        let reports = self.reports.clone();
        let times = self.settings.times;
        self.slots.opened(number, link, folder, times, reports);
    }

    /// Notes a failure of the account.
    fn refused(&mut self, error: &DialError) {
        self.works = false;
        let now = Instant::now();
        let text = error.to_string();
        let patience = match error {
            DialError::Refused(status) | DialError::Bye(status) => fault::patience(status),
            _ => None,
        };
        // Connections that were tried together fail together, and count once.
        let is_known = now < self.pace.dial_from;
        self.last_fault = match (error, patience) {
            (_, Some(told)) => {
                let told = Duration::from_millis(told);
                let wait = match is_known {
                    true => self.pace.crowded_again(told, now),
                    false => self.pace.crowded(told, now),
                };
                Fault::Throttled(text, millis(wait))
            }
            (DialError::Refused(_), None) => Fault::Login(text),
            _ => Fault::Unreachable(text),
        };
        if patience.is_none() && !is_known {
            self.pace.failed(now);
        }
    }

    fn reported(&mut self, number: usize, report: Report) {
        match report {
            Report::Answers(answers) => self.answered(number, answers),
            Report::Silent => self.probe(),
            Report::Ended(reason, patience) => {
                let now = Instant::now();
                if let Some(told) = patience {
                    self.pace.throttled(Duration::from_millis(told), now);
                } else if !self.slots.has_answered(number) {
                    // No loop with a server closing after each login.
                    self.pace.failed(now);
                }
                self.last_fault = Fault::Unreachable(reason);
                self.works = false;
                self.lost(number);
            }
        }
    }

    fn answered(&mut self, number: usize, answers: Answers) {
        self.slots.note_answer(number);
        for (id, mut answer) in answers {
            let Some((asked, _)) = self.under_way.remove(&id) else {
                continue;
            };
            self.slots.ended(number, cost(&asked.request));
            self.budget.answered(&asked.request, &answer);
            match &mut answer {
                Err(Fault::Throttled(text, told)) => {
                    let wait = Duration::from_millis(*told);
                    *told = millis(self.pace.throttled(wait, Instant::now()));
                    self.last_fault = Fault::Throttled(text.clone(), *told);
                    self.works = false;
                }
                Err(Fault::Refused(_)) => {
                    // Perhaps for want of the mailbox, from a server without TRYCREATE.
                    if let Request::Append { mailbox, .. } = &asked.request {
                        self.known.remove(mailbox);
                    }
                }
                Err(_) => {}
                Ok(_) => {
                    self.works = true;
                    self.pace.works();
                }
            }
            self.answer(id, octets(&asked.request), answer);
        }
    }

    /// A connection is gone: requests without a change are asked once more, all further requests are answered.
    fn lost(&mut self, number: usize) {
        let watched = self.slots.remove(number);
        let of_it = |_: &RequestId, (_, own): &mut (Asked, usize)| *own == number;
        let lost: Vec<_> = self.under_way.extract_if(of_it).collect();
        let mut lost: Vec<Asked> = lost.into_iter().map(|(_, (asked, _))| asked).collect();
        lost.sort_by_key(|asked| asked.id);
        for mut asked in lost {
            if watched {
                // The mailbox may have changed unseen.
                self.answer(asked.id, 0, Ok(Answer::Changed));
            } else if changes_nothing(&asked.request) && !asked.again {
                asked.again = true;
                self.enqueue(asked);
            } else {
                // What was sent may have been carried out, whatever ended the connection.
                let fault = match &self.last_fault {
                    fault @ Fault::Unreachable(_) => fault.clone(),
                    other => Fault::Unreachable(other.to_string()),
                };
                self.answer(asked.id, octets(&asked.request), Err(fault));
            }
        }
    }

    /// Tries whether the account can be reached at all.
    fn probe(&mut self) {
        if std::mem::replace(&mut self.probing, true) {
            return;
        }
        let remote = self.settings.remote.clone();
        let tell = self.tell.clone();
        let silence = self.settings.times.silence;
        tokio::spawn(async move {
            let probed = match timeout(silence, reach(&remote)).await {
                Ok(reached) => reached.map(|_| ()),
                Err(_) => {
                    let text = format!("no answer within {silence:?}");
                    Err(Failure::new(text).into())
                }
            };
            let _ = tell.send(Told::Probed(probed));
        });
    }

    fn probed(&mut self, probed: Result<(), DialError>) {
        self.probing = false;
        // Who is sent away has reached the account.
        if let Err(error) = probed
            && !matches!(error, DialError::Bye(_))
        {
            self.refused(&error);
            for number in self.slots.all() {
                self.lost(number);
            }
        }
    }
}

fn millis(wait: Duration) -> u64 {
    u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)
}
