//! The workers and the sessions that they have.

use std::collections::{HashMap, VecDeque};
use std::io::{self, IoSlice};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use vere_handoff::session::{Done, Notice, PACKET_OCTETS_MAX, SESSIONS, SESSIONS_MAX, Task};
use vere_net::packets::{PacketListener, PacketSocket};
use vere_process::clock::steady;
use vere_sandbox::Layers;
use vere_screen::Ticket;
use vere_telemetry::metrics::{WorkerLoss, WorkerSessionEnd};
use vere_units::Timestamp;

use super::link::Link;
use super::metrics::{Figures, Occupancy};
use super::replies::LAST_WORDS;

/// How long a worker may leave a session unbegun; the worker is given up then.
const BEGIN_PATIENCE: Duration = Duration::from_secs(30);
/// How long a session waits for a worker after its own has died unbegun.
const HOMELESS_PATIENCE: Duration = Duration::from_secs(10);
/// Workers that may die with a session that they have not begun: the session may be the reason.
const DEATHS_MAX: u8 = 2;
/// Packets of a worker in one turn: a worker that speaks without end holds nobody up.
const PACKETS_MAX: usize = 64;

/// A session in the hands of a worker; the front keeps a duplicate of the descriptor.
#[derive(Debug)]
pub(crate) struct Given {
    pub(crate) ticket: Ticket,
    link: Link,
    /// The time of the command with the recipient.
    since: Instant,
    /// The session in its packet, until the worker has begun.
    packet: Option<Vec<u8>>,
    worker: usize,
    /// Workers that have died before they began the session.
    deaths: u8,
    /// The time by which a worker has to begin the session.
    until: Timestamp,
}

/// A session that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) ticket: Ticket,
    /// Number of recipients refused for good by the worker.
    pub(crate) refused: u32,
}

impl From<Given> for Ended {
    /// The end of a session without a report of the worker.
    fn from(given: Given) -> Self {
        Self {
            ticket: given.ticket,
            refused: 0,
        }
    }
}

/// A session that waits for a worker.
#[derive(Debug)]
struct Homeless {
    number: u64,
    given: Given,
    until: Timestamp,
}

#[derive(Debug)]
struct Worker {
    socket: PacketSocket,
    /// Sessions, waiting ones among them.
    tasks: u32,
    /// Sessions that wait until the worker begins them.
    waiting: u32,
    /// The worker takes no further session.
    is_last: bool,
    /// Packets may be there. The kernel says so once.
    is_readable: bool,
    /// Layers of the sandbox, once reported.
    layers: Option<Layers>,
}

impl Worker {
    /// Number of sessions that the worker takes now.
    fn room(&self, room: Room) -> usize {
        let waiting = room.waiting.saturating_sub(self.waiting);
        let room = room.sessions.saturating_sub(self.tasks).min(waiting);
        match self.is_last {
            true => 0,
            false => usize::try_from(room).unwrap_or(usize::MAX),
        }
    }
}

/// How much a worker takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    /// Sessions that it has not begun.
    pub(crate) waiting: u32,
    /// Sessions in all.
    pub(crate) sessions: u32,
}

/// The workers.
#[derive(Debug)]
pub(crate) struct Workers {
    listeners: Vec<PacketListener>,
    token: Token,
    workers: Vec<Option<Worker>>,
    room: Room,
    /// The worker that is asked first.
    next: usize,
    given: HashMap<u64, Given>,
    figures: Figures,
    homeless: VecDeque<Homeless>,
    number: u64,
    packet: Vec<u8>,
}

impl Workers {
    /// Listens for workers, one at each path, whose tokens follow `token`.
    ///
    /// # Errors
    /// When a path cannot be used.
    pub(crate) fn new(
        paths: &[PathBuf],
        token: Token,
        room: Room,
        registry: &Registry,
        figures: Figures,
    ) -> io::Result<Self> {
        let mut listeners = Vec::new();
        for path in paths {
            let listener = PacketListener::bind(path)?;
            let descriptor = listener.as_raw_fd();
            registry.register(&mut SourceFd(&descriptor), token, Interest::READABLE)?;
            listeners.push(listener);
        }
        Ok(Self {
            listeners,
            token,
            workers: Vec::new(),
            room,
            next: 0,
            given: HashMap::new(),
            figures,
            homeless: VecDeque::new(),
            number: 0,
            packet: vec![0; PACKET_OCTETS_MAX],
        })
    }

