//! The last octets of a connection, in one segment with its end.

use std::io;
use std::os::fd::AsFd;

use rustix::net::{SendFlags, Shutdown, send, shutdown};

/// Writes octets; behind the last of them the writer's side of the connection ends (shutdown(2)).
///
/// The kernel holds octets back until the end is there (send(2), `MSG_MORE`), so that both leave in one segment: the
/// network and the reader have one event less. Returns the number of octets written. Where the connection has room for a
/// part only, its end does not come, and the caller writes the rest by another call.
///
/// # Errors
/// Errors of send(2) and shutdown(2).
pub fn write_last(connection: impl AsFd, octets: &[u8]) -> io::Result<usize> {
    let flags = SendFlags::NOSIGNAL | SendFlags::MORE;
    let written = send(&connection, octets, flags)?;
    if written == octets.len() {
        shutdown(&connection, Shutdown::Write)?;
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn pair() -> (TcpStream, TcpStream) {
        let port = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(port.local_addr().unwrap()).unwrap();
        (client, port.accept().unwrap().0)
    }

    #[test]
    fn the_octets_arrive_and_the_end_behind_them() {
        let (mut client, server) = pair();
        assert_eq!(write_last(&server, b"bye\r\n").unwrap(), 5);
        let mut said = String::new();
        client.read_to_string(&mut said).unwrap();
        assert_eq!(said, "bye\r\n");
    }

    #[test]
    fn octets_that_nobody_reads_do_not_cost_the_client_its_reply() {
        let (mut client, mut server) = pair();
        client.write_all(b"QUIT\r\nmore").unwrap();
        server.read_exact(&mut [0; 6]).unwrap();
        write_last(&server, b"bye\r\n").unwrap();
        // The close resets the connection, because octets are left.
        drop(server);
        let mut said = [0; 5];
        client.read_exact(&mut said).unwrap();
        assert_eq!(&said, b"bye\r\n");
    }

    #[test]
    fn a_part_is_not_the_end() {
        let (mut client, server) = pair();
        server.set_nonblocking(true).unwrap();
        let octets = vec![7; 64 << 20];
        let written = write_last(&server, &octets).unwrap();
        assert!(written < octets.len());
        let reader = std::thread::spawn(move || {
            let mut all = Vec::new();
            client.read_to_end(&mut all).map(|_| all.len())
        });
        server.set_nonblocking(false).unwrap();
        let rest = write_last(&server, &octets[written..]).unwrap();
        assert_eq!(written + rest, octets.len());
        assert_eq!(reader.join().unwrap().unwrap(), octets.len());
    }
}
