//! Drives one IMAP connection: moves octets between the socket and the machine, and takes the machine's
//! questions to the [`Client`].

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use vere_imap::server::{Answer, Peer, Question, Server, ServerConfig, Step};

use super::client::Client;
use super::reception::Reception;
use super::sessions::LetIn;
use vere_login::login_log;
use vere_process::clock::{steady, until_steady};
use vere_process::wire::{self, Connection};

/// Octets that a client may send while a search for it, or what it fetches, is under way.
const AHEAD_MAX: usize = 64 * 1024;
/// How long who has closed its side is still waited with: it may read what was found all the same.
const CLOSED_PATIENCE: Duration = Duration::from_secs(10);

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
    let mut client = reception.client(peer.address.ip(), LetIn::Password(None));
    let mut server = Server::new(config, peer, steady());
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
    server.tls_started(steady());
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
    let mut client = reception.client(peer.address.ip(), LetIn::Password(None));
    let mut server = Server::new(config, peer, steady());
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
    let mut client = reception.client(peer.address.ip(), LetIn::Administrator);
    let config = reception.administrators();
    let mut server = Server::preauthenticated(config, peer, account, steady());
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
    let mut held = reception.memory(server.peer().address.ip());
    let mut unread: Vec<u8> = Vec::new();
    loop {
        feed(server, &mut unread);
        if let Some(reason) = client.ended() {
            server.end(reason);
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
                let fetcher = client.fetcher();
                fetcher.send(stream, server.output(), patience).await?;
                server.sent(octets);
                fetcher.keep(server.fetch_memory());
            }
            // Not before a question: while it is answered the message takes its memory still.
            Step::NeedInput if held.count(server) => {}
            Step::NeedInput => {
                // SCRAM ends in the machine: the account is known here once it has.
                if client.enter(server.account()).await.is_err() {
                    return Ok(Pause::Closed);
                }
                client.rest();
                let stopping = *stop.borrow();
                tokio::select! {
                    () = tokio::time::sleep(until_steady(server.deadline())) => server.timed_out(),
                    read = wire::read(stream, |octets| server.input(octets, steady())) => match read? {
                        Some(rest) => unread = rest,
                        None => return Ok(Pause::Closed),
                    },
                    () = held.called() => {}
                    () = client.end() => {}
                    mailbox = client.changed() => {
                        client.note_change();
                        server.mailbox_changed(mailbox);
                    }
                    _ = stop.changed(), if !stopping => server.shut_down(),
                }
            }
            Step::Ask(question) => {
                held.keep_counted();
                if client.enter(server.account()).await.is_err() {
                    return Ok(Pause::Closed);
                }
                let Some(answer) = answered(stream, client, question, &mut unread).await? else {
                    return Ok(Pause::Closed);
                };
                server.answer(answer, steady());
                client.fetcher().keep(server.fetch_memory());
            }
            // What came before the handshake is not looked at (RFC 9051 section 6.2.1).
            Step::StartTls => return Ok(Pause::StartTls),
            Step::NeedAnswer | Step::Close => return Ok(Pause::Closed),
        }
    }
}

fn feed(server: &mut Server, unread: &mut Vec<u8>) {
    let taken = server.input(unread, steady());
    unread.drain(..taken);
    if unread.is_empty() {
        // An idle connection holds no buffer.
        *unread = Vec::new();
    }
}

/// What is answered to a question of the machine; none when the client has gone.
///
/// # Errors
/// When the connection breaks.
async fn answered(
    stream: &mut impl Connection,
    client: &mut Client,
    question: Question,
    unread: &mut Vec<u8>,
) -> io::Result<Option<Answer>> {
    match question {
        // It may take long, and is for nobody when the client is gone.
        Question::Search { .. } | Question::Fetch(_) | Question::Piece(_) => {
            let answer = Box::pin(client.answer(question));
            Box::pin(while_there(stream, unread, answer, CLOSED_PATIENCE)).await
        }
        question => Ok(Some(client.answer(question).await)),
    }
}

/// Waits for an answer while the client is there, reading what it sends meanwhile; none when it has gone.
///
/// # Errors
/// When the connection breaks.
async fn while_there<A: Future<Output = Answer>>(
    stream: &mut impl Connection,
    unread: &mut Vec<u8>,
    mut answer: Pin<Box<A>>,
    patience: Duration,
) -> io::Result<Option<Answer>> {
    while unread.len() < AHEAD_MAX {
        tokio::select! {
            biased;
            answer = &mut answer => return Ok(Some(answer)),
            read = wire::read(stream, |_| 0) => match read? {
                Some(more) => unread.extend_from_slice(&more),
                None => return Ok(tokio::time::timeout(patience, answer).await.ok()),
            },
        }
    }
    Ok(Some(answer.await))
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::io::{AsyncWriteExt as _, duplex};

    use super::*;

    #[tokio::test]
    async fn what_is_for_nobody_is_not_waited_for() {
        let (mut own, mut client) = duplex(1_024);
        let mut unread = b"a".to_vec();
        client.write_all(b"b NOOP\r\n").await.unwrap();
        drop(client);
        let never = Box::pin(pending());
        let answer = while_there(&mut own, &mut unread, never, Duration::ZERO).await;
        assert!(answer.unwrap().is_none());
        assert_eq!(unread, b"ab NOOP\r\n");
        // It may still read what is there soon.
        let soon = Box::pin(async {
            tokio::task::yield_now().await;
            Answer::Done(Ok(()))
        });
        let answer = while_there(&mut own, &mut unread, soon, CLOSED_PATIENCE).await;
        assert!(answer.unwrap().is_some());
    }

    #[tokio::test]
    async fn not_all_is_read_while_a_search_lasts() {
        let (mut own, mut client) = duplex(4 * AHEAD_MAX);
        client.write_all(&vec![b'x'; 4 * AHEAD_MAX]).await.unwrap();
        let mut unread = Vec::new();
        // As long as octets can be read.
        let answer = Box::pin(async {
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            Answer::Done(Ok(()))
        });
        let answer = while_there(&mut own, &mut unread, answer, CLOSED_PATIENCE).await;
        assert!(answer.unwrap().is_some());
        assert!(unread.len() < 2 * AHEAD_MAX, "{}", unread.len());
    }
}
