//! Changes of a volume's facts by the process of the mount, or else on a volume opened for the command.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use vere_process::failure::Failure;
use vere_settings::Volume as Described;

use crate::args::SecretArgs;
use crate::change::Keeper;
use crate::control::{Request, ask};
use crate::folders::{self, Description, Lock};
use crate::host::Host;
use crate::links::Links;
use crate::open::{Opened, open, read_slot};
use crate::secrets::Opener;
use crate::serve::finish;
use crate::volume::{How, Live};

/// The longest silence of an engine.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// A volume whose facts can be changed.
pub(crate) enum Session {
    /// By the control socket of the mount.
    Mounted(PathBuf),
    /// Opened for the command.
    Own(Box<Own>),
}

pub(crate) struct Own {
    keeper: Keeper,
    host: Host<Live>,
    /// Those of the state and of the cache.
    _locks: (Lock, Option<Lock>),
}

/// The secret of the volume, from the command line, the description, or a question.
pub(crate) fn opener(secret: &SecretArgs, described: &Described) -> Result<Opener, Failure> {
    let passphrase = secret.passphrase_file.as_ref();
    let passphrase = passphrase.or(described.passphrase_file.as_ref());
    let key = secret.key_file.as_ref();
    let key = key.or(described.key_file.as_ref().filter(|_| passphrase.is_none()));
    Opener::get(passphrase, key, false)
}

impl Session {
    /// Finds the mount, or opens the volume; `opener` is asked for a secret in the second case only.
    pub(crate) fn begin(
        description: &Description,
        described: &Described,
        opener: impl FnOnce() -> Result<Opener, Failure>,
    ) -> Result<Self, Failure> {
        let state = folders::state(read_slot(description)?.head.volume)?;
        let socket = folders::control(&state);
        if ask(&socket, &Request::Facts, Some(SILENCE_MAX))?.is_some() {
            return Ok(Self::Mounted(socket));
        }
        let Opened {
            live,
            clock,
            asks,
            events,
            happened,
            lock,
            cache,
            ..
        } = open(
            description,
            described,
            &opener()?,
            &How::default(),
            &mut |_| {},
        )?;
        let keeper = Keeper {
            description: description.clone(),
            asks: asks.clone(),
            events: events.clone(),
        };
        let links = Links {
            kernel: None,
            accounts: asks,
            events: events.clone(),
        };
        let host = Host::start(live, clock, (events, happened), links)?;
        Ok(Self::Own(Box::new(Own {
            keeper,
            host,
            _locks: (lock, cache),
        })))
    }

    /// Has a request about facts carried out.
    pub(crate) fn ask(&self, request: &Request) -> Result<Value, Failure> {
        match self {
            Self::Mounted(socket) => ask(socket, request, None)?
                .ok_or_else(|| Failure::new("expected the mount; found its end")),
            Self::Own(own) => match request {
                Request::Facts => own.keeper.facts(),
                Request::ChangeSlots(order) => own.keeper.change_slots(order),
                Request::Join(order) => own.keeper.join(order),
                Request::Leave(order) => own.keeper.leave(order),
                _ => Err("expected a request about facts; found another one".to_owned()),
            }
            .map_err(Failure::new),
        }
    }

    /// Copies that members of groups lack.
    pub(crate) fn missing(&self) -> Result<u64, Failure> {
        let facts = self.ask(&Request::Facts)?;
        Ok(facts["copies_missing"].as_u64().unwrap_or(0))
    }

    /// Ends: the last changes of a volume opened for the command go to the servers.
    pub(crate) fn end(self) {
        if let Self::Own(own) = self {
            finish(&own.host);
            own.host.stop();
        }
    }
}
