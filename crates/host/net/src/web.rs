//! Web servers of other systems: connections with a valid certificate, and POST requests without redirections.
//!
//! Strangers name these servers, and could name any within this network. So the port is the one of `https` and the address a public one; an address
//! in the place of a name counts for nothing. Another port that the settings give (`delivery.mta_sts_port`) is for tests, and then any address
//! will do. A server of this network with a public address remains within reach: a request goes there once a certificate has proven the name.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use hyper::Uri;
use tokio::net::TcpStream;
use tokio::time::timeout;
use vere_http::direct::{Post, exchange};

use crate::connect::{self, ConnectOptions};
use crate::resolver::{AddressAnswer, Resolver};
use crate::tls::{ClientStream, ClientTls};

/// The longest wait for an address of a server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// The longest time for a POST request, with names, connection and answer.
const POST_TIMEOUT: Duration = Duration::from_secs(60);
/// The most octets of the answer to a POST request.
const ANSWER_OCTETS_MAX: usize = 64 * 1024;
/// The port of `https`.
const HTTPS_PORT: u16 = 443;

/// Why a server cannot be reached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ReachError {
    /// The name has no address, or the lookup failed.
    #[error("{0}")]
    Name(String),
    /// No address takes a connection.
    #[error("{0}")]
    Connect(String),
    /// The handshake failed, or the certificate is not valid for the name.
    #[error("{0}")]
    Tls(String),
}

/// Why a POST request failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PostError {
    /// The URI is no URI of `https`, or has an address in the place of a name.
    #[error("expected a URI of https with a name; found {0:?}")]
    Uri(String),
    /// The URI has a port that strangers may not ask for.
    #[error("expected port {HTTPS_PORT}; found {0}")]
    Port(u16),
    /// The server cannot be reached.
    #[error("{0}")]
    Unreachable(String),
    /// The answer is not HTTP, or too long.
    #[error("no usable answer: {0}")]
    Http(String),
    /// The status is outside 200 to 299, such as a redirection, which nobody follows.
    #[error("the web server answers with status {0}")]
    Status(u16),
    /// The request took too long.
    #[error("no answer within {POST_TIMEOUT:?}")]
    Timeout,
}

/// Connects to a server whose certificate is valid for its name; at port 443, to public addresses alone.
pub(crate) async fn connect(
    resolver: &Resolver,
    https: &ClientTls,
    host: &str,
    port: u16,
) -> Result<ClientStream<TcpStream>, ReachError> {
    let addresses: Vec<SocketAddr> = match resolver.addresses(host).await {
        AddressAnswer::Found(found) => {
            let is_fit = |ip: &&IpAddr| port != HTTPS_PORT || is_public(**ip);
            let fit = found.iter().filter(is_fit);
            fit.map(|ip| SocketAddr::new(*ip, port)).collect()
        }
        AddressAnswer::TempFail(failure) => {
            return Err(ReachError::Name(format!(
                "cannot look up {host}: {failure}"
            )));
        }
        _ => return Err(ReachError::Name(format!("{host} has no address"))),
    };
    if addresses.is_empty() {
        return Err(ReachError::Name(format!("{host} has no public address")));
    }
    let options = ConnectOptions {
        timeout: CONNECT_TIMEOUT,
        ..ConnectOptions::default()
    };
    let stream = connect::connect(&addresses, &options)
        .await
        .map_err(|error| ReachError::Connect(error.to_string()))?;
    let (stream, _) = https
        .connect(host, stream)
        .await
        .map_err(|error| ReachError::Tls(error.to_string()))?;
    Ok(stream)
}

/// Sends a POST request; `https` must refuse invalid certificates and resume no session. `settings_port` is allowed beside 443. The server takes
/// the body where the result is `Ok`.
///
/// # Errors
/// See [`PostError`].
pub async fn post(
    resolver: &Resolver,
    (https, settings_port): (&ClientTls, u16),
    uri: &str,
    media_type: &str,
    body: Bytes,
) -> Result<(), PostError> {
    let (host, port, path) = parts(uri).ok_or_else(|| PostError::Uri(uri.to_owned()))?;
    if ![HTTPS_PORT, settings_port].contains(&port) {
        return Err(PostError::Port(port));
    }
    let sent = async {
        let stream = connect(resolver, https, &host, port).await;
        let stream = stream.map_err(|error| PostError::Unreachable(error.to_string()))?;
        let authority = match port {
            HTTPS_PORT => host.clone(),
            port => format!("{host}:{port}"),
        };
        let post = Post {
            host: &authority,
            path: &path,
            fields: &[("content-type", media_type), ("user-agent", "vere")],
            body,
            answer_max: ANSWER_OCTETS_MAX,
        };
        let answer = exchange(stream, post).await;
        let answer = answer.map_err(|error| PostError::Http(error.to_string()))?;
        match answer.status {
            200..=299 => Ok(()),
            status => Err(PostError::Status(status)),
        }
    };
    timeout(POST_TIMEOUT, sent)
        .await
        .unwrap_or(Err(PostError::Timeout))
}

