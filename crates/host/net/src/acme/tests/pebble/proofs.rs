//! tls-alpn-01 and dns-01: pebble looks at our listener, and asks BIND, which our updates change.

use super::*;
use crate::acme::{DnsProof, Proof, Publisher, UpdateOptions, serve_alpn};

const NAMES: [&str; 2] = ["mx.demo.test", "mail.demo.test"];

fn names_of(pebble: &Pebble) -> Vec<String> {
    let leaf = Leaf::of_file(&pebble.certificate()).expect("a certificate");
    let mut names = leaf.names;
    // In whatever order the authority likes.
    names.sort();
    names
}

#[tokio::test]
async fn pebble_sees_certificates_of_tls_alpn_01() {
    let Some(program) = program() else { return };
    let (listener, at) = challenge_listener().await;
    let ports = (free_port().await, at.port());
    let pebble = Pebble::start_with(&program, ports, name_server().await, QUARTER).await;
    let options = AcmeOptions {
        proof: Proof::TlsAlpn,
        ..pebble.options(&NAMES)
    };
    let acme = Acme::new(options).expect("options");
    let places = acme.places();
    tokio::spawn(serve_alpn(listener, places.alpn()));
    // Strangers at the port: what they send is no handshake, and they leave.
    let mut stranger = TcpStream::connect(at).await.expect("listening");
    stranger
        .write_all(b"GET / HTTP/1.0\r\n\r\n")
        .await
        .expect("open");
    acme.obtain().await.expect("pebble issues");
    assert_eq!(names_of(&pebble), ["mail.demo.test", "mx.demo.test"]);
    assert!(
        format!("{:?}", places.alpn()).contains("open: 0"),
        "answers withdrawn"
    );
}

/// A name server with the zone `demo.test`, which takes updates signed with a key.
struct Bind {
    dir: tempfile::TempDir,
    address: SocketAddr,
    child: Child,
}

impl Drop for Bind {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const KEY: &str = "key \"vere\" {\n\talgorithm hmac-sha256;\n\tsecret \"bm8ga2V5IGluIGEgY29tbWVudCBvZiBhIHRlc3Q=\";\n};\n";
const ZONE: &str =
    "$TTL 60\n@ IN SOA ns hostmaster 1 3600 600 86400 1\n@ IN NS ns\nns IN A 127.0.0.1\n";

impl Bind {
    /// Starts `named`; `None` on a machine without BIND.
    async fn start() -> Option<Self> {
        let program = ["/usr/sbin/named", "/usr/local/sbin/named"];
        let Some(program) = program.into_iter().find(|path| Path::new(path).is_file()) else {
            let text = b"SKIPPED acme::tests::pebble::proofs: named is not installed\n";
            std::io::stderr().write_all(text).expect("standard error");
            return None;
        };
        let dir = tempfile::tempdir().expect("a folder");
        let address = SocketAddr::from(([127, 0, 0, 1], free_port().await));
        let config = format!(
            "{KEY}options {{ directory \"{0}\"; pid-file \"{0}/pid\"; session-keyfile none; lock-file none;\n\
             listen-on port {1} {{ 127.0.0.1; }}; listen-on-v6 {{ none; }}; recursion no; notify no;\n\
             empty-zones-enable no; allow-transfer {{ none; }}; }};\ncontrols {{ }};\n\
             zone \"demo.test\" {{ type primary; file \"zone\"; allow-update {{ key vere; }}; }};\n",
            dir.path().display(),
            address.port()
        );
        fs::write(dir.path().join("named.conf"), config).expect("room");
        fs::write(dir.path().join("zone"), ZONE).expect("room");
        fs::write(dir.path().join("key"), KEY).expect("room");
        let log = fs::File::create(dir.path().join("log")).expect("room");
        let child = Command::new(program)
            .args(["-g", "-c"])
            .arg(dir.path().join("named.conf"))
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a descriptor"))
            .stderr(log)
            .spawn()
            .expect("named is executable");
        let bind = Self {
            dir,
            address,
            child,
        };
        for _ in 0..500 {
            if bind.log().contains("all zones loaded") {
                return Some(bind);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("named does not run: {}", bind.log());
    }

    fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    fn proof(&self, key: &str, zone: Option<&str>) -> Proof {
        Proof::Dns(DnsProof {
            by: Publisher::Update(UpdateOptions {
                server: self.address,
                zone: zone.map(str::to_owned),
                key: Some(self.dir.path().join(key)),
            }),
            wait: Duration::ZERO,
        })
    }
}

#[tokio::test]
async fn pebble_sees_records_that_bind_takes_by_signed_updates() {
    let Some(program) = program() else { return };
    let Some(bind) = Bind::start().await else {
        return;
    };
    let ports = (free_port().await, free_port().await);
    let pebble = Pebble::start_with(&program, ports, bind.address, QUARTER).await;
    let order = async |proof: Proof| {
        let options = AcmeOptions {
            proof,
            ..pebble.options(&NAMES)
        };
        Acme::new(options).expect("options").obtain().await
    };
    // A key that the server does not know, and a zone that is none of the names'.
    fs::write(
        bind.dir.path().join("other"),
        KEY.replace("\"vere\"", "\"other\""),
    )
    .expect("room");
    let error = order(bind.proof("other", None)).await.expect_err("refused");
    let is_told = matches!(&error, AcmeError::Challenge { problem, .. } if problem.contains("refuses the update"));
    assert!(is_told, "{error}");
    let error = order(bind.proof("key", Some("example.test")))
        .await
        .expect_err("no");
    assert!(error.to_string().contains("is not in the zone"), "{error}");
    let error = order(bind.proof("absent", None)).await.expect_err("no key");
    assert!(error.to_string().contains("absent"), "{error}");
    assert!(!pebble.certificate().exists());

    order(bind.proof("key", None)).await.expect("pebble issues");
    assert_eq!(names_of(&pebble), ["mail.demo.test", "mx.demo.test"]);
    let log = bind.log();
    let count = |words: &str| log.matches(words).count();
    assert_eq!(count("adding an RR at '_acme-challenge."), 2, "{log}");
    assert_eq!(count("deleting an RR at _acme-challenge."), 2, "{log}");
}
