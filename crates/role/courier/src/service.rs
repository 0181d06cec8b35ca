//! The connection to the gateway.

use std::collections::HashMap;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::BufReader;
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;
use tokio::sync::mpsc::{Sender, channel};
use tokio::task::{Id, JoinError, JoinSet};
use vere_handoff::delivery::{Answer, Message, Request, request_length};
use vere_outbound::{Outbound, OutboundMetrics};
use vere_process::frames;
use vere_queue::Envelope;

use super::answers::Answers;
use super::lane::{self, Command, Lane};

/// Octets that are read from the gateway at once.
const READ_OCTETS: usize = 64 * 1024;
/// Commands that may wait for a lane: the next connection behind a goodbye.
const COMMANDS_MAX: usize = 4;

/// Serves the gateway until the connection ends. Attempts under way end with the connection: the gateway counts the attempts as lost.
///
/// # Errors
/// When the connection breaks, the gateway breaks the protocol, or reads no answers.
pub(crate) async fn serve(
    stream: UnixStream,
    outbound: &Rc<Outbound>,
    metrics: &OutboundMetrics,
) -> io::Result<()> {
    let (read, write) = stream.into_split();
    let answers = Rc::new(Answers::new(metrics));
    let mut lanes = Lanes {
        outbound: Rc::clone(outbound),
        answers: Rc::clone(&answers),
        commands: HashMap::new(),
        tasks: JoinSet::new(),
        numbers: HashMap::new(),
    };
    tokio::select! {
        ended = lanes.take(read) => ended,
        ended = answers.write_to(write) => ended,
        () = answers.beat() => Ok(()),
    }
}

/// The lanes by their numbers.
struct Lanes {
    outbound: Rc<Outbound>,
    answers: Rc<Answers>,
    commands: HashMap<u64, Sender<Command>>,
    tasks: JoinSet<()>,
    numbers: HashMap<Id, u64>,
}

impl Lanes {
    async fn take(&mut self, read: OwnedReadHalf) -> io::Result<()> {
        let mut from = BufReader::with_capacity(READ_OCTETS, read);
        loop {
            let frame = self.next_frame(&mut from).await?;
            let Some(frame) = frame else {
                return Ok(());
            };
            let frame = Bytes::from(frame);
            match Request::decode(&frame).map_err(invalid)? {
                Request::Find {
                    number,
                    destination,
                } => self.begin(number, destination)?,
                Request::Open { number } => self.give(number, Command::Open)?,
                Request::Quit { number } => self.give(number, Command::Quit)?,
                Request::Send(message) => {
                    let number = message.number;
                    self.give(number, send(&message, &frame)?)?;
                }
                Request::Forget { number } => {
                    self.commands.remove(&number);
                }
            }
        }
    }

    /// Reads the next request; lanes may end meanwhile.
    async fn next_frame(
        &mut self,
        from: &mut BufReader<OwnedReadHalf>,
    ) -> io::Result<Option<Vec<u8>>> {
        let frame = frames::read(from, request_length);
        tokio::pin!(frame);
        loop {
            tokio::select! {
                biased;
                frame = &mut frame => return frame,
                Some(ended) = self.tasks.join_next_with_id() => {
                    let id = ended.as_ref().map_or_else(JoinError::id, |(id, ())| *id);
                    let number = self.numbers.remove(&id);
                    if let (Err(error), Some(number)) = (ended, number) {
                        tracing::error!(%error, "lane failed");
                        self.answers.say(&Answer::Failed { number });
                    }
                }
            }
        }
    }

    fn begin(&mut self, number: u64, destination: &str) -> io::Result<()> {
        let destination = destination.parse().map_err(invalid)?;
        let (commands, waiting) = channel(COMMANDS_MAX);
        if self.commands.insert(number, commands).is_some() {
            return Err(invalid("expected a new number; found one in use"));
        }
        let lane = Lane {
            number,
            outbound: Rc::clone(&self.outbound),
            answers: Rc::clone(&self.answers),
            commands: waiting,
        };
        let task = self.tasks.spawn_local(lane::run(lane, destination));
        self.numbers.insert(task.id(), number);
        Ok(())
    }

    fn give(&self, number: u64, command: Command) -> io::Result<()> {
        let Some(commands) = self.commands.get(&number) else {
            return Err(invalid("expected a number in use; found another"));
        };
        match commands.try_send(command) {
            Err(error) if commands.is_closed() => {
                drop(error);
                self.answers.say(&Answer::Failed { number });
                Ok(())
            }
            Err(_) => Err(invalid("expected one request for a number; found several")),
            Ok(()) => Ok(()),
        }
    }
}

/// Makes a command of a message. The text shares the memory of the frame.
fn send(message: &Message<'_>, frame: &Bytes) -> io::Result<Command> {
    Ok(Command::Send {
        until: Duration::from_millis(message.until),
        envelope: Box::new(Envelope::decode(message.envelope).map_err(invalid)?),
        body: frame.slice_ref(message.body),
    })
}

fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
