//! Lines of one dataset, as they are read.

use std::borrow::Cow;
use std::net::Ipv4Addr;

use super::addresses::{Joined, Loading, V4, V6};
use super::dataset::{Dataset, Groups};
use super::error::Reason;
use super::kind::Kind;
use super::names::Names;
use super::records::{Record, Records, record};
use super::spans::{EXCLUDED, Entry};
use super::syntax4::{self, Range4};
use super::syntax6::{self, Range6};
use super::value::{DEFAULT_ADDRESS, Scope, Values};
use super::{head, name};

/// The entries of a dataset as they are read.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) kind: Kind,
    pub(super) scope: Scope,
    /// Entries that were read.
    pub(super) entries: u64,
    values: Values,
    v4: Loading<V4>,
    v6: Loading<V6>,
    names: Names,
    records: Vec<Record>,
    /// Addresses of an IPv4 entry at most.
    range_max: u64,
    default: Default,
    /// The default value that came first: the only value of a trivial set.
    trivial: Option<Default>,
}

/// The place of the value of a trivial set, whose entries have no values of their own.
const TRIVIAL: u32 = 0;

/// The value of entries without a value: the last line with a colon in front.
#[derive(Debug, Clone)]
struct Default {
    address: Ipv4Addr,
    text: Option<Box<str>>,
    /// The place of the default among the values, once an entry has it.
    place: Option<u32>,
}

impl Default {
    const NONE: Self = Self {
        address: DEFAULT_ADDRESS,
        text: None,
        place: None,
    };
}

impl Reading {
    pub(super) fn new(kind: Kind) -> Self {
        Self {
            kind,
            scope: Scope::default(),
            entries: 0,
            values: Values::default(),
            v4: Loading::default(),
            v6: Loading::default(),
            names: Names::default(),
            records: Vec::new(),
            range_max: u64::MAX,
            default: Default::NONE,
            trivial: None,
        }
    }

    /// A dataset inside a combined dataset, with the variables and bounds of the common section.
    pub(super) fn inside(&self, kind: Kind) -> Self {
        Self {
            scope: self.scope.clone(),
            range_max: self.range_max,
            ..Self::new(kind)
        }
    }

    /// Begins a file: the default value of a file ends with the file.
    pub(super) fn begin_file(&mut self) {
        self.default = Default::NONE;
    }

    /// Takes an entry or a default value.
    pub(super) fn line(&mut self, line: &[u8]) -> Result<(), Reason> {
        match self.kind {
            Kind::Generic => self.records.push(record(line)?),
            Kind::Cidr => self.cidr(line)?,
            Kind::Combined => {
                let expected = "a $DATASET line before the first entry";
                return Err(Reason::syntax(expected, line));
            }
            // A default value has no second colon behind the first; `::1` is an address.
            kind if line.starts_with(b":") && !(kind.is_ipv6() && line.starts_with(b"::")) => {
                return self.default_line(line);
            }
            Kind::Ip4Set => self.ip4set(line)?,
            Kind::Ip4Trie => self.ip4trie(line)?,
            Kind::Ip4TSet => self.ip4tset(line)?,
            Kind::Ip6Trie => self.ip6trie(line)?,
            Kind::Ip6TSet => self.ip6tset(line)?,
            Kind::DnSet => self.dnset(line)?,
        }
        self.entries += 1;
        Ok(())
    }

    fn default_line(&mut self, line: &[u8]) -> Result<(), Reason> {
        let (address, text) = self.value(line)?;
        let text = text.unwrap_or_default();
        self.default = Default {
            address,
            text: text.map(Into::into),
            place: None,
        };
        self.trivial.get_or_insert_with(|| self.default.clone());
        Ok(())
    }

    /// Takes `$n`, `$=`, `$TTL` and `$MAXRANGE4`; `None` for any other keyword.
    pub(super) fn special(&mut self, keyword: &[u8], rest: &[u8]) -> Result<Option<()>, Reason> {
        let variable = match keyword {
            b"TTL" => {
                self.scope.ttl = Some(head::seconds(rest)?);
                return Ok(Some(()));
            }
            b"MAXRANGE4" => {
                self.range_max = self.range_max.min(range_max(rest)?);
                return Ok(Some(()));
            }
            b"=" => &mut self.scope.base,
            [digit @ b'0'..=b'9'] => &mut self.scope.variables[usize::from(digit - b'0')],
            _ => return Ok(None),
        };
        variable.get_or_insert_with(|| text(rest));
        Ok(Some(()))
    }