/// The host, the port, and the path with the query.
fn parts(uri: &str) -> Option<(String, u16, String)> {
    let uri: Uri = uri.parse().ok()?;
    let is_https = uri.scheme_str() == Some("https");
    let has_user = uri.authority()?.as_str().contains('@');
    let host = uri.host().filter(|_| is_https && !has_user)?.to_owned();
    // An IPv6 address is in brackets.
    if host.starts_with('[') || host.parse::<IpAddr>().is_ok() {
        return None;
    }
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    Some((host, uri.port_u16().unwrap_or(HTTPS_PORT), path.to_owned()))
}

/// Whether an address is one of the internet (RFC 6890): not of this machine, a private network, a link or a group.
fn is_public(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [first, second, third, _] = ip.octets();
    // Networks behind a shared address, protocol assignments, benchmarks, and the reserved rest.
    let is_special = match first {
        0 | 240..=255 => true,
        100 => second & 0xc0 == 64,
        192 => second == 0 && third == 0,
        198 => second & 0xfe == 18,
        _ => false,
    };
    !(is_special
        || ip.is_private()
        || ip.is_loopback()
        || ip.is_link_local()
        || ip.is_multicast()
        || ip.is_documentation())
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    let [first, second, third, .., high, low] = ip.segments();
    let is_translated = [first, second, third] == [0x64, 0xff9b, 0];
    if is_translated {
        // A translator has the address of IPv4 at the end.
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        return is_public_v4(Ipv4Addr::new(a, b, c, d));
    }
    // Global unicast without tunnels: Teredo and 6to4 have an address of IPv4 within, and 2001:db8::/32 is for documents.
    let is_tunnel = first == 0x2002 || (first == 0x2001 && second == 0);
    first & 0xe000 == 0x2000 && !is_tunnel && (first, second) != (0x2001, 0x0db8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolver::Zone;
    use crate::tls::{Roots, Verification};

    #[test]
    fn addresses_within_networks_are_not_public() {
        for text in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "192.168.1.1",
            "192.0.0.8",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fe80::1",
            "fd00::1",
            "fec0::1",
            "ff02::1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::127.0.0.1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2001:0:1::",
            "2001:db8::1",
        ] {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
        for text in [
            "9.9.9.9",
            "100.128.0.1",
            "172.32.0.1",
            "198.20.0.1",
            "2620:fe::fe",
            "2a00::1",
            "64:ff9b::9.9.9.9",
            "::ffff:9.9.9.9",
        ] {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
    }

    /// Nothing connects: a listener at the port of the URI would see it.
    #[tokio::test]
    async fn strangers_reach_no_server_within_the_network() {
        let zone = "in.example A 127.0.0.1\nin.example AAAA ::1\n";
        let resolver = Resolver::from_zone(Zone::parse(zone).unwrap());
        let https = ClientTls::new(Verification::Recorded, &Roots::none()).unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let send = async |uri: &str, settings_port| {
            let result = post(&resolver, (&https, settings_port), uri, "x/y", Bytes::new()).await;
            result.unwrap_err().to_string()
        };
        let uri = format!("https://in.example:{port}/");
        let other = send(&uri, HTTPS_PORT).await;
        assert_eq!(other, format!("expected port 443; found {port}"));
        let within = send("https://in.example/", HTTPS_PORT).await;
        assert_eq!(within, "in.example has no public address");
        let within = send("https://in.example/", port).await;
        assert_eq!(within, "in.example has no public address");
        let accepted = timeout(Duration::from_millis(50), listener.accept()).await;
        assert!(accepted.is_err(), "nothing connects");
        // The port of the settings is the one of the tests.
        let (_, accepted) = tokio::join!(send(&uri, port), async {
            // The handshake ends with the connection.
            drop(listener.accept().await.unwrap());
        });
        let () = accepted;
    }

    #[test]
    fn uris_of_reports() {
        let of = |uri| parts(uri);
        let found = |host: &str, port, path: &str| Some((host.to_owned(), port, path.to_owned()));
        assert_eq!(
            of("https://reports.example/v1?x=1"),
            found("reports.example", 443, "/v1?x=1")
        );
        assert_eq!(of("https://a.example:8443"), found("a.example", 8_443, "/"));
        for uri in [
            "http://a.example/",
            "https:///x",
            "https://user@a.example/",
            "a.example/x",
            "https://a b/",
            "https://127.0.0.1/",
            "https://192.0.2.1:6379/",
            "https://[::1]/",
            "",
        ] {
            assert_eq!(of(uri), None, "{uri}");
        }
    }
}
