//! Assembles whole commands, with literals, from octets in pieces of any size (RFC 9051 section 4.3, RFC 7888).

use crate::command::beginning;
use crate::limits::Limits;

/// Octets of the end of a line that announce a literal: `~{18446744073709551615+}` and CRLF.
const ANNOUNCEMENT_OCTETS_MAX: usize = 32;

/// Octets kept of the beginning of a refused command.
const BEGINNING_OCTETS_MAX: usize = 256;

/// Octets of memory reserved when a literal is announced: what is announced need not come. Reserved octets that nobody
/// writes to take no memory of their own, but the allocator keeps some for each GiB of addresses.
const RESERVED_OCTETS_MAX: usize = 64 * 1024;

/// Octets of a literal from which on it gets room for all that was announced.
const LONG_OCTETS: usize = 1 << 20;

/// By how much the room of a shorter literal grows.
const GROWTH: usize = 8;

/// Octets reserved for the text behind a long literal, so that the text does not move the literal.
const BEHIND_OCTETS: usize = 1024;

/// The reason for refusing a command; always the peer's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameError {
    /// The command exceeds the length limit.
    TooLong,
    /// The message of APPEND exceeds the size limit.
    TooBig,
    /// There is no room for the message, or for a command that is long, now.
    NoRoom,
    /// A line ends with LF alone.
    BareLf,
    /// NUL in a place without permission for NUL.
    Nul,
}

/// What came.
#[derive(Debug)]
pub(super) enum Framed {
    /// A command, without the final CRLF.
    Command(Vec<u8>),
    /// A refused command: the beginning of the text, and the reason.
    Refused(Vec<u8>, FrameError),
    /// The client waits for leave to send a literal.
    Continue,
    /// The octets on the way are too many to read past, and must not be taken for commands: the connection ends.
    Hopeless,
}

/// Collects a command; empty between commands.
#[derive(Debug, Default)]
pub(super) struct FrameReader {
    buffer: Vec<u8>,
    /// Where in the buffer the line at hand begins.
    line: usize,
    /// Octets of APPEND messages in the buffer, under a separate limit.
    message: usize,
    /// Whether the command is longer than one without long sets may be.
    is_long: bool,
    expect: Expect,
    refused: Option<FrameError>,
    /// The end of a line of which no more is kept.
    tail: Vec<u8>,
}

#[derive(Debug, Default, Clone, Copy)]
enum Expect {
    #[default]
    Line,
    /// So many octets of a literal.
    Literal(usize),
    /// Remaining octets of a refused literal.
    Refused(u64),
}

/// Which bounds hold.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds<'a> {
    pub(super) limits: &'a Limits,
    /// Before login commands are shorter, and there is no APPEND.
    pub(super) logged_in: bool,
}

impl Bounds<'_> {
    /// The limit for a command without sets of numbers.
    fn command(&self) -> usize {
        if self.logged_in {
            self.limits.command_octets_max
        } else {
            self.limits.login_octets_max
        }
    }

    /// Of all of a command.
    fn whole(&self) -> usize {
        if self.logged_in {
            self.limits.sets_octets_max.max(self.command())
        } else {
            self.command()
        }
    }
}

impl FrameReader {
    /// Takes octets up to the next thing that came: how many, and the thing.
    pub(super) fn take(&mut self, bytes: &[u8], bounds: Bounds<'_>) -> (usize, Option<Framed>) {
        match self.expect {
            Expect::Line => self.take_line(bytes, bounds),
            Expect::Literal(left) => {
                let piece = bytes.get(..left).unwrap_or(bytes);
                self.make_room(piece.len(), left);
                self.buffer.extend_from_slice(piece);
                self.expect = match left.saturating_sub(piece.len()) {
                    0 => self.next_line(),
                    left => Expect::Literal(left),
                };
                (piece.len(), None)
            }
            Expect::Refused(left) => {
                let skipped = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                let left = left.saturating_sub(u64::try_from(skipped).unwrap_or(left));
                self.expect = match left {
                    0 => self.next_line(),
                    left => Expect::Refused(left),
                };
                (skipped, None)
            }
        }
    }

