//! Writing a response into given memory (RFC 1035 section 4.1).

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::codes::{Class, Rcode, Type};
use crate::cookie::ServerCookie;
use crate::head::{Edns, Head};
use crate::name::{Name, below};
use crate::query::{ErrorReply, Query};
use crate::{DATAGRAM_MIN, HEADER};

/// The bits of the second octet of flags (RFC 1035 section 4.1.1).
const RESPONSE: u8 = 0x80;
const AUTHORITATIVE: u8 = 0x04;
const TRUNCATED: u8 = 0x02;
/// The kind of query and the wish for recursion, which go back as they came.
const ECHOED: u8 = 0x79;
/// The first bits of a compression pointer (RFC 1035 section 4.1.4).
const POINTER: u16 = 0xc000;
/// Where pointers no longer lead: they have 14 bits.
const POINTER_END: u16 = 0x4000;
/// A pointer to the name of the question, behind the header.
const QUESTION: u16 = POINTER | 12;
/// [`crate::DATAGRAM_MAX`] on the wire.
const PAYLOAD: u16 = 1_232;
/// Octets of an OPT record without options (RFC 6891 section 6.1.2), and of the cookie option with both cookies (RFC
/// 7873 section 4).
const OPT: usize = 11;
const COOKIES: usize = 28;
/// The bit DO (RFC 3225 section 3).
const DNSSEC_OK: u8 = 0x80;
/// Octets of one string of a text (RFC 1035 section 3.3).
const STRING_MAX: usize = 255;

/// A section of a response (RFC 1035 section 4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// What was asked for.
    Answer = 0,
    /// Who knows, or how long a negative answer holds (RFC 2308 section 3).
    Authority = 1,
}

/// The name of a record.
#[derive(Debug, Clone, Copy)]
pub enum Owner<'a> {
    /// The name of the question.
    Question,
    /// A name of the server's own; the name of the question or above is written as a pointer.
    Name(&'a Name),
}

