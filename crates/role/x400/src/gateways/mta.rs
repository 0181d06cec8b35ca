//! The MTA of this process, as the socket sees it.

use std::collections::HashMap;
use std::rc::Rc;

use tokio::task::spawn_local;
use vere_attach::{PeerRow, PeerState};
use vere_delivery::{Acted, Action, Selection, Sweep};
use vere_mta400::{Mta, Source};
use vere_process::clock;
use vere_queue::{Destination, QueueSummary};
use vere_units::Timestamp;
use vere_x400::Apdu;

use super::{Accepted, Desk, Unaccepted};
use crate::budget::Budget;
use crate::intake::{NotTaken, Taken};
use crate::kept::Kept;
use crate::origin::Origin;
use crate::process::{Group, Process};
use crate::reception::Reception;

/// Peers in one answer; a client asks for the next ones.
const PEERS: usize = 1_000;

/// The MTA of this process.
#[derive(Debug)]
pub(crate) struct MtaDesk {
    pub(crate) group: Rc<Group>,
    pub(crate) reception: Rc<Reception>,
}

impl MtaDesk {
    fn process(&self) -> &Rc<Process> {
        &self.group.host.process
    }

    /// The queues by their destinations, in lower case.
    fn queues(&self) -> HashMap<String, QueueSummary> {
        let all = self
            .group
            .queues
            .look(|queues| queues.summaries(None, usize::MAX));
        all.into_iter()
            .map(|one| (one.destination.to_string(), one))
            .collect()
    }

    fn row(&self, name: &str) -> PeerRow {
        let open = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let inward = self.reception.open.borrow().get(name).copied().unwrap_or(0);
        PeerRow {
            name: name.to_owned(),
            associations_in: open(inward),
            associations_out: open(self.process().peers.open(name)),
            ..PeerRow::default()
        }
    }
}

/// What the queue of a peer says.
fn fill(row: &mut PeerRow, queue: &QueueSummary, now: Timestamp) {
    row.queued = u64::try_from(queue.messages).unwrap_or(u64::MAX);
    row.oldest_s = queue
        .oldest
        .map(|oldest| now.saturating_since(oldest).as_secs());
    let next = queue.paused_until.filter(|until| *until > now);
    row.next_attempt_s = next.map(|until| until.saturating_since(now).as_secs());
    row.last_error.clone_from(&queue.last_reply);
    if queue.held_until.is_some_and(|until| until > now) {
        row.state = PeerState::Held;
    } else if next.is_some() {
        row.state = PeerState::Failing;
    } else if row.state != PeerState::Open && queue.messages > 0 {
        row.state = PeerState::Waiting;
    }
}

impl Desk for MtaDesk {
    fn mta(&self) -> Rc<Mta> {
        self.process().mta()
    }

    fn window(&self, name: &str) -> Option<u32> {
        let settings = self.process().settings();
        let gateways = settings.x400.as_ref().map(|x400| x400.gateways.as_slice());
        let gateway = gateways?.iter().find(|one| one.name == name)?;
        Some(gateway.keep_max)
    }

    fn octets_max(&self) -> u64 {
        self.process().octets_max()
    }

    fn budget(&self) -> &Rc<Budget> {
        &self.process().budget
    }

    fn kept(&self) -> &Kept {
        &self.reception.kept
    }

    fn identifier(&self) -> String {
        self.process().fresh_id().to_string()
    }

    fn ready(&self) -> Result<(), &'static str> {
        self.reception.intake.ready()
    }

    async fn accept(&self, unit: Apdu, source: Source<'_>) -> Result<Accepted, Unaccepted> {
        let intake = &self.reception.intake;
        self.ready().map_err(|why| Unaccepted {
            temporary: true,
            error: why.to_owned(),
        })?;
        let origin = Origin {
            source,
            address: None,
        };
        match intake.take_unit(origin, unit).await {
            Ok(Taken { trace, identifier }) => Ok(Accepted {
                identifier,
                id: trace.to_string(),
            }),
            Err(error) => Err(Unaccepted {
                temporary: matches!(error, NotTaken::Archive(_) | NotTaken::Spool(_)),
                error: error.to_string(),
            }),
        }
    }

    fn peers(&self, after: Option<&str>) -> Vec<PeerRow> {
        let (mta, now) = (self.mta(), clock::now());
        let names = mta.peers.iter().map(|terms| &*terms.name);
        let names = names.filter(|name| after.is_none_or(|after| *name > after));
        let queues = self.queues();
        let row = |name: &str| {
            let mut row = self.row(name);
            if row.associations_in.max(row.associations_out) > 0 {
                row.state = PeerState::Open;
            }
            if let Some(queue) = queues.get(&format!("peer:{name}").to_ascii_lowercase()) {
                fill(&mut row, queue, now);
            }
            row
        };
        names.take(PEERS).map(row).collect()
    }

    fn attached(self: &Rc<Self>, name: &str) {
        let destination = Destination::domain(format!("gateway:{name}"));
        let number = self.group.queues.look(|queues| queues.number(&destination));
        let Some(queue) = number else {
            return;
        };
        let sweep = Sweep {
            group: Rc::clone(&self.group),
            queue,
            selection: Selection::default(),
            action: Action::Retry,
            report: false,
        };
        spawn_local(async move {
            // Without an answer of the spool the messages are tried at their next time.
            let _ = sweep.run(&mut Acted::default()).await;
        });
    }
}
