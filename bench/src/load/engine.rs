//! The event loop of the load generator.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use mio::event::Event;
use mio::net::TcpStream;
use mio::{Events, Poll, Token};

use super::{Ack, Failures, LoadEnd, LoadError, LoadOptions, LoadProgress, LoadReport};
use crate::ids::MessageId;
use crate::wire::{Link, Outcome, Readiness, Sender, Turn};

/// The tick of a load with a rate, whose messages begin at their times.
const PACED_TICK: Duration = Duration::from_millis(1);

/// How often time-outs and pauses are looked at while sessions talk.
const TICK: Duration = Duration::from_millis(10);

/// The first pause after a failure; further pauses double up to [`PAUSE_MAX`].
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_millis(320);

/// How long the ends of the dialogues are waited for.
const FAREWELL: Duration = Duration::from_secs(1);

/// Longer reply times count as this value: 10 minutes, in microseconds.
const REPLY_US_MAX: u64 = 600_000_000;

#[derive(Debug, Clone, Copy)]
struct Job {
    id: MessageId,
    attempts: u32,
    may_be_doubled: bool,
}

#[derive(Debug)]
struct Connection {
    link: Link,
    sender: Sender,
    /// When the final dot left.
    dot_at: Option<Instant>,
    text_length: u64,
    messages: u32,
    greeted: bool,
    /// The connection waits for the time of its next message.
    idle: bool,
    deadline: Instant,
}

#[derive(Debug, Default)]
struct Worker {
    connection: Option<Connection>,
    job: Option<Job>,
    pause: Duration,
    resume: Option<Instant>,
}

struct Engine<'a> {
    options: &'a LoadOptions,
    progress: &'a LoadProgress,
    poll: Poll,
    workers: Vec<Worker>,
    next: u32,
    ends_at: Option<Instant>,
    acked_file: Option<BufWriter<File>>,
    report: LoadReport,
}

/// How a connection leaves a worker.
enum Parting {
    Stays,
    Over,
    Failed(Failure),
}

#[derive(Clone, Copy)]
enum Failure {
    Lost,
    TimedOut,
}

/// Runs a load to its end.
///
/// # Errors
///
/// [`LoadError`] when the machine fails, not when the server does.
pub fn run(options: &LoadOptions, progress: &LoadProgress) -> Result<LoadReport, LoadError> {
    let mut engine = Engine::new(options, progress)?;
    engine.run()?;
    engine.finish()
}

impl<'a> Engine<'a> {
    fn new(options: &'a LoadOptions, progress: &'a LoadProgress) -> Result<Self, LoadError> {
        let acked_file = match &options.acked_file {
            Some(path) => {
                let file = OpenOptions::new().create(true).append(true).open(path);
                let failed = |source| LoadError::AckedFile {
                    path: path.clone(),
                    source,
                };
                Some(BufWriter::new(file.map_err(failed)?))
            }
            None => None,
        };
        let began = Instant::now();
        let reply_us = Histogram::new_with_bounds(1, REPLY_US_MAX, 3)
            .map_err(|error| LoadError::Loop(io::Error::other(error.to_string())))?;
        Ok(Self {
            options,
            progress,
            poll: Poll::new().map_err(LoadError::Loop)?,
            workers: (0..options.sessions.max(1))
                .map(|_| Worker::default())
                .collect(),
            next: 0,
            ends_at: match options.end {
                LoadEnd::Count(_) => None,
                LoadEnd::After(time) => Some(began + time),
            },
            acked_file,
            report: LoadReport {
                began,
                acked: Vec::new(),
                refused: Vec::new(),
                unresolved: Vec::new(),
                failures: Failures::default(),
                octets: 0,
                reply_us,
            },
        })
    }

