//! An association that a peer has opened, from its bind to its end.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use vere_associations::{
    Activity, Caller as Calling, Decision, End, History, Known, Next, NotOpen, NotReceived,
    OpenAssociation, Partial, Remote, Resumption, Stream, respond,
};
use vere_mta400::{Admitted, Caller, Denied, Source};
use vere_net::tls::PeerCertificate;
use vere_osi::session::Exception;

use crate::auditing::{self, Link};
use crate::intake::NotTaken;
use crate::origin::Origin;
use crate::reception::Reception;

/// An open association, and whose it is.
pub(crate) struct Bound<'a> {
    open: OpenAssociation,
    _place: Place<'a>,
    peer: String,
    address: SocketAddr,
    /// The number of the association in this process.
    number: u64,
}

/// Waits for the bind of a caller and answers it; `None` if there is no association.
pub(crate) async fn bind<'a>(
    reception: &'a Reception,
    stream: Box<dyn Stream>,
    remote: Remote,
) -> Option<Bound<'a>> {
    let address = remote.address;
    let ended = |end: End| tracing::info!(peer = %address, %end, "no association");
    let caller = respond(&reception.responder, stream, remote).await;
    let caller = caller.map_err(ended).ok()?;
    let number = reception.number();
    let admitted = admit(reception, &caller, address, number);
    // At once: many binds of a peer may be on their way.
    let place = admitted
        .as_ref()
        .ok()
        .map(|admitted| Place::take(reception, &admitted.peer));
    let decision = match &admitted {
        Ok(Admitted { result, .. }) => Decision::Accept(result.clone()),
        Err(denied) => Decision::Reject(denied.error),
    };
    match (caller.answer(async { decision }).await, place) {
        (Ok(open), Some(place)) => Some(Bound {
            open,
            peer: place.peer.clone(),
            _place: place,
            address,
            number,
        }),
        (Err(NotOpen::Ended(end)), _) => {
            ended(end);
            None
        }
        _ => None,
    }
}

/// Decides about a bind, and tells of it.
fn admit(
    reception: &Reception,
    caller: &Calling,
    address: SocketAddr,
    number: u64,
) -> Result<Admitted, Denied> {
    let process = reception.intake.process();
    let asked = caller.asked();
    let name = asked.name().unwrap_or_default();
    let count = |peer: &str| reception.open.borrow().get(peer).copied().unwrap_or(0);
    let tls = asked.remote.tls.as_ref();
    let certificate = match tls.map(|tls| &tls.certificate) {
        Some(PeerCertificate::Client(names)) => names.as_slice(),
        _ => &[],
    };
    let who = Caller {
        address: address.ip(),
        certificate,
    };
    let admitted = process.mta().peers.admit(&asked.bind, who, count);
    process.figures.bound(admitted.is_ok());
    let (peer, why) = match &admitted {
        Ok(admitted) => (admitted.peer.as_str(), None),
        Err(denied) => (name.as_str(), Some(denied.why.to_string())),
    };
    if let Some(why) = &why {
        tracing::warn!(peer = %address, name, why, "bind refused");
    }
    if let Some(audit) = &process.audit {
        let link = Link {
            peer,
            address,
            number,
        };
        auditing::bind(audit, link, why.as_deref());
    }
    admitted
}

/// Serves an association until its end.
pub(crate) async fn serve(reception: &Reception, bound: Bound<'_>) {
    let Bound {
        open,
        peer,
        address,
        number,
        _place,
    } = bound;
    tracing::info!(peer, %address, tls = open.facts().remote.tls.is_some(), "association open");
    let mut association = Association {
        reception,
        history: reception.history(&peer),
        address,
        peer: &peer,
        open,
        transfers: 0,
    };
    let end = association.run().await;
    if let Some(audit) = &reception.intake.process().audit {
        let link = Link {
            peer: &peer,
            address,
            number,
        };
        auditing::end(audit, link, association.transfers, &end.to_string());
    }
    tracing::info!(peer, %address, %end, "association ended");
}

/// A place among the associations of a peer.
pub(crate) struct Place<'a> {
    reception: &'a Reception,
    peer: String,
}

impl<'a> Place<'a> {
    fn take(reception: &'a Reception, peer: &str) -> Self {
        *reception
            .open
            .borrow_mut()
            .entry(peer.to_owned())
            .or_insert(0) += 1;
        reception.intake.process().figures.associations_in(1);
        Self {
            reception,
            peer: peer.to_owned(),
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.reception.intake.process().figures.associations_in(-1);
        let mut open = self.reception.open.borrow_mut();
        if let Some(count) = open.get_mut(&self.peer) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                open.remove(&self.peer);
            }
        }
    }
}

/// An open association with a known peer.
struct Association<'a> {
    reception: &'a Reception,
    history: Rc<RefCell<History>>,
    address: SocketAddr,
    peer: &'a str,
    open: OpenAssociation,
    /// Units that are safe.
    transfers: u64,
}

