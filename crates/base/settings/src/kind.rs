//! The kinds of options, and the check of a value against its kind.

mod account;
mod filters;
mod judging;
mod outgoing;
mod secrecy;
mod text;
mod x400;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use toml::de::DeValue;
use vere_units::{ByteSize, Secret, Span};

use crate::directory_store::DirectoryStore;
use crate::dnsbl::DnsblData;
use crate::errors::Problem;
use crate::mail_store::NewMailbox;
use crate::name::name;
use crate::value::Value;

pub(crate) use secrecy::Secrecy;
use text::{domains, host_name, mail_address, senders, span};
pub(crate) use text::{shown, type_of};
pub(crate) use x400::host_and_port;

/// Entries of a list.
const LIST_MAX: usize = 1_000;
/// Octets of a text.
const TEXT_MAX: usize = 4_096;

/// The kind of value of an option. Bounds are inclusive; sizes are octets, spans are milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Version,
    HostName,
    HostNames,
    Name,
    Names,
    /// Mailboxes, with their special uses.
    Mailboxes,
    SecretText,
    Separator,
    Path,
    /// A file whose content is a secret.
    SecretFile,
    /// A zone of a block list, whose name may have the key of a customer.
    SecretZone,
    MaildirTemplate,
    Integer(u64, u64),
    Signed(i64, i64),
    /// A decimal fraction; bounds in points.
    Score(i64, i64),
    /// A score or `never`; the bound, on both sides of zero, in points.
    Threshold(i64),
    Size(u64, u64),
    Span(u64, u64),
    Spans(u64, u64),
    Choice(&'static [&'static str]),
    Ipv4,
    Ipv6,
    Address,
    Addresses,
    /// Where a content filter listens.
    FilterAddress,
    NetworkList,
    HeloPatterns,
    SenderPatterns,
    /// Recipients of a policy.
    Recipients,
    /// An address of plain form, fit for a header field.
    MailAddress,
    /// Patterns of attachments' names.
    NamePatterns,
    MediaTypes,
    /// Data of block lists: a format and files.
    Datasets,
    AnswerPatterns,
    UrlHttps,
    UrlHttp,
    /// URLs that begin with this text.
    Urls(&'static str),
    Pattern,
    NextHop,
    Rate,
    Store,
    /// A mail account of a provider.
    Account,
    /// A program with its arguments.
    Command,
    /// Visible characters of ASCII.
    Word,
    Words,
    /// An O/R address of X.400 in a text form.
    OrAddress,
    OrAddresses,
    /// Hosts, with or without ports.
    Hosts,
    IpAddresses,
}

