//! Receives the text of a message: the end, dot-stuffing, line ends and size (RFC 5321 sections 2.3.8 and 4.5.2).
//!
//! Exactly CRLF `.` CRLF ends DATA. Any other CR or LF outside of CRLF, and NUL unless NUL is allowed, is a [`Fault`]
//! of the whole message: the collector does not guess where another server would see the end; the text is read to its
//! true end and thrown away. Smuggling is therefore impossible.

use memchr::{memchr, memchr3, memmem, memrchr};
use vere_units::Timestamp;

use crate::limits::Limits;
use crate::text::{is_paired, lines_fit};

use super::pace::Pace;

/// The fault of a message. The first fault counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    BareCr,
    BareLf,
    Nul,
    LineTooLong,
    TooBig,
    /// The host has no memory for the text; the only fault not caused by the peer.
    NoRoom,
}

/// The form of the arriving text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Lines with dots before dots, ended by a lone dot (DATA).
    Dotted,
    /// Lines (BDAT).
    Lines,
    /// Any octets (BDAT of `BODY=BINARYMIME`).
    Binary,
}

/// Where in the text the next octet stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    LineStart,
    WithinLine,
    /// Behind a CR within a line.
    Cr,
    /// Behind a dot at the start of a line, which has not been copied.
    Dot,
    /// Behind a dot at the beginning of a line and a CR, both not copied yet.
    DotCr,
}

/// Above this size the buffer of a text is reserved for the largest possible text, once. Growth by doubling would
/// hold the old and the new buffer at once, twice the largest message. Untouched space takes no memory. Hosts that
/// keep long texts elsewhere take the octets before this size.
const GROWS_TO: usize = 2 << 20;

/// Bounds of a message's text.
#[derive(Debug, Clone, Copy)]
pub(super) struct TextLimits {
    pub(super) size_max: u64,
    pub(super) line_octets_max: usize,
    /// Whether NUL is kept.
    pub(super) nul: bool,
}

/// Collects the text of a message.
///
/// Memory grows with the octets received and ends at `size_max`; a fault frees it.
#[derive(Debug)]
pub(super) struct Collector {
    form: Form,
    limits: TextLimits,
    place: Place,
    /// Octets of the current line in earlier pieces.
    line_octets: usize,
    /// Octets of the text kept elsewhere by the host; `body` follows.
    aside: u64,
    body: Vec<u8>,
    /// Octets that the host holds for the text set aside.
    beside: usize,
    fault: Option<Fault>,
    /// Octets taken since the fault.
    refused: u64,
    pace: Pace,
}

impl Collector {
    pub(super) fn new(form: Form, limits: TextLimits, began: Timestamp) -> Self {
        Self {
            form,
            limits,
            place: Place::LineStart,
            line_octets: 0,
            aside: 0,
            body: Vec::new(),
            beside: 0,
            fault: None,
            refused: 0,
            pace: Pace::new(began),
        }
    }

    /// Takes octets up to the end of the message: how many, and whether the end was among them.
    ///
    /// Only a message in the form [`Form::Dotted`] shows its own end.
    pub(super) fn take(&mut self, bytes: &[u8]) -> (usize, bool) {
        let faulty_before = self.fault.is_some();
        let (taken, ended) = match self.form {
            Form::Dotted => self.take_lines(bytes, true),
            Form::Lines => self.take_lines(bytes, false),
            Form::Binary => {
                self.keep(bytes);
                (bytes.len(), false)
            }
        };
        if faulty_before {
            let octets = u64::try_from(taken).unwrap_or(u64::MAX);
            self.refused = self.refused.saturating_add(octets);
        }
        (taken, ended)
    }

    /// Records the announced size, which may be too large before the first octet arrives.
    pub(super) fn announce(&mut self, octets: u64) {
        if self.size().saturating_add(octets) > self.limits.size_max {
            self.fail(Fault::TooBig);
        }
    }

    /// Octets of the text received so far.
    fn size(&self) -> u64 {
        let here = u64::try_from(self.body.len()).unwrap_or(u64::MAX);
        self.aside.saturating_add(here)
    }

    /// Hands the octets received so far to the host, which keeps the octets elsewhere.
    pub(super) fn set_aside(&mut self) -> Vec<u8> {
        self.aside = self.size();
        std::mem::take(&mut self.body)
    }

    /// Octets of the text kept elsewhere.
    pub(super) const fn aside(&self) -> u64 {
        self.aside
    }

    /// The complete text: the number of octets kept elsewhere, and the octets behind.
    ///
    /// # Errors
    ///
    /// The fault of the text.
    pub(super) fn finish(mut self) -> Result<(u64, Vec<u8>), Fault> {
        if self.place == Place::Cr && self.form == Form::Lines {
            self.fail(Fault::BareCr);
        }
        match self.fault {
            Some(fault) => Err(fault),
            None => Ok((self.aside, self.body)),
        }
    }

