//! ClamAV: `INSTREAM`, `PING` and `VERSION` of clamd (clamd(8)).
//!
//! A command is `z`, a name, NUL; answers end with NUL too. Pieces of the stream follow INSTREAM, each behind a length in
//! four octets in network order; a length of 0 ends the stream. clamd answers early, and closes, when the stream is too long, so that
//! writing and reading go on beside each other.

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};

use crate::address::Address;
use crate::failure::{Failure, printable};
use crate::outcome::{Outcome, Verdict};
use crate::stream::{Stream, connect};

/// The octets of a piece.
const PIECE_OCTETS: usize = 64 * 1024;
/// The longest answer.
const ANSWER_OCTETS_MAX: usize = 1_024;

/// The terms of ClamAV.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clamd;

impl Clamd {
    /// Shows a message.
    pub(crate) async fn scan(self, address: &Address, message: &[u8]) -> Result<Outcome, Failure> {
        let stream = connect(address).await?;
        let (mut reader, mut writer) = tokio::io::split(stream);
        let write = async {
            writer.write_all(b"zINSTREAM\0").await?;
            for piece in message.chunks(PIECE_OCTETS) {
                let length = u32::try_from(piece.len()).unwrap_or(u32::MAX);
                writer.write_all(&length.to_be_bytes()).await?;
                writer.write_all(piece).await?;
            }
            writer.write_all(&[0; 4]).await?;
            writer.flush().await
        };
        let read = answer(&mut reader);
        tokio::pin!(write, read);
        let answer = tokio::select! {
            answer = &mut read => answer,
            written = &mut write => match (written, read.await) {
                // An answer that came before says more than a broken pipe.
                (Err(error), Err(_)) => Err(Failure::writing(&error)),
                (_, answer) => answer,
            },
        };
        verdict(&answer?)
    }

    /// Asks whether clamd lives, and for the version.
    pub(crate) async fn version(self, address: &Address) -> Result<String, Failure> {
        match command(address, b"zPING\0").await?.as_slice() {
            b"PONG" => {}
            other => return Err(Failure::Clamd(printable(other, ANSWER_OCTETS_MAX))),
        }
        let version = command(address, b"zVERSION\0").await?;
        Ok(printable(&version, ANSWER_OCTETS_MAX))
    }
}

async fn command(address: &Address, command: &[u8]) -> Result<Vec<u8>, Failure> {
    let mut stream: Box<dyn Stream> = connect(address).await?;
    let written = stream.write_all(command).await;
    written.map_err(|error| Failure::writing(&error))?;
    answer(&mut stream).await
}

/// Reads up to the NUL.
async fn answer(stream: &mut (impl AsyncRead + Unpin)) -> Result<Vec<u8>, Failure> {
    let mut answer = Vec::new();
    let mut piece = [0; 256];
    loop {
        let read = stream.read(&mut piece).await;
        let read = read.map_err(|error| Failure::reading(&error))?;
        let piece = piece.get(..read).unwrap_or_default();
        if piece.is_empty() {
            return Err(Failure::Closed("the end of the answer of clamd".to_owned()));
        }
        let end = piece.iter().position(|octet| *octet == 0);
        answer.extend_from_slice(piece.get(..end.unwrap_or(read)).unwrap_or_default());
        if answer.len() > ANSWER_OCTETS_MAX {
            return Err(Failure::Long(ANSWER_OCTETS_MAX));
        }
        if end.is_some() {
            return Ok(answer);
        }
    }
}

/// Reads an answer to INSTREAM.
fn verdict(answer: &[u8]) -> Result<Outcome, Failure> {
    if answer == b"stream: OK" {
        return Ok(Outcome::new(Verdict::Accept));
    }
    let name = answer.strip_prefix(b"stream: ".as_slice());
    let name = name.and_then(|rest| rest.strip_suffix(b" FOUND".as_slice()));
    match name {
        Some(name) if !name.is_empty() => {
            let virus = printable(name, ANSWER_OCTETS_MAX);
            let text = format!("virus found: {virus}");
            Ok(Outcome {
                virus: Some(virus),
                ..Outcome::new(Verdict::Reject(text))
            })
        }
        _ if answer.starts_with(b"INSTREAM size limit exceeded") => Err(Failure::StreamLong),
        _ => Err(Failure::Clamd(printable(answer, 200))),
    }
}