    /// Whether a part of a command is here.
    pub(super) fn is_begun(&self) -> bool {
        !self.buffer.is_empty() || self.refused.is_some()
    }

    /// Whether octets of a literal are to come, or much waits for the end of its command.
    pub(super) fn has_much(&self) -> bool {
        self.is_held() || !matches!(self.expect, Expect::Line)
    }

    /// Whether the buffer takes memory shared by all connections.
    fn is_held(&self) -> bool {
        self.message > 0 || self.is_long
    }

    pub(super) fn memory(&self) -> usize {
        self.buffer.capacity().saturating_add(self.tail.capacity())
    }

    /// The octets here of a message on the way, or of a long command. Announced or reserved octets that have not
    /// arrived take no memory.
    pub(super) fn message_memory(&self) -> usize {
        if self.is_held() { self.buffer.len() } else { 0 }
    }

    /// Drops the message on the way, or the long command; the command is refused at the end.
    pub(super) fn refuse_for_room(&mut self) {
        if !self.is_held() {
            return;
        }
        if let Expect::Literal(left) = self.expect {
            self.expect = Expect::Refused(u64::try_from(left).unwrap_or(u64::MAX));
        }
        self.refuse(FrameError::NoRoom);
    }

    /// Makes room for `octets` of a literal of which `left` octets are to come. A long literal gets room for all of it
    /// at once: doubling would hold the old room and the new room at the same time.
    fn make_room(&mut self, octets: usize, left: usize) {
        let wanted = self.buffer.len().saturating_add(octets);
        if wanted <= self.buffer.capacity() {
            return;
        }
        let all = left.saturating_add(BEHIND_OCTETS);
        let room = match wanted > LONG_OCTETS {
            true => all,
            false => wanted.saturating_mul(GROWTH).min(all),
        };
        self.buffer.reserve_exact(room);
    }

    fn next_line(&mut self) -> Expect {
        self.line = self.buffer.len();
        self.tail.clear();
        Expect::Line
    }

    fn refuse(&mut self, error: FrameError) {
        self.refused.get_or_insert(error);
        // The line at hand may go on, and announce a literal whose announcement has come in part.
        keep_end(
            &mut self.tail,
            self.buffer.get(self.line..).unwrap_or_default(),
        );
        // The beginning of a refused command is kept because of the tag.
        self.buffer.truncate(BEGINNING_OCTETS_MAX);
        self.buffer.shrink_to_fit();
        self.line = self.buffer.len();
        self.message = 0;
        self.is_long = false;
    }

    fn take_line(&mut self, bytes: &[u8], bounds: Bounds<'_>) -> (usize, Option<Framed>) {
        let end = memchr::memchr(b'\n', bytes);
        let taken = end.map_or(bytes.len(), |end| end.saturating_add(1));
        self.keep(bytes.get(..taken).unwrap_or(bytes), bounds);
        let framed = end.and_then(|_| self.end_line(bounds));
        (taken, framed)
    }

    /// Appends a piece of a line; of a refused line only the end is kept.
    fn keep(&mut self, piece: &[u8], bounds: Bounds<'_>) {
        let mut rest = piece;
        if self.refused.is_none() {
            let text = self.buffer.len().saturating_sub(self.message);
            let room = bounds.whole().saturating_sub(text);
            // The fitting part is appended even when the piece as a whole does not fit: the tag may be in that part,
            // and the kept text must not depend on where the line was cut.
            let (fits, excess) = piece.split_at_checked(room).unwrap_or((piece, &[]));
            self.buffer.extend_from_slice(fits);
            self.is_long |= text.saturating_add(fits.len()) > bounds.command();
            if excess.is_empty() {
                return;
            }
            self.refuse(FrameError::TooLong);
            rest = excess;
        }
        keep_end(&mut self.tail, rest);
    }

