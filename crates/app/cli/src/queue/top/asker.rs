//! Asks the gateway on threads of its own: a single sample at a time, and the orders of the operator beside the
//! sample.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use super::screen::{Deed, Verb, Wanted};
use vere_control::queues::parse;
use vere_control::{
    Acted, Action, AskError, OrderChange, OrderRow, Request, Selection, TopSample, ask, ask_for,
};
use vere_process::wording::messages;

/// How long a retry may take in the gateway, which goes on after the command's end.
const RETRY_PATIENCE: Duration = Duration::from_secs(3600);

/// An answer of the gateway.
#[derive(Debug)]
pub(super) enum News {
    Sample(Result<Box<TopSample>, AskError>),
    /// The outcome of an order.
    Done(String),
}

/// Asks the gateway, and keeps the answers until the display takes the answers.
#[derive(Debug)]
pub(super) struct Asker {
    socket: PathBuf,
    sender: Sender<News>,
    receiver: Receiver<News>,
    looking: bool,
}

impl Asker {
    pub(super) fn new(socket: &Path) -> Self {
        let (sender, receiver) = mpsc::channel();
        Self {
            socket: socket.to_owned(),
            sender,
            receiver,
            looking: false,
        }
    }

    /// Asks for a sample, unless a request is under way.
    pub(super) fn look(&mut self, wanted: Wanted) -> bool {
        if self.looking {
            return false;
        }
        self.looking = true;
        let (socket, sender) = (self.socket.clone(), self.sender.clone());
        thread::spawn(move || {
            // The receiver is gone at the end of the program.
            let _ = sender.send(News::Sample(sample(&socket, &wanted).map(Box::new)));
        });
        true
    }

    /// Carries an order out.
    pub(super) fn act(&self, deed: Deed) {
        let (socket, sender) = (self.socket.clone(), self.sender.clone());
        thread::spawn(move || {
            let said = act(&socket, &deed).unwrap_or_else(|error| error.to_string());
            let _ = sender.send(News::Done(said));
        });
    }

    /// The next available answer.
    pub(super) fn news(&mut self) -> Option<News> {
        let news = self.receiver.try_recv().ok()?;
        self.looking &= !matches!(news, News::Sample(_));
        Some(news)
    }
}

/// Takes a sample.
///
/// # Errors
/// When the gateway does not answer.
pub(super) fn sample(socket: &Path, wanted: &Wanted) -> Result<TopSample, AskError> {
    let request = Request::QueueTop {
        order: wanted.order,
        filter: wanted.filter.clone(),
        limit: wanted.limit,
    };
    parse(ask(socket, &request)?)
}

fn act(socket: &Path, deed: &Deed) -> Result<String, AskError> {
    let destination = deed.destination.clone();
    let change = match deed.verb {
        Verb::Hold => OrderChange::Hold,
        Verb::Release => OrderChange::Release,
        Verb::Retry => {
            let request = Request::QueueAct {
                destination: Some(destination),
                selection: Selection::default(),
                action: Action::Retry,
                report: false,
            };
            let acted: Acted = parse(ask_for(socket, &request, RETRY_PATIENCE)?)?;
            return Ok(match acted.trouble {
                Some(trouble) => format!("{} tried, then: {trouble}", messages(acted.messages)),
                None => format!(
                    "{}: {} tried again",
                    deed.destination,
                    messages(acted.messages)
                ),
            });
        }
    };
    let request = Request::QueueOrder {
        destination,
        change,
        seconds: None,
        ahead: false,
    };
    let row: OrderRow = parse(ask(socket, &request)?)?;
    Ok(match row.held_until {
        Some(until) => format!("{}: held until {until}", row.destination),
        None => format!("{}: released", row.destination),
    })
}
