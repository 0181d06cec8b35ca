//! Drives one association over one stream: octets, timers, the end.
//!
//! Everything happens within [`Driver::next`]: a host that does not call reads nothing and so holds the peer.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::{Instant, Sleep, sleep_until, timeout};
use vere_osi::Pieces;
use vere_osi::association::{AbortCause, Association, Event, Output, Timer};

use crate::bounds::{Bounds, Wait};
use crate::end::End;

/// Octets that wait for TCP, above which no octets of an APDU are taken.
const OUTPUT_MAX: usize = 262_144;
/// The smallest and the largest read. A read that fills its buffer makes the next buffer larger.
const READ_MIN: usize = 4_096;
const READ_MAX: usize = 262_144;
/// Slices of one writev(2).
const SLICES: usize = 64;

/// A byte stream to a peer: TCP, or TLS.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Octets of an APDU that are still to be sent.
pub(crate) type Feed = VecDeque<Bytes>;

/// The result of a wait.
#[derive(Debug)]
pub(crate) enum Happening {
    Event(Event),
    /// The bound that the host has set by [`Driver::wait_for`] has passed.
    Late,
    Closed,
}

/// A time by which octets have to move, and the octets that moved.
#[derive(Debug)]
struct Progress {
    by: Instant,
    octets: u64,
}

pub(crate) struct Driver {
    stream: Box<dyn Stream>,
    pub(crate) machine: Association,
    bounds: Bounds,
    /// Events that came while octets were pushed.
    events: VecDeque<Event>,
    output: Pieces,
    input: BytesMut,
    read_size: usize,
    /// The timer of the machine.
    timer: Option<(Timer, Instant)>,
    /// Octets of an APDU that came since the timer was renewed.
    received: u64,
    /// Octets of an APDU before the checkpoint that has renewed the timer.
    confirmed: u64,
    /// Whether the last octets of an APDU were given to the machine, and not yet written.
    fed: bool,
    writing: Option<Progress>,
    /// The bound of the host.
    own: Option<(Wait, Instant)>,
    sleep: Pin<Box<Sleep>>,
    unflushed: bool,
    late: Option<Wait>,
    failed: Option<io::ErrorKind>,
    input_ended: bool,
    output_ended: bool,
    closed: bool,
}

impl std::fmt::Debug for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Driver")
            .field("machine", &self.machine)
            .finish_non_exhaustive()
    }
}

impl Driver {
    /// In a box, so that the futures of hosts are small.
    pub(crate) fn new(stream: Box<dyn Stream>, machine: Association, bounds: Bounds) -> Box<Self> {
        Box::new(Self {
            stream,
            machine,
            events: VecDeque::new(),
            output: Pieces::new(),
            input: BytesMut::new(),
            read_size: READ_MIN,
            timer: None,
            received: 0,
            confirmed: 0,
            fed: false,
            writing: None,
            own: None,
            sleep: Box::pin(sleep_until(Instant::now() + bounds.idle)),
            bounds,
            unflushed: false,
            late: None,
            failed: None,
            input_ended: false,
            output_ended: false,
            closed: false,
        })
    }

    pub(crate) const fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// Starts a bound of the host, unless the same bound is running.
    pub(crate) fn wait_for(&mut self, wait: Wait) {
        if self.own.is_none_or(|(other, _)| other != wait) {
            self.own = Some((wait, Instant::now() + self.bounds.of(wait)));
        }
    }

    /// Ends the bound of the host.
    pub(crate) const fn waits_no_more(&mut self) {
        self.own = None;
    }

    /// The host was busy for this time, which does not count for the peer.
    pub(crate) fn postpone(&mut self, time: Duration) {
        if let Some((_, by)) = &mut self.timer {
            *by += time;
        }
    }

    /// The next event. `feed` are octets for the transfer in progress. A cancelled wait loses nothing.
    pub(crate) async fn next(&mut self, feed: &mut Feed) -> Happening {
        loop {
            self.supply(feed);
            let event = self.events.pop_front().map(Output::Event);
            match event.or_else(|| self.machine.poll()) {
                Some(Output::Event(event)) => {
                    self.note(&event);
                    return Happening::Event(event);
                }
                Some(Output::Write(pieces)) if !self.output_ended => self.output.append(pieces),
                Some(Output::Write(_)) => {}
                Some(Output::Close) => self.closed = true,
                None if self.closed => {
                    self.shut().await;
                    return Happening::Closed;
                }
                None if poll_fn(|context| self.step(context)).await => return Happening::Late,
                None => {}
            }
        }
    }

