//! What the receiving side wants from the rest of the system.
//!
//! Sessions know only this trait. Today the gateway itself implements it; a session that runs in a worker
//! process of its own will reach the gateway through another implementation.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Instant;

use vere_groups::throttle::throttled;
use vere_handoff::question::SpfResults;
use vere_meters::Charged;
use vere_meters::pressure::Closed;
use vere_ports::directory::AccountName;
use vere_queue::HoldCause;
use vere_sasl::server::{PasswordAttempt, PasswordOutcome, ScramLookup};
use vere_settings::{OverSending, Settings};
use vere_smtp::command::{MailFrom, RcptTo};
use vere_smtp::refusal::Refusal;
use vere_smtp::server::{ClientRights, Message, Peer, Server};
use vere_telemetry::metrics::TurnedAway;

use super::accepting::{Beside, accept};
use super::group::Group;
use super::judging::Gathered;
use super::service::Service;
use super::{clock, convert, sending, throttle};
use vere_login::guessing::{Attempt, Outcome};
use vere_login::login::{self, Logins, Print};
use vere_process::places::Client;
use vere_routing::Found;

/// Answers the questions of receiving sessions.
pub(super) trait Intake {
    /// Whether the password is right and may act as wished.
    async fn password(&self, session: &Server, attempt: PasswordAttempt) -> PasswordOutcome;
    /// The SCRAM keys of a user.
    async fn scram_user(&self, session: &Server, username: &str) -> ScramLookup;
    /// Takes note of who has logged in.
    fn follow(&self, session: &Server);
    /// Whether this sender may send now.
    async fn mail(&self, session: &Server, mail: &MailFrom) -> Result<(), Refusal>;
    /// Whether mail for this recipient is taken from this client.
    async fn recipient(&self, session: &Server, rcpt: &RcptTo) -> Result<(), Refusal>;
    /// Takes responsibility for a message: the message is safe once the queue id is returned.
    async fn message(&self, session: &Server, message: Message) -> Result<String, Refusal>;
    /// What a client may do that a trusted proxy speaks for.
    fn rights(&self, peer: &Peer) -> ClientRights;
}

/// Makes the intake of each session.
pub(super) trait Intakes: 'static {
    /// What answers the questions of a session.
    type Intake: Intake;

    /// Returns the intake of a new session.
    fn intake(&self, service: Service) -> Self::Intake;

    /// Why no session may begin now.
    fn closed(&self) -> Option<TurnedAway>;
}

/// The gateway: its sessions put mail into its own group of queues.
#[derive(Debug)]
pub(super) struct GatewayIntakes {
    group: Rc<Group>,
    logins: Logins,
}

impl GatewayIntakes {
    pub(super) fn new(group: Rc<Group>) -> Self {
        Self {
            group,
            logins: Logins::default(),
        }
    }
}

impl Intakes for GatewayIntakes {
    type Intake = ServiceIntake;

    fn intake(&self, service: Service) -> ServiceIntake {
        ServiceIntake {
            group: Rc::clone(&self.group),
            service,
            logins: self.logins.clone(),
            exchange: RefCell::default(),
            shown: Cell::default(),
        }
    }

    fn closed(&self) -> Option<TurnedAway> {
        if self.group.host.link.state().borrow().is_shut() {
            return Some(TurnedAway::Spool);
        }
        let pressed = self.group.is_recovered() && throttled(&self.group).is_some();
        pressed.then_some(TurnedAway::Pressure)
    }
}

/// The gateway, as the clients of one service meet it.
#[derive(Debug)]
pub(super) struct ServiceIntake {
    group: Rc<Group>,
    service: Service,
    logins: Logins,
    /// A SCRAM exchange that has not ended.
    exchange: RefCell<Option<Attempt>>,
    /// The password by which the client logs in; absent where a trusted proxy gives the client's name.
    shown: Cell<Option<Print>>,
}

