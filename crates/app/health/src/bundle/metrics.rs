//! The metrics of every role with an endpoint.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use vere_process::failure::Failure;
use vere_settings::Settings;

const PATIENCE: Duration = Duration::from_secs(3);
/// Octets of the metrics of a role.
const ANSWER_MAX: u64 = 1 << 20;

/// The metrics, role by role.
pub(super) fn all(settings: &Settings) -> Result<String, Failure> {
    let metrics = &settings.metrics;
    let endpoints = [
        ("gateway", metrics.listen),
        ("store", metrics.store),
        ("front", metrics.front),
        ("dnsbl", metrics.dnsbl),
        ("x400", metrics.x400),
        ("web", metrics.web),
        ("otlp", metrics.otlp),
    ];
    let mut text = String::new();
    for (role, address) in endpoints {
        let Some(address) = address else { continue };
        text += &match asked(address) {
            Ok(answer) => format!("# role {role}\n{answer}\n"),
            Err(error) => format!("# role {role}: {address}: {error}\n"),
        };
    }
    match text.is_empty() {
        true => Err(Failure::new("no endpoint: add [metrics] to the settings")),
        false => Ok(text),
    }
}

/// The body of an answer of HTTP/1.0, up to the end of the connection.
fn asked(address: SocketAddr) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    write!(stream, "GET /metrics HTTP/1.0\r\nHost: {address}\r\n\r\n")?;
    let mut octets = Vec::new();
    stream.take(ANSWER_MAX).read_to_end(&mut octets)?;
    let answer = String::from_utf8_lossy(&octets).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    match head.split_whitespace().nth(1) {
        Some("200") => Ok(body.to_owned()),
        code => Err(io::Error::other(format!("HTTP {}", code.unwrap_or("?")))),
    }
}
