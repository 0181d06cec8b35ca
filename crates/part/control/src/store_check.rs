//! A check of the running mail store.
//!
//! The request [`StoreRequest::Check`] is answered by a [`StoreProgress`] in a line now and then, and by an [`Answer`] at
//! the end. The store stops when the connection ends.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::requests::StoreRequest;
use crate::{ANSWER_TIMEOUT, Answer, AskError, Peer, is_nobody, understood};

/// How long the store may be silent: before a check a large segment may be written to its end.
const SILENCE: Duration = Duration::from_secs(330);
/// Longest line: the figures with a thousand findings.
const LINE_MAX: u64 = 4 * 1024 * 1024;

/// How far a check is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreProgress {
    /// What is read now.
    pub stage: String,
    /// Octets read.
    pub done: u64,
    /// Octets to be read at most; 0 where the number is unknown.
    pub all: u64,
}

impl StoreProgress {
    /// A state of the work.
    #[must_use]
    pub fn new(stage: &str, done: u64, all: u64) -> Self {
        Self {
            stage: stage.to_owned(),
            done,
            all,
        }
    }
}

/// A line of the store.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum CheckLine {
    /// The check goes on.
    Progress(StoreProgress),
    /// The check has ended.
    End(Answer),
}

/// Lets the mail store behind `socket` check itself, and returns the figures; `None` when nobody listens there.
///
/// # Errors
/// When the store is silent for long, or refuses: the reason is its text.
pub fn check_store(
    socket: &Path,
    told: &dyn Fn(&StoreProgress),
) -> Result<Option<serde_json::Value>, AskError> {
    match talk(socket, told) {
        Err(error) if is_nobody(&error) => Ok(None),
        talked => understood(socket, Peer::Store, talked).map(Some),
    }
}

fn talk(socket: &Path, told: &dyn Fn(&StoreProgress)) -> io::Result<Answer> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(SILENCE))?;
    stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
    let mut line = serde_json::to_vec(&StoreRequest::Check)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    let mut lines = BufReader::new(stream);
    loop {
        let mut line = String::new();
        lines.by_ref().take(LINE_MAX).read_line(&mut line)?;
        if line.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match serde_json::from_str(&line)? {
            CheckLine::Progress(progress) => told(&progress),
            CheckLine::End(answer) => return Ok(answer),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::os::unix::net::UnixListener;

    use serde_json::json;

    use super::*;

    /// The progress and the answer of a store with these lines.
    fn learned(lines: &'static str) -> (Vec<StoreProgress>, Result<serde_json::Value, String>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let store = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = String::new();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            reader.read_line(&mut request).unwrap();
            stream.write_all(lines.as_bytes()).unwrap();
            request
        });
        let seen = RefCell::new(Vec::new());
        let answer = check_store(&path, &|progress| seen.borrow_mut().push(progress.clone()));
        assert_eq!(store.join().unwrap(), "{\"command\":\"check\"}\n");
        let answer = answer
            .map(Option::unwrap)
            .map_err(|error| error.to_string());
        (seen.into_inner(), answer)
    }

    #[test]
    fn lines_of_progress_come_before_the_figures() {
        let (seen, answer) = learned(
            "{\"stage\":\"log\",\"done\":1,\"all\":7}\n{\"stage\":\"messages\",\"done\":3,\"all\":7}\n{\"ok\":{\"accounts\":2}}\n",
        );
        let wanted = [
            StoreProgress::new("log", 1, 7),
            StoreProgress::new("messages", 3, 7),
        ];
        assert_eq!(seen, wanted);
        assert_eq!(answer.unwrap(), json!({ "accounts": 2 }));
    }

    #[test]
    fn a_refusal_and_an_end_on_the_way_are_errors() {
        let (_, answer) = learned("{\"error\":\"another check\"}\n");
        assert!(answer.unwrap_err().contains("another check"));
        let (seen, answer) = learned("{\"stage\":\"log\",\"done\":1,\"all\":7}\n");
        assert_eq!(seen.len(), 1);
        assert!(
            answer.unwrap_err().contains("no answer"),
            "an end without figures"
        );
    }

    #[test]
    fn without_a_store_there_is_no_check() {
        let folder = tempfile::tempdir().unwrap();
        let answer = check_store(&folder.path().join("store.sock"), &|_| {});
        assert!(answer.unwrap().is_none());
    }
}