impl ServiceIntake {
    /// Whether who logged in to this account may send still.
    fn is_in(&self, account: &str) -> Result<(), Refusal> {
        let Some(shown) = self.shown.get() else {
            return Ok(());
        };
        let Ok(account) = AccountName::parse(account) else {
            return Err(Refusal::LoginOver);
        };
        let now = Print::look_up(self.group.host.process.router.directory(), &account);
        let now = now.map_err(|error| {
            tracing::error!(%error, "directory cannot be read");
            Refusal::LocalError
        })?;
        match now == Some(shown) {
            true => Ok(()),
            false => Err(Refusal::LoginOver),
        }
    }
}

impl Intake for ServiceIntake {
    async fn password(&self, session: &Server, attempt: PasswordAttempt) -> PasswordOutcome {
        self.exchange.take();
        let client = Client::at(session.peer().address.ip());
        let directory = self.group.host.process.router.directory().clone();
        // Before the check: the directory may change the account meanwhile.
        self.shown.set(Print::of_user(&directory, &attempt.authcid));
        // Boxed for the same reason as what follows a message.
        Box::pin(self.logins.password(client, directory, attempt)).await
    }

    async fn scram_user(&self, session: &Server, username: &str) -> ScramLookup {
        // Whether the proof is right only the machine sees: the attempt has failed unless it says so.
        self.exchange.take();
        let client = Client::at(session.peer().address.ip());
        let exchange = Box::pin(self.logins.exchange(client, username)).await;
        self.exchange.replace(Some(exchange));
        let directory = self.group.host.process.router.directory();
        self.shown.set(Print::of_user(directory, username));
        login::scram_keys(directory, username)
    }

    fn follow(&self, session: &Server) {
        if session.account().is_some()
            && let Some(exchange) = self.exchange.take()
        {
            exchange.settle(Outcome::Succeeded);
        }
    }

    async fn mail(&self, session: &Server, mail: &MailFrom) -> Result<(), Refusal> {
        let known = session.account().is_some() || self.service == Service::Sendmail;
        if let Some(closed) = throttle::closed(&self.group, known) {
            if closed == Closed::Lines {
                self.group.host.process.metrics.turned_away_for_lines();
            }
            return Err(closed.refusal());
        }
        if let Some(account) = session.account() {
            self.is_in(account)?;
        }
        let process = &self.group.host.process;
        if let Some(account) = session.account() {
            let sending = &process.settings().sending;
            let may_begin = process.meters.may_begin(sending, account, Instant::now());
            may_begin.inspect_err(|_| process.metrics.sent_too_much(OverSending::Defer))?;
        }
        match (session.account(), mail.reverse_path.address()) {
            (Some(account), Some(address)) => sending::check_sender(process, account, address),
            _ => Ok(()),
        }
    }

    async fn recipient(&self, session: &Server, rcpt: &RcptTo) -> Result<(), Refusal> {
        let group = &self.group;
        let process = &group.host.process;
        let settings = process.settings();
        let found = process.router.find(&settings, &rcpt.forward_path)?;
        found.permit(self.is_known(session))?;
        room(group, &settings, found)
    }

    async fn message(&self, session: &Server, message: Message) -> Result<String, Refusal> {
        let is_known = self.is_known(session);
        self.take(is_known, None, message, None).await
    }

    fn rights(&self, peer: &Peer) -> ClientRights {
        // The proxy announced another client, which has not logged in on this connection.
        self.shown.set(None);
        let settings = self.group.host.process.settings();
        let address = peer.address.ip();
        ClientRights {
            may_relay: settings.relay.contains(address),
            may_auth_in_clear: settings.auth.plaintext_networks.contains(address),
            may_prioritise: settings.priority.networks.contains(address),
        }
    }
}

