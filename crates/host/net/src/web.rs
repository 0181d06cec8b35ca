//! Web servers of other systems: connections with a valid certificate, and POST requests without redirections.
//!
//! Strangers name these servers. A stranger may name a server within this network, which gets no more than the beginning of a
//! handshake: no request is sent before a certificate has proven the name.

use std::net::SocketAddr;
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
    /// The URI is no URI of `https`.
    #[error("expected a URI of https; found {0:?}")]
    Uri(String),
    /// The server cannot be reached.
    #[error("{0}")]
    Unreachable(String),
    /// The answer is not HTTP, or too long.
    #[error("no usable answer: {0}")]
    Http(String),
    /// Any status but those from 200 to 299; redirections are not followed.
    #[error("the web server answers with status {0}")]
    Status(u16),
    /// The request took too long.
    #[error("no answer within {POST_TIMEOUT:?}")]
    Timeout,
}

/// Connects to a server whose certificate is valid for its name.
pub(crate) async fn connect(
    resolver: &Resolver,
    https: &ClientTls,
    host: &str,
    port: u16,
) -> Result<ClientStream<TcpStream>, ReachError> {
    let addresses: Vec<SocketAddr> = match resolver.addresses(host).await {
        AddressAnswer::Found(found) => found.iter().map(|ip| SocketAddr::new(*ip, port)).collect(),
        AddressAnswer::TempFail(failure) => {
            return Err(ReachError::Name(format!(
                "cannot look up {host}: {failure}"
            )));
        }
        _ => return Err(ReachError::Name(format!("{host} has no address"))),
    };
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

/// Sends a POST request; `https` must refuse invalid certificates. The server takes the body where the result is `Ok`.
///
/// # Errors
/// See [`PostError`].
pub async fn post(
    resolver: &Resolver,
    https: &ClientTls,
    uri: &str,
    media_type: &str,
    body: Bytes,
) -> Result<(), PostError> {
    let (host, port, path) = parts(uri).ok_or_else(|| PostError::Uri(uri.to_owned()))?;
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
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    Some((host, uri.port_u16().unwrap_or(HTTPS_PORT), path.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

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
            "",
        ] {
            assert_eq!(of(uri), None, "{uri}");
        }
    }
}
