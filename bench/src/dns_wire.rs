//! Queries and answers of the DNS (RFC 1035 section 4, EDNS) in the little that a judge of block lists needs.
//!
//! The code is separate from the DNS of the product, so a mistake is not in both.

use std::net::Ipv4Addr;

/// Octets of a header.
const HEADER: usize = 12;

/// The type of a record (RFC 1035 section 3.2.2, RFC 3596 section 2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An IPv4 address.
    A,
    /// An IPv6 address; of a block list, a map of 128 neighbours.
    Aaaa,
}

impl Kind {
    const fn code(self) -> u16 {
        match self {
            Self::A => 1,
            Self::Aaaa => 28,
        }
    }
}

/// The root with type OPT, 1,232 octets of UDP, version 0 and no options: what resolvers send.
pub(super) const OPT: [u8; 11] = [0, 0, 41, 0x04, 0xd0, 0, 0, 0, 0, 0, 0];

/// A query with id 0 for a name of labels with dots.
pub(crate) fn query(name: &str, kind: Kind, has_edns: bool) -> Vec<u8> {
    let additional = u8::from(has_edns);
    let mut query = vec![0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, additional];
    for label in name.split('.').filter(|label| !label.is_empty()) {
        query.push(label.len().min(63) as u8);
        query.extend(label.bytes().take(63));
    }
    query.push(0);
    query.extend(kind.code().to_be_bytes());
    query.extend([0, 1]);
    if has_edns {
        query.extend(OPT);
    }
    query
}

/// The labels of a client's reversed address and a zone (RFC 5782 section 2.1).
pub(crate) fn name_of_address(client: Ipv4Addr, zone: &str) -> String {
    let [x, y, z, w] = client.octets();
    format!("{w}.{z}.{y}.{x}.{zone}")
}

/// The labels of the map of a client's 128 neighbours and a zone (paper, section 7.1).
pub(crate) fn name_of_map(client: Ipv4Addr, zone: &str) -> String {
    let [x, y, z, w] = client.octets();
    format!("{}.{z}.{y}.{x}.{zone}", w >> 7)
}

/// The bit of a client in the map of its neighbours, counted from the most significant bit.
pub(crate) const fn bit(client: Ipv4Addr) -> u128 {
    let [.., w] = client.octets();
    1 << (127 - (w & 127))
}

/// What an answer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said {
    /// An A record.
    Address(Ipv4Addr),
    /// An AAAA record.
    Map(u128),
    /// The name exists, and has no record of the type.
    NoData,
    /// The name does not exist.
    NoName,
    /// Another response code.
    Failed(u8),
    /// The answer does not fit, and TCP has all of it.
    Truncated,
}

/// The id of a message.
pub(crate) fn id(message: &[u8]) -> Option<u16> {
    message.first_chunk().copied().map(u16::from_be_bytes)
}

/// Reads the answer to a query; `None` for any datagram but the answer to exactly the query.
pub(crate) fn read(answer: &[u8], query: &[u8]) -> Option<Said> {
    let head = answer.get(..HEADER)?;
    let is_answer = head[2] & 0xf8 == 0x80;
    let (questions, answers) = (number(answer, 4)?, number(answer, 6)?);
    if id(answer) != id(query) || !is_answer || questions != 1 {
        return None;
    }
    let end = question_end(query)?;
    let question = query.get(HEADER..end)?;
    if answer.get(HEADER..end)? != question {
        return None;
    }
    Some(match (head[3] & 0xf, answers) {
        _ if head[2] & 0x02 != 0 => Said::Truncated,
        (0, 0) => Said::NoData,
        (0, _) => record(answer, end)?,
        (3, _) => Said::NoName,
        (code, _) => Said::Failed(code),
    })
}

