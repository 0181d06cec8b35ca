//! The text of a file of settings without secrets, for helpers and for processes that strangers reach.

use toml::de::{DeTable, DeValue};
use vere_units::Secret;

use crate::changes::option;
use crate::kind::{Kind, Secrecy};
use crate::table::{SYSTEM, Section, sections};

/// In place of a secret.
const HIDDEN: &str = "[redacted]";
/// In place of a value whose key no table has: a mistyped `password` is a secret, too.
const UNKNOWN: &str = "[redacted: unknown key]";

/// A file of settings without secrets.
#[derive(Debug)]
pub struct Redaction {
    /// The settings in TOML, without comments, since comments may contain former settings.
    pub text: String,
    /// The secrets of the file, for searches in further texts.
    pub secrets: Vec<Secret<String>>,
}

/// Writes the settings of a file anew without secrets. Secret are the values, or parts of values, of options whose
/// kind is secret in the table of options, and the values of unknown keys. Named files are not read.
///
/// Returns `None` for a text without valid TOML: behind a wrong quotation mark any line may be a secret.
#[must_use]
pub fn redacted(text: &str) -> Option<Redaction> {
    let root = DeTable::parse(text).ok()?;
    let mut writer = Writer::default();
    writer.section(Some(SYSTEM.top()), "", root.get_ref());
    let Writer { text, secrets, .. } = writer;
    Some(Redaction { text, secrets })
}

/// Writes the settings of a file anew for a process that may know no secret: as [`redacted`] does, but with stand-ins that every
/// check of settings accepts. Each stand-in differs from the others, since some values must not occur twice.
///
/// Returns `None` for a text without valid TOML.
#[must_use]
pub fn blanked(text: &str) -> Option<String> {
    let root = DeTable::parse(text).ok()?;
    let mut writer = Writer {
        blanks: Some(0),
        ..Writer::default()
    };
    writer.section(Some(SYSTEM.top()), "", root.get_ref());
    Some(writer.text)
}

/// Whether a word is the name of a section or the key of an option, without indices: keys look like domains.
#[must_use]
pub fn is_key(word: &str) -> bool {
    option(word).is_some() || sections().any(|section| section.name == word)
}

#[derive(Default)]
struct Writer {
    text: String,
    secrets: Vec<Secret<String>>,
    /// The number of stand-ins so far, for a text that is parsed again; `None` for a text for people.
    blanks: Option<u32>,
}

impl Writer {
    /// Writes the options of a section, then the sections below. `section` is `None` for an unknown section.
    fn section(&mut self, section: Option<&'static Section>, path: &str, table: &DeTable<'_>) {
        let mut below = Vec::new();
        for (key, value) in table {
            let key: &str = key.get_ref();
            match value.get_ref() {
                DeValue::Table(inner) => below.push((key, vec![inner], false)),
                DeValue::Array(list) if !list.is_empty() => {
                    let tables = list.iter().map(|entry| entry.get_ref().as_table());
                    match tables.collect::<Option<Vec<_>>>() {
                        Some(tables) => below.push((key, tables, true)),
                        None => self.option(section, key, value.get_ref()),
                    }
                }
                other => self.option(section, key, other),
            }
        }
        for (key, tables, repeated) in below {
            let child = section.and_then(|section| SYSTEM.child(section, key));
            let path = match path {
                "" => shown_key(key),
                _ => format!("{path}.{}", shown_key(key)),
            };
            for table in tables {
                self.text += &match repeated {
                    true => format!("\n[[{path}]]\n"),
                    false => format!("\n[{path}]\n"),
                };
                self.section(child, &path, table);
            }
        }
    }

    fn option(&mut self, section: Option<&'static Section>, key: &str, value: &DeValue<'_>) {
        let options = section.map_or(&[][..], |section| section.options);
        let known = options.iter().find(|option| option.name == key);
        let value = match known {
            Some(option) => self.value(option.kind, value),
            None => self.unknown(value),
        };
        self.text += &format!("{} = {value}\n", shown_key(key));
    }

    fn unknown(&mut self, value: &DeValue<'_>) -> String {
        for text in texts(value) {
            self.secrets.push(Secret::new(text.to_owned()));
        }
        quoted(UNKNOWN)
    }

