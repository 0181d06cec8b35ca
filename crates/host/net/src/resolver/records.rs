//! Records of one name and type without interpretation: SPF and lists of clients read the records themselves.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The type of the records that are looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RecordKind {
    /// IPv4 addresses.
    A,
    /// IPv6 addresses.
    Aaaa,
    /// Exchangers.
    Mx,
    /// Names of an address.
    Ptr,
    /// Texts.
    Txt,
    /// Authorities that may issue certificates (RFC 8659).
    Caa,
    /// Hosts and ports of a service (RFC 2782).
    Srv,
}

/// A record. Names have lower case and no trailing dot; the root is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// An IPv4 address.
    A(Ipv4Addr),
    /// An IPv6 address.
    Aaaa(Ipv6Addr),
    /// Preference and host of an exchanger.
    Mx(u16, String),
    /// A name of an address.
    Ptr(String),
    /// The strings of a text, joined.
    Txt(Vec<u8>),
    /// The tag in lower case and the value of an authority.
    Caa(String, String),
    /// Port and host of a service; the root as host means that there is no service.
    Srv(u16, String),
}

/// Returns the name under which the DNS has the names of an address (RFC 1035 section 3.5, RFC 3596 section 2.5).
#[must_use]
pub fn reverse_name(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => {
            let [a, b, c, d] = address.octets();
            format!("{d}.{c}.{b}.{a}.in-addr.arpa")
        }
        IpAddr::V6(address) => {
            let mut octets = address.octets();
            octets.reverse();
            let nibbles = |octet: u8| format!("{:x}.{:x}", octet & 15, octet >> 4);
            format!("{}.ip6.arpa", octets.map(nibbles).join("."))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_names_in_the_dns() {
        let name = |address: &str| reverse_name(address.parse().unwrap());
        assert_eq!(name("192.0.2.1"), "1.2.0.192.in-addr.arpa");
        assert_eq!(
            name("2001:db8::567:89ab"),
            "b.a.9.8.7.6.5.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa"
        );
    }
}
