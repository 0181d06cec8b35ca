//! The control socket of a mount: a JSON object per line in each direction. A request is `{"command": NAME}`, an answer
//! `{"ok": VALUE}` or `{"error": TEXT}`. By the mode of the state folder, the owner alone may connect.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use vere_process::failure::Failure;

use crate::args::StrategyWord;
use crate::change::{JoinOrder, LeaveOrder, SlotsOrder};

/// The longest line in either direction, in octets.
const LINE_MAX: u64 = 1 << 20;
/// Clients at the same time; further clients are sent away.
const CLIENTS_MAX: usize = 16;
/// Time for a request to arrive, and for an answer to leave.
const LINE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for the last answers before the end of the process.
const LAST_ANSWERS: Duration = Duration::from_secs(2);
/// Time between looks at the last answers.
const LOOK: Duration = Duration::from_millis(5);

/// A request to a mount.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
#[serde(tag = "command", rename_all = "snake_case")]
pub(crate) enum Request {
    /// The state of the volume.
    Status,
    /// Wait until everything is on the servers.
    Sync,
    /// Compare the rows with the mails of all accounts.
    Check {
        /// Whether every pack and commit is read.
        data: bool,
        /// Whether rows are corrected and copies made again.
        repair: bool,
    },
    /// Remove mails without any use.
    Collect,
    /// How far the check or the collection under way is.
    Progress,
    /// Tell the mode, after a change if asked for.
    Mode {
        /// Whether the mode shall be strong.
        strong: Option<bool>,
        /// The new strategy of all groups.
        #[serde(default)]
        strategy: Option<StrategyWord>,
    },
    /// The key slots and accounts that the volume lists.
    Facts,
    /// Change key slots.
    ChangeSlots(SlotsOrder),
    /// Take an account in.
    Join(JoinOrder),
    /// Let an account go.
    Leave(LeaveOrder),
    /// Unmount.
    Umount {
        /// Whether open files and calls under way fail.
        force: bool,
    },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Ok(Value),
    Error(String),
}

/// Answers requests, each on a new thread.
pub(crate) type Handler = Arc<dyn Fn(Request) -> Result<Value, String> + Send + Sync>;

/// The socket of a running mount; the file goes with the value.
#[derive(Debug)]
pub(crate) struct Server {
    path: PathBuf,
    /// Requests without an answer.
    unanswered: Arc<AtomicUsize>,
}

impl Server {
    /// Listens. The caller has the lock of the state folder, so an old socket is of an ended process.
    pub(crate) fn start(path: &Path, handler: Handler) -> io::Result<Self> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(path)?;
        let clients = Arc::new(AtomicUsize::new(0));
        let unanswered = Arc::new(AtomicUsize::new(0));
        let all = Arc::clone(&unanswered);
        let serve = move || {
            for client in listener.incoming().flatten() {
                let (handler, clients) = (Arc::clone(&handler), Arc::clone(&clients));
                let unanswered = Arc::clone(&all);
                if clients.fetch_add(1, Ordering::Relaxed) >= CLIENTS_MAX {
                    clients.fetch_sub(1, Ordering::Relaxed);
                    continue;
                }
                let talk = move || {
                    // A silent or vanished client is no concern of the mount.
                    let _gone = answer(&client, &handler, &unanswered);
                    clients.fetch_sub(1, Ordering::Relaxed);
                };
                // Without a thread the client sees the end of the connection.
                let _none = thread::Builder::new().name("fs-client".into()).spawn(talk);
            }
        };
        thread::Builder::new()
            .name("fs-control".into())
            .spawn(serve)?;
        Ok(Self {
            path: path.into(),
            unanswered,
        })
    }

    /// Lets the last answers leave, the one to the request for the unmount among them.
    pub(crate) fn finish(self) {
        let start = Instant::now();
        while self.unanswered.load(Ordering::Acquire) > 0 && start.elapsed() < LAST_ANSWERS {
            thread::sleep(LOOK);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The next mount removes a file left behind.
        let _stays = fs::remove_file(&self.path);
    }
}

