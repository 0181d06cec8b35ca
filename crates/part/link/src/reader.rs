//! A read-only connection to a node: figures, queues and records. Also asks a node whether an account may own a
//! group, before other steps depend on the answer.

use std::fmt;
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
use vere_process::encryption::Encryption;

/// How long a node may take for anything.
const PATIENCE: Duration = Duration::from_secs(5);
/// Queues asked for at once.
const QUEUES_AT_ONCE: u32 = 4096;
/// Octets of records asked for at once, about.
const OCTETS_AT_ONCE: u32 = 1 << 20;

/// Why a node gave no answer.
#[derive(Debug)]
pub enum NoAnswer {
    /// It said why, and closed.
    Closed(CloseReason),
    /// A text for people.
    Failed(String),
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed(reason) => write!(f, "node says: {reason}"),
            Self::Failed(error) => f.write_str(error),
        }
    }
}

impl From<String> for NoAnswer {
    fn from(error: String) -> Self {
        Self::Failed(error)
    }
}

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
        let socket = TcpStream::connect_timeout(&address, PATIENCE)
            .map_err(|error| format!("cannot connect: {error}"))?;
        let set = |result: std::io::Result<()>| result.map_err(|error| error.to_string());
        set(socket.set_read_timeout(Some(PATIENCE)))?;
        set(socket.set_write_timeout(Some(PATIENCE)))?;
        let mut stream = Stream::open(socket, address, node, tls)?;
        let mut octets = Vec::new();
        let greeting = next(&mut stream, &mut octets, HANDSHAKE_FRAME_MAX, |frame| {
            Greeting::decode(frame).map_err(|error| error.to_string())
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
            Welcome::decode(frame).map_err(|error| error.to_string())
        })?;
        if welcome.proof != hello.answer(&greeting, &key.secret) {
            return Err("it did not prove that it is the node".to_owned().into());
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

/// Makes a group that holds nothing whole as it is, for an owner of this epoch. The error is a text for
/// people.
///
/// # Errors
/// When the node cannot be reached, or refuses.
pub fn make_whole(
    address: SocketAddr,
    node: &SpoolNode,
    tls: Option<&MutualTls>,
    (key, group): (&Credentials, &str),
    epoch: u64,
) -> Result<(), String> {
    let role = (Role::Owner, vere_process::secret::random_number(), epoch);
    let made = Handshake::make(address, node, tls, (key, group), role);
    let made = made.map_err(|error| error.to_string())?;
    if made.welcome.processed > Txn(0) {
        return Err("it holds something of the group meanwhile".to_owned());
    }
    let (mut stream, mut octets) = (made.stream, made.octets);
    send(&mut stream, |out| Request::Complete.encode(out, Seq(1)))?;
    let answer = next(&mut stream, &mut octets, ANSWER_FRAME_MAX, |frame| {
        Answer::decode(frame).map_err(|error| error.to_string())
    });
    match answer.map_err(|error| error.to_string())? {
        Answer::Alive { seq: Seq(1), .. } => Ok(()),
        _ => Err("it gave an answer to something else".to_owned()),
    }
}

/// What a node holds of a group; `None`: it has no such group. The error is a text for people.
///
/// # Errors
/// When the node cannot be reached, or refuses.
pub fn look_for(
    node: &SpoolNode,
    tls: Option<&MutualTls>,
    whose: (&Credentials, &str),
) -> Result<Option<NodeStat>, String> {
    let mut errors = Vec::new();
    for address in node.addresses() {
        match Handshake::make(address, node, tls, whose, (Role::Reader, 0, 0)) {
            Ok(made) => return Reader::of(address, made).stat().map(Some),
            Err(NoAnswer::Closed(CloseReason::NoGroup)) => return Ok(None),
            Err(error) => errors.push(format!("{address}: {error}")),
        }
    }
    Err(errors.join("; "))
}

/// Ends a group on a node, as an owner of this epoch; one with records only if that is said. The error is a text
/// for people.
///
/// # Errors
/// When the node cannot be reached, or refuses.
pub fn end_group(
    node: &SpoolNode,
    tls: Option<&MutualTls>,
    whose: (&Credentials, &str),
    (epoch, records): (u64, bool),
) -> Result<(), String> {
    let mut errors = Vec::new();
    for address in node.addresses() {
        let role = (Role::Owner, vere_process::secret::random_number(), epoch);
        let ended = Handshake::make(address, node, tls, whose, role).and_then(|mut made| {
            let end = Request::End { records };
            send(&mut made.stream, |out| end.encode(out, Seq(1)))?;
            next(&mut made.stream, &mut made.octets, ANSWER_FRAME_MAX, |_| {
                Err::<(), _>("it gave an answer to something else".to_owned())
            })
        });
        match ended {
            Err(NoAnswer::Closed(CloseReason::Ended)) => return Ok(()),
            Err(error) => errors.push(format!("{address}: {error}")),
            Ok(()) => {}
        }
    }
    Err(errors.join("; "))
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

    /// Connects to a node to read a group, at the first of its addresses that answers. The error is a
    /// text for people.
    ///
    /// # Errors
    /// When no address of the node answers, or the node refuses.
    pub fn connect(
        node: &SpoolNode,
        tls: Option<&MutualTls>,
        key: &Credentials,
        group: &str,
    ) -> Result<Self, String> {
        let mut errors = Vec::new();
        for address in node.addresses() {
            match Self::connect_at(address, node, tls, (key, group)) {
                Ok(reader) => return Ok(reader),
                Err(error) if node.standby.is_some() => errors.push(format!("{address}: {error}")),
                Err(error) => errors.push(error),
            }
        }
        Err(errors.join("; "))
    }

    fn connect_at(
        address: SocketAddr,
        node: &SpoolNode,
        tls: Option<&MutualTls>,
        (key, group): (&Credentials, &str),
    ) -> Result<Self, String> {
        let made = Handshake::make(address, node, tls, (key, group), (Role::Reader, 0, 0));
        let made = made.map_err(|error| match error {
            NoAnswer::Closed(_) => format!("account {:?}: {error}", key.account),
            NoAnswer::Failed(error) => error,
        })?;
        Ok(Self::of(address, made))
    }

    /// The node and the group in figures.
    ///
    /// # Errors
    /// When the node does not answer; the error is a text for people.
    pub fn stat(&mut self) -> Result<NodeStat, String> {
        match self.ask(Request::Stat)? {
            Answer::Stats { stat, .. } => Ok(stat),
            _ => Err("it gave an answer to something else".to_owned()),
        }
    }

    /// All queues of the group.
    ///
    /// # Errors
    /// When the node does not answer; the error is a text for people.
    pub fn queues(&mut self) -> Result<Vec<QueueStat>, String> {
        let mut all: Vec<QueueStat> = Vec::new();
        loop {
            let from = QueueId(all.last().map_or(0, |queue| queue.id.0 + 1));
            let request = Request::Queues {
                from,
                count: QUEUES_AT_ONCE,
            };
            let Answer::QueueList { queues, end, .. } = self.ask(request)? else {
                return Err("it gave an answer to something else".to_owned());
            };
            if queues.first().is_some_and(|first| first.id < from) {
                return Err("it told queues that were not asked for".to_owned());
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
    /// When the node does not answer; the error is a text for people.
    pub fn fetch(
        &mut self,
        queue: QueueId,
        from: RecordId,
        records: u32,
    ) -> Result<(Vec<ReadRecord>, bool), String> {
        let request = Request::Fetch {
            queue,
            from,
            records,
            octets: OCTETS_AT_ONCE,
        };
        let Answer::Block { head, .. } = self.ask(request)? else {
            return Err("it gave an answer to something else".to_owned());
        };
        if !head.known {
            return Err("the queue is gone".to_owned());
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
                    _ => Err("it gave something else for a record".to_owned()),
                },
            )
        };
        let records: Result<Vec<_>, _> = (0..head.records).map(record).collect();
        let records = records.map_err(|error| error.to_string())?;
        Ok((records, head.end))
    }

    fn ask(&mut self, request: Request) -> Result<Answer, String> {
        send(&mut self.stream, |out| request.encode(out, Seq(1)))?;
        next(
            &mut self.stream,
            &mut self.octets,
            ANSWER_FRAME_MAX,
            |frame| Answer::decode(frame).map_err(|error| error.to_string()),
        )
        .map_err(|error| error.to_string())
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
    ) -> Result<Self, String> {
        let wanted = Encryption::of(tls, node);
        let tls = wanted.as_ref().and_then(|wanted| wanted.covers(address));
        let line = tls.map(|tls| tls.connect(&node.name, address.ip()));
        let line = line.transpose().map_err(|error| error.to_string())?;
        let mut stream = Self { socket, line };
        if let Some(line) = &mut stream.line {
            let done = line.shake_hands(&mut stream.socket);
            done.map_err(|error| error.to_string())?;
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

fn send(stream: &mut Stream, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), String> {
    let mut out = Vec::new();
    write(&mut out);
    stream.write_all(&out).map_err(|error| error.to_string())
}

/// Reads the next frame; a CLOSE is told as what it says.
fn next<T>(
    stream: &mut Stream,
    octets: &mut Vec<u8>,
    most: usize,
    read: impl FnOnce(&Frame<'_>) -> Result<T, String>,
) -> Result<T, NoAnswer> {
    let mut buffer = [0; 64 << 10];
    loop {
        let header = Header::peek(octets, most).map_err(|error| error.to_string())?;
        let frame = match header {
            Some(header) => Frame::open(header, octets).map_err(|error| error.to_string())?,
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
            Ok(0) => return Err("it closed the connection".to_owned().into()),
            Ok(count) => octets.extend_from_slice(buffer.get(..count).unwrap_or_default()),
            Err(error) => return Err(format!("it does not answer: {error}").into()),
        }
    }
}
