//! A read-only connection to a node: figures, queues and records. Also asks a node whether an account may own a
//! group, before other steps depend on the answer.

use std::io::{self, IoSlice, Read as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use vere_net::tls::{Line, MutualTls};
use vere_settings::SpoolNode;
use vere_spoolwire::{
    ANSWER_FRAME_MAX, Answer, Change, Charter, CloseReason, Frame, Greeting, HANDSHAKE_FRAME_MAX,
    Header, Hello, Mutation, NodeStat, Op, QueueId, QueueStat, RecordId, Request, Role, Seq, Txn,
    VERSION, WELCOME_FRAME_MAX, Welcome,
};

use super::credentials::Credentials;
use super::no_answer::NoAnswer;
use vere_process::encryption::Encryption;

/// How long a node may take for anything.
const PATIENCE: Duration = Duration::from_secs(5);
/// Queues asked for at once.
const QUEUES_AT_ONCE: u32 = 4096;
/// Octets of records asked for at once, about.
const OCTETS_AT_ONCE: u32 = 1 << 20;

/// Whether a node lets an account own a group.
#[derive(Debug)]
pub enum Admission {
    /// The node would admit the account.
    Granted,
    /// The node refuses the account, for this reason.
    Denied(CloseReason),
    /// The node gives no answer, for this reason.
    Unknown(String),
}

impl Admission {
    /// Asks a node, at the first of its addresses that says something. Nothing changes there: who stands
    /// by for an owner that the node does not know is turned away, and before that for want of the right.
    pub fn ask(node: &SpoolNode, tls: Option<&MutualTls>, key: &Credentials, group: &str) -> Self {
        let mut unknown = Vec::new();
        for address in node.addresses() {
            let role = (Role::Standby, vere_process::secret::random_number(), 0);
            match Handshake::make(address, node, tls, (key, group), role) {
                Ok(_) | Err(NoAnswer::Closed(CloseReason::Fenced)) => return Self::Granted,
                Err(NoAnswer::Closed(reason)) if reason.is_denial() => return Self::Denied(reason),
                Err(error) => unknown.push(format!("{address}: {error}")),
            }
        }
        Self::Unknown(unknown.join("; "))
    }
}

/// A connection on which both sides have proven themselves.
struct Handshake {
    stream: Stream,
    octets: Vec<u8>,
    greeting: Greeting,
    welcome: Welcome,
}

impl Handshake {
    /// Opens a connection; `role` carries the purpose, the incarnation of an owner and the epoch.
    fn make(
        address: SocketAddr,
        node: &SpoolNode,
        tls: Option<&MutualTls>,
        (key, group): (&Credentials, &str),
        (role, owner, epoch): (Role, u64, u64),
    ) -> Result<Self, NoAnswer> {
        let socket = TcpStream::connect_timeout(&address, PATIENCE).map_err(NoAnswer::Connect)?;
        let set = |result: io::Result<()>| result.map_err(NoAnswer::Send);
        set(socket.set_read_timeout(Some(PATIENCE)))?;
        set(socket.set_write_timeout(Some(PATIENCE)))?;
        let mut stream = Stream::open(socket, address, node, tls)?;
        let mut octets = Vec::new();
        let greeting = next(&mut stream, &mut octets, HANDSHAKE_FRAME_MAX, |frame| {
            Ok(Greeting::decode(frame)?)
        })?;
        let hello = Hello {
            acknowledged: Txn(0),
            version: VERSION,
            role,
            owner,
            epoch,
            logged: true,
            group,
            account: &key.account,
            charter: Charter::OWN,
            nonce: vere_process::secret::random(),
            proof: [0; 32],
        };
        let hello = hello.sign(&greeting, &key.secret);
        send(&mut stream, |out| hello.encode(out))?;
        let welcome = next(&mut stream, &mut octets, WELCOME_FRAME_MAX, |frame| {
            Ok(Welcome::decode(frame)?)
        })?;
        if welcome.proof != hello.answer(&greeting, &key.secret) {
            return Err(NoAnswer::Unproven);
        }
        Ok(Self {
            stream,
            octets,
            greeting,
            welcome,
        })
    }
}

/// A record without its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadRecord {
    /// The number of the record in its queue.
    pub id: RecordId,
    /// What is kept beside the message.
    pub meta: Vec<u8>,
}

/// A connection on which the node has proven itself.
#[derive(Debug)]
pub struct Reader {
    /// Where it answered.
    pub address: SocketAddr,
    stream: Stream,
    octets: Vec<u8>,
    /// What the node said of the group when it was connected to.
    pub greeting: Greeting,
    /// What the node said at the beginning.
    pub welcome: Welcome,
}

