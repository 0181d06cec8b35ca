//! Handshakes over an in-memory stream, with a certificate authority of this test.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

use super::{
    CertificateFault, CertificateFiles, ClientTls, ConnectTlsError, Keyring, Leaf, PeerCertificate,
    Reload, Roots, ServerTls, ServerTlsOptions, TlsError, TlsInfo, Verification, check_files,
};

/// A folder with a certificate authority in `ca.pem`.
pub(super) struct Authority {
    dir: tempfile::TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    pub(super) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("random");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("well formed");
        let dir = tempfile::tempdir().expect("a folder");
        fs::write(dir.path().join("ca.pem"), issuer.pem()).expect("room");
        Self { dir, issuer }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes `file.pem` and `file.key` for a server name.
    pub(super) fn issue(&self, file: &str, name: &str) -> CertificateFiles {
        let files = CertificateFiles::new(
            self.path(&format!("{file}.pem")),
            self.path(&format!("{file}.key")),
        );
        let key = KeyPair::generate().expect("random");
        let params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        let certificate = params.signed_by(&key, &self.issuer).expect("well formed");
        fs::write(&files.certificate, certificate.pem()).expect("room");
        fs::write(&files.key, key.serialize_pem()).expect("room");
        files
    }

    fn client(&self, verification: Verification) -> ClientTls {
        let roots = Roots::only(&self.path("ca.pem")).expect("a root");
        ClientTls::new(verification, &roots).expect("a root")
    }
}

fn server(default: CertificateFiles, sni: Vec<(String, CertificateFiles)>) -> ServerTls {
    let options = ServerTlsOptions {
        default: Some(default),
        sni,
        ..ServerTlsOptions::default()
    };
    ServerTls::new(options).expect("good files")
}

/// One handshake and an octet each way; what both sides know.
async fn meet(
    server: &ServerTls,
    client: &ClientTls,
    host: &str,
) -> Result<(TlsInfo, TlsInfo), ConnectTlsError> {
    let (near, far) = duplex(16 * 1024);
    let server = server.clone();
    let serving = tokio::spawn(async move {
        let (mut stream, info) = server.accept(far).await?;
        let octet = stream.read_u8().await?;
        stream.write_u8(octet).await?;
        stream.shutdown().await?;
        Ok::<_, std::io::Error>(info)
    });
    let (mut stream, info) = client.connect(host, near).await?;
    stream.write_u8(42).await.expect("connected");
    assert_eq!(stream.read_u8().await.expect("echo"), 42);
    Ok((serving.await.expect("no panic").expect("served"), info))
}

#[tokio::test]
async fn both_sides_know_version_cipher_and_name() {
    let authority = Authority::new();
    let server = server(authority.issue("mx", "mx.test"), Vec::new());
    let client = authority.client(Verification::Required);
    let (at_server, at_client) = meet(&server, &client, "mx.test.").await.expect("valid");
    assert_eq!(at_server.version, "TLSv1.3");
    assert!(at_server.cipher.starts_with("TLS_"), "{}", at_server.cipher);
    assert_eq!(at_server.sni.as_deref(), Some("mx.test"));
    assert_eq!(at_server.certificate, PeerCertificate::NotAsked);
    assert_eq!(
        at_client,
        TlsInfo {
            certificate: PeerCertificate::Valid,
            ..at_server
        }
    );
}

/// The client cannot be asked which certificate it saw, so only one of the names verifies.
#[tokio::test]
async fn the_certificate_is_chosen_by_name() {
    let authority = Authority::new();
    let sni = vec![
        ("Two.test".to_owned(), authority.issue("two", "two.test")),
        (
            "*.wild.test".to_owned(),
            authority.issue("wild", "*.wild.test"),
        ),
    ];
    let server = server(authority.issue("one", "one.test"), sni);
    let client = authority.client(Verification::Required);
    for name in ["one.test", "two.test", "a.wild.test"] {
        meet(&server, &client, name).await.expect(name);
    }
    for name in ["three.test", "a.b.wild.test", "wild.test"] {
        let error = meet(&server, &client, name).await.expect_err(name);
        assert!(
            matches!(error, ConnectTlsError::Certificate(_)),
            "{name}: {error}"
        );
    }
}

#[tokio::test]
async fn without_a_default_the_first_named_certificate_serves_all() {
    let authority = Authority::new();
    let sni = vec![("one.test".to_owned(), authority.issue("one", "one.test"))];
    let options = ServerTlsOptions {
        sni,
        ..ServerTlsOptions::default()
    };
    let server = ServerTls::new(options).expect("good files");
    let client = authority.client(Verification::Recorded);
    meet(&server, &client, "other.test")
        .await
        .expect("opportunistic");
    meet(&server, &client, "192.0.2.1")
        .await
        .expect("no name in the handshake");
}

