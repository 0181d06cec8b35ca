//! The connection of a client, whose last replies leave together with its end.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use vere_net::last::write_last;
use vere_net::tls::kernel;

/// The connection of a client.
#[derive(Debug)]
pub(crate) struct ClientStream {
    stream: TcpStream,
    /// Whether the kernel encrypts.
    is_encrypted: bool,
    /// Whether the connection is shut down behind the next octets.
    is_closing: Rc<Cell<bool>>,
    /// Whether the last replies have ended the connection.
    has_ended: bool,
}

impl ClientStream {
    /// The host of the session says by `is_closing` which replies are the last.
    pub(crate) const fn new(stream: TcpStream, is_closing: Rc<Cell<bool>>) -> Self {
        Self {
            stream,
            is_encrypted: false,
            is_closing,
            has_ended: false,
        }
    }

    /// Makes the stream of a connection that the kernel encrypts.
    pub(crate) fn by_kernel(stream: TcpStream, is_closing: Rc<Cell<bool>>) -> Self {
        Self {
            is_encrypted: true,
            ..Self::new(stream, is_closing)
        }
    }
}

impl AsyncRead for ClientStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.stream).poll_read(context, into) {
            Poll::Ready(Err(error)) if self.is_encrypted && kernel::is_end(&error) => {
                Poll::Ready(Ok(()))
            }
            read => read,
        }
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        octets: &[u8],
    ) -> Poll<io::Result<usize>> {
        if !self.is_closing.get() {
            return Pin::new(&mut self.stream).poll_write(context, octets);
        }
        loop {
            ready!(self.stream.poll_write_ready(context))?;
            let write = || match self.is_encrypted {
                true => kernel::write_last(&self.stream, octets),
                false => write_last(&self.stream, octets),
            };
            let written = self.stream.try_io(Interest::WRITABLE, write);
            match written {
                // The kernel had said that there was room, and the next of its notices is awaited.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => {
                    self.has_ended = matches!(written, Ok(count) if count == octets.len());
                    return Poll::Ready(written);
                }
            }
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.has_ended {
            return Poll::Ready(Ok(()));
        }
        match self.is_encrypted {
            // The front closes the connection: at shutdown(2) the kernel would lose records that TCP's buffer had no room for.
            true => {
                self.has_ended = true;
                kernel::close_notify(&self.stream);
                Poll::Ready(Ok(()))
            }
            false => Pin::new(&mut self.stream).poll_shutdown(context),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream as StdTcpStream};

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// A client, the end of a worker, and the front's duplicate, by which the connection outlives that end.
    fn connection() -> (StdTcpStream, TcpStream, StdTcpStream) {
        let port = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = StdTcpStream::connect(port.local_addr().unwrap()).unwrap();
        let (here, _) = port.accept().unwrap();
        let duplicate = here.try_clone().unwrap();
        here.set_nonblocking(true).unwrap();
        (client, TcpStream::from_std(here).unwrap(), duplicate)
    }

    #[tokio::test]
    async fn the_connection_ends_behind_the_last_reply_and_not_before() {
        let (mut client, here, _duplicate) = connection();
        let is_closing = Rc::new(Cell::new(false));
        let mut stream = ClientStream::new(here, Rc::clone(&is_closing));
        stream.write_all(b"250 ok\r\n").await.unwrap();
        let mut said = [0; 8];
        client.read_exact(&mut said).unwrap();
        assert_eq!(&said, b"250 ok\r\n");
        client.set_nonblocking(true).unwrap();
        let error = client.read(&mut said).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        client.set_nonblocking(false).unwrap();
        is_closing.set(true);
        stream.write_all(b"221 bye\r\n").await.unwrap();
        let mut rest = String::new();
        client.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "221 bye\r\n");
        stream.shutdown().await.unwrap();
    }

    #[tokio::test]
    async fn a_client_that_reads_late_gets_the_last_reply_whole_and_then_the_end() {
        let (mut client, here, _duplicate) = connection();
        let mut stream = ClientStream::new(here, Rc::new(Cell::new(true)));
        client.write_all(b"QUIT\r\n").unwrap();
        let mut said = [0; 6];
        stream.read_exact(&mut said).await.unwrap();
        assert_eq!(&said, b"QUIT\r\n");
        // More than the kernel holds for a client that does not read.
        let octets = vec![7; 32 << 20];
        let written = stream.write_all(&octets);
        tokio::pin!(written);
        tokio::select! {
            biased;
            done = &mut written => panic!("{done:?}"),
            () = std::future::ready(()) => {}
        }
        let reader = std::thread::spawn(move || {
            let mut heard = Vec::new();
            client.read_to_end(&mut heard).map(|_| heard.len())
        });
        written.await.unwrap();
        assert_eq!(reader.join().unwrap().unwrap(), octets.len());
    }

    #[tokio::test]
    async fn a_connection_without_last_words_is_shut_down() {
        let (mut client, here, _duplicate) = connection();
        let mut stream = ClientStream::new(here, Rc::default());
        stream.shutdown().await.unwrap();
        assert_eq!(client.read(&mut [0; 8]).unwrap(), 0);
    }
}