/// Makes a group that holds nothing whole as it is, for an owner of this epoch.
///
/// # Errors
/// When the node cannot be reached, or refuses.
pub fn make_whole(
    address: SocketAddr,
    node: &SpoolNode,
    tls: Option<&MutualTls>,
    (key, group): (&Credentials, &str),
    epoch: u64,
) -> Result<(), NoAnswer> {
    let role = (Role::Owner, vere_process::secret::random_number(), epoch);
    let made = Handshake::make(address, node, tls, (key, group), role);
    let made = made?;
    if made.welcome.processed > Txn(0) {
        return Err(NoAnswer::InUse);
    }
    let (mut stream, mut octets) = (made.stream, made.octets);
    send(&mut stream, |out| Request::Complete.encode(out, Seq(1)))?;
    let answer = next(&mut stream, &mut octets, ANSWER_FRAME_MAX, |frame| {
        Ok(Answer::decode(frame)?)
    });
    match answer? {
        Answer::Alive { seq: Seq(1), .. } => Ok(()),
        _ => Err(NoAnswer::OTHER),
    }
}

/// What a node holds of a group; `None`: it has no such group.
///
/// # Errors
/// When the node cannot be reached, or refuses.
pub fn look_for(
    node: &SpoolNode,
    tls: Option<&MutualTls>,
    whose: (&Credentials, &str),
) -> Result<Option<NodeStat>, NoAnswer> {
    let mut errors = Vec::new();
    for address in node.addresses() {
        match Handshake::make(address, node, tls, whose, (Role::Reader, 0, 0)) {
            Ok(made) => return Reader::of(address, made).stat().map(Some),
            Err(NoAnswer::Closed(CloseReason::NoGroup)) => return Ok(None),
            Err(error) => errors.push((Some(address), error)),
        }
    }
    Err(NoAnswer::Addresses(errors))
}

/// Ends a group on a node, as an owner of this epoch; one with records only if that is said.
///
/// # Errors
/// When the node cannot be reached, or refuses.
pub fn end_group(
    node: &SpoolNode,
    tls: Option<&MutualTls>,
    whose: (&Credentials, &str),
    (epoch, records): (u64, bool),
) -> Result<(), NoAnswer> {
    let mut errors = Vec::new();
    for address in node.addresses() {
        let role = (Role::Owner, vere_process::secret::random_number(), epoch);
        let ended = Handshake::make(address, node, tls, whose, role).and_then(|mut made| {
            let end = Request::End { records };
            send(&mut made.stream, |out| end.encode(out, Seq(1)))?;
            next(&mut made.stream, &mut made.octets, ANSWER_FRAME_MAX, |_| {
                Err::<(), _>(NoAnswer::OTHER)
            })
        });
        match ended {
            Err(NoAnswer::Closed(CloseReason::Ended)) => return Ok(()),
            Err(error) => errors.push((Some(address), error)),
            Ok(()) => {}
        }
    }
    Err(NoAnswer::Addresses(errors))
}

impl Reader {
    fn of(address: SocketAddr, made: Handshake) -> Self {
        let Handshake {
            stream,
            octets,
            greeting,
            welcome,
        } = made;
        Self {
            address,
            stream,
            octets,
            greeting,
            welcome,
        }
    }

    /// Connects to a node to read a group, at the first of its addresses that answers.
    ///
    /// # Errors
    /// When no address of the node answers, or the node refuses.
    pub fn connect(
        node: &SpoolNode,
        tls: Option<&MutualTls>,
        key: &Credentials,
        group: &str,
    ) -> Result<Self, NoAnswer> {
        let mut errors = Vec::new();
        for address in node.addresses() {
            match Self::connect_at(address, node, tls, (key, group)) {
                Ok(reader) => return Ok(reader),
                Err(error) if node.standby.is_some() => errors.push((Some(address), error)),
                Err(error) => errors.push((None, error)),
            }
        }
        Err(NoAnswer::Addresses(errors))
    }

    fn connect_at(
        address: SocketAddr,
        node: &SpoolNode,
        tls: Option<&MutualTls>,
        (key, group): (&Credentials, &str),
    ) -> Result<Self, NoAnswer> {
        let made = Handshake::make(address, node, tls, (key, group), (Role::Reader, 0, 0));
        let made = made.map_err(|error| match error {
            NoAnswer::Closed(reason) => NoAnswer::Refused {
                account: key.account.clone(),
                reason,
            },
            other => other,
        })?;
        Ok(Self::of(address, made))
    }

    /// The node and the group in figures.
    ///
    /// # Errors
    /// When the node does not answer.
    pub fn stat(&mut self) -> Result<NodeStat, NoAnswer> {
        match self.ask(Request::Stat)? {
            Answer::Stats { stat, .. } => Ok(stat),
            _ => Err(NoAnswer::OTHER),
        }
    }