    fn end_line(&mut self, bounds: Bounds<'_>) -> Option<Framed> {
        let line = if self.refused.is_some() {
            self.tail.as_slice()
        } else {
            self.buffer.get(self.line..).unwrap_or_default()
        };
        let literal = line.strip_suffix(b"\r\n").and_then(announced);
        let error = match line {
            [.., b'\r', b'\n'] if memchr::memchr(0, line).is_some() => Some(FrameError::Nul),
            [.., b'\r', b'\n'] => None,
            _ => Some(FrameError::BareLf),
        };
        if let Some(error) = error {
            self.refuse(error);
        }
        match literal {
            Some(literal) => self.announce(literal, bounds),
            None => {
                if self.is_long && self.octets_beside_sets() > bounds.command() {
                    self.refuse(FrameError::TooLong);
                }
                Some(self.end_command())
            }
        }
    }

    /// Octets of the command outside messages and outside the longest set of numbers.
    fn octets_beside_sets(&self) -> usize {
        let is_of_set = |octet: &u8| octet.is_ascii_digit() || matches!(octet, b',' | b':' | b'*');
        let sets = self.buffer.split(|octet| !is_of_set(octet));
        let longest = sets.map(<[u8]>::len).max().unwrap_or_default();
        let text = self.buffer.len().saturating_sub(self.message);
        text.saturating_sub(longest)
    }

    fn end_command(&mut self) -> Framed {
        let refused = self.refused;
        let mut text = std::mem::take(self).buffer;
        if let Some(error) = refused {
            return Framed::Refused(text, error);
        }
        text.truncate(text.len().saturating_sub(2));
        Framed::Command(text)
    }

    fn announce(&mut self, literal: Announced, bounds: Bounds<'_>) -> Option<Framed> {
        if self.refused.is_none() {
            match self.room_for(literal.octets, bounds) {
                Ok(octets) => {
                    let reserved = octets.min(RESERVED_OCTETS_MAX);
                    self.buffer.reserve(reserved.saturating_add(BEHIND_OCTETS));
                    self.expect = Expect::Literal(octets);
                    if octets == 0 {
                        self.expect = self.next_line();
                    }
                    return literal.waits.then_some(Framed::Continue);
                }
                Err(error) => self.refuse(error),
            }
        }
        if literal.waits {
            // Without leave the literal does not come, and the command ends here.
            return Some(self.end_command());
        }
        // A stranger's literal is not read to its end for the sake of the reply.
        if !bounds.logged_in || literal.octets > bounds.limits.refused_size_max.as_u64() {
            return Some(Framed::Hopeless);
        }
        self.tail.clear();
        if literal.octets > 0 {
            self.expect = Expect::Refused(literal.octets);
        }
        None
    }

    fn room_for(&mut self, octets: u64, bounds: Bounds<'_>) -> Result<usize, FrameError> {
        let text = self.buffer.len().saturating_sub(self.message);
        // Behind a long set there is room for a literal all the same.
        let room = match self.is_long {
            true => bounds.whole().saturating_sub(text).min(bounds.command()),
            false => bounds.command().saturating_sub(text),
        };
        let octets_here = usize::try_from(octets).unwrap_or(usize::MAX);
        if octets_here <= room {
            self.is_long |= text.saturating_add(octets_here) > bounds.command();
            return Ok(octets_here);
        }
        let (_, word) = beginning(&self.buffer);
        if !bounds.logged_in || !word.eq_ignore_ascii_case(b"APPEND") {
            return Err(FrameError::TooLong);
        }
        // The sum over all literals: a client may announce several literals.
        let message = self.message.saturating_add(octets_here);
        let fits = u64::try_from(message)
            .is_ok_and(|octets| octets <= bounds.limits.message_size_max.as_u64());
        if !fits {
            return Err(FrameError::TooBig);
        }
        self.message = message;
        Ok(octets_here)
    }
}

/// Adds a piece to the end of a line, of which no more is kept than can announce a literal.
fn keep_end(tail: &mut Vec<u8>, piece: &[u8]) {
    let begin = piece.len().saturating_sub(ANNOUNCEMENT_OCTETS_MAX);
    tail.extend_from_slice(piece.get(begin..).unwrap_or(piece));
    let excess = tail.len().saturating_sub(ANNOUNCEMENT_OCTETS_MAX);
    tail.drain(..excess);
}