    fn value(&mut self, kind: Kind, value: &DeValue<'_>) -> String {
        match (value, kind.secrecy()) {
            (DeValue::String(text), secrecy) => quoted(&self.text(secrecy, text)),
            (DeValue::Array(words), Secrecy::Arguments) => {
                let mut words = words.iter().filter_map(|word| word.get_ref().as_str());
                let program = words.next().unwrap_or_default().to_owned();
                self.secrets
                    .extend(words.map(|word| Secret::new(word.to_owned())));
                let hidden = self.blank(HIDDEN.to_owned());
                format!("[{}, {}]", quoted(&program), quoted(&hidden))
            }
            (DeValue::Array(entries), _) => {
                let entries = entries
                    .iter()
                    .map(|entry| self.value(kind, entry.get_ref()));
                format!("[{}]", entries.collect::<Vec<_>>().join(", "))
            }
            (DeValue::Integer(number), Secrecy::Open) => format!("{number}"),
            (DeValue::Float(number), Secrecy::Open) => number.as_str().to_owned(),
            (DeValue::Boolean(truth), Secrecy::Open) => truth.to_string(),
            (DeValue::Datetime(date), Secrecy::Open) => date.to_string(),
            // A secret in a wrong type. Tables are written by the caller.
            _ => quoted(HIDDEN),
        }
    }

    fn text(&mut self, secrecy: Secrecy, text: &str) -> String {
        let (shown, hidden) = match secrecy {
            Secrecy::Open | Secrecy::File => return text.to_owned(),
            Secrecy::Whole => (HIDDEN.to_owned(), vec![text.to_owned()]),
            Secrecy::UrlUser => url(text, false),
            Secrecy::UrlPath => url(text, true),
            Secrecy::Labels => labels(text),
            Secrecy::Arguments => (HIDDEN.to_owned(), vec![text.to_owned()]),
        };
        self.secrets.extend(hidden.into_iter().map(Secret::new));
        match secrecy {
            Secrecy::UrlUser | Secrecy::UrlPath if self.blanks.is_some() => {
                shown.replace(&format!("{HIDDEN}@"), "").replace(HIDDEN, "")
            }
            _ => self.blank(shown),
        }
    }

    /// Puts a stand-in in the place of a hidden part, in a text that is parsed again.
    fn blank(&mut self, shown: String) -> String {
        match &mut self.blanks {
            Some(blanks) if shown.contains(HIDDEN) => {
                *blanks = blanks.saturating_add(1);
                shown.replace(HIDDEN, &format!("redacted-{blanks}"))
            }
            _ => shown,
        }
    }
}

/// A URL without user, password, query and, if `path` is secret, without path; and the omitted parts.
fn url(text: &str, path: bool) -> (String, Vec<String>) {
    let Some((scheme, rest)) = text.split_once("://") else {
        return (text.to_owned(), Vec::new());
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, behind) = rest.split_at(end);
    let mut hidden = Vec::new();
    let host = match authority.rsplit_once('@') {
        Some((user, host)) => {
            hidden.push(user.to_owned());
            hidden.extend(
                user.split_once(':')
                    .map(|(_, password)| password.to_owned()),
            );
            format!("{HIDDEN}@{host}")
        }
        None => authority.to_owned(),
    };
    let open = match path {
        true => 0,
        false => behind.find(['?', '#']).unwrap_or(behind.len()),
    };
    let (open, secret) = behind.split_at(open);
    let secret = match secret {
        "" | "/" => secret,
        _ => {
            hidden.push(secret.to_owned());
            HIDDEN
        }
    };
    (format!("{scheme}://{host}{open}{secret}"), hidden)
}

/// A name with the last two labels alone; and the first omitted label.
fn labels(text: &str) -> (String, Vec<String>) {
    let mut labels = text.rsplitn(3, '.');
    let (last, second, rest) = (labels.next(), labels.next(), labels.next());
    let Some(rest) = rest else {
        return (text.to_owned(), Vec::new());
    };
    let first = rest.split('.').next().unwrap_or(rest);
    let shown = format!(
        "{HIDDEN}.{}.{}",
        second.unwrap_or_default(),
        last.unwrap_or_default()
    );
    (shown, vec![first.to_owned()])
}

