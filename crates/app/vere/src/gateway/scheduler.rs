//! Carries out what the queue engine decides: starts and wakes the workers that deliver.

use std::rc::Rc;

use tokio::task::spawn_local;
use vere_queue::{Destination, Next};

use super::state::Gateway;
use super::{clock, local, relay};

/// Runs until the gateway stops.
pub(super) async fn run(gateway: Rc<Gateway>) {
    loop {
        if gateway.delivering() {
            dispatch(&gateway);
        }
        let wake_at = gateway
            .queues
            .borrow()
            .wake_at()
            .filter(|_| gateway.delivering());
        let timer = async {
            match wake_at {
                Some(time) => tokio::time::sleep(clock::until(time)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = gateway.changed.notified() => {}
            () = timer => {}
        }
    }
}

fn dispatch(gateway: &Rc<Gateway>) {
    loop {
        let next = gateway.queues.borrow_mut().poll(clock::now());
        match next {
            Some(Next::Wake(queue)) => gateway.waker(queue).notify_one(),
            Some(Next::Open(queue)) => {
                spawn_local(work(Rc::clone(gateway), queue));
            }
            None => break,
        }
    }
}

/// One worker of one queue; it ends when the queue has been empty for a while or cannot be delivered.
async fn work(gateway: Rc<Gateway>, queue: u32) {
    let destination = gateway.queues.borrow().destination(queue).cloned();
    match destination {
        Some(Destination::Local) => local::work(&gateway, queue).await,
        Some(destination) => relay::work(&gateway, queue, &destination).await,
        None => {}
    }
    gateway.queues.borrow_mut().worker_ended(queue);
    gateway.changed.notify_one();
}
