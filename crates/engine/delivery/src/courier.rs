//! A worker and its connection: finds the hosts of a queue's destination, connects, and sends message after message
//! over the same connection.

use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{Either, select};
use vere_queue::{
    Answered, Attempt, Destination, Disposition, Envelope, Job, Queues, RecipientResult, Sign,
    SiteName,
};
use vere_spoolwire::QueueId;

use crate::behind;
use crate::group::Group;
use crate::host::Host;
use crate::worker::Worker;

/// Messages failed for one answer that a destination takes no mail.
const FAILED_AT_ONCE: usize = 100;
/// How long a connection without messages is kept for the next one.
const IDLE_MAX: Duration = Duration::from_secs(5);

/// Why there is no host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unroutable {
    /// A host may be found later, or may take this destination's mail later.
    Temporary(String),
    /// None of the site's hosts takes a connection now, for whatever mail.
    Site(String),
    /// The destination never takes mail.
    Permanent {
        /// The enhanced status code (RFC 3463).
        status: &'static str,
        /// The reason, for people.
        reply: String,
    },
}

/// A connection was closed before the message began: nothing is known against the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BeforeMessage;

/// How a destination's mail leaves.
pub trait Courier {
    /// The hosts of a destination.
    type Route;
    /// A connection to one of them.
    type Session: Session;

    /// Finds the hosts of a destination.
    ///
    /// # Errors
    /// [`Unroutable`].
    fn find(&self, way: &Destination) -> impl Future<Output = Result<Self::Route, Unroutable>>;

    /// The site of these hosts, which other destinations may share.
    fn site<'a>(&self, route: &'a Self::Route) -> &'a SiteName;

    /// Connects to the first host that takes messages.
    ///
    /// # Errors
    /// [`Unroutable`].
    fn open(&self, route: &Self::Route) -> impl Future<Output = Result<Self::Session, Unroutable>>;

    /// Messages over one connection at most, where the destination has no limit of its own.
    fn messages_max(&self) -> u32;
}

/// A connection that takes messages.
pub trait Session {
    /// Sends one message.
    ///
    /// # Errors
    /// [`BeforeMessage`] when a kept connection turns out to be closed.
    fn send(
        &mut self,
        envelope: &Rc<Envelope>,
        body: Bytes,
    ) -> impl Future<Output = Result<Attempt, BeforeMessage>>;

    /// Whether the connection takes another message.
    fn usable(&mut self) -> bool;

    /// Waits until the other side closes the connection or says something unasked, which ends it too.
    fn closed(&mut self) -> impl Future<Output = ()>;

    /// Says goodbye; nothing depends on the answer.
    fn quit(&mut self) -> impl Future<Output = ()>;
}

/// Runs one worker: connects and delivers until the queue is empty for a while or the destination fails.
pub async fn work<H: Host, C: Courier>(
    worker: &mut Worker<H>,
    courier: &C,
    destination: &Destination,
) {
    let (group, queue) = (&Rc::clone(worker.group()), worker.queue);
    let now = group.host.now();
    let Some(way) = group.queues.look(|queues| queues.way(queue, now)) else {
        return;
    };
    let hosts = match courier.find(&way).await {
        Ok(hosts) => hosts,
        Err(none) => return fail_by(group, worker, destination, &way, none).await,
    };
    let (site, now) = (courier.site(&hosts), group.host.now());
    // An operator may have rerouted the queue during the look-up of the hosts.
    let joined = group.goes_by(queue, &way)
        && group
            .queues
            .change_quietly(|queues| queues.join_site(queue, site, now));
    if !joined {
        return;
    }
    loop {
        match courier.open(&hosts).await {
            Ok(mut session) => {
                worker.connected();
                let more = deliver(group, worker, courier, &mut session, &way).await;
                worker.disconnected();
                if !more || !group.goes_by(queue, &way) {
                    return;
                }
                let now = group.host.now();
                if !group
                    .queues
                    .change_quietly(|queues| queues.may_reopen(queue, now))
                {
                    return;
                }
            }
            Err(none) => return fail_by(group, worker, destination, &way, none).await,
        }
    }
}

/// Runs one worker whose destination needs no connection, until no message is ready. `file` tries one message; `None`
/// from it ends the worker, and the message is tried again after the next start.
pub async fn file_each<H: Host, F: Future<Output = Option<Attempt>>>(
    worker: &mut Worker<H>,
    file: impl Fn(Rc<Envelope>, Bytes) -> F,
) {
    let (group, queue) = (Rc::clone(worker.group()), worker.queue);
    while let Some(job) = worker.take() {
        let Some(body) = group.body(queue, &job).await else {
            return;
        };
        let Some(attempt) = file(Rc::clone(&job.envelope), body).await else {
            return;
        };
        group.settle(queue, &job, &attempt);
    }
}

/// Records that no connection to `way` could be opened. Does nothing if the queue was rerouted meanwhile. An operator
/// may have mistyped a reroute, so a permanent failure there counts as temporary and returns no message.
async fn fail_by<H: Host>(
    group: &Rc<Group<H>>,
    worker: &mut Worker<H>,
    destination: &Destination,
    way: &Destination,
    none: Unroutable,
) {
    if !group.goes_by(worker.queue, way) {
        return;
    }
    let none = match none {
        Unroutable::Permanent { reply, .. } if way != destination => Unroutable::Temporary(reply),
        none => none,
    };
    fail(group, worker, destination, none).await;
}

