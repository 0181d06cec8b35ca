//! The capabilities announced by a server (RFC 5321 section 4.1.1.1).

use crate::reply::Reply;
use vere_sasl::Mechanism;

/// The extensions of a server, as listed in the reply to EHLO or LHLO.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extensions {
    /// `PIPELINING`, RFC 2920.
    pub pipelining: bool,
    /// `8BITMIME`, RFC 6152.
    pub eight_bit_mime: bool,
    /// `CHUNKING`, RFC 3030 section 2.
    pub chunking: bool,
    /// `BINARYMIME`, RFC 3030 section 3.
    pub binary_mime: bool,
    /// `SMTPUTF8`, RFC 6531.
    pub smtputf8: bool,
    /// `DSN`, RFC 3461.
    pub dsn: bool,
    /// `STARTTLS`, RFC 3207.
    pub starttls: bool,
    /// `REQUIRETLS`, RFC 8689.
    pub require_tls: bool,
    /// `MT-PRIORITY`, RFC 6710; with any policy name.
    pub mt_priority: bool,
    /// `SIZE`, RFC 1870: the largest message in octets, 0 if not given.
    pub size: Option<u64>,
    /// `AUTH`, RFC 4954: the mechanisms supported on both sides, best first.
    pub auth: Vec<Mechanism>,
    /// `LIMITS MAILMAX`, RFC 9422: how many messages a connection may carry.
    pub mail_max: Option<u32>,
    /// `LIMITS RCPTMAX`, RFC 9422: how many recipients a message may have.
    pub recipients_max: Option<u32>,
}

impl Extensions {
    /// Reads the lines behind the first; what is not known or malformed is skipped.
    ///
    /// ```text
    /// ehlo-line    = ehlo-keyword *( SP ehlo-param )
    /// ehlo-keyword = (ALPHA / DIGIT) *(ALPHA / DIGIT / "-")
    /// ehlo-param   = 1*(%d33-126)
    /// ```
    #[must_use]
    pub fn parse(reply: &Reply) -> Self {
        let mut extensions = Self::default();
        for line in reply.text.iter().skip(1) {
            let mut words = line.split_ascii_whitespace();
            if let Some(keyword) = words.next() {
                extensions.add(&keyword.to_ascii_uppercase(), words);
            }
        }
        extensions.auth.sort_unstable();
        extensions.auth.dedup();
        extensions
    }

    fn add<'a>(&mut self, keyword: &str, mut words: impl Iterator<Item = &'a str>) {
        match keyword {
            "PIPELINING" => self.pipelining = true,
            "8BITMIME" => self.eight_bit_mime = true,
            "CHUNKING" => self.chunking = true,
            "BINARYMIME" => self.binary_mime = true,
            "SMTPUTF8" => self.smtputf8 = true,
            "DSN" => self.dsn = true,
            "STARTTLS" => self.starttls = true,
            "REQUIRETLS" => self.require_tls = true,
            "MT-PRIORITY" => self.mt_priority = true,
            "SIZE" => self.size = Some(words.next().and_then(number).unwrap_or(0)),
            "AUTH" => self.auth.extend(words.filter_map(Mechanism::from_name)),
            "LIMITS" => words.for_each(|word| self.limit(word)),
            // The form of servers from before RFC 2554: `AUTH=LOGIN PLAIN`.
            other => {
                if let Some(first) = other.strip_prefix("AUTH=") {
                    self.auth.extend(Mechanism::from_name(first));
                    self.auth.extend(words.filter_map(Mechanism::from_name));
                }
            }
        }
    }

    /// ```text
    /// limits-param       = limit-name-value 0*[SP limit-name-value]
    /// limit-name-value   = limit-name ["=" limit-value]
    /// mailmax, rcptmax   = %x31-39 0*5DIGIT
    /// ```
    fn limit(&mut self, word: &str) {
        let Some((name, value)) = word.split_once('=') else {
            return;
        };
        let value = number(value).and_then(|value| u32::try_from(value).ok());
        let value = value.filter(|value| *value > 0);
        match name.to_ascii_uppercase().as_str() {
            "MAILMAX" => self.mail_max = value,
            "RCPTMAX" => self.recipients_max = value,
            _ => {}
        }
    }
}

/// Parses a number of up to 20 digits; a number out of range is as good as no limit.
fn number(text: &str) -> Option<u64> {
    let digits = (1..=20).contains(&text.len()) && text.bytes().all(|octet| octet.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(lines: &[&str]) -> Extensions {
        let text = std::iter::once("mx.example.org").chain(lines.iter().copied());
        Extensions::parse(&Reply::lines(250, text.map(str::to_owned).collect()))
    }

    #[test]
    fn reads_what_is_known() {
        let all = parse(&[
            "PIPELINING",
            "size 52428800",
            "8BITMIME",
            "CHUNKING",
            "BINARYMIME",
            "SMTPUTF8",
            "DSN",
            "STARTTLS",
            "REQUIRETLS",
            "MT-PRIORITY MIXER",
            "ENHANCEDSTATUSCODES",
            "AUTH LOGIN CRAM-MD5 PLAIN scram-sha-256",
            "LIMITS MAILMAX=100 RCPTMAX=20 RCPTDOMAINMAX=1",
            "XCLIENT NAME ADDR",
        ]);
        assert!(all.pipelining && all.eight_bit_mime && all.chunking && all.binary_mime);
        assert!(all.smtputf8 && all.dsn && all.starttls && all.require_tls && all.mt_priority);
        assert_eq!(all.size, Some(52_428_800));
        assert_eq!(all.auth, Mechanism::ALL);
        assert_eq!((all.mail_max, all.recipients_max), (Some(100), Some(20)));
    }

    #[test]
    fn skips_what_is_odd() {
        let odd = parse(&[
            "",
            "SIZE x",
            "LIMITS",
            "LIMITS MAILMAX=0 RCPTMAX=-1 X",
            "AUTH",
            "-",
        ]);
        assert_eq!(
            odd,
            Extensions {
                size: Some(0),
                ..Extensions::default()
            }
        );
        assert_eq!(parse(&["SIZE 99999999999999999999"]).size, Some(0));
        assert_eq!(
            parse(&["AUTH=LOGIN PLAIN", "AUTH PLAIN"]).auth,
            [Mechanism::Plain, Mechanism::Login]
        );
        assert_eq!(parse(&[]), Extensions::default());
    }

    /// The first line names the server and is never an extension.
    #[test]
    fn first_line_is_a_name() {
        let reply = Reply::new(250, None, "STARTTLS");
        assert_eq!(Extensions::parse(&reply), Extensions::default());
    }
}