    /// All queues of the group.
    ///
    /// # Errors
    /// When the node does not answer.
    pub fn queues(&mut self) -> Result<Vec<QueueStat>, NoAnswer> {
        let mut all: Vec<QueueStat> = Vec::new();
        loop {
            let from = QueueId(all.last().map_or(0, |queue| queue.id.0 + 1));
            let request = Request::Queues {
                from,
                count: QUEUES_AT_ONCE,
            };
            let Answer::QueueList { queues, end, .. } = self.ask(request)? else {
                return Err(NoAnswer::OTHER);
            };
            if queues.first().is_some_and(|first| first.id < from) {
                return Err(NoAnswer::Unexpected("queues that were not asked for"));
            }
            let none = queues.is_empty();
            all.extend(queues);
            if end || none {
                return Ok(all);
            }
        }
    }

    /// Fetches records of a queue from `from` on, at most `records`. Also returns whether the queue ends after the
    /// last of them.
    ///
    /// # Errors
    /// When the node does not answer.
    pub fn fetch(
        &mut self,
        queue: QueueId,
        from: RecordId,
        records: u32,
    ) -> Result<(Vec<ReadRecord>, bool), NoAnswer> {
        let request = Request::Fetch {
            queue,
            from,
            records,
            octets: OCTETS_AT_ONCE,
        };
        let Answer::Block { head, .. } = self.ask(request)? else {
            return Err(NoAnswer::OTHER);
        };
        if !head.known {
            return Err(NoAnswer::NoQueue);
        }
        let most = usize::try_from(self.welcome.frame_max).unwrap_or(usize::MAX);
        let record = |_| {
            next(
                &mut self.stream,
                &mut self.octets,
                most,
                |frame| match Mutation::decode_logged(frame) {
                    Ok(Mutation::Change(Change::Put { id, meta, .. })) => Ok(ReadRecord {
                        id,
                        meta: meta.to_vec(),
                    }),
                    _ => Err(NoAnswer::Unexpected("something else for a record")),
                },
            )
        };
        let records: Result<Vec<_>, _> = (0..head.records).map(record).collect();
        Ok((records?, head.end))
    }

    fn ask(&mut self, request: Request) -> Result<Answer, NoAnswer> {
        send(&mut self.stream, |out| request.encode(out, Seq(1)))?;
        next(
            &mut self.stream,
            &mut self.octets,
            ANSWER_FRAME_MAX,
            |frame| Ok(Answer::decode(frame)?),
        )
    }
}

/// A socket that blocks, and TLS on it or not.
#[derive(Debug)]
struct Stream {
    socket: TcpStream,
    line: Option<Line>,
}

impl Stream {
    fn open(
        socket: TcpStream,
        address: SocketAddr,
        node: &SpoolNode,
        tls: Option<&MutualTls>,
    ) -> Result<Self, NoAnswer> {
        let wanted = Encryption::of(tls, node);
        let tls = wanted.as_ref().and_then(|wanted| wanted.covers(address));
        let line = tls.map(|tls| tls.connect(&node.name, address.ip()));
        let line = line.transpose().map_err(NoAnswer::Tls)?;
        let mut stream = Self { socket, line };
        if let Some(line) = &mut stream.line {
            let done = line.shake_hands(&mut stream.socket);
            done.map_err(NoAnswer::Send)?;
        }
        Ok(stream)
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.line {
            None => self.socket.read(buffer),
            Some(line) => line.read(&mut self.socket, buffer),
        }
    }

    fn write_all(&mut self, mut octets: &[u8]) -> io::Result<()> {
        let Some(line) = &mut self.line else {
            return io::Write::write_all(&mut self.socket, octets);
        };
        while !octets.is_empty() {
            let count = line.write(&mut self.socket, &[IoSlice::new(octets)])?;
            octets = octets.get(count..).unwrap_or_default();
        }
        line.flush(&mut self.socket)
    }
}

fn send(stream: &mut Stream, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), NoAnswer> {
    let mut out = Vec::new();
    write(&mut out);
    stream.write_all(&out).map_err(NoAnswer::Send)
}

/// Reads the next frame; a CLOSE is told as what it says.
fn next<T>(
    stream: &mut Stream,
    octets: &mut Vec<u8>,
    most: usize,
    read: impl FnOnce(&Frame<'_>) -> Result<T, NoAnswer>,
) -> Result<T, NoAnswer> {
    let mut buffer = [0; 64 << 10];
    loop {
        let header = Header::peek(octets, most)?;
        let frame = match header {
            Some(header) => Frame::open(header, octets)?,
            None => None,
        };
        if let Some(frame) = frame {
            if frame.header.op == Op::Close
                && let Ok(Answer::Close(reason)) = Answer::decode(&frame)
            {
                return Err(NoAnswer::Closed(reason));
            }
            let len = frame.header.len;
            let value = read(&frame)?;
            octets.drain(..len);
            return Ok(value);
        }
        match stream.read(&mut buffer) {
            Ok(0) => return Err(NoAnswer::Hangup),
            Ok(count) => octets.extend_from_slice(buffer.get(..count).unwrap_or_default()),
            Err(error) => return Err(NoAnswer::Silent(error)),
        }
    }
}
