//! An exchange over a connection of the caller, of any kind: TCP or a Unix socket.

use std::fmt;
use std::pin::pin;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, HOST, HeaderName, HeaderValue};
use hyper::{Request, Response, body::Incoming};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::causes;

/// The longest head of an answer.
const HEAD_OCTETS_MAX: usize = 64 * 1024;
/// The most header fields of an answer.
const FIELDS_MAX: usize = 100;

/// A POST request.
#[derive(Debug, Clone)]
pub struct Post<'a> {
    /// The value of `Host`.
    pub host: &'a str,
    /// The path, such as `/checkv2`.
    pub path: &'a str,
    /// Header fields. Octets that cannot stand in a value are sent as `?`; a field with a name that is none is left out.
    pub fields: &'a [(&'a str, &'a str)],
    /// The body.
    pub body: Bytes,
    /// The most octets of the answer's body.
    pub answer_max: usize,
}

/// An answer with the whole body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status, such as 200.
    pub status: u16,
    /// The body.
    pub body: Bytes,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExchangeError {
    /// The connection ended, or the octets were no HTTP.
    Failed(String),
    /// The body is longer than this.
    TooLong(usize),
}

impl fmt::Display for ExchangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(text) => f.write_str(text),
            Self::TooLong(max) => write!(f, "answer of more than {max} octets"),
        }
    }
}

impl std::error::Error for ExchangeError {}

impl From<hyper::Error> for ExchangeError {
    fn from(error: hyper::Error) -> Self {
        let texts: Vec<String> = causes(&error).map(ToString::to_string).collect();
        Self::Failed(texts.join(": "))
    }
}

/// Sends a request and reads the answer; the connection is closed behind the answer. The caller bounds the time.
///
/// # Errors
/// The connection ends early, the answer is no HTTP/1 or has too many octets.
pub async fn exchange<S>(stream: S, post: Post<'_>) -> Result<Answer, ExchangeError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let answer_max = post.answer_max;
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(HEAD_OCTETS_MAX)
        .max_headers(FIELDS_MAX)
        .handshake(TokioIo::new(stream))
        .await?;
    let request = request(post)?;
    let talk = async move {
        let response = sender.send_request(request).await?;
        body(response, answer_max).await
    };
    let (mut talk, mut connection) = (pin!(talk), pin!(connection));
    tokio::select! {
        biased;
        answer = &mut talk => answer,
        // The request has the connection's failure too; a connection that ended well leaves the answer behind.
        _ended = &mut connection => talk.await,
    }
}

fn request(post: Post<'_>) -> Result<Request<Full<Bytes>>, ExchangeError> {
    let request = Request::post(post.path).body(Full::new(post.body));
    let mut request = request.map_err(|error| ExchangeError::Failed(error.to_string()))?;
    let host = HeaderValue::from_str(post.host);
    let host = host.map_err(|error| ExchangeError::Failed(error.to_string()))?;
    let headers = request.headers_mut();
    headers.insert(HOST, host);
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    for (name, value) in post.fields {
        let shown = value.bytes().map(|octet| match octet {
            b' '..=b'~' | 0x80.. => octet,
            _ => b'?',
        });
        let value = HeaderValue::from_bytes(&shown.collect::<Vec<u8>>());
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name.as_bytes()), value) {
            headers.append(name, value);
        }
    }
    Ok(request)
}

async fn body(response: Response<Incoming>, max: usize) -> Result<Answer, ExchangeError> {
    let status = response.status().as_u16();
    let mut incoming = response.into_body();
    let mut body = BytesMut::new();
    while let Some(frame) = incoming.frame().await {
        let Ok(piece) = frame?.into_data() else {
            continue;
        };
        if body.len() + piece.len() > max {
            return Err(ExchangeError::TooLong(max));
        }
        body.extend_from_slice(&piece);
    }
    Ok(Answer {
        status,
        body: body.freeze(),
    })
}
