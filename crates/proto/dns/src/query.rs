//! Reading a query (RFC 1035 section 4.1).

use crate::HEADER;
use crate::codes::{Class, Rcode, Type};
use crate::cookie::{ClientCookie, ServerCookie};
use crate::head::{Edns, Head, ShownCookies};
use crate::name::leading;

/// The bit of a response (RFC 1035 section 4.1.1, QR).
const RESPONSE: u8 = 0x80;
/// The bits of the kind of query (RFC 1035 section 4.1.1, OPCODE).
const OPCODE: u8 = 0x78;
/// The code of the cookie option (RFC 7873 section 4).
const OPTION_COOKIE: u16 = 10;
/// Records behind the question: OPT, a signature of the transaction, and as many again that nobody knows.
const ADDITIONAL_MAX: u16 = 4;

/// What a packet from the network is.
#[derive(Debug)]
pub enum Received<'a> {
    /// A query to answer.
    Query(Query<'a>),
    /// A query that only an error answers.
    Error(ErrorReply<'a>),
    /// No query: shorter than a header, or a response, which a response would send back and forth for ever.
    NoQuery,
}

/// A query with one question, of the class IN or ANY (RFC 1035 section 4.1.2).
#[derive(Debug)]
pub struct Query<'a> {
    pub(crate) head: Head<'a>,
    name: &'a [u8],
    kind: Type,
}

impl<'a> Query<'a> {
    /// The name in wire form, in the case that the client chose, with the root.
    #[must_use]
    pub const fn name(&self) -> &'a [u8] {
        self.name
    }

    /// The type of the question (RFC 1035 section 4.1.2, QTYPE).
    #[must_use]
    pub const fn kind(&self) -> Type {
        self.kind
    }

    /// Whether the query has options of EDNS (RFC 6891).
    #[must_use]
    pub const fn has_edns(&self) -> bool {
        self.head.edns.is_some()
    }

    /// Octets of the longest datagram for the answer: what the client takes, [`DATAGRAM_MIN`](crate::DATAGRAM_MIN)
    /// without EDNS or where the client says less (RFC 6891 section 6.2.3), [`DATAGRAM_MAX`](crate::DATAGRAM_MAX) at
    /// most.
    #[must_use]
    pub fn datagram_max(&self) -> usize {
        self.head.datagram_max()
    }

    /// The cookies of the client: the cookie of the client, and the supposed cookie of the server (RFC 7873 section 4).
    #[must_use]
    pub fn cookies(&self) -> Option<(&'a ClientCookie, Option<&'a ServerCookie>)> {
        let cookies = self.head.edns.as_ref()?.cookies?;
        Some((cookies.client, cookies.server))
    }

    /// Turns the query into one that only an error answers.
    #[must_use]
    pub const fn refuse(self, rcode: Rcode) -> ErrorReply<'a> {
        ErrorReply {
            head: self.head,
            rcode,
        }
    }
}

/// A query that cannot be answered but by an error.
#[derive(Debug)]
pub struct ErrorReply<'a> {
    pub(crate) head: Head<'a>,
    pub(crate) rcode: Rcode,
}

impl ErrorReply<'_> {
    /// The error.
    #[must_use]
    pub const fn rcode(&self) -> Rcode {
        self.rcode
    }
}

/// Reads octets from the front.
struct Octets<'a>(&'a [u8]);

impl<'a> Octets<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(taken)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(|octets| u16::from_be_bytes(*octets))
    }
}

/// Reads a packet.
///
/// The answer of a query that is wrong depends on what is wrong (RFC 1035 section 4.1.1): another kind than QUERY is
/// `NotImp`; a transfer, or another class than IN and ANY, is `Refused`; another version of EDNS is `BadVers` (RFC 6891
/// section 6.1.3); more or less than one question, records where a query has none, a pointer in the question's name,
/// and octets behind the last record are `FormErr`.
#[must_use]
pub fn read(packet: &[u8]) -> Received<'_> {
    let mut octets = Octets(packet);
    let Some([id, id_low, flags, _, counts @ ..]) = octets.array::<HEADER>() else {
        return Received::NoQuery;
    };
    if flags & RESPONSE != 0 {
        return Received::NoQuery;
    }
    let mut head = Head {
        id: [*id, *id_low],
        flags: *flags,
        question: &[],
        name_length: 0,
        edns: None,
    };
    if flags & OPCODE != 0 {
        let rcode = Rcode::NotImp;
        return Received::Error(ErrorReply { head, rcode });
    }
    match rest(&mut octets, counts, &mut head) {
        Ok((name, kind)) => Received::Query(Query { head, name, kind }),
        Err(rcode) => Received::Error(ErrorReply { head, rcode }),
    }
}

