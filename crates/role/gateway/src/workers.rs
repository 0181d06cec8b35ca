//! Messages that workers have received at port 25: the gateway's side of `vere_handoff::message`.
//!
//! A worker is not trusted: a frame against the protocol ends the connection. A compromised worker may claim any origin address for a
//! message, even an address of `relay.networks`, but no account.

use std::fmt;
use std::io;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, BufReader};
use tokio::net::UnixListener;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};
use tokio::task::spawn_local;
use vere_handoff::HandoffError;
use vere_handoff::message::{
    Answer, FIELDS_OCTETS_MAX, Frame, OPENING_OCTETS, Opening, Part, Prefix,
};
use vere_judge::{Facts, FactsError};
use vere_net::quiet::{self, Reading, Writing};
use vere_process::accept;
use vere_process::memory::Share;
use vere_smtp::refusal::Refusal;
use vere_smtp::server::{HandoverError, Message};

use super::aside::Filed;
use super::group::Group;
use super::intake::{GatewayIntakes, Intakes as _};
use super::judging::Gathered;
use super::parts::{Parts, Said, Written};
use super::service::Service;
use super::throttle;

/// Limit on the messages of a worker being stored at once, and parts being written. The next frame is read after a message or part is
/// done and the answer written.
const STORING_MAX: usize = 256;
/// Octets that are read from a worker at once.
const READ_OCTETS: usize = 64 * 1024;
/// The most octets of a message by the protocol.
const MESSAGE_OCTETS_MAX: usize = u32::MAX as usize;
/// How often it is looked whether messages are taken.
const STATE_INTERVAL: Duration = Duration::from_millis(50);
/// How long the rest of a frame may take behind its beginning.
const FRAME_PATIENCE: Duration = Duration::from_secs(30);
/// How long a worker may leave answers unread.
const UNREAD_PATIENCE: Duration = Duration::from_secs(30);

/// Why a connection of a worker ends.
#[derive(Debug)]
enum Broken {
    /// The connection failed, or the worker has gone.
    Connection(io::Error),
    /// A frame breaks the protocol.
    Frame(HandoffError),
    /// A head breaks the form of messages.
    Head(HandoverError),
    /// The facts about a message cannot be read.
    Facts(FactsError),
    /// A message is said to be of an account.
    Account,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connection(error) => error.fmt(f),
            Self::Frame(error) => error.fmt(f),
            Self::Head(error) => error.fmt(f),
            Self::Facts(error) => error.fmt(f),
            Self::Account => f.write_str("expected a message of a stranger; found an account"),
        }
    }
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::Connection(error)
    }
}

impl From<HandoffError> for Broken {
    fn from(error: HandoffError) -> Self {
        Self::Frame(error)
    }
}

/// Serves workers until the gateway stops.
pub(super) async fn serve(group: Rc<Group>, listener: UnixListener, stop: watch::Receiver<bool>) {
    let (state, states) = watch::channel(None);
    spawn_local(follow_state(Rc::clone(&group), state));
    let intakes = Rc::new(GatewayIntakes::new(Rc::clone(&group)));
    let service = Service::Smtp.name();
    accept::accept(listener, service, stop, |stream| {
        let (group, intakes) = (Rc::clone(&group), Rc::clone(&intakes));
        let states = states.clone();
        async move {
            let (read, write) = match quiet::split(stream) {
                Ok(halves) => halves,
                Err(error) => return tracing::warn!(%error, "a worker cannot be served"),
            };
            let (answers, waiting) = unbounded_channel();
            // The connection is closed with the first of the three that ends.
            tokio::select! {
                taken = take(&group, &intakes, read, &answers) => if let Err(broken) = taken {
                    tracing::warn!(%broken, "connection of a worker ended");
                },
                () = send(write, waiting) => {
                    tracing::warn!("connection of a worker ended: it does not read answers");
                }
                () = tell_state(states, &answers) => {}
            }
        }
    })
    .await;
}

/// Takes messages until the worker closes the connection.
async fn take(
    group: &Rc<Group>,
    intakes: &Rc<GatewayIntakes>,
    from: Reading<UnixStream>,
    answers: &UnboundedSender<Said>,
) -> Result<(), Broken> {
    let mut worker = Worker {
        group: Rc::clone(group),
        intakes: Rc::clone(intakes),
        // A read has several short messages.
        from: BufReader::with_capacity(READ_OCTETS, from),
        answers: answers.clone(),
        parts: Parts::new(Rc::clone(group), answers.clone()),
        storing: Arc::new(Semaphore::new(STORING_MAX)),
    };
    while let Some(frame) = worker.frame().await? {
        match frame {
            Frame::Message(prefix) => worker.message(prefix).await?,
            Frame::Part(part) => worker.part(part).await?,
            Frame::Forget { number } => worker.parts.forget(number),
        }
    }
    Ok(())
}

