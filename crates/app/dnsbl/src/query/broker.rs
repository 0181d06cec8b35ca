//! Answers kept by the broker of the running system.

use std::io::{self, Read as _, Write as _};
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use vere_handoff::question::{Answer, Keeping, Kept, Name, Question, Reader};
use vere_lists::Entry;

/// Longest wait for the broker, whose answers are immediate.
const PATIENCE: Duration = Duration::from_secs(2);
/// The word for a silent broker.
const NOT_ASKED: &str = "not asked: the system does not run, or belongs to another user";

/// Returns what the broker keeps of each list.
pub(super) fn kept(socket: &Path, client: IpAddr, entries: &[Entry]) -> Vec<&'static str> {
    let asked = ask(socket, client, entries);
    asked.unwrap_or_else(|_| vec![NOT_ASKED; entries.len()])
}

fn ask(socket: &Path, client: IpAddr, entries: &[Entry]) -> io::Result<Vec<&'static str>> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let wrong = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    let mut questions = Vec::new();
    for (id, entry) in (0..).zip(entries) {
        let zone = Name::new(&entry.zone).map_err(wrong)?;
        Question::Keeping(Keeping { zone, client }).encode(id, &mut questions);
    }
    stream.write_all(&questions)?;
    let mut words = vec![NOT_ASKED; entries.len()];
    let mut reader = Reader::default();
    let mut missing = entries.len();
    while missing > 0 {
        let octets = stream.read(reader.space())?;
        if octets == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        reader.filled(octets);
        while let Some(frame) = reader.frame().map_err(wrong)? {
            let place = usize::try_from(frame.id).ok();
            if let Some(word) = place.and_then(|place| words.get_mut(place)) {
                *word = word_of(&Answer::decode(&frame).map_err(wrong)?);
            }
            missing = missing.saturating_sub(1);
        }
    }
    Ok(words)
}

const fn word_of(answer: &Answer) -> &'static str {
    match answer {
        Answer::Kept(Kept::Codes) => "hit: the answer about this address",
        Answer::Kept(Kept::Map) => "hit: the map",
        Answer::Kept(Kept::Failure) => "hit: a failure of a moment ago",
        Answer::Kept(Kept::ListsEverybody) => "left out: lists 127.0.0.1, and so everybody",
        Answer::Kept(Kept::Nothing) => "miss",
        Answer::Kept(Kept::NoSuchList) => "not a list of the running system",
        _ => NOT_ASKED,
    }
}