#[tokio::test]
async fn opportunistic_goes_on_and_records() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let client = authority.client(Verification::Recorded);
    let good = server(authority.issue("mx", "mx.test"), Vec::new());
    let (_, info) = meet(&good, &client, "mx.test").await.expect("valid");
    assert_eq!(info.certificate, PeerCertificate::Valid);
    let (_, info) = meet(&good, &client, "other.test")
        .await
        .expect("opportunistic");
    let fault = |info: &TlsInfo| match info.certificate {
        PeerCertificate::Invalid(fault, _) => Some(fault),
        _ => None,
    };
    assert_eq!(fault(&info), Some(CertificateFault::Name), "{info:?}");
    let unknown = server(stranger.issue("mx", "mx.test"), Vec::new());
    // The second time the session is resumed: what is known of it must not get better.
    for _ in 0..2 {
        let (_, info) = meet(&unknown, &client, "mx.test")
            .await
            .expect("opportunistic");
        assert_eq!(fault(&info), Some(CertificateFault::Untrusted), "{info:?}");
    }
    let strict = authority.client(Verification::Required);
    let error = meet(&unknown, &strict, "mx.test")
        .await
        .expect_err("a stranger");
    assert!(
        error.to_string().starts_with("certificate refused: "),
        "{error}"
    );
    assert_eq!(error.fault(), Some(CertificateFault::Untrusted));
}

/// A machine without ca-certificates still encrypts what it can.
#[tokio::test]
async fn opportunistic_needs_no_roots() {
    let authority = Authority::new();
    let server = server(authority.issue("mx", "mx.test"), Vec::new());
    let client = ClientTls::new(Verification::Recorded, &Roots::none()).expect("no roots");
    let (_, info) = meet(&server, &client, "mx.test")
        .await
        .expect("opportunistic");
    let nothing =
        PeerCertificate::Invalid(CertificateFault::Untrusted, "no roots are known".to_owned());
    assert_eq!(info.certificate, nothing);
    let client = ClientTls::new(Verification::Required, &Roots::none()).expect("no roots");
    let error = meet(&server, &client, "mx.test")
        .await
        .expect_err("no roots");
    assert!(matches!(error, ConnectTlsError::NoRoots), "{error}");
    assert!(
        error.to_string().contains("install ca-certificates"),
        "{error}"
    );
}

#[tokio::test]
async fn sessions_are_resumed_unless_strangers_name_the_server() {
    use rustls::HandshakeKind::{Full, Resumed};
    let authority = Authority::new();
    let server = server(authority.issue("mx", "mx.test"), Vec::new());
    let client = authority.client(Verification::Required);
    assert_eq!(two_handshakes(&server, &client).await, [Full, Resumed]);
    let client = client.without_resumption();
    assert_eq!(two_handshakes(&server, &client).await, [Full, Full]);
}

async fn two_handshakes(server: &ServerTls, client: &ClientTls) -> Vec<rustls::HandshakeKind> {
    let mut kinds = Vec::new();
    for _ in 0..2 {
        let (near, far) = duplex(16 * 1024);
        let serving = server.clone();
        let serving = tokio::spawn(async move {
            let (mut stream, _) = serving.accept(far).await.expect("a client");
            stream.write_u8(1).await.expect("connected");
            stream.shutdown().await.expect("connected");
        });
        let (mut stream, _) = client.connect("mx.test", near).await.expect("valid");
        stream
            .read_u8()
            .await
            .expect("tickets come with the first octet");
        kinds.push(stream.get_ref().1.handshake_kind().expect("done"));
        serving.await.expect("no panic");
    }
    kinds
}

#[tokio::test]
async fn a_peer_without_tls_is_reported_as_such() {
    let authority = Authority::new();
    let client = authority.client(Verification::Recorded);
    let (near, mut far) = duplex(1024);
    far.write_all(b"220 mx.test ESMTP\r\n").await.expect("room");
    let error = client.connect("mx.test", near).await.expect_err("no TLS");
    assert!(matches!(error, ConnectTlsError::Handshake(_)), "{error}");
    let (near, far) = duplex(1024);
    drop(far);
    let error = client.connect("mx.test", near).await.expect_err("closed");
    assert!(matches!(error, ConnectTlsError::Io(_)), "{error}");
    let (near, _far) = duplex(1024);
    let hasty = client
        .clone()
        .with_handshake_timeout(Duration::from_millis(20));
    let error = hasty.connect("mx.test", near).await.expect_err("silent");
    assert!(matches!(error, ConnectTlsError::Timeout(_)), "{error}");
    let (near, _far) = duplex(1024);
    let error = client.connect("no name", near).await.expect_err("no name");
    assert!(matches!(error, ConnectTlsError::Name(_)), "{error}");
}

