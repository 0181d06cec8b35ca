//! Reads a connection record by record, so that nothing behind the last record of a handshake is read.

use std::io::{self, Read};

/// Octets before the body of a record: type, version, length of the body (RFC 8446 section 5.1).
const HEADER_OCTETS: usize = 5;
/// Records of a client before the end of its handshake. A client needs a few; a long ClientHello in records of one octet costs more
/// than a hundred thousand calls.
const RECORDS_MAX: usize = 64;

/// The place within a record.
#[derive(Debug, Default)]
pub(super) struct Records {
    header: [u8; HEADER_OCTETS],
    /// Octets of the header that were read.
    has: usize,
    /// Octets of the body that were not read.
    left: usize,
    /// Number of headers that were read.
    count: usize,
}

/// A connection whose reads end with a header or a body at the latest. The TLS library checks the octets.
pub(super) struct ByRecord<'a, S> {
    pub(super) records: &'a mut Records,
    pub(super) socket: &'a mut S,
}

impl<S: Read> Read for ByRecord<'_, S> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Self { records, socket } = self;
        if records.count > RECORDS_MAX {
            return Err(io::Error::other(format!(
                "expected the end of the handshake within {RECORDS_MAX} records; found more"
            )));
        }
        let wanted = match records.left {
            0 => HEADER_OCTETS.saturating_sub(records.has),
            left => left,
        };
        let wanted = wanted.min(into.len());
        let into = into.get_mut(..wanted).unwrap_or_default();
        let count = socket.read(into)?;
        records.passed(into.get(..count).unwrap_or_default());
        Ok(count)
    }
}

impl Records {
    fn passed(&mut self, octets: &[u8]) {
        if self.left > 0 {
            self.left = self.left.saturating_sub(octets.len());
            return;
        }
        for octet in octets {
            if let Some(place) = self.header.get_mut(self.has) {
                *place = *octet;
                self.has = self.has.saturating_add(1);
            }
        }
        if self.has == HEADER_OCTETS {
            let [_, _, _, high, low] = self.header;
            (self.has, self.left) = (0, u16::from_be_bytes([high, low]).into());
            self.count = self.count.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives octets in pieces of a length.
    struct Pieces<'a>(&'a [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(into.len()).min(self.0.len());
            let (now, later) = self.0.split_at(count);
            into[..count].copy_from_slice(now);
            self.0 = later;
            Ok(count)
        }
    }

    #[test]
    fn a_read_ends_with_a_header_or_a_body_however_the_octets_come() {
        let octets = [
            &[22, 3, 1, 0, 3, 1, 2, 3][..],
            &[20, 3, 3, 0, 0],
            &[23, 3, 3, 1, 4],
            &[7; 260],
        ]
        .concat();
        let ends = [5, 8, 13, 18, 278];
        for piece in [1, 2, 3, 5, 7, 300] {
            let (mut records, mut socket) = (Records::default(), Pieces(&octets, piece));
            let (mut at, mut met) = (0, Vec::new());
            while at < octets.len() {
                let mut by_record = ByRecord {
                    records: &mut records,
                    socket: &mut socket,
                };
                let count = by_record.read(&mut [0; 4_096]).unwrap();
                assert!(count > 0);
                let over = ends.iter().find(|end| (at + 1..at + count).contains(*end));
                assert_eq!(over, None, "pieces of {piece}: {count} octets at {at}");
                at += count;
                met.extend(ends.contains(&at).then_some(at));
            }
            assert_eq!(met, ends, "pieces of {piece}");
        }
    }

    #[test]
    fn a_handshake_in_too_many_records_is_an_error() {
        let octets = [22, 3, 1, 0, 1, 1].repeat(RECORDS_MAX + 1);
        let (mut records, mut socket) = (Records::default(), Pieces(&octets, 300));
        let mut read = || {
            let mut by_record = ByRecord {
                records: &mut records,
                socket: &mut socket,
            };
            by_record.read(&mut [0; 4_096])
        };
        for _ in 0..RECORDS_MAX {
            assert_eq!((read().unwrap(), read().unwrap()), (5, 1));
        }
        assert_eq!(read().unwrap(), 5);
        assert_eq!(read().unwrap_err().kind(), io::ErrorKind::Other);
    }
}
