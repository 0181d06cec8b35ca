//! A hold on the log of the running mail store, for a backup.
//!
//! The request [`StoreRequest::HoldLog`] is answered by a [`HeldLog`], and the connection stays open: until it ends,
//! the store reclaims no segment, so that the named files keep their octets. A line from the client ends the hold, and
//! the answer confirms that it lasted. The store ends a hold by itself when the disk is nearly full or
//! `store.backup_hold_max` has passed; the answer is the reason then.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::requests::StoreRequest;
use crate::{ANSWER_TIMEOUT, Answer, AskError, Peer, is_nobody, understood};

/// A file of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldFile {
    /// The name in `<data>/store/log`.
    pub name: String,
    /// The octets that belong to the held state, from the beginning of the file.
    pub octets: u64,
}

/// The log of the mail store as of one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldLog {
    /// The id of the log, in 16 hexadecimal digits.
    pub log: String,
    /// The position before which every change was safe at that moment: everything acknowledged until then.
    pub synced: u64,
    /// The files with all of it, in the order of positions.
    pub files: Vec<HeldFile>,
}

/// A hold that the store keeps until it is released or dropped.
#[derive(Debug)]
pub struct LogHold {
    socket: PathBuf,
    stream: BufReader<UnixStream>,
}

impl LogHold {
    /// Asks the mail store behind `socket` to hold its log; `None` when nobody listens there.
    ///
    /// # Errors
    /// When the store does not answer within `patience`, or refuses: another backup holds the log.
    pub fn take(socket: &Path, patience: Duration) -> Result<Option<(Self, HeldLog)>, AskError> {
        let asked = ask(socket, patience);
        let (stream, answer) = match asked {
            Err(error) if is_nobody(&error) => return Ok(None),
            Err(error) => return understood(socket, Peer::Store, Err(error)).map(|_| None),
            Ok(asked) => asked,
        };
        let value = understood(socket, Peer::Store, Ok(answer))?;
        let held = serde_json::from_value(value).map_err(AskError::Form)?;
        let hold = Self {
            socket: socket.to_owned(),
            stream,
        };
        Ok(Some((hold, held)))
    }

    /// Compares, without waiting, whether the store still keeps the hold. A store that ended the hold, as on a nearly full
    /// disk, needs the space that a backup would go on taking.
    ///
    /// # Errors
    /// The store's reason, once the hold has ended.
    pub fn check(&mut self) -> Result<(), AskError> {
        let unasked = match self.is_answered() {
            Ok(false) => return Ok(()),
            Ok(true) => read_answer(&mut self.stream),
            Err(error) => Err(error),
        };
        // Whatever came without a question, the hold is over.
        understood(&self.socket, Peer::Store, unasked).and(Err(AskError::NoAnswer {
            peer: Peer::Store,
            socket: self.socket.clone(),
        }))
    }

    /// Whether the store has sent an answer, or closed its side.
    fn is_answered(&mut self) -> io::Result<bool> {
        self.stream.get_ref().set_nonblocking(true)?;
        let pending = match self.stream.fill_buf() {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        };
        self.stream.get_ref().set_nonblocking(false)?;
        pending
    }

    /// Ends the hold.
    ///
    /// # Errors
    /// When the hold had ended before: what was read of the log meanwhile may be of different moments.
    pub fn release(mut self) -> Result<(), AskError> {
        let confirmed = self.confirmed();
        understood(&self.socket, Peer::Store, confirmed).map(drop)
    }

    fn confirmed(&mut self) -> io::Result<Answer> {
        let stream = self.stream.get_mut();
        stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        // A store that ended the hold has closed its side; its reason can still be read.
        let _ = stream.write_all(b"\n");
        read_answer(&mut self.stream)
    }
}

fn ask(socket: &Path, patience: Duration) -> io::Result<(BufReader<UnixStream>, Answer)> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
    let mut line = serde_json::to_vec(&StoreRequest::HoldLog)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    let mut stream = BufReader::new(stream);
    let answer = read_answer(&mut stream)?;
    Ok((stream, answer))
}

fn read_answer(stream: &mut BufReader<UnixStream>) -> io::Result<Answer> {
    let mut line = String::new();
    stream.read_line(&mut line)?;
    if line.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(serde_json::from_str(&line)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use serde_json::json;

    use super::*;

    /// The hold of a store that answers with these lines, the first at once, each other after a word; then the store goes.
    fn hold(
        answers: Vec<Answer>,
    ) -> (
        LogHold,
        std::sync::mpsc::Sender<()>,
        std::thread::JoinHandle<()>,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let (word, words) = std::sync::mpsc::channel();
        let store = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = String::new();
            BufReader::new(stream.try_clone().unwrap())
                .read_line(&mut request)
                .unwrap();
            for (number, answer) in answers.into_iter().enumerate() {
                if number > 0 {
                    words.recv().unwrap();
                }
                let mut line = serde_json::to_vec(&answer).unwrap();
                line.push(b'\n');
                stream.write_all(&line).unwrap();
            }
            let _ = words.recv();
        });
        let (hold, held) = LogHold::take(&path, ANSWER_TIMEOUT).unwrap().unwrap();
        assert_eq!(held.synced, 7);
        (hold, word, store)
    }

    fn held() -> Answer {
        Answer::Ok(json!({ "log": "0000000000000001", "synced": 7, "files": [] }))
    }

    #[test]
    fn the_end_of_a_hold_is_seen_with_its_reason() {
        let reason = "the disk is nearly full".to_owned();
        let (mut hold, word, store) = hold(vec![held(), Answer::Error(reason.clone())]);
        hold.check().unwrap();
        hold.check().unwrap();
        word.send(()).unwrap();
        word.send(()).unwrap();
        store.join().unwrap();
        assert!(matches!(hold.check(), Err(AskError::Refused(text)) if text == reason));
    }

    #[test]
    fn a_store_that_goes_ends_the_hold() {
        let (mut hold, word, store) = hold(vec![held()]);
        hold.check().unwrap();
        drop(word);
        store.join().unwrap();
        assert!(matches!(hold.check(), Err(AskError::NoAnswer { .. })));
    }
}
