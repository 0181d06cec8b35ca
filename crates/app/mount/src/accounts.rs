//! The thread of all connections to accounts.

use std::io;
use std::thread;

use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use vere_accounts::{AccountSettings, Accounts};
use vere_ports::mail_accounts::{AccountId, Answer, Fault, Request, RequestId, Urgency};

/// A request on its way to the thread. The engine bounds the number under way.
pub(crate) struct Ask(
    pub(crate) RequestId,
    pub(crate) AccountId,
    pub(crate) Urgency,
    pub(crate) Request,
);

/// Starts the thread. Answers go to `answered`, until `answered` says no; the thread ends when the sender is dropped.
pub(crate) fn start(
    accounts: Vec<(AccountId, AccountSettings)>,
    answered: impl Fn(RequestId, Result<Answer, Fault>) -> bool + Send + 'static,
) -> io::Result<UnboundedSender<Ask>> {
    let (send, mut asked) = unbounded_channel();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let work = async move {
        let (accounts, mut answers) = Accounts::start(accounts);
        loop {
            tokio::select! {
                next = asked.recv() => {
                    let Some(Ask(id, account, urgency, request)) = next else { return };
                    accounts.ask(account, id, urgency, request);
                }
                answer = answers.recv() => {
                    let Some((id, answer)) = answer else { return };
                    if !answered(id, answer) {
                        return;
                    }
                }
            }
        }
    };
    thread::Builder::new()
        .name("fs-accounts".into())
        .spawn(move || runtime.block_on(work))?;
    Ok(send)
}
