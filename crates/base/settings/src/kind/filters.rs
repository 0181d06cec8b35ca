//! Checks of values about content filters.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use super::text::host_name;
use crate::filters::FilterAddress;

const PORT_WANTED: &str = "expected a port from 1 to 65535";

/// Checks an address: `"unix:" path / host ":" port / "[" IPv6 "]:" port`.
pub(super) fn address(text: &str) -> Result<FilterAddress, String> {
    if let Some(path) = text.strip_prefix("unix:") {
        return match path.starts_with('/') {
            true => Ok(FilterAddress::Unix(PathBuf::from(path))),
            false => Err("expected an absolute path after \"unix:\"".to_owned()),
        };
    }
    if text.starts_with('/') {
        return Err(format!("expected \"unix:{text}\" for a Unix socket"));
    }
    if let Ok(address) = text.parse::<SocketAddr>() {
        return match address.port() {
            0 => Err(PORT_WANTED.to_owned()),
            _ => Ok(FilterAddress::Ip(address)),
        };
    }
    let Some((host, port)) = text.rsplit_once(':') else {
        return Err("expected host:port, [IPv6]:port or unix:/path".to_owned());
    };
    if host.contains(':') || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_ipv6()) {
        return Err("expected an IPv6 address in brackets, such as [::1]:11333".to_owned());
    }
    let port = port.parse::<u16>().ok().filter(|port| *port != 0);
    let port = port.ok_or(PORT_WANTED)?;
    match host.parse::<Ipv4Addr>() {
        Ok(ip) => Ok(FilterAddress::Ip((ip, port).into())),
        Err(_) => Ok(FilterAddress::Host(host_name(host)?, port)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_three_forms() {
        for (text, shown) in [
            ("unix:/run/clamav/clamd.ctl", "unix:/run/clamav/clamd.ctl"),
            ("127.0.0.1:11333", "127.0.0.1:11333"),
            ("[::1]:11333", "[::1]:11333"),
            ("Rspamd.example.org:11333", "rspamd.example.org:11333"),
            ("localhost:1", "localhost:1"),
        ] {
            assert_eq!(address(text).expect(text).to_string(), shown);
        }
        for (text, words) in [
            ("unix:run/x", "absolute"),
            ("unix:", "absolute"),
            ("/run/x", "unix:/run/x"),
            ("localhost", "host:port"),
            ("localhost:0", "port from 1"),
            ("localhost:65536", "port from 1"),
            ("127.0.0.1:0", "port from 1"),
            ("::1:11333", "brackets"),
            ("a b:1", "host name"),
            (":1", "host name"),
        ] {
            let found = address(text).expect_err(text);
            assert!(found.contains(words), "{text}: {found}");
        }
    }
}