    pub(super) fn fault(&self) -> Option<Fault> {
        self.fault
    }

    /// The pace of the text, for the server to record received octets.
    pub(super) fn pace(&mut self) -> &mut Pace {
        &mut self.pace
    }

    /// When the text is too late, unless more of it comes.
    pub(super) fn due(&self, limits: &Limits) -> Timestamp {
        self.pace.due(limits)
    }

    /// Octets taken in vain.
    pub(super) fn refused(&self) -> u64 {
        self.refused
    }

    /// The octets of the body in memory, without reserved space.
    pub(super) const fn memory(&self) -> usize {
        self.body.len().saturating_add(self.beside)
    }

    /// The host holds octets for the text set aside.
    pub(super) const fn hold(&mut self, octets: usize) {
        if self.fault.is_none() {
            self.beside = octets;
        }
    }

    /// Walks from line end to line end, copying the octets between two dropped dots in one piece. Lines without a
    /// fault are skipped together.
    fn take_lines(&mut self, bytes: &[u8], dotted: bool) -> (usize, bool) {
        // The next octet to look at, the first not copied, the first of this line.
        let (mut next, mut copied, mut line) = (0_usize, 0_usize, 0_usize);
        let last_end = memrchr(b'\n', bytes).map_or(0, |last| last.saturating_add(1));
        // Up to this position lines are checked individually: one of the lines has a fault.
        let mut singly = 0_usize;
        while let Some(&octet) = bytes.get(next) {
            match self.place {
                Place::LineStart if dotted && octet == b'.' => {
                    self.keep(bytes.get(copied..next).unwrap_or_default());
                    next = next.saturating_add(1);
                    (copied, line) = (next, next);
                    self.place = Place::Dot;
                }
                Place::LineStart if next >= singly && next < last_end => {
                    let lines = bytes.get(next..last_end).unwrap_or_default();
                    let lines = if dotted { before_dot(lines) } else { lines };
                    singly = next.saturating_add(lines.len());
                    if self.is_faultless(lines) {
                        (next, line) = (singly, singly);
                    }
                }
                Place::LineStart => self.place = Place::WithinLine,
                Place::WithinLine => next = self.find_line_end(bytes, next),
                Place::Cr if octet == b'\n' => {
                    next = next.saturating_add(1);
                    self.end_line(next.saturating_sub(line));
                    line = next;
                }
                Place::Dot if octet == b'\r' => {
                    next = next.saturating_add(1);
                    copied = next;
                    self.place = Place::DotCr;
                }
                Place::Dot => self.place = Place::WithinLine,
                Place::DotCr if octet == b'\n' => return (next.saturating_add(1), true),
                Place::Cr | Place::DotCr => {
                    self.fail(Fault::BareCr);
                    self.place = Place::WithinLine;
                }
            }
        }
        self.keep(bytes.get(copied..).unwrap_or_default());
        self.line_octets = self
            .line_octets
            .saturating_add(bytes.len().saturating_sub(line));
        if self.line_octets > self.limits.line_octets_max.saturating_add(2) {
            self.fail(Fault::LineTooLong);
        }
        (bytes.len(), false)
    }

    /// Whether the octets are whole lines without a fault.
    fn is_faultless(&self, lines: &[u8]) -> bool {
        let line_max = self.limits.line_octets_max.saturating_add(2);
        is_paired(lines)
            && lines_fit(lines, line_max)
            && (self.limits.nul || memchr(0, lines).is_none())
    }

    /// Goes on to behind the next CR, LF or NUL.
    fn find_line_end(&mut self, bytes: &[u8], from: usize) -> usize {
        let rest = bytes.get(from..).unwrap_or_default();
        let Some(offset) = memchr3(b'\r', b'\n', 0, rest) else {
            return bytes.len();
        };
        match rest.get(offset) {
            Some(b'\r') => self.place = Place::Cr,
            Some(b'\n') => self.fail(Fault::BareLf),
            _ if self.limits.nul => {}
            _ => self.fail(Fault::Nul),
        }
        from.saturating_add(offset).saturating_add(1)
    }

    /// Ends a line with this many octets in the current piece, CRLF included.
    fn end_line(&mut self, octets: usize) {
        let octets = std::mem::take(&mut self.line_octets).saturating_add(octets);
        if octets > self.limits.line_octets_max.saturating_add(2) {
            self.fail(Fault::LineTooLong);
        }
        self.place = Place::LineStart;
    }

