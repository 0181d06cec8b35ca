//! Connections of load balancers until their PROXY header is there.

use std::io::{self, Read as _};
use std::net::SocketAddr;

use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use vere_smtp::proxy::{HEADER_LENGTH_MAX, Header, decode};
use vere_units::Timestamp;

use super::loops::Arrival;

/// Connections that may wait for their header; a further one takes the place of the oldest.
pub(crate) const WAITING_MAX: usize = 1_024;

#[derive(Debug)]
struct Waits {
    stream: TcpStream,
    /// The address of the load balancer.
    address: SocketAddr,
    until: Timestamp,
}

/// The connections that wait.
#[derive(Debug)]
pub(crate) struct Proxied {
    /// The token of the first place.
    token: Token,
    places: Vec<Option<Waits>>,
}

impl Proxied {
    /// The places have tokens from `token` on, [`WAITING_MAX`] of them.
    pub(crate) const fn new(token: Token) -> Self {
        Self {
            token,
            places: Vec::new(),
        }
    }

    /// The place with this token.
    pub(crate) fn place(&self, token: Token) -> Option<usize> {
        let place = token.0.checked_sub(self.token.0)?;
        (place < WAITING_MAX).then_some(place)
    }

    /// Has a connection wait for its header until a time.
    ///
    /// # Errors
    /// When the readiness queue refuses.
    pub(crate) fn wait(
        &mut self,
        mut stream: TcpStream,
        address: SocketAddr,
        until: Timestamp,
        registry: &Registry,
    ) -> io::Result<()> {
        let place = self.free();
        let token = Token(self.token.0.saturating_add(place));
        registry.register(&mut stream, token, Interest::READABLE)?;
        if self.places.len() <= place {
            self.places.resize_with(place.saturating_add(1), || None);
        }
        if let Some(free) = self.places.get_mut(place) {
            *free = Some(Waits {
                stream,
                address,
                until,
            });
        }
        Ok(())
    }

    /// A free place; without any the place of the connection that has waited for longest.
    fn free(&self) -> usize {
        let free = self.places.iter().position(Option::is_none);
        if self.places.len() < WAITING_MAX {
            return free.unwrap_or(self.places.len());
        }
        let until = |place: &usize| {
            self.places
                .get(*place)
                .map(|waits| waits.as_ref().map(|waits| waits.until))
        };
        free.or_else(|| (0..self.places.len()).min_by_key(until))
            .unwrap_or(0)
    }

    /// Looks for the header of a connection, of which nothing more comes if the other end has closed. The octets behind the header stay
    /// unread: they are the client's.
    ///
    /// # Errors
    /// When the connection does not begin with a header; it is closed.
    pub(crate) fn read(
        &mut self,
        place: usize,
        is_closed: bool,
        registry: &Registry,
    ) -> io::Result<Option<Arrival>> {
        let Some(held) = self.places.get_mut(place) else {
            return Ok(None);
        };
        let Some(mut waits) = held.take() else {
            return Ok(None);
        };
        let header = match header(&mut waits.stream) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && !is_closed => {
                *held = Some(waits);
                return Ok(None);
            }
            header => header.map_err(|error| {
                let what = match error.kind() {
                    io::ErrorKind::WouldBlock => {
                        "expected a PROXY header; found the end".to_owned()
                    }
                    _ => error.to_string(),
                };
                io::Error::new(error.kind(), format!("{}: {what}", waits.address))
            })?,
        };
        registry.deregister(&mut waits.stream)?;
        let (address, local) = match header {
            Header::Proxied {
                source,
                destination,
            } => (source, Some(destination)),
            Header::Local | Header::Unknown => (waits.address, None),
        };
        Ok(Some(Arrival {
            stream: waits.stream,
            address,
            local,
        }))
    }

    /// Closes all connections.
    pub(crate) fn close(&mut self) {
        self.places.clear();
    }

    /// Closes the connections whose time is over, and returns their number.
    pub(crate) fn give_up(&mut self, now: Timestamp) -> usize {
        let late =
            |held: &&mut Option<Waits>| held.as_ref().is_some_and(|waits| waits.until <= now);
        self.places
            .iter_mut()
            .filter(late)
            .map(Option::take)
            .count()
    }
}

