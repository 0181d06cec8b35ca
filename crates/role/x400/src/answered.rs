//! Takes the units that peers send over associations that this MTA has opened.

use std::rc::Rc;

use tokio::sync::mpsc;
use tokio::task::spawn_local;
use vere_associations::Delivered;
use vere_mta400::Source;

use crate::intake::Intake;
use crate::origin::Origin;
use crate::peers::Incoming;

/// Takes units until the MTA stops: as many at once as there are associations.
pub(crate) async fn take(intake: Rc<Intake>, mut units: mpsc::Receiver<Incoming>) {
    while let Some(incoming) = units.recv().await {
        let intake = Rc::clone(&intake);
        spawn_local(async move { take_one(&intake, incoming).await });
    }
}

async fn take_one(intake: &Intake, Incoming { peer, unit }: Incoming) {
    let Delivered { apdu, safe } = unit;
    let origin = Origin {
        source: Source::Peer(&peer),
        address: None,
    };
    let taken = match intake.ready() {
        Ok(()) => intake
            .take(origin, apdu)
            .await
            .map_err(|error| error.to_string()),
        Err(why) => Err(why.to_owned()),
    };
    if let Err(error) = &taken {
        tracing::warn!(peer, error, "unit not taken, its sender keeps it");
    }
    // A lane that waits no more has an end to its association.
    let _told = safe.send(taken.is_ok());
}