    fn run(&mut self) -> Result<(), LoadError> {
        let mut events = Events::with_capacity(1024);
        let give_up_at = self.report.began + self.options.duration_max;
        let mut next_tick = Instant::now();
        let mut farewell_until = None;
        let tick = self.options.rate.map_or(TICK, |_| PACED_TICK);
        loop {
            let now = Instant::now();
            if now >= next_tick {
                next_tick = now + tick;
                self.tick(now);
                let jobless = self.workers.iter().all(|worker| worker.job.is_none());
                let done = jobless && !self.has_more(now);
                if done && self.workers.iter().all(|one| one.connection.is_none()) {
                    return Ok(());
                }
                if done && farewell_until.is_none() {
                    farewell_until = Some(now + FAREWELL);
                }
                if now >= give_up_at || farewell_until.is_some_and(|until| now >= until) {
                    return Ok(());
                }
            }
            match self.poll.poll(&mut events, Some(tick)) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => result.map_err(LoadError::Loop)?,
            }
            for event in &events {
                self.handle_event(event);
            }
        }
    }

    fn has_more(&self, now: Instant) -> bool {
        !self.progress.is_stopped()
            && match self.options.end {
                LoadEnd::Count(count) => self.next < count,
                LoadEnd::After(_) => self.ends_at.is_some_and(|at| now < at),
            }
    }

    /// Whether the time of the next message has come.
    fn is_due(&self, now: Instant) -> bool {
        self.options.rate.is_none_or(|rate| {
            let passed = now.saturating_duration_since(self.report.began);
            f64::from(self.next) <= passed.as_secs_f64() * rate
        })
    }

    /// Opens missing connections, wakes paused workers, and ends connections beyond their time.
    fn tick(&mut self, now: Instant) {
        for index in 0..self.workers.len() {
            let worker = &self.workers[index];
            match &worker.connection {
                Some(connection) if now >= connection.deadline => {
                    self.part(index, Parting::Failed(Failure::TimedOut));
                }
                Some(connection) if connection.idle && self.is_due(now) => self.wake(index),
                Some(_) => {}
                None if worker.resume.is_some_and(|at| now < at) => {}
                None if worker.job.is_some() || self.has_more(now) => self.connect(index, now),
                None => {}
            }
        }
    }

    fn connect(&mut self, index: usize, now: Instant) {
        let opened = TcpStream::connect(self.options.target)
            .and_then(|stream| Link::new(stream, self.poll.registry(), Token(index)));
        let worker = &mut self.workers[index];
        worker.resume = None;
        match opened {
            Ok(link) => {
                worker.connection = Some(Connection {
                    link,
                    sender: Sender::new("load.bench.test", self.options.pipelining),
                    dot_at: None,
                    text_length: 0,
                    messages: 0,
                    greeted: false,
                    idle: false,
                    deadline: now + self.options.reply_timeout,
                });
            }
            Err(_) => {
                self.report.failures.connects += 1;
                self.rest(index);
            }
        }
    }

    /// Lets a worker pause after a failure.
    fn rest(&mut self, index: usize) {
        let worker = &mut self.workers[index];
        worker.pause = (worker.pause * 2).clamp(PAUSE_MIN, PAUSE_MAX);
        worker.resume = Some(Instant::now() + worker.pause);
    }

    fn handle_event(&mut self, event: &Event) {
        let Token(index) = event.token();
        let Some(connection) = self
            .workers
            .get_mut(index)
            .and_then(|w| w.connection.as_mut())
        else {
            return;
        };
        connection.link.note(event);
        self.go_on(index);
    }

    /// Begins the message whose time has come.
    fn wake(&mut self, index: usize) {
        if let Some(mut connection) = self.workers[index].connection.take() {
            self.begin(&mut connection, index);
            self.workers[index].connection = Some(connection);
        }
        self.go_on(index);
    }

    fn go_on(&mut self, index: usize) {
        let Some(mut connection) = self.workers[index].connection.take() else {
            return;
        };
        let parting = self
            .converse(&mut connection, index)
            .unwrap_or(Parting::Failed(Failure::Lost));
        self.workers[index].connection = Some(connection);
        self.part(index, parting);
    }

    /// Drives a connection as far as possible.
    fn converse(&mut self, connection: &mut Connection, index: usize) -> io::Result<Parting> {
        loop {
            match connection.sender.advance() {
                Turn::Input => {
                    flush(connection)?;
                    match connection.link.read(&mut connection.sender.input)? {
                        Readiness::Closed => return Ok(Parting::Failed(Failure::Lost)),
                        Readiness::Drained => return Ok(Parting::Stays),
                        Readiness::More => {}
                    }
                }
                Turn::TextQueued => {
                    connection.text_length = connection.sender.output.pending().len() as u64 - 3;
                    connection.dot_at = None;
                    flush(connection)?;
                }
                Turn::Ready => {
                    connection.greeted = true;
                    self.begin(connection, index);
                    if connection.idle {
                        return Ok(Parting::Stays);
                    }
                }
                Turn::Ended(outcome) => {
                    self.settle(connection, index, outcome);
                    if self.workers[index].resume.is_some() {
                        return Ok(Parting::Over);
                    }
                    self.begin(connection, index);
                    if connection.idle {
                        return Ok(Parting::Stays);
                    }
                }
                Turn::Broken { .. } => return Ok(Parting::Failed(Failure::Lost)),
                Turn::Over => return Ok(Parting::Over),
            }
        }
    }

    /// Begins the worker's message, the next message, or the end of the dialogue.
    fn begin(&mut self, connection: &mut Connection, index: usize) {
        let now = Instant::now();
        connection.deadline = now + self.options.reply_timeout;
        connection.dot_at = None;
        connection.idle = false;
        if self
            .options
            .messages_per_connection
            .is_some_and(|max| connection.messages >= max)
        {
            return connection.sender.quit();
        }
        if self.workers[index].job.is_none() && self.has_more(now) {
            connection.idle = !self.is_due(now);
            if connection.idle {
                return;
            }
            let id = MessageId::new(self.options.run, self.next);
            self.next += 1;
            self.workers[index].job = Some(Job {
                id,
                attempts: 0,
                may_be_doubled: false,
            });
        }
        let Some(job) = &mut self.workers[index].job else {
            return connection.sender.quit();
        };
        job.attempts += 1;
        connection.messages += 1;
        let sequence = job.id.sequence();
        let domains = &self.options.destinations;
        let domain = domains.start + sequence % domains.len().max(1) as u32;
        let recipients = [format!("user{}@d{domain}.bench.test", sequence % 100)];
        let id = job.id;
        connection
            .sender
            .begin("load@bench.test", &recipients, |out| {
                self.options.messages.write(id, out)
            });
    }

    fn settle(&mut self, connection: &Connection, index: usize, outcome: Outcome) {
        let now = Instant::now();
        let tolerant = self.options.tolerant;
        let worker = &mut self.workers[index];
        let Some(mut job) = worker.job.take() else {
            return;
        };
        match outcome {
            Outcome::Accepted => {
                worker.pause = Duration::ZERO;
                if let Some(dot_at) = connection.dot_at {
                    let taken = u64::try_from((now - dot_at).as_micros()).unwrap_or(u64::MAX);
                    self.report.reply_us.saturating_record(taken.max(1));
                }
                self.report.octets += connection.text_length;
                self.acknowledge(job, now);
            }
            Outcome::Refused {
                code,
                after_message,
            } => {
                let temporary = code < 500;
                *(if temporary {
                    &mut self.report.failures.temporary
                } else {
                    &mut self.report.failures.permanent
                }) += 1;
                if temporary && tolerant {
                    job.may_be_doubled |= after_message;
                    worker.job = Some(job);
                    self.rest(index);
                } else {
                    self.report.refused.push((job.id, code));
                }
            }
        }
    }

    fn acknowledge(&mut self, job: Job, at: Instant) {
        self.report.acked.push(Ack {
            id: job.id,
            at,
            attempts: job.attempts,
            may_be_doubled: job.may_be_doubled,
        });
        if let Some(file) = &mut self.acked_file {
            let doubt = if job.may_be_doubled {
                "doubled?"
            } else {
                "sure"
            };
            // A full disk shows in the flush at the end.
            let _ = writeln!(file, "{} {} {doubt}", job.id, job.attempts);
        }
        self.progress.add();
    }

    fn part(&mut self, index: usize, parting: Parting) {
        if matches!(parting, Parting::Stays) {
            return;
        }
        let worker = &mut self.workers[index];
        let Some(connection) = worker.connection.take() else {
            return;
        };
        if let Parting::Failed(failure) = parting {
            let failures = &mut self.report.failures;
            match failure {
                Failure::TimedOut => failures.timeouts += 1,
                Failure::Lost if connection.greeted => failures.lost += 1,
                Failure::Lost => failures.connects += 1,
            }
            if let Some(job) = &mut worker.job {
                // Before the final dot is sent the server cannot have accepted the message.
                job.may_be_doubled |= connection.sender.awaits_verdict()
                    && connection.sender.output.pending().is_empty();
                if !self.options.tolerant {
                    self.report.unresolved.push(job.id);
                    worker.job = None;
                }
            }
            self.rest(index);
        }
        connection.link.close(self.poll.registry());
        let now = Instant::now();
        let worker = &self.workers[index];
        if worker.resume.is_none() && (worker.job.is_some() || self.has_more(now)) {
            self.connect(index, now);
        }
    }

    fn finish(mut self) -> Result<LoadReport, LoadError> {
        let open = self
            .workers
            .iter()
            .filter_map(|worker| worker.job.map(|job| job.id));
        self.report.unresolved.extend(open);
        if let Some(mut file) = self.acked_file {
            let path = self.options.acked_file.clone().unwrap_or_default();
            file.flush()
                .map_err(|source| LoadError::AckedFile { path, source })?;
        }
        Ok(self.report)
    }
}

/// Writes the queued octets, and notes the time when the final dot has left.
fn flush(connection: &mut Connection) -> io::Result<()> {
    let flushed = connection.link.write(&mut connection.sender.output)?;
    if flushed && connection.dot_at.is_none() && connection.sender.awaits_verdict() {
        connection.dot_at = Some(Instant::now());
    }
    Ok(())
}