/// All texts of a value.
fn texts<'v>(value: &'v DeValue<'_>) -> Vec<&'v str> {
    match value {
        DeValue::String(text) => vec![text],
        DeValue::Array(list) => list.iter().flat_map(|one| texts(one.get_ref())).collect(),
        _ => Vec::new(),
    }
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// A key in the form of a file. A key with further letters may be a value in the wrong place.
fn shown_key(key: &str) -> String {
    let is_bare = |octet: u8| octet.is_ascii_alphanumeric() || b"-_".contains(&octet);
    match !key.is_empty() && key.bytes().all(is_bare) {
        true => key.to_owned(),
        false => quoted(HIDDEN),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with every option of every section, each with a separate text.
    fn every_option() -> (String, Vec<(Kind, String)>) {
        let (mut text, mut planted) = (String::new(), Vec::new());
        for section in sections() {
            match section.shape {
                _ if section.name.is_empty() => {}
                crate::table::Shape::Repeated => text += &format!("[[{}]]\n", section.name),
                _ => text += &format!("[{}]\n", section.name),
            }
            for option in section.options {
                let secret = format!("planted{}", planted.len());
                let value = match option.kind.secrecy() {
                    Secrecy::UrlUser | Secrecy::UrlPath => {
                        format!("https://{secret}@host.example/?{secret}")
                    }
                    Secrecy::Labels => format!("{secret}.zen.example.net"),
                    _ => secret.clone(),
                };
                text += &format!("{} = {value:?}\n", option.name);
                planted.push((option.kind, secret));
            }
        }
        (text, planted)
    }

    #[test]
    fn no_secret_of_the_table_is_left() {
        let (text, planted) = every_option();
        let redaction = redacted(&text).unwrap();
        let mut hidden = 0;
        for (kind, secret) in planted {
            let is_open = matches!(kind.secrecy(), Secrecy::Open | Secrecy::File);
            let lines = || {
                redaction
                    .text
                    .lines()
                    .filter(|line| line.contains(&format!("{secret}\"")))
            };
            assert_eq!(lines().count(), usize::from(is_open), "{kind:?} {secret}");
            if !is_open {
                let known = redaction.secrets.iter();
                let mut known = known.filter(|known| known.expose().contains(&secret));
                assert!(known.next().is_some(), "{kind:?} {secret}");
                assert!(!redaction.text.contains(&format!("{secret}@")), "{kind:?}");
                hidden += 1;
            }
        }
        assert!(hidden >= 6, "{hidden}");
    }

    /// A process behind a sandbox read the passwords of next hops in its copy of the settings.
    #[test]
    fn a_blanked_file_has_no_secret_and_is_a_file_of_settings() {
        let (text, planted) = every_option();
        let blank = blanked(&text).unwrap();
        for (kind, secret) in planted {
            let is_open = matches!(kind.secrecy(), Secrecy::Open | Secrecy::File);
            let count = blank.matches(&format!("{secret}\"")).count();
            assert_eq!(count, usize::from(is_open), "{kind:?} {secret}");
            assert!(!blank.contains(&format!("{secret}@")), "{kind:?}");
        }
        let text = "# s3cret\nversion = 1\nhostname = \"mx.example.org\"\n[web]\n[acme]\n\
                    directory = \"https://ann:s3cret@ca.example.org/dir?s3cret\"\n[front]\n\
                    [[front.list]]\nzone = \"s3cret1.zen.example.net\"\n[[front.list]]\nzone = \"s3cret2.zen.example.net\"\n\
                    [[route]]\ndomain = \"*\"\nnext_hop = \"relay.example.net:587\"\ntls = \"required\"\nusername = \"ann\"\npassword = \"s3cret\"\n";
        let whole = crate::Settings::parse(text, "vere.toml").unwrap();
        let blank = blanked(text).unwrap();
        assert!(!blank.contains("s3cret"), "{blank}");
        let settings = crate::Settings::parse(&blank, "vere.toml").unwrap();
        assert_eq!((settings.web, settings.smtp), (whole.web, whole.smtp));
        assert_eq!(settings.routes.len(), 1);
        assert!(blanked("password = \"s3cret").is_none());
    }

    #[test]
    fn comments_unknown_keys_and_wrong_types_are_left_out() {
        let text = "version = 1 # s3cret\n# password = \"s3cret\"\npasword = \"s3cret\"\n\
                    [tipo]\nx = [\"s3cret\"]\n\"s3 cret\" = 1\n\
                    [[route]]\ndomain = \"*\"\npassword = [\"s3cret\"]\nusername = \"ann\"\n\
                    [[x400.peer]]\npassword = 12345\n";
        let redaction = redacted(text).unwrap();
        assert!(!redaction.text.contains("s3"), "{}", redaction.text);
        assert!(!redaction.text.contains("12345"), "{}", redaction.text);
        assert!(redaction.text.contains("[[route]]\ndomain = \"*\"\n"));
        assert!(redaction.text.contains("username = \"ann\"\n"));
        assert_eq!(redaction.secrets.len(), 3);
        assert!(redacted("password = \"s3cret").is_none());
    }

    #[test]
    fn parts_of_urls_and_names_are_left_out() {
        let plain = |(shown, _): (String, Vec<String>)| shown;
        let shown = [
            plain(url("https://hooks.example.org/T0/secret?x=1", true)),
            plain(url("https://ann:secret@etcd.example.org:2379", false)),
            plain(url("https://acme.example.org/directory?key=1", false)),
            plain(url("https://hooks.example.org/", true)),
            plain(url("mailto:ann@example.org", false)),
            plain(labels("key.zen.dq.example.net")),
            plain(labels("example.net")),
        ];
        let expected = [
            "https://hooks.example.org[redacted]",
            "https://[redacted]@etcd.example.org:2379",
            "https://acme.example.org/directory[redacted]",
            "https://hooks.example.org/",
            "mailto:ann@example.org",
            "[redacted].example.net",
            "example.net",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn keys_are_told_from_domains() {
        assert!(is_key("front.list") && is_key("smtp.listen") && is_key("spool.node"));
        assert!(!is_key("smtp.example") && !is_key("example.org"));
    }
}
