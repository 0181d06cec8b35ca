//! Whether a mail exchanger is this system itself (RFC 5321 section 5.1).

use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::{Duration, Instant};

use nix::ifaddrs::getifaddrs;
use vere_settings::Settings;

/// How long the addresses of this machine are taken to be what they were.
const KNOWN_FOR: Duration = Duration::from_secs(10);

/// By what other hosts know this system.
#[derive(Debug)]
pub(super) struct Own<'a> {
    name: &'a str,
    listens: &'a [SocketAddr],
    /// The addresses of this machine, which listeners on all of them stand for.
    addresses: Rc<[IpAddr]>,
}

impl<'a> Own<'a> {
    pub(super) fn new(settings: &'a Settings, interfaces: &Interfaces) -> Self {
        let listens = &settings.smtp.listen;
        let everywhere = listens.iter().any(|on| on.ip().is_unspecified());
        Self {
            name: &settings.hostname,
            listens,
            addresses: match everywhere {
                true => interfaces.addresses(),
                false => Rc::default(),
            },
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

/// The addresses of this machine, asked for once in a while: it costs about as much as a connection.
#[derive(Debug, Default)]
pub(super) struct Interfaces(RefCell<Option<(Instant, Rc<[IpAddr]>)>>);

impl Interfaces {
    fn addresses(&self) -> Rc<[IpAddr]> {
        let mut known = self.0.borrow_mut();
        match &*known {
            Some((asked, addresses)) if asked.elapsed() < KNOWN_FOR => Rc::clone(addresses),
            _ => {
                let addresses: Rc<[IpAddr]> = interfaces().into();
                *known = Some((Instant::now(), Rc::clone(&addresses)));
                addresses
            }
        }
    }
}

/// The addresses of this machine; absent when they cannot be had.
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
        let interfaces = Interfaces::default();
        let settings = settings(listen);
        let own = Own::new(&settings, &interfaces);
        // The second answer is one from memory.
        let first = own.listens_on(address.parse().unwrap());
        let own = Own::new(&settings, &interfaces);
        assert_eq!(own.listens_on(address.parse().unwrap()), first);
        first
    }

    #[test]
    fn name_and_listeners_are_known_again() {
        let settings = settings("127.0.0.1:25");
        let interfaces = Interfaces::default();
        let own = Own::new(&settings, &interfaces);
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
