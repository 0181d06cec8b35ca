//! Sessions of the front, and notices to the front.

use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::Instant;
use vere_handoff::session::{Done, NOTICE_MAX, Notice, PACKET_OCTETS_MAX, SESSIONS, Task};
use vere_net::packets::PacketSocket;
use vere_net::quiet::{Halves, Reading};
use vere_settings::Settings;
use vere_smtp::server::TlsInfo;

use super::{OPENING, run, session};
use crate::error::WorkerError;
use crate::front::{Client, Front};

/// The front's end of the connection of a worker.
struct Far {
    socket: PacketSocket,
    /// The same end, for waits.
    watched: Reading<PacketSocket>,
}

impl Far {
    /// The worker's end and the test's.
    fn pair() -> (Front, Self) {
        let (here, there) = PacketSocket::pair().unwrap();
        let front = Front::new(Halves::of(here).unwrap()).unwrap();
        let socket = there.as_fd().try_clone_to_owned().unwrap().into();
        let (watched, _) = Halves::of(there).unwrap().watch().unwrap();
        (front, Self { socket, watched })
    }

    fn give(&self, tasks: &[Task<'_>], connections: &[BorrowedFd<'_>]) {
        let mut packet = SESSIONS.to_vec();
        tasks.iter().for_each(|task| task.encode(&mut packet));
        self.socket.send(&packet, connections).unwrap();
    }

    /// The next notice of the worker.
    async fn next(&self) -> Notice {
        let mut packet = vec![0; PACKET_OCTETS_MAX];
        let receive = |socket: &PacketSocket| socket.receive(&mut packet);
        let (length, _) = self.watched.with(receive).await.unwrap().unwrap();
        Notice::decode(&packet[..length]).unwrap()
    }
}

fn progress(begun: &[u64], done: &[(u64, u32)]) -> Notice {
    let done = done
        .iter()
        .map(|&(number, refused)| Done { number, refused });
    Notice::Progress {
        begun: begun.to_vec(),
        done: done.collect(),
    }
}

/// A session with a recipient, as the front hands it over.
fn state(tls: Option<TlsInfo>) -> Vec<u8> {
    let mut server = session(OPENING);
    if let Some(info) = tls {
        let mut peer = server.peer().clone();
        peer.tls = Some(info);
        let config = vere_smtp::server::ServerConfig::new("a.example", vere_smtp::server::Role::Mx);
        server = vere_smtp::server::Server::new(config.into(), peer, super::NOW);
        super::say(&mut server, OPENING);
    }
    let mut state = Vec::new();
    server.hand_over().unwrap().encode(&mut state);
    state
}

fn connection() -> (TcpStream, TcpStream) {
    let port = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(port.local_addr().unwrap()).unwrap();
    let (here, _) = port.accept().unwrap();
    here.set_nonblocking(true).unwrap();
    (client, here)
}

#[test]
fn sessions_come_with_their_connections_and_what_was_read() {
    run(async {
        let (front, far) = Far::pair();
        let (first, here) = connection();
        let (mut second, plain) = UnixStream::pair().unwrap();
        plain.set_nonblocking(true).unwrap();
        let info = TlsInfo {
            version: "TLSv1.3".to_owned(),
            cipher: "TLS13_AES_256_GCM_SHA384".to_owned(),
            sni: None,
        };
        let state = state(Some(info));
        let tasks = [
            Task {
                number: 7,
                state: b"",
                unread: b"",
            },
            Task {
                number: 8,
                state: &state,
                unread: b"DATA\r\n",
            },
        ];
        far.give(&tasks, &[here.as_fd(), plain.as_fd()]);
        let sessions = front.sessions().await.unwrap().unwrap();
        let numbers: Vec<_> = sessions.iter().map(|session| session.number).collect();
        assert_eq!(numbers, [7, 8]);
        let settings = Settings::parse(
            "version = 1\nhostname = \"mx.example.org\"\n[front]\n",
            "vere.toml",
        )
        .unwrap();
        let [greeted, handed] = <[_; 2]>::try_from(sessions).unwrap();
        assert!(greeted.handover.is_none());
        let peer = greeted.client.peer(&settings).unwrap();
        assert_eq!(peer.address, first.local_addr().unwrap());
        assert_eq!(peer.local, first.peer_addr().unwrap());
        assert!(
            handed
                .handover
                .is_some_and(|handover| handover.is_encrypted())
        );
        assert_eq!(handed.unread, b"DATA\r\n");
        // The plaintext has the addresses of no client.
        assert!(handed.client.peer(&settings).is_err());
        let Client::Encrypted(mut stream) = handed.client else {
            panic!("{:?}", handed.client);
        };
        stream.write_all(b"250 ok\r\n").await.unwrap();
        let mut said = [0; 8];
        std::io::Read::read_exact(&mut second, &mut said).unwrap();
        assert_eq!(&said, b"250 ok\r\n");
        std::io::Write::write_all(&mut second, b"DATA\r\n").unwrap();
        stream.read_exact(&mut said[..6]).await.unwrap();
        drop((far, first));
        assert!(front.sessions().await.unwrap().is_none());
    });
}

