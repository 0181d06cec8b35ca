//! How lists are asked, and the meaning of answers (RFC 5782).

mod check;
mod health;
mod probe;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub use self::check::{Check, Scope, Step, Told, Trust};
pub use self::health::Health;
pub use self::probe::Probe;
use crate::map::{Map, MapName};

/// Maximum codes of an answer; a longer answer is cut.
pub const CODES_MAX: usize = 32;
/// Maximum octets of a kept text: a line of SMTP has 512 (RFC 5321 section 4.5.3.1.5), with the zone beside the text.
pub const TEXT_OCTETS_MAX: usize = 200;

/// Returns the labels to put before the zone of a list for an address: `w.z.y.x` (RFC 5782 section 2.1), or 32 nibbles
/// (section 2.4).
#[must_use]
pub fn labels(client: IpAddr) -> String {
    match client.to_canonical() {
        IpAddr::V4(address) => {
            let [a, b, c, d] = address.octets();
            format!("{d}.{c}.{b}.{a}")
        }
        IpAddr::V6(address) => {
            let bits = address.to_bits();
            let nibbles = (0..32).map(|place| format!("{:x}", bits >> (4 * place) & 0xf));
            nibbles.collect::<Vec<_>>().join(".")
        }
    }
}

/// Whether public lists can know of an address: addresses of private networks, of the machine, of
/// the link and of groups are not (RFC 6890).
#[must_use]
pub fn is_public(client: IpAddr) -> bool {
    match client.to_canonical() {
        IpAddr::V4(address) => {
            let [a, b, ..] = address.octets();
            let is_shared = a == 100 && b & 0xc0 == 64;
            !(a == 0
                || is_shared
                || address.is_private()
                || address.is_loopback()
                || address.is_link_local()
                || address.is_multicast()
                || address.is_broadcast())
        }
        IpAddr::V6(address) => {
            !(address.is_unspecified()
                || address.is_loopback()
                || address.is_unique_local()
                || address.is_unicast_link_local()
                || address.is_multicast())
        }
    }
}

/// The codes of an answer, sorted by use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Codes {
    /// Codes within 127.0.0.0/8, in ascending order (RFC 5782 section 2.1).
    pub good: Vec<Ipv4Addr>,
    /// An address outside: no list answers so, but the host of a parked domain, or a resolver that lies.
    pub foreign: Option<Ipv4Addr>,
}

impl Codes {
    /// Sorts an answer.
    #[must_use]
    pub fn of(answer: impl IntoIterator<Item = Ipv4Addr>) -> Self {
        let (mut good, foreign): (Vec<_>, Vec<_>) = answer
            .into_iter()
            .take(CODES_MAX)
            .partition(Ipv4Addr::is_loopback);
        good.sort_unstable();
        good.dedup();
        let foreign = foreign.first().copied();
        Self { good, foreign }
    }
}

/// Whether a code says that the list refuses to answer this resolver, as lists agree to do with 127.255.255.0/24.
#[must_use]
pub const fn is_refusal(code: Ipv4Addr) -> bool {
    matches!(code.octets(), [127, 255, 255, _])
}

/// The map that has the test entries of every list: 127.0.0.2 is listed, and 127.0.0.1 is not (RFC 5782
/// section 5).
#[must_use]
pub fn test_map() -> MapName {
    MapName::of(Ipv4Addr::new(127, 0, 0, 2).into()).0
}

/// Whether an answer for [`test_map`] is such a map. An address of an ordinary host (2000::/3) is as well: a [`Check`] therefore asks
/// for a second map.
#[must_use]
pub fn serves_maps(answer: &[Ipv6Addr]) -> bool {
    match answer {
        [map] => {
            let map = Map::from(*map);
            map.contains(2) && !map.contains(1)
        }
        _ => false,
    }
}

/// Returns the text of a list fit for a reply: printable ASCII, one line, at most [`TEXT_OCTETS_MAX`] octets.
#[must_use]
pub fn printable(text: &[u8]) -> String {
    let is_fit = |octet: &u8| octet.is_ascii_graphic() || *octet == b' ';
    let shown = |octet: &u8| match is_fit(octet) {
        true => char::from(*octet),
        false => '?',
    };
    let text: String = text.iter().take(TEXT_OCTETS_MAX).map(shown).collect();
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    /// The example of RFC 5782 section 2.4.
    #[test]
    fn addresses_have_their_labels() {
        assert_eq!(labels(address("192.0.2.99")), "99.2.0.192");
        assert_eq!(labels(address("::ffff:192.0.2.99")), "99.2.0.192");
        let six = "1.0.0.0.0.0.f.0.f.e.e.b.d.a.e.d.c.e.2.0.0.0.0.0.8.b.d.0.1.0.0.2";
        let text = "2001:db8:0:2ec:dead:beef:0f00:1";
        assert_eq!(labels(address(text)).len(), six.len());
        assert_eq!(
            labels(address(text)),
            "1.0.0.0.0.0.f.0.f.e.e.b.d.a.e.d.c.e.2.0.0.0.0.0.8.b.d.0.1.0.0.2"
        );
    }

    #[test]
    fn private_addresses_are_not_public() {
        for text in [
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "127.0.0.2",
            "169.254.1.1",
            "100.64.0.1",
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fd00::1",
            "fe80::1",
            "ff02::1",
            "::ffff:10.1.2.3",
        ] {
            assert!(!is_public(address(text)), "{text}");
        }
        for text in [
            "192.0.2.1",
            "100.128.0.1",
            "172.32.0.1",
            "2001:db8::1",
            "2a00::1",
        ] {
            assert!(is_public(address(text)), "{text}");
        }
    }

    #[test]
    fn codes_are_loopback_addresses() {
        let answer = ["127.0.0.4", "192.0.2.80", "127.0.0.2", "127.0.0.4"];
        let codes = Codes::of(answer.map(|text| text.parse().expect("an address")));
        assert_eq!(
            codes.good,
            [[127, 0, 0, 2].into(), Ipv4Addr::new(127, 0, 0, 4)]
        );
        assert_eq!(codes.foreign, Some([192, 0, 2, 80].into()));
        let many = (0..=255).map(|last| Ipv4Addr::new(127, 0, 0, last));
        assert_eq!(Codes::of(many).good.len(), CODES_MAX);
        assert!(is_refusal([127, 255, 255, 254].into()) && !is_refusal([127, 0, 0, 2].into()));
    }

    #[test]
    fn a_list_with_maps_has_the_test_entries_in_one() {
        assert_eq!(test_map().to_string(), "0.0.0.127");
        let answer = |texts: &[&str]| -> Vec<Ipv6Addr> {
            texts
                .iter()
                .map(|text| text.parse().expect("a map"))
                .collect()
        };
        assert!(serves_maps(&answer(&["2000::"])));
        assert!(serves_maps(&answer(&["2fff::"])));
        for texts in [
            &[][..],
            // Both entries: a zone with an answer to every question.
            &["6000::"],
            &["ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
            // An ordinary host.
            &["2001:db8::1", "2000::"],
            &["::"],
            &["4000::"],
        ] {
            assert!(!serves_maps(&answer(texts)), "{texts:?}");
        }
    }

    #[test]
    fn texts_are_fit_for_a_line() {
        assert_eq!(
            printable(b" see https://bl.example/?ip=1 "),
            "see https://bl.example/?ip=1"
        );
        assert_eq!(printable(b"a\r\n250 ok\0\xff"), "a??250 ok??");
        assert_eq!(printable(&[b'x'; 60_000]).len(), TEXT_OCTETS_MAX);
    }
}
