//! One connection: octets between the socket and the machine, and answers of the MTA.
//!
//! Reading and writing go on beside each other: a client may write a long frame while a delivery comes.

mod room;
mod waits;

use std::collections::HashMap;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::spawn_local;
use tokio::time::{Instant, sleep_until, timeout};
use vere_attach::{Bounds, Server, ServerEvent};
use vere_mta400::Source;
use vere_x400::Apdu;

use self::room::Room;
use self::waits::{Late, Waits};
use super::{Accepted, Desk, Unaccepted, compose};
use crate::attached::{Gateways, LineEnd, Order, Results};
use crate::budget::Share;

/// Octets of one read.
const READ_OCTETS: usize = 64 * 1024;
/// Tags without an answer, at most.
const TAGS_MAX: usize = 16;
/// Why a unit is refused that finds no memory in time.
const NO_ROOM: &str = "the memory for arriving units is short: submit again later";
/// For the reason why a connection is refused.
const FAREWELL: Duration = Duration::from_secs(5);

/// The answer of the MTA to a submission.
type Answer = (String, Result<Accepted, Unaccepted>);

/// A submission that is whole.
struct Submission {
    tag: String,
    unit: Apdu,
    share: Rc<Share>,
}

/// A connection.
pub(super) struct Connection<D> {
    desk: Rc<D>,
    gateways: Rc<Gateways>,
    stream: UnixStream,
    stopping: watch::Receiver<bool>,
    server: Server,
    /// The name of an attached gateway, and its deliveries.
    line: Option<(String, LineEnd)>,
    /// Deliveries without an answer.
    delivered: HashMap<String, oneshot::Sender<Results>>,
    answers: mpsc::UnboundedSender<Answer>,
    answered: mpsc::UnboundedReceiver<Answer>,
    /// Submissions without an answer.
    submitted: usize,
    room: Room<D>,
    /// A submission that waits for room.
    held: Option<Submission>,
    waits: Waits,
}

/// What happened to a connection.
enum Step {
    Wrote(io::Result<usize>),
    Read(io::Result<usize>),
    Ordered(Order),
    Answered(Answer),
    /// Whether there is room for what was held.
    Room(bool),
    Late,
    Stopping,
}

impl<D: Desk> Connection<D> {
    pub(super) fn new(
        desk: &Rc<D>,
        gateways: &Rc<Gateways>,
        stream: UnixStream,
        stopping: watch::Receiver<bool>,
    ) -> Self {
        let (answers, answered) = mpsc::unbounded_channel();
        let bounds = Bounds {
            octets_max: desk.octets_max(),
            tags_max: TAGS_MAX,
            ..Bounds::default()
        };
        Self {
            desk: Rc::clone(desk),
            gateways: Rc::clone(gateways),
            stream,
            stopping,
            server: Server::new(bounds),
            line: None,
            delivered: HashMap::new(),
            answers,
            answered,
            submitted: 0,
            room: Room::new(desk),
            held: None,
            waits: Waits::new(Instant::now()),
        }
    }

    /// Says why the connection is refused.
    pub(super) async fn turn_away(mut self, error: &str) {
        self.server.end(error);
        let farewell = async {
            while let Some(piece) = self.server.output() {
                self.stream.write_all(&piece).await?;
            }
            io::Result::Ok(())
        };
        // A client that does not read gets no reason.
        let _ = timeout(FAREWELL, farewell).await;
    }

