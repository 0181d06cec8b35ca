//! Special entries of a zone: lines with a dollar sign in front.

use super::error::Reason;
use super::name;

/// Name servers of a zone at most; the others of a line are ignored.
const NAME_SERVERS_MAX: usize = 32;

/// The special entries of a zone, as its files have them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Head {
    /// The first `$SOA`.
    pub soa: Option<Soa>,
    /// The first `$NS`.
    pub name_servers: Option<NameServers>,
    /// `$TTL` of the first dataset that has one, in seconds.
    pub ttl: Option<u32>,
    /// The newest `$TIMESTAMP`, in seconds since 1970.
    pub timestamp: Option<u64>,
    /// The earliest time after which data are not to be served, in seconds since 1970.
    pub expires: Option<u64>,
}

/// A `$SOA` line (RFC 1035 section 3.3.13). Names are in wire form with the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Soa {
    /// The TTL in seconds; 0 stands for the default.
    pub ttl: u32,
    /// The primary name server.
    pub origin: Box<[u8]>,
    /// The mailbox of the person in charge.
    pub person: Box<[u8]>,
    /// The serial number; 0 stands for the time of the newest file.
    pub serial: u32,
    /// Seconds until a secondary server asks again.
    pub refresh: u32,
    /// Seconds until it asks again after a failure.
    pub retry: u32,
    /// Seconds after which it gives up the zone.
    pub expire: u32,
    /// The TTL of negative answers (RFC 2308 section 4).
    pub minimum: u32,
}

/// A `$NS` line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameServers {
    /// The TTL in seconds; 0 stands for the default.
    pub ttl: u32,
    /// The names of the servers, in wire form with the root.
    pub names: Vec<Box<[u8]>>,
}

impl Head {
    /// Takes what the files of a later dataset add.
    pub(super) fn join(&mut self, later: Self) {
        self.soa = self.soa.take().or(later.soa);
        self.name_servers = self.name_servers.take().or(later.name_servers);
        self.ttl = self.ttl.or(later.ttl);
        self.timestamp = self.timestamp.max(later.timestamp);
        self.expires = match (self.expires, later.expires) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
    }

    /// Takes a `$SOA`, `$NS` or `$TIMESTAMP` line; `None` for any other keyword.
    pub(super) fn line(&mut self, keyword: &[u8], rest: &[u8]) -> Result<Option<()>, Reason> {
        match keyword {
            b"SOA" => {
                let soa = soa(rest)?;
                self.soa.get_or_insert(soa);
            }
            b"NS" => {
                let name_servers = name_servers(rest)?;
                self.name_servers.get_or_insert(name_servers);
            }
            b"TIMESTAMP" => self.timestamp_line(rest)?,
            _ => return Ok(None),
        }
        Ok(Some(()))
    }

    fn timestamp_line(&mut self, rest: &[u8]) -> Result<(), Reason> {
        let mut words = words(rest);
        let stamp = timestamp(words.next().unwrap_or_default())?;
        let expires = match words.next() {
            None => None,
            Some([b'+', offset @ ..]) => {
                let offset = u64::from(seconds(offset)?);
                stamp.map(|stamp| stamp.saturating_add(offset))
            }
            Some(word) => timestamp(word)?,
        };
        let stamps = Self {
            timestamp: stamp,
            expires,
            ..Self::default()
        };
        self.join(stamps);
        Ok(())
    }
}

/// The words of a line, separated by blanks.
pub(super) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let words = line.split(|octet| octet.is_ascii_whitespace());
    words.filter(|word| !word.is_empty())
}

fn soa(rest: &[u8]) -> Result<Soa, Reason> {
    let words: Vec<&[u8]> = words(rest).collect();
    let [ttl, origin, person, serial, refresh, retry, expire, minimum] = words[..] else {
        let expected = "ttl, origin, person, serial, refresh, retry, expire and minimum ttl";
        return Err(Reason::syntax(expected, rest));
    };
    Ok(Soa {
        ttl: seconds(ttl)?,
        origin: name::absolute(origin)?,
        person: name::absolute(person)?,
        serial: decimal(serial)?,
        refresh: seconds(refresh)?,
        retry: seconds(retry)?,
        expire: seconds(expire)?,
        minimum: seconds(minimum)?,
    })
}