impl Kind {
    /// Says in words what is wanted, with an example; for errors and the reference.
    pub(crate) fn wanted(self) -> String {
        let text = match self {
            Self::Version => "the number 1",
            Self::HostName | Self::SecretZone => "a host name in quotes such as \"mx.example.org\"",
            Self::HostNames => "a list of host names such as [\"mx.example.org\"]",
            Self::Name => "a name in quotes",
            Self::Names => "a list of names such as [\"mx1\", \"mx2\"]",
            Self::Mailboxes => "a list of mailboxes such as [\"Sent\", \"Entwürfe=Drafts\"]",
            Self::SecretText => "a text in quotes",
            Self::MailAddress => "a mail address in quotes such as \"postmaster@example.org\"",
            Self::Separator => "one character in quotes such as \"+\", or \"\"",
            Self::Path | Self::SecretFile => "a path in quotes such as \"/etc/vere/cert.pem\"",
            Self::MaildirTemplate => "a path in quotes that holds {domain} and {local}",
            Self::Integer(min, max) => return format!("a number from {min} to {max}"),
            Self::Signed(min, max) => return format!("a number from {min} to {max}"),
            Self::Score(min, max) => {
                return format!(
                    "a number from {min} to {max} such as 2.5, with at most two decimals"
                );
            }
            Self::Threshold(max) => {
                return format!(
                    "a number from -{max} to {max} such as 7.5, with at most two decimals, or \"never\""
                );
            }
            Self::Size(min, max) => {
                let (min, max) = (ByteSize::new(min), ByteSize::new(max));
                return format!("a size such as \"10 MiB\", from {min} to {max}");
            }
            Self::Span(min, max) => {
                let (min, max) = (Span::from_millis(min), Span::from_millis(max));
                return format!("a span such as \"30s\" or \"4h\", from {min} to {max}");
            }
            Self::Spans(min, max) => {
                let (min, max) = (Span::from_millis(min), Span::from_millis(max));
                return format!("a list of spans such as [\"5m\", \"4h\"], each {min} to {max}");
            }
            Self::Choice(names) => return format!("one of {}", quoted(names)),
            Self::Ipv4 => "an IPv4 address such as \"192.0.2.1\"",
            Self::Ipv6 => "an IPv6 address such as \"2001:db8::1\"",
            Self::Address => "an address with port such as \"127.0.0.1:2525\"",
            Self::Addresses => "a list of addresses with ports such as [\"[::]:25\"]",
            Self::FilterAddress => {
                "an address such as \"127.0.0.1:11333\", \"[::1]:11333\" or \"unix:/run/filter.sock\""
            }
            Self::NetworkList => "a list of networks such as [\"127.0.0.0/8\", \"::1\"]",
            Self::HeloPatterns => "a list of names such as [\"mx.example.net\", \".example.net\"]",
            Self::SenderPatterns => {
                "a list of senders such as [\"bob@example.net\", \"example.net\", \".example.net\", \"<>\"]"
            }
            Self::Recipients => {
                "a list of recipients such as [\"ann@example.org\", \"example.org\", \".example.org\"]"
            }
            Self::NamePatterns => "a list of patterns such as [\"*.exe\", \"*.js\"]",
            Self::MediaTypes => "a list of media types such as [\"application/zip\", \"video/*\"]",
            Self::Datasets => {
                "a list of formats and files such as [\"ip4set:/var/lib/vere/bl/file\"]"
            }
            Self::AnswerPatterns => "a list of answers such as [\"127.0.0.[2..11]\"]",
            Self::UrlHttps => "an address that begins with \"https://\"",
            Self::UrlHttp => "an address that begins with \"https://\" or \"http://\"",
            Self::Urls(start) => return format!("a list of texts that begin with \"{start}\""),
            Self::Pattern => "\"*\", \"example.org\" or \".example.org\"",
            Self::NextHop => "\"host:port\", \"[2001:db8::1]:25\", \"mx\" or \"local\"",
            Self::Rate => "a rate such as \"20/1s\" or \"500/1h\"",
            Self::Store => "\"file:PATH\" or \"sqlite:PATH\"",
            Self::Account => "an account such as \"imaps://bob@mail.example.org/\"",
            Self::Command => "a program with arguments such as [\"pass\", \"mail/bob\"]",
            Self::Word => "a word in quotes",
            Self::Words => "a list of words such as [\"22\", \"2.6.1.10.1\"]",
            Self::OrAddress => {
                "an O/R address in quotes such as \"S=Smith; O=Acme; A=Carrier; C=GB\""
            }
            Self::OrAddresses => "a list of O/R addresses such as [\"O=Acme; A=Carrier; C=GB\"]",
            Self::Hosts => "a list of hosts such as [\"mta.example.net:102\", \"192.0.2.1\"]",
            Self::IpAddresses => "a list of addresses such as [\"192.0.2.1\", \"2001:db8::1\"]",
        };
        text.to_owned()
    }

