//! Messages for the gateway.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::rc::Rc;

use tokio::io::{AsyncReadExt as _, BufReader};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{oneshot, watch};
use tokio::task::spawn_local;
use vere_handoff::message::{
    Answer, FACTS_OCTETS_MAX, Frame as Beginning, LENGTH_OCTETS, Part, Prefix, RESULTS_OCTETS_MAX,
    answer_length,
};
use vere_handoff::question::SpfResults;
use vere_judging::Gathered;
use vere_net::quiet::{Reading, Writing};
use vere_smtp::refusal::Refusal;
use vere_smtp::server::Message;

use super::ahead::Ahead;

/// Texts up to this size are written with what waits before and behind them.
const JOINED_MAX: usize = 64 * 1024;

/// The connection to the gateway.
#[derive(Debug)]
pub(crate) struct Gateway {
    messages: UnboundedSender<Frame>,
    /// Parts of texts, and messages to be forgotten: a whole message does not wait for them.
    parts: UnboundedSender<Frame>,
    state: Rc<State>,
    next: Cell<u64>,
    gone: watch::Receiver<bool>,
}

#[derive(Debug, Default)]
struct State {
    waiting: RefCell<HashMap<u64, oneshot::Sender<Result<String, Refusal>>>>,
    /// Messages of which parts are in files of the gateway.
    ahead: RefCell<HashMap<u64, Rc<Ahead>>>,
    /// The refusal of every message; the gateway says so when it is closed.
    closed: RefCell<Option<Refusal>>,
}

/// A message on the way.
#[derive(Debug)]
struct Frame {
    head: Vec<u8>,
    body: Vec<u8>,
}

/// What the gateway has to know beside a message.
#[derive(Debug)]
pub(crate) struct Beside {
    /// Whether the client may send to any domain.
    pub(crate) may_relay: bool,
    /// The results of SPF for the sender.
    pub(crate) spf: Option<SpfResults>,
    /// What is known for the judgement of the message; `None` where it is not judged.
    pub(crate) gathered: Option<Gathered>,
    /// The number of the message, if parts have gone ahead.
    pub(crate) number: Option<u64>,
}

impl Gateway {
    /// Speaks over a connection.
    pub(crate) fn new((read, write): (Reading<UnixStream>, Writing<UnixStream>)) -> Self {
        let (messages, waiting) = unbounded_channel();
        let (parts, later) = unbounded_channel();
        let (end, gone) = watch::channel(false);
        let state = Rc::<State>::default();
        // Until the gateway has said whether it takes messages, it takes none.
        state.closed.replace(Some(Refusal::ServiceUnavailable));
        spawn_local(send(write, waiting, later));
        let heard = Rc::clone(&state);
        spawn_local(async move {
            if let Err(error) = receive(read, &heard).await {
                tracing::info!(%error, "connection to the gateway lost");
            }
            heard.closed.replace(Some(Refusal::ServiceUnavailable));
            // Whoever waits hears that there is no answer.
            heard.waiting.borrow_mut().clear();
            for ahead in heard.ahead.borrow().values() {
                ahead.gone(false);
            }
            end.send_replace(true);
        });
        Self {
            messages,
            parts,
            state,
            next: Cell::new(0),
            gone,
        }
    }

    /// Whether the gateway takes messages.
    ///
    /// # Errors
    /// The refusal of every message.
    pub(crate) fn is_open(&self) -> Result<(), Refusal> {
        self.state.closed.borrow().clone().map_or(Ok(()), Err)
    }

    /// Waits until the connection is lost.
    pub(crate) fn gone(&self) -> impl Future<Output = ()> + use<> {
        let mut gone = self.gone.clone();
        async move {
            let _ = gone.wait_for(|gone| *gone).await;
        }
    }

    fn number(&self) -> u64 {
        let number = self.next.get();
        self.next.set(number.wrapping_add(1));
        number
    }

    /// Begins a message whose text goes ahead in parts, and returns its number.
    pub(crate) fn begin(&self, ahead: &Rc<Ahead>) -> u64 {
        if *self.gone.borrow() {
            ahead.gone(false);
        }
        let number = self.number();
        let mut all = self.state.ahead.borrow_mut();
        all.insert(number, Rc::clone(ahead));
        number
    }

    /// Sends a part of a text. The answer comes to the [`Ahead`] of the message.
    pub(crate) fn send_part(&self, (number, client): (u64, IpAddr), place: u64, octets: Vec<u8>) {
        let mut head = Vec::with_capacity(64);
        let part = Part {
            number,
            place,
            client,
            octets: octets.len(),
        };
        Beginning::Part(part).encode(&mut head);
        // The end of the connection is an answer too.
        let _ = self.parts.send(Frame { head, body: octets });
    }

    /// Drops the parts of a message that does not come, or has come.
    pub(crate) fn forget(&self, number: u64, has_come: bool) {
        self.state.ahead.borrow_mut().remove(&number);
        if !has_come {
            let (mut head, body) = (Vec::new(), Vec::new());
            Beginning::Forget { number }.encode(&mut head);
            let _ = self.parts.send(Frame { head, body });
        }
    }

