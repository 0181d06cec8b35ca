//! Starts the scheduler of a group, and says how the mail of each destination leaves.

use std::rc::Rc;

use vere_delivery::{Worker, file_each, work};
use vere_queue::{Destination, Place};
use vere_settings::LocalDelivery;

use super::group::{Group, GroupHost};
use super::relay::Relay;
use super::{export, maildir};

/// Delivers the mail of a group of another gateway, and its lines for other systems.
pub(super) async fn deliver(group: Rc<Group>) {
    tokio::join!(run(Rc::clone(&group)), export::run(group));
}

/// Delivers until the gateway stops.
pub(super) async fn run(group: Rc<Group>) {
    group.deliver(serve).await;
}

/// Whether mail for own accounts goes into Maildirs, and not to the mail store.
fn files_itself(group: &Group) -> bool {
    group.host.process.settings().delivery.local == LocalDelivery::Maildir
}

/// Runs a worker of a queue until the queue has been empty for a while or the destination fails.
async fn serve(mut worker: Worker<GroupHost>) {
    let group = Rc::clone(worker.group());
    match worker.destination() {
        Some(Destination {
            place: Place::Local,
            ..
        }) if files_itself(&group) => {
            let process = &group.host.process;
            let file = |envelope, body| maildir::file(Rc::clone(process), envelope, body);
            file_each(&mut worker, file).await;
        }
        Some(destination) => {
            let relay = Relay(group);
            work(&mut worker, &relay, &destination).await;
        }
        None => {}
    }
}