    fn keep(&mut self, octets: &[u8]) {
        if self.fault.is_some() {
            return;
        }
        let more = u64::try_from(octets.len()).unwrap_or(u64::MAX);
        if self.size().saturating_add(more) > self.limits.size_max {
            self.fail(Fault::TooBig);
        } else {
            self.make_room(octets.len());
            self.body.extend_from_slice(octets);
        }
    }

    /// See [`GROWS_TO`]; texts of a small limit grow less.
    fn make_room(&mut self, octets: usize) {
        let size_max = usize::try_from(self.limits.size_max).unwrap_or(usize::MAX);
        let wanted = self.body.len().saturating_add(octets);
        if wanted > self.body.capacity() && wanted > GROWS_TO.min(size_max / 8) {
            let left = self.limits.size_max.saturating_sub(self.size());
            let left = usize::try_from(left).unwrap_or(octets);
            self.body.reserve_exact(left.max(octets));
        }
    }

    pub(super) fn fail(&mut self, fault: Fault) {
        if self.fault.is_none() {
            self.fault = Some(fault);
            self.aside = 0;
            self.beside = 0;
            self.body = Vec::new();
        }
    }
}

/// The lines before the first, but for the very first, that begins with a dot.
fn before_dot(lines: &[u8]) -> &[u8] {
    let dot = memmem::find(lines, b"\r\n.");
    let end = dot.map_or(lines.len(), |found| found.saturating_add(2));
    lines.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Just, Strategy, any, prop, prop_oneof, proptest};

    use super::*;

    /// The result of a text given in pieces of this length: octets consumed, whether the text ended, and the body
    /// unless a fault occurred; the first fault within a line depends on the pieces.
    fn collected(
        text: &[u8],
        piece: usize,
        (form, nul): (Form, bool),
    ) -> (usize, bool, Option<Vec<u8>>) {
        let limits = TextLimits {
            size_max: 150,
            line_octets_max: 12,
            nul,
        };
        let mut collector = Collector::new(form, limits, Timestamp::ZERO);
        let (mut all, mut aside) = (0, Vec::new());
        for piece in text.chunks(piece) {
            let (taken, ended) = collector.take(piece);
            all += taken;
            // The longer the pieces, the more of the text is kept elsewhere.
            if collector.memory() > 150 - piece.len().min(150) {
                aside.extend(collector.set_aside());
            }
            if ended {
                return (all, true, whole(collector, &aside));
            }
        }
        (all, false, whole(collector, &aside))
    }

    fn whole(collector: Collector, aside: &[u8]) -> Option<Vec<u8>> {
        let (octets, rest) = collector.finish().ok()?;
        assert_eq!(octets, aside.len() as u64);
        Some([aside, &rest].concat())
    }

    fn text() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            8 => Just(b"\r\n".to_vec()),
            8 => (0..14_usize).prop_map(|octets| vec![b'x'; octets]),
            4 => Just(b"\r\n.".to_vec()),
            2 => Just(b".".to_vec()),
            1 => Just(b"\r\n.\r\n".to_vec()),
            1 => Just(b"\r".to_vec()),
            1 => Just(b"\n".to_vec()),
            1 => Just(b"\0".to_vec()),
        ];
        prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    /// The body once doubled: during the copy two bodies existed, and a message beyond the limit took twice the
    /// limit.
    #[test]
    fn a_long_text_is_not_copied_as_it_grows() {
        let size_max = 16 << 20;
        let limits = TextLimits {
            size_max,
            line_octets_max: 998,
            nul: false,
        };
        let mut collector = Collector::new(Form::Dotted, limits, Timestamp::ZERO);
        let piece = format!("{}\r\n", "x".repeat(998)).repeat(64);
        let (mut capacity, mut most) = (0, 0);
        while collector.fault().is_none() {
            collector.take(piece.as_bytes());
            let now = collector.body.capacity();
            if now != capacity && now != 0 {
                // Of the new room, only what is copied is written to.
                most = most.max(capacity + collector.body.len());
                capacity = now;
            }
            most = most.max(collector.body.len());
        }
        assert_eq!(collector.fault(), Some(Fault::TooBig));
        assert_eq!(collector.memory(), 0);
        assert!(most as u64 <= size_max, "{most} octets of {size_max}");
        assert!(capacity as u64 <= size_max, "{capacity} octets of room");
    }

    proptest! {
        /// Whole lines are skipped together, single octets are not: both give the same text.
        #[test]
        fn pieces_make_no_difference(
            text in text(),
            piece in 2..80_usize,
            dotted in any::<bool>(),
            nul in any::<bool>(),
        ) {
            let form = if dotted { Form::Dotted } else { Form::Lines };
            let singly = collected(&text, 1, (form, nul));
            assert_eq!(collected(&text, piece, (form, nul)), singly);
            assert_eq!(collected(&text, 4096, (form, nul)), singly);
        }
    }
}