    /// Checks one value.
    pub(crate) fn check(self, value: &DeValue<'_>) -> Result<Value, Problem> {
        match self {
            Self::Version => self.integer(value, 0, i64::MAX as u64),
            Self::Integer(min, max) => self.integer(value, min, max),
            Self::Signed(min, max) => self.number(value, min, max).map(Value::Signed),
            Self::Score(min, max) => {
                judging::score(self.wanted(), value, min, max).map(Value::Score)
            }
            Self::Threshold(max) => {
                judging::threshold(self.wanted(), value, max).map(Value::Threshold)
            }
            Self::Recipients => self.list(value, judging::recipient).map(Value::Texts),
            Self::NamePatterns => self.list(value, judging::name_pattern).map(Value::Texts),
            Self::MediaTypes => self.list(value, judging::media_type).map(Value::Texts),
            Self::HostNames => self.list(value, host_name).map(Value::Texts),
            Self::Names => self.list(value, name).map(Value::Texts),
            Self::Mailboxes => self.list(value, mailbox).map(Value::Texts),
            Self::Spans(min, max) => self.spans(value, min, max),
            Self::Addresses => self.list(value, socket_address).map(Value::Addresses),
            Self::NetworkList => {
                let network = |text: &str| text.parse().map_err(|error| format!("{error}"));
                self.list(value, network).map(Value::Networks)
            }
            Self::HeloPatterns => self.list(value, domains).map(Value::Texts),
            Self::SenderPatterns => self.list(value, senders).map(Value::Texts),
            Self::Datasets => {
                let data = |text: &str| DnsblData::parse(text).map(|_| text.to_owned());
                self.list(value, data).map(Value::Texts)
            }
            Self::AnswerPatterns => self.list(value, str::parse).map(Value::Answers),
            Self::Urls(start) => self.list(value, |text| url(text, start)).map(Value::Texts),
            Self::Words => self.list(value, x400::word).map(Value::Texts),
            Self::OrAddresses => self.list(value, x400::address).map(Value::Texts),
            Self::Hosts => self.list(value, x400::host).map(Value::Texts),
            Self::IpAddresses => self.list(value, x400::ip_address).map(Value::Texts),
            Self::Command => {
                let words = self.list(value, |text| Ok(text.to_owned()))?;
                account::command(words, self.wanted()).map(Value::Texts)
            }
            _ => {
                let text = self.text(value)?;
                let found = || self.shown(text);
                self.check_text(text)
                    .map_err(|allowed| Problem::NotAllowed {
                        found: found(),
                        allowed,
                    })
            }
        }
    }

    fn check_text(self, text: &str) -> Result<Value, String> {
        Ok(match self {
            Self::HostName | Self::SecretZone => Value::Text(host_name(text)?),
            Self::Name => Value::Text(name(text)?),
            Self::SecretText if text.is_empty() => return Err("must not be empty".to_owned()),
            Self::SecretText => Value::Secret(Secret::new(text.to_owned())),
            Self::MailAddress => Value::Text(mail_address(text)?),
            Self::Separator => Value::Text(separator(text)?),
            Self::Path | Self::SecretFile => Value::Path(path(text)?),
            Self::MaildirTemplate => Value::Text(maildir(text)?),
            Self::Size(min, max) => {
                let size: ByteSize = text.parse().map_err(|error| format!("{error}"))?;
                if !(min..=max).contains(&size.as_u64()) {
                    return Err(format!("expected {}", self.wanted()));
                }
                Value::Size(size)
            }
            Self::Span(min, max) => Value::Span(span(text, min, max)?),
            Self::Choice(names) => {
                let known = names.iter().find(|name| **name == text);
                Value::Choice(known.ok_or_else(|| format!("expected {}", self.wanted()))?)
            }
            Self::Ipv4 => {
                let address = text.parse::<Ipv4Addr>();
                Value::Ip(IpAddr::V4(address.map_err(|_| "expected an IPv4 address")?))
            }
            Self::Ipv6 => {
                let address = text.parse::<Ipv6Addr>();
                Value::Ip(IpAddr::V6(address.map_err(|_| "expected an IPv6 address")?))
            }
            Self::Address => Value::Address(socket_address(text)?),
            Self::FilterAddress => Value::FilterAddress(filters::address(text)?),
            Self::UrlHttps => Value::Text(url(text, "https://")?),
            Self::UrlHttp => {
                let plain = url(text, "http://");
                Value::Text(plain.or_else(|_| url(text, "https://"))?)
            }
            Self::Pattern => Value::Pattern(outgoing::pattern(text)?),
            Self::NextHop => Value::NextHop(outgoing::next_hop(text)?),
            Self::Rate => Value::Rate(outgoing::rate(text)?),
            Self::Store => Value::Store(DirectoryStore::parse(text)?),
            Self::Account => Value::Text(account::account(text)?),
            Self::Word => Value::Text(x400::word(text)?),
            Self::OrAddress => Value::Text(x400::address(text)?),
            // The remaining kinds are no texts; `check` does not bring them here.
            _ => return Err(format!("expected {}", self.wanted())),
        })
    }

    fn text<'v>(self, value: &'v DeValue<'_>) -> Result<&'v str, Problem> {
        let Some(text) = value.as_str() else {
            return Err(Problem::WrongType {
                found: type_of(value),
                wanted: self.wanted(),
            });
        };
        if text.len() > TEXT_MAX || text.chars().any(char::is_control) {
            let allowed = format!("expected at most {TEXT_MAX} bytes without control characters");
            return Err(Problem::NotAllowed {
                found: self.shown(text),
                allowed,
            });
        }
        Ok(text)
    }

