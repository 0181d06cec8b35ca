//! Whether a mail exchanger is this system itself (RFC 5321 section 5.1).

use std::net::{IpAddr, SocketAddr};

use nix::ifaddrs::getifaddrs;
use vere_settings::Settings;

/// By what other hosts know this system.
#[derive(Debug)]
pub(super) struct Own<'a> {
    name: &'a str,
    listens: &'a [SocketAddr],
    /// The addresses of this machine, which listeners on all of them stand for.
    addresses: Vec<IpAddr>,
}

impl<'a> Own<'a> {
    pub(super) fn new(settings: &'a Settings) -> Self {
        let listens = &settings.smtp.listen;
        let everywhere = listens.iter().any(|on| on.ip().is_unspecified());
        Self {
            name: &settings.hostname,
            listens,
            addresses: if everywhere { interfaces() } else { Vec::new() },
        }
    }

    /// Whether a host of this name and port is this system.
    pub(super) fn is_called(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    /// Whether mail for this address would come in here.
    pub(super) fn listens_on(&self, address: SocketAddr) -> bool {
        let ip = address.ip().to_canonical();
        self.listens.iter().any(|on| {
            let same = on.ip().to_canonical() == ip;
            on.port() == address.port()
                && (same || (on.ip().is_unspecified() && self.addresses.contains(&ip)))
        })
    }
}

/// The addresses of this machine; none when they cannot be had.
fn interfaces() -> Vec<IpAddr> {
    let Ok(all) = getifaddrs() else {
        return Vec::new();
    };
    let address = |interface: nix::ifaddrs::InterfaceAddress| {
        let storage = interface.address?;
        let v4 = storage.as_sockaddr_in().map(|a| IpAddr::V4(a.ip()));
        v4.or_else(|| storage.as_sockaddr_in6().map(|a| IpAddr::V6(a.ip())))
    };
    all.filter_map(address).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(listen: &str) -> Settings {
        let text = format!(
            "version = 1\nhostname = \"mx.example.org\"\n[smtp]\nlisten = [\"{listen}\"]\n"
        );
        Settings::parse(&text, "vere.toml").unwrap()
    }

    fn listens(listen: &str, address: &str) -> bool {
        Own::new(&settings(listen)).listens_on(address.parse().unwrap())
    }

    #[test]
    fn name_and_listeners_are_known_again() {
        let settings = settings("127.0.0.1:25");
        let own = Own::new(&settings);
        assert!(own.is_called("MX.example.org"));
        assert!(!own.is_called("mx2.example.org"));
        assert!(listens("127.0.0.1:25", "127.0.0.1:25"));
        assert!(!listens("127.0.0.1:25", "127.0.0.1:26"));
        assert!(!listens("127.0.0.1:25", "127.0.0.2:25"));
    }

    #[test]
    fn a_listener_on_all_addresses_is_on_each() {
        assert!(listens("[::]:25", "127.0.0.1:25"));
        assert!(listens("0.0.0.0:25", "127.0.0.1:25"));
        assert!(!listens("[::]:25", "127.0.0.1:2525"));
        assert!(!listens("[::]:25", "192.0.2.1:25"));
    }
}
