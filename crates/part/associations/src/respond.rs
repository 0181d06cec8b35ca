//! Answers associations of peers.

use std::future::Future;

use tokio::time::timeout;
use vere_osi::Limits;
use vere_osi::association::{
    AcceptRequest, Association, Event, Mode, OpenIndication, Profile, RejectRequest,
    ResponderConfig,
};
use vere_osi::rtse::{ConnectionData, DialogueMode, RefuseReason};
use vere_x400::{MtaBindArgument, MtaBindError, MtaBindResult};

use crate::bounds::{Bounds, Wait};
use crate::driver::{Driver, Feed, Happening, Stream};
use crate::end::End;
use crate::initiate::form;
use crate::open::{Facts, OpenAssociation, Remote};

/// A responder's side of all associations.
#[derive(Debug, Clone)]
pub struct Responder {
    /// The selectors that exist, and the session versions.
    pub config: ResponderConfig,
    /// The largest checkpoint size, in units of 1,024 octets; 0 is no checkpoints.
    pub checkpoint_size: u32,
    /// The largest window.
    pub window_size: u32,
    /// Bounds of the machine.
    pub limits: Limits,
    /// Bounds of the waits.
    pub bounds: Bounds,
}

impl Default for Responder {
    fn default() -> Self {
        Self {
            config: ResponderConfig::new(Profile::mts_transfer()),
            checkpoint_size: 64,
            window_size: 3,
            limits: Limits::default(),
            bounds: Bounds::default(),
        }
    }
}

/// A bind, with facts about the peer.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The other end of the connection.
    pub remote: Remote,
    /// The mode.
    pub mode: Mode,
    /// The introduction of the peer.
    pub bind: MtaBindArgument,
    /// Selectors, titles, dialogue mode, proposals.
    pub indication: Box<OpenIndication>,
}

impl Asked {
    /// The name of the peer, if it gives one.
    #[must_use]
    pub fn name(&self) -> Option<String> {
        match &self.bind {
            MtaBindArgument::Authenticated(initiator) => {
                Some(initiator.initiator_name.text().into_owned())
            }
            _ => None,
        }
    }

    /// Whether the peer gives this password, in a time independent of the first difference.
    #[must_use]
    pub fn has_password(&self, password: &[u8]) -> bool {
        let MtaBindArgument::Authenticated(initiator) = &self.bind else {
            return false;
        };
        matches!(&initiator.initiator_credentials,
            vere_x400::Credentials::Simple(given) if given.is(password))
    }

    /// Whether only one side may transfer.
    #[must_use]
    pub fn is_monologue(&self) -> bool {
        self.indication.dialogue_mode == DialogueMode::Monologue
    }
}

/// The answer to a bind.
#[derive(Debug, Clone)]
pub enum Decision {
    /// The association is open, with this introduction of ours.
    Accept(MtaBindResult),
    /// The association is refused.
    Reject(MtaBindError),
}

/// A peer that waits for the answer to its bind.
#[derive(Debug)]
pub struct Caller {
    driver: Box<Driver>,
    asked: Box<Asked>,
    responder: Box<Responder>,
}

/// Waits for the bind of a peer, within `Bounds::open`.
///
/// # Errors
///
/// [`End`] when none comes. A peer with a wrong bind was refused.
pub async fn respond(
    responder: &Responder,
    stream: Box<dyn Stream>,
    remote: Remote,
) -> Result<Caller, End> {
    let machine = Association::responder(responder.limits.clone(), responder.config.clone());
    let mut driver = Driver::new(stream, machine, responder.bounds.clone());
    let indication = match indicated(&mut driver).await {
        Ok(indication) => indication,
        Err(end) => {
            driver.finish().await;
            return Err(end);
        }
    };
    let Some(bind) = bind(&indication) else {
        reject(
            &mut driver,
            indication.mode,
            MtaBindError::AuthenticationError,
        )
        .await?;
        return Err(End::Bind);
    };
    let asked = Asked {
        remote,
        mode: indication.mode,
        bind,
        indication,
    };
    Ok(Caller {
        driver,
        asked: Box::new(asked),
        responder: Box::new(responder.clone()),
    })
}

async fn indicated(driver: &mut Driver) -> Result<Box<OpenIndication>, End> {
    loop {
        match driver.next(&mut Feed::new()).await {
            Happening::Event(Event::OpenIndication(indication)) => return Ok(indication),
            Happening::Event(Event::Aborted(cause, _)) => return Err(driver.end(Some(cause))),
            Happening::Closed => return Err(driver.end(None)),
            Happening::Event(_) | Happening::Late => {}
        }
    }
}

/// The bind of a request for a new association; none for one that recovers another, which is not served.
fn bind(indication: &OpenIndication) -> Option<MtaBindArgument> {
    match &indication.data {
        ConnectionData::Open(Some(data)) => {
            MtaBindArgument::decode(data).ok().map(|(bind, _)| bind)
        }
        ConnectionData::Open(None) => Some(MtaBindArgument::default()),
        ConnectionData::Recover(_) => None,
    }
}

async fn reject(driver: &mut Driver, mode: Mode, error: MtaBindError) -> Result<(), End> {
    let reason = match error {
        MtaBindError::Busy => RefuseReason::RtsBusy,
        MtaBindError::UnacceptableDialogueMode => RefuseReason::UnacceptableDialogueMode,
        _ => RefuseReason::ValidationFailure,
    };
    let request = RejectRequest {
        user_data: Some(error.encode(form(mode))),
        ..RejectRequest::because(reason)
    };
    driver.machine.reject(&request)?;
    driver.finish().await;
    Ok(())
}

impl Caller {
    /// The bind.
    #[must_use]
    pub fn asked(&self) -> &Asked {
        &self.asked
    }

    /// Answers as decided. A decision that takes longer than `Bounds::decide` is "busy".
    ///
    /// # Errors
    ///
    /// [`Rejected`](NotOpen::Rejected) as decided; [`Ended`](NotOpen::Ended) when the peer is gone, or the decision came too late.
    pub async fn answer(
        mut self,
        decision: impl Future<Output = Decision>,
    ) -> Result<OpenAssociation, NotOpen> {
        match timeout(self.responder.bounds.decide, decision).await {
            Err(_) => {
                reject(&mut self.driver, self.asked.mode, MtaBindError::Busy).await?;
                Err(End::Late(Wait::Decide).into())
            }
            Ok(Decision::Reject(error)) => {
                reject(&mut self.driver, self.asked.mode, error).await?;
                Err(NotOpen::Rejected(error))
            }
            Ok(Decision::Accept(result)) => self.accept(&result).await.map_err(NotOpen::Ended),
        }
    }

    async fn accept(mut self, result: &MtaBindResult) -> Result<OpenAssociation, End> {
        self.driver.machine.accept(AcceptRequest {
            checkpoint_size: self.responder.checkpoint_size,
            window_size: self.responder.window_size,
            user_data: Some(result.encode(form(self.asked.mode))),
            ..AcceptRequest::default()
        })?;
        let facts = Facts {
            remote: self.asked.remote,
            mode: self.asked.mode,
            session: self.asked.indication.identifier,
        };
        self.driver.push().await;
        Ok(OpenAssociation::new(self.driver, facts))
    }
}

/// Why an asked association is not open.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotOpen {
    /// As the host decided.
    #[error("the bind was refused")]
    Rejected(MtaBindError),
    /// The association has ended.
    #[error(transparent)]
    Ended(#[from] End),
}