/// Reads everything behind the header; what could be read of a wrong query is in `head`.
fn rest<'a>(
    octets: &mut Octets<'a>,
    counts: &[u8; 8],
    head: &mut Head<'a>,
) -> Result<(&'a [u8], Type), Rcode> {
    let [q, q_low, a, a_low, n, n_low, r, r_low] = *counts;
    let number = |high, low| u16::from_be_bytes([high, low]);
    if number(q, q_low) != 1 {
        return Err(Rcode::FormErr);
    }
    let whole = octets.0;
    let name = leading(whole).ok_or(Rcode::FormErr)?;
    let _name = octets.take(name.len());
    let kind = Type(octets.u16().ok_or(Rcode::FormErr)?);
    let class = Class(octets.u16().ok_or(Rcode::FormErr)?);
    head.question = whole
        .get(..name.len().saturating_add(4))
        .unwrap_or_default();
    head.name_length = name.len();
    // The query for the changes of a zone has a record in its authority section.
    if kind == Type::AXFR || kind == Type::IXFR {
        return Err(Rcode::Refused);
    }
    let additional = number(r, r_low);
    if number(a, a_low) != 0 || number(n, n_low) != 0 || additional > ADDITIONAL_MAX {
        return Err(Rcode::FormErr);
    }
    for _ in 0..additional {
        record(octets, head)?;
    }
    if !octets.0.is_empty() {
        return Err(Rcode::FormErr);
    }
    match class {
        Class::IN | Class::ANY => Ok((name, kind)),
        _ => Err(Rcode::Refused),
    }
}

/// Reads a record of the additional section; of all types only OPT counts.
fn record<'a>(octets: &mut Octets<'a>, head: &mut Head<'a>) -> Result<(), Rcode> {
    let name = leading(octets.0).ok_or(Rcode::FormErr)?;
    let _name = octets.take(name.len());
    let wrong = Rcode::FormErr;
    let kind = Type(octets.u16().ok_or(wrong)?);
    let payload = octets.u16().ok_or(wrong)?;
    let [_, version, flags, _] = *octets.array().ok_or(wrong)?;
    let length = octets.u16().ok_or(wrong)?;
    let data = octets.take(usize::from(length)).ok_or(wrong)?;
    if kind != Type::OPT {
        return Ok(());
    }
    // One OPT, of the root (RFC 6891 section 6.1.1).
    if name.len() != 1 || head.edns.is_some() {
        return Err(wrong);
    }
    let edns = head.edns.insert(Edns {
        payload,
        dnssec_ok: flags & 0x80 != 0,
        cookies: None,
    });
    if version != 0 {
        return Err(Rcode::BadVers);
    }
    edns.cookies = options(Octets(data))?;
    Ok(())
}

/// Reads the options of EDNS; of all options only the first cookie counts (RFC 7873 section 5.2).
fn options(mut octets: Octets<'_>) -> Result<Option<ShownCookies<'_>>, Rcode> {
    let mut cookies = None;
    while !octets.0.is_empty() {
        let code = octets.u16().ok_or(Rcode::FormErr)?;
        let length = octets.u16().ok_or(Rcode::FormErr)?;
        let data = octets.take(usize::from(length)).ok_or(Rcode::FormErr)?;
        if code != OPTION_COOKIE || cookies.is_some() {
            continue;
        }
        let (client, server) = data.split_first_chunk().ok_or(Rcode::FormErr)?;
        cookies = match server.len() {
            0 | 8..=32 => Some(ShownCookies {
                client,
                server: server.try_into().ok(),
            }),
            _ => return Err(Rcode::FormErr),
        };
    }
    Ok(cookies)
}
