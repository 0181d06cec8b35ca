//! Receives the units of peers over associations opened by this MTA.

use std::rc::Rc;

use tokio::sync::mpsc;
use tokio::task::spawn_local;
use vere_associations::{Begun, Lent, Partial};

use crate::peers::Incoming;
use crate::receiver::{Host, Receiver};
use crate::reception::Reception;

/// Receives until the MTA stops, over all lent associations at once.
pub(crate) async fn receive(reception: Rc<Reception>, mut all: mpsc::Receiver<Incoming>) {
    let mut stop = reception.stop.clone();
    loop {
        let incoming = tokio::select! {
            biased;
            // What has begun keeps the reception until its end, this task does not.
            _ = stop.wait_for(|stopping| *stopping) => return,
            incoming = all.recv() => incoming,
        };
        let Some(Incoming { peer, lent }) = incoming else {
            return;
        };
        let reception = Rc::clone(&reception);
        spawn_local(async move { receive_one(&*reception, &peer, lent).await });
    }
}

/// Receives one transfer over an association of a pool, and gives the association back.
pub(crate) async fn receive_one(host: &impl Host, peer: &str, lent: Lent) {
    let Lent {
        mut open,
        begun,
        back,
    } = lent;
    let receiver = Receiver::new(host, peer, None);
    let _is_safe = match begun {
        Begun::Transfer(activity) => {
            let nothing = Partial::default();
            receiver.transfer(&mut open, activity, nothing).await
        }
        Begun::Rest(resumption) => receiver.resume(&mut open, resumption).await,
    };
    // A pool that has ended needs the association no more.
    let _dropped = back.send(open);
}
