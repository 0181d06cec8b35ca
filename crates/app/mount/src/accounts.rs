//! The thread of all connections to accounts.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::sync::mpsc::error::SendError;
use tokio::sync::mpsc::{Sender, UnboundedReceiver, UnboundedSender, channel, unbounded_channel};
use vere_accounts::{AccountSettings, Accounts, States};
use vere_ports::mail_accounts::{AccountId, Answer, Fault, Request, RequestId, Urgency};

/// The longest silence of an account during an opening or a change of the lead.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// A request on the way to the thread. The engine bounds the number under way.
pub(crate) struct Ask(
    pub(crate) RequestId,
    pub(crate) AccountId,
    pub(crate) Urgency,
    pub(crate) Request,
);

/// An account with its server and login.
type Member = (AccountId, AccountSettings);

/// The way to the thread. The thread ends with the last sender.
#[derive(Clone)]
pub(crate) struct Asks {
    asks: UnboundedSender<Ask>,
    joins: UnboundedSender<Member>,
    states: States,
}

impl Asks {
    /// Passes a request on.
    pub(crate) fn send(&self, ask: Ask) -> Result<(), SendError<Ask>> {
        self.asks.send(ask)
    }

    /// The states of all accounts.
    pub(crate) const fn states(&self) -> &States {
        &self.states
    }

    /// Connects a further account. Later requests reach the account. Returns whether the thread lives.
    pub(crate) fn join(&self, account: AccountId, settings: AccountSettings) -> bool {
        self.joins.send((account, settings)).is_ok()
    }
}

/// Starts the thread. Answers go to `answered`, until `answered` says no; the thread ends when the senders are dropped.
pub(crate) fn start(
    accounts: Vec<Member>,
    answered: impl Fn(RequestId, Result<Answer, Fault>) -> bool + Send + Sync + 'static,
) -> io::Result<Asks> {
    let (asks, asked) = unbounded_channel();
    let (joins, joined) = unbounded_channel();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let states = States::default();
    let work = serve(
        accounts,
        (asked, joined),
        Arc::new(answered),
        states.clone(),
    );
    thread::Builder::new()
        .name("fs-accounts".into())
        .spawn(move || runtime.block_on(work))?;
    Ok(Asks {
        asks,
        joins,
        states,
    })
}

async fn serve(
    accounts: Vec<Member>,
    (mut asked, mut joined): (UnboundedReceiver<Ask>, UnboundedReceiver<Member>),
    answered: Arc<impl Fn(RequestId, Result<Answer, Fault>) -> bool + Send + Sync + 'static>,
    states: States,
) {
    let (ended, mut has_ended) = channel(1);
    let mut pools = vec![begin(accounts, Arc::clone(&answered), ended.clone())];
    pools.iter().for_each(|pool| states.add(pool));
    loop {
        tokio::select! {
            // A joined account is connected before the first request.
            biased;
            Some(member) = joined.recv() => {
                let pool = begin(vec![member], Arc::clone(&answered), ended.clone());
                states.add(&pool);
                pools.push(pool);
            }
            next = asked.recv() => {
                let Some(Ask(id, account, urgency, request)) = next else { return };
                let has = |pool: &&Accounts| pool.state(account).is_some();
                // An account of no pool is refused by the first one.
                if let Some(pool) = pools.iter().rev().find(has).or(pools.first()) {
                    pool.ask(account, id, urgency, request);
                }
            }
            _ = has_ended.recv() => return,
        }
    }
}

/// Connects accounts, and passes their answers on. `ended` hears when nobody takes them any more.
fn begin(
    accounts: Vec<Member>,
    answered: Arc<impl Fn(RequestId, Result<Answer, Fault>) -> bool + Send + Sync + 'static>,
    ended: Sender<()>,
) -> Accounts {
    let (accounts, mut answers) = Accounts::start(accounts);
    tokio::spawn(async move {
        while let Some((id, answer)) = answers.recv().await {
            if !answered(id, answer) {
                // The thread may have ended already.
                let _over = ended.try_send(());
                return;
            }
        }
    });
    accounts
}