#[test]
fn a_state_that_means_nothing_ends_its_session_alone() {
    run(async {
        let (front, far) = Far::pair();
        let state = state(None);
        let of = |number, state| Task {
            number,
            state,
            unread: b"",
        };
        let (clients, here): (Vec<_>, Vec<_>) = [connection(), connection()].into_iter().unzip();
        let tasks = [of(1, b"no state"), of(2, &state)];
        far.give(&tasks, &[here[0].as_fd(), here[1].as_fd()]);
        let sessions = front.sessions().await.unwrap().unwrap();
        let numbers: Vec<_> = sessions.iter().map(|session| session.number).collect();
        assert_eq!(numbers, [2]);
        // Its client is not waited for, and the front may forget it.
        front.begin(&sessions).await.unwrap();
        assert_eq!(far.next().await, progress(&[2], &[(1, 0)]));
        drop(clients);
    });
}

#[test]
fn a_packet_has_as_many_connections_as_sessions() {
    run(async {
        let (_client, here) = connection();
        let task = Task {
            number: 1,
            state: b"",
            unread: b"",
        };
        for (tasks, connections) in [(1, 0), (1, 2), (2, 1)] {
            let (front, far) = Far::pair();
            far.give(&vec![task; tasks], &vec![here.as_fd(); connections]);
            let error = front.sessions().await.unwrap_err();
            assert!(matches!(error, WorkerError::Links), "{error}");
        }
        let (front, far) = Far::pair();
        far.socket.send(b"\x01\x02", &[]).unwrap();
        let error = front.sessions().await.unwrap_err();
        assert!(matches!(error, WorkerError::Front(_)), "{error}");
    });
}

/// The end of the last session reaches the front at once; while others go on, ends are gathered. The time is that of the test.
#[test]
fn the_last_end_is_told_at_once_and_others_wait_for_more() {
    run(async {
        tokio::time::pause();
        let (front, far) = Far::pair();
        let front = std::rc::Rc::new(front);
        let telling = std::rc::Rc::clone(&front);
        tokio::task::spawn_local(async move { telling.tell().await });
        let begun = Instant::now();
        front.done(1, 3, true);
        assert_eq!(far.next().await, progress(&[], &[(1, 3)]));
        assert_eq!(Instant::now(), begun);
        front.done(2, 0, false);
        tokio::task::yield_now().await;
        front.done(3, 1, false);
        assert_eq!(far.next().await, progress(&[], &[(2, 0), (3, 1)]));
        assert!(Instant::now() > begun);
    });
}

#[test]
fn any_number_of_ends_is_told() {
    run(async {
        let (front, far) = Far::pair();
        let numbers = 0..NOTICE_MAX as u64 + 3;
        numbers
            .clone()
            .for_each(|number| front.done(number, 0, true));
        front.flush().await.unwrap();
        let all: Vec<_> = numbers.map(|number| (number, 0)).collect();
        let (first, second) = all.split_at(NOTICE_MAX);
        assert_eq!(far.next().await, progress(&[], first));
        assert_eq!(far.next().await, progress(&[], second));
        front.send(&Notice::Last).await.unwrap();
        assert_eq!(far.next().await, Notice::Last);
        drop(far);
        assert!(front.send(&Notice::Last).await.is_err());
    });
}
