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
use vere_queue::{Destination, Envelope};

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

/// The lanes by number.
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
                } => match destination.parse() {
                    Ok(destination) => self.begin(number, destination)?,
                    Err(error) => self.refuse(number, &error),
                },
                Request::Open { number } => self.give(number, Command::Open)?,
                Request::Quit { number } => self.give(number, Command::Quit)?,
                Request::Send(message) => {
                    let number = message.number;
                    match send(&message, &frame) {
                        Ok(command) => self.give(number, command)?,
                        Err(error) => self.refuse(number, &error),
                    }
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

    fn begin(&mut self, number: u64, destination: Destination) -> io::Result<()> {
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

    /// Gives a number up whose request means nothing here. The other numbers go on.
    fn refuse(&mut self, number: u64, error: &dyn std::error::Error) {
        tracing::error!(%error, "destination or envelope of the gateway unreadable");
        self.commands.remove(&number);
        self.answers.say(&Answer::Failed { number });
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

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;
    use tokio::task::LocalSet;
    use vere_handoff::delivery::answer_length;
    use vere_settings::Settings;

    use super::*;

    fn outbound() -> Rc<Outbound> {
        let text = "version = 1\nhostname = \"mx.example.org\"\n[smtp]\nlisten = [\"127.0.0.1:25\"]\n[resolver]\nservers = [\"127.0.0.1:1\"]\n";
        let settings = Settings::parse(text, "vere.toml").unwrap();
        let resolver = vere_outbound::resolver(&settings).unwrap();
        let metrics = OutboundMetrics::for_another();
        Rc::new(Outbound::new(&settings.into(), resolver, metrics, None).unwrap())
    }

    fn message(number: u64, envelope: &[u8]) -> Request<'_> {
        Request::Send(Message {
            number,
            until: u64::MAX,
            envelope,
            body: b"text",
        })
    }

    async fn next_number(from: &mut UnixStream) -> Answer {
        loop {
            let frame = frames::read(from, answer_length).await.unwrap();
            let answer = Answer::decode(&frame.expect("an open connection")).unwrap();
            if answer.number().is_some() {
                return answer;
            }
        }
    }

    #[tokio::test]
    async fn an_unreadable_request_fails_its_number_alone() {
        let (near, mut far) = UnixStream::pair().unwrap();
        let outbound = outbound();
        let metrics = OutboundMetrics::for_another();
        let gateway = async {
            let mut octets = Vec::new();
            let find = |number, destination| Request::Find {
                number,
                destination,
            };
            find(1, "").encode(&mut octets);
            find(2, "relay:127.0.0.1:1").encode(&mut octets);
            message(2, b"no envelope").encode(&mut octets);
            find(3, "").encode(&mut octets);
            far.write_all(&octets).await.unwrap();
            for number in 1..=3 {
                assert_eq!(next_number(&mut far).await, Answer::Failed { number });
            }
        };
        let both = async {
            tokio::select! {
                () = gateway => {}
                ended = serve(near, &outbound, &metrics) => panic!("{ended:?}"),
            }
        };
        LocalSet::new().run_until(both).await;
    }
}
