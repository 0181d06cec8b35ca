//! Dialects with constant requests and replies: memcached and Redis.

use super::drive::{Dialect, Replied};

/// Octets of ready-made requests, about.
const BLOCK_LEN: usize = 128 << 10;

/// Octets of a group of quiet requests, ended by one `mn`.
const QUIET_LEN: usize = 32 << 10;

/// Requests made once and sent round and round; replies compared octet by octet.
#[derive(Debug)]
pub(super) struct Fixed {
    block: Vec<u8>,
    unit_octets: usize,
    unit_messages: u64,
    /// The unit sent next, and the prepared units.
    next: usize,
    ready: std::ops::Range<usize>,
    /// The reply to a unit, repeated.
    pattern: Vec<u8>,
    reply_len: usize,
    /// Octets of replies from each server.
    received: Vec<u64>,
}

impl Fixed {
    /// `unit` appends the requests of the numbered unit, always of equal length; `reply` is the answer to each
    /// request.
    fn new(unit_messages: u64, reply: &[u8], mut unit: impl FnMut(&mut Vec<u8>, usize)) -> Self {
        let mut block = Vec::new();
        unit(&mut block, 0);
        let unit_octets = block.len();
        for number in 1..(BLOCK_LEN / unit_octets).max(1) {
            unit(&mut block, number);
        }
        Self {
            block,
            unit_octets,
            unit_messages,
            next: 0,
            ready: 0..0,
            pattern: reply.repeat(4096_usize.div_ceil(reply.len()) + 1),
            reply_len: reply.len(),
            received: Vec::new(),
        }
    }

    /// memcached's text protocol: `set`, `delete`.
    pub(super) fn memcached_text(lane: usize, body: &[u8]) -> Self {
        Self::new(1, b"STORED\r\nDELETED\r\n", |out, number| {
            let key = format!("{lane:02}:{number:06}");
            out.extend_from_slice(format!("set {key} 0 0 {}\r\n", body.len()).as_bytes());
            out.extend_from_slice(body);
            out.extend_from_slice(format!("\r\ndelete {key}\r\n").as_bytes());
        })
    }

    /// memcached's quiet meta commands: `ms`, `md`, and an `mn` now and then.
    pub(super) fn memcached_quiet(lane: usize, body: &[u8], window: usize) -> Self {
        let group = QUIET_LEN.min(window / 4) / (body.len() + 40);
        let group = group.max(1);
        Self::new(group as u64, b"MN\r\n", |out, number| {
            for message in 0..group {
                let key = format!("{lane:02}:{:06}", number * group + message);
                out.extend_from_slice(format!("ms {key} {:05} q\r\n", body.len()).as_bytes());
                out.extend_from_slice(body);
                out.extend_from_slice(format!("\r\nmd {key} q\r\n").as_bytes());
            }
            out.extend_from_slice(b"mn\r\n");
        })
    }

    /// Redis: SET, DEL.
    pub(super) fn redis_set(lane: usize, body: &[u8]) -> Self {
        Self::new(1, b"+OK\r\n:1\r\n", |out, number| {
            let key = format!("{lane:02}:{number:06}");
            command(out, &[b"SET", key.as_bytes(), body]);
            command(out, &[b"DEL", key.as_bytes()]);
        })
    }

    /// Redis as a queue: RPUSH, then LTRIM removes the head without a copy in the reply.
    pub(super) fn redis_list(lane: usize, body: &[u8]) -> Self {
        Self::new(1, b":1\r\n+OK\r\n", |out, _| {
            let key = format!("list:{lane:02}");
            command(out, &[b"RPUSH", key.as_bytes(), body]);
            command(out, &[b"LTRIM", key.as_bytes(), b"1", b"-1"]);
        })
    }
}

/// Appends a Redis command.
pub(super) fn command(out: &mut Vec<u8>, words: &[&[u8]]) {
    out.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

impl Dialect for Fixed {
    fn unit_octets(&self) -> usize {
        self.unit_octets
    }

    fn unit_messages(&self) -> u64 {
        self.unit_messages
    }

    fn prepare(&mut self, units: usize) -> usize {
        let in_block = self.block.len() / self.unit_octets;
        let count = units.min(in_block - self.next);
        let start = self.next * self.unit_octets;
        self.ready = start..start + count * self.unit_octets;
        self.next = (self.next + count) % in_block;
        count
    }

    fn octets(&self) -> &[u8] {
        &self.block[self.ready.clone()]
    }

    fn replies(&mut self, server: usize, input: &[u8]) -> Result<Replied, String> {
        if self.received.len() <= server {
            self.received.resize(server + 1, 0);
        }
        let received = &mut self.received[server];
        let mut rest = input;
        while !rest.is_empty() {
            let at = (*received % self.reply_len as u64) as usize;
            let expected = &self.pattern[at..];
            let count = expected.len().min(rest.len());
            if rest[..count] != expected[..count] {
                let text = String::from_utf8_lossy(&rest[..count.min(80)]);
                return Err(format!("unexpected reply: {text:?}"));
            }
            *received += count as u64;
            rest = &rest[count..];
        }
        Ok(Replied {
            consumed: input.len(),
            done: *received / self.reply_len as u64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Fixed;
    use crate::spool::drive::Dialect;

    #[test]
    fn units_are_of_one_length_and_go_round() {
        let body = [b'x'; 400];
        for mut dialect in [
            Fixed::memcached_text(3, &body),
            Fixed::memcached_quiet(3, &body, 65_536),
            Fixed::redis_set(3, &body),
            Fixed::redis_list(3, &body),
        ] {
            let in_block = dialect.block.len() / dialect.unit_octets;
            assert_eq!(dialect.block.len(), in_block * dialect.unit_octets);
            assert_eq!(dialect.prepare(1), 1);
            let first = dialect.octets().to_vec();
            assert_eq!(dialect.prepare(usize::MAX), in_block - 1);
            assert_eq!(dialect.prepare(1), 1);
            assert_eq!(dialect.octets(), first);
        }
    }

    #[test]
    fn replies_are_counted_in_pieces_and_others_are_an_error() {
        let mut dialect = Fixed::redis_set(0, b"body");
        assert_eq!(dialect.replies(0, b"+OK\r\n:").unwrap().done, 0);
        assert_eq!(dialect.replies(0, b"1\r\n+OK\r\n:1\r\n+").unwrap().done, 2);
        assert_eq!(dialect.replies(1, b"+OK\r\n:1\r\n").unwrap().done, 1);
        assert!(dialect.replies(0, b"-ERR no\r\n").is_err());
    }
}
