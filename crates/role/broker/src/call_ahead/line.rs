//! A connection to a next hop for questions about recipients.

use std::fmt;

use bytes::Bytes;
use tokio::time::{Instant, timeout_at};
use vere_outbound::{NO_DOMAIN, NO_MAIL, Opened, Progress, Unroutable, drive, reply_line};
use vere_process::{clock, secret};
use vere_queue::Place;
use vere_smtp::address::{AddrSpec, ForwardPath, ReversePath};
use vere_smtp::client::{OutgoingMessage, RecipientOutcome};
use vere_smtp::command::RcptTo;

use super::ground::Ground;
use super::kept::Verdict;
use super::recipient::Recipient;

/// Refused recipients of a connection: servers slow down or end a session after some errors (Postfix after 10 and 20).
const REFUSED_MAX: u32 = 8;

/// A connection.
#[derive(Debug)]
pub(super) struct Line {
    opened: Opened,
    calls: u32,
    refused: u32,
    is_usable: bool,
}

/// The answer of a next hop about a recipient.
#[derive(Debug)]
pub(super) struct Heard {
    pub(super) verdict: Verdict,
    /// The answer about the probe, with a probe.
    pub(super) probe: Option<Verdict>,
    pub(super) reply: String,
}

/// Why a next hop cannot be asked about any recipient.
#[derive(Debug)]
pub(super) enum Broken {
    /// No host takes a connection, or none may be used.
    Unroutable(String),
    /// The domain does not exist, or takes no mail: no recipient exists there.
    NoMail(String),
    /// The next hop is this system.
    Own,
    /// The connection ended before the reply to RCPT.
    Ended,
    /// The next hop refuses the null reverse-path.
    SenderRefused(String),
    /// The time of a call has passed before the reply to MAIL.
    Silent,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unroutable(reply) | Self::NoMail(reply) => f.write_str(reply),
            Self::Own => f.write_str("expected another system; found a listener of this one"),
            Self::Ended => f.write_str("connection ended before the reply to RCPT"),
            Self::SenderRefused(reply) => write!(f, "MAIL FROM:<> refused: {reply}"),
            Self::Silent => f.write_str("no answer within front.call_ahead_timeout"),
        }
    }
}

impl Line {
    /// Whether the connection takes no further call.
    pub(super) const fn is_spent(&self, calls_max: u32) -> bool {
        !self.is_usable || self.calls >= calls_max || self.refused >= REFUSED_MAX
    }

    /// Says goodbye.
    pub(super) async fn quit(&mut self) {
        self.opened.quit().await;
    }

    /// Asks about recipients. Behind the reply to MAIL, a recipient without a reply in time has no definite answer, and the
    /// replies to the others count. `None`: the server ended an idle connection before the question.
    async fn ask(
        &mut self,
        recipients: Vec<RcptTo>,
        by: Instant,
    ) -> Result<Option<Vec<Answered>>, Broken> {
        let message = OutgoingMessage {
            dry_run: true,
            ..OutgoingMessage::new(ReversePath::Null, recipients, Bytes::new())
        };
        let is_kept = self.calls > 0;
        self.calls = self.calls.saturating_add(1);
        let Opened { stream, client, .. } = &mut self.opened;
        client.begin(message, clock::steady());
        let driven = timeout_at(by, drive(stream, client)).await;
        let is_late = driven.is_err();
        let progress = match driven {
            Ok(progress) => progress,
            Err(_) => {
                client.connection_lost();
                drive(stream, client).await
            }
        };
        let Progress::Done(outcome) = progress else {
            return Err(Broken::Ended);
        };
        self.is_usable = outcome.connection_usable;
        if outcome.untried && is_late {
            return Err(Broken::Silent);
        }
        if outcome.untried && is_kept {
            return Ok(None);
        }
        let answers = outcome.recipients.into_iter().map(Answered::of);
        let answers: Vec<Answered> = answers.collect();
        match answers.first() {
            Some(first) if outcome.sender_refused => {
                return Err(Broken::SenderRefused(first.reply.clone()));
            }
            _ if outcome.untried => return Err(Broken::Ended),
            _ => {}
        }
        let refused = answers.iter().filter(|one| one.verdict == Verdict::Unknown);
        let refused = u32::try_from(refused.count()).unwrap_or(u32::MAX);
        self.refused = self.refused.saturating_add(refused);
        Ok(Some(answers))
    }
}

/// The reply to a recipient.
#[derive(Debug)]
struct Answered {
    verdict: Verdict,
    reply: String,
}

impl Answered {
    fn of(outcome: RecipientOutcome) -> Self {
        Self {
            verdict: match outcome {
                RecipientOutcome::Delivered(_) => Verdict::Exists,
                RecipientOutcome::Failed(_) => Verdict::Unknown,
                RecipientOutcome::Deferred(_) => Verdict::Unavailable,
            },
            reply: reply_line(outcome.reply()),
        }
    }
}

impl Ground {
    /// Asks a next hop about a recipient, over the kept connection or a new one. With `needs_probe`, the same transaction
    /// has a probe as second recipient.
    ///
    /// # Errors
    /// [`Broken`] when the next hop cannot be asked about any recipient.
    pub(super) async fn ask_hop(
        &self,
        place: &Place,
        kept: &mut Option<Line>,
        (recipient, needs_probe): (&Recipient, bool),
        by: Instant,
    ) -> Result<Heard, Broken> {
        let mut recipients = vec![rcpt(recipient.address.clone())];
        recipients.extend(probe(recipient).filter(|_| needs_probe).map(rcpt));
        loop {
            let line = match kept {
                Some(line) => line,
                None => {
                    let opened = timeout_at(by, self.open(place, by)).await;
                    kept.insert(opened.unwrap_or(Err(Broken::Silent))?)
                }
            };
            let Some(answers) = line.ask(recipients.clone(), by).await? else {
                *kept = None;
                continue;
            };
            let mut answers = answers.into_iter();
            let own = answers.next().ok_or(Broken::Ended)?;
            return Ok(Heard {
                verdict: own.verdict,
                probe: answers.next().map(|probe| probe.verdict),
                reply: own.reply,
            });
        }
    }

    async fn open(&self, place: &Place, by: Instant) -> Result<Line, Broken> {
        self.shared.count(|figures| &mut figures.connections);
        let hosts = self.outbound.find(&place.clone().into()).await;
        let hosts = hosts.map_err(broken)?;
        if self.outbound.is_own(&hosts) {
            return Err(Broken::Own);
        }
        Ok(Line {
            opened: self
                .outbound
                .open_any_by(&hosts, by)
                .await
                .map_err(broken)?,
            calls: 0,
            refused: 0,
            is_usable: true,
        })
    }
}

fn broken(why: Unroutable) -> Broken {
    match why {
        Unroutable::Permanent { status, reply } if [NO_DOMAIN, NO_MAIL].contains(&status) => {
            Broken::NoMail(reply)
        }
        Unroutable::Permanent { reply, .. }
        | Unroutable::Temporary(reply)
        | Unroutable::Site(reply) => Broken::Unroutable(reply),
    }
}

fn rcpt(address: AddrSpec) -> RcptTo {
    RcptTo::new(ForwardPath::Address(address))
}

/// The probe of a domain: an address with a random local part. A next hop accepts the probe only if the next hop accepts every
/// recipient.
fn probe(recipient: &Recipient) -> Option<AddrSpec> {
    let local = format!("vere-call-ahead-{:016x}", secret::random_number());
    AddrSpec::new(&local, recipient.address.domain()).ok()
}