#[tokio::test]
async fn a_client_without_tls_is_refused() {
    let authority = Authority::new();
    let files = authority.issue("mx", "mx.test");
    let options = ServerTlsOptions {
        default: Some(files),
        handshake_timeout: Duration::from_millis(20),
        ..ServerTlsOptions::default()
    };
    let server = ServerTls::new(options).expect("good files");
    let accept = async |far: DuplexStream| server.accept(far).await.map(drop);
    let (mut near, far) = duplex(1024);
    near.write_all(b"EHLO client.test\r\n").await.expect("room");
    assert_eq!(
        accept(far).await.expect_err("no TLS").kind(),
        std::io::ErrorKind::InvalidData
    );
    let (_near, far) = duplex(1024);
    assert_eq!(
        accept(far).await.expect_err("silent").kind(),
        std::io::ErrorKind::TimedOut
    );
}

#[tokio::test]
async fn changed_files_are_loaded_and_wrong_ones_leave_the_old() {
    let (authority, other) = (Authority::new(), Authority::new());
    let files = authority.issue("mx", "mx.test");
    let server = server(files.clone(), Vec::new());
    let client = authority.client(Verification::Required);
    assert_eq!(
        server.keyring().reload_if_changed().expect("nothing new"),
        Reload::Unchanged
    );

    let good = fs::read(&files.key).expect("written");
    let foreign = other.issue("mx", "mx.test");
    fs::copy(&foreign.key, &files.key).expect("room");
    let error = server
        .keyring()
        .reload_if_changed()
        .expect_err("a key of another");
    assert!(matches!(error, TlsError::Mismatch { .. }), "{error}");
    assert!(
        error.to_string().contains(&*files.key.to_string_lossy()),
        "{error}"
    );
    assert_eq!(
        server.keyring().reload_if_changed().expect("said once"),
        Reload::Unchanged
    );
    assert!(
        server.keyring().reload().is_err(),
        "on demand it is said again"
    );
    meet(&server, &client, "mx.test")
        .await
        .expect("the old one serves");

    fs::write(&files.key, good).expect("room");
    authority.issue("mx", "new.test");
    assert_eq!(
        server.keyring().reload_if_changed().expect("good files"),
        Reload::Loaded
    );
    meet(&server, &client, "new.test")
        .await
        .expect("the new one serves");
    // Not the client from above: it may resume what it had with the old certificate.
    let fresh = authority.client(Verification::Required);
    assert!(meet(&server, &fresh, "mx.test").await.is_err());
}

/// Before the first ACME order there is nothing to show, and that is no error.
#[tokio::test]
async fn files_may_be_missing_until_they_come() {
    let authority = Authority::new();
    let mut files = CertificateFiles::new(authority.path("mx.pem"), authority.path("mx.key"));
    files.may_be_missing = true;
    let server = server(files, Vec::new());
    assert!(!server.keyring().has_certificate());
    let client = authority.client(Verification::Required);
    assert!(meet(&server, &client, "mx.test").await.is_err());
    authority.issue("mx", "mx.test");
    assert_eq!(
        server.keyring().reload_if_changed().expect("good files"),
        Reload::Loaded
    );
    assert!(server.keyring().has_certificate());
    meet(&server, &client, "mx.test")
        .await
        .expect("now it serves");
}

fn refusal(files: CertificateFiles) -> TlsError {
    let options = ServerTlsOptions {
        default: Some(files),
        ..ServerTlsOptions::default()
    };
    ServerTls::new(options).expect_err("wrong files")
}

#[test]
fn each_kind_of_wrong_file_is_named() {
    let authority = Authority::new();
    let good = authority.issue("mx", "mx.test");
    let file = |name: &str, content: &str| {
        fs::write(authority.path(name), content).expect("room");
        authority.path(name)
    };
    let certificate = |path: PathBuf| CertificateFiles {
        certificate: path,
        ..good.clone()
    };
    let key = |path: PathBuf| CertificateFiles {
        key: path,
        ..good.clone()
    };
    let says = |files: CertificateFiles, path: &Path, what: &str| {
        let text = refusal(files).to_string();
        assert!(
            text.contains(&*path.to_string_lossy()) && text.contains(what),
            "{text}"
        );
    };
    let none = authority.path("none");
    says(certificate(none.clone()), &none, "cannot read");
    says(key(none.clone()), &none, "cannot read");
    let empty = file("empty", "");
    says(certificate(empty.clone()), &empty, "holds no certificate");
    says(key(empty.clone()), &empty, "holds no private key");
    says(
        key(good.certificate.clone()),
        &good.certificate,
        "holds no private key",
    );
    let torn = file("torn", "-----BEGIN CERTIFICATE-----\nMIIB\n");
    says(certificate(torn.clone()), &torn, "cannot be used");
    let garbage = file(
        "garbage",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    );
    says(certificate(garbage.clone()), &garbage, "cannot be used");
    let bad = file(
        "bad",
        "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
    );
    says(key(bad.clone()), &bad, "cannot be used");
    let huge = file("huge", &" ".repeat(5 << 20));
    says(certificate(huge.clone()), &huge, "expected at most 4 MiB");
    assert!(Roots::only(&empty).is_err());
    assert!(Roots::load(Some(&torn)).is_err());
    assert!(Roots::load(Some(&authority.path("ca.pem"))).is_ok());
}