    /// Takes the workers that want to be given sessions.
    pub(crate) fn accept(&mut self, registry: &Registry) {
        while let Some(socket) = self.listeners.iter().find_map(next_worker) {
            let vacant = self.workers.iter().position(Option::is_none);
            let place = vacant.unwrap_or(self.workers.len());
            let token = Token(self.token.0.saturating_add(1).saturating_add(place));
            let descriptor = socket.as_raw_fd();
            let registered =
                registry.register(&mut SourceFd(&descriptor), token, Interest::READABLE);
            if let Err(error) = registered {
                tracing::warn!(%error, "a worker cannot be used");
                continue;
            }
            let worker = Some(Worker {
                socket,
                tasks: 0,
                waiting: 0,
                is_last: false,
                is_readable: false,
                layers: None,
            });
            match self.workers.get_mut(place) {
                Some(vacant) => *vacant = worker,
                None => self.workers.push(worker),
            }
        }
    }

    /// The place of the worker with this token.
    pub(crate) fn place(&self, token: Token) -> Option<usize> {
        let place = token.0.checked_sub(self.token.0.checked_add(1)?)?;
        (place < self.workers.len()).then_some(place)
    }

    /// Whether a further session can be given away now.
    pub(crate) fn has_room(&self) -> bool {
        let mut wanted = self.homeless.len();
        self.workers.iter().flatten().any(|worker| {
            let room = worker.room(self.room);
            let is_left = room > wanted;
            wanted = wanted.saturating_sub(room);
            is_left
        })
    }

    /// Number of sessions that workers have, or that wait for one.
    pub(crate) fn sessions(&self) -> usize {
        self.given.len().saturating_add(self.homeless.len())
    }

    /// Counts workers and sessions.
    pub(crate) fn occupancy(&self) -> Occupancy {
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let workers = || self.workers.iter().flatten();
        let layers = workers().filter_map(|worker| worker.layers.map(Layers::count));
        Occupancy {
            workers: number(workers().filter(|worker| !worker.is_last).count()),
            sessions: number(self.given.len()),
            most: workers()
                .map(|worker| worker.tasks.into())
                .max()
                .unwrap_or(0),
            layers: layers.min().map_or(0, i64::from),
            waiting: number(self.homeless.len()),
        }
    }

    /// Has a session wait for the next [`house`](Self::house).
    pub(crate) fn give(
        &mut self,
        ticket: Ticket,
        link: Link,
        (state, unread): (&[u8], &[u8]),
        since: Instant,
        now: Timestamp,
    ) {
        self.number = self.number.wrapping_add(1);
        let task = Task {
            number: self.number,
            state,
            unread,
        };
        let mut packet = Vec::new();
        task.encode(&mut packet);
        let given = Given {
            ticket,
            link,
            since,
            packet: Some(packet),
            worker: 0,
            deaths: 0,
            until: now + BEGIN_PATIENCE,
        };
        self.homeless.push_back(Homeless {
            number: self.number,
            given,
            until: now + HOMELESS_PATIENCE,
        });
    }

    /// Gives the sessions that wait to workers with room, at the end of a turn: the sessions of a turn share packets.
    pub(crate) fn house(&mut self) {
        // Consecutive workers without room.
        let mut passed = 0;
        while !self.homeless.is_empty() && passed < self.workers.len() {
            let place = self.next % self.workers.len();
            self.next = self.next.wrapping_add(1);
            passed = match self.send(place) {
                0 => passed.saturating_add(1),
                _ => 0,
            };
        }
    }

    /// Sends a worker a packet of the sessions that wait, and returns their number. A worker with a full or broken socket takes
    /// no session; the worker's end comes as an event.
    fn send(&mut self, place: usize) -> usize {
        let Some(worker) = self.workers.get_mut(place).and_then(Option::as_mut) else {
            return 0;
        };
        let (parts, links) = packet(&self.homeless, worker.room(self.room));
        let count = links.len();
        if count == 0 || worker.socket.send_parts(&parts, &links).is_err() {
            return 0;
        }
        let number = u32::try_from(count).unwrap_or(u32::MAX);
        worker.tasks = worker.tasks.saturating_add(number);
        worker.waiting = worker.waiting.saturating_add(number);
        for mut waits in self.homeless.drain(..count) {
            waits.given.worker = place;
            self.given.insert(waits.number, waits.given);
        }
        count
    }

