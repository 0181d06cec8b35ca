//! An association opened by a peer, from bind to end.

use std::net::SocketAddr;

use vere_associations::{
    Caller as Calling, Decision, End, Next, NotOpen, OpenAssociation, Partial, Remote, Stream,
    respond,
};
use vere_mta400::{Admitted, Caller, Denied};
use vere_net::tls::PeerCertificate;

use crate::auditing::{self, Link};
use crate::receiver::Receiver;
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
        receiver: Receiver::new(reception, &peer, Some(address)),
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
    receiver: Receiver<'a, Reception>,
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
                Next::Incoming(activity) => {
                    let transfer =
                        self.receiver
                            .transfer(&mut self.open, activity, Partial::default());
                    self.transfers += u64::from(transfer.await);
                }
                Next::Resume(resumption) => {
                    let rest = self.receiver.resume(&mut self.open, resumption);
                    self.transfers += u64::from(rest.await);
                }
                Next::TurnWanted(_) => {
                    // A request that crossed a change of the turn is void.
                    let _given = self.open.give_turn().await;
                }
                Next::Ended(end) => return end,
                Next::Turn | Next::Reconfirmed | Next::GivenUp | Next::Idle => {}
            }
        }
    }
}
