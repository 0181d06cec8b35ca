//! A stream whose octets travel by DEFLATE (COMPRESS, RFC 4978).

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::stream::Stream;

/// Octets of the stream read at once, and compressed octets that may wait for the stream.
const BUFFER: usize = 64 * 1024;

/// Octets compressed at once: an incompressible piece fits the buffer.
const PIECE: usize = 32 * 1024;

/// A compressed stream over another one.
pub(crate) struct Deflated {
    inner: Box<dyn Stream>,
    inflate: Decompress,
    deflate: Compress,
    /// Received octets, and the part that is not inflated yet.
    input: Vec<u8>,
    unread: std::ops::Range<usize>,
    /// Compressed octets, and how many of them are written.
    output: Vec<u8>,
    written: usize,
    /// Whether the compressor keeps octets back.
    keeps: bool,
}

impl Deflated {
    pub(crate) fn over(inner: Box<dyn Stream>) -> Self {
        Self {
            inner,
            inflate: Decompress::new(false),
            // The mails of a volume do not shrink, and commands are few.
            deflate: Compress::new(Compression::fast(), false),
            input: vec![0; BUFFER],
            unread: 0..0,
            output: Vec::with_capacity(BUFFER.saturating_mul(2)),
            written: 0,
            keeps: false,
        }
    }

    /// Writes the compressed octets.
    fn poll_output(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(waiting) = self.output.get(self.written..)
            && !waiting.is_empty()
        {
            let octets = ready!(Pin::new(&mut self.inner).poll_write(context, waiting))?;
            if octets == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.written = self.written.saturating_add(octets);
        }
        self.output.clear();
        self.written = 0;
        Poll::Ready(Ok(()))
    }

    /// Compresses octets, as far as the buffer takes them.
    fn compress(&mut self, octets: &[u8], flush: FlushCompress) -> io::Result<usize> {
        let before = self.deflate.total_in();
        let wrong = |error| io::Error::new(io::ErrorKind::InvalidInput, error);
        self.deflate
            .compress_vec(octets, &mut self.output, flush)
            .map_err(wrong)?;
        let taken = self.deflate.total_in().saturating_sub(before);
        Ok(usize::try_from(taken).unwrap_or(usize::MAX))
    }
}

impl AsyncRead for Deflated {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let own = self.get_mut();
        if buffer.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        loop {
            let unread = own.input.get(own.unread.clone()).unwrap_or_default();
            let (taken, made) = (own.inflate.total_in(), own.inflate.total_out());
            let status = own
                .inflate
                .decompress(unread, buffer.initialize_unfilled(), FlushDecompress::None)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            let taken = own.inflate.total_in().saturating_sub(taken);
            let made = own.inflate.total_out().saturating_sub(made);
            let taken = usize::try_from(taken).unwrap_or(usize::MAX);
            own.unread.start = own.unread.start.saturating_add(taken).min(own.unread.end);
            if made > 0 {
                buffer.advance(usize::try_from(made).unwrap_or(usize::MAX));
                return Poll::Ready(Ok(()));
            }
            if status == Status::StreamEnd {
                // The end of the stream is the end of the connection.
                return Poll::Ready(Ok(()));
            }
            if !own.unread.is_empty() {
                if taken == 0 {
                    let text = "expected compressed octets; found none";
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, text)));
                }
                continue;
            }
            let mut read = ReadBuf::new(&mut own.input);
            ready!(Pin::new(&mut own.inner).poll_read(context, &mut read))?;
            own.unread = 0..read.filled().len();
            if own.unread.is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl AsyncWrite for Deflated {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        octets: &[u8],
    ) -> Poll<io::Result<usize>> {
        let own = self.get_mut();
        if own.output.len() >= BUFFER {
            ready!(own.poll_output(context))?;
        }
        let piece = octets.get(..PIECE).unwrap_or(octets);
        own.output.reserve(BUFFER);
        let taken = own.compress(piece, FlushCompress::None)?;
        own.keeps = true;
        Poll::Ready(Ok(taken))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let own = self.get_mut();
        while own.keeps {
            own.output.reserve(BUFFER);
            own.compress(&[], FlushCompress::Sync)?;
            // With room left, nothing was kept back.
            own.keeps = own.output.len() == own.output.capacity();
        }
        ready!(own.poll_output(context))?;
        Pin::new(&mut own.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.as_mut().poll_flush(context))?;
        Pin::new(&mut self.get_mut().inner).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    fn run(test: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.expect("a runtime").block_on(test);
    }

    #[test]
    fn octets_arrive_through_small_pipes() {
        run(async {
            for (pipe, octets) in [(17, 5_000), (4_096, 300_000)] {
                let (one, other) = duplex(pipe);
                let (mut one, mut other) = (
                    Deflated::over(Box::new(one)),
                    Deflated::over(Box::new(other)),
                );
                // Half of the octets shrink, half do not.
                let mut state = 1_u32;
                let sent: Vec<u8> = (0..octets)
                    .map(|at| {
                        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                        if at < octets / 2 {
                            b'x'
                        } else {
                            (state >> 24) as u8
                        }
                    })
                    .collect();
                let write = async {
                    for piece in sent.chunks(999) {
                        one.write_all(piece).await.expect("a reader");
                        one.flush().await.expect("a reader");
                    }
                };
                let read = async {
                    let mut all = vec![0; sent.len()];
                    other.read_exact(&mut all).await.expect("octets");
                    assert!(all == sent);
                };
                tokio::join!(write, read);
            }
        });
    }

    #[test]
    fn other_octets_end_the_connection() {
        run(async {
            let (mut one, other) = duplex(4_096);
            let mut other = Deflated::over(Box::new(other));
            one.write_all(&[0xff; 100]).await.expect("room");
            let error = other.read_u8().await.expect_err("no DEFLATE");
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        });
    }
}
