//! Connections to filters.

use std::io;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, ToSocketAddrs, UnixStream};

use crate::address::Address;
use crate::failure::Failure;

/// A stream of either kind.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send + std::fmt::Debug {}

impl Stream for TcpStream {}
impl Stream for UnixStream {}

/// Connects. The caller bounds the time.
pub(crate) async fn connect(address: &Address) -> Result<Box<dyn Stream>, Failure> {
    let connected = match address {
        Address::Unix(path) => UnixStream::connect(path).await.map(boxed),
        Address::Tcp(address) => tcp(*address).await.map(boxed),
        Address::Host(host, port) => tcp((host.as_str(), *port)).await.map(boxed),
    };
    connected.map_err(|error| Failure::Connect {
        address: address.to_string(),
        error: error.to_string(),
    })
}

async fn tcp(address: impl ToSocketAddrs) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn boxed(stream: impl Stream + 'static) -> Box<dyn Stream> {
    Box::new(stream)
}