impl ServiceIntake {
    /// Takes responsibility for a message of a client that [is known](Self::is_known) or not, with the results of SPF where checked, and any further
    /// facts of a worker about the message.
    pub(super) async fn take(
        &self,
        is_known: bool,
        spf: Option<SpfResults>,
        mut message: Message,
        gathered: Option<Gathered>,
    ) -> Result<String, Refusal> {
        let trace = self.group.host.process.trace_id();
        let begun = Instant::now();
        let (octets, recipients) = (message.body.len(), message.recipients.len());
        if !is_known {
            for rcpt in &mut message.recipients {
                rcpt.notify = rcpt.notify.map(convert::without_success);
            }
        }
        let stored = match self.charge(&message) {
            Ok(charged) => {
                let beside = Beside {
                    trace,
                    is_known,
                    spf,
                    held_for: charged
                        .as_ref()
                        .filter(|charged| charged.is_held())
                        .map(|_| HoldCause::Sending),
                };
                // Boxed: the future is large, and every waiting session would reserve memory for it.
                let accepted = accept(&self.group, self.service, beside, message, gathered);
                let stored = Box::pin(accepted).await;
                if let (Some(charged), Err(refusal)) = (charged, &stored)
                    && !is_by_filter(refusal)
                {
                    charged.give_back(&self.group.host.process.meters);
                }
                stored
            }
            Err(refusal) => Err(refusal),
        };
        self.group.host.process.metrics.received(
            self.service,
            octets,
            recipients,
            begun.elapsed(),
            stored.as_ref().err(),
        );
        stored.map(|()| trace.to_string())
    }

    /// Counts a message of an account.
    fn charge(&self, message: &Message) -> Result<Option<Charged>, Refusal> {
        let Some(account) = &message.session.account else {
            return Ok(None);
        };
        let process = &self.group.host.process;
        let recipients = u32::try_from(message.recipients.len()).unwrap_or(u32::MAX);
        let settings = process.settings();
        let now = Instant::now();
        let charged = process
            .meters
            .charge(&settings.sending, account, recipients, now);
        let over = match &charged {
            Ok(charged) if charged.is_held() => Some(OverSending::Hold),
            Ok(_) => None,
            Err(_) => Some(OverSending::Defer),
        };
        if let Some(over) = over {
            process.metrics.sent_too_much(over);
        }
        charged.map(Some)
    }

    /// Whether the client is local: a local client may send to any domain, and the senders hear of success. A stranger's reverse
    /// path may be forged, and the victim would be sent a report for each message.
    fn is_known(&self, session: &Server) -> bool {
        session.peer().may_relay || session.account().is_some() || self.service == Service::Sendmail
    }
}

/// Whether a refusal of an account's message is final and by a content filter. Such a message counts as sent: a stolen account could try
/// at no cost which text the filters let pass.
const fn is_by_filter(refusal: &Refusal) -> bool {
    matches!(
        refusal,
        Refusal::Site {
            permanent: true,
            ..
        }
    )
}

/// Whether the queues that a recipient's mail goes to take more.
fn room(group: &Group, settings: &Settings, found: Found) -> Result<(), Refusal> {
    let now = clock::now();
    let limits = &settings.limits;
    // Nearly always nothing is refused, and all queues together hold less than one may.
    let any_bound = group.queues.look(|queues| {
        let totals = queues.totals();
        totals.messages as u64 >= limits.messages_per_destination_max
            || totals.octets >= limits.octets_per_destination_max.as_u64()
            || queues.has_orders()
    });
    if !any_bound {
        return Ok(());
    }
    for destination in found.destinations() {
        let (refused, (messages, octets)) = group.queues.look(|queues| {
            let refused = queues.is_refused(&destination, now);
            (refused, queues.fill(&destination))
        });
        if refused {
            return Err(Refusal::DestinationRefused);
        }
        if messages as u64 >= limits.messages_per_destination_max
            || octets >= limits.octets_per_destination_max.as_u64()
        {
            return Err(Refusal::DestinationFull);
        }
    }
    Ok(())
}