fn name_servers(rest: &[u8]) -> Result<NameServers, Reason> {
    let mut words = words(rest);
    let ttl = seconds(words.next().unwrap_or_default())?;
    let mut names = Vec::new();
    for word in words.take(NAME_SERVERS_MAX) {
        // A minus sign takes a server out without its removal from the line.
        match word {
            [b'-', ..] => {}
            word => names.push(name::absolute(word)?),
        }
    }
    Ok(NameServers { ttl, names })
}

fn decimal(word: &[u8]) -> Result<u32, Reason> {
    let value = std::str::from_utf8(word).ok().filter(|text| {
        let digits = text.bytes().all(|octet| octet.is_ascii_digit());
        digits && !text.is_empty()
    });
    let value = value.and_then(|text| text.parse().ok());
    value.ok_or_else(|| Reason::syntax("a number of 32 bits", word))
}

/// A time in seconds, or with one of the suffixes `s`, `m`, `h`, `d`, `w`.
pub(super) fn seconds(word: &[u8]) -> Result<u32, Reason> {
    let refused = || {
        let expected = "a time in seconds, or with one of the suffixes s, m, h, d, w";
        Reason::syntax(expected, word)
    };
    let (number, unit) = match word {
        [number @ .., b's'] => (number, 1),
        [number @ .., b'm'] => (number, 60),
        [number @ .., b'h'] => (number, 3600),
        [number @ .., b'd'] => (number, 86_400),
        [number @ .., b'w'] => (number, 604_800),
        number => (number, 1),
    };
    let number = decimal(number).map_err(|_| refused())?;
    // A TTL has 31 bits (RFC 2181 section 8).
    let seconds = number.checked_mul(unit);
    let seconds = seconds.filter(|seconds| *seconds <= i32::MAX as u32);
    seconds.ok_or_else(refused)
}

/// A time as `yyyy:mm:dd[:hh[:mi[:ss]]]`, where colons may be hyphens or missing; 0 or `-` for none.
fn timestamp(word: &[u8]) -> Result<Option<u64>, Reason> {
    if matches!(word, b"0" | b"-") {
        return Ok(None);
    }
    let refused = || Reason::syntax("a time such as 2026:11:28:12:00:00, or 0", word);
    let digits: Vec<u8> = word
        .iter()
        .copied()
        .filter(|octet| !matches!(octet, b':' | b'-'))
        .collect();
    if !matches!(digits.len(), 8 | 10 | 12 | 14) || !digits.iter().all(u8::is_ascii_digit) {
        return Err(refused());
    }
    let field = |start: usize, end: usize| {
        let digits = digits.get(start..end).unwrap_or_default();
        digits
            .iter()
            .fold(0_u64, |value, digit| value * 10 + u64::from(digit - b'0'))
    };
    let (year, month, day) = (field(0, 4), field(4, 6), field(6, 8));
    let (hour, minute, second) = (field(8, 10), field(10, 12), field(12, 14));
    let days = days_since_1970(year, month, day).ok_or_else(refused)?;
    if hour > 23 || minute > 59 || second > 59 {
        return Err(refused());
    }
    Ok(Some(days * 86_400 + hour * 3600 + minute * 60 + second))
}

/// Days from 1970-01-01 to a date of the Gregorian calendar.
fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let days_of = |month: u64| match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + u64::from(leap(year)),
        _ => 31,
    };
    if year < 1970 || !(1..=12).contains(&month) || !(1..=days_of(month)).contains(&day) {
        return None;
    }
    let years: u64 = (1970..year).map(|year| 365 + u64::from(leap(year))).sum();
    let months: u64 = (1..month).map(days_of).sum();
    Some(years + months + day - 1)
}