    /// Serves until one side ends the connection.
    pub(super) async fn run(mut self) {
        let mut buffer = vec![0; READ_OCTETS];
        let mut piece = Bytes::new();
        let mut reading = true;
        loop {
            self.take_events();
            self.waits.holds(Instant::now(), self.room.waits());
            if piece.is_empty() {
                piece = self.server.output().unwrap_or_default();
                self.waits.wrote(Instant::now(), !piece.is_empty());
            }
            if self.server.has_ended() {
                self.waits.ended(Instant::now());
            }
            let done = self.server.has_ended() || (!reading && self.submitted == 0);
            if done && piece.is_empty() {
                break;
            }
            let reads = reading && self.server.wants_input() && !self.room.waits();
            self.waits
                .reads(Instant::now(), reads && self.server.end_of_input().is_err());
            match self.step(&piece, reads.then_some(&mut buffer)).await {
                Step::Wrote(Ok(count)) => {
                    piece.advance(count.min(piece.len()));
                    self.waits.wrote(Instant::now(), !piece.is_empty());
                }
                Step::Read(Ok(0)) => reading = false,
                Step::Read(Ok(count)) => {
                    self.waits.read(Instant::now());
                    self.server.receive(buffer.get(..count).unwrap_or_default());
                }
                Step::Wrote(Err(_)) | Step::Read(Err(_)) => break,
                Step::Ordered(order) => self.deliver(order),
                Step::Answered((tag, answer)) => self.answer(&tag, answer),
                Step::Room(found) => self.has_room(found),
                Step::Late => match self.waits.late(Instant::now()) {
                    Some(Late::Deaf) => break,
                    Some(Late::Because(error)) => {
                        self.server.end(&error);
                        self.waits.ended(Instant::now());
                    }
                    None => (),
                },
                Step::Stopping => self.server.end("the MTA stops"),
            }
        }
        if let Some((name, _)) = &self.line {
            tracing::info!(gateway = name, "gateway detached");
        }
    }

    /// Waits for the next thing that happens.
    async fn step(&mut self, piece: &Bytes, buffer: Option<&mut Vec<u8>>) -> Step {
        let (mut reader, mut writer) = self.stream.split();
        let takes = self.server.room() > 0;
        let ended = self.server.has_ended();
        let reads = buffer.is_some();
        let read = async {
            match buffer {
                Some(buffer) => reader.read(buffer).await,
                None => std::future::pending().await,
            }
        };
        let next = self.waits.next();
        let late = async {
            match next {
                Some(next) => sleep_until(next).await,
                None => std::future::pending().await,
            }
        };
        let line = self.line.as_mut();
        let ordered = async {
            match line {
                Some((_, line)) => line.orders.recv().await,
                None => None,
            }
        };
        tokio::select! {
            wrote = writer.write(piece), if !piece.is_empty() => Step::Wrote(wrote),
            count = read, if reads => Step::Read(count),
            Some(order) = ordered, if takes => Step::Ordered(order),
            Some(answer) = self.answered.recv() => Step::Answered(answer),
            found = self.room.ended(), if !ended => Step::Room(found),
            () = late => Step::Late,
            _ = self.stopping.wait_for(|stop| *stop), if !ended => Step::Stopping,
        }
    }

    /// Gives a delivery to the client.
    fn deliver(&mut self, order: Order) {
        let Order {
            mut deliver,
            apdu,
            answer,
        } = order;
        // Whoever ordered the delivery may have gone meanwhile.
        if answer.is_closed() {
            return;
        }
        deliver.id = self.gateways.id();
        let id = deliver.id.clone();
        // A refusal drops the sender, so the message is deferred.
        if self.server.deliver(deliver, apdu).is_ok() {
            self.waits.delivered(Instant::now(), &id);
            self.delivered.insert(id, answer);
        }
    }

    fn answer(&mut self, tag: &str, answer: Result<Accepted, Unaccepted>) {
        self.submitted = self.submitted.saturating_sub(1);
        match answer {
            Ok(Accepted { identifier, id }) => self.server.submitted(tag, &identifier, &id),
            Err(Unaccepted { temporary, error }) => self.server.refuse(tag, temporary, &error),
        }
    }

    /// Takes the frames that have come, until a submission finds no room; then counts what has come of the next frame.
    fn take_events(&mut self) {
        while !self.room.waits()
            && let Some(event) = self.server.event()
        {
            self.take(event);
            self.room.free();
        }
        if let Some(octets) = self.server.coming()
            && !self.room.waits()
        {
            let octets = u64::try_from(octets).unwrap_or(u64::MAX);
            self.room.count(source(&self.line), octets);
        }
    }

