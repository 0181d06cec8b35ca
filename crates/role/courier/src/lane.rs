//! A number of the gateway: a destination, the hosts of the destination, and at most one connection.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc::Receiver;
use vere_delivery::Unroutable;
use vere_handoff::delivery::{Answer, Extent, Outcome, Outcomes};
use vere_outbound::{Hosts, Outbound, STATUSES, Sending};
use vere_process::clock;
use vere_queue::{Attempt, Destination, Disposition, Envelope, RecipientResult};

use super::answers::Answers;

/// A command of the gateway.
#[derive(Debug)]
pub(crate) enum Command {
    Open,
    Send {
        /// The latest begin, since the start of the machine.
        until: Duration,
        envelope: Box<Envelope>,
        body: Bytes,
    },
    Quit,
}

/// A lane; the gateway forgets it by closing `commands`.
pub(crate) struct Lane {
    pub(crate) number: u64,
    pub(crate) outbound: Rc<Outbound>,
    pub(crate) answers: Rc<Answers>,
    pub(crate) commands: Receiver<Command>,
}

/// Finds the hosts of a destination, and follows commands until the gateway forgets the lane.
pub(crate) async fn run(mut lane: Lane, destination: Destination) {
    let outbound = Rc::clone(&lane.outbound);
    let number = lane.number;
    match lane.unless_forgotten(outbound.find(&destination)).await {
        None => {}
        Some(Err(none)) => lane.answers.say(&unroutable(number, none)),
        Some(Ok(hosts)) => {
            let site = hosts.site.to_string();
            lane.answers.say(&Answer::Found { number, site });
            lane.serve(&hosts).await;
        }
    }
}

impl Lane {
    async fn serve(&mut self, hosts: &Hosts) {
        let mut sending: Option<Sending> = None;
        loop {
            let usable = sending.as_mut().is_some_and(Sending::usable);
            let command = match &mut sending {
                Some(open) if usable => tokio::select! {
                    biased;
                    command = self.commands.recv() => command,
                    () = open.closed() => {
                        let number = self.number;
                        self.answers.say(&Answer::Closed { number });
                        sending = None;
                        continue;
                    }
                },
                _ => self.commands.recv().await,
            };
            match command {
                None => return,
                Some(Command::Quit) => {
                    if let Some(mut open) = sending.take() {
                        open.quit().await;
                    }
                    let number = self.number;
                    self.answers.say(&Answer::Closed { number });
                }
                Some(Command::Open) => {
                    // The gateway wants another connection.
                    drop(sending.take());
                    match self.open(hosts).await {
                        Some(opened) => sending = opened,
                        None => return,
                    }
                }
                Some(Command::Send {
                    until,
                    envelope,
                    body,
                }) => {
                    let sent = self.send(&mut sending, until, &envelope, body).await;
                    if sent.is_none() {
                        return;
                    }
                }
            }
        }
    }

    /// Connects; `None` when the gateway has forgotten the lane.
    async fn open(&mut self, hosts: &Hosts) -> Option<Option<Sending>> {
        let outbound = Rc::clone(&self.outbound);
        let number = self.number;
        match self.unless_forgotten(outbound.open_any(hosts)).await? {
            Ok(opened) => {
                let sending = Sending::from(opened);
                self.answers.say(&Answer::Opened {
                    number,
                    remote: sending.remote().to_owned(),
                    security: sending.security().to_owned(),
                });
                Some(Some(sending))
            }
            Err(none) => {
                self.answers.say(&unroutable(number, none));
                Some(None)
            }
        }
    }

    /// Sends a message; `None` when the gateway has forgotten the lane.
    async fn send(
        &mut self,
        sending: &mut Option<Sending>,
        until: Duration,
        envelope: &Envelope,
        body: Bytes,
    ) -> Option<()> {
        let number = self.number;
        let attempt = match sending {
            Some(open) if clock::since_boot() <= until => {
                let sent = open.send(envelope, body, |_| ());
                self.unless_forgotten(sent).await?.ok()
            }
            // The connection is closed, or the process stood still.
            _ => None,
        };
        let usable = sending.as_mut().is_some_and(Sending::usable);
        self.answers.say(&match attempt {
            Some(attempt) => Answer::Sent {
                number,
                outcomes: outcomes(attempt, usable),
            },
            None => Answer::Unsent { number, usable },
        });
        Some(())
    }

    /// Awaits the work of a request. `None` when the gateway forgets the lane meanwhile, or asks again before the answer.
    async fn unless_forgotten<T>(&mut self, what: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            done = what => Some(done),
            _ = self.commands.recv() => None,
        }
    }
}

fn outcomes(attempt: Attempt, usable: bool) -> Outcomes {
    Outcomes {
        usable,
        reports_taken_over: attempt.reports_taken_over,
        recipients: attempt.results.into_iter().map(outcome).collect(),
    }
}

fn outcome(result: RecipientResult) -> Outcome {
    Outcome {
        disposition: match result.disposition {
            Disposition::Delivered => 0,
            Disposition::Deferred => 1,
            Disposition::Failed => 2,
        },
        from_remote: result.from_remote,
        status: result.status,
        reply: result.reply,
    }
}

fn unroutable(number: u64, none: Unroutable) -> Answer {
    let (extent, status, reply) = match none {
        Unroutable::Temporary(reply) => (Extent::Now, 0, reply),
        Unroutable::Site(reply) => (Extent::Site, 0, reply),
        Unroutable::Permanent { status, reply } => {
            let place = STATUSES.iter().position(|known| *known == status);
            // The gateway takes an unknown status for a temporary failure.
            let status = place.and_then(|place| u8::try_from(place).ok());
            (Extent::Ever, status.unwrap_or(u8::MAX), reply)
        }
    };
    Answer::Unroutable {
        number,
        extent,
        status,
        reply,
    }
}
