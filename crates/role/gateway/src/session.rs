//! Serves one SMTP connection: the machine's questions go to the [`Intake`].

use std::io;
use std::rc::Rc;
use std::sync::Arc;

use tokio::net::{TcpStream, UnixStream};
use vere_net::tls::ServerStream;
use vere_smtp::refusal::Refusal;
use vere_smtp::server::{Answer, Message, Peer, Question, Server, ServerConfig, TlsInfo};
use vere_telemetry::metrics::{HandshakeResult, TlsSide};

use super::aside::Aside;
use super::intake::Intake;
use super::mail_log;
use super::metrics::GatewayMetrics;
use super::service::Service;
use vere_process::clock;
use vere_process::drive::{Host, Line, Pause, drive};
use vere_process::refusals;
use vere_process::tls::ServerTls;
use vere_process::wire::{self, Connection};

/// The environment of a session, besides the connection.
#[derive(Debug)]
pub(super) struct SessionContext<I> {
    pub(super) config: Arc<ServerConfig>,
    pub(super) tls: ServerTls,
    pub(super) host: SessionHost<I>,
    pub(super) line: Line,
}

/// Answers the questions of one session.
#[derive(Debug)]
pub(super) struct SessionHost<I> {
    pub(super) intake: I,
    pub(super) service: Service,
    pub(super) metrics: Rc<GatewayMetrics>,
    /// Octets of long messages on disk.
    pub(super) aside: Aside,
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
    context.host.metrics.handshake(TlsSide::Server, result);
    accepted
}

async fn run<I: Intake>(
    stream: &mut impl Connection,
    server: &mut Server,
    context: &mut SessionContext<I>,
) -> io::Result<Pause> {
    drive(stream, server, &mut context.host, &mut context.line).await
}

impl<I: Intake> Host<Server> for SessionHost<I> {
    /// The call to free the file of a long message takes effect in [`Host::follow`].
    type Event = ();

    async fn follow(&mut self, server: &mut Server) {
        let notes = server.take_notes();
        if !notes.is_empty() {
            mail_log::noted(self.service, server, &notes);
        }
        self.metrics.replied(server.take_tally());
        self.intake.follow(server);
        self.aside.take(server).await;
    }

    async fn event(&self) {
        self.called().await;
    }

    /// The client may not read its replies while other clients need the disk.
    async fn called(&self) {
        self.aside.called().await;
    }

    async fn answer(
        &mut self,
        line: &mut Line,
        _: &mut impl Connection,
        server: &Server,
        question: Question,
    ) -> io::Result<Option<Answer>> {
        Ok(Some(match question {
            Question::Message(message) => Answer::Stored(self.message(line, server, message).await),
            question => self.policy(server, question).await,
        }))
    }
}

impl<I: Intake> SessionHost<I> {
    /// Stores a message. All of the message is in memory, and has room there, until the message is safe.
    async fn message(
        &mut self,
        line: &mut Line,
        server: &Server,
        mut message: Box<Message>,
    ) -> Result<String, Refusal> {
        let aside = usize::try_from(message.aside).unwrap_or(usize::MAX);
        let octets = message.body.len().saturating_add(aside);
        if !line.held.keep(octets, server.account().is_some()) {
            return Err(Refusal::StorageFull);
        }
        if let Err(error) = self.aside.join(&mut message).await {
            tracing::warn!(%error, "received message refused: its file cannot be read");
            return Err(Refusal::StorageFull);
        }
        let sender = message.reverse_path.reverse_path.clone();
        let answer = self.intake.message(server, *message).await;
        let (service, refusal) = (self.service.name(), answer.as_ref().err());
        refusals::log(service, server, sender.as_str(), refusal);
        answer
    }

    /// Answers a question about who may do what.
    async fn policy(&self, server: &Server, question: Question) -> Answer {
        let (intake, service) = (&self.intake, self.service.name());
        match question {
            Question::Password(attempt) => Answer::Password(intake.password(server, attempt).await),
            Question::ScramUser { username } => {
                Answer::ScramUser(intake.scram_user(server, &username).await)
            }
            Question::Mail(mail) => {
                let answer = intake.mail(server, &mail).await;
                let sender = mail.reverse_path.as_str();
                refusals::log(service, server, sender, answer.as_ref().err());
                Answer::Policy(answer)
            }
            Question::Recipient(rcpt) => {
                let answer = intake.recipient(server, &rcpt).await;
                let recipient = rcpt.forward_path.as_str();
                refusals::log_recipient(service, server, recipient, answer.as_ref().err());
                Answer::Policy(answer)
            }
            Question::Client(peer) => Answer::Client(Ok(intake.rights(&peer))),
            Question::Message(_) => Answer::Stored(Err(Refusal::LocalError)),
        }
    }
}
