//! Serves one LMTP connection (RFC 2033): mail to be filed.

use std::convert::Infallible;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use tokio::net::TcpStream;
use vere_sasl::server::{PasswordOutcome, ScramLookup};
use vere_smtp::server::{Answer, ClientRights, Peer, Question, Server, ServerConfig};

use super::filing;
use super::reception::Reception;
use vere_process::clock::steady;
use vere_process::drive::{Host, Line, drive};
use vere_process::wire::Connection;

/// Serves a connection until it ends. No certificate is offered, so that no handshake is asked for.
///
/// # Errors
/// When the connection breaks; messages that the client was told to be filed are filed.
pub(super) async fn serve(
    mut stream: TcpStream,
    peer: Peer,
    config: Arc<ServerConfig>,
    reception: Rc<Reception>,
) -> io::Result<()> {
    let held = reception.delivery_memory();
    let mut line = Line::new(held, reception.stopping(), config.limits.command_timeout);
    let mut server = Server::new(config, peer, steady());
    let mut host = Delivery(reception);
    drive(&mut stream, &mut server, &mut host, &mut line)
        .await
        .map(drop)
}

/// Files what one client delivers.
#[derive(Debug)]
struct Delivery(Rc<Reception>);

impl Host<Server> for Delivery {
    type Event = Infallible;

    async fn follow(&mut self, server: &mut Server) {
        let _ = server.take_tally();
    }

    async fn answer(
        &mut self,
        line: &mut Line,
        _: &mut impl Connection,
        _: &Server,
        question: Question,
    ) -> io::Result<Option<Answer>> {
        line.held.keep_counted();
        Ok(Some(answer(&self.0, question).await))
    }
}

async fn answer(reception: &Reception, question: Question) -> Answer {
    match question {
        Question::Mail(_) => Answer::Policy(Ok(())),
        Question::Recipient(rcpt) => Answer::Policy(filing::check(reception.directory(), &rcpt)),
        Question::Message(message) => {
            let filed = filing::file(reception, *message);
            Answer::Filed(filed.await)
        }
        Question::Password(_) => Answer::Password(PasswordOutcome::Unavailable),
        Question::ScramUser { .. } => Answer::ScramUser(ScramLookup::Unavailable),
        Question::Client(_) => Answer::Client(Ok(ClientRights::default())),
    }
}
