//! A connection of a client.

use std::io::{self, ErrorKind};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use vere_handoff::question::{BUFFER_OCTETS, Reader};

use super::answers::Answers;

/// How long a client may leave the answers to one read unread.
const WRITE_PATIENCE: Duration = Duration::from_secs(10);

/// Answers questions until the client closes the connection. All questions of one read are answered by one write, and the
/// next questions are read after that: a client that does not read its answers costs one buffer in each direction.
///
/// # Errors
/// When the connection breaks, the client breaks the protocol, or the client does not read its answers in time.
pub(super) async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    answers: &Answers,
) -> io::Result<()> {
    let mut reader = Reader::default();
    let mut out = Vec::with_capacity(BUFFER_OCTETS);
    loop {
        let octets = stream.read(reader.space()).await?;
        if octets == 0 {
            return match reader.has_rest() {
                true => Err(ErrorKind::UnexpectedEof.into()),
                false => Ok(()),
            };
        }
        reader.filled(octets);
        let taken = answers.batch(&mut reader, &mut out);
        // The questions before a malformed frame have their answers still.
        tokio::time::timeout(WRITE_PATIENCE, stream.write_all(&out)).await??;
        taken.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        out.clear();
    }
}
