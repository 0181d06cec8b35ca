//! A connection of a client.

use std::io::{self, ErrorKind};
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::net::UnixStream;
use tokio::task::JoinSet;
use vere_handoff::question::{Answer, BUFFER_OCTETS, Reader};
use vere_net::quiet;

use super::answers::Answers;
use super::call_ahead::Places;

/// How long a client may leave the answers to one read unread.
const WRITE_PATIENCE: Duration = Duration::from_secs(10);

/// Answers questions until the client closes the connection. The questions of one read that have their answers at once
/// are answered by one write, and the next questions are read after that: a client without reads of answers costs a
/// buffer in each direction and the waiting questions. These end with the connection, and have bounds: no connection
/// takes all places of calls to next hops.
///
/// # Errors
/// When the connection breaks, the client breaks the protocol, or the client does not read its answers in time.
pub(super) async fn serve(stream: UnixStream, answers: &Answers) -> io::Result<()> {
    let (mut from, mut to) = quiet::split(stream)?;
    let mut reader = Reader::default();
    let mut out = Vec::with_capacity(BUFFER_OCTETS);
    let mut pending = Vec::new();
    let places = Places::default();
    let mut later: JoinSet<(u64, Answer)> = JoinSet::new();
    loop {
        let mut taken = Ok(());
        tokio::select! {
            read = from.read(reader.space()) => {
                let octets = read?;
                if octets == 0 {
                    return match reader.has_rest() {
                        true => Err(ErrorKind::UnexpectedEof.into()),
                        false => Ok(()),
                    };
                }
                reader.filled(octets);
                taken = answers.batch((&mut reader, &places), &mut out, &mut pending);
                for answer in pending.drain(..) {
                    later.spawn_local(answer);
                }
            }
            Some(answered) = later.join_next() => {
                let mut answered = Some(answered);
                while let Some(Ok((id, answer))) = answered {
                    answer.encode(id, &mut out);
                    answered = match out.len() < BUFFER_OCTETS {
                        true => later.try_join_next(),
                        false => None,
                    };
                }
            }
        }
        // The questions before a malformed frame have their answers still.
        tokio::time::timeout(WRITE_PATIENCE, to.write_all(&out)).await??;
        taken.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        out.clear();
    }
}
