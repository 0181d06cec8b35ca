//! Accepts connections.

use std::cell::Cell;
use std::rc::Rc;

use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use vere_process::accept;

use super::Desk;
use super::connection::Connection;
use crate::attached::Gateways;

/// Connections at once, at most.
const CONNECTIONS_MAX: usize = 64;

/// Serves until `stop` becomes true.
pub(crate) async fn serve<D: Desk>(
    desk: Rc<D>,
    gateways: Rc<Gateways>,
    listener: UnixListener,
    stop: watch::Receiver<bool>,
) {
    let count = Rc::new(Cell::new(0_usize));
    let stopping = stop.clone();
    accept::accept(listener, "gateways", stop, |stream: UnixStream| {
        let place = Place::take(&count);
        let connection = Connection::new(&desk, &gateways, stream, stopping.clone());
        async move {
            match place {
                Some(_place) => connection.run().await,
                None => {
                    let error =
                        format!("expected at most {CONNECTIONS_MAX} connections; found more");
                    connection.turn_away(&error).await;
                }
            }
        }
    })
    .await;
}

/// A place among the connections.
struct Place(Rc<Cell<usize>>);

impl Place {
    fn take(count: &Rc<Cell<usize>>) -> Option<Self> {
        if count.get() >= CONNECTIONS_MAX {
            return None;
        }
        count.set(count.get().saturating_add(1));
        Some(Self(Rc::clone(count)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}