    /// Writes what can be written now, without a wait for the peer.
    pub(crate) async fn push(&mut self) {
        self.gather();
        poll_fn(|context| {
            self.write(context);
            Poll::Ready(())
        })
        .await;
    }

    /// Waits until the peer has acknowledged the turn, or the association has ended. Events are kept.
    pub(crate) async fn acknowledged(&mut self) {
        self.gather();
        while self.machine.timer() == Some(Timer::Turn) {
            poll_fn(|context| self.step(context)).await;
            self.gather();
        }
    }

    /// Looks at octets that have arrived. Events are kept.
    fn gather(&mut self) {
        while let Some(output) = self.machine.poll() {
            match output {
                Output::Event(event) => self.events.push_back(event),
                Output::Write(pieces) => self.output.append(pieces),
                Output::Close => self.closed = true,
            }
        }
    }

    /// After an end: sends the last octets and waits for the peer's close.
    pub(crate) async fn finish(&mut self) {
        let limit = self.bounds.close;
        let closing =
            async { while !matches!(self.next(&mut Feed::new()).await, Happening::Closed) {} };
        let _in_time = timeout(limit, closing).await;
    }

    /// The end of the association, by what the driver knows and by the cause that the machine tells.
    pub(crate) fn end(&self, cause: Option<AbortCause>) -> End {
        match (self.late, self.failed, cause) {
            (Some(wait), ..) => End::Late(wait),
            (None, Some(kind), _) => End::Network(kind),
            (None, None, Some(cause)) => End::Aborted(cause),
            (None, None, None) => End::Closed,
        }
    }

    /// The end of an association that has ended, though no event has told so yet.
    pub(crate) fn untold_end(&mut self) -> Option<End> {
        self.gather();
        let aborted = |event: &Event| matches!(event, Event::Aborted(..));
        let place = self.events.iter().position(aborted);
        match place.and_then(|place| self.events.remove(place)) {
            Some(Event::Aborted(cause, _)) => Some(self.end(Some(cause))),
            _ => self.closed.then(|| self.end(None)),
        }
    }

    /// A bound has passed that the machine does not know.
    pub(crate) fn abort_late(&mut self, wait: Wait) {
        self.late = Some(wait);
        self.machine.abort(None);
    }

    fn supply(&mut self, feed: &mut Feed) {
        while self.output.len() < OUTPUT_MAX
            && let Some(front) = feed.front_mut()
        {
            let taken = self.machine.supply(front);
            if front.is_empty() {
                feed.pop_front();
                self.fed = feed.is_empty();
            }
            match taken {
                Ok(0) => return,
                Ok(_) => {}
                // The transfer has ended; its event follows.
                Err(_) => return feed.clear(),
            }
        }
    }

    fn note(&mut self, event: &Event) {
        self.own = None;
        match event {
            Event::Apdu(octets) => {
                self.received = self.received.saturating_add(count(octets.len()));
                if self.received < self.bounds.progress {
                    return;
                }
            }
            Event::CheckpointConfirmed(broken) => {
                let position = broken.checkpoint.position;
                if position.saturating_sub(self.confirmed) < self.bounds.progress {
                    return;
                }
                self.confirmed = position;
            }
            Event::TransferBegins(_) => {}
            Event::Transferred(_) | Event::NotTransferred(_) => {
                self.confirmed = 0;
                return;
            }
            _ => return,
        }
        self.timer = None;
        self.received = 0;
    }

    /// Moves octets, or looks at the time; ready with true when the bound of the host has passed.
    fn step(&mut self, context: &mut Context<'_>) -> Poll<bool> {
        let wrote = self.write(context);
        let read = self.read(context);
        match wrote || read {
            true => Poll::Ready(false),
            false => self.time(context),
        }
    }

    fn write(&mut self, context: &mut Context<'_>) -> bool {
        let mut moved = false;
        while !self.output.is_empty() {
            match self.write_once(context) {
                Poll::Pending => {
                    let by = Instant::now() + self.bounds.write;
                    self.writing.get_or_insert(Progress { by, octets: 0 });
                    return moved;
                }
                Poll::Ready(Ok(octets @ 1..)) => {
                    moved = true;
                    self.wrote(octets);
                }
                Poll::Ready(Ok(0)) => self.write_failed(io::ErrorKind::WriteZero),
                Poll::Ready(Err(error)) => self.write_failed(error.kind()),
            }
        }
        if moved && self.fed {
            // The peer has the whole APDU, and needs time to make it safe.
            self.fed = false;
            self.timer = None;
        }
        if self.unflushed {
            match Pin::new(&mut self.stream).poll_flush(context) {
                Poll::Ready(Ok(())) => self.unflushed = false,
                Poll::Ready(Err(error)) => self.write_failed(error.kind()),
                Poll::Pending => {
                    let by = Instant::now() + self.bounds.write;
                    self.writing.get_or_insert(Progress { by, octets: 0 });
                    return moved;
                }
            }
        }
        self.writing = None;
        moved
    }

