//! One dataset: what the files of one format list, and the values of its entries.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};

use super::addresses::{Addresses, Joined, Loading, V4, V6};
use super::error::Reason;
use super::head;
use super::kind::Kind;
use super::spans::{EXCLUDED, Entry};
use super::syntax4::{self, Range4};
use super::value::{DEFAULT_ADDRESS, Scope, Value, Values};
use crate::{Map, MapName};

/// A listing with this bit is the place of a group of values, otherwise of a single value.
const GROUP: u32 = 1 << 31;

/// The entries of a dataset as they are read.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) kind: Kind,
    pub(super) scope: Scope,
    values: Values,
    v4: Loading<V4>,
    v6: Loading<V6>,
    /// Addresses of an IPv4 entry at most.
    range_max: u64,
    default: Default,
}

/// What an entry without a value has: the last line that began with a colon.
#[derive(Debug)]
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
            values: Values::default(),
            v4: Loading::default(),
            v6: Loading::default(),
            range_max: u64::MAX,
            default: Default::NONE,
        }
    }

    /// Begins a file: the default value of a file ends with the file.
    pub(super) fn begin_file(&mut self) {
        self.default = Default::NONE;
    }

    /// Takes a line that is neither empty nor a comment nor a special entry.
    pub(super) fn line(&mut self, line: &[u8]) -> Result<(), Reason> {
        if line.first() == Some(&b':') {
            let (address, text) = self.value(line)?;
            let text = text.unwrap_or_default();
            self.default = Default {
                address,
                text: text.map(Into::into),
                place: None,
            };
            return Ok(());
        }
        match self.kind {
            Kind::Ip4Set => self.ip4set(line),
            kind => Err(Reason::bound("ip4set", kind.name())),
        }
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
        let mut groups = Groups::default();
        let v4 = self.v4.finish(joined, |values| groups.listing(values));
        let v6 = self.v6.finish(joined, |values| groups.listing(values));
        Dataset {
            values: self.values.finish(self.scope),
            groups: groups.all,
            v4,
            v6,
        }
    }
}

type Text<'a> = Option<std::borrow::Cow<'a, str>>;

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

/// The listings of addresses with several values, each group once.
#[derive(Debug, Default)]
struct Groups {
    all: Vec<Box<[u32]>>,
    places: HashMap<Box<[u32]>, u32>,
}

impl Groups {
    fn listing(&mut self, values: &[u32]) -> u32 {
        if let [value] = values {
            return *value;
        }
        if let Some(place) = self.places.get(values) {
            return *place;
        }
        let place = GROUP | self.all.len() as u32;
        self.all.push(values.into());
        self.places.insert(values.into(), place);
        place
    }
}

/// A dataset to be searched.
#[derive(Debug)]
pub(super) struct Dataset {
    values: Vec<Value>,
    groups: Vec<Box<[u32]>>,
    v4: Addresses<V4>,
    v6: Addresses<V6>,
}

impl Dataset {
    /// The values of an address.
    pub(super) fn values(&self, address: IpAddr) -> impl Iterator<Item = &Value> {
        let listing = match address {
            IpAddr::V4(address) => self.v4.find(address.to_bits()),
            IpAddr::V6(address) => self.v6.find(address.to_bits()),
        };
        self.listed(listing)
    }

    fn listed(&self, listing: Option<u32>) -> impl Iterator<Item = &Value> {
        let (one, many): (_, &[u32]) = match listing {
            Some(group) if group & GROUP != 0 => {
                let group = self.groups.get((group & !GROUP) as usize);
                (None, group.map_or(&[], |values| values))
            }
            one => (one, &[]),
        };
        let places = one.into_iter().chain(many.iter().copied());
        places.filter_map(|place| self.values.get(place as usize))
    }

    /// Adds the listed neighbours of a map.
    pub(super) fn map(&self, name: MapName) -> Map {
        let mut listed = Map::EMPTY;
        match name {
            MapName::V4(prefix) => {
                let first = prefix << 7;
                self.v4.parts(first, first | 0x7f, |start, end, value| {
                    listed.set(start as u8, end as u8, value);
                });
            }
            MapName::V6(prefix) => {
                let first = prefix << 7;
                self.v6.parts(first, first | 0x7f, |start, end, value| {
                    // A neighbour is the first address of its network.
                    let Some(start) = neighbour_from(start) else {
                        return;
                    };
                    let end = (end >> 64) as u64;
                    if start <= end {
                        listed.set(start as u8, end as u8, value);
                    }
                });
            }
        }
        listed
    }

    /// Whether an address from `first` to `last` is listed.
    pub(super) fn has_v4(&self, first: u32, last: u32) -> bool {
        self.v4.any_between(first, last)
    }

    /// Whether an address from `first` to `last` is listed.
    pub(super) fn has_v6(&self, first: u128, last: u128) -> bool {
        self.v6.any_between(first, last)
    }

    /// Octets of memory.
    pub(super) fn memory(&self) -> usize {
        let texts = self
            .values
            .iter()
            .map(|value| value.template().map_or(0, str::len));
        let values = size_of_val(self.values.as_slice()) + texts.sum::<usize>();
        let groups: usize = self.groups.iter().map(|group| 16 + 4 * group.len()).sum();
        values + groups + self.v4.memory() + self.v6.memory()
    }
}

/// The first network of 64 bits whose first address is not below an address.
fn neighbour_from(address: u128) -> Option<u64> {
    let network = (address >> 64) as u64;
    match address as u64 {
        0 => Some(network),
        _ => network.checked_add(1),
    }
}
