//! A name server whose answers a test chooses: records, nothing, errors, and lies.

use std::fmt;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The type A.
pub const A: u16 = 1;
/// The type TXT.
pub const TXT: u16 = 16;
/// The type AAAA.
pub const AAAA: u16 = 28;

/// Octets of the head of a message (RFC 1035 section 4.1.1).
const HEAD: usize = 12;

/// A received question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The name as it was written, without the last dot.
    pub name: String,
    /// The type.
    pub kind: u16,
    /// The id of the message.
    pub id: u16,
    /// The port from which the question came.
    pub port: u16,
}

/// What the server says to a question.
#[derive(Debug, Clone)]
pub enum Said {
    /// Records with this time to live in seconds, each by its data.
    Records(u32, Vec<Vec<u8>>),
    /// The name does not exist; an SOA record has this time to live and MINIMUM.
    NoSuchName(u32),
    /// The name has no such record; with an SOA record as before.
    NoData(u32),
    /// SERVFAIL.
    Failure,
    /// Nothing at all.
    Silence,
    /// The inner answer, behind a lie: a record under a wrong id and from a wrong port.
    Forged(Vec<u8>, Box<Self>),
    /// The record, with the question in lower case: an answer of somebody without sight of the question.
    WrongCase(Vec<u8>),
    /// An answer whose name points to itself.
    LoopingPointer,
    /// A message of 4,000 octets, all 0xff behind the head.
    Garbage,
}

/// The data of an A record.
#[must_use]
pub fn code(last: u8) -> Vec<u8> {
    vec![127, 0, 0, last]
}

/// The data of a TXT record of one string.
#[must_use]
pub fn text(text: &str) -> Vec<u8> {
    let octets = &text.as_bytes()[..text.len().min(255)];
    [&[octets.len() as u8][..], octets].concat()
}

/// A server on a free port; the drop ends the server.
pub struct NameServer {
    /// Where the server listens, for UDP alone.
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for NameServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NameServer")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl NameServer {
    /// Starts a server; the function gets the name in lower case without the last dot, and the type.
    ///
    /// # Errors
    /// When the system gives no sockets.
    pub fn start(answer: impl Fn(&str, u16) -> Said + Send + 'static) -> io::Result<Self> {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        let stranger = UdpSocket::bind("127.0.0.1:0")?;
        let patience = Some(Duration::from_millis(50));
        socket.set_read_timeout(patience)?;
        let address = socket.local_addr()?;
        let (asked, ends) = (
            Arc::<Mutex<Vec<Asked>>>::default(),
            Arc::new(AtomicBool::new(false)),
        );
        let (heard, stop) = (Arc::clone(&asked), Arc::clone(&ends));
        let serve = move || {
            let mut octets = [0; 4_096];
            while !stop.load(Ordering::Relaxed) {
                let Ok((length, client)) = socket.recv_from(&mut octets) else {
                    continue;
                };
                let Some((question, end)) = read(&octets[..length], client.port()) else {
                    continue;
                };
                let said = answer(&question.name.to_ascii_lowercase(), question.kind);
                let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
                heard.push(question);
                drop(heard);
                let speak = |from: &UdpSocket, message: &[u8]| {
                    let _ = from.send_to(message, client);
                };
                say(
                    said,
                    &octets[..end],
                    &|message| speak(&socket, message),
                    &|message| {
                        speak(&stranger, message);
                    },
                );
            }
        };
        Ok(Self {
            address,
            asked,
            ends,
            thread: Some(std::thread::spawn(serve)),
        })
    }

    /// The questions so far.
    #[must_use]
    pub fn asked(&self) -> Vec<Asked> {
        self.asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The number of questions so far about a name, whatever its case, and a type.
    #[must_use]
    pub fn count(&self, name: &str, kind: u16) -> usize {
        let asked = self.asked();
        let of = |asked: &&Asked| asked.kind == kind && asked.name.eq_ignore_ascii_case(name);
        asked.iter().filter(of).count()
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Reads the question, and the octets of head and question.
fn read(octets: &[u8], port: u16) -> Option<(Asked, usize)> {
    let id = u16::from_be_bytes(*octets.first_chunk()?);
    let mut labels = Vec::new();
    let mut at = HEAD;
    loop {
        let length = usize::from(*octets.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        labels.push(String::from_utf8_lossy(octets.get(at..at + length)?).into_owned());
        at += length;
    }
    let kind = u16::from_be_bytes(*octets.get(at..)?.first_chunk()?);
    let name = labels.join(".");
    octets.get(at + 4 - 1)?;
    Some((
        Asked {
            name,
            kind,
            id,
            port,
        },
        at + 4,
    ))
}

fn say(said: Said, question: &[u8], speak: &impl Fn(&[u8]), lie: &impl Fn(&[u8])) {
    match said {
        Said::Silence => {}
        Said::Records(ttl, records) => speak(&message(question, 0, ttl, &records)),
        Said::NoSuchName(ttl) => speak(&nothing(question, 3, ttl)),
        Said::NoData(ttl) => speak(&nothing(question, 0, ttl)),
        Said::Failure => speak(&message(question, 2, 0, &[])),
        Said::Forged(record, then) => {
            let mut forged = message(question, 0, 3_600, &[record]);
            lie(&forged);
            forged[0] ^= 0x55;
            speak(&forged);
            say(*then, question, speak, lie);
        }
        Said::WrongCase(record) => {
            let mut question = question.to_vec();
            question[HEAD..].make_ascii_lowercase();
            speak(&message(&question, 0, 3_600, &[record]));
        }
        Said::LoopingPointer => {
            let mut looping = message(question, 0, 3_600, &[code(2)]);
            let at = question.len();
            let own = 0xc000 | at as u16;
            looping[at..at + 2].copy_from_slice(&own.to_be_bytes());
            speak(&looping);
        }
        Said::Garbage => {
            let mut garbage = vec![0xff; 4_000];
            garbage[..HEAD].copy_from_slice(&message(question, 0, 0, &[])[..HEAD]);
            speak(&garbage);
        }
    }
}

/// A response with the question as it came, and records for its name.
fn message(question: &[u8], code: u8, ttl: u32, records: &[Vec<u8>]) -> Vec<u8> {
    let mut out = question.to_vec();
    out[2..4].copy_from_slice(&[0x81, 0x80 | code]);
    out[4..HEAD].copy_from_slice(&[0, 1, 0, records.len() as u8, 0, 0, 0, 0]);
    let kind = [question[question.len() - 4], question[question.len() - 3]];
    for record in records {
        out.extend_from_slice(&[0xc0, HEAD as u8]);
        out.extend_from_slice(&kind);
        out.extend_from_slice(&[0, 1]);
        out.extend_from_slice(&ttl.to_be_bytes());
        out.extend_from_slice(&(record.len() as u16).to_be_bytes());
        out.extend_from_slice(record);
    }
    out
}

/// A response without records, with the SOA record of the root.
fn nothing(question: &[u8], code: u8, ttl: u32) -> Vec<u8> {
    let mut out = message(question, code, 0, &[]);
    out[9] = 1;
    out.extend_from_slice(&[0, 0, 6, 0, 1]);
    out.extend_from_slice(&ttl.to_be_bytes());
    out.extend_from_slice(&[0, 22, 0, 0]);
    for number in [1, 3_600, 3_600, 3_600, ttl] {
        out.extend_from_slice(&number.to_be_bytes());
    }
    out
}
