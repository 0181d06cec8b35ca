//! Serves one IMAP connection: the machine's questions go to the [`Client`].

use std::io;
use std::rc::Rc;
use std::sync::Arc;

use tokio::net::TcpStream;
use vere_imap::server::{Answer, Peer, Question, Server, ServerConfig};

use super::client::Client;
use super::reception::Reception;
use super::sessions::LetIn;
use vere_login::login_log;
use vere_process::clock::steady;
use vere_process::drive::{Host, Line, Pause, drive};
use vere_process::wire::Connection;

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
    let held = reception.memory(server.peer().address.ip());
    let mut line = Line::new(held, reception.stopping(), reception.write_patience());
    let mut host = Desk {
        client,
        service,
        reception,
        has_moved: false,
    };
    drive(stream, server, &mut host, &mut line).await
}

/// Answers the questions of one session, and logs its logins.
#[derive(Debug)]
struct Desk<'a> {
    client: &'a mut Client,
    service: &'a str,
    reception: &'a Reception,
    /// Whether octets were written or a question answered since the memory of responses was counted.
    has_moved: bool,
}

/// An event that a session hears of while its client is silent.
#[derive(Debug)]
enum Event {
    /// The account or its password is not what it was at the login.
    Ended,
    /// A mailbox has changed.
    Changed(u64),
}

impl Host<Server> for Desk<'_> {
    type Event = Event;

    async fn follow(&mut self, server: &mut Server) {
        if let Some(reason) = self.client.ended() {
            server.end(reason);
        }
        self.client.follow(server.mailbox());
        if std::mem::take(&mut self.has_moved) {
            self.client.fetcher().keep(server.fetch_memory());
        }
        for login in server.take_logins() {
            let peer = server.peer();
            login_log::write(self.service, peer.address.ip(), peer.tls, &login);
            self.reception.keeper().figures().logged_in(&login);
        }
    }

    async fn rest(&mut self, server: &Server) -> bool {
        // SCRAM ends in the machine: the account is known here once it has.
        let is_entered = self.client.enter(server.account()).await.is_ok();
        self.client.rest();
        is_entered
    }

    async fn event(&self) -> Event {
        tokio::select! {
            () = self.client.end() => Event::Ended,
            mailbox = self.client.changed() => Event::Changed(mailbox),
        }
    }

    fn happened(&mut self, event: Event, server: &mut Server) {
        match event {
            // The end takes effect in `follow`.
            Event::Ended => {}
            Event::Changed(mailbox) => {
                self.client.note_change();
                server.mailbox_changed(mailbox);
            }
        }
    }

    async fn write(
        &mut self,
        line: &Line,
        stream: &mut impl Connection,
        octets: &[u8],
    ) -> io::Result<bool> {
        self.has_moved = true;
        let sent = self.client.fetcher().send(stream, octets, line.patience());
        sent.await.map(|()| true)
    }

    async fn answer(
        &mut self,
        line: &mut Line,
        stream: &mut impl Connection,
        server: &Server,
        question: Question,
    ) -> io::Result<Option<Answer>> {
        self.has_moved = true;
        line.held.keep_counted();
        if self.client.enter(server.account()).await.is_err() {
            return Ok(None);
        }
        match question {
            // The answer may take long, and is for nobody when the client is gone.
            Question::Search { .. } | Question::Fetch(_) | Question::Piece(_) => {
                let answer = Box::pin(self.client.answer(question));
                Box::pin(line.listen_while(stream, answer)).await
            }
            question => Ok(Some(self.client.answer(question).await)),
        }
    }
}
