//! Mailboxes of the mail store: the courier of the queues `store:ACCOUNT`, over LMTP.

use std::rc::Rc;

use bytes::Bytes;
use vere_delivery::{BeforeMessage, Courier, Session, Unroutable};
use vere_mta400::{Destination as Next, RecordRecipient};
use vere_outbound::{Hosts, Sending};
use vere_process::clock;
use vere_queue::{
    Attempt, Destination, Disposition, Envelope, Mail, Recipient, RecipientResult, SiteName,
};
use vere_telemetry::trace::{Event, EventKind};

use crate::memo::{self, About};
use crate::process::{Group, Process};

/// Brings units into mailboxes.
#[derive(Debug)]
pub(crate) struct Mailboxes(pub(crate) Rc<Group>);

impl Courier for Mailboxes {
    type Route = (Hosts, String);
    type Session = Filing;

    async fn find(&self, way: &Destination) -> Result<Self::Route, Unroutable> {
        let account = way.to_string();
        let account = account
            .strip_prefix("store:")
            .unwrap_or(&account)
            .to_owned();
        let hosts = self
            .0
            .host
            .process
            .outbound
            .find(&Destination::LOCAL)
            .await?;
        Ok((hosts, account))
    }

    fn site<'a>(&self, (hosts, _): &'a Self::Route) -> &'a SiteName {
        &hosts.site
    }

    async fn open(&self, (hosts, account): &Self::Route) -> Result<Filing, Unroutable> {
        let opened = self.0.host.process.outbound.open_any(hosts).await?;
        Ok(Filing {
            group: Rc::clone(&self.0),
            account: account.clone(),
            sending: Box::new(opened.into()),
        })
    }

    fn messages_max(&self) -> u32 {
        self.0
            .host
            .process
            .settings()
            .delivery
            .messages_per_connection_max
    }
}

/// A connection to the mail store.
#[derive(Debug)]
pub(crate) struct Filing {
    group: Rc<Group>,
    account: String,
    sending: Box<Sending>,
}

impl Filing {
    fn process(&self) -> &Rc<Process> {
        &self.group.host.process
    }

    /// The mail about a unit; `None` where the unit cannot be read.
    fn mail(&self, envelope: &Envelope, body: &Bytes) -> Option<Bytes> {
        let process = self.process();
        let tags = envelope
            .mail
            .recipients
            .iter()
            .filter_map(|one| one.orcpt.as_deref());
        let places: Vec<u32> = tags.filter_map(RecordRecipient::place_of).collect();
        let to = Next::Store(self.account.clone());
        let unit = process.mta().outgoing(body, &places, &to).ok()?.apdu?;
        let settings = process.settings();
        let about = About {
            to: &self.account,
            hostname: &settings.hostname,
            trace: envelope.head.trace,
            // The same octets at each attempt: the store knows a message that comes again.
            now: envelope.head.accepted,
        };
        Some(memo::write(&unit, about))
    }

    fn envelope(&self, of: &Envelope, octets: usize) -> Envelope {
        let mut head = of.head.clone();
        head.size = u32::try_from(octets).unwrap_or(u32::MAX);
        Envelope {
            head,
            mail: Mail {
                recipients: vec![Recipient {
                    address: self.account.clone(),
                    notify: vere_queue::Notify::NEVER,
                    orcpt: None,
                }],
                ..Mail::default()
            },
        }
    }
}

impl Session for Filing {
    async fn send(
        &mut self,
        envelope: &Rc<Envelope>,
        body: Bytes,
    ) -> Result<Attempt, BeforeMessage> {
        let count = envelope.mail.recipients.len();
        let Some(mail) = self.mail(envelope, &body) else {
            tracing::error!(queue_id = %envelope.head.trace, "cannot read a stored unit");
            return Ok(everybody(count, &unreadable()));
        };
        let inner = self.envelope(envelope, mail.len());
        let process = Rc::clone(self.process());
        let begin = |sending: &Sending| {
            process.note(&Event {
                remote: Some(sending.remote()),
                attempt: Some(u32::from(envelope.head.attempts) + 1),
                ..Event::new(EventKind::Attempt, envelope.head.trace, clock::now())
            });
        };
        let attempt = self.sending.send(&inner, mail, begin).await?;
        // A mailbox; the answer counts for all addresses of the user.
        let result = attempt.results.first().cloned().unwrap_or_else(unreadable);
        Ok(everybody(count, &result))
    }

    fn usable(&mut self) -> bool {
        self.sending.usable()
    }

    async fn closed(&mut self) {
        self.sending.closed().await;
    }

    async fn quit(&mut self) {
        self.sending.quit().await;
    }
}

fn everybody(count: usize, result: &RecipientResult) -> Attempt {
    Attempt {
        remote: "local".to_owned(),
        reports_taken_over: false,
        results: vec![result.clone(); count],
    }
}

fn unreadable() -> RecipientResult {
    RecipientResult {
        disposition: Disposition::Failed,
        status: "5.6.0".to_owned(),
        reply: "the stored unit cannot be read".to_owned(),
        from_remote: false,
    }
}
