//! The surroundings of a mount's engine: the kernel, the accounts, the log.

use std::sync::mpsc::Sender;
use std::sync::{Arc, OnceLock};

use vere_fuse::{Mount, Refused, Replies, Sink};
use vere_ports::files::{Call, CallId, Caller, Errno, Invalidate, Reply};
use vere_ports::mail_accounts::{AccountId, Fault, Request, RequestId, Urgency};

use crate::accounts::{Ask, Asks};
use crate::host::{Event, Outside};
use crate::lines::{self, Level};
use crate::volume::Live;

/// Passes calls of the kernel to the engine.
pub(crate) struct Calls(pub(crate) Sender<Event<Live>>);

impl Sink for Calls {
    fn call(&self, id: CallId, caller: Caller, call: Call) -> Result<(), Refused> {
        self.0
            .send(Event::Call(id, caller, call))
            .map_err(|_| Refused)
    }

    fn ended(&self) {}
}

pub(crate) struct Links {
    /// Absent without a mount, as during `init`.
    pub(crate) kernel: Option<(Replies, Arc<OnceLock<Mount>>)>,
    pub(crate) accounts: Asks,
    pub(crate) events: Sender<Event<Live>>,
}

impl Outside for Links {
    fn reply(&mut self, id: CallId, result: Result<Reply, Errno>) {
        if let Some((replies, _)) = &self.kernel {
            replies.reply(id, result);
        }
    }

    fn ask(&mut self, id: RequestId, account: AccountId, urgency: Urgency, request: Request) {
        if self
            .accounts
            .send(Ask(id, account, urgency, request))
            .is_err()
        {
            let fault = Fault::Unreachable("the thread of the accounts has ended".to_owned());
            // The engine asks, so the channel of the engine lives.
            let _lives = self.events.send(Event::Answer(id, Err(fault)));
        }
    }

    fn invalidate(&mut self, what: Invalidate) {
        if let Some(mount) = self.kernel.as_ref().and_then(|(_, mount)| mount.get()) {
            mount.invalidate(what);
        }
    }

    fn log(&mut self, level: Level, line: &str) {
        lines::log(level, line);
    }
}
