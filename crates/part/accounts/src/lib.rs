//! Connections to mail accounts over IMAP: any provider's account as a place to keep mails in.
//!
//! [`Accounts`] carries out the requests of [`vere_ports::mail_accounts`] over a pool of connections per account:
//! pipelined, within a window of unanswered octets, most urgent first. [`dial`] and [`Link`] serve programs
//! with a single account and a command at a time.
//!
//! A sent request whose connection ended is answered [`Fault::Unreachable`] and may have been carried
//! out; only requests without a change are sent once more.
//!
//! An account may have budgets of octets a day. A request without room is answered at once by [`Fault::Scarce`] with
//! the time until room; the more urgent a request, the more of the budget is open to the request.
//!
//! Not covered: SASL-IR of LOGIN.

mod asked;
mod budget;
mod connection;
mod deflate;
mod dial;
mod entry;
mod fault;
mod folder;
mod link;
mod pace;
mod pool;
mod profile;
mod program;
mod progress;
mod remote;
mod session;
mod settings;
mod slots;
mod state;
mod steady;
mod stream;
mod task;
mod watch;
mod window;
mod wire;
mod work;

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::Instant;
use vere_ports::mail_accounts::{AccountId, Answer, Fault, Request, RequestId, Urgency};

use asked::{Asked, answer_octets, octets};
use pool::{Out, Shared};

pub use budget::{BudgetSettings, BudgetState};
pub use dial::{DialError, dial};
pub use link::{Hear, Link, deaf};
pub use profile::Profile;
pub use progress::Times;
pub use remote::{Login, Place, Remote, Security, password_of};
pub use settings::{AccountSettings, CONNECTIONS_DEFAULT};
pub use state::AccountState;
pub use stream::Stream;

/// Octets of the unanswered requests of an account; a caller with more has to wait.
const WAITING_MAX: usize = 64 << 20;

/// Pause for a caller with too many requests, in milliseconds.
const WAITING_PAUSE: u64 = 100;

/// Accounts at work; the work ends when the value is dropped.
#[derive(Debug)]
pub struct Accounts {
    accounts: HashMap<AccountId, (UnboundedSender<Asked>, Arc<Shared>)>,
    out: Out,
}

/// The states of accounts at work, for other threads.
#[derive(Debug, Clone, Default)]
pub struct States(Arc<Mutex<HashMap<AccountId, Arc<Shared>>>>);

impl States {
    /// The state of an account.
    #[must_use]
    pub fn of(&self, account: AccountId) -> Option<AccountState> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(&account).map(|shared| shared.state())
    }

    /// Takes further accounts.
    pub fn add(&self, accounts: &Accounts) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let shared = accounts.accounts.iter();
        all.extend(shared.map(|(id, (_, shared))| (*id, Arc::clone(shared))));
    }
}

/// The answers of all accounts.
#[derive(Debug)]
pub struct Answers {
    receiver: UnboundedReceiver<(RequestId, Result<Answer, Fault>)>,
    untaken: Arc<AtomicUsize>,
    taken: Arc<Notify>,
}

impl Answers {
    /// Waits for the next answer; `None` when the accounts have ended.
    pub async fn recv(&mut self) -> Option<(RequestId, Result<Answer, Fault>)> {
        let answer = self.receiver.recv().await?;
        Some(self.note(answer))
    }

    /// The next answer, if there is one.
    pub fn try_recv(&mut self) -> Option<(RequestId, Result<Answer, Fault>)> {
        let answer = self.receiver.try_recv().ok()?;
        Some(self.note(answer))
    }

    fn note(
        &self,
        answer: (RequestId, Result<Answer, Fault>),
    ) -> (RequestId, Result<Answer, Fault>) {
        let octets = answer_octets(&answer.1);
        if octets > 0 {
            self.untaken.fetch_sub(octets, Ordering::Relaxed);
            self.taken.notify_waiters();
        }
        answer
    }
}

impl Accounts {
    /// Starts the work on accounts, within a tokio runtime. Each account is connected at once, and again after
    /// failures.
    #[must_use]
    pub fn start(accounts: Vec<(AccountId, AccountSettings)>) -> (Self, Answers) {
        let (out, receiver) = unbounded_channel();
        let untaken = Arc::new(AtomicUsize::new(0));
        let taken = Arc::new(Notify::new());
        let mut all = HashMap::new();
        for (id, settings) in accounts {
            let shared = Arc::new(Shared {
                state: Mutex::default(),
                waiting: AtomicUsize::new(0),
                untaken: Arc::clone(&untaken),
                taken: Arc::clone(&taken),
            });
            let (send, asked) = unbounded_channel();
            tokio::spawn(pool::run(settings, asked, Arc::clone(&shared), out.clone()));
            all.insert(id, (send, shared));
        }
        let answers = Answers {
            receiver,
            untaken,
            taken,
        };
        (Self { accounts: all, out }, answers)
    }

    /// Asks an account. The answer comes with the `id`; unanswered requests of all accounts must differ in `id`.
    pub fn ask(&self, account: AccountId, id: RequestId, urgency: Urgency, request: Request) {
        let Some((send, shared)) = self.accounts.get(&account) else {
            let text = format!("there is no account {}", account.0);
            return self.refuse(id, Fault::Refused(text));
        };
        let octets = octets(&request);
        if shared
            .waiting
            .load(Ordering::Relaxed)
            .saturating_add(octets)
            > WAITING_MAX
        {
            let text = format!("over {WAITING_MAX} octets wait for the account");
            return self.refuse(id, Fault::Throttled(text, WAITING_PAUSE));
        }
        shared.waiting.fetch_add(octets, Ordering::Relaxed);
        let asked = Asked {
            id,
            urgency,
            request,
            at: Instant::now(),
            again: false,
        };
        if send.send(asked).is_err() {
            let text = "the work on the account has ended".to_owned();
            self.refuse(id, Fault::Unreachable(text));
        }
    }

    /// The state of an account, and the octets of the unanswered requests.
    #[must_use]
    pub fn state(&self, account: AccountId) -> Option<(AccountState, usize)> {
        let (_, shared) = self.accounts.get(&account)?;
        Some((shared.state(), shared.waiting.load(Ordering::Relaxed)))
    }

    fn refuse(&self, id: RequestId, fault: Fault) {
        // An absent caller needs no answer.
        let _ = self.out.send((id, Err(fault)));
    }
}