/// Sends what the queue gives. True: the connection is used up and another one is wanted.
async fn deliver<H: Host, C: Courier>(
    group: &Rc<Group<H>>,
    worker: &mut Worker<H>,
    courier: &C,
    session: &mut C::Session,
    way: &Destination,
) -> bool {
    let queue = worker.queue;
    let mut sent = 0;
    loop {
        if !group.goes_by(queue, way) {
            session.quit().await;
            return false;
        }
        let Some(job) = worker.take() else {
            if idle(group, worker, session).await {
                continue;
            }
            session.quit().await;
            return false;
        };
        let Some(body) = group.body(queue, &job).await else {
            session.quit().await;
            return false;
        };
        let (began, begun) = (group.host.now(), group.host.steady());
        match session.send(&job.envelope, body).await {
            Ok(attempt) => {
                group.settle(queue, &job, &attempt);
                let answered = Answered {
                    sign: Sign::of(&attempt),
                    began,
                    latency: group.host.steady().saturating_sub(begun),
                    closed: !session.usable(),
                };
                let now = group.host.now();
                group
                    .queues
                    .change_quietly(|queues| queues.answered(queue, &answered, now));
            }
            // The server closed a connection that was kept: the message was not tried.
            Err(BeforeMessage) => {
                group.give_back(queue, &job);
                return true;
            }
        }
        sent += 1;
        if !session.usable() {
            return true;
        }
        let (limit, now) = (messages_max(group, courier, queue), group.host.now());
        let stays = group.queues.look(|queues| queues.keeps_worker(queue, now));
        if sent >= limit || !stays {
            session.quit().await;
            return stays;
        }
    }
}

impl<H: Host> Group<H> {
    /// Whether the messages of a queue go this way still.
    fn goes_by(&self, queue: QueueId, way: &Destination) -> bool {
        let now = self.host.now();
        self.queues
            .look(|queues| queues.way(queue, now).as_ref() == Some(way))
    }
}

/// Messages over one connection.
fn messages_max<H: Host>(group: &Group<H>, courier: &impl Courier, queue: QueueId) -> u32 {
    let own = group
        .queues
        .look(|queues| queues.messages_per_connection_max(queue));
    own.unwrap_or_else(|| courier.messages_max())
}

/// Keeps the connection for the next message. False: none came, the server closed it, or others wait for one.
async fn idle<H: Host>(
    group: &Rc<Group<H>>,
    worker: &mut Worker<H>,
    session: &mut impl Session,
) -> bool {
    let queue = worker.queue;
    let bell = group.bell(queue);
    if !group.queues.change(|queues| queues.worker_idle(queue)) {
        return false;
    }
    let (closed, tired) = (pin!(session.closed()), pin!(group.host.pause(IDLE_MAX)));
    match select(pin!(bell.heard()), select(closed, tired)).await {
        Either::Left(_) => {
            let released = group
                .queues
                .change_quietly(|queues| queues.worker_released(queue));
            if !released {
                worker.woken();
            }
            !released
        }
        Either::Right(_) => {
            group
                .queues
                .change_quietly(|queues| queues.worker_resumed(queue));
            false
        }
    }
}

/// Draws the consequences of a failed attempt to connect.
async fn fail<H: Host>(
    group: &Rc<Group<H>>,
    worker: &mut Worker<H>,
    destination: &Destination,
    none: Unroutable,
) {
    let queue = worker.queue;
    let now = group.host.now();
    match none {
        Unroutable::Permanent { status, reply } => {
            undeliverable(group, worker, destination, status, &reply).await;
        }
        Unroutable::Temporary(reply) => {
            let head = worker.take();
            group
                .queues
                .change_quietly(|queues| queues.destination_failed(queue, &reply, now));
            unreachable(group, queue, head, destination, &reply);
        }
        Unroutable::Site(reply) => {
            if group
                .queues
                .change_quietly(|queues| queues.refused_beside_others(queue, now))
            {
                return;
            }
            let head = worker.take();
            let beside = group.queues.change_quietly(|queues| {
                queues.site_failed(queue, &reply, now);
                queues.waiting_beside(queue)
            });
            unreachable(group, queue, head, destination, &reply);
            for other in beside {
                if let Some(destination) = group.queues.destination(other) {
                    unreachable(group, other, None, &destination, &reply);
                }
            }
        }
    }
}

/// The failed connection counts as an attempt for the message at the head of a queue; later messages
/// wait untouched, unless expired; senders hear of long delays.
fn unreachable<H: Host>(
    group: &Rc<Group<H>>,
    queue: QueueId,
    head: Option<Job>,
    destination: &Destination,
    reply: &str,
) {
    let remote = destination.to_string();
    if let Some(job) = head {
        let attempt = Queues::unreachable_attempt(&job.envelope, &remote, reply);
        group.settle(queue, &job, &attempt);
    }
    behind::look_through(group, queue, &remote, reply);
}

/// Fails a limited number of ready messages: the destination refuses mail permanently. The remaining messages lead to
/// another attempt.
async fn undeliverable<H: Host>(
    group: &Rc<Group<H>>,
    worker: &mut Worker<H>,
    destination: &Destination,
    status: &str,
    reply: &str,
) {
    for _ in 0..FAILED_AT_ONCE {
        let Some(job) = worker.take() else { return };
        let result = RecipientResult {
            disposition: Disposition::Failed,
            status: status.to_owned(),
            reply: reply.to_owned(),
            from_remote: false,
        };
        let attempt = Attempt {
            remote: destination.to_string(),
            reports_taken_over: false,
            results: vec![result; job.envelope.mail.recipients.len()],
        };
        if group.settle(worker.queue, &job, &attempt) > 0 {
            group.room_for_reports().await;
        }
    }
}
