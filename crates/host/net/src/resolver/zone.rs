//! Records from a text file, for tests and demonstrations: no network is asked.
//!
//! ```text
//! zone   = *( line LF )
//! line   = [ name type [ value ] ] [ ( "#" / ";" ) comment ]
//! name   = DNS name, "*." name for all below it without records of their own, or "*" for all
//! type   = "A" / "AAAA" / "MX" / "PTR" / "TXT" / "CAA" / "SRV" / "CNAME" / "FAIL"
//! ```
//!
//! The value of MX is a preference and a host (`0 .` is the null MX), the value of TXT may be
//! quoted, CAA has flags, tag and value, SRV priority, weight, port and host, and FAIL, without a value, makes every lookup of the name a temporary failure.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

use super::{Lookup, LookupFailure, Record, RecordKind};

/// Octets read of a zone file: it is for tests, not for serving.
const FILE_OCTETS_MAX: u64 = 16 * 1024 * 1024;
/// The most CNAME records followed per lookup.
const ALIASES_MAX: usize = 8;
const SERVFAIL: u16 = 2;

/// Static records by name.
#[derive(Clone, Debug, Default)]
pub struct Zone {
    path: Option<PathBuf>,
    records: HashMap<String, Vec<Data>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Data {
    A(Ipv4Addr),
    Aaaa(Ipv6Addr),
    Mx(u16, String),
    Ptr(String),
    Txt(String),
    Caa(String, String),
    Srv(u16, String),
    Cname(String),
    Fail,
}

/// A zone file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ZoneError {
    /// The file cannot be read.
    #[error("cannot read the zone file {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A line is no record.
    #[error("{path}:{line}: {problem}")]
    Line {
        /// The file; empty when the text came from elsewhere.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The error in the line.
        problem: &'static str,
    },
}

impl Zone {
    /// Reads a zone file.
    ///
    /// # Errors
    /// The file cannot be read, is larger than 16 MiB, or has a line that is no record.
    pub fn load(path: &Path) -> Result<Self, ZoneError> {
        let read = |source| ZoneError::Read {
            path: path.to_owned(),
            source,
        };
        if fs::metadata(path).map_err(read)?.len() > FILE_OCTETS_MAX {
            return Err(read(io::Error::other(
                "expected at most 16 MiB; the file is larger",
            )));
        }
        let text = fs::read_to_string(path).map_err(read)?;
        let mut zone = Self::parse(&text).map_err(|error| match error {
            ZoneError::Line { line, problem, .. } => ZoneError::Line {
                path: path.to_owned(),
                line,
                problem,
            },
            other @ ZoneError::Read { .. } => other,
        })?;
        zone.path = Some(path.to_owned());
        Ok(zone)
    }

    /// Reads records from text.
    ///
    /// # Errors
    /// A line is no record.
    pub fn parse(text: &str) -> Result<Self, ZoneError> {
        let mut zone = Self::default();
        for (index, line) in text.lines().enumerate() {
            match record(line) {
                Ok(None) => {}
                Ok(Some((name, data))) => zone.records.entry(name).or_default().push(data),
                Err(problem) => {
                    return Err(ZoneError::Line {
                        path: PathBuf::new(),
                        line: index + 1,
                        problem,
                    });
                }
            }
        }
        Ok(zone)
    }

    /// The file the zone was read from.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    pub(super) fn mx(&self, domain: &str) -> Lookup<(u16, String)> {
        self.lookup(domain, |data| match data {
            Data::Mx(preference, host) => Some((*preference, host.clone())),
            _ => None,
        })
    }

    pub(super) fn addresses(&self, host: &str) -> (Lookup<IpAddr>, Lookup<IpAddr>) {
        let v6 = self.lookup(host, |data| match data {
            Data::Aaaa(address) => Some(IpAddr::V6(*address)),
            _ => None,
        });
        let v4 = self.lookup(host, |data| match data {
            Data::A(address) => Some(IpAddr::V4(*address)),
            _ => None,
        });
        (v6, v4)
    }

    pub(super) fn txt(&self, name: &str) -> Lookup<String> {
        self.lookup(name, |data| match data {
            Data::Txt(text) => Some(text.clone()),
            _ => None,
        })
    }

    pub(super) fn records(&self, name: &str, kind: RecordKind) -> Lookup<Record> {
        self.lookup(name, |data| match (data, kind) {
            (Data::A(address), RecordKind::A) => Some(Record::A(*address)),
            (Data::Aaaa(address), RecordKind::Aaaa) => Some(Record::Aaaa(*address)),
            (Data::Mx(preference, host), RecordKind::Mx) => {
                Some(Record::Mx(*preference, host.clone()))
            }
            (Data::Ptr(name), RecordKind::Ptr) => Some(Record::Ptr(name.clone())),
            (Data::Txt(text), RecordKind::Txt) => Some(Record::Txt(text.as_bytes().to_vec())),
            (Data::Caa(tag, value), RecordKind::Caa) => {
                Some(Record::Caa(tag.clone(), value.clone()))
            }
            (Data::Srv(port, host), RecordKind::Srv) => Some(Record::Srv(*port, host.clone())),
            _ => None,
        })
    }

    fn lookup<T>(&self, name: &str, pick: impl Fn(&Data) -> Option<T>) -> Lookup<T> {
        let mut name = canonical(name);
        for _ in 0..ALIASES_MAX {
            let Some(records) = self.records_of(&name) else {
                return if self.has_below(&name) {
                    Lookup::None
                } else {
                    Lookup::NoSuchName
                };
            };
            if records.contains(&Data::Fail) {
                return Lookup::Failed(LookupFailure::Code(SERVFAIL));
            }
            let found: Vec<T> = records.iter().filter_map(&pick).collect();
            if !found.is_empty() {
                return Lookup::Found(found);
            }
            match records.iter().find_map(alias) {
                Some(target) => target.clone_into(&mut name),
                None => return Lookup::None,
            }
        }
        // A loop of aliases; a name server answers so, too.
        Lookup::Failed(LookupFailure::Code(SERVFAIL))
    }

    /// The records of the name itself, or of the closest wildcard above it.
    fn records_of(&self, name: &str) -> Option<&Vec<Data>> {
        if let Some(records) = self.records.get(name) {
            return Some(records);
        }
        let mut rest = name;
        while let Some((_, parent)) = rest.split_once('.') {
            if let Some(records) = self.records.get(&format!("*.{parent}")) {
                return Some(records);
            }
            rest = parent;
        }
        self.records.get("*")
    }

    /// A name with names below exists, even without records (RFC 8020).
    fn has_below(&self, name: &str) -> bool {
        self.records.keys().any(|key| {
            key.strip_suffix(name)
                .is_some_and(|rest| rest.ends_with('.'))
        })
    }
}

