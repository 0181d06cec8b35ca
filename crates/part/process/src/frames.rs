//! Frames behind their lengths, over a stream socket: waiting frames leave in few writes, and a frame takes memory as its octets arrive.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Notify;

use crate::wire;

/// Octets copied for one write. A longer text is written from its own memory.
const JOINED_MAX: usize = 64 * 1024;
/// Octets of a frame for which memory is taken before the arrival.
const FORESEEN_MAX: usize = 64 * 1024;

/// Waiting frames of a connection.
#[derive(Debug, Default)]
pub struct Outbox {
    waiting: RefCell<Waiting>,
    more: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    /// Octets before those of `last`.
    pieces: VecDeque<Bytes>,
    last: Vec<u8>,
}

impl Outbox {
    /// Puts the octets of `write` behind the other frames.
    pub fn put(&self, write: impl FnOnce(&mut Vec<u8>)) {
        self.put_with(write, Bytes::new());
    }

    /// Puts the octets of `write` and the text behind the other frames.
    pub fn put_with(&self, write: impl FnOnce(&mut Vec<u8>), text: Bytes) {
        let mut waiting = self.waiting.borrow_mut();
        write(&mut waiting.last);
        let fits = waiting.last.len().saturating_add(text.len()) <= JOINED_MAX;
        if fits {
            waiting.last.extend_from_slice(&text);
        } else {
            let before = std::mem::take(&mut waiting.last);
            waiting.pieces.extend([before.into(), text]);
        }
        drop(waiting);
        self.more.notify_one();
    }

    /// Writes frames as they come.
    ///
    /// # Errors
    /// When the connection breaks, or takes no octet for `patience`.
    pub async fn write_to(
        &self,
        mut to: impl AsyncWrite + Unpin,
        patience: Duration,
    ) -> io::Result<()> {
        loop {
            match self.next() {
                Some(octets) => write(&mut to, &octets, patience).await?,
                None => {
                    self.more.notified().await;
                    // Other tasks of the turn have frames as well.
                    tokio::task::yield_now().await;
                }
            }
        }
    }

    fn next(&self) -> Option<Bytes> {
        let mut waiting = self.waiting.borrow_mut();
        waiting.pieces.pop_front().or_else(|| {
            let last = std::mem::take(&mut waiting.last);
            (!last.is_empty()).then(|| last.into())
        })
    }
}

async fn write(
    to: &mut (impl AsyncWrite + Unpin),
    mut octets: &[u8],
    patience: Duration,
) -> io::Result<()> {
    while !octets.is_empty() {
        match wire::within(patience, to.write(octets)).await?? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            written => octets = octets.get(written..).unwrap_or_default(),
        }
    }
    Ok(())
}

/// Reads a frame; `length` decodes and bounds the length before it. `None` at the end of the connection.
///
/// # Errors
/// When the connection breaks, or ends within a frame, or `length` refuses.
pub async fn read<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
    from: &mut (impl AsyncRead + Unpin),
    length: impl Fn([u8; 4]) -> Result<usize, E>,
) -> io::Result<Option<Vec<u8>>> {
    let mut octets = [0; 4];
    let begun = from.read(&mut octets).await?;
    if begun == 0 {
        return Ok(None);
    }
    if let Some(rest) = octets.get_mut(begun..) {
        from.read_exact(rest).await?;
    }
    let length =
        length(octets).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    let mut frame = Vec::with_capacity(length.min(FORESEEN_MAX));
    let wanted = u64::try_from(length).unwrap_or(u64::MAX);
    from.take(wanted).read_to_end(&mut frame).await?;
    match frame.len() == length {
        true => Ok(Some(frame)),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn length(octets: [u8; 4]) -> Result<usize, &'static str> {
        match u32::from_le_bytes(octets) as usize {
            length @ 0..=200_000 => Ok(length),
            _ => Err("too long"),
        }
    }

    fn put(outbox: &Outbox, text: &[u8]) {
        let length = u32::try_from(text.len()).unwrap().to_le_bytes();
        let text = Bytes::copy_from_slice(text);
        outbox.put_with(|to| to.extend_from_slice(&length), text);
    }

    #[tokio::test]
    async fn frames_arrive_in_order_whatever_their_length() {
        let (near, mut far) = tokio::io::duplex(1_000);
        let outbox = Outbox::default();
        let sizes = [0, 1, 70_000, 5, JOINED_MAX - 4, JOINED_MAX, 150_000, 3];
        for size in sizes {
            put(&outbox, &vec![u8::try_from(size % 251).unwrap(); size]);
        }
        let read = async {
            for size in sizes {
                let frame = read(&mut far, length).await.unwrap().unwrap();
                assert_eq!(frame, vec![u8::try_from(size % 251).unwrap(); size]);
            }
        };
        tokio::select! {
            () = read => {}
            written = outbox.write_to(near, Duration::from_secs(60)) => panic!("{written:?}"),
        }
    }

    #[tokio::test]
    async fn a_frame_is_whole_or_an_error() {
        let read_all = async |octets: &[u8]| {
            let mut from = octets;
            read(&mut from, length).await
        };
        assert_eq!(read_all(b"").await.unwrap(), None);
        assert_eq!(read_all(b"\0\0\0\0").await.unwrap(), Some(Vec::new()));
        for cut in [&b"\x02"[..], b"\x02\0\0\0", b"\x02\0\0\0a"] {
            let error = read_all(cut).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        }
        let error = read_all(b"\0\0\0\x7f").await.unwrap_err();
        assert_eq!(error.to_string(), "too long");
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_reads_nothing_is_given_up() {
        let (near, _far) = tokio::io::duplex(10);
        let outbox = Outbox::default();
        put(&outbox, &[7; 100]);
        let written = outbox.write_to(near, Duration::from_secs(5)).await;
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