/// The name in small letters and the type of a query's question.
pub(crate) fn question(query: &[u8]) -> Option<(String, u16)> {
    let is_query = query.get(2)? & 0xf8 == 0;
    let end = question_end(query).filter(|_| is_query && number(query, 4) == Some(1))?;
    let mut name = String::new();
    let mut at = HEADER;
    while let length @ 1..=63 = usize::from(*query.get(at)?) {
        let label = query.get(at + 1..=at + length)?;
        if !name.is_empty() {
            name.push('.');
        }
        name.push_str(&String::from_utf8_lossy(label).to_ascii_lowercase());
        at += length + 1;
    }
    Some((name, number(query, end - 4)?))
}

/// The authoritative answer to a query: one record of the type asked for, or the absence of the name. The SOA record of
/// an absence has the root as its owner, which is above every name.
pub(crate) fn answer(query: &[u8], data: Option<&[u8]>, ttl: u32) -> Option<Vec<u8>> {
    let end = question_end(query)?;
    let mut answer = query.get(..end)?.to_vec();
    let asks_recursion = answer.get(2)? & 1;
    let (code, answers) = if data.is_some() { (0, 1) } else { (3, 0) };
    answer[2] = 0x84 | asks_recursion;
    answer[3] = 0x80 | code;
    answer[4..HEADER].copy_from_slice(&[0, 1, 0, answers, 0, 1 - answers, 0, 0]);
    match data {
        Some(data) => {
            let kind = number(query, end - 4)?.to_be_bytes();
            answer.extend([0xc0, HEADER as u8, kind[0], kind[1], 0, 1]);
            answer.extend(ttl.to_be_bytes());
            answer.extend(u16::try_from(data.len()).ok()?.to_be_bytes());
            answer.extend(data);
        }
        None => {
            // Names of one octet, serial 1, three times, and the time of negative answers (RFC 2308 section 4).
            answer.extend([0, 0, 6, 0, 1]);
            answer.extend(ttl.to_be_bytes());
            answer.extend([0, 22, 0, 0]);
            for field in [1, 600, 300, 86_400, ttl] {
                answer.extend(field.to_be_bytes());
            }
        }
    }
    Some(answer)
}

/// The place behind the question of a query.
fn question_end(message: &[u8]) -> Option<usize> {
    Some(name_end(message, HEADER)? + 4).filter(|end| *end <= message.len())
}

/// The place behind a name, which may end with a pointer.
fn name_end(message: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match *message.get(at)? {
            0 => return Some(at + 1),
            pointer if pointer >= 0xc0 => return Some(at + 2),
            length => at += usize::from(length) + 1,
        }
    }
}

/// Reads the first record.
fn record(message: &[u8], at: usize) -> Option<Said> {
    let at = name_end(message, at)?;
    let (kind, length) = (number(message, at)?, number(message, at + 8)?);
    let data = message.get(at + 10..)?.get(..usize::from(length))?;
    match kind {
        1 => Some(Said::Address(Ipv4Addr::from(
            <[u8; 4]>::try_from(data).ok()?,
        ))),
        28 => Some(Said::Map(u128::from_be_bytes(data.try_into().ok()?))),
        _ => None,
    }
}

fn number(message: &[u8], at: usize) -> Option<u16> {
    let octets = message.get(at..)?.first_chunk()?;
    Some(u16::from_be_bytes(*octets))
}

#[cfg(test)]
mod tests {
    use super::answer as answer_to;
    use super::*;