/// Takes the header; `WouldBlock` while a part of it is missing. A header in parts is parsed from the beginning each
/// time, so that no part is kept.
fn header(stream: &mut TcpStream) -> io::Result<Header> {
    let mut octets = [0; HEADER_LENGTH_MAX];
    let seen = stream.peek(&mut octets)?;
    if seen == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let found = decode(octets.get(..seen).unwrap_or_default());
    let found = found.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    let Some((header, length)) = found else {
        return Err(match seen == octets.len() {
            true => {
                let text = format!("PROXY header over {HEADER_LENGTH_MAX} octets");
                io::Error::new(io::ErrorKind::InvalidData, text)
            }
            false => io::ErrorKind::WouldBlock.into(),
        });
    };
    stream.read_exact(octets.get_mut(..length).unwrap_or_default())?;
    Ok(header)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream as StdTcpStream};

    use mio::{Events, Poll};

    use super::*;

    const LINE: &[u8] = b"PROXY TCP4 192.0.2.7 192.0.2.25 4711 25\r\n";
    const UNTIL: Timestamp = Timestamp::from_millis(1_000);

    struct Bench {
        proxied: Proxied,
        poll: Poll,
        port: TcpListener,
    }

    impl Bench {
        fn new() -> Self {
            Self {
                proxied: Proxied::new(Token(100)),
                poll: Poll::new().unwrap(),
                port: TcpListener::bind("127.0.0.1:0").unwrap(),
            }
        }

        fn connect(&mut self, until: Timestamp) -> StdTcpStream {
            let client = StdTcpStream::connect(self.port.local_addr().unwrap()).unwrap();
            client.set_nodelay(true).unwrap();
            let (stream, address) = self.port.accept().unwrap();
            stream.set_nonblocking(true).unwrap();
            let stream = TcpStream::from_std(stream);
            let registry = self.poll.registry();
            self.proxied.wait(stream, address, until, registry).unwrap();
            client
        }

        fn read(&mut self, place: usize) -> io::Result<Option<Arrival>> {
            self.proxied.read(place, false, self.poll.registry())
        }

        /// Waits for the header as the loop of the front does.
        fn header(&mut self, place: usize) -> io::Result<Arrival> {
            let mut events = Events::with_capacity(8);
            loop {
                if let Some(client) = self.read(place)? {
                    return Ok(client);
                }
                self.poll.poll(&mut events, None)?;
            }
        }
    }

    #[test]
    fn a_header_in_parts_names_the_client_and_leaves_the_rest() {
        let mut bench = Bench::new();
        let mut balancer = bench.connect(UNTIL);
        assert!(bench.read(0).unwrap().is_none());
        for octet in LINE {
            assert!(bench.read(0).unwrap().is_none());
            balancer.write_all(&[*octet]).unwrap();
        }
        balancer.write_all(b"EHLO a\r\n").unwrap();
        let mut client = bench.header(0).unwrap();
        assert_eq!(client.address.to_string(), "192.0.2.7:4711");
        assert_eq!(client.local.unwrap().to_string(), "192.0.2.25:25");
        let mut rest = [0; 8];
        client.stream.read_exact(&mut rest).unwrap();
        assert_eq!(&rest, b"EHLO a\r\n");
        assert!(bench.read(0).unwrap().is_none());
    }

    #[test]
    fn a_balancer_that_speaks_for_itself_has_its_own_address() {
        let mut bench = Bench::new();
        let mut balancer = bench.connect(UNTIL);
        balancer.write_all(b"PROXY UNKNOWN\r\n").unwrap();
        let client = bench.header(0).unwrap();
        assert_eq!(client.address, balancer.local_addr().unwrap());
        assert_eq!(client.local, None);
    }

    #[test]
    fn what_is_no_header_ends_the_connection() {
        let long = [&LINE[..5], &[b' '; HEADER_LENGTH_MAX]].concat();
        for octets in [&b"EHLO a\r\n"[..], &long] {
            let mut bench = Bench::new();
            let mut balancer = bench.connect(UNTIL);
            balancer.write_all(octets).unwrap();
            let error = bench.header(0).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
            assert_eq!(balancer.read(&mut [0]).unwrap_or_default(), 0);
        }
        let mut bench = Bench::new();
        drop(bench.connect(UNTIL));
        let error = bench.header(0).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_part_of_a_header_before_the_end_is_none() {
        let mut bench = Bench::new();
        let mut balancer = bench.connect(UNTIL);
        balancer.write_all(&LINE[..9]).unwrap();
        balancer.shutdown(std::net::Shutdown::Write).unwrap();
        assert!(bench.read(0).unwrap().is_none());
        let error = bench.proxied.read(0, true, bench.poll.registry());
        let text = "expected a PROXY header; found the end";
        assert!(error.unwrap_err().to_string().ends_with(text));
        assert!(bench.read(0).unwrap().is_none());
        assert_eq!(balancer.read(&mut [0]).unwrap_or_default(), 0);
    }

    #[test]
    fn the_places_have_tokens_of_their_own() {
        let bench = Bench::new();
        let place = |token| bench.proxied.place(Token(token));
        assert_eq!((place(99), place(100)), (None, Some(0)));
        let last = WAITING_MAX - 1;
        assert_eq!(place(100 + last), Some(last));
        assert_eq!(place(100 + WAITING_MAX), None);
    }

    #[test]
    fn the_oldest_makes_room_and_the_late_are_closed() {
        let mut bench = Bench::new();
        let mut oldest = bench.connect(UNTIL);
        let later = Timestamp::from_millis(2_000);
        let mut others: Vec<_> = (1..WAITING_MAX).map(|_| bench.connect(later)).collect();
        let mut newest = bench.connect(later);
        assert_eq!(oldest.read(&mut [0]).unwrap(), 0);
        newest.write_all(LINE).unwrap();
        assert!(bench.header(0).is_ok());
        assert_eq!(bench.proxied.give_up(UNTIL), 0);
        assert_eq!(bench.proxied.give_up(later), WAITING_MAX - 1);
        assert_eq!(others[0].read(&mut [0]).unwrap(), 0);
    }
}