#[test]
fn a_start_takes_what_could_be_used_last_and_a_reload_does_not() {
    use std::os::unix::fs::PermissionsExt as _;

    let authority = Authority::new();
    let good = authority.issue("mx", "mx.test");
    let kept = authority.path("kept/default.pem");
    let files = CertificateFiles {
        kept: Some(kept.clone()),
        ..good.clone()
    };
    let options = ServerTlsOptions {
        default: Some(files.clone()),
        ..ServerTlsOptions::default()
    };
    fs::write(&files.key, "garbage").expect("room");
    ServerTls::new(options.clone()).expect_err("nothing is kept yet");
    authority.issue("mx", "mx.test");
    let server = ServerTls::new(options.clone()).expect("a certificate");
    let mode = |path: &Path| fs::metadata(path).expect("kept").permissions().mode() & 0o777;
    assert_eq!(mode(&kept), 0o600);
    assert_eq!(mode(kept.parent().expect("a folder")), 0o700);

    fs::write(&files.key, "garbage").expect("room");
    server.keyring().reload().expect_err("the key is no key");
    let ends = server.keyring().certificate_ends();
    let again = ServerTls::new(options.clone()).expect("the copy serves");
    assert_eq!(again.keyring().certificate_ends(), ends);
    // Once they are right again they are taken, and kept.
    let old = fs::read(&kept).expect("kept");
    authority.issue("mx", "mx.test");
    assert_eq!(
        again.keyring().reload_if_changed().expect("right"),
        Reload::Loaded
    );
    assert_ne!(fs::read(&kept).expect("kept"), old);
    check_files(&CertificateFiles::new(&kept, &kept)).expect("a pair");
}

#[test]
fn validity_and_names_are_read() {
    let authority = Authority::new();
    let files = authority.issue("mx", "mx.test");
    let leaf = Leaf::of_file(&files.certificate).expect("a certificate");
    assert_eq!(leaf.names, ["mx.test"]);
    assert!(leaf.validity.contains(SystemTime::now()));
    assert!(!leaf.validity.contains(SystemTime::UNIX_EPOCH));
    assert!(leaf.validity.lifetime() > Duration::from_secs(86400));
    assert!(Leaf::of_file(&files.key).is_err());
    let address = authority.issue("address", "::1");
    assert_eq!(
        Leaf::of_file(&address.certificate)
            .expect("a certificate")
            .names,
        ["::1"]
    );
}

#[tokio::test]
async fn a_server_that_asks_knows_the_names_of_its_clients() {
    let authority = Authority::new();
    let server = server(authority.issue("server", "mx.example"), Vec::new());
    let own = |files| {
        let options = ServerTlsOptions {
            default: Some(files),
            ..ServerTlsOptions::default()
        };
        Keyring::new(options).expect("good files")
    };
    let mta = own(authority.issue("client", "MTA.example"));
    let roots = Roots::only(&authority.path("ca.pem")).expect("a root");
    let asking = server.asking(&roots).expect("a root");
    let client = authority.client(Verification::Required);
    let names = vec!["mta.example".to_owned()];
    // Each handshake of a server that asks is whole, also with a client that keeps sessions.
    for _ in 0..2 {
        let showing = client.clone().showing(&mta);
        let (at_server, _) = meet(&asking, &showing, "mx.example").await.expect("TLS");
        assert_eq!(
            at_server.certificate,
            PeerCertificate::Client(names.clone())
        );
        assert!(!at_server.is_resumed);
    }
    let (bare, _) = meet(&asking, &client, "mx.example").await.expect("TLS");
    assert_eq!(bare.certificate, PeerCertificate::NotAsked);
    let showing = client.clone().showing(&mta);
    let (at_server, _) = meet(&server, &showing, "mx.example").await.expect("TLS");
    assert_eq!(at_server.certificate, PeerCertificate::NotAsked);
    let other = Authority::new();
    let stranger = own(other.issue("client", "mta.example"));
    let (near, far) = duplex(16 * 1024);
    let showing = client.clone().showing(&stranger);
    let (accepted, _) = tokio::join!(asking.accept(far), showing.connect("mx.example", near));
    assert!(accepted.is_err(), "a certificate of another root");
}
