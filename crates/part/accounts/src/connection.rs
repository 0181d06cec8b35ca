//! A connection of a pool: octets between the stream and the session, with deadlines.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::ReadBuf;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::time::{Instant, sleep};
use vere_imap::client::Client;
use vere_process::failure::Failure;

use crate::fault;
use crate::folder::Folder;
use crate::link::Link;
use crate::progress::{Progress, Times};
use crate::session::{Heard, Session, SessionEnd};
use crate::stream::Stream;
use crate::work::{Answers, Task};

/// Idle time before a NOOP keeps the connection alive.
const KEEP_ALIVE: Duration = Duration::from_secs(120);

/// Octets read at once.
const READ_MAX: usize = 256 * 1024;

/// Pieces written at once.
const SLICES_MAX: usize = 16;

/// The report of a connection to the pool.
#[derive(Debug)]
pub(crate) enum Report {
    /// Requests are answered.
    Answers(Answers),
    /// The server is silent although a command is under way.
    Silent,
    /// The end of the connection: the reason, and the milliseconds of patience, if the server asked for patience.
    Ended(String, Option<u64>),
}

/// Carries out tasks until the connection ends or the pool drops `tasks`.
pub(crate) async fn run(
    number: usize,
    link: Link,
    folder: Folder,
    times: Times,
    tasks: UnboundedReceiver<Box<dyn Task>>,
    reports: UnboundedSender<(usize, Report)>,
) {
    let mut pool = Pool {
        number,
        tasks,
        reports,
    };
    let mut progress = Progress::new(times);
    let Some((mut stream, client, unread)) = link.into_parts() else {
        return;
    };
    let mut session = Session::new(client, folder);
    let ended = match session.input(&unread) {
        Ok(()) => drive(&mut pool, stream.as_mut(), &mut session, &mut progress).await,
        Err(end) => Some(of_end(end)),
    };
    if let Some((reason, patience)) = ended {
        // Earlier answers count.
        let _ = pool.report(Report::Answers(session.answers()));
        let _ = pool.report(Report::Ended(reason, patience));
    }
}

/// The way from and to the pool.
struct Pool {
    number: usize,
    tasks: UnboundedReceiver<Box<dyn Task>>,
    reports: UnboundedSender<(usize, Report)>,
}

impl Pool {
    /// Whether the pool still wants reports.
    fn report(&self, report: Report) -> bool {
        self.reports.send((self.number, report)).is_ok()
    }
}

fn of_end(end: SessionEnd) -> (String, Option<u64>) {
    let patience = match &end {
        SessionEnd::Bye(status) => fault::patience(status),
        _ => None,
    };
    (Failure::from(end).to_string(), patience)
}

/// The reason of the end; `None` when the pool wants no more.
async fn drive(
    pool: &mut Pool,
    stream: &mut dyn Stream,
    session: &mut Session,
    progress: &mut Progress,
) -> Option<(String, Option<u64>)> {
    let mut buffer = vec![0; READ_MAX].into_boxed_slice();
    let mut unflushed = false;
    let mut silent = false;
    loop {
        let answers = session.answers();
        if !answers.is_empty() && !pool.report(Report::Answers(answers)) {
            return None;
        }
        let waits = session.waits();
        let pause = match (waits, silent) {
            (true, false) => progress.until_silent().min(progress.left()),
            (true, true) => progress.left(),
            (false, _) => KEEP_ALIVE,
        };
        let begin = Instant::now();
        tokio::select! {
            moved = exchange(stream, session.client(), &mut unflushed, &mut buffer) => {
                let (written, read) = match moved {
                    Ok(moved) => moved,
                    Err(error) => return Some((error.to_string(), None)),
                };
                progress.spent(begin.elapsed());
                silent = false;
                session.client().sent(written);
                let (heard, gives) = (session.heard(), session.gives());
                let reads = session.reads_literal();
                if let Err(end) = session.input(buffer.get(..read).unwrap_or_default()) {
                    return Some(of_end(end));
                }
                progress.moved(written, gives);
                progress.moved(read, reads || session.reads_literal());
                note(progress, heard, session.heard());
            }
            task = pool.tasks.recv() => {
                progress.spent(begin.elapsed());
                if !waits {
                    progress.restart();
                    silent = false;
                }
                session.begin(task?);
            }
            () = sleep(pause) => {
                if !waits {
                    session.keep_alive();
                    progress.restart();
                    continue;
                }
                progress.spent(begin.elapsed());
                if progress.left().is_zero() {
                    return Some((progress.reason(), None));
                }
                if !silent && progress.until_silent().is_zero() {
                    silent = true;
                    let _ = pool.report(Report::Silent);
                }
            }
        }
        // Octets in turn must not put off the end.
        if session.waits() && progress.left().is_zero() {
            return Some((progress.reason(), None));
        }
    }
}

/// Notes responses, answers to requests, and ends of commands.
const fn note(progress: &mut Progress, before: Heard, now: Heard) {
    if now.ended != before.ended || now.taken != before.taken {
        progress.restart();
    } else if now.said != before.said {
        progress.said();
    }
}

/// Writes or reads some octets, whichever is possible first; the octets written and read.
async fn exchange(
    stream: &mut dyn Stream,
    client: &Client,
    unflushed: &mut bool,
    buffer: &mut [u8],
) -> io::Result<(usize, usize)> {
    let output = client.output_slices(SLICES_MAX);
    poll_fn(|context| {
        let written = poll_output(stream, context, &output, unflushed)?;
        let mut read = ReadBuf::new(buffer);
        match Pin::new(&mut *stream).poll_read(context, &mut read) {
            Poll::Ready(Ok(())) if read.filled().is_empty() => {
                Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()))
            }
            Poll::Ready(Ok(())) => Poll::Ready(Ok((written, read.filled().len()))),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending if written > 0 => Poll::Ready(Ok((written, 0))),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Writes without waiting; the octets written.
fn poll_output(
    stream: &mut dyn Stream,
    context: &mut Context<'_>,
    output: &[IoSlice<'_>],
    unflushed: &mut bool,
) -> io::Result<usize> {
    if !output.is_empty() {
        // Within TLS, the first piece only.
        return match Pin::new(&mut *stream).poll_write_vectored(context, output) {
            Poll::Ready(Ok(0)) => Err(io::ErrorKind::WriteZero.into()),
            Poll::Ready(written) => {
                *unflushed = true;
                written
            }
            Poll::Pending => Ok(0),
        };
    }
    // Within TLS, written octets may still wait for the socket.
    if *unflushed && let Poll::Ready(flushed) = Pin::new(stream).poll_flush(context) {
        flushed?;
        *unflushed = false;
    }
    Ok(0)
}