/// A worker whose frames are read.
struct Worker {
    group: Rc<Group>,
    intakes: Rc<GatewayIntakes>,
    from: BufReader<Reading<UnixStream>>,
    answers: UnboundedSender<Said>,
    parts: Parts,
    storing: Arc<Semaphore>,
}

impl Worker {
    /// Reads the next frame up to the octets of head and text; `None` at the end.
    async fn frame(&mut self) -> Result<Option<Frame>, Broken> {
        let mut opening = [0; OPENING_OCTETS];
        match self.from.read_exact(&mut opening).await {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        };
        let opening = Opening::decode(&opening, MESSAGE_OCTETS_MAX)?;
        let mut fields = [0; FIELDS_OCTETS_MAX];
        let fields = fields.get_mut(..opening.fields()).unwrap_or_default();
        in_time(self.from.read_exact(fields)).await?;
        Ok(Some(opening.frame(fields, MESSAGE_OCTETS_MAX)?))
    }

    async fn octets(&mut self, count: usize) -> Result<Vec<u8>, Broken> {
        let mut octets = vec![0; count];
        in_time(self.from.read_exact(&mut octets)).await?;
        Ok(octets)
    }

    /// Reads the worker's facts about a message; `None` without gathered facts.
    async fn gathered(&mut self, prefix: &Prefix) -> Result<Option<Gathered>, Broken> {
        let facts = self.octets(prefix.facts).await?;
        let results = self.octets(prefix.results).await?;
        if facts.is_empty() {
            return Ok(None);
        }
        let facts = Facts::decode(&facts).map_err(Broken::Facts)?;
        Ok(Some(Gathered { facts, results }))
    }

    /// Waits for a place among what is being stored, written and answered.
    async fn place(&self) -> Result<OwnedSemaphorePermit, Broken> {
        let place = Arc::clone(&self.storing).acquire_owned().await;
        place.map_err(|closed| Broken::Connection(io::Error::other(closed)))
    }

    /// Reserves memory for octets of a worker; `None` where `limits.body_memory_max` leaves no room.
    fn memory(&self, octets: usize) -> Option<Share> {
        let mut held = self.group.host.process.memory.share(None);
        held.keep(octets, true).then_some(held)
    }

    async fn part(&mut self, part: Part) -> Result<(), Broken> {
        let place = self.place().await?;
        let held = match self.parts.may_come(&part) {
            true => self.memory(part.octets),
            false => None,
        };
        let Some(held) = held else {
            self.parts.refuse(part.number, place);
            return skip(&mut self.from, part.octets).await;
        };
        let written = Written {
            octets: self.octets(part.octets).await?,
            held,
            place,
        };
        self.parts.write(&part, written);
        Ok(())
    }

    async fn message(&mut self, prefix: Prefix) -> Result<(), Broken> {
        let place = self.place().await?;
        let settings = self.group.host.process.settings();
        let ahead = usize::try_from(prefix.ahead).unwrap_or(usize::MAX);
        let filed = match ahead {
            0 => None,
            _ => self.parts.finish(prefix.number, prefix.ahead),
        };
        let behind = prefix.before_body().saturating_add(prefix.body);
        let body = prefix.body.saturating_add(ahead);
        // A worker that began before the limit was lowered has the limit of then.
        let is_too_big = body > settings.limits.message_size_max.as_usize();
        let is_whole = ahead == 0 || filed.is_some();
        let held = match is_whole && !is_too_big {
            true => self.memory(behind.saturating_add(ahead)),
            false => None,
        };
        let Some(held) = held else {
            let refusal = match is_too_big {
                true => Refusal::MessageTooBig,
                false => Refusal::StorageFull,
            };
            let refused = answer(prefix.number, Err(refusal));
            let _ = self.answers.send((refused, Some(place)));
            return skip(&mut self.from, behind).await;
        };
        let gathered = self.gathered(&prefix).await?;
        let head = self.octets(prefix.head).await?;
        let body = self.octets(prefix.body).await?;
        let mut message = Message::decode(&head, body).map_err(Broken::Head)?;
        message.aside = prefix.ahead;
        // Nobody logs in at port 25, and mail of accounts is signed.
        if message.session.account.is_some() || message.session.protocol.auth {
            return Err(Broken::Account);
        }
        let client = message.session.address.ip();
        let may_relay = prefix.may_relay && settings.relay.contains(client);
        let judge = self.group.host.process.judge();
        if gathered.is_none() && !may_relay && judge.is_some() {
            // A worker with older settings, whose successor gathers facts.
            let refusal = Refusal::Site {
                permanent: false,
                text: "settings have changed, try again".to_owned(),
            };
            let refused = answer(prefix.number, Err(refusal));
            let _ = self.answers.send((refused, Some(place)));
            return Ok(());
        }
        let intake = self.intakes.intake(Service::Smtp);
        let answers = self.answers.clone();
        spawn_local(async move {
            let stored = match join(&mut message, filed).await {
                Ok(()) => {
                    let taken = intake.take(may_relay, prefix.spf, message, gathered);
                    taken.await
                }
                Err(refusal) => Err(refusal),
            };
            // If the worker has gone, the client gets no reply and sends the message again.
            let _ = answers.send((answer(prefix.number, stored), Some(place)));
            drop(held);
        });
        Ok(())
    }
}