impl Association<'_> {
    async fn run(&mut self) -> End {
        let mut stop = self.reception.stop.clone();
        loop {
            let next = tokio::select! {
                biased;
                next = self.open.next() => next,
                // A transfer that has begun ends before.
                _ = stop.wait_for(|stopping| *stopping) => {
                    self.open.break_off().await;
                    return End::Closed;
                }
            };
            match next {
                Next::Incoming(activity) => self.incoming(activity, Partial::default()).await,
                Next::Resume(resumption) => self.resume(resumption).await,
                Next::TurnWanted(_) => {
                    // A request that crossed a change of the turn is void.
                    let _given = self.open.give_turn().await;
                }
                Next::Ended(end) => return end,
                Next::Turn | Next::Reconfirmed | Next::GivenUp | Next::Idle => {}
            }
        }
    }

    /// Receives a unit, or the rest of it.
    async fn incoming(&mut self, activity: Activity, begun: Partial) {
        let intake = &self.reception.intake;
        if let Err(why) = intake.ready() {
            tracing::warn!(peer = self.peer, why, "transfer refused for now");
            intake.process().figures.refused();
            // The octets of a transfer that continues stay for the next attempt.
            if begun.length() > 0 {
                self.history.borrow_mut().broke(&activity, begun);
            }
            // The peer keeps the unit, and tries again.
            let _refused = self
                .open
                .refuse(Exception::ReceivingAbilityJeopardized)
                .await;
            return;
        }
        if !self.history.borrow_mut().begun(&activity) {
            tracing::info!(
                peer = self.peer,
                "transfer settled on another association, its late octets are dropped"
            );
            return self.open.break_off().await;
        }
        self.reception.kept.release(&activity);
        let process = intake.process();
        let settings = process.settings();
        let most = settings
            .x400
            .as_ref()
            .map_or(0, |x400| x400.size_max.as_u64());
        let share = process.budget.share(self.peer);
        let (called, kept) = (share.called(), &self.reception.kept);
        let share_ref = &share;
        let has_room = |octets| async move {
            let give_way = |shortage| kept.give_way(share_ref, shortage);
            octets <= most && share_ref.grow_in_turn(octets, give_way).await
        };
        let collected = tokio::select! {
            collected = self.open.collect_while(begun, has_room) => Some(collected),
            () = called.notified() => None,
        };
        let Some(collected) = collected else {
            return self.gives_way(&activity).await;
        };
        // What is complete waits for the spool alone.
        share.rest();
        match collected {
            Ok(apdu) => {
                let origin = Origin {
                    source: Source::Peer(self.peer),
                    address: Some(self.address),
                };
                let taken = Box::pin(intake.take(origin, apdu)).await;
                match taken {
                    Ok(_) => {
                        self.transfers += 1;
                        self.history.borrow_mut().received(&activity);
                        // Without a confirmation the peer asks again, and the history answers.
                        let _confirmed = self.open.confirm().await;
                    }
                    Err(error) => self.not_taken(&activity, &error).await,
                }
            }
            Err(NotReceived::Broken(partial, _)) => {
                self.history.borrow_mut().broke(&activity, partial);
                self.reception.kept.keep(&self.history, activity, share);
            }
            Err(error) => {
                tracing::warn!(peer = self.peer, ?error, "transfer not received");
                process.figures.refused();
                self.history.borrow_mut().forget(&activity);
            }
        }
    }

    /// The unit has had memory for long, and others wait for it: the peer keeps the unit, and begins anew.
    async fn gives_way(&mut self, activity: &Activity) {
        tracing::warn!(
            peer = self.peer,
            "transfer refused for now: too slow while others wait for memory"
        );
        self.reception.intake.process().figures.refused();
        self.history.borrow_mut().forget(activity);
        let jeopardized = Exception::ReceivingAbilityJeopardized;
        if self.open.refuse(jeopardized).await.is_err() {
            self.open.break_off().await;
        }
    }

    /// A complete transfer cannot be refused any more: the association ends.
    async fn not_taken(&mut self, activity: &Activity, error: &NotTaken) {
        tracing::warn!(peer = self.peer, %error, "unit not taken, its sender keeps it");
        let process = self.reception.intake.process();
        process.figures.refused();
        if let Some(audit) = &process.audit {
            let origin = Origin {
                source: Source::Peer(self.peer),
                address: Some(self.address),
            };
            auditing::refused(audit, origin, &error.to_string());
        }
        self.history.borrow_mut().forget(activity);
        self.open.break_off().await;
    }

    async fn resume(&mut self, resumption: Resumption) {
        let known = self.history.borrow_mut().resumed(&resumption);
        if !matches!(known, Known::Busy) {
            // The transfer has another name from now on, and the octets are counted anew.
            self.reception.kept.release(&resumption.old);
        }
        match known {
            // Errors: the peer has gone meanwhile, which the next event tells.
            Known::Received => {
                let _answered = self.open.already_received();
            }
            Known::Unknown => {
                let unknown = Exception::UnrecoverableProceduralError;
                let _answered = self.open.refuse(unknown).await;
            }
            Known::Busy => self.open.break_off().await,
            Known::Partial(partial) => {
                if self.open.continue_from(partial.length()).is_ok() {
                    self.incoming(resumption.new, partial).await;
                }
            }
        }
    }
}
