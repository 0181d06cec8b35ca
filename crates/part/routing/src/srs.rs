//! The reverse-path of forwarded mail, by the Sender Rewriting Scheme (Shevek, "The Sender Rewriting Scheme", 2004).
//!
//! SPF of the sender's domain does not allow our address. Mail that an alias forwards therefore leaves with a reverse-path of the
//! alias's domain, which holds the sender, so that a report finds its way back:
//!
//! ```text
//! local@domain                               SRS0=HASH=DD=domain=local@alias
//! SRS0=rest@forwarder                        SRS1=HASH=forwarder==rest@alias
//! SRS1=hash=forwarder==rest@other            SRS1=HASH=forwarder==rest@alias
//! ```
//!
//! `HASH` keeps strangers from sending through us what looks like a report, and `DD`, a day, lets it be forgotten. Other systems may change
//! the case of letters in between: the hash is one of lower case, and is compared in any.

use vere_smtp::address::AddrSpec;
use vere_units::Secret;

/// Days for which a report finds its way back: queues of other systems hold mail for five days usually.
const DAYS: u32 = 21;
/// Digits of RFC 4648 section 6, in lower case.
const DIGITS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
/// Characters of the hash: 25 bits, and short, since strict systems take 64 octets of a local part. A guess is refused as an
/// unknown recipient, and few of these end a session.
const HASH_CHARACTERS: usize = 5;
/// Octets of an address: a path has 256 with its angle brackets (RFC 5321 section 4.5.3.1.3).
const PATH_OCTETS_MAX: usize = 254;
/// Days that two digits tell apart.
const CYCLE: u32 = 32 * 32;

/// Rewrites reverse-paths, and finds the senders in them.
#[derive(Debug)]
pub struct Srs {
    key: Secret<[u8; 32]>,
}

impl Srs {
    /// Takes the key, which all gateways of a system share.
    #[must_use]
    pub const fn new(key: Secret<[u8; 32]>) -> Self {
        Self { key }
    }

    /// The reverse-path of a sender's mail that `domain` forwards on a day since 1970; absent for a quoted local part, or
    /// where the address would be too long.
    #[must_use]
    pub fn forward(&self, sender: &AddrSpec, domain: &str, day: u32) -> Option<AddrSpec> {
        let local = sender.local_part();
        let text = match Rewritten::of(local) {
            _ if local.starts_with('"') => return None,
            None => {
                let rest = format!("{}={}={local}", stamp(day), sender.domain());
                format!("SRS0={}={rest}", self.hash(&rest))
            }
            Some(Rewritten::Once(rest)) => self.again(sender.domain(), rest),
            Some(Rewritten::Again {
                forwarder, rest, ..
            }) => self.again(forwarder, rest),
        };
        let path = AddrSpec::new(&text, domain).ok()?;
        // A literal instead of a domain would need quotes.
        let fits = path.as_str().len() <= PATH_OCTETS_MAX && !path.local_part().starts_with('"');
        fits.then_some(path)
    }

    fn again(&self, forwarder: &str, rest: &str) -> String {
        let tail = format!("{forwarder}={rest}");
        format!("SRS1={}={tail}", self.hash(&tail))
    }

    /// The sender, or the first forwarder, in the local part of an address of ours; absent where [`Srs::forward`] has not made the
    /// address, or more than three weeks ago. An address of the first forwarder has no day of ours: the first forwarder knows it.
    #[must_use]
    pub fn back(&self, local_part: &str, day: u32) -> Option<AddrSpec> {
        match Rewritten::of(local_part)? {
            Rewritten::Once(rest) => {
                let (hash, tail) = rest.get(1..)?.split_once('=')?;
                self.is_hash_of(hash, tail).then_some(())?;
                let (stamp, sender) = tail.split_once('=')?;
                let (domain, local) = sender.split_once('=')?;
                is_recent(stamp, day).then_some(())?;
                AddrSpec::parse(&format!("{local}@{domain}")).ok()
            }
            Rewritten::Again {
                hash,
                forwarder,
                rest,
            } => {
                let tail = format!("{forwarder}={rest}");
                self.is_hash_of(hash, &tail).then_some(())?;
                AddrSpec::parse(&format!("SRS0{rest}@{forwarder}")).ok()
            }
        }
    }