    /// The kernel says that a worker has packets to read.
    pub(crate) fn readable(&mut self, place: usize) {
        if let Some(Some(worker)) = self.workers.get_mut(place) {
            worker.is_readable = true;
        }
    }

    /// Whether packets of workers may be left to read.
    pub(crate) fn is_readable(&self) -> bool {
        let mut workers = self.workers.iter().flatten();
        workers.any(|worker| worker.is_readable)
    }

    /// Reads packets of workers, a bounded number, and returns ended sessions.
    pub(crate) fn read(&mut self) -> Vec<Ended> {
        let mut ended = Vec::new();
        for place in 0..self.workers.len() {
            self.read_some(place, &mut ended);
        }
        ended
    }

    fn read_some(&mut self, place: usize, ended: &mut Vec<Ended>) {
        for _ in 0..PACKETS_MAX {
            let worker = self.workers.get_mut(place).and_then(Option::as_mut);
            let Some(worker) = worker.filter(|worker| worker.is_readable) else {
                return;
            };
            match worker.socket.receive(&mut self.packet) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    worker.is_readable = false;
                }
                Ok(Some((length, _))) => {
                    let packet = self.packet.get(..length).unwrap_or_default();
                    match Notice::decode(packet) {
                        Ok(notice) => self.heard(place, notice, ended),
                        Err(error) => {
                            tracing::error!(place, %error, "a worker breaks the protocol");
                            self.lost(place, WorkerLoss::Protocol, ended);
                        }
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    tracing::error!(place, %error, "a worker breaks the protocol");
                    self.lost(place, WorkerLoss::Protocol, ended);
                }
                // A socket ends with its process.
                Ok(None) | Err(_) => self.lost(place, WorkerLoss::Dead, ended),
            }
        }
    }

    fn heard(&mut self, place: usize, notice: Notice, ended: &mut Vec<Ended>) {
        match notice {
            Notice::Progress { begun, done } => {
                for number in begun {
                    self.begun(place, number);
                }
                ended.extend(done.into_iter().filter_map(|done| self.done(place, done)));
            }
            Notice::Confined(layers) => {
                if let Some(Some(worker)) = self.workers.get_mut(place) {
                    worker.layers = Some(Layers::of_octet(layers));
                }
            }
            Notice::Last => {
                if let Some(Some(worker)) = self.workers.get_mut(place) {
                    worker.is_last = true;
                }
            }
        }
        self.dismiss(place);
    }

    /// A worker has begun a session.
    fn begun(&mut self, place: usize, number: u64) {
        let given = self.given.get_mut(&number);
        if let Some(given) = given.filter(|given| given.worker == place)
            && given.packet.take().is_some()
        {
            self.figures.begun(given.since.elapsed());
            self.waits_no_longer(place);
        }
    }

    /// A worker has ended a session.
    fn done(&mut self, place: usize, done: Done) -> Option<Ended> {
        let Done { number, refused } = done;
        self.given
            .get(&number)
            .filter(|given| given.worker == place)?;
        let Given { ticket, packet, .. } = self.given.remove(&number)?;
        if packet.is_some() {
            self.waits_no_longer(place);
        }
        if let Some(Some(worker)) = self.workers.get_mut(place) {
            worker.tasks = worker.tasks.saturating_sub(1);
        }
        self.figures.ended(WorkerSessionEnd::Done);
        Some(Ended { ticket, refused })
    }

    fn waits_no_longer(&mut self, place: usize) {
        if let Some(Some(worker)) = self.workers.get_mut(place) {
            worker.waiting = worker.waiting.saturating_sub(1);
        }
    }

    /// Closes the connection to a worker that takes no session and has none, so that the worker ends.
    fn dismiss(&mut self, place: usize) {
        let is_over = |worker: &Worker| worker.is_last && worker.tasks == 0;
        if let Some(worker) = self.workers.get_mut(place)
            && worker.as_ref().is_some_and(is_over)
        {
            *worker = None;
        }
    }

    /// A worker is lost. Sessions that a dead worker has not begun go to others; the rest ends.
    fn lost(&mut self, place: usize, loss: WorkerLoss, ended: &mut Vec<Ended>) {
        if let Some(worker) = self.workers.get_mut(place) {
            *worker = None;
        }
        self.figures.worker_lost(loss, self.occupancy());
        let numbers: Vec<u64> = self
            .given
            .iter()
            .filter(|(_, given)| given.worker == place)
            .map(|(number, _)| *number)
            .collect();
        let now = steady();
        for number in numbers {
            let Some(mut given) = self.given.remove(&number) else {
                continue;
            };
            given.deaths = given.deaths.saturating_add(1);
            given.until = now + BEGIN_PATIENCE;
            // A living process may still read the packets: no other worker may have them.
            match loss == WorkerLoss::Dead && given.packet.is_some() && given.deaths < DEATHS_MAX {
                true => self.homeless.push_back(Homeless {
                    number,
                    given,
                    until: now + HOMELESS_PATIENCE,
                }),
                false => {
                    // The client may be gone.
                    let _ = given.link.write_last(LAST_WORDS);
                    // A living worker says nothing behind that; octets without room in TCP are lost where the kernel encrypts.
                    if loss != WorkerLoss::Dead {
                        given.link.shutdown();
                    }
                    self.figures.ended(WorkerSessionEnd::Lost);
                    ended.push(given.into());
                }
            }
        }
    }

    /// Gives up workers that do not begin their sessions, and sessions that have waited for a worker for too long. Returns the
    /// sessions that have ended.
    pub(crate) fn give_up(&mut self, now: Timestamp) -> Vec<Ended> {
        let mut ended = Vec::new();
        let is_late = |given: &&Given| given.packet.is_some() && given.until <= now;
        while let Some(place) = self.given.values().find(is_late).map(|given| given.worker) {
            tracing::error!(place, "a worker does not begin its sessions");
            self.lost(place, WorkerLoss::Unbegun, &mut ended);
        }
        while let Some(waits) = self.homeless.pop_front_if(|waits| waits.until <= now) {
            let mut given = waits.given;
            let _ = given.link.write_last(LAST_WORDS);
            self.figures.ended(WorkerSessionEnd::Unserved);
            ended.push(given.into());
        }
        ended
    }
}

