//! An open association: its events, its turn, its end.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;
use vere_net::tls::TlsInfo;
use vere_osi::association::{AssociationError, Event, Mode, ResumeIndication};
use vere_osi::rtse::{Broken, SessionConnectionIdentifier};
use vere_osi::session::Exception;

use crate::bounds::Wait;
use crate::driver::{Driver, Feed, Happening};
use crate::end::End;

/// The other end of the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remote {
    /// Its address.
    pub address: SocketAddr,
    /// Facts about TLS, if the connection is encrypted. Servers ask for no certificate.
    pub tls: Option<TlsInfo>,
}

/// Facts about an open association.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The other end.
    pub remote: Remote,
    /// The mode.
    pub mode: Mode,
    /// The name of the session connection; none if the caller gave none.
    pub session: Option<SessionConnectionIdentifier>,
}

/// The name of an activity, by which a broken transfer is found again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Activity {
    /// The session connection in which the activity began.
    pub session: Option<SessionConnectionIdentifier>,
    /// The activity identifier.
    pub identifier: Bytes,
}

/// A transfer that the peer wants to continue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resumption {
    /// The name that the activity had.
    pub old: Activity,
    /// The name that it has from now on.
    pub new: Activity,
    /// The serial number of the checkpoint behind which the peer continues.
    pub checkpoint: u32,
}

/// The next event of an open association.
#[derive(Debug)]
pub enum Next {
    /// The peer begins a transfer: `collect`, or `part` until the end.
    Incoming(Activity),
    /// The peer wants to continue a transfer: `continue_from`, `already_received` or `refuse`.
    Resume(Resumption),
    /// The APDU of `already_received` was confirmed once more.
    Reconfirmed,
    /// A transfer that this side has refused was given up by the peer.
    GivenUp,
    /// This side has the turn.
    Turn,
    /// The peer asks for the turn, with this priority.
    TurnWanted(u32),
    /// Nothing has happened for `Bounds::idle`. The association is still open.
    Idle,
    /// The association has ended.
    Ended(End),
}

/// An open association over a connection. Dropped, it closes the connection without a word.
#[derive(Debug)]
pub struct OpenAssociation {
    pub(crate) driver: Box<Driver>,
    facts: Box<Facts>,
    /// The presentation context of APDUs, in normal mode.
    pub(crate) context: Option<i64>,
    /// The priority of the peer's request for the turn.
    wanted: Option<u32>,
    pub(crate) end: Option<End>,
    /// When octets of an APDU were handed to the host.
    pub(crate) handed: Option<Instant>,
}

impl OpenAssociation {
    pub(crate) fn new(driver: Box<Driver>, facts: Facts) -> Self {
        let context = driver.machine.context(&vere_osi::names::MTSE);
        Self {
            driver,
            facts: Box::new(facts),
            context,
            wanted: None,
            end: None,
            handed: None,
        }
    }

    /// Facts about the association.
    #[must_use]
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Whether this side has the turn.
    #[must_use]
    pub const fn has_turn(&self) -> bool {
        self.driver.machine.has_turn()
    }

    /// The priority with which the peer asks for the turn, if it does.
    #[must_use]
    pub const fn turn_wanted(&self) -> Option<u32> {
        self.wanted
    }