    fn hash(&self, text: &str) -> String {
        let hash = blake3::keyed_hash(self.key.expose(), text.to_lowercase().as_bytes());
        let octets = hash.as_bytes().iter().take(HASH_CHARACTERS);
        octets.map(|octet| digit(u32::from(*octet))).collect()
    }

    fn is_hash_of(&self, hash: &str, text: &str) -> bool {
        // The time of the comparison tells nothing of use: whoever tries gets one answer in a session of SMTP for each.
        hash.eq_ignore_ascii_case(&self.hash(text))
    }
}

/// A local part that some forwarder has made.
enum Rewritten<'a> {
    /// By the first forwarder: everything behind `SRS0`, from the separator on.
    Once(&'a str),
    /// By a further one.
    Again {
        hash: &'a str,
        forwarder: &'a str,
        /// Everything behind `SRS0` of the first forwarder, from its separator on.
        rest: &'a str,
    },
}

impl<'a> Rewritten<'a> {
    fn of(local: &'a str) -> Option<Self> {
        let (name, rest) = local.split_at_checked(4)?;
        rest.starts_with(['=', '+', '-']).then_some(())?;
        if name.eq_ignore_ascii_case("SRS0") {
            return Some(Self::Once(rest));
        }
        name.eq_ignore_ascii_case("SRS1").then_some(())?;
        let (hash, tail) = rest.get(1..)?.split_once('=')?;
        let (forwarder, rest) = tail.split_once('=')?;
        rest.starts_with(['=', '+', '-']).then_some(Self::Again {
            hash,
            forwarder,
            rest,
        })
    }
}

fn digit(value: u32) -> char {
    char::from(DIGITS[(value % 32) as usize])
}

fn stamp(day: u32) -> String {
    [day / 32, day].map(digit).iter().collect()
}