    fn ip4set(&mut self, line: &[u8]) -> Result<(), Reason> {
        let (excluded, line) = excluded(line);
        let (range, rest) = syntax4::range(line)?;
        if range.prefix == Some(0) {
            return Err(Reason::syntax("a prefix of 1 to 32 bits", line));
        }
        self.check_size(range, line)?;
        let value = self.place(excluded, rest)?;
        syntax4::blocks(range, |start, end, level| {
            if start == end {
                self.v4.point(start, value);
            } else {
                self.v4.entry(Entry {
                    start,
                    end,
                    level,
                    value,
                });
            }
        });
        Ok(())
    }

    fn ip4trie(&mut self, line: &[u8]) -> Result<(), Reason> {
        let (excluded, line) = excluded(line);
        let (range, rest) = syntax4::range(line)?;
        self.check_size(range, line)?;
        let Some(level) = range.prefix else {
            return Err(Reason::syntax("an IPv4 address or network", line));
        };
        let value = self.place(excluded, rest)?;
        if level == 32 {
            self.v4.point(range.start, value);
            return Ok(());
        }
        self.v4.entry(Entry {
            start: range.start,
            end: range.end,
            level,
            value,
        });
        Ok(())
    }

    fn ip4tset(&mut self, line: &[u8]) -> Result<(), Reason> {
        match syntax4::range(line)? {
            (range, _) if range.prefix == Some(32) => self.v4.point(range.start, TRIVIAL),
            _ => return Err(Reason::syntax("a single IPv4 address", line)),
        }
        Ok(())
    }

    fn ip6trie(&mut self, line: &[u8]) -> Result<(), Reason> {
        let (excluded, line) = excluded(line);
        let (range, rest) = syntax6::network(line)?;
        let value = self.place(excluded, rest)?;
        self.network6(range, range.prefix, value);
        Ok(())
    }

    fn ip6tset(&mut self, line: &[u8]) -> Result<(), Reason> {
        let (excluded, line) = excluded(line);
        let (range, _) = syntax6::network(line)?;
        match (excluded, range.prefix) {
            (false, 64) => self.network6(range, 64, TRIVIAL),
            (true, 128) => self.network6(range, 128, EXCLUDED),
            (false, _) => return Err(Reason::syntax("an IPv6 network of 64 bits", line)),
            (true, _) => return Err(Reason::syntax("a single IPv6 address", line)),
        }
        Ok(())
    }

    fn network6(&mut self, range: Range6, level: u8, value: u32) {
        if range.prefix == 64 {
            self.v6.point((range.start >> 64) as u64, value);
            return;
        }
        self.v6.entry(Entry {
            start: range.start,
            end: range.end,
            level,
            value,
        });
    }

    fn dnset(&mut self, line: &[u8]) -> Result<(), Reason> {
        let (excluded, line) = excluded(line);
        let end = line.iter().position(u8::is_ascii_whitespace);
        let (name, rest) = line.split_at(end.unwrap_or(line.len()));
        let (itself, below, base) = match name {
            [b'*', b'.', base @ ..] => (false, true, base),
            [b'.', base @ ..] => (true, true, base),
            base => (true, false, base),
        };
        let wire = name::relative(&base.to_ascii_lowercase())?;
        if wire.is_empty() || base == b"*" {
            return Err(Reason::syntax("a name of at least one label", line));
        }
        let value = self.place(excluded, rest)?;
        if itself {
            self.names.add(&wire, false, value)?;
        }
        if below {
            self.names.add(&wire, true, value)?;
        }
        Ok(())
    }

    fn cidr(&mut self, line: &[u8]) -> Result<(), Reason> {
        let end = line.iter().position(|octet| matches!(octet, b'#' | b';'));
        let line = line[..end.unwrap_or(line.len())].trim_ascii_end();
        if line.contains(&b':') {
            let range = syntax6::whole(line)?;
            self.network6(range, 0, TRIVIAL);
            return Ok(());
        }
        let range = syntax4::whole(line)?;
        self.check_size(range, line)?;
        if range.start == range.end {
            self.v4.point(range.start, TRIVIAL);
            return Ok(());
        }
        self.v4.entry(Entry {
            start: range.start,
            end: range.end,
            level: 0,
            value: TRIVIAL,
        });
        Ok(())
    }

    fn check_size(&self, range: Range4, line: &[u8]) -> Result<(), Reason> {
        let size = u64::from(range.end - range.start) + 1;
        if size > self.range_max {
            let expected = format!("at most {} addresses in an entry", self.range_max);
            return Err(Reason::syntax(expected, line));
        }
        Ok(())
    }