    /// Why the association has ended, if it has.
    #[must_use]
    pub const fn ended(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// The rest of a transfer that the host does not wait for any more.
    #[must_use]
    pub fn broken(&self) -> Option<Broken> {
        self.driver.machine.broken()
    }

    /// Waits for the next event. A cancelled wait loses nothing.
    pub async fn next(&mut self) -> Next {
        if let Some(end) = &self.end {
            return Next::Ended(end.clone());
        }
        self.driver.wait_for(Wait::Idle);
        loop {
            match self.driver.next(&mut Feed::new()).await {
                Happening::Late => return Next::Idle,
                Happening::Closed => {
                    let end = self.driver.end(None);
                    return Next::Ended(self.conclude(end).await);
                }
                Happening::Event(event) => {
                    if let Some(next) = self.told(event).await {
                        return next;
                    }
                }
            }
        }
    }

    async fn told(&mut self, event: Event) -> Option<Next> {
        Some(match event {
            Event::TransferBegins(identifier) => {
                self.handed = Some(Instant::now());
                Next::Incoming(self.activity(None, identifier))
            }
            Event::ResumeIndication(resume) => Next::Resume(self.resumption(resume)),
            Event::Reconfirmed(_) => Next::Reconfirmed,
            Event::TransferInterrupted(..) | Event::TransferDiscarded(_) => Next::GivenUp,
            // A request that crossed the turn on its way is void.
            Event::TurnPlease(_) if !self.has_turn() => return None,
            Event::TurnPlease(priority) => {
                self.wanted = Some(priority);
                Next::TurnWanted(priority)
            }
            Event::TurnGiven => {
                self.wanted = None;
                Next::Turn
            }
            Event::ReleaseIndication => {
                let released = self.driver.machine.accept_release();
                let end = released.map_or_else(End::from, |()| End::Released);
                Next::Ended(self.conclude(end).await)
            }
            Event::Aborted(cause, _) => {
                let end = self.driver.end(Some(cause));
                Next::Ended(self.conclude(end).await)
            }
            _ => return None,
        })
    }

    fn activity(
        &self,
        session: Option<SessionConnectionIdentifier>,
        identifier: Bytes,
    ) -> Activity {
        Activity {
            session: session.or_else(|| self.facts.session.clone()),
            identifier,
        }
    }

    fn resumption(&self, resume: ResumeIndication) -> Resumption {
        Resumption {
            old: self.activity(resume.session, resume.old_activity),
            new: self.activity(None, resume.activity),
            checkpoint: resume.checkpoint,
        }
    }

    pub(crate) const fn note_turn(&mut self, priority: u32) {
        self.wanted = Some(priority);
    }

    /// Remembers the end, and closes the connection within `Bounds::close`.
    pub(crate) async fn conclude(&mut self, end: End) -> End {
        self.end = Some(end.clone());
        self.driver.finish().await;
        end
    }

    /// Asks the peer for the turn; [`Next::Turn`] tells that this side has it. The lowest priority number is the most urgent.
    ///
    /// # Errors
    ///
    /// [`AssociationError`] with the turn, and in a monologue.
    pub async fn please_turn(&mut self, priority: u32) -> Result<(), AssociationError> {
        self.driver.machine.please_turn(priority)?;
        self.driver.push().await;
        Ok(())
    }

    /// Gives the turn to the peer; ready when the peer has acknowledged it, or the association has ended, which the next event
    /// tells.
    ///
    /// # Errors
    ///
    /// [`AssociationError`] without the turn, in a monologue, and during a transfer.
    pub async fn give_turn(&mut self) -> Result<(), AssociationError> {
        self.driver.machine.give_turn()?;
        self.wanted = None;
        self.driver.acknowledged().await;
        Ok(())
    }

    /// Releases the association; this side needs the turn. A transfer of the peer must not be in progress.
    pub async fn release(mut self) -> End {
        if let Some(end) = self.end {
            return end;
        }
        if let Err(error) = self.driver.machine.release() {
            self.driver.machine.abort(None);
            return self.conclude(error.into()).await;
        }
        loop {
            match self.driver.next(&mut Feed::new()).await {
                Happening::Event(Event::Released) => return self.conclude(End::Released).await,
                Happening::Event(Event::Aborted(cause, _)) => {
                    let end = self.driver.end(Some(cause));
                    return self.conclude(end).await;
                }
                Happening::Closed => return self.driver.end(None),
                Happening::Event(_) | Happening::Late => {}
            }
        }
    }

    /// Ends the association at once.
    pub async fn abort(mut self) {
        self.driver.machine.abort(None);
        self.driver.finish().await;
    }

    /// Ends the association at once; [`Next::Ended`] follows.
    pub async fn break_off(&mut self) {
        self.driver.machine.abort(None);
        let _end = self.conclude(End::Closed).await;
    }

    /// Answers [`Next::Resume`]: this side has that many octets of the transfer before the checkpoint.
    ///
    /// # Errors
    ///
    /// [`AssociationError`] without such a question.
    pub fn continue_from(&mut self, position: u64) -> Result<(), AssociationError> {
        self.handed = Some(Instant::now());
        self.driver.machine.continue_from(position)
    }

    /// Answers [`Next::Resume`]: this side has confirmed the whole APDU before. [`Next::Reconfirmed`] follows.
    ///
    /// # Errors
    ///
    /// [`AssociationError`] without such a question.
    pub fn already_received(&mut self) -> Result<(), AssociationError> {
        self.driver.machine.already_received()
    }

    /// Refuses the transfer that the peer has begun or wants to continue. [`Next::GivenUp`] follows.
    ///
    /// # Errors
    ///
    /// [`AssociationError`] without a transfer of the peer.
    pub async fn refuse(&mut self, reason: Exception) -> Result<(), AssociationError> {
        self.handed = None;
        self.driver.machine.refuse_transfer(reason)?;
        self.driver.push().await;
        Ok(())
    }

    /// How long the host has held octets of an APDU since they were handed over.
    pub(crate) fn held(&mut self) -> Duration {
        self.handed.take().map_or(Duration::ZERO, |at| at.elapsed())
    }
}
