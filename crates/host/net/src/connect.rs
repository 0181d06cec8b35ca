//! Connects to the first answering address of a list.
//!
//! The order is that of RFC 8305 section 4: families alternate, IPv6 first. When an address has not
//! answered within [`ConnectOptions::stagger`], the next address is tried as well; the first
//! connection wins and the other attempts are dropped.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// How to connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectOptions {
    /// The longest wait for an address. Default 30 s.
    pub timeout: Duration,
    /// Wait before the next address is tried beside. Default 250 ms (RFC 8305 section 8).
    pub stagger: Duration,
    /// The most addresses tried, so that a hostile zone cannot cause hundreds of attempts. Default
    /// 8.
    pub addresses_max: usize,
    /// Tries the addresses as they are given, instead of family by family. Default: no.
    pub in_order: bool,
    /// Source address for IPv4; `None` lets the kernel choose.
    pub source_v4: Option<Ipv4Addr>,
    /// Source address for IPv6; `None` lets the kernel choose.
    pub source_v6: Option<Ipv6Addr>,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(30),
            stagger: Duration::from_millis(250),
            addresses_max: 8,
            in_order: false,
            source_v4: None,
            source_v6: None,
        }
    }
}

/// No address could be reached: the error of each address, in the order of the answers.
#[derive(Debug)]
pub struct ConnectError {
    /// Address and error; empty when there was no address.
    pub attempts: Vec<(SocketAddr, io::Error)>,
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.attempts.is_empty() {
            return f.write_str("no address to connect to");
        }
        f.write_str("cannot connect to ")?;
        for (index, (address, error)) in self.attempts.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{address}: {error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConnectError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.attempts.last().map(|(_, error)| error as _)
    }
}

/// Connects to one of `addresses`; Nagle's algorithm is off on the stream.
///
/// # Errors
/// None of the first [`ConnectOptions::addresses_max`] addresses could be reached.
pub async fn connect(
    addresses: &[SocketAddr],
    options: &ConnectOptions,
) -> Result<TcpStream, ConnectError> {
    let ordered = if options.in_order {
        addresses.to_vec()
    } else {
        alternate(addresses)
    };
    let mut waiting = ordered.into_iter().take(options.addresses_max);
    let mut running = JoinSet::new();
    let mut attempts = Vec::new();
    let mut more = true;
    loop {
        if more {
            match waiting.next() {
                Some(address) => {
                    let options = options.clone();
                    running.spawn(async move { (address, one(address, &options).await) });
                }
                None => more = false,
            }
        }
        let joined = tokio::select! {
            joined = running.join_next() => joined,
            () = sleep(options.stagger), if more => continue,
        };
        match joined {
            None => return Err(ConnectError { attempts }),
            Some(Ok((_, Ok(stream)))) => return Ok(stream),
            Some(Ok((address, Err(error)))) => attempts.push((address, error)),
            // Only a panic inside tokio's own connect could end the task so.
            Some(Err(_)) => {}
        }
    }
}