/// A literal at the end of a line.
#[derive(Debug, Clone, Copy)]
struct Announced {
    octets: u64,
    /// Whether the client waits for leave.
    waits: bool,
}

/// `"{" number64 ["+"] "}"` at the end of a line.
fn announced(line: &[u8]) -> Option<Announced> {
    let inside = line.strip_suffix(b"}")?;
    let begin = memchr::memrchr(b'{', inside)?;
    let inside = inside.get(begin.saturating_add(1)..)?;
    let (digits, waits) = match inside.strip_suffix(b"+") {
        Some(digits) => (digits, false),
        None => (inside, true),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    // A number of more digits than that is larger than any bound.
    let octets = std::str::from_utf8(digits)
        .ok()?
        .parse()
        .unwrap_or(u64::MAX);
    Some(Announced { octets, waits })
}

#[cfg(test)]
mod tests {
    use super::*;
    use vere_units::ByteSize;

    fn limits() -> Limits {
        Limits {
            command_octets_max: 40,
            sets_octets_max: 90,
            login_octets_max: 20,
            message_size_max: ByteSize::new(100),
            refused_size_max: ByteSize::new(1_000),
            ..Limits::default()
        }
    }

    /// The result of feeding octets in pieces of a given size.
    fn all(octets: &[u8], piece: usize, logged_in: bool) -> Vec<String> {
        let limits = limits();
        let mut reader = FrameReader::default();
        let mut found = Vec::new();
        for piece in octets.chunks(piece) {
            let mut rest = piece;
            while !rest.is_empty() {
                let (taken, framed) = reader.take(
                    rest,
                    Bounds {
                        limits: &limits,
                        logged_in,
                    },
                );
                rest = &rest[taken..];
                found.extend(framed.map(|framed| match framed {
                    Framed::Command(text) => format!("[{}]", String::from_utf8_lossy(&text)),
                    Framed::Refused(text, error) => {
                        format!("{:?} {error:?}", beginning(&text).0.unwrap_or_default())
                    }
                    other => format!("{other:?}"),
                }));
                assert!(reader.memory() < 10_000);
            }
        }
        found
    }

    fn check(octets: &str, wanted: &[&str]) {
        for piece in [1, 2, 7, 10_000] {
            assert_eq!(
                all(octets.as_bytes(), piece, true),
                wanted,
                "{octets:?} by {piece}"
            );
        }
    }

    #[test]
    fn literals_are_part_of_a_command() {
        check("a noop\r\nb x\r\n", &["[a noop]", "[b x]"]);
        check("a {3}\r\nx\r\n y\r\n", &["Continue", "[a {3}\r\nx\r\n y]"]);
        check("a {3+}\r\n{9} {0+}\r\n\r\n", &["[a {3+}\r\n{9} {0+}\r\n]"]);
        check("a \"{3}\"\r\n", &["[a \"{3}\"]"]);
        check(
            "a {3\r\na {x}\r\na {}\r\n",
            &["[a {3]", "[a {x}]", "[a {}]"],
        );
    }

    #[test]
    fn what_is_too_long_is_passed_over() {
        let long = "x".repeat(100);
        check(&format!("a {long}\r\nb\r\n"), &["\"a\" TooLong", "[b]"]);
        check(
            &format!("a {long}{{9+}}\r\nb noop\r\n1\r\nc\r\n"),
            &["\"a\" TooLong", "[c]"],
        );
        check("a {50}\r\nb\r\n", &["\"a\" TooLong", "[b]"]);
        check(
            &format!("a {{100+}}\r\n{long} x\r\nb\r\n"),
            &["\"a\" TooLong", "[b]"],
        );
        check("a {4294967296}\r\nb\r\n", &["\"a\" TooLong", "[b]"]);
        check(
            "a {99999999999999999999999}\r\nb\r\n",
            &["\"a\" TooLong", "[b]"],
        );
        check("a {4294967296+}\r\n", &["Hopeless"]);
    }

    #[test]
    fn sets_alone_may_be_long() {
        let set = "1,22:3,*,".repeat(6);
        check(
            &format!("a uid fetch {set} flags\r\nb\r\n"),
            &[&format!("[a uid fetch {set} flags]"), "[b]"],
        );
        // The longest set counts, and not the text around the set.
        check(
            &format!("a uid fetch {} {}\r\nb\r\n", &set[..36], "x".repeat(30)),
            &["\"a\" TooLong", "[b]"],
        );
        check(
            &format!("a search {} {}\r\nb\r\n", &set[..40], &set[..30]),
            &["\"a\" TooLong", "[b]"],
        );
        check(
            &format!("a uid fetch {set}{set} x\r\nb\r\n"),
            &["\"a\" TooLong", "[b]"],
        );
        // A literal behind a long set is part of the command, and no message.
        check(
            &format!("a uid search uid {set} to {{5+}}\r\nalice\r\nb\r\n"),
            &[
                &format!("[a uid search uid {set} to {{5+}}\r\nalice]"),
                "[b]",
            ],
        );
        check(
            &format!("a uid search uid {set} to {{9+}}\r\nalice 123\r\nb\r\n"),
            &["\"a\" TooLong", "[b]"],
        );
        // Before login a long set of numbers is refused too.
        assert_eq!(
            all(format!("a {set}\r\nb\r\n").as_bytes(), 9, false),
            ["\"a\" TooLong", "[b]"]
        );
    }

    #[test]
    fn a_long_command_takes_room_and_can_lose_it() {
        let limits = limits();
        let bounds = Bounds {
            limits: &limits,
            logged_in: true,
        };
        let mut reader = FrameReader::default();
        let (_, framed) = reader.take(&[b'1'; 40], bounds);
        assert!(framed.is_none() && !reader.has_much(), "{framed:?}");
        assert_eq!(reader.message_memory(), 0);
        let (_, framed) = reader.take(b"1", bounds);
        assert!(framed.is_none() && reader.has_much(), "{framed:?}");
        assert_eq!(reader.message_memory(), 41);
        reader.refuse_for_room();
        assert_eq!(reader.message_memory(), 0);
        let (_, framed) = reader.take(b"2 x\r\n", bounds);
        assert!(
            matches!(framed, Some(Framed::Refused(_, FrameError::NoRoom))),
            "{framed:?}"
        );
        assert!(!reader.is_begun());
    }

    #[test]
    fn a_literal_is_found_wherever_the_bound_cuts_its_announcement() {
        for filler in 0..60 {
            let long = "x".repeat(filler);
            let octets = format!("a {long}{{9+}}\r\nb noop\r\n1 {long}\r\nc\r\n");
            let whole = all(octets.as_bytes(), octets.len(), true);
            assert_eq!(whole.last().map(String::as_str), Some("[c]"));
            assert_eq!(whole.len(), 2, "{whole:?}");
            for piece in [1, 2, 3, 7] {
                assert_eq!(
                    all(octets.as_bytes(), piece, true),
                    whole,
                    "{filler} by {piece}"
                );
            }
        }
    }

    #[test]
    fn the_tag_of_what_is_too_long_does_not_depend_on_the_pieces() {
        for (octets, wanted) in [(35, "t".repeat(35)), (100, String::new())] {
            check(
                &format!("{} {}\r\nb\r\n", "t".repeat(octets), "x".repeat(60)),
                &[&format!("{wanted:?} TooLong"), "[b]"],
            );
        }
    }

    #[test]
    fn a_literal_begun_when_its_message_lost_its_room_is_passed_over() {
        let limits = limits();
        let bounds = Bounds {
            limits: &limits,
            logged_in: true,
        };
        let mut reader = FrameReader::default();
        let message = format!("a append x {{50+}}\r\n{} {{9", "m".repeat(50));
        let mut rest = message.as_bytes();
        while !rest.is_empty() {
            let (taken, framed) = reader.take(rest, bounds);
            assert!(framed.is_none(), "{framed:?}");
            rest = &rest[taken..];
        }
        reader.refuse_for_room();
        let mut rest: &[u8] = b"+}\r\nb noop\r\n1\r\n";
        let mut found = Vec::new();
        while !rest.is_empty() {
            let (taken, framed) = reader.take(rest, bounds);
            found.extend(framed.map(|framed| format!("{framed:?}")));
            rest = &rest[taken..];
        }
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("NoRoom"), "{found:?}");
        assert!(!reader.is_begun());
    }

    #[test]
    fn messages_have_their_own_bound() {
        let message = "m".repeat(100);
        check(
            &format!("a append x {{100+}}\r\n{message}\r\nb\r\n"),
            &[&format!("[a append x {{100+}}\r\n{message}]"), "[b]"],
        );
        check("a append x {101}\r\nb\r\n", &["\"a\" TooBig", "[b]"]);
        check(
            &format!("a append x {{101+}}\r\n{message}m\r\nb\r\n"),
            &["\"a\" TooBig", "[b]"],
        );
        assert_eq!(
            all(b"a append x {30}\r\nb\r\n", 3, false),
            ["\"a\" TooLong", "[b]"]
        );
    }

    /// Each literal had the bound of a message, and there may be any number.
    #[test]
    fn the_literals_of_a_command_have_the_bound_together() {
        let message = "m".repeat(60);
        check(
            &format!("a append x {{60+}}\r\n{message} {{60}}\r\nb\r\n"),
            &["\"a\" TooBig", "[b]"],
        );
        check(
            &format!("a append x {{60+}}\r\n{message} {{60+}}\r\n{message}\r\nb\r\n"),
            &["\"a\" TooBig", "[b]"],
        );
    }

    /// The doubling of the buffer once held two copies.
    #[test]
    fn a_long_message_is_not_copied_as_it_comes() {
        const OCTETS: usize = 9 << 20;
        let limits = Limits::default();
        let bounds = Bounds {
            limits: &limits,
            logged_in: true,
        };
        let mut reader = FrameReader::default();
        reader.take(format!("a append x {{{OCTETS}+}}\r\n").as_bytes(), bounds);
        let (mut capacity, mut most) = (0, 0);
        let piece = vec![b'm'; 60_000];
        for begin in (0..OCTETS).step_by(piece.len()) {
            let octets = piece.len().min(OCTETS - begin);
            reader.take(&piece[..octets], bounds);
            if reader.buffer.capacity() != capacity {
                most = most.max(capacity + reader.buffer.len());
                capacity = reader.buffer.capacity();
            }
        }
        let (_, framed) = reader.take(b"\r\n", bounds);
        let Some(Framed::Command(text)) = framed else {
            panic!("expected a command; found {framed:?}");
        };
        assert_eq!(text.capacity(), capacity);
        assert!(most < OCTETS + OCTETS / 5, "{most} octets of {OCTETS}");
    }

    #[test]
    fn a_literal_refused_before_login_ends_the_connection() {
        for piece in [1, 3, 100] {
            assert_eq!(
                all(b"a login x {30+}\r\n", piece, false),
                ["Hopeless"],
                "by {piece}"
            );
        }
    }

    #[test]
    fn a_message_takes_the_memory_of_what_came() {
        let limits = limits();
        let bounds = Bounds {
            limits: &limits,
            logged_in: true,
        };
        let mut reader = FrameReader::default();
        let announced = b"a append x {90+}\r\n";
        let (taken, framed) = reader.take(announced, bounds);
        assert!(taken == announced.len() && framed.is_none(), "{framed:?}");
        assert_eq!(reader.message_memory(), announced.len());
        let (taken, framed) = reader.take(&[b'm'; 50], bounds);
        assert!(taken == 50 && framed.is_none(), "{framed:?}");
        assert_eq!(reader.message_memory(), announced.len() + 50);
    }

    #[test]
    fn lines_end_with_crlf_and_hold_no_nul() {
        check("a noop\nb\r\n", &["\"a\" BareLf", "[b]"]);
        check("a \0\r\nb\r\n", &["\"a\" Nul", "[b]"]);
    }
}
