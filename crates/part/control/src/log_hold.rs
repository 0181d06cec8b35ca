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