    const CLIENT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 130);

    fn asked() -> Vec<u8> {
        let mut query = query(&name_of_address(CLIENT, "bl.test"), Kind::A, true);
        query[..2].copy_from_slice(&[0x12, 0x34]);
        query
    }

    /// The answer with a response code, and with a record of so many octets behind a pointer to the name.
    fn answer(code: u8, kind: u8, data: &[u8]) -> Vec<u8> {
        let query = asked();
        let mut answer = query[..query.len() - OPT.len()].to_vec();
        answer[2] = 0x84;
        answer[3] = code;
        answer[11] = 0;
        if !data.is_empty() {
            answer[7] = 1;
            let length = data.len() as u8;
            answer.extend([0xc0, 12, 0, kind, 0, 1, 0, 0, 14, 16, 0, length]);
            answer.extend(data);
        }
        answer
    }

    #[test]
    fn names_are_reversed_and_maps_begin_with_their_half() {
        assert_eq!(name_of_address(CLIENT, "bl.test"), "130.2.0.192.bl.test");
        assert_eq!(name_of_map(CLIENT, "bl.test"), "1.2.0.192.bl.test");
        assert_eq!(name_of_map(Ipv4Addr::new(1, 2, 3, 127), "z"), "0.3.2.1.z");
        assert_eq!(bit(CLIENT), 1 << 125);
        assert_eq!(bit(Ipv4Addr::new(1, 2, 3, 127)), 1);
    }

    #[test]
    fn a_query_has_its_name_and_its_size_of_udp() {
        let query = query("1.a.", Kind::Aaaa, true);
        let expected =
            b"\0\0\0\0\0\x01\0\0\0\0\0\x01\x011\x01a\0\0\x1c\0\x01\0\0\x29\x04\xd0\0\0\0\0\0\0";
        assert_eq!(query, expected);
        let plain = super::query("1.a", Kind::Aaaa, false);
        assert_eq!((plain[11], plain.len() + OPT.len()), (0, query.len()));
    }

    #[test]
    fn an_answer_of_ours_is_read_again() {
        let query = asked();
        let name = "130.2.0.192.bl.test".to_owned();
        assert_eq!(question(&query), Some((name, 1)));
        let cut = |length: usize| question(&query[..length]);
        assert!((0..query.len() - OPT.len()).all(|length| cut(length).is_none()));
        let listed = answer_to(&query, Some(&[127, 0, 0, 2]), 60).unwrap();
        let address = Ipv4Addr::new(127, 0, 0, 2);
        assert_eq!(read(&listed, &query), Some(Said::Address(address)));
        assert_eq!(question(&listed), None);
        let absent = answer_to(&query, None, 60).unwrap();
        assert_eq!(read(&absent, &query), Some(Said::NoName));
        let soa = &absent[query.len() - OPT.len()..];
        assert_eq!(soa[..11], [0, 0, 6, 0, 1, 0, 0, 0, 60, 0, 22]);
        assert_eq!((soa.len(), soa[32]), (33, 60));
    }

    #[test]
    fn answers_say_what_their_first_record_says() {
        let query = asked();
        let read = |answer: &[u8]| read(answer, &query);
        let address = Ipv4Addr::new(127, 0, 0, 2);
        let found = read(&answer(0, 1, &address.octets()));
        assert_eq!(found, Some(Said::Address(address)));
        let map = 5_u128.to_be_bytes();
        assert_eq!(read(&answer(0, 28, &map)), Some(Said::Map(5)));
        assert_eq!(read(&answer(0, 1, &[])), Some(Said::NoData));
        assert_eq!(read(&answer(3, 1, &[])), Some(Said::NoName));
        assert_eq!(read(&answer(5, 1, &[])), Some(Said::Failed(5)));
        let mut truncated = answer(0, 1, &[]);
        truncated[2] |= 2;
        assert_eq!(read(&truncated), Some(Said::Truncated));
    }

    #[test]
    fn what_is_no_answer_to_the_query_is_none() {
        let query = asked();
        let good = answer(0, 1, &[127, 0, 0, 2]);
        assert!(read(&good, &query).is_some());
        let cut = |length: usize| read(&good[..length], &query);
        assert!((0..good.len()).all(|length| cut(length).is_none()));
        let with = |at: usize, octet: u8| {
            let mut other = good.clone();
            other[at] = octet;
            read(&other, &query)
        };
        // Another id, a query, another question, a record of another type, an address of three octets.
        let others = [
            (1, 0),
            (2, 0),
            (13, b'2'),
            (query.len() - OPT.len() + 3, 16),
        ];
        assert!(others.iter().all(|(at, octet)| with(*at, *octet).is_none()));
        assert_eq!(read(&answer(0, 1, &[127, 0, 0]), &query), None);
        assert_eq!(read(&query, &query), None);
    }
}
