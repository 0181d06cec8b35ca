//! The sources: a process with MTAs that transfer message after message over their associations.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use tokio::sync::watch;
use vere_associations::{Names, Next, OpenAssociation, Peer, initiate, introduction};

use super::child::{self, Tally};
use super::message::{Template, content, now};
use super::{names, raw};

/// The pause after an association that was refused or broke off.
const AGAIN: Duration = Duration::from_millis(50);

/// Octets of a transfer of the peer: a source expects reports at most.
const REPORT_MAX: u64 = 1 << 20;

/// Transfers messages over associations of X.400, until the benchmark ends the process.
#[derive(Debug, Clone, Args)]
pub struct SourceArgs {
    /// The address of the benchmark.
    #[arg(long, value_name = "ADDRESS")]
    control: SocketAddr,
    /// The address of the MTA.
    #[arg(long, value_name = "ADDRESS")]
    to: SocketAddr,
    /// Sending MTAs.
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    sources: usize,
    /// Associations of each MTA.
    #[arg(long, value_name = "COUNT", default_value_t = 4)]
    associations: usize,
    /// Receiving MTAs, which get messages in turns.
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    sinks: usize,
    /// Octets of a content.
    #[arg(long, value_name = "OCTETS", default_value_t = 1_000)]
    size: usize,
    /// Send so many messages.
    #[arg(long, value_name = "COUNT", default_value_t = u64::MAX)]
    count: u64,
    /// Number messages from here on.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    first: u64,
    /// Write packets of the transport over one connection, without associations.
    #[arg(long)]
    raw: bool,
}

/// Runs the sources until the benchmark ends the connection.
///
/// # Errors
///
/// The benchmark cannot be reached.
pub fn run(args: &SourceArgs) -> io::Result<()> {
    child::run(args.control, |tally, going| {
        begin(args.clone(), tally, going)
    })
}

async fn begin(
    args: SourceArgs,
    tally: Arc<Tally>,
    going: watch::Receiver<bool>,
) -> io::Result<()> {
    let content = content(args.size);
    if args.raw {
        tokio::spawn(raw::send(args.to, content, tally, going));
        return Ok(());
    }
    let tickets = Arc::new(Tickets {
        next: AtomicU64::new(args.first),
        end: args.first.saturating_add(args.count),
    });
    for source in 1..=args.sources {
        let source = Source::new(&names::source(source), &args, &content)?;
        for _ in 0..args.associations {
            let line = Line {
                source: Arc::clone(&source),
                tickets: Arc::clone(&tickets),
                tally: Arc::clone(&tally),
                going: going.clone(),
            };
            tokio::spawn(line.run());
        }
    }
    Ok(())
}

/// The numbers of messages, each once.
#[derive(Debug)]
struct Tickets {
    next: AtomicU64,
    end: u64,
}

impl Tickets {
    fn draw(&self) -> Option<u64> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        (number < self.end).then_some(number)
    }
}

/// A sending MTA.
#[derive(Debug)]
struct Source {
    peer: Peer,
    names: Names,
    /// Messages to each sink.
    templates: Vec<Template>,
    octets: u64,
}

impl Source {
    fn new(name: &str, args: &SourceArgs, content: &Bytes) -> io::Result<Arc<Self>> {
        let now = now();
        let template = |sink| Template::new(name, &names::sink(sink), content.clone(), now);
        let templates = (1..=args.sinks).map(template).collect::<Result<_, _>>();
        let bind = introduction(name, names::PASSWORD.as_bytes()).map_err(io::Error::other)?;
        Ok(Arc::new(Self {
            peer: Peer::new(vec![args.to], bind),
            names: Names::new(name),
            templates: templates.map_err(io::Error::other)?,
            octets: u64::try_from(content.len()).unwrap_or(u64::MAX),
        }))
    }

    fn message(&self, number: u64) -> Vec<Bytes> {
        let count = u64::try_from(self.templates.len()).unwrap_or(1).max(1);
        let place = usize::try_from(number % count).unwrap_or_default();
        let template = self.templates.get(place);
        template.map_or_else(Vec::new, |template| template.message(number))
    }
}

/// One association, opened again and again.
#[derive(Debug)]
struct Line {
    source: Arc<Source>,
    tickets: Arc<Tickets>,
    tally: Arc<Tally>,
    going: watch::Receiver<bool>,
}

impl Line {
    /// Transfers until no numbers are left; the last association stays open.
    async fn run(mut self) {
        let mut left = None;
        loop {
            let opened = initiate(&self.source.peer, self.source.names.next()).await;
            if let Ok((open, _)) = opened
                && self.transfer(open, &mut left).await.is_none()
            {
                return;
            }
            self.tally.trouble();
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Transfers over an association until it ends: then the message that was not confirmed is in `left`. `None`: there
    /// is nothing more to send.
    async fn transfer(&mut self, mut open: OpenAssociation, left: &mut Option<u64>) -> Option<()> {
        loop {
            if self.going.wait_for(|going| *going).await.is_err() {
                return None;
            }
            let number = match left.take() {
                Some(number) => number,
                None => match self.tickets.draw() {
                    Some(number) => number,
                    None => return idle(open).await,
                },
            };
            if !open
                .transfer(&self.source.message(number))
                .await
                .is_transferred()
            {
                *left = Some(number);
                return Some(());
            }
            self.tally.message(self.source.octets);
            if open.turn_wanted().is_some() && !hear(&mut open).await {
                return Some(());
            }
        }
    }
}

/// Keeps an association until its end.
async fn idle(mut open: OpenAssociation) -> Option<()> {
    loop {
        match open.next().await {
            Next::Ended(_) => return None,
            Next::TurnWanted(_) if !hear(&mut open).await => return None,
            _ => {}
        }
    }
}

/// Gives the turn, and receives reports until this side has it again. False: the association has ended.
async fn hear(open: &mut OpenAssociation) -> bool {
    if open.give_turn().await.is_err() {
        return false;
    }
    loop {
        match open.next().await {
            Next::Turn => return true,
            Next::Ended(_) => return false,
            Next::Incoming(_) => {
                let received = open.collect(Default::default(), REPORT_MAX).await;
                if received.is_err() || open.confirm().await.is_err() {
                    return false;
                }
            }
            // The peer has no more to send.
            Next::Idle => {
                let _ = open.please_turn(0).await;
            }
            _ => {}
        }
    }
}
