//! Sockets between processes of this machine, which wake the owner for octets to read alone.
//!
//! The kernel reports room in a Unix socket whenever the other end has read, also where room was never short (`unix_write_space`
//! in net/unix/af_unix.c). A runtime that waits for both directions, as tokio's `UnixStream` does, is woken for each answer
//! that the other end takes: a change of process in vain. A socket here waits for room only after a write without room.

use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, Interest, ReadBuf};

/// Both directions of a non-blocking socket, before a runtime has the socket.
#[derive(Debug)]
pub struct Halves<S> {
    read: S,
    write: S,
}

impl<S: AsFd + From<OwnedFd>> Halves<S> {
    /// Parts a socket, which gets a second descriptor (dup(2)). The connection ends when both halves are dropped.
    ///
    /// # Errors
    /// When the process has no descriptor left.
    pub fn of(socket: S) -> io::Result<Self> {
        let write = socket.as_fd().try_clone_to_owned()?.into();
        Ok(Self {
            read: socket,
            write,
        })
    }
}

impl<S: AsFd + AsRawFd> Halves<S> {
    /// Has the present runtime watch the socket.
    ///
    /// # Errors
    /// When the runtime cannot.
    pub fn watch(self) -> io::Result<(Reading<S>, Writing<S>)> {
        let read = watched(self.read, Interest::READABLE)?;
        Ok((Reading(read), Writing(self.write)))
    }
}

/// Parts a stream of the runtime.
///
/// # Errors
/// Those of [`Halves::of`] and [`Halves::watch`].
pub fn split(
    stream: tokio::net::UnixStream,
) -> io::Result<(Reading<UnixStream>, Writing<UnixStream>)> {
    Halves::of(stream.into_std()?)?.watch()
}

/// The direction from the other end.
#[derive(Debug)]
pub struct Reading<S: AsRawFd>(AsyncFd<S>);

impl<S: AsRawFd> Reading<S> {
    /// Waits until an operation has octets to read. A cancelled wait loses no octet.
    ///
    /// # Errors
    /// Those of the operation, but [`io::ErrorKind::WouldBlock`].
    pub async fn with<T>(&self, mut operation: impl FnMut(&S) -> io::Result<T>) -> io::Result<T> {
        self.0
            .async_io(Interest::READABLE, |socket| operation(socket))
            .await
    }
}

impl AsyncRead for Reading<UnixStream> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut ready = ready!(self.0.poll_read_ready(context))?;
            let free = into.initialize_unfilled();
            let room = free.len();
            match ready.try_io(|socket| socket.get_ref().read(free)) {
                Ok(Ok(octets)) => {
                    // Fewer octets than there was room for are all; the kernel tells of more.
                    if octets > 0 && octets < room {
                        ready.clear_ready();
                    }
                    into.advance(octets);
                    return Poll::Ready(Ok(()));
                }
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(Err(error)) => return Poll::Ready(Err(error)),
                Err(_would_block) => {}
            }
        }
    }
}

/// The direction to the other end.
#[derive(Debug)]
pub struct Writing<S>(S);

impl<S: AsFd> Writing<S> {
    /// Carries out an operation, and waits where the socket has no room.
    ///
    /// # Errors
    /// Those of the operation, but [`io::ErrorKind::WouldBlock`].
    pub async fn with<T>(
        &mut self,
        mut operation: impl FnMut(&S) -> io::Result<T>,
    ) -> io::Result<T> {
        match operation(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            done => return done,
        }
        watched(self.0.as_fd(), Interest::WRITABLE)?
            .async_io(Interest::WRITABLE, |_| operation(&self.0))
            .await
    }
}

#[expect(
    deprecated,
    reason = "its successor is unsafe, for types that give another descriptor each time; these own or borrow one"
)]
fn watched<S: AsFd + AsRawFd>(socket: S, interest: Interest) -> io::Result<AsyncFd<S>> {
    AsyncFd::with_interest(socket, interest)
}

impl Writing<UnixStream> {
    /// Writes all octets. A caller that stops waiting does not know how many were written.
    ///
    /// # Errors
    /// When the other end is closed.
    pub async fn write_all(&mut self, mut octets: &[u8]) -> io::Result<()> {
        while !octets.is_empty() {
            let written = self
                .with(|mut stream: &UnixStream| stream.write(octets))
                .await;
            match written {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => octets = octets.get(count..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::io::AsyncReadExt as _;

    use super::*;

    fn pair() -> [(Reading<UnixStream>, Writing<UnixStream>); 2] {
        let (here, there) = UnixStream::pair().unwrap();
        [here, there].map(|end| {
            end.set_nonblocking(true).unwrap();
            Halves::of(end).unwrap().watch().unwrap()
        })
    }

    #[tokio::test]
    async fn octets_arrive_in_order_and_the_end_behind_them() {
        let [(_, mut to), (mut from, back)] = pair();
        for octets in [&b"one"[..], b"", b"two"] {
            to.write_all(octets).await.unwrap();
        }
        let mut read = [0; 4];
        from.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"onet");
        // Octets behind a full buffer are read without a further notice, and so are later octets.
        from.read_exact(&mut read[..2]).await.unwrap();
        assert_eq!(&read[..2], b"wo");
        let later = tokio::spawn(async move {
            let mut rest = Vec::new();
            from.read_to_end(&mut rest).await.map(|_| rest)
        });
        tokio::task::yield_now().await;
        to.write_all(b"three").await.unwrap();
        drop((to, back));
        // The other half of the first end is dropped already.
        assert_eq!(later.await.unwrap().unwrap(), b"three");
    }

    #[tokio::test]
    async fn a_full_socket_is_waited_for_and_a_closed_one_is_not() {
        let [(_from, mut to), (mut from, _back)] = pair();
        let octets = vec![7; 4 << 20];
        let expected = octets.len();
        let writer = tokio::spawn(async move {
            for _ in 0..2 {
                to.write_all(&octets).await.unwrap();
            }
            to
        });
        let mut read = vec![0; 2 * expected];
        from.read_exact(&mut read).await.unwrap();
        assert!(read.iter().all(|octet| *octet == 7));
        let mut to = writer.await.unwrap();
        drop((from, _back));
        let error = to.write_all(b"x").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }

    /// The runtime is woken once for each answer, and not when the other end takes the question.
    #[test]
    fn an_owner_is_woken_by_answers_alone() {
        const QUESTIONS: usize = 50;
        let wakes = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&wakes);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .on_thread_unpark(move || {
                counted.fetch_add(1, Ordering::Relaxed);
            })
            .build()
            .unwrap();
        let (here, mut there) = UnixStream::pair().unwrap();
        here.set_nonblocking(true).unwrap();
        let answers = std::thread::spawn(move || {
            for _ in 0..QUESTIONS {
                there.read_exact(&mut [0]).unwrap();
                // Time enough for the other thread to be woken by the room alone.
                std::thread::sleep(std::time::Duration::from_millis(1));
                there.write_all(b"a").unwrap();
            }
        });
        runtime.block_on(async {
            let (mut from, mut to) = Halves::of(here).unwrap().watch().unwrap();
            for _ in 0..QUESTIONS {
                to.write_all(b"q").await.unwrap();
                from.read_exact(&mut [0]).await.unwrap();
            }
        });
        answers.join().unwrap();
        let wakes = wakes.load(Ordering::Relaxed);
        assert!(wakes <= QUESTIONS + 5, "{wakes} for {QUESTIONS} answers");
    }
}