    fn write_once(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut slices = [IoSlice::new(&[]); SLICES];
        let mut used = 0;
        for (slice, piece) in slices.iter_mut().zip(self.output.iter()) {
            *slice = IoSlice::new(piece);
            used += 1;
        }
        let slices = slices.get(..used).unwrap_or_default();
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn wrote(&mut self, octets: usize) {
        self.unflushed = true;
        let mut left = octets;
        while left > 0
            && let Some(piece) = self.output.pop_at_most(left)
        {
            left -= piece.len();
        }
        if let Some(progress) = &mut self.writing {
            progress.octets = progress.octets.saturating_add(count(octets));
            if progress.octets >= self.bounds.progress {
                self.writing = None;
                self.timer = None;
            }
        }
    }

    /// Nothing can be written any more; octets that have arrived are still read, up to the end.
    fn write_failed(&mut self, kind: io::ErrorKind) {
        self.failed.get_or_insert(kind);
        self.output = Pieces::new();
        self.unflushed = false;
        self.output_ended = true;
    }

    fn read(&mut self, context: &mut Context<'_>) -> bool {
        if self.input_ended || !self.machine.wants_octets() {
            return false;
        }
        self.input.reserve(self.read_size);
        let polled = {
            let reading = pin!(self.stream.read_buf(&mut self.input));
            reading.poll(context)
        };
        match polled {
            Poll::Pending => return false,
            Poll::Ready(Ok(octets @ 1..)) => {
                self.read_size = match octets {
                    few if few < READ_MIN => READ_MIN,
                    full if full >= self.read_size => {
                        self.read_size.saturating_mul(4).min(READ_MAX)
                    }
                    _ => self.read_size,
                };
                self.machine.receive(self.input.split().freeze());
            }
            Poll::Ready(Ok(0)) => self.input_ended(),
            Poll::Ready(Err(error)) => {
                self.failed.get_or_insert(error.kind());
                self.input_ended();
            }
        }
        true
    }

    fn input_ended(&mut self) {
        self.input_ended = true;
        self.machine.ended();
    }

    fn time(&mut self, context: &mut Context<'_>) -> Poll<bool> {
        let timer = self.machine.timer();
        if self.timer.map(|(running, _)| running) != timer {
            self.received = 0;
            let by = |timer| Instant::now() + self.bounds.of(Wait::from(timer));
            self.timer = timer.map(|timer| (timer, by(timer)));
        }
        loop {
            let times = [
                self.timer.map(|(_, by)| by),
                self.writing.as_ref().map(|progress| progress.by),
                self.own.map(|(_, by)| by),
            ];
            let Some(first) = times.into_iter().flatten().min() else {
                return Poll::Pending;
            };
            if self.sleep.deadline() > first || self.sleep.is_elapsed() {
                self.sleep.as_mut().reset(first);
            }
            match self.sleep.as_mut().poll(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(()) => {
                    if let Some(late) = self.passed(Instant::now()) {
                        return Poll::Ready(late);
                    }
                }
            }
        }
    }

    /// Looks which bound has passed, if one has.
    fn passed(&mut self, now: Instant) -> Option<bool> {
        if self
            .writing
            .as_ref()
            .is_some_and(|progress| progress.by <= now)
        {
            self.late = Some(Wait::Write);
            self.writing = None;
            self.write_failed(io::ErrorKind::TimedOut);
            self.input_ended();
            return Some(false);
        }
        if let Some((timer, _)) = self.timer.filter(|(_, by)| *by <= now) {
            self.timer = None;
            if timer != Timer::Tim {
                self.late = Some(Wait::from(timer));
            }
            self.machine.expired(timer);
            return Some(false);
        }
        let late = self.own.is_some_and(|(_, by)| by <= now);
        late.then(|| {
            self.own = None;
            true
        })
    }

    async fn shut(&mut self) {
        let limit = self.bounds.close;
        let closing = async {
            while !self.output.is_empty() {
                poll_fn(
                    |context| match self.write(context) || self.output.is_empty() {
                        true => Poll::Ready(()),
                        false => Poll::Pending,
                    },
                )
                .await;
            }
            self.stream.shutdown().await
        };
        // The connection is of no use any more, whatever becomes of its last octets.
        let _closed = timeout(limit, closing).await;
    }
}

fn count(octets: usize) -> u64 {
    u64::try_from(octets).unwrap_or(u64::MAX)
}
