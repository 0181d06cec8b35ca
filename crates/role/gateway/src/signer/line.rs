//! One connection to the signer: requests leave at once, and the number of an answer identifies its request.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_local;
use vere_signwire::{Answer, Frame, Request};

/// Maximum of requests that wait for the connection.
const QUEUE_MAX: usize = 1_024;
/// How long to wait for an absent signer: the supervisor restarts the signer within this time.
const CONNECT_PATIENCE: Duration = Duration::from_secs(3);
/// Pause between two attempts to connect.
const CONNECT_PAUSE: Duration = Duration::from_millis(50);
/// Longest wait for an answer.
const ANSWER_PATIENCE: Duration = Duration::from_secs(5);

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoAnswer {
    /// The connection ended before the answer: the request may be sent again.
    Lost,
    /// The answer takes too long, or too many requests wait already.
    Late,
}

/// A request under way.
struct Asked {
    number: u64,
    frame: Vec<u8>,
    answer: oneshot::Sender<Answer>,
}

type Waiting = Rc<RefCell<HashMap<u64, oneshot::Sender<Answer>>>>;

/// A connection, opened at its first request.
#[derive(Debug)]
pub(super) struct Line {
    queue: mpsc::Sender<Asked>,
    next: Cell<u64>,
}

impl Line {
    pub(super) fn new(socket: &Path) -> Self {
        let (queue, asked) = mpsc::channel(QUEUE_MAX);
        spawn_local(drive(socket.to_owned(), asked));
        Self {
            queue,
            next: Cell::new(1),
        }
    }

    /// Sends a request at once; the returned future waits for the answer.
    pub(super) fn ask(
        &self,
        request: &Request<'_>,
    ) -> impl Future<Output = Result<Answer, NoAnswer>> + use<> {
        let number = self.next.get();
        self.next.set(number.wrapping_add(1));
        let mut frame = Vec::new();
        request.encode(number, &mut frame);
        let (answer, answered) = oneshot::channel();
        let sent = self.queue.try_send(Asked {
            number,
            frame,
            answer,
        });
        async move {
            sent.map_err(|_| NoAnswer::Late)?;
            match tokio::time::timeout(ANSWER_PATIENCE, answered).await {
                Ok(Ok(answer)) => Ok(answer),
                Ok(Err(_)) => Err(NoAnswer::Lost),
                Err(_) => Err(NoAnswer::Late),
            }
        }
    }
}

/// Connects at the first request, and again after an absence of the signer. A request that was under way during the
/// absence ends by its sender's timeout.
async fn drive(socket: PathBuf, mut asked: mpsc::Receiver<Asked>) {
    while let Some(first) = asked.recv().await {
        match connect(&socket).await {
            Ok(stream) => {
                if let Err(error) = converse(stream, first, &mut asked).await {
                    tracing::warn!(%error, "connection to the signer lost");
                }
            }
            Err(error) => {
                tracing::error!(socket = %socket.display(), %error, "the signer does not answer");
            }
        }
    }
}

async fn connect(socket: &Path) -> io::Result<UnixStream> {
    let began = tokio::time::Instant::now();
    loop {
        match UnixStream::connect(socket).await {
            Err(_) if began.elapsed() < CONNECT_PATIENCE => {
                tokio::time::sleep(CONNECT_PAUSE).await;
            }
            done => return done,
        }
    }
}

async fn converse(
    stream: UnixStream,
    first: Asked,
    asked: &mut mpsc::Receiver<Asked>,
) -> io::Result<()> {
    let (from, mut to) = stream.into_split();
    let waiting = Waiting::default();
    let listening = listen(from, Rc::clone(&waiting));
    let writing = async {
        let mut next = Some(first);
        while let Some(Asked {
            number,
            frame,
            answer,
        }) = next
        {
            if waiting.borrow().len() >= QUEUE_MAX {
                // Requests whose senders no longer wait free their places.
                waiting.borrow_mut().retain(|_, answer| !answer.is_closed());
            }
            waiting.borrow_mut().insert(number, answer);
            to.write_all(&frame).await?;
            next = asked.recv().await;
        }
        Ok(())
    };
    // The end of either half ends both; the drop of `waiting` informs all waiting senders.
    tokio::select! {
        ended = listening => ended,
        ended = writing => ended,
    }
}

async fn listen(mut from: OwnedReadHalf, waiting: Waiting) -> io::Result<()> {
    let wrong = |error: vere_signwire::WireError| io::Error::new(io::ErrorKind::InvalidData, error);
    let mut unread = Vec::new();
    loop {
        if from.read_buf(&mut unread).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut taken = 0;
        while let Some(frame) = Frame::read(&unread[taken..]).map_err(wrong)? {
            let answer = Answer::decode(&frame).map_err(wrong)?;
            if let Some(asker) = waiting.borrow_mut().remove(&frame.number) {
                // The send fails if the sender's timeout passed.
                let _ = asker.send(answer);
            }
            taken += frame.octets;
        }
        unread.drain(..taken);
    }
}
