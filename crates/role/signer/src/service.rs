//! A connection of a gateway or a front.

use std::io::{self, ErrorKind, Read, Write};

use vere_signwire::{Answer, Frame, Reason, Request};

/// Maximum of octets per read.
const READ_OCTETS: usize = 64 * 1024;

/// Answers requests in their order until the other side closes the connection.
///
/// # Errors
/// When the connection breaks, or the input breaks the protocol.
pub(super) fn serve(
    mut stream: impl Read + Write,
    answer: impl Fn(&Request<'_>) -> Answer,
) -> io::Result<()> {
    let mut unread = Vec::new();
    let mut buffer = vec![0; READ_OCTETS];
    let mut answers = Vec::new();
    loop {
        let octets = stream.read(&mut buffer)?;
        if octets == 0 {
            return Ok(());
        }
        unread.extend_from_slice(&buffer[..octets]);
        let mut taken = 0;
        while let Some(frame) = Frame::read(&unread[taken..]).map_err(wrong)? {
            let answer = match Request::decode(&frame) {
                Ok(request) => answer(&request),
                Err(error) => {
                    tracing::warn!(%error, "request not understood");
                    Answer::Refused(Reason::NotUnderstood)
                }
            };
            answer.encode(frame.number, &mut answers);
            taken += frame.octets;
        }
        unread.drain(..taken);
        stream.write_all(&answers)?;
        answers.clear();
    }
}

fn wrong(error: vere_signwire::WireError) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, error)
}
