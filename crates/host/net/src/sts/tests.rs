//! Policies from a policy host of the tests' own, over real TLS.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::{FetchError, Held, Mode, Sts, StsAnswer};
use crate::resolver::{Resolver, Zone};
use crate::tls::{ClientTls, Roots, Verification};

const POLICY: &str = "version: STSv1\nmode: enforce\nmx: mx.example.org\nmax_age: 86400\n";

/// What the policy host shows and says.
#[derive(Clone)]
struct Host {
    names: Vec<String>,
    expired: bool,
    answer: Vec<u8>,
}

impl Host {
    fn saying(answer: impl Into<Vec<u8>>) -> Self {
        Self {
            names: vec!["mta-sts.example.org".to_owned()],
            expired: false,
            answer: answer.into(),
        }
    }

    fn with_policy(policy: &str) -> Self {
        Self::saying(http("200 OK", "text/plain", policy))
    }
}

fn http(status: &str, media_type: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {}\r\n\
         Location: https://mta-sts.example.org/elsewhere\r\n\r\n{body}",
        body.len()
    )
}

/// A policy host that runs, and the means to ask it.
struct Setup {
    dir: tempfile::TempDir,
    client: ClientTls,
    port: u16,
    asked: Arc<AtomicUsize>,
}

impl Setup {
    async fn new(host: Host) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let ca = dir.path().join("ca.pem");
        std::fs::write(&ca, params.self_signed(&key).unwrap().pem()).unwrap();
        let issuer = Issuer::new(params, key);
        let mut params = CertificateParams::new(host.names.clone()).unwrap();
        if host.expired {
            params.not_before = date_time_ymd(2019, 1, 1);
            params.not_after = date_time_ymd(2020, 1, 1);
        }
        let own = KeyPair::generate().unwrap();
        let leaf = params.signed_by(&own, &issuer).unwrap();
        let config = ServerConfig::builder_with_provider(crate::tls::provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![leaf.der().clone()],
                PrivateKeyDer::try_from(own.serialize_der()).unwrap(),
            )
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(AtomicUsize::new(0));
        tokio::spawn(serve(
            listener,
            TlsAcceptor::from(Arc::new(config)),
            host.answer,
            Arc::clone(&asked),
        ));
        let roots = Roots::only(&ca).unwrap();
        Self {
            client: ClientTls::new(Verification::Required, &roots).unwrap(),
            dir,
            port,
            asked,
        }
    }

    fn zone(&self, id: Option<&str>) -> Resolver {
        let record = id.map(|id| format!("_mta-sts.example.org TXT v=STSv1; id={id};\n"));
        let text = "mta-sts.example.org A 127.0.0.1\n".to_owned() + &record.unwrap_or_default();
        Resolver::from_zone(Zone::parse(&text).unwrap())
    }

    fn sts(&self, id: Option<&str>) -> Sts {
        Sts::in_memory(self.zone(id), self.client.clone(), self.port)
    }

    fn kept(&self, id: Option<&str>) -> Sts {
        let path = self.dir.path().join("policies");
        Sts::open(self.zone(id), self.client.clone(), self.port, &path).unwrap()
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

async fn serve(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    answer: Vec<u8>,
    asked: Arc<AtomicUsize>,
) {
    while let Ok((stream, _)) = listener.accept().await {
        let Ok(mut stream) = acceptor.accept(stream).await else {
            continue;
        };
        asked.fetch_add(1, Ordering::SeqCst);
        let mut request = vec![0; 4096];
        let read = stream.read(&mut request).await.unwrap_or(0);
        let request = String::from_utf8_lossy(&request[..read]).into_owned();
        assert!(
            request.starts_with("GET /.well-known/mta-sts.txt HTTP/1.1\r\n"),
            "{request}"
        );
        // A client that has read enough goes away.
        let _ = stream.write_all(&answer).await;
        let _ = stream.shutdown().await;
    }
}

fn held(answer: StsAnswer) -> Arc<Held> {
    match answer {
        StsAnswer::Policy(held) => held,
        other => panic!("{other:?}"),
    }
}

async fn failure(host: Host) -> FetchError {
    let setup = Setup::new(host).await;
    match setup.sts(Some("1")).policy("example.org").await {
        StsAnswer::Unavailable(error) => error,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_policy_is_fetched_once() {
    let setup = Setup::new(Host::with_policy(POLICY)).await;
    let sts = setup.sts(Some("1"));
    let (one, other) = tokio::join!(sts.policy("example.org"), sts.policy("Example.org."));
    assert_eq!(held(one).policy.mode, Mode::Enforce);
    assert!(held(other).policy.names("mx.example.org"));
    held(sts.policy("example.org").await);
    assert_eq!(setup.asked(), 1);
    assert_eq!(sts.policy("other.example").await, StsAnswer::None);
}

/// RFC 8461 section 5.1: a policy that is known holds while DNS or HTTPS are gone or changed.
#[tokio::test]
async fn what_is_known_outlives_restarts_and_its_sources() {
    let setup = Setup::new(Host::with_policy(POLICY)).await;
    held(setup.kept(Some("1")).policy("example.org").await);
    assert_eq!(setup.asked(), 1);
    let first = held(setup.kept(None).policy("example.org").await);
    assert_eq!(setup.asked(), 1);
    // Another identifier asks again, and so replaces it.
    let second = held(setup.kept(Some("2")).policy("example.org").await);
    assert_eq!((first.id.as_str(), second.id.as_str()), ("1", "2"));
    assert_eq!(setup.asked(), 2);
    // The policy host says nonsense from now on: the old one holds.
    let broken = Setup::new(Host::with_policy("nonsense")).await;
    let path = setup.dir.path().join("policies");
    let sts = Sts::open(
        broken.zone(Some("3")),
        broken.client.clone(),
        broken.port,
        &path,
    )
    .unwrap();
    assert_eq!(held(sts.policy("example.org").await).id, "2");
    // It is left alone for a while then.
    held(sts.policy("example.org").await);
    assert_eq!(broken.asked(), 1);
}

#[tokio::test]
async fn mode_none_takes_a_policy_back() {
    let setup = Setup::new(Host::with_policy(POLICY)).await;
    held(setup.kept(Some("1")).policy("example.org").await);
    let back = Setup::new(Host::with_policy(
        "version: STSv1\nmode: none\nmax_age: 60\n",
    ))
    .await;
    let path = setup.dir.path().join("policies");
    let sts = Sts::open(back.zone(Some("2")), back.client.clone(), back.port, &path).unwrap();
    assert_eq!(sts.policy("example.org").await, StsAnswer::None);
    assert_eq!(
        setup.kept(None).policy("example.org").await,
        StsAnswer::None
    );
}

#[tokio::test]
async fn an_old_policy_is_fetched_again_and_a_young_one_is_not() {
    let setup = Setup::new(Host::with_policy(POLICY)).await;
    let sts = setup.kept(Some("1"));
    held(sts.policy("example.org").await);
    sts.refresh().await;
    assert_eq!(setup.asked(), 1);
    // Half of its day is over.
    let path = setup.dir.path().join("policies");
    let mut old = (*held(sts.policy("example.org").await)).clone();
    old.fetched_ms -= 13 * 60 * 60 * 1000;
    let fetched = old.fetched_ms;
    let mut cache = super::cache::Cache::open(&path, fetched).unwrap();
    cache.put("example.org", old, fetched).unwrap();
    let sts = setup.kept(Some("1"));
    sts.refresh().await;
    assert_eq!(setup.asked(), 2);
    assert!(held(sts.policy("example.org").await).fetched_ms > fetched);
}

#[tokio::test]
async fn redirections_are_not_followed() {
    for status in [
        "301 Moved",
        "302 Found",
        "307 Temporary",
        "404 Not Found",
        "500 Broken",
    ] {
        let error = failure(Host::saying(http(status, "text/plain", POLICY))).await;
        let code = status[..3].parse().unwrap();
        assert_eq!(error, FetchError::Status(code));
    }
}

#[tokio::test]
async fn certificates_of_policy_hosts_must_be_valid() {
    let wrong = Host {
        names: vec!["www.example.org".to_owned()],
        ..Host::with_policy(POLICY)
    };
    assert!(matches!(failure(wrong).await, FetchError::Tls(_)));
    let expired = Host {
        expired: true,
        ..Host::with_policy(POLICY)
    };
    assert!(matches!(failure(expired).await, FetchError::Tls(_)));
    // Valid, but by an authority that nobody knows.
    let setup = Setup::new(Host::with_policy(POLICY)).await;
    let other = Setup::new(Host::with_policy(POLICY)).await;
    let sts = Sts::in_memory(setup.zone(Some("1")), other.client.clone(), setup.port);
    let answer = sts.policy("example.org").await;
    assert!(
        matches!(answer, StsAnswer::Unavailable(FetchError::Tls(_))),
        "{answer:?}"
    );
}

#[tokio::test]
async fn hostile_answers_are_refused() {
    let html = Host::saying(http("200 OK", "text/html", POLICY));
    assert_eq!(
        failure(html).await,
        FetchError::MediaType("text/html".to_owned())
    );
    let long = POLICY.to_owned() + &"x: y\n".repeat(20_000);
    assert_eq!(failure(Host::with_policy(&long)).await, FetchError::TooLong);
    // A length that was not told, without an end.
    let endless = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n".to_vec();
    let endless = [endless, b"x: y\n".repeat(40_000)].concat();
    assert_eq!(failure(Host::saying(endless)).await, FetchError::TooLong);
    let garbage = Host::saying(b"220 mx ESMTP\r\n".to_vec());
    assert!(matches!(failure(garbage).await, FetchError::Http(_)));
    let headers = format!("HTTP/1.1 200 OK\r\n{}", "X: y\r\n".repeat(50_000));
    assert!(matches!(
        failure(Host::saying(headers)).await,
        FetchError::Http(_)
    ));
    let cut = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 500\r\n\r\nversion";
    assert!(matches!(
        failure(Host::saying(cut.to_vec())).await,
        FetchError::Http(_)
    ));
    let nothing = Host::saying(Vec::new());
    assert!(matches!(failure(nothing).await, FetchError::Http(_)));
}
