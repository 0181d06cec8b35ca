//! Messages that workers have received at port 25: the gateway's side of `vere_handoff::message`.
//!
//! A worker is not trusted: a frame that breaks the protocol ends the connection, and what a worker says of a client is
//! no more than what a client of port 25 could say of itself, except that the client's network may relay.

use std::fmt;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixListener;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Semaphore, watch};
use tokio::task::spawn_local;
use vere_handoff::HandoffError;
use vere_handoff::message::{Answer, PREFIX_OCTETS, Prefix};
use vere_process::accept;
use vere_smtp::refusal::Refusal;
use vere_smtp::server::{HandoverError, Message};

use super::group::Group;
use super::intake::{GatewayIntakes, Intakes as _};
use super::service::Service;
use super::throttle;

/// Messages of a worker that are being stored at once; the next frame is read when one of them is stored.
const STORING_MAX: usize = 256;
/// Octets that are read from a worker at once.
const READ_OCTETS: usize = 64 * 1024;
/// How often the workers are told whether messages are taken, if that has changed.
const STATE_INTERVAL: Duration = Duration::from_millis(50);
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
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connection(error) => error.fmt(f),
            Self::Frame(error) => error.fmt(f),
            Self::Head(error) => error.fmt(f),
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
    let intakes = Rc::new(GatewayIntakes::new(Rc::clone(&group)));
    let service = Service::Smtp.name();
    accept::accept(listener, service, stop, |stream| {
        let (read, write) = stream.into_split();
        let (answers, waiting) = unbounded_channel();
        spawn_local(tell_state(Rc::clone(&group), answers.clone()));
        spawn_local(send(write, waiting));
        let (group, intakes) = (Rc::clone(&group), Rc::clone(&intakes));
        async move {
            if let Err(broken) = take(&group, &intakes, read, &answers).await {
                tracing::warn!(%broken, "connection of a worker ended");
            }
        }
    })
    .await;
}

/// Takes messages until the worker closes the connection.
async fn take(
    group: &Rc<Group>,
    intakes: &Rc<GatewayIntakes>,
    from: OwnedReadHalf,
    answers: &UnboundedSender<Answer>,
) -> Result<(), Broken> {
    // A read has several short messages.
    let mut from = BufReader::with_capacity(READ_OCTETS, from);
    let storing = Arc::new(Semaphore::new(STORING_MAX));
    loop {
        let mut prefix = [0; PREFIX_OCTETS];
        match from.read_exact(&mut prefix).await {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            read => read?,
        };
        let settings = group.host.process.settings();
        let prefix = Prefix::decode(&prefix, settings.limits.message_size_max.as_usize())?;
        let mut held = group.host.process.memory.share(None);
        let octets = prefix.head.saturating_add(prefix.body);
        if !held.keep(octets, true) {
            skip(&mut from, octets).await?;
            let _ = answers.send(answer(prefix.number, Err(Refusal::StorageFull)));
            continue;
        }
        let mut head = vec![0; prefix.head];
        from.read_exact(&mut head).await?;
        let mut body = vec![0; prefix.body];
        from.read_exact(&mut body).await?;
        let message = Message::decode(&head, body).map_err(Broken::Head)?;
        // Never closed.
        let Ok(place) = Arc::clone(&storing).acquire_owned().await else {
            return Ok(());
        };
        let intake = intakes.intake(Service::Smtp);
        let answers = answers.clone();
        spawn_local(async move {
            let stored = intake.take(prefix.may_relay, message).await;
            // The worker may have gone; then its client hears nothing, and sends the message again.
            let _ = answers.send(answer(prefix.number, stored));
            drop((place, held));
        });
    }
}

/// Reads octets for which there is no room.
async fn skip(from: &mut BufReader<OwnedReadHalf>, octets: usize) -> Result<(), Broken> {
    let wanted = u64::try_from(octets).unwrap_or(u64::MAX);
    let skipped = tokio::io::copy(&mut from.take(wanted), &mut tokio::io::sink()).await?;
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

/// Tells a worker whether messages are taken: at once, and whenever that changes.
async fn tell_state(group: Rc<Group>, answers: UnboundedSender<Answer>) {
    let mut told = None;
    loop {
        let closed = throttle::closed(&group, false);
        let now = closed.and_then(|closed| closed.refusal().number());
        if told != Some(now) {
            told = Some(now);
            if answers.send(Answer::State(now)).is_err() {
                return;
            }
        }
        tokio::select! {
            () = answers.closed() => return,
            () = tokio::time::sleep(STATE_INTERVAL) => {}
        }
    }
}

/// Sends answers, those that wait at once in one write.
async fn send(mut to: OwnedWriteHalf, mut answers: UnboundedReceiver<Answer>) {
    let mut octets = Vec::new();
    while let Some(answer) = answers.recv().await {
        octets.clear();
        answer.encode(&mut octets);
        while let Ok(answer) = answers.try_recv() {
            answer.encode(&mut octets);
        }
        let written = tokio::time::timeout(UNREAD_PATIENCE, to.write_all(&octets)).await;
        if !matches!(written, Ok(Ok(()))) {
            // The channel closes, and the connection is read no further than its next answer.
            return;
        }
    }
}