fn alias(data: &Data) -> Option<&str> {
    match data {
        Data::Cname(target) => Some(target),
        _ => None,
    }
}

fn canonical(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

fn record(line: &str) -> Result<Option<(String, Data)>, &'static str> {
    let line = line.trim();
    if line.is_empty() || line.starts_with(['#', ';']) {
        return Ok(None);
    }
    let (name, rest) = line
        .split_once(char::is_whitespace)
        .ok_or("a record needs a type")?;
    let rest = rest.trim_start();
    let (kind, value) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let data = data(&kind.to_ascii_uppercase(), value.trim())?;
    Ok(Some((canonical(name), data)))
}

fn data(kind: &str, value: &str) -> Result<Data, &'static str> {
    match kind {
        "TXT" => return Ok(Data::Txt(unquoted(value).to_owned())),
        // A value may have semicolons, too.
        "CAA" => return caa(value).ok_or("CAA needs flags, a tag and a value"),
        _ => {}
    }
    let value = value.split(['#', ';']).next().unwrap_or_default().trim();
    match kind {
        "A" => value
            .parse()
            .map(Data::A)
            .map_err(|_| "A needs an IPv4 address"),
        "AAAA" => value
            .parse()
            .map(Data::Aaaa)
            .map_err(|_| "AAAA needs an IPv6 address"),
        "CNAME" => one_name(value).map(Data::Cname).ok_or("CNAME needs a name"),
        "PTR" => one_name(value).map(Data::Ptr).ok_or("PTR needs a name"),
        "FAIL" if value.is_empty() => Ok(Data::Fail),
        "FAIL" => Err("FAIL has no value"),
        "MX" => mx(value).ok_or("MX needs a preference and a host"),
        "SRV" => srv(value).ok_or("SRV needs priority, weight, port and a host"),
        _ => Err("the type must be A, AAAA, MX, PTR, TXT, CAA, SRV, CNAME or FAIL"),
    }
}

fn unquoted(value: &str) -> &str {
    let quoted = value.strip_prefix('"').and_then(|v| v.strip_suffix('"'));
    quoted.unwrap_or(value)
}

fn caa(value: &str) -> Option<Data> {
    let (flags, rest) = value.split_once(char::is_whitespace)?;
    flags.parse::<u8>().ok()?;
    let (tag, value) = rest.trim_start().split_once(char::is_whitespace)?;
    let value = unquoted(value.trim());
    Some(Data::Caa(tag.to_ascii_lowercase(), value.to_owned()))
}

fn srv(value: &str) -> Option<Data> {
    let words: Vec<&str> = value.split_whitespace().collect();
    let [priority, weight, port, host] = words.as_slice() else {
        return None;
    };
    priority.parse::<u16>().ok()?;
    weight.parse::<u16>().ok()?;
    let host = match *host {
        "." => String::new(),
        host => one_name(host)?,
    };
    Some(Data::Srv(port.parse().ok()?, host))
}

fn mx(value: &str) -> Option<Data> {
    let (preference, host) = value.split_once(char::is_whitespace)?;
    let host = if host.trim() == "." {
        String::new()
    } else {
        one_name(host.trim())?
    };
    Some(Data::Mx(preference.parse().ok()?, host))
}

fn one_name(value: &str) -> Option<String> {
    let fits = !value.is_empty() && !value.contains(char::is_whitespace);
    fits.then(|| canonical(value))
}
