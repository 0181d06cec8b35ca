//! The writer of lines: most lines at once, lines about single messages and logins in batches.
//!
//! There are thousands of the latter in a second, and a system call for each line would add to the cost of a
//! message. The lines stay in memory for at most [`WAIT`] and are written by a separate thread, in pieces
//! of whole lines that fit a single write to a pipe, so that lines of several processes do not mix. Any other
//! line is written after all earlier lines.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use tracing::Metadata;
use tracing_subscriber::fmt::MakeWriter;

/// The target of the events that may wait in memory: the outcomes of single messages, recipients and logins.
pub const MAIL_TARGET: &str = "vere::mail";
/// How long a line waits at most.
const WAIT: Duration = Duration::from_millis(50);
/// The most octets waiting; further lines are counted and dropped: a slow reader of the log blocks no thread.
const WAITING_OCTETS_MAX: usize = 1024 * 1024;
/// The most octets that a pipe accepts in one piece (`PIPE_BUF`).
const PIECE_OCTETS_MAX: usize = 4096;

/// Whether every line is written at once.
static AT_ONCE: AtomicBool = AtomicBool::new(false);

/// Writes every line at once from now on, for a process that cannot start the thread behind a sandbox.
pub fn write_at_once() {
    AT_ONCE.store(true, Ordering::Relaxed);
}

/// The queue of lines; clones share the queue.
#[derive(Debug)]
pub(super) struct Lines<W> {
    shared: Arc<Shared<W>>,
}

impl<W> Clone for Lines<W> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

#[derive(Debug)]
struct Shared<W> {
    waiting: Mutex<Waiting>,
    /// The first line waits.
    begun: Condvar,
    /// The lock is held while writing, and waiting lines are taken only under the lock: so the order is kept.
    out: Mutex<W>,
    /// Most processes never have a line that waits, and need no thread.
    thread: Once,
}

#[derive(Debug, Default)]
struct Waiting {
    octets: Vec<u8>,
    lost: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code panics while holding a lock; the state is consistent in any case.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<W: Write + Send + 'static> Lines<W> {
    /// Starts the thread that writes waiting lines; without the thread, lines wait until other lines are
    /// written.
    fn start(&self) {
        self.shared.thread.call_once(|| {
            let shared = Arc::clone(&self.shared);
            let thread = Builder::new().name("log".to_owned());
            if let Err(error) = thread.spawn(move || shared.run()) {
                let _ = writeln!(lock(&self.shared.out), "no thread for the log: {error}");
            }
        });
    }
}

impl<W: Write> Lines<W> {
    pub(super) fn to(out: W) -> Self {
        Self {
            shared: Arc::new(Shared {
                waiting: Mutex::default(),
                begun: Condvar::new(),
                out: Mutex::new(out),
                thread: Once::new(),
            }),
        }
    }

    /// Writes what waits.
    pub(super) fn flush(&self) {
        // Nobody is left to be told when the log cannot be written.
        let _ = self.shared.drain(&mut lock(&self.shared.out));
    }
}

impl<W: Write> Shared<W> {
    fn run(&self) {
        loop {
            let mut waiting = lock(&self.waiting);
            while waiting.octets.is_empty() {
                waiting = self
                    .begun
                    .wait(waiting)
                    .unwrap_or_else(PoisonError::into_inner);
            }
            drop(waiting);
            std::thread::sleep(WAIT);
            let _ = self.drain(&mut lock(&self.out));
        }
    }

    fn append(&self, line: &[u8]) {
        let mut waiting = lock(&self.waiting);
        if waiting.octets.len() + line.len() > WAITING_OCTETS_MAX {
            waiting.lost += 1;
            return;
        }
        let first = waiting.octets.is_empty();
        waiting.octets.extend_from_slice(line);
        drop(waiting);
        if first {
            self.begun.notify_one();
        }
    }

    fn drain(&self, out: &mut W) -> io::Result<()> {
        let Waiting { octets, lost } = std::mem::take(&mut *lock(&self.waiting));
        let mut rest = octets.as_slice();
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(piece(rest));
            out.write_all(piece)?;
            rest = behind;
        }
        if lost > 0 {
            writeln!(
                out,
                "{lost} lines about mail dropped: the log was read too slowly"
            )?;
        }
        Ok(())
    }
}