    /// Shortens a text for an error.
    ///
    /// Secrets are not shown, and neither are texts of several lines: after a superfluous quotation
    /// mark such a text contains the following lines of the file, and a password may be among the
    /// lines.
    fn shown(self, text: &str) -> String {
        if self == Self::SecretText || text.contains('\n') {
            "the text".to_owned()
        } else {
            shown(text)
        }
    }

    fn integer(self, value: &DeValue<'_>, min: u64, max: u64) -> Result<Value, Problem> {
        self.number(value, min, max).map(Value::Integer)
    }

    fn number<T: TryFrom<i128> + PartialOrd>(
        self,
        value: &DeValue<'_>,
        min: T,
        max: T,
    ) -> Result<T, Problem> {
        let Some(number) = value.as_integer() else {
            return Err(Problem::WrongType {
                found: type_of(value),
                wanted: self.wanted(),
            });
        };
        // A number beyond 128 bits is outside every range.
        let parsed = i128::from_str_radix(number.as_str(), number.radix()).ok();
        let parsed = parsed.and_then(|number| T::try_from(number).ok());
        parsed
            .filter(|number| (min..=max).contains(number))
            .ok_or_else(|| {
                let allowed = format!("expected {}", self.wanted());
                Problem::NotAllowed {
                    found: shown(number.as_str()),
                    allowed,
                }
            })
    }

    fn list<T>(
        self,
        value: &DeValue<'_>,
        check: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Vec<T>, Problem> {
        let Some(list) = value.as_array() else {
            return Err(Problem::WrongType {
                found: type_of(value),
                wanted: self.wanted(),
            });
        };
        if list.len() > LIST_MAX {
            let allowed = format!("expected at most {LIST_MAX}");
            return Err(Problem::NotAllowed {
                found: format!("{} entries", list.len()),
                allowed,
            });
        }
        let one = |entry: &toml::Spanned<DeValue<'_>>| {
            let text = self.text(entry.get_ref())?;
            check(text).map_err(|allowed| Problem::NotAllowed {
                found: shown(text),
                allowed,
            })
        };
        list.iter().map(one).collect()
    }

    fn spans(self, value: &DeValue<'_>, min: u64, max: u64) -> Result<Value, Problem> {
        let spans = self.list(value, |text| span(text, min, max))?;
        if spans.is_empty() {
            let allowed = "expected at least one entry".to_owned();
            return Err(Problem::NotAllowed {
                found: "an empty list".to_owned(),
                allowed,
            });
        }
        Ok(Value::Spans(spans))
    }
}

/// Lists names in quotes for a message.
fn quoted(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    names.join(", ")
}

/// Checks the name of a mailbox, with or without a special use.
///
/// # Errors
/// The text is neither `NAME` nor `NAME=USE`.
fn mailbox(text: &str) -> Result<String, String> {
    NewMailbox::parse(text).map(|_| text.to_owned())
}

fn separator(text: &str) -> Result<String, String> {
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (None, None) => Ok(String::new()),
        (Some('+' | '-' | '_' | '=' | '#' | '!' | '%' | '&' | '*' | '~' | '.'), None) => {
            Ok(text.to_owned())
        }
        _ => Err("expected one of + - _ = # ! % & * ~ .".to_owned()),
    }
}

fn path(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() {
        return Err("must not be empty".to_owned());
    }
    Ok(PathBuf::from(text))
}

fn maildir(text: &str) -> Result<String, String> {
    let rest = text
        .replace("{data}", "")
        .replace("{domain}", "")
        .replace("{local}", "");
    if rest.contains(['{', '}']) {
        return Err("expected no other placeholders than {data}, {domain} and {local}".to_owned());
    }
    if !text.contains("{domain}") || !text.contains("{local}") {
        return Err(
            "expected {domain} and {local}: without both, accounts would share a mailbox"
                .to_owned(),
        );
    }
    Ok(text.to_owned())
}

fn socket_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "expected an address with port, such as 192.0.2.1:25 or [::]:25 (not a name)".to_owned()
    })
}

fn url(text: &str, start: &str) -> Result<String, String> {
    match text.strip_prefix(start) {
        Some(rest) if !rest.is_empty() && !text.contains([' ', '"', '<', '>']) => {
            Ok(text.to_owned())
        }
        _ => Err(format!(
            "expected an address that begins with {start}, without spaces"
        )),
    }
}
