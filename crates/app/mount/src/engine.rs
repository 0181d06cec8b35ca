//! The engine of an open volume at work without a mount, as commands use it.

use std::sync::mpsc::Sender;

use vere_process::failure::Failure;

use crate::folders::Lock;
use crate::host::{Event, Host};
use crate::links::Links;
use crate::serve::Opened;
use crate::volume::Live;

/// An engine, which holds the volume against other processes until the end.
pub(crate) struct Engine {
    pub(crate) host: Host<Live>,
    pub(crate) events: Sender<Event<Live>>,
    lock: Lock,
    _cache: Option<Lock>,
}

impl Engine {
    /// Starts the thread of the engine.
    pub(crate) fn start(opened: Opened) -> Result<Self, Failure> {
        let links = Links {
            kernel: None,
            accounts: opened.asks,
            events: opened.events.clone(),
        };
        let of = (opened.events.clone(), opened.happened);
        Ok(Self {
            host: Host::start(opened.live, opened.clock, of, links)?,
            events: opened.events,
            lock: opened.lock,
            _cache: opened.cache,
        })
    }

    /// Ends the thread, and keeps the state locked until the caller drops the lock.
    pub(crate) fn stop(self) -> Lock {
        self.host.stop();
        self.lock
    }
}