/// The octets of as many whole lines as a pipe takes at once, of one at least.
fn piece(octets: &[u8]) -> usize {
    let head = &octets[..octets.len().min(PIECE_OCTETS_MAX)];
    match head.iter().rposition(|octet| *octet == b'\n') {
        Some(end) => end + 1,
        None => {
            let end = octets.iter().position(|octet| *octet == b'\n');
            end.map_or(octets.len(), |end| end + 1)
        }
    }
}

/// Takes one line.
#[derive(Debug)]
pub(super) struct LineWriter<'a, W> {
    lines: &'a Lines<W>,
    waits: bool,
}

impl<W: Write + Send + 'static> Write for LineWriter<'_, W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let shared = &self.lines.shared;
        if self.waits && !AT_ONCE.load(Ordering::Relaxed) {
            self.lines.start();
            shared.append(line);
        } else {
            let mut out = lock(&shared.out);
            shared.drain(&mut out)?;
            out.write_all(line)?;
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a, W: Write + Send + 'static> MakeWriter<'a> for Lines<W> {
    type Writer = LineWriter<'a, W>;

    fn make_writer(&'a self) -> Self::Writer {
        LineWriter {
            lines: self,
            waits: false,
        }
    }

    fn make_writer_for(&'a self, event: &Metadata<'_>) -> Self::Writer {
        LineWriter {
            lines: self,
            waits: event.target() == MAIL_TARGET,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    /// Hands over every write.
    struct Writes(Sender<Vec<u8>>);

    impl Write for Writes {
        fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
            let _ = self.0.send(octets.to_vec());
            Ok(octets.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn write(lines: &Lines<Writes>, waits: bool, line: &[u8]) {
        if waits {
            // Without the thread, so that no line is written by itself.
            lines.shared.append(line);
            return;
        }
        let mut writer = LineWriter { lines, waits };
        writer.write_all(line).expect("written");
    }

    #[test]
    fn lines_about_mail_wait_and_the_order_stays() {
        let (sender, writes) = channel();
        let lines = Lines::to(Writes(sender));
        write(&lines, true, b"one\n");
        write(&lines, true, b"two\n");
        assert!(writes.try_recv().is_err());
        write(&lines, false, b"three\n");
        let written: Vec<_> = writes.try_iter().collect();
        assert_eq!(written, [b"one\ntwo\n".to_vec(), b"three\n".to_vec()]);
        write(&lines, true, b"four\n");
        lines.flush();
        assert_eq!(writes.try_recv().expect("a write"), b"four\n");
    }

    #[test]
    fn the_thread_writes_what_nobody_else_does() {
        let (sender, writes) = channel();
        let lines = Lines::to(Writes(sender));
        let mut writer = LineWriter {
            lines: &lines,
            waits: true,
        };
        writer.write_all(b"one\n").expect("taken");
        let patience = Duration::from_secs(60);
        assert_eq!(writes.recv_timeout(patience).expect("a write"), b"one\n");
    }

    #[test]
    fn pieces_are_whole_lines_that_a_pipe_takes() {
        let (sender, writes) = channel();
        let lines = Lines::to(Writes(sender));
        let long = [vec![b'x'; 3 * PIECE_OCTETS_MAX], vec![b'\n']].concat();
        let mut all = Vec::new();
        for line in [&b"a\n".repeat(3000)[..], &long, b"end\n"] {
            write(&lines, true, line);
            all.extend_from_slice(line);
        }
        lines.flush();
        let written: Vec<_> = writes.try_iter().collect();
        for piece in &written {
            assert!(piece.ends_with(b"\n"));
            assert!(piece.len() <= PIECE_OCTETS_MAX || *piece == long);
        }
        assert_eq!(written.concat(), all);
    }

    #[test]
    fn what_does_not_fit_is_counted_and_told() {
        let (sender, writes) = channel();
        let lines = Lines::to(Writes(sender));
        let line = [vec![b'x'; PIECE_OCTETS_MAX - 1], vec![b'\n']].concat();
        let fit = WAITING_OCTETS_MAX / PIECE_OCTETS_MAX;
        for _ in 0..fit + 3 {
            write(&lines, true, &line);
        }
        lines.flush();
        let written: Vec<u8> = writes.try_iter().flatten().collect();
        let told = String::from_utf8_lossy(&written[fit * PIECE_OCTETS_MAX..]).into_owned();
        assert!(told.starts_with("3 lines about mail"), "{told}");
        write(&lines, true, &line);
        lines.flush();
        assert_eq!(writes.try_iter().flatten().count(), PIECE_OCTETS_MAX);
    }
}
