//! Drives one LMTP connection (RFC 2033): mail to be filed.

use std::io;
use std::rc::Rc;
use std::sync::Arc;

use tokio::net::TcpStream;
use vere_smtp::server::{
    Answer, AuthOutcome, ClientRights, Peer, Question, ScramLookup, Server, ServerConfig, Step,
};

use super::filing;
use super::reception::Reception;
use vere_process::clock::{steady, until_steady};
use vere_process::wire;

/// Serves a connection until it ends.
///
/// # Errors
/// When it breaks; what the client was told to be filed is filed.
pub(super) async fn serve(
    mut stream: TcpStream,
    peer: Peer,
    config: Arc<ServerConfig>,
    reception: Rc<Reception>,
) -> io::Result<()> {
    let patience = config.limits.command_timeout;
    let mut server = Server::new(config, peer, steady());
    let mut stop = reception.stopping();
    let mut held = reception.delivery_memory();
    let mut unread: Vec<u8> = Vec::new();
    loop {
        let taken = server.input(&unread, steady());
        unread.drain(..taken);
        match server.step() {
            Step::Send => {
                let octets = server.output().len();
                wire::write(&mut stream, server.output(), patience).await?;
                server.sent(octets);
                let _ = server.take_tally();
            }
            // Not before a question: while it is answered the message takes its memory still.
            Step::NeedInput if held.count(&mut server) => {}
            Step::NeedInput => {
                let deadline = until_steady(server.deadline());
                let stopping = *stop.borrow();
                tokio::select! {
                    read = wire::read(&mut stream, |octets| server.input(octets, steady())) => match read? {
                        Some(rest) => unread = rest,
                        None => return Ok(()),
                    },
                    () = held.called() => {}
                    () = tokio::time::sleep(deadline) => server.timed_out(),
                    _ = stop.changed(), if !stopping => server.shut_down(),
                }
            }
            Step::Ask(question) => {
                held.keep_counted();
                let answer = answer(&reception, question).await;
                server.answer(answer, steady());
            }
            // No certificate is offered, so that no handshake is asked for.
            Step::StartTls | Step::NeedAnswer | Step::Close => return Ok(()),
        }
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
        Question::Password(_) => Answer::Password(AuthOutcome::Unavailable),
        Question::ScramUser { .. } => Answer::ScramUser(ScramLookup::Unavailable),
        Question::Client(_) => Answer::Client(Ok(ClientRights::default())),
    }
}