    fn take(&mut self, event: ServerEvent) {
        match event {
            ServerEvent::Attach { name, window } => self.attach(name, window),
            ServerEvent::Done {
                id,
                results,
                own_reports,
            } => {
                self.waits.done(&id);
                if let Some(answer) = self.delivered.remove(&id) {
                    // The worker may have ended; the message is then delivered again.
                    let _ = answer.send(Results {
                        results,
                        own_reports,
                    });
                }
            }
            ServerEvent::Submit {
                tag,
                message,
                octets,
            } => {
                let addresses = message.as_ref().map(|fields| &*fields.recipients);
                let length = length(&octets, addresses.unwrap_or_default());
                let made = match message {
                    None => Apdu::split(&octets).map_err(|error| error.to_string()),
                    Some(fields) => {
                        let id = self.desk.identifier();
                        compose::message(&self.desk.mta().site, &fields, octets, &id)
                    }
                };
                self.submit(tag, made, length);
            }
            ServerEvent::Probe(fields) => {
                let length = length(&[], &fields.recipients);
                let id = self.desk.identifier();
                let made = compose::probe(&self.desk.mta().site, &fields, &id);
                self.submit(fields.tag, made, length);
            }
            ServerEvent::Ask(ask) if ask.peers => {
                let rows = self.desk.peers(ask.after.as_deref());
                self.server.answer_peers(&ask.tag, rows, false);
            }
            ServerEvent::Ask(ask) => {
                self.server.refuse(
                    &ask.tag,
                    false,
                    "expected a question such as peers; found none",
                );
            }
            ServerEvent::End(fault) => {
                let gateway = self.line.as_ref().map(|(name, _)| &**name);
                tracing::warn!(gateway, %fault, "client of the gateway API broke the rules");
            }
        }
    }

    fn attach(&mut self, name: Option<String>, window: u32) {
        let mta = self.desk.mta();
        if let Some(name) = name {
            let Some(most) = self.desk.window(&name) else {
                let error = format!("expected a gateway of the settings; found {name}");
                return self.server.end(&error);
            };
            let window = usize::try_from(window.min(most.max(1))).unwrap_or(1);
            self.line = Some((name.clone(), self.gateways.attach(&name, window)));
            tracing::info!(gateway = name, "gateway attached");
            self.desk.attached(&name);
        }
        self.waits.attached();
        let site = &mta.site;
        self.server
            .attached(&site.mta_name.text(), &site.domain.to_string());
    }

    /// Hands a unit over to the MTA, which answers later, as soon as there is room for its octets.
    fn submit(&mut self, tag: String, made: Result<Apdu, String>, octets: u64) {
        let unit = match made {
            Ok(unit) => unit,
            Err(error) => return self.server.refuse(&tag, false, &error),
        };
        if let Err(why) = self.desk.ready() {
            return self.server.refuse(&tag, true, why);
        }
        self.submitted = self.submitted.saturating_add(1);
        let share = self.room.whole(source(&self.line), octets);
        let submission = Submission { tag, unit, share };
        if self.room.waits() {
            self.held = Some(submission);
        } else {
            self.accept(submission);
        }
    }

    /// Goes on with what was held for want of memory, or refuses it.
    fn has_room(&mut self, found: bool) {
        let held = self.held.take();
        if found {
            if let Some(submission) = held {
                self.accept(submission);
            }
            return;
        }
        let gateway = self.line.as_ref().map(|(name, _)| &**name);
        tracing::warn!(gateway, "submission refused for now: no memory in time");
        match held {
            Some(Submission { tag, .. }) => {
                let error = NO_ROOM.to_owned();
                let temporary = true;
                self.answer(&tag, Err(Unaccepted { temporary, error }));
            }
            None => {
                self.room.free();
                if let Some(event) = self.server.give_up(true, NO_ROOM) {
                    self.take(event);
                }
            }
        }
    }

    fn accept(&self, Submission { tag, unit, share }: Submission) {
        let (desk, answers) = (Rc::clone(&self.desk), self.answers.clone());
        let gateway = self.line.as_ref().map(|(name, _)| name.clone());
        spawn_local(async move {
            let source = gateway.as_deref().map_or(Source::Local, Source::Gateway);
            let answer = desk.accept(unit, source).await;
            drop(share);
            // The client may have gone; the message is safe all the same.
            let _ = answers.send((tag, answer));
        });
    }
}

/// Where the units of a connection come from.
fn source(line: &Option<(String, LineEnd)>) -> Source<'_> {
    line.as_ref()
        .map_or(Source::Local, |(name, _)| Source::Gateway(name))
}

/// Octets of a unit in memory: what is long of it.
fn length(octets: &[u8], addresses: &[String]) -> u64 {
    let addresses: usize = addresses.iter().map(String::len).sum();
    u64::try_from(octets.len().saturating_add(addresses)).unwrap_or(u64::MAX)
}