async fn one(address: SocketAddr, options: &ConnectOptions) -> io::Result<TcpStream> {
    let (socket, source) = match address {
        SocketAddr::V4(_) => (TcpSocket::new_v4()?, options.source_v4.map(IpAddr::V4)),
        SocketAddr::V6(_) => (TcpSocket::new_v6()?, options.source_v6.map(IpAddr::V6)),
    };
    if let Some(source) = source {
        socket.bind(SocketAddr::new(source, 0))?;
    }
    socket.set_nodelay(true)?;
    match timeout(options.timeout, socket.connect(address)).await {
        Ok(connected) => connected,
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// The addresses with families in turn, IPv6 first, each family in its given order; doubles go.
#[must_use]
pub fn alternate(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let mut v6 = addresses.iter().filter(|a| a.is_ipv6());
    let mut v4 = addresses.iter().filter(|a| a.is_ipv4());
    let mut ordered: Vec<SocketAddr> = Vec::with_capacity(addresses.len());
    loop {
        let pair = [v6.next(), v4.next()];
        if pair == [None, None] {
            return ordered;
        }
        for address in pair.into_iter().flatten() {
            if !ordered.contains(address) {
                ordered.push(*address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use tokio::net::TcpListener;

    use super::{ConnectOptions, Duration, Ipv4Addr, SocketAddr, alternate, connect};

    fn address(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    async fn listening() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
        let address = listener.local_addr().expect("bound");
        (listener, address)
    }

    /// An address where nothing listens: the port was free a moment ago.
    async fn refusing() -> SocketAddr {
        listening().await.1
    }

    #[test]
    fn families_alternate_and_v6_is_first() {
        let given = [
            "192.0.2.1:25",
            "192.0.2.2:25",
            "[2001:db8::1]:25",
            "192.0.2.1:25",
        ];
        let ordered = ["[2001:db8::1]:25", "192.0.2.1:25", "192.0.2.2:25"];
        assert_eq!(alternate(&given.map(address)), ordered.map(address));
        assert_eq!(alternate(&[]), []);
    }

    #[tokio::test]
    async fn a_refusing_address_is_passed_over_at_once() {
        let (_listener, good) = listening().await;
        let begun = Instant::now();
        let stream = connect(&[refusing().await, good], &ConnectOptions::default()).await;
        let stream = stream.expect("the second answers");
        assert_eq!(stream.peer_addr().expect("connected"), good);
        assert!(stream.nodelay().expect("connected"));
        assert!(begun.elapsed() < Duration::from_millis(240));
    }

    #[tokio::test]
    async fn every_failure_is_named() {
        let first = refusing().await;
        let error = connect(&[first], &ConnectOptions::default())
            .await
            .expect_err("refused");
        assert_eq!(error.attempts.len(), 1);
        assert!(error.to_string().contains(&first.to_string()), "{error}");
        let none = connect(&[], &ConnectOptions::default())
            .await
            .expect_err("nothing");
        assert_eq!(none.to_string(), "no address to connect to");
    }

    #[tokio::test]
    async fn only_so_many_addresses_are_tried() {
        let (_listener, good) = listening().await;
        let options = ConnectOptions {
            addresses_max: 1,
            ..ConnectOptions::default()
        };
        assert!(connect(&[refusing().await, good], &options).await.is_err());
    }

    #[tokio::test]
    async fn the_source_address_is_used() {
        let (listener, good) = listening().await;
        let source = Ipv4Addr::new(127, 0, 0, 2);
        let options = ConnectOptions {
            source_v4: Some(source),
            ..ConnectOptions::default()
        };
        let _stream = connect(&[good], &options).await.expect("loopback");
        let (_, peer) = listener.accept().await.expect("connected");
        assert_eq!(peer.ip(), source);
    }

    /// An address that drops packets delays the connection by the stagger only, not by the timeout.
    #[tokio::test]
    async fn a_silent_address_is_overtaken() {
        // A full backlog on Linux drops further SYNs: as silent as a filtered port.
        let silent = std::net::TcpListener::from(full_listener());
        let silent_address = silent.local_addr().expect("bound");
        let _fill: Vec<_> = (0..4)
            .map(|_| {
                std::net::TcpStream::connect_timeout(&silent_address, Duration::from_millis(50))
            })
            .collect();
        let (_listener, good) = listening().await;
        let options = ConnectOptions {
            stagger: Duration::from_millis(50),
            ..ConnectOptions::default()
        };
        let begun = Instant::now();
        let stream = connect(&[silent_address, good], &options)
            .await
            .expect("the second answers");
        assert_eq!(stream.peer_addr().expect("connected"), good);
        assert!(begun.elapsed() < Duration::from_secs(5));

        let options = ConnectOptions {
            timeout: Duration::from_millis(100),
            ..options
        };
        let error = connect(&[silent_address], &options)
            .await
            .expect_err("silent");
        assert_eq!(error.attempts[0].1.kind(), std::io::ErrorKind::TimedOut);
    }

    fn full_listener() -> socket2::Socket {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)
            .expect("a socket");
        socket
            .bind(&address("127.0.0.1:0").into())
            .expect("loopback");
        socket.listen(0).expect("bound");
        socket
    }
}
