//! Drives one SMTP connection: moves octets between the socket and the machine, and takes the machine's
//! questions to the [`Intake`].

use std::io;
use std::rc::Rc;
use std::sync::Arc;

use tokio::net::{TcpStream, UnixStream};
use tokio::sync::watch;
use vere_net::tls::ServerStream;
use vere_smtp::refusal::Refusal;
use vere_smtp::server::{Answer, Peer, Question, Server, ServerConfig, Step, TlsInfo};
use vere_telemetry::metrics::{HandshakeResult, TlsSide};

use super::aside::Aside;
use super::intake::Intake;
use super::mail_log;
use super::metrics::GatewayMetrics;
use super::service::Service;
use vere_process::clock;
use vere_process::memory::Share;
use vere_process::tls::ServerTls;
use vere_process::wire::{self, Connection};

/// The environment of a session, besides the connection.
#[derive(Debug)]
pub(super) struct SessionContext<I> {
    pub(super) config: Arc<ServerConfig>,
    pub(super) intake: I,
    pub(super) service: Service,
    pub(super) tls: ServerTls,
    pub(super) metrics: Rc<GatewayMetrics>,
    /// Octets of messages in memory.
    pub(super) held: Share,
    /// Octets of long messages on disk.
    pub(super) aside: Aside,
    /// Becomes true when the gateway stops: the session ends at its next command boundary.
    pub(super) stop: watch::Receiver<bool>,
}

/// Why [`run`] returned.
enum Pause {
    StartTls,
    Closed,
}

/// Serves a connection that starts in the clear; STARTTLS may turn it into TLS.
///
/// # Errors
/// When the connection breaks. Every message that was acknowledged to the client is safe.
pub(super) async fn serve<I: Intake>(
    mut stream: TcpStream,
    peer: Peer,
    mut context: SessionContext<I>,
) -> io::Result<()> {
    let mut server = Server::new(Arc::clone(&context.config), peer, clock::steady());
    // Input before the greeting comes from a client that does not wait for the greeting.
    wire::take_arrived(&stream, |octets| {
        server.input(octets, clock::steady());
    });
    match run(&mut stream, &mut server, &mut context).await? {
        Pause::Closed => Ok(()),
        Pause::StartTls => Box::pin(upgrade(stream, server, context)).await,
    }
}

/// Serves a program of this machine, over a socket in the file system.
///
/// # Errors
/// As [`serve`].
pub(super) async fn serve_local<I: Intake>(
    mut stream: UnixStream,
    peer: Peer,
    mut context: SessionContext<I>,
) -> io::Result<()> {
    let mut server = Server::new(Arc::clone(&context.config), peer, clock::steady());
    run(&mut stream, &mut server, &mut context).await.map(drop)
}

async fn upgrade<I: Intake>(
    stream: TcpStream,
    mut server: Server,
    mut context: SessionContext<I>,
) -> io::Result<()> {
    let (mut stream, info) = handshake(stream, &context).await?;
    server.tls_started(info);
    run(&mut stream, &mut server, &mut context).await.map(drop)
}

/// Serves a connection that is encrypted from its first octet (RFC 8314).
///
/// # Errors
/// As [`serve`], or when the handshake fails.
pub(super) async fn serve_tls<I: Intake>(
    stream: TcpStream,
    mut peer: Peer,
    mut context: SessionContext<I>,
) -> io::Result<()> {
    let (mut stream, info) = handshake(stream, &context).await?;
    peer.tls = Some(info);
    let mut server = Server::new(Arc::clone(&context.config), peer, clock::steady());
    run(&mut stream, &mut server, &mut context).await.map(drop)
}

async fn handshake<I>(
    stream: TcpStream,
    context: &SessionContext<I>,
) -> io::Result<(ServerStream<TcpStream>, TlsInfo)> {
    let accepted = context.tls.accept(stream).await;
    let result = if accepted.is_ok() {
        HandshakeResult::Done
    } else {
        HandshakeResult::Failed
    };
    context.metrics.handshake(TlsSide::Server, result);
    accepted
}

async fn run<I: Intake>(
    stream: &mut impl Connection,
    server: &mut Server,
    context: &mut SessionContext<I>,
) -> io::Result<Pause> {
    let mut unread = Unread::default();
    loop {
        // Feed buffered input before replies go out, so that replies to pipelined commands leave in one write.
        unread.feed(server);
        let notes = server.take_notes();
        if !notes.is_empty() {
            mail_log::noted(context.service, server, &notes);
        }
        context.intake.follow(server);
        context.aside.take(server).await;
        match server.step() {
            // Counting may refuse the message; then the next step changes.
            Step::Send | Step::NeedInput if context.held.count(server) => {}
            Step::Send => {
                tokio::select! {
                    biased;
                    sent = send(stream, server, context) => sent?,
                    // The client does not read its replies while other clients need the memory.
                    () = context.held.called() => return Ok(Pause::Closed),
                    () = context.aside.called() => return Ok(Pause::Closed),
                }
            }
            Step::NeedInput => match receive(stream, server, context).await? {
                Some(rest) => {
                    unread = Unread {
                        octets: rest,
                        taken: 0,
                    }
                }
                None => return Ok(Pause::Closed),
            },
            Step::Ask(mut question) => {
                let answer = match has_room(context, server, &mut question).await {
                    true => answer(context, server, question).await,
                    false => Answer::Stored(Err(Refusal::StorageFull)),
                };
                server.answer(answer, clock::steady());
            }
            // Input that arrived before the handshake is discarded (RFC 3207 section 5).
            Step::StartTls => return Ok(Pause::StartTls),
            Step::NeedAnswer | Step::Close => return Ok(Pause::Closed),
        }
    }
}