/// Makes a message whole whose first octets are in a file.
async fn join(
    message: &mut Message,
    filed: Option<oneshot::Receiver<Filed>>,
) -> Result<(), Refusal> {
    let Some(filed) = filed else {
        return Ok(());
    };
    // The file may have made room for others.
    let mut filed = filed.await.map_err(|_| Refusal::StorageFull)?;
    filed.join(message).await.map_err(|error| {
        tracing::warn!(%error, "received message refused: its file cannot be read");
        Refusal::StorageFull
    })
}

/// Waits for the rest of a frame. A frame takes memory, so a worker may pause amid a frame for [`FRAME_PATIENCE`] at most.
async fn in_time<T>(read: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    tokio::time::timeout(FRAME_PATIENCE, read).await?
}

/// Reads octets for which there is no room.
async fn skip(from: &mut BufReader<Reading<UnixStream>>, octets: usize) -> Result<(), Broken> {
    let wanted = u64::try_from(octets).unwrap_or(u64::MAX);
    let skipped = in_time(tokio::io::copy(
        &mut from.take(wanted),
        &mut tokio::io::sink(),
    ))
    .await?;
    match skipped == wanted {
        true => Ok(()),
        false => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
    }
}

fn answer(number: u64, stored: Result<String, Refusal>) -> Answer {
    let refusal = match stored {
        Ok(id) => return Answer::Stored { number, id },
        Err(refusal) => refusal,
    };
    match (refusal.number(), refusal) {
        (_, Refusal::Site { permanent, text }) => Answer::Site {
            number,
            permanent,
            text,
        },
        (Some(refusal), _) => Answer::Refused { number, refusal },
        (None, other) => Answer::Site {
            number,
            permanent: other.is_permanent(),
            text: other.to_string(),
        },
    }
}

/// Looks whether messages are taken, for as long as the gateway lives.
async fn follow_state(group: Rc<Group>, state: watch::Sender<Option<u8>>) {
    loop {
        let closed = throttle::closed(&group, false);
        let now = closed.and_then(|closed| closed.refusal().number());
        state.send_if_modified(|known| std::mem::replace(known, now) != now);
        tokio::time::sleep(STATE_INTERVAL).await;
    }
}

/// Tells a worker whether messages are taken: at once, and whenever that changes.
async fn tell_state(mut states: watch::Receiver<Option<u8>>, answers: &UnboundedSender<Said>) {
    loop {
        let state = *states.borrow_and_update();
        if answers.send((Answer::State(state), None)).is_err() {
            return;
        }
        if states.changed().await.is_err() {
            return;
        }
    }
}

/// Sends answers, all waiting answers in a single write.
async fn send(mut to: Writing<UnixStream>, mut answers: UnboundedReceiver<Said>) {
    let mut octets = Vec::new();
    while let Some((answer, place)) = answers.recv().await {
        octets.clear();
        answer.encode(&mut octets);
        let mut places = vec![place];
        while let Ok((answer, place)) = answers.try_recv() {
            answer.encode(&mut octets);
            places.push(place);
        }
        let written = tokio::time::timeout(UNREAD_PATIENCE, to.write_all(&octets)).await;
        if !matches!(written, Ok(Ok(()))) {
            return;
        }
    }
}