/// A worker that has connected.
fn next_worker(listener: &PacketListener) -> Option<PacketSocket> {
    let unless_none_waits = |error: &io::Error| match error.kind() {
        io::ErrorKind::WouldBlock => {}
        _ => tracing::warn!(%error, "a worker cannot be taken yet"),
    };
    listener.accept().inspect_err(unless_none_waits).ok()
}

/// The parts of a packet with the first of the sessions that wait, and their connections. A session of a dead worker goes alone, as the
/// possible reason.
fn packet(waits: &VecDeque<Homeless>, room: usize) -> (Vec<IoSlice<'_>>, Vec<BorrowedFd<'_>>) {
    let mut parts = vec![IoSlice::new(&SESSIONS)];
    let mut links = Vec::new();
    let mut octets = SESSIONS.len();
    for Homeless { given, .. } in waits.iter().take(room.min(SESSIONS_MAX)) {
        let session = given.packet.as_deref().unwrap_or_default();
        octets = octets.saturating_add(session.len());
        if octets > PACKET_OCTETS_MAX || given.deaths > 0 && !links.is_empty() {
            break;
        }
        parts.push(IoSlice::new(session));
        links.push(given.link.as_fd());
        if given.deaths > 0 {
            break;
        }
    }
    (parts, links)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::{TcpListener, TcpStream as StdTcpStream};

    use mio::Poll;
    use mio::net::TcpStream;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000);

    struct Bench {
        workers: Workers,
        poll: Poll,
        folder: tempfile::TempDir,
        port: TcpListener,
    }

    impl Bench {
        fn new(waiting: u32) -> Self {
            Self::with(Room {
                waiting,
                sessions: 100,
            })
        }

        fn with(room: Room) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let poll = Poll::new().unwrap();
            let path = folder.path().join("workers");
            let workers = Workers::new(
                &[path],
                Token(100),
                room,
                poll.registry(),
                Figures::default(),
            )
            .unwrap();
            let port = TcpListener::bind("127.0.0.1:0").unwrap();
            Self {
                workers,
                poll,
                folder,
                port,
            }
        }

        fn worker(&mut self) -> PacketSocket {
            let socket = PacketSocket::connect(&self.folder.path().join("workers")).unwrap();
            self.workers.accept(self.poll.registry());
            socket
        }

        /// Has a session wait for the end of the turn, and returns its client.
        fn give_later(&mut self, number: u64) -> StdTcpStream {
            let client = StdTcpStream::connect(self.port.local_addr().unwrap()).unwrap();
            let (here, _) = self.port.accept().unwrap();
            let link = Link::Clear(TcpStream::from_std(here));
            let ticket = Ticket::from_bits(number);
            let parts = (&b"state"[..], &b"more"[..]);
            self.workers.give(ticket, link, parts, Instant::now(), NOW);
            client
        }

        /// Gives a session away in a separate turn.
        fn give(&mut self, number: u64) -> StdTcpStream {
            let client = self.give_later(number);
            self.workers.house();
            client
        }
    }

    impl Bench {
        /// Reads the packets of the worker at a place, as after an event.
        fn read(&mut self, place: usize) -> Vec<Ended> {
            self.workers.readable(place);
            let ended = self.workers.read();
            self.workers.house();
            ended
        }
    }

    /// The number of the next session that a worker has in its queue.
    fn taken(worker: &PacketSocket) -> Option<u64> {
        let numbers = packet_of(worker)?;
        assert_eq!(numbers.len(), 1);
        Some(numbers[0])
    }

    /// The numbers of the sessions in the next packet that a worker has in its queue.
    fn packet_of(worker: &PacketSocket) -> Option<Vec<u64>> {
        let mut packet = vec![0; PACKET_OCTETS_MAX];
        let (length, descriptors) = worker.receive(&mut packet).ok()??;
        let tasks = Task::decode_all(&packet[..length]).unwrap();
        assert_eq!(descriptors.len(), tasks.len());
        for task in &tasks {
            assert_eq!((task.state, task.unread), (&b"state"[..], &b"more"[..]));
        }
        Some(tasks.iter().map(|task| task.number).collect())
    }

    fn say(worker: &PacketSocket, notice: &Notice) {
        let mut packet = Vec::new();
        notice.encode(&mut packet);
        worker.send(&packet, &[]).unwrap();
    }

    fn has_begun(numbers: &[u64]) -> Notice {
        Notice::Progress {
            begun: numbers.to_vec(),
            done: Vec::new(),
        }
    }

    fn all_done(numbers: &[u64]) -> Notice {
        let done = numbers.iter().map(|&number| Done { number, refused: 7 });
        Notice::Progress {
            begun: Vec::new(),
            done: done.collect(),
        }
    }

    fn done(number: u64) -> Notice {
        all_done(&[number])
    }

    /// Ended sessions with a report of the worker.
    fn told(bits: &[u64]) -> Vec<Ended> {
        let mut ended = lost(bits);
        ended.iter_mut().for_each(|ended| ended.refused = 7);
        ended
    }

    fn lost(bits: &[u64]) -> Vec<Ended> {
        let tickets = bits.iter().map(|bits| Ticket::from_bits(*bits));
        let ended = |ticket| Ended { ticket, refused: 0 };
        tickets.map(ended).collect()
    }

    #[test]
    fn sessions_that_were_begun_leave_room_up_to_the_bound_of_all() {
        let mut bench = Bench::with(Room {
            waiting: 1,
            sessions: 3,
        });
        let worker = bench.worker();
        let mut clients = Vec::new();
        let mut numbers = Vec::new();
        for number in 0..3 {
            assert!(bench.workers.has_room());
            clients.push(bench.give(number));
            assert!(!bench.workers.has_room());
            numbers.extend(taken(&worker));
            say(&worker, &has_begun(&numbers));
            bench.read(0);
        }
        assert!(!bench.workers.has_room());
        say(&worker, &done(numbers[0]));
        bench.read(0);
        assert!(bench.workers.has_room());
        // One that was not begun, and has ended, waits no longer.
        clients.push(bench.give(3));
        let number = taken(&worker).unwrap();
        say(&worker, &all_done(&[numbers[1], number]));
        bench.read(0);
        assert!(bench.workers.has_room());
    }

    #[test]
    fn the_sessions_of_a_turn_share_packets() {
        let mut bench = Bench::new(28);
        let workers = [bench.worker(), bench.worker()];
        let mut clients: Vec<_> = (0..40).map(|number| bench.give_later(number)).collect();
        assert_eq!(
            (packet_of(&workers[0]), bench.workers.sessions()),
            (None, 40)
        );
        bench.workers.house();
        let numbers = |range: std::ops::Range<u64>| Some(range.collect::<Vec<u64>>());
        assert_eq!(packet_of(&workers[0]), numbers(1..17));
        assert_eq!(packet_of(&workers[1]), numbers(17..33));
        assert_eq!(packet_of(&workers[0]), numbers(33..41));
        assert_eq!(
            (packet_of(&workers[0]), packet_of(&workers[1])),
            (None, None)
        );
        // 4 places are left at the first, and 12 at the second.
        for number in 40..56 {
            assert!(bench.workers.has_room());
            clients.push(bench.give_later(number));
        }
        assert!(!bench.workers.has_room());
        bench.workers.house();
        assert_eq!(packet_of(&workers[1]), numbers(41..53));
        assert_eq!(packet_of(&workers[0]), numbers(53..57));
        assert!(!bench.workers.has_room());
    }

    #[test]
    fn a_session_of_a_dead_worker_goes_alone() {
        let mut bench = Bench::new(28);
        let dead = bench.worker();
        let _clients: Vec<_> = (0..3).map(|number| bench.give_later(number)).collect();
        bench.workers.house();
        assert_eq!(packet_of(&dead), Some(vec![1, 2, 3]));
        drop(dead);
        assert_eq!(bench.read(0), lost(&[]));
        let worker = bench.worker();
        let _more: Vec<_> = (3..5).map(|number| bench.give_later(number)).collect();
        bench.workers.house();
        let mut numbers: Vec<u64> = (0..3).filter_map(|_| taken(&worker)).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, [1, 2, 3]);
        assert_eq!(packet_of(&worker), Some(vec![4, 5]));
    }

    #[test]
    fn a_session_of_a_dead_worker_does_not_join_others() {
        let mut bench = Bench::new(28);
        let dead = bench.worker();
        let _first = bench.give(0);
        assert_eq!(packet_of(&dead), Some(vec![1]));
        let _second = bench.give_later(1);
        drop(dead);
        assert_eq!(bench.read(0), lost(&[]));
        let worker = bench.worker();
        bench.workers.house();
        assert_eq!(packet_of(&worker), Some(vec![2]));
        assert_eq!(packet_of(&worker), Some(vec![1]));
    }

    #[test]
    fn long_sessions_share_a_packet_up_to_its_bound() {
        let mut bench = Bench::new(28);
        let worker = bench.worker();
        let state = vec![b's'; 50_000];
        let mut clients = Vec::new();
        for number in 0..3 {
            let client = StdTcpStream::connect(bench.port.local_addr().unwrap()).unwrap();
            let (here, _) = bench.port.accept().unwrap();
            let link = Link::Clear(TcpStream::from_std(here));
            let ticket = Ticket::from_bits(number);
            let parts = (&state[..], &b""[..]);
            bench.workers.give(ticket, link, parts, Instant::now(), NOW);
            clients.push(client);
        }
        bench.workers.house();
        let mut packet = vec![0; PACKET_OCTETS_MAX];
        for expected in [2, 1] {
            let (length, connections) = worker.receive(&mut packet).unwrap().unwrap();
            assert_eq!(connections.len(), expected);
            let tasks = Task::decode_all(&packet[..length]).unwrap();
            assert!(tasks.iter().all(|task| task.state == state));
        }
    }

    #[test]
    fn sessions_go_round_the_workers_until_all_are_full() {
        let mut bench = Bench::new(2);
        assert!(!bench.workers.has_room());
        let workers = [bench.worker(), bench.worker()];
        let clients: Vec<_> = (0..3).map(|number| bench.give(number)).collect();
        assert!(bench.workers.has_room());
        let _last = bench.give(3);
        assert!(!bench.workers.has_room());
        for worker in &workers {
            assert!(taken(worker).is_some() && taken(worker).is_some());
            assert_eq!(taken(worker), None);
        }
        // A session above that waits for the first that ends.
        let _waits = bench.give(4);
        assert_eq!(bench.workers.sessions(), 5);
        say(&workers[0], &has_begun(&[1]));
        say(&workers[0], &done(1));
        assert_eq!(bench.read(0), told(&[0]));
        assert_eq!(taken(&workers[0]), Some(5));
        drop(clients);
    }

    #[test]
    fn a_worker_speaks_for_its_own_sessions_alone() {
        let mut bench = Bench::new(5);
        let (first, second) = (bench.worker(), bench.worker());
        let _clients = [bench.give(0), bench.give(1)];
        say(&second, &done(1));
        assert_eq!(bench.read(1), []);
        say(&first, &done(1));
        assert_eq!(bench.read(0), told(&[0]));
    }

    #[test]
    fn of_a_dead_worker_begun_sessions_end_and_others_move() {
        let mut bench = Bench::new(5);
        let (first, second) = (bench.worker(), bench.worker());
        let mut begun = bench.give(0);
        let _other = bench.give(1);
        let _unbegun = bench.give(2);
        say(&first, &has_begun(&[1]));
        assert_eq!(bench.read(0), []);
        drop(first);
        assert_eq!(bench.read(0), lost(&[0]));
        let mut said = String::new();
        begun.read_to_string(&mut said).unwrap();
        assert_eq!(said.as_bytes(), LAST_WORDS);
        assert_eq!((taken(&second), taken(&second)), (Some(2), Some(3)));
        assert_eq!(taken(&second), None);
    }

    /// The kernel tells of packets once, however many are left.
    #[test]
    fn a_worker_that_speaks_without_end_has_its_turn_and_loses_nothing() {
        let mut bench = Bench::new(5);
        let (first, second) = (bench.worker(), bench.worker());
        let _clients = [bench.give(0), bench.give(1)];
        for _ in 0..PACKETS_MAX {
            say(&first, &has_begun(&[1]));
        }
        say(&first, &done(1));
        say(&second, &done(2));
        bench.workers.readable(0);
        bench.workers.readable(1);
        assert_eq!(bench.workers.read(), told(&[1]));
        assert!(bench.workers.is_readable());
        assert_eq!(bench.workers.read(), told(&[0]));
        assert!(!bench.workers.is_readable());
    }

    #[test]
    fn a_worker_that_talks_nonsense_is_given_up() {
        let mut bench = Bench::new(5);
        let worker = bench.worker();
        let _client = bench.give(0);
        worker.send(b"\x01\x09", &[]).unwrap();
        // The process lives, so that no other worker gets the session.
        assert_eq!(bench.read(0), lost(&[0]));
        assert!(!bench.workers.has_room());
        assert_eq!(bench.workers.sessions(), 0);
        let next = bench.worker();
        assert_eq!(taken(&next), None);
    }

    #[test]
    fn the_last_session_of_a_worker_closes_its_connection() {
        let mut bench = Bench::new(5);
        let worker = bench.worker();
        let _client = bench.give(0);
        assert_eq!(taken(&worker), Some(1));
        say(&worker, &Notice::Last);
        assert_eq!(bench.read(0), []);
        assert!(!bench.workers.has_room());
        say(&worker, &done(1));
        assert_eq!(bench.read(0), told(&[0]));
        assert!(worker.receive(&mut [0; 8]).unwrap().is_none());
        // Its place is free.
        let _next = bench.worker();
        assert_eq!(bench.workers.place(Token(101)), Some(0));
        assert_eq!(bench.workers.place(Token(102)), None);
        assert_eq!(bench.workers.place(Token(100)), None);
    }

    #[test]
    fn a_worker_that_does_not_begin_is_given_up() {
        let mut bench = Bench::new(5);
        let first = bench.worker();
        let _client = bench.give(7);
        assert_eq!(bench.workers.give_up(NOW), []);
        let second = bench.worker();
        let ended = bench.workers.give_up(NOW + BEGIN_PATIENCE);
        assert_eq!(ended, lost(&[7]));
        // The packet is still in the queue of the first, whose connection is closed.
        assert_eq!((taken(&first), taken(&second)), (Some(1), None));
        assert!(first.receive(&mut [0; 8]).unwrap().is_none());
    }

    #[test]
    fn a_session_waits_for_a_worker_for_a_while() {
        let mut bench = Bench::new(5);
        let mut client = bench.give(7);
        let until = NOW + HOMELESS_PATIENCE;
        assert_eq!(bench.workers.give_up(NOW), []);
        assert_eq!(bench.workers.give_up(until), lost(&[7]));
        let mut said = String::new();
        client.read_to_string(&mut said).unwrap();
        assert_eq!(said.as_bytes(), LAST_WORDS);
    }
}