/// Reserves memory for a complete message until the message is safe: then all of the message is in memory. Other
/// questions need no memory.
async fn has_room<I>(
    context: &mut SessionContext<I>,
    server: &Server,
    question: &mut Question,
) -> bool {
    let Question::Message(message) = question else {
        return true;
    };
    let aside = usize::try_from(message.aside).unwrap_or(usize::MAX);
    let octets = message.body.len().saturating_add(aside);
    if !context.held.keep(octets, server.account().is_some()) {
        return false;
    }
    let joined = context.aside.join(message).await;
    joined
        .inspect_err(
            |error| tracing::warn!(%error, "received message refused: its file cannot be read"),
        )
        .is_ok()
}

/// Octets that were read, and that the machine has not consumed yet.
#[derive(Default)]
struct Unread {
    octets: Vec<u8>,
    taken: usize,
}

impl Unread {
    fn feed(&mut self, server: &mut Server) {
        let rest = &self.octets[self.taken..];
        if rest.is_empty() {
            return;
        }
        self.taken += server.input(rest, clock::steady()).min(rest.len());
        if self.taken == self.octets.len() {
            *self = Self::default();
        }
    }
}

async fn send<I>(
    stream: &mut impl Connection,
    server: &mut Server,
    context: &SessionContext<I>,
) -> io::Result<()> {
    let patience = context.config.limits.command_timeout;
    let octets = server.output().len();
    wire::write(stream, server.output(), patience).await?;
    server.sent(octets);
    context.metrics.replied(server.take_tally());
    Ok(())
}

/// Waits for octets, the deadline, the stop, or a call to free memory for other clients. `None`: the client closed the
/// connection.
async fn receive<I>(
    stream: &mut impl Connection,
    server: &mut Server,
    context: &mut SessionContext<I>,
) -> io::Result<Option<Vec<u8>>> {
    let SessionContext {
        stop, held, aside, ..
    } = context;
    let patience = clock::until_steady(server.deadline());
    let stopping = *stop.borrow();
    // The order matters: arrived octets are consumed before the deadline counts.
    tokio::select! {
        biased;
        _ = stop.changed(), if !stopping => {
            server.shut_down();
            Ok(Some(Vec::new()))
        }
        // The call to free memory takes effect at the next count.
        () = held.called() => Ok(Some(Vec::new())),
        () = aside.called() => Ok(Some(Vec::new())),
        read = wire::read(stream, |octets| server.input(octets, clock::steady())) => read,
        () = tokio::time::sleep(patience) => {
            server.timed_out();
            Ok(Some(Vec::new()))
        }
    }
}

async fn answer<I: Intake>(
    context: &SessionContext<I>,
    server: &Server,
    question: Question,
) -> Answer {
    let (intake, service) = (&context.intake, context.service);
    match question {
        Question::Password(attempt) => Answer::Password(intake.password(server, attempt).await),
        Question::ScramUser { username } => {
            Answer::ScramUser(intake.scram_user(server, &username).await)
        }
        Question::Mail(mail) => {
            let answer = intake.mail(server, &mail).await;
            if let Err(refusal) = &answer {
                let sender = mail.reverse_path.as_str();
                mail_log::refused(service, server, sender, None, refusal);
            }
            Answer::Policy(answer)
        }
        Question::Recipient(rcpt) => {
            let answer = intake.recipient(server, &rcpt).await;
            if let Err(refusal) = &answer {
                let sender = server.mail_from().map(|mail| mail.reverse_path.as_str());
                let recipient = Some(rcpt.forward_path.as_str());
                let sender = sender.unwrap_or_default();
                mail_log::refused(service, server, sender, recipient, refusal);
            }
            Answer::Policy(answer)
        }
        Question::Message(message) => {
            let mail = message.reverse_path.reverse_path.clone();
            let answer = intake.message(server, *message).await;
            if let Err(refusal) = &answer {
                mail_log::refused(service, server, mail.as_str(), None, refusal);
            }
            Answer::Stored(answer)
        }
        Question::Client(peer) => Answer::Client(Ok(intake.rights(&peer))),
    }
}