    /// Gives the gateway a message, of which parts may have gone ahead, and returns the queue id once the message is safe.
    ///
    /// # Errors
    /// The gateway's refusal; [`Refusal::LocalError`] when the connection is lost before the answer.
    pub(crate) async fn store(&self, message: Message, beside: Beside) -> Result<String, Refusal> {
        let Beside {
            may_relay,
            spf,
            gathered,
            number,
        } = beside;
        let number = number.unwrap_or_else(|| self.number());
        let mut content = Vec::new();
        let (facts, results) = gathered.map_or_else(Default::default, |gathered| {
            (gathered.facts.encode(), gathered.results)
        });
        // The bounds of facts and results are below those of the frame; an octet more would end the connection.
        let is_short = facts.len() <= FACTS_OCTETS_MAX && results.len() <= RESULTS_OCTETS_MAX;
        let (facts, results) = match is_short {
            true => (facts, results),
            false => return Err(Refusal::LocalError),
        };
        content.extend_from_slice(&facts);
        content.extend_from_slice(&results);
        let before = content.len();
        message.encode_head(&mut content);
        let prefix = Prefix {
            number,
            may_relay,
            spf,
            ahead: message.aside,
            facts: facts.len(),
            results: results.len(),
            head: content.len().saturating_sub(before),
            body: message.body.len(),
        };
        let mut head = Vec::with_capacity(content.len().saturating_add(32));
        Beginning::Message(prefix).encode(&mut head);
        head.extend_from_slice(&content);
        let (answer, answered) = oneshot::channel();
        self.state.waiting.borrow_mut().insert(number, answer);
        let frame = Frame {
            head,
            body: message.body,
        };
        if self.messages.send(frame).is_err() {
            self.state.waiting.borrow_mut().remove(&number);
            return Err(Refusal::LocalError);
        }
        let answer = tokio::select! {
            // An answer that came before the end counts.
            biased;
            answer = answered => answer.ok(),
            // A message given to a connection that is lost has no answer.
            () = self.gone() => None,
        };
        self.state.waiting.borrow_mut().remove(&number);
        answer.unwrap_or(Err(Refusal::LocalError))
    }
}

/// Sends messages, short ones that wait at once in one write, and parts between them.
async fn send(
    mut to: Writing<UnixStream>,
    mut messages: UnboundedReceiver<Frame>,
    mut parts: UnboundedReceiver<Frame>,
) {
    let mut octets = Vec::new();
    loop {
        let frame = tokio::select! {
            biased;
            Some(frame) = messages.recv() => frame,
            Some(frame) = parts.recv() => frame,
            else => return,
        };
        octets.clear();
        let mut next = Some(frame);
        while let Some(Frame { head, body }) = next.take() {
            octets.extend_from_slice(&head);
            if octets.len().saturating_add(body.len()) > JOINED_MAX {
                if to.write_all(&octets).await.is_err() || to.write_all(&body).await.is_err() {
                    return;
                }
                octets = Vec::new();
                break;
            }
            octets.extend_from_slice(&body);
            next = messages.try_recv().ok();
        }
        if to.write_all(&octets).await.is_err() {
            return;
        }
        // Messages without end do not keep a part waiting for ever.
        if let Ok(Frame { head, body }) = parts.try_recv()
            && (to.write_all(&head).await.is_err() || to.write_all(&body).await.is_err())
        {
            return;
        }
    }
}

async fn receive(from: Reading<UnixStream>, state: &State) -> io::Result<()> {
    let mut from = BufReader::new(from);
    let wrong = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    let mut octets = Vec::new();
    loop {
        let mut length = [0; LENGTH_OCTETS];
        from.read_exact(&mut length).await?;
        octets.resize(answer_length(length).map_err(wrong)?, 0);
        from.read_exact(&mut octets).await?;
        let (number, answer) = match Answer::decode(&octets).map_err(wrong)? {
            Answer::State(refusal) => {
                let refusal = refusal.map(|number| {
                    Refusal::of_number(number).unwrap_or(Refusal::ServiceUnavailable)
                });
                state.closed.replace(refusal);
                continue;
            }
            Answer::Kept { number } => {
                if let Some(ahead) = state.ahead.borrow().get(&number) {
                    ahead.kept();
                }
                continue;
            }
            Answer::Gone { number, ends } => {
                if let Some(ahead) = state.ahead.borrow().get(&number) {
                    ahead.gone(ends);
                }
                continue;
            }
            Answer::Stored { number, id } => (number, Ok(id)),
            Answer::Refused { number, refusal } => {
                let refusal = Refusal::of_number(refusal).unwrap_or(Refusal::LocalError);
                (number, Err(refusal))
            }
            Answer::Site {
                number,
                permanent,
                text,
            } => (number, Err(Refusal::Site { permanent, text })),
        };
        if let Some(waits) = state.waiting.borrow_mut().remove(&number) {
            let _ = waits.send(answer);
        }
    }
}
