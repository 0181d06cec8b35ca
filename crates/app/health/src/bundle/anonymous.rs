//! Pseudonyms of addresses, domains, hosts and IP addresses.

use std::net::{IpAddr, SocketAddr};

use vere_process::failure::Failure;
use vere_settings::is_key;

/// Hexadecimal digits of a pseudonym.
const DIGITS: usize = 10;
/// Endings of file names, to tell file names from domains.
const FILES: [&str; 14] = [
    "toml", "json", "txt", "sock", "service", "socket", "pem", "key", "log", "rs", "db", "conf",
    "tar", "zst",
];
/// Makes pseudonyms by a random key; the key is forgotten with the value.
#[derive(Debug)]
pub(super) struct Pseudonyms {
    key: [u8; blake3::KEY_LEN],
}

impl Pseudonyms {
    /// # Errors
    /// When the system gives no random octets.
    pub(super) fn new() -> Result<Self, Failure> {
        let mut key = [0; blake3::KEY_LEN];
        getrandom::fill(&mut key)
            .map_err(|error| Failure::new(format!("the system gives no random octets: {error}")))?;
        Ok(Self { key })
    }

    /// The text with pseudonyms.
    pub(super) fn replace(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut behind_name = false;
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
            let (word, behind) = rest.split_at(end);
            // A Maildir has a directory of a user below the directory of a domain.
            let replaced = match behind_name && !word.is_empty() {
                true => self.pseudonym("user", word),
                false => self.word(word),
            };
            let is_name = !word.is_empty() && replaced != word;
            out += &replaced;
            let next = behind.chars().next();
            behind_name = is_name && next == Some('/');
            let length = next.map_or(0, char::len_utf8);
            let (mark, behind) = behind.split_at(length);
            out += mark;
            rest = behind;
        }
        out
    }

    /// A word without separators.
    fn word(&self, word: &str) -> String {
        let bare = word.trim_end_matches(['.', ':']);
        let tail = word.get(bare.len()..).unwrap_or_default();
        if let Ok(address) = bare.parse::<IpAddr>() {
            return self.address(address) + tail;
        }
        if let Ok(socket) = bare.parse::<SocketAddr>() {
            return format!("{}:{}{tail}", self.address(socket.ip()), socket.port());
        }
        let parts = bare.split(':').map(|part| self.name(part));
        parts.collect::<Vec<_>>().join(":") + tail
    }

    fn address(&self, address: IpAddr) -> String {
        match address.is_loopback() || address.is_unspecified() {
            true => address.to_string(),
            false => self.pseudonym("ip", &address.to_string()),
        }
    }

    fn name(&self, name: &str) -> String {
        // The rest of a name whose first labels were a secret, or a pattern for the domains below.
        if let Some(rest) = name.strip_prefix('.').filter(|rest| is_domain(rest)) {
            return format!(".{}", self.pseudonym("name", rest));
        }
        match name.rsplit_once('@') {
            Some((local, domain)) if !domain.is_empty() => {
                format!(
                    "{}@{}",
                    self.pseudonym("user", local),
                    self.pseudonym("name", domain)
                )
            }
            _ if is_domain(name) => self.pseudonym("name", name),
            _ => name.to_owned(),
        }
    }

    fn pseudonym(&self, kind: &str, name: &str) -> String {
        let hash = blake3::keyed_hash(&self.key, name.to_lowercase().as_bytes()).to_hex();
        let digits: String = hash.chars().take(DIGITS).collect();
        format!("{kind}-{digits}")
    }
}

/// Whether a letter may stand in an address, a domain or an IP address.
fn is_part(letter: char) -> bool {
    letter.is_alphanumeric() || ".-_+@:~!#$%&*?^`".contains(letter)
}

/// Whether a word looks like a domain and is no file, and no key of the settings.
fn is_domain(word: &str) -> bool {
    let labels: Vec<&str> = word.split('.').collect();
    let is_label = |label: &&str| {
        !label.is_empty()
            && label
                .chars()
                .all(|c| c.is_alphanumeric() || c == '-' || c == '_')
    };
    let last = labels.last().copied().unwrap_or_default();
    let is_top = last.chars().count() > 1
        && (last.starts_with("xn--") || last.chars().all(char::is_alphabetic));
    labels.len() > 1
        && labels.iter().all(is_label)
        && is_top
        && !FILES.contains(&last)
        && !is_key(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_equal_pseudonyms_and_other_words_stay() {
        let names = Pseudonyms::new().unwrap();
        let plain = "\"ann.b+x@mx.example.org\" relay:mx.example.org:25 [2001:db8::1]:25 192.0.2.7:587 to 192.0.2.7. \
                     maildir/example.org/ann/new bücher.example [redacted].example.net";
        let text = names.replace(plain);
        for name in ["ann", "example", "192.0.2.7", "2001:db8", "bücher"] {
            assert!(!text.contains(name), "{name} in {text}");
        }
        let domain = names.pseudonym("name", "mx.example.org");
        assert_eq!(text.matches(&domain).count(), 2, "{text}");
        let ip = names.pseudonym("ip", "192.0.2.7");
        assert_eq!(text.matches(&ip).count(), 2, "{text}");
        assert!(text.contains(&format!("relay:{domain}:25")), "{text}");
        assert!(text.contains(&format!("{ip}:587 to {ip}.")), "{text}");
        let same = "[[front.list]] smtp.listen /etc/vere/vere.toml:3: limits.connections_max at 127.0.0.1:9090, 3.5 MB, v0.1.0 2026-11-30T10:00:00.5Z";
        assert_eq!(names.replace(same), same);
        let other = Pseudonyms::new().unwrap();
        assert_ne!(
            other.pseudonym("name", "a.b"),
            names.pseudonym("name", "a.b")
        );
    }
}
