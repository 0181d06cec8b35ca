use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread;

use hyper::Request;
use rustls::{AlertDescription, CertificateError};

use super::direct::{ExchangeError, Post, exchange};
use super::{HttpClient, HttpError, Schemes, authorities, client_config, io, rejects_certificate};

fn client(schemes: Schemes) -> HttpClient<String> {
    let roots = authorities(None, false).unwrap();
    let tls = client_config(roots).unwrap().with_no_client_auth();
    HttpClient::new(tls, schemes, None)
}

async fn status(client: &HttpClient<String>, url: &str) -> Result<u16, HttpError> {
    let request = Request::post(url).body("body".to_owned()).unwrap();
    Ok(client.request(request).await?.status().as_u16())
}

/// A server that reads a request and gives one answer to it.
fn server(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut octets = Vec::new();
        while !octets.ends_with(b"body") {
            let mut piece = [0; 1024];
            match stream.read(&mut piece).unwrap() {
                0 => return,
                len => octets.extend_from_slice(&piece[..len]),
            }
        }
        stream.write_all(answer.as_bytes()).unwrap();
    });
    url
}

#[tokio::test]
async fn an_answer_has_a_status() {
    let url = server("HTTP/1.1 204 No Content\r\n\r\n");
    let answer = status(&client(Schemes::Any), &format!("http{url}")).await;
    assert_eq!(answer.unwrap(), 204);
}

#[tokio::test]
async fn without_a_connection_nothing_was_sent() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", free.local_addr().unwrap());
    drop(free);
    let error = status(&client(Schemes::Any), &url).await.unwrap_err();
    assert!(!error.sent());
    assert!(!error.concerns_certificates());
    assert!(error.to_string().contains("refused"), "{error}");
}

#[tokio::test]
async fn only_a_request_that_left_may_have_been_carried_out() {
    let answer = "HTTP/1.1 204 No Content\r\n\r\n";
    for (schemes, answer, sent) in [(Schemes::Any, "", true), (Schemes::Https, answer, false)] {
        let url = format!("http{}", server(answer));
        let error = status(&client(schemes), &url).await.unwrap_err();
        assert_eq!(error.sent(), sent, "{schemes:?}: {error}");
        assert!(!error.concerns_certificates(), "{schemes:?}: {error}");
    }
}

#[test]
fn alerts_that_concern_no_certificate_do_not_say_what_became_of_the_request() {
    let alert = rustls::Error::AlertReceived;
    for (error, expected) in [
        (alert(AlertDescription::CertificateRequired), true),
        (alert(AlertDescription::UnknownCA), true),
        (
            rustls::Error::InvalidCertificate(CertificateError::Expired),
            true,
        ),
        (alert(AlertDescription::InternalError), false),
        (alert(AlertDescription::DecryptError), false),
        (rustls::Error::DecryptError, false),
    ] {
        assert_eq!(rejects_certificate(&error), expected, "{error}");
        let wrapped = io::Error::other(error);
        assert_eq!(rejects_certificate(&wrapped), expected, "{wrapped}");
    }
}

#[test]
fn a_file_without_certificates_is_named() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = authorities(Some(file.path()), true).unwrap_err();
    let expected = format!("{}: holds no certificate", file.path().display());
    assert_eq!(error.to_string(), expected);
}

/// One exchange with a server that answers with these octets, over a Unix pair.
async fn exchanged(answer: &'static [u8]) -> Result<(u16, Vec<u8>), ExchangeError> {
    let (ours, theirs) = tokio::net::UnixStream::pair().unwrap();
    let post = Post {
        host: "localhost",
        path: "/x",
        fields: &[("Helo", "a\nb")],
        body: "body".into(),
        answer_max: 10,
    };
    let server = async move {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let mut theirs = theirs;
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\nbody") {
            assert!(
                theirs.read_buf(&mut request).await.unwrap() > 0,
                "closed early"
            );
        }
        theirs.write_all(answer).await.unwrap();
        String::from_utf8(request).unwrap()
    };
    let (answer, request) = tokio::join!(exchange(ours, post), server);
    assert!(request.starts_with("POST /x HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("helo: a?b\r\n"), "{request}");
    answer.map(|answer| (answer.status, answer.body.to_vec()))
}

#[tokio::test]
async fn an_exchange_over_any_stream_has_a_bounded_answer() {
    let answer = exchanged(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
    assert_eq!(answer, Ok((200, b"ok".to_vec())));
    let answer = exchanged(b"HTTP/1.0 500 No\r\n\r\nuntil end").await;
    assert_eq!(answer, Ok((500, b"until end".to_vec())));
    let answer = exchanged(b"HTTP/1.1 200 OK\r\n\r\n01234567890").await;
    assert_eq!(answer, Err(ExchangeError::TooLong(10)));
}

#[tokio::test]
async fn an_exchange_that_fails_says_how() {
    for (answer, expected) in [
        (&b""[..], "connection closed before message completed"),
        (b"220 mail ESMTP\r\n\r\n", "invalid HTTP version parsed"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{",
            "end of file before message length reached",
        ),
    ] {
        let error = exchanged(answer).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
