//! Drives one IMAP connection: moves octets between the socket and the machine, and takes the machine's
//! questions to the [`Client`].

use std::io;
use std::rc::Rc;
use std::sync::Arc;

use tokio::net::TcpStream;
use vere_imap::server::{Peer, Server, ServerConfig, Step};

use super::client::Client;
use super::listeners::Reception;
use crate::role::clock::{now, until};
use crate::role::login_log;
use crate::role::wire::{self, Connection};

/// Why the driving of a connection paused.
enum Pause {
    StartTls,
    Closed,
}

/// Serves a connection that starts in the clear; STARTTLS may turn it into TLS.
///
/// # Errors
/// When the connection breaks; what the client was told to be safe is safe.
pub(super) async fn serve(
    mut stream: TcpStream,
    peer: Peer,
    config: Arc<ServerConfig>,
    reception: Rc<Reception>,
) -> io::Result<()> {
    let mut client = reception.client(peer.address.ip());
    let mut server = Server::new(config, peer, now());
    let parties = (&mut server, &mut client);
    match run(&mut stream, parties, "imap", &reception).await? {
        Pause::Closed => Ok(()),
        Pause::StartTls => Box::pin(upgrade(stream, server, client, reception)).await,
    }
}

async fn upgrade(
    stream: TcpStream,
    mut server: Server,
    mut client: Client,
    reception: Rc<Reception>,
) -> io::Result<()> {
    let (mut stream, _) = reception.tls().accept(stream).await?;
    server.tls_started(now());
    run(&mut stream, (&mut server, &mut client), "imap", &reception)
        .await
        .map(drop)
}

/// Serves a connection that is encrypted from its first octet (RFC 8314).
///
/// # Errors
/// As [`serve`], or when the handshake fails.
pub(super) async fn serve_tls(
    stream: TcpStream,
    mut peer: Peer,
    config: Arc<ServerConfig>,
    reception: Rc<Reception>,
) -> io::Result<()> {
    let (mut stream, _) = reception.tls().accept(stream).await?;
    peer.tls = true;
    let mut client = reception.client(peer.address.ip());
    let mut server = Server::new(config, peer, now());
    run(&mut stream, (&mut server, &mut client), "imaps", &reception)
        .await
        .map(drop)
}

/// Serves a client that was let in already, as an account.
///
/// # Errors
/// As [`serve`].
pub(super) async fn serve_known(
    stream: &mut impl Connection,
    peer: Peer,
    account: String,
    reception: &Reception,
) -> io::Result<()> {
    let mut client = reception.client(peer.address.ip());
    let config = reception.administrators();
    let mut server = Server::preauthenticated(config, peer, account, now());
    run(stream, (&mut server, &mut client), "imap", reception)
        .await
        .map(drop)
}

async fn run(
    stream: &mut impl Connection,
    (server, client): (&mut Server, &mut Client),
    service: &str,
    reception: &Reception,
) -> io::Result<Pause> {
    let patience = reception.write_patience();
    let mut stop = reception.stopping();
    let mut held = reception.memory();
    let mut unread: Vec<u8> = Vec::new();
    loop {
        let taken = server.input(&unread, now());
        unread.drain(..taken);
        if unread.is_empty() {
            // An idle connection holds no buffer.
            unread = Vec::new();
        }
        client.follow(server.mailbox());
        for login in server.take_logins() {
            let peer = server.peer();
            login_log::write(service, peer.address.ip(), peer.tls, &login);
            reception.keeper().figures().logged_in(&login);
        }
        match server.step() {
            Step::Send => {
                let octets = server.output().len();
                wire::write(stream, server.output(), patience).await?;
                server.sent(octets);
            }
            Step::NeedInput => {
                // Not before a question: while it is answered the message takes its memory still.
                held.count(server);
                // SCRAM ends in the machine: the account is known here once it has.
                if client.enter(server.account()).await.is_err() {
                    return Ok(Pause::Closed);
                }
                client.rest();
                let deadline = until(server.deadline());
                let stopping = *stop.borrow();
                tokio::select! {
                    read = wire::read(stream, |octets| server.input(octets, now())) => match read? {
                        Some(rest) => unread = rest,
                        None => return Ok(Pause::Closed),
                    },
                    mailbox = client.changed() => server.mailbox_changed(mailbox),
                    () = tokio::time::sleep(deadline) => server.timed_out(),
                    _ = stop.changed(), if !stopping => server.shut_down(),
                }
            }
            Step::Ask(question) => {
                if client.enter(server.account()).await.is_err() {
                    return Ok(Pause::Closed);
                }
                let answer = client.answer(question).await;
                server.answer(answer, now());
            }
            // What came before the handshake is not looked at (RFC 9051 section 6.2.1).
            Step::StartTls => return Ok(Pause::StartTls),
            Step::NeedAnswer | Step::Close => return Ok(Pause::Closed),
        }
    }
}