fn answer(client: &UnixStream, handler: &Handler, unanswered: &AtomicUsize) -> io::Result<()> {
    client.set_read_timeout(Some(LINE_TIMEOUT))?;
    client.set_write_timeout(Some(LINE_TIMEOUT))?;
    let mut line = String::new();
    BufReader::new(client.take(LINE_MAX)).read_line(&mut line)?;
    unanswered.fetch_add(1, Ordering::AcqRel);
    let written = write_answer(client, &line, handler);
    unanswered.fetch_sub(1, Ordering::AcqRel);
    written
}

fn write_answer(mut client: &UnixStream, line: &str, handler: &Handler) -> io::Result<()> {
    let answer = match serde_json::from_str(line) {
        Ok(request) => match handler(request) {
            Ok(value) => Answer::Ok(value),
            Err(text) => Answer::Error(text),
        },
        Err(error) => Answer::Error(format!("expected a request; found {error}")),
    };
    let mut line = serde_json::to_vec(&answer)?;
    line.push(b'\n');
    client.write_all(&line)
}

/// Asks a mount; `None` without a listener.
pub(crate) fn ask(
    path: &Path,
    request: &Request,
    patience: Option<Duration>,
) -> Result<Option<Value>, Failure> {
    let wrong = |error: io::Error| Failure::new(format!("{}: {error}", path.display()));
    let stream = match UnixStream::connect(path) {
        Ok(stream) => stream,
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => return Ok(None),
            _ => return Err(wrong(error)),
        },
    };
    stream.set_read_timeout(patience).map_err(wrong)?;
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    (&stream).write_all(&line).map_err(wrong)?;
    let mut line = String::new();
    BufReader::new((&stream).take(LINE_MAX))
        .read_line(&mut line)
        .map_err(wrong)?;
    match serde_json::from_str(&line) {
        Ok(Answer::Ok(value)) => Ok(Some(value)),
        Ok(Answer::Error(text)) => Err(Failure::new(text)),
        Err(_) if line.is_empty() => Err(Failure::new(
            "expected an answer of the mount; found the end of the connection",
        )),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Request, Server, ask};
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;
    use std::time::Duration;

    #[test]
    fn requests_are_answered() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control.sock");
        let longest = Some(Duration::from_secs(10));
        assert!(ask(&path, &Request::Status, longest).unwrap().is_none());
        let handler = |request| match request {
            Request::Umount { force: true } => Err("refused".to_owned()),
            other => Ok(serde_json::json!({ "got": format!("{other:?}") })),
        };
        let server = Server::start(&path, Arc::new(handler)).unwrap();
        let answer = ask(&path, &Request::Sync, longest).unwrap().unwrap();
        assert_eq!(answer["got"], "Sync");
        let refused = ask(&path, &Request::Umount { force: true }, longest).unwrap_err();
        assert_eq!(refused.to_string(), "refused");
        // A client without a request holds up nobody.
        let _silent = UnixStream::connect(&path).unwrap();
        assert!(ask(&path, &Request::Status, longest).unwrap().is_some());
        server.finish();
        assert!(!path.exists());
    }

    #[test]
    fn the_last_answer_leaves() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control.sock");
        let (begun, begins) = std::sync::mpsc::channel();
        let slowly = move |_| {
            begun.send(()).unwrap();
            std::thread::sleep(Duration::from_millis(100));
            Ok(serde_json::json!({ "clean": true }))
        };
        let server = Server::start(&path, Arc::new(slowly)).unwrap();
        let asked = path.clone();
        let asker =
            std::thread::spawn(move || ask(&asked, &Request::Umount { force: false }, None));
        begins.recv().unwrap();
        let start = std::time::Instant::now();
        server.finish();
        assert!(start.elapsed() >= Duration::from_millis(50));
        assert_eq!(asker.join().unwrap().unwrap().unwrap()["clean"], true);
    }
}