/// The data of a record, with its type.
#[derive(Debug, Clone, Copy)]
pub enum Data<'a> {
    /// An IPv4 address (RFC 1035 section 3.4.1).
    A(Ipv4Addr),
    /// An IPv6 address (RFC 3596 section 2.2).
    Aaaa(Ipv6Addr),
    /// A text, in strings of 255 octets (RFC 1035 section 3.3.14).
    Txt(&'a [u8]),
    /// A name server (RFC 1035 section 3.3.11).
    Ns(&'a Name),
    /// A host for mail, and its preference (RFC 1035 section 3.3.9).
    Mx(u16, &'a Name),
    /// The start of a zone (RFC 1035 section 3.3.13).
    Soa {
        /// The primary name server.
        server: &'a Name,
        /// The mailbox of the person responsible.
        mailbox: &'a Name,
        /// SERIAL, REFRESH, RETRY, EXPIRE, MINIMUM.
        numbers: [u32; 5],
    },
    /// The answer to a question for all types (RFC 8482 section 4.2).
    Hinfo,
}

impl Data<'_> {
    /// The type of the record.
    #[must_use]
    pub const fn kind(&self) -> Type {
        match self {
            Self::A(_) => Type::A,
            Self::Aaaa(_) => Type::AAAA,
            Self::Txt(_) => Type::TXT,
            Self::Ns(_) => Type::NS,
            Self::Mx(..) => Type::MX,
            Self::Soa { .. } => Type::SOA,
            Self::Hinfo => Type::HINFO,
        }
    }
}

/// A response under construction.
///
/// A response beyond the limit loses all records and has the bit TC (RFC 2181 section 9), so that the client asks again
/// over TCP.
#[derive(Debug)]
pub struct Response<'q, 'b> {
    head: &'q Head<'q>,
    memory: &'b mut [u8],
    length: usize,
    /// Where records have to end.
    limit: usize,
    counts: [u16; 2],
    flags: u8,
    rcode: Rcode,
    truncated: bool,
}

impl<'q, 'b> Response<'q, 'b> {
    /// Begins an authoritative response to a query in `memory`, of at most `limit` octets with the options of EDNS.
    #[must_use]
    pub fn new(query: &'q Query<'q>, memory: &'b mut [u8], limit: usize) -> Self {
        let mut response = Self::begin(&query.head, memory, limit);
        response.flags |= AUTHORITATIVE;
        response
    }

    pub(crate) fn begin(head: &'q Head<'q>, memory: &'b mut [u8], limit: usize) -> Self {
        let limit = limit.min(memory.len()).saturating_sub(options(head));
        let mut response = Self {
            head,
            memory,
            length: HEADER,
            limit,
            counts: [0; 2],
            flags: RESPONSE | head.flags & ECHOED,
            rcode: Rcode::NoError,
            truncated: false,
        };
        let _fits = response.put(head.question);
        response
    }

    /// Sets the response code (RFC 1035 section 4.1.1).
    pub const fn set_rcode(&mut self, rcode: Rcode) {
        self.rcode = rcode;
    }

    /// Says that another server may know: the answer is not authoritative (RFC 1035 section 4.1.1, AA).
    pub const fn not_authoritative(&mut self) {
        self.flags &= !AUTHORITATIVE;
    }

    /// Drops all records and sets the bit TC (RFC 2181 section 9).
    pub fn truncate(&mut self) {
        self.length = HEADER.saturating_add(self.head.question.len());
        self.counts = [0; 2];
        self.truncated = true;
    }

    /// Whether the response has lost its records.
    #[must_use]
    pub const fn is_truncated(&self) -> bool {
        self.truncated
    }

    /// The response code so far.
    #[must_use]
    pub const fn rcode(&self) -> Rcode {
        self.rcode
    }

    /// The octets so far, with those that the options of EDNS will have.
    #[must_use]
    pub const fn length(&self) -> usize {
        self.length.saturating_add(options(self.head))
    }

    /// The number of records in the answer section.
    #[must_use]
    pub fn answers(&self) -> u16 {
        let [answers, _] = self.counts;
        answers
    }

    /// Adds a record (RFC 1035 section 4.1.3). The sections follow each other: no answer comes behind an authority.
    pub fn record(&mut self, section: Section, owner: Owner<'_>, ttl: u32, data: &Data<'_>) {
        if self.truncated {
            return;
        }
        if self.try_record(owner, ttl, data).is_none() {
            return self.truncate();
        }
        if let Some(count) = self.counts.get_mut(section as usize) {
            *count = count.saturating_add(1);
        }
    }

    fn try_record(&mut self, owner: Owner<'_>, ttl: u32, data: &Data<'_>) -> Option<()> {
        match owner {
            Owner::Question => self.put(&QUESTION.to_be_bytes())?,
            Owner::Name(name) => self.put_name(name)?,
        }
        let [k, k_low] = data.kind().0.to_be_bytes();
        let [c, c_low] = Class::IN.0.to_be_bytes();
        let [t3, t2, t1, t0] = ttl.to_be_bytes();
        self.put(&[k, k_low, c, c_low, t3, t2, t1, t0, 0, 0])?;
        let start = self.length;
        self.put_data(data)?;
        let length = u16::try_from(self.length.checked_sub(start)?).ok()?;
        let place = start.checked_sub(2)?;
        let field = self.memory.get_mut(place..start)?;
        field.copy_from_slice(&length.to_be_bytes());
        Some(())
    }

    fn put_data(&mut self, data: &Data<'_>) -> Option<()> {
        match data {
            Data::A(address) => self.put(&address.octets()),
            Data::Aaaa(address) => self.put(&address.octets()),
            Data::Txt([]) => self.put(&[0]),
            Data::Txt(text) => text.chunks(STRING_MAX).try_for_each(|string| {
                self.put(&[u8::try_from(string.len()).ok()?])?;
                self.put(string)
            }),
            Data::Ns(name) => self.put_name(name),
            Data::Mx(preference, name) => {
                self.put(&preference.to_be_bytes())?;
                self.put_name(name)
            }
            Data::Soa {
                server,
                mailbox,
                numbers,
            } => {
                let place = self.length;
                self.put_name(server)?;
                self.put_name_behind(mailbox, Some((server.octets(), place)))?;
                numbers
                    .iter()
                    .try_for_each(|number| self.put(&number.to_be_bytes()))
            }
            Data::Hinfo => self.put(b"\x07RFC8482\x00"),
        }
    }

    /// Writes a name; its end that is also the end of the question's name becomes a pointer (RFC 1035 section 4.1.4).
    fn put_name(&mut self, name: &Name) -> Option<()> {
        self.put_name_behind(name, None)
    }

    /// Writes a name behind another one, which begins at a place: an end that both share becomes a pointer too.
    ///
    /// The question comes first, so that no pointer leads into the part of the other name that is itself a pointer.
    fn put_name_behind(&mut self, name: &Name, other: Option<(&[u8], usize)>) -> Option<()> {
        let asked = self.head.question.get(..self.head.name_length)?;
        let mut labels = crate::Labels::of(name.octets());
        let own = name.octets();
        loop {
            let rest = labels.rest();
            let in_question = || Some(HEADER.saturating_add(below(asked, rest)?.len()));
            let in_other = || {
                let (other, place) = other?;
                Some(place.saturating_add(below(other, rest)?.len()))
            };
            // Of the root a pointer would be longer.
            if rest.len() > 1
                && let Some(place) = in_question().or_else(in_other)
                && place < usize::from(POINTER_END)
            {
                let own = own.get(..own.len().checked_sub(rest.len())?)?;
                self.put(own)?;
                let place = u16::try_from(place).ok()?;
                return self.put(&(POINTER | place).to_be_bytes());
            }
            if labels.next().is_none() {
                return self.put(own);
            }
        }
    }

    fn put(&mut self, octets: &[u8]) -> Option<()> {
        let end = self.length.checked_add(octets.len())?;
        if end > self.limit {
            return None;
        }
        self.memory
            .get_mut(self.length..end)?
            .copy_from_slice(octets);
        self.length = end;
        Some(())
    }

    /// Ends the response and returns its octets; none in memory that is too short for the question.
    ///
    /// `cookie` goes to a client that sent its own (RFC 7873 section 5.2.3).
    #[must_use]
    pub fn finish(mut self, cookie: Option<ServerCookie>) -> usize {
        self.limit = self.memory.len();
        let has_opt = self.head.edns.is_some();
        if let Some(edns) = self.head.edns {
            let _fits = self.put_opt(&edns, cookie);
        }
        let [id, id_low] = self.head.id;
        let [[a, a_low], [n, n_low]] = self.counts.map(u16::to_be_bytes);
        let truncated = if self.truncated { TRUNCATED } else { 0 };
        let header = [
            id,
            id_low,
            self.flags | truncated,
            self.rcode.low(),
            0,
            u8::from(!self.head.question.is_empty()),
            a,
            a_low,
            n,
            n_low,
            0,
            u8::from(has_opt),
        ];
        let question_ends = HEADER.saturating_add(self.head.question.len());
        match self.memory.first_chunk_mut() {
            Some(place) if self.length >= question_ends => *place = header,
            _ => return 0,
        }
        self.length
    }

    fn put_opt(&mut self, edns: &Edns<'_>, cookie: Option<ServerCookie>) -> Option<()> {
        let [k, k_low] = Type::OPT.0.to_be_bytes();
        let [p, p_low] = PAYLOAD.to_be_bytes();
        let dnssec_ok = if edns.dnssec_ok { DNSSEC_OK } else { 0 };
        let cookies = edns.cookies.zip(cookie);
        let length = if cookies.is_some() { 28 } else { 0 };
        let high = self.rcode.high();
        self.put(&[0, k, k_low, p, p_low, high, 0, dnssec_ok, 0, 0, length])?;
        if let Some((shown, cookie)) = cookies {
            self.put(&[0, 10, 0, 24])?;
            self.put(shown.client)?;
            self.put(&cookie)?;
        }
        Some(())
    }
}

/// Octets of the options of EDNS in the response to a query.
const fn options(head: &Head<'_>) -> usize {
    match &head.edns {
        None => 0,
        Some(Edns { cookies: None, .. }) => OPT,
        Some(_) => OPT.saturating_add(COOKIES),
    }
}

impl ErrorReply<'_> {
    /// Writes the answer without records: the header, the question where it could be read, and the version of EDNS.
    /// Returns the octets written; none into memory that is too short.
    pub fn write(&self, memory: &mut [u8]) -> usize {
        let mut response = Response::begin(&self.head, memory, DATAGRAM_MIN);
        response.set_rcode(self.rcode);
        response.finish(None)
    }
}