    /// The place of the value of an entry.
    fn place(&mut self, excluded: bool, rest: &[u8]) -> Result<u32, Reason> {
        if excluded {
            return Ok(EXCLUDED);
        }
        let rest = rest.trim_ascii();
        if rest.is_empty() || is_comment(rest) {
            if let Some(place) = self.default.place {
                return Ok(place);
            }
            let text = self.default.text.as_deref();
            let place = self.values.place(self.default.address, text)?;
            self.default.place = Some(place);
            return Ok(place);
        }
        let (address, own) = self.value(rest)?;
        match own {
            Some(text) => self.values.place(address, text.as_deref()),
            None => self.values.place(address, self.default.text.as_deref()),
        }
    }

    /// The address and text that a line names: `:A`, `:A:text` or `text`. The text is `None` if the line does not say.
    fn value<'a>(&self, rest: &'a [u8]) -> Result<(Ipv4Addr, Option<Text<'a>>), Reason> {
        let Some(value) = rest.strip_prefix(b":") else {
            return Ok((self.default.address, Some(lossy(rest))));
        };
        let end = memchr::memchr(b':', value);
        let (address, text) = value.split_at(end.unwrap_or(value.len()));
        let address = address_of(address.trim_ascii())?;
        Ok((address, text.get(1..).map(lossy)))
    }

    /// The dataset, to be searched.
    pub(super) fn finish(self) -> Dataset {
        let joined = match self.kind {
            Kind::Ip4Trie | Kind::Ip6Trie => Joined::First,
            _ => Joined::All,
        };
        let mut values = self.values;
        if matches!(self.kind, Kind::Ip4TSet | Kind::Ip6TSet | Kind::Cidr) {
            let only = self.trivial.unwrap_or(Default::NONE);
            values.only(only.address, only.text);
        }
        let mut groups = Groups::default();
        let ttl = self.scope.ttl;
        let with_ttl = |record: Record| Record {
            ttl: record.ttl.filter(|ttl| *ttl != 0).or(ttl),
            ..record
        };
        Dataset {
            kind: self.kind,
            v4: self.v4.finish(joined, |values| groups.listing(values)),
            v6: self.v6.finish(joined, |values| groups.listing(values)),
            names: self.names.finish(|values| groups.listing(values)),
            records: Records::of(self.records.into_iter().map(with_ttl).collect()),
            values: values.finish(self.scope),
            groups: groups.all,
        }
    }
}

type Text<'a> = Option<Cow<'a, str>>;

/// A text, without blanks around; `None` if nothing is left.
fn lossy(text: &[u8]) -> Text<'_> {
    let text = text.trim_ascii();
    (!text.is_empty()).then(|| String::from_utf8_lossy(text))
}

fn text(rest: &[u8]) -> Box<str> {
    String::from_utf8_lossy(rest.trim_ascii()).into()
}

/// Whether an entry begins with an exclamation mark, and the entry behind it.
fn excluded(line: &[u8]) -> (bool, &[u8]) {
    match line.strip_prefix(b"!") {
        Some(entry) => (true, entry.trim_ascii_start()),
        None => (false, line),
    }
}

fn is_comment(rest: &[u8]) -> bool {
    matches!(rest.first(), Some(b'#' | b';'))
}

/// An A value: an address, or its last octet, 1 to 255, behind 127.0.0.
fn address_of(text: &[u8]) -> Result<Ipv4Addr, Reason> {
    let refused = || {
        let expected = "an IPv4 address as value, or its last octet, 1 to 255";
        Reason::syntax(expected, text)
    };
    if let Some((last, [])) = syntax4::number(text, 255) {
        let last = u8::try_from(last).map_err(|_| refused())?;
        return match last {
            0 => Err(refused()),
            last => Ok(Ipv4Addr::new(127, 0, 0, last)),
        };
    }
    let text = std::str::from_utf8(text).map_err(|_| refused())?;
    let address: Ipv4Addr = text.parse().map_err(|_| refused())?;
    match address.is_unspecified() {
        true => Err(refused()),
        false => Ok(address),
    }
}

fn range_max(rest: &[u8]) -> Result<u64, Reason> {
    let refused = || Reason::syntax("a number of addresses, or a prefix such as /24", rest);
    let text = std::str::from_utf8(rest.trim_ascii()).map_err(|_| refused())?;
    let max = match text.strip_prefix('/') {
        Some(length) => {
            let length: u32 = length.parse().map_err(|_| refused())?;
            let bits = 32_u32.checked_sub(length).ok_or_else(refused)?;
            1 << bits
        }
        None => text.parse().map_err(|_| refused())?,
    };
    match max {
        0 => Err(refused()),
        max => Ok(max),
    }
}
