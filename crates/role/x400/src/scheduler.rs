//! Starts the workers of the queues, each with the courier of its destination.

use std::rc::Rc;

use vere_delivery::{Worker, file_each, work};
use vere_groups::GroupHost;
use vere_mta400::Destination as Next;

use crate::files;
use crate::gateways::GatewayCourier;
use crate::mailboxes::Mailboxes;
use crate::process::{Group, Process};
use crate::transfer::Transfers;

/// Delivers until the MTA stops.
pub(crate) async fn run(group: Rc<Group>) {
    group.deliver(serve).await;
}

/// Runs a worker of a queue until the queue has been empty for a while or the destination fails.
async fn serve(mut worker: Worker<GroupHost<Process>>) {
    let group = Rc::clone(worker.group());
    let Some(destination) = worker.destination() else {
        return;
    };
    match destination.to_string().parse::<Next>() {
        Ok(Next::Peer(_)) => work(&mut worker, &Transfers(group), &destination).await,
        Ok(Next::Store(_)) => work(&mut worker, &Mailboxes(group), &destination).await,
        Ok(Next::File(_)) => {
            let process = &group.host.process;
            let file = |envelope, body| {
                files::file(Rc::clone(process), destination.clone(), envelope, body)
            };
            file_each(&mut worker, file).await;
        }
        Ok(Next::Gateway(name)) => {
            work(&mut worker, &GatewayCourier { group, name }, &destination).await;
        }
        Err(_) => {
            tracing::error!(%destination, "no courier for this destination");
        }
    }
}