/// Whether a stamp is of the last days. Two digits come again after 1,024 days.
fn is_recent(stamp: &str, day: u32) -> bool {
    let value = |digit: u8| {
        let digit = digit.to_ascii_lowercase();
        DIGITS.iter().position(|known| *known == digit)
    };
    let [high, low] = stamp.as_bytes() else {
        return false;
    };
    let (Some(high), Some(low)) = (value(*high), value(*low)) else {
        return false;
    };
    let then = (high * 32 + low) as u32;
    (day + CYCLE - then) % CYCLE <= DAYS
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u32 = 20_785;

    fn srs(key: u8) -> Srs {
        Srs::new(Secret::new([key; 32]))
    }

    fn address(text: &str) -> AddrSpec {
        AddrSpec::parse(text).unwrap()
    }

    fn back(path: &AddrSpec, day: u32) -> Option<String> {
        let sender = srs(1).back(path.local_part(), day)?;
        Some(sender.as_str().to_owned())
    }

    #[test]
    fn a_report_finds_the_sender_for_three_weeks() {
        let sender = "Ann.B=c+d@far.example";
        let path = srs(1).forward(&address(sender), "alias.example", DAY);
        let path = path.unwrap();
        let local = path.local_part();
        assert!(local.starts_with("SRS0="), "{local}");
        assert!(local.ends_with("=far.example=Ann.B=c+d"), "{local}");
        assert_eq!(path.domain(), "alias.example");
        for day in [DAY, DAY + 21] {
            assert_eq!(back(&path, day).as_deref(), Some(sender));
        }
        for day in [DAY - 1, DAY + 22, DAY + 64, DAY + 1_023] {
            assert_eq!(back(&path, day), None, "{day}");
        }
        let lower = address(&path.as_str().to_lowercase());
        assert_eq!(back(&lower, DAY).as_deref(), Some("ann.b=c+d@far.example"));
        let upper = address(&path.as_str().to_uppercase());
        assert_eq!(back(&upper, DAY).as_deref(), Some("ANN.B=C+D@far.example"));
    }

    #[test]
    fn a_change_of_any_character_or_another_key_leads_nowhere() {
        let sender = address("ann@far.example");
        let path = srs(1).forward(&sender, "alias.example", DAY).unwrap();
        let local = path.local_part();
        for at in 0..local.len() {
            let mut changed = local.as_bytes().to_vec();
            changed[at] = if changed[at] == b'x' { b'y' } else { b'x' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(srs(1).back(&changed, DAY), None, "{changed}");
            assert_eq!(srs(1).back(&local[..at], DAY), None);
        }
        assert_eq!(srs(2).back(local, DAY), None);
        for other in [
            "",
            "SRS0",
            "SRS1",
            "SRS0=",
            "SRS1==",
            "SRS0é=a=b",
            "ann",
            "SRS1=a=b=c",
        ] {
            assert_eq!(srs(1).back(other, DAY), None, "{other}");
        }
    }

    #[test]
    fn a_further_forwarder_leads_back_to_the_first() {
        let sender = address("ann@far.example");
        let first = srs(2).forward(&sender, "first.example", DAY).unwrap();
        let second = srs(1).forward(&first, "second.example", DAY).unwrap();
        assert!(second.local_part().starts_with("SRS1="), "{second:?}");
        assert_eq!(back(&second, DAY).as_deref(), Some(first.as_str()));
        let third = srs(3).forward(&second, "third.example", DAY).unwrap();
        assert_eq!(third.local_part().len(), second.local_part().len());
        let found = srs(3).back(third.local_part(), DAY + 500).unwrap();
        assert_eq!(found, first, "the first forwarder knows the day");
        // Others separate by other characters.
        let other = address("SRS0+aBcd=k4=far.example=ann@first.example");
        let path = srs(1).forward(&other, "second.example", DAY).unwrap();
        assert_eq!(back(&path, DAY).as_deref(), Some(other.as_str()));
    }

    /// Stamps of the same low digit differ by the high one, and a stamp has two digits.
    #[test]
    fn stamps_have_two_digits_of_a_day() {
        for (day, expected) in [
            (0, "aa"),
            (1, "ab"),
            (31, "a7"),
            (32, "ba"),
            (1_023, "77"),
            (1_024, "aa"),
        ] {
            assert_eq!(stamp(day), expected, "{day}");
        }
        assert!(is_recent("aa", 0) && is_recent("AB", 1) && is_recent("77", 1_024));
        assert!(!is_recent("ab", 0) && !is_recent("aa", 22) && !is_recent("aa", 32));
        for other in ["", "a", "aaa", "a1", "1a", "a="] {
            assert!(!is_recent(other, 0), "{other}");
        }
    }

    #[test]
    fn only_the_local_parts_of_forwarders_are_rewritten_again() {
        let forward = |text: &str| {
            let path = srs(1)
                .forward(&address(text), "alias.example", DAY)
                .unwrap();
            path.local_part().split('=').next().unwrap().to_owned()
        };
        for (text, expected) in [
            ("srs0-x=a=b=c@first.example", "SRS1"),
            ("SRS0ann@first.example", "SRS0"),
            ("SRS2=x=y=z@first.example", "SRS0"),
            ("SRS1=x=first.example==y=a=b=c@other.example", "SRS1"),
            ("SRS1=x=first.example=y@other.example", "SRS0"),
            ("SRS1+x=first.example=-y=a=b=c@other.example", "SRS1"),
        ] {
            assert_eq!(forward(text), expected, "{text}");
        }
        // A further forwarder's address has the first one, not the one in between.
        let path = address("SRS1=x=first.example==y=a=b=c@other.example");
        let path = srs(1).forward(&path, "alias.example", DAY).unwrap();
        assert_eq!(
            back(&path, DAY).as_deref(),
            Some("SRS0=y=a=b=c@first.example")
        );
    }

    #[test]
    fn what_does_not_fit_stays_as_it_is() {
        let forward = |text: &str| srs(1).forward(&address(text), "alias.example", DAY);
        assert_eq!(forward("\"a b\"@far.example"), None);
        assert_eq!(forward("ann@[192.0.2.1]"), None);
        let long = |count: usize| format!("{}@far.example", "a".repeat(count));
        let path = forward(&long(214)).unwrap();
        assert_eq!(path.as_str().len(), PATH_OCTETS_MAX);
        assert_eq!(back(&path, DAY), Some(long(214)));
        assert_eq!(forward(&long(215)), None);
    }
}
