//! Certificates by ACME where a web server has ports 80 and 443, by each type of challenge: pebble as the CA, BIND as its name server.

use std::collections::BTreeMap;
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::json;

use crate::harness::{
    Authority, Named, Options, Signing, System, free_address, output_of, program, quoted, run,
    skip, wait_until,
};

/// The program, or a line that says why the test is skipped.
fn pebble() -> Option<PathBuf> {
    let named = std::env::var_os("VERE_PEBBLE").map(PathBuf::from);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let built = root.join("target/test-tools/bin/pebble");
    let found = named.into_iter().chain([built]).find(|path| path.is_file());
    if found.is_none() {
        skip(
            "web_acme",
            "scripts/install-test-tools.sh builds pebble where go is present",
        );
    }
    found
}

/// A CA that looks for challenges at a port of HTTP or TLS whatever the name.
struct Ca {
    child: Child,
    address: SocketAddr,
}

impl Ca {
    fn start(program: &Path, authority: &Authority, ports: [u16; 2], names: SocketAddr) -> Self {
        let own = authority.sign("pebble", &["127.0.0.1"]);
        let address = free_address();
        let config = json!({"pebble": {
            "listenAddress": address.to_string(),
            "certificate": own.certificate,
            "privateKey": own.key,
            "httpPort": ports[0],
            "tlsPort": ports[1],
        }});
        let path = authority.folder().join("pebble.json");
        fs::write(&path, config.to_string()).expect("the configuration");
        let log = fs::File::create(authority.folder().join("pebble.log")).expect("a log");
        let child = Command::new(program)
            .arg("-config")
            .arg(path)
            .args(["-dnsserver", &names.to_string()])
            .env("PEBBLE_VA_NOSLEEP", "1")
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a descriptor"))
            .stderr(log)
            .spawn()
            .expect("pebble is executable");
        wait_until("pebble", || TcpStream::connect(address).is_ok());
        Self { child, address }
    }
}

impl Drop for Ca {
    fn drop(&mut self) {
        // The program may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The names of the certificate that a server shows for a name.
fn shown(https: SocketAddr, name: &str) -> String {
    let mut client = Command::new("openssl");
    client.args([
        "s_client",
        "-connect",
        &https.to_string(),
        "-servername",
        name,
    ]);
    let output = output_of(&mut client, "Q\n");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut reader = Command::new("openssl");
    reader.args(["x509", "-noout", "-ext", "subjectAltName"]);
    let output = output_of(&mut reader, &text);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_refused_web_name_costs_the_others_nothing() {
    let (Some(pebble), Some(_), Some(_)) = (pebble(), program("named"), program("openssl")) else {
        return;
    };
    let authority = Authority::new();
    // The CA does not find one of the names that lead here, and another name leads elsewhere.
    let zone = ["mx", "mta-sts", "autodiscover"];
    let zone = zone
        .map(|name| format!("{name}.example.org. IN A 127.0.0.1"))
        .join("\n");
    let zones = tempfile::tempdir().expect("a directory");
    let served = BTreeMap::from([("org", (Signing::None, zone))]);
    let Some(named) = Named::start(zones.path(), &served) else {
        return;
    };
    let [https, http] = [free_address(), free_address()];
    let ca = Ca::start(
        &pebble,
        &authority,
        [http.port(), free_address().port()],
        named.address,
    );
    let options = Options::default()
        .set("acme.directory", &format!("\"https://{}/dir\"", ca.address))
        .set("acme.root", &quoted(&authority.ca))
        .set("web.https", &format!("[\"{https}\"]"))
        .set("web.http", &format!("[\"{http}\"]"))
        .record("mx.example.org A 127.0.0.1")
        .record("mta-sts.example.org A 127.0.0.1")
        .record("autoconfig.example.org A 127.0.0.1")
        .record("autodiscover.example.org A 127.0.0.99");
    let system = System::start(&options);
    wait_until("the host's certificate", || {
        shown(https, "mx.example.org").contains("DNS:mx.example.org")
    });
    wait_until("the certificate of the policy", || {
        shown(https, "mta-sts.example.org").contains("DNS:mta-sts.example.org")
    });
    let names = shown(https, "mta-sts.example.org");
    assert!(
        !names.contains("autoconfig") && !names.contains("autodiscover"),
        "{names}"
    );
    // The others are shown the certificate of the host.
    assert!(shown(https, "autoconfig.example.org").contains("DNS:mx.example.org"));
    system.wait_log(&["autoconfig.example.org", "the CA refuses a web name"]);
    // The answers are gone with their orders.
    let challenges = system.directory.path().join("data/web/challenges");
    wait_until("the end of the orders", || {
        fs::read_dir(&challenges)
            .expect("the directory")
            .next()
            .is_none()
    });
    let listed = run(Command::new("ls").arg(system.directory.path().join("data/acme/names")));
    assert_eq!(listed, "example.org.pem\n");
}

/// Pebble, BIND with the names of a host and a policy, and a system with these settings of ACME, whose web server has one port alone.
/// The test ends when the certificates of the host and of the policy are shown.
fn order(
    settings: &[(&str, &str)],
    by_name_server: bool,
    then: impl FnOnce(&System, SocketAddr, &Named),
) {
    let (Some(pebble), Some(_), Some(_)) = (pebble(), program("named"), program("openssl")) else {
        return;
    };
    let authority = Authority::new();
    let zone = ["mx", "mta-sts"].map(|name| format!("{name}.example.org. IN A 127.0.0.1"));
    let zones = tempfile::tempdir().expect("a directory");
    let served = BTreeMap::from([("org", (Signing::None, zone.join("\n")))]);
    let Some(named) = Named::start(zones.path(), &served) else {
        return;
    };
    let https = free_address();
    let ports = [free_address().port(), https.port()];
    let ca = Ca::start(&pebble, &authority, ports, named.address);
    let mut options = Options::default()
        .set("acme.directory", &format!("\"https://{}/dir\"", ca.address))
        .set("acme.root", &quoted(&authority.ca))
        .set("web.https", &format!("[\"{https}\"]"))
        .set("web.http", "[]")
        .record("mx.example.org A 127.0.0.1")
        .record("mta-sts.example.org A 127.0.0.1");
    for (key, value) in settings {
        options = options.set(key, value);
    }
    if by_name_server {
        options = options.set("acme.dns_server", &format!("\"{}\"", named.address));
    }
    let system = System::start(&options);
    for name in ["mx.example.org", "mta-sts.example.org"] {
        wait_until(name, || shown(https, name).contains(&format!("DNS:{name}")));
    }
    then(&system, https, &named);
}

/// The web server has port 443, and no other listener was possible there.
#[test]
fn a_certificate_is_ordered_by_a_handshake_with_the_web_server() {
    let settings = [
        ("acme.challenge", "\"tls-alpn-01\""),
        ("acme.tls_listen", "[]"),
    ];
    order(&settings, false, |system, https, _| {
        let certificates = system.directory.path().join("data/web/certificates");
        wait_until("the end of the orders", || {
            fs::read_dir(&certificates)
                .expect("the directory")
                .next()
                .is_none()
        });
        // Without an open challenge the protocol of challenges shows nothing, not even the certificate of the name.
        let asked = |protocol: &str| {
            let mut client = Command::new("openssl");
            let address = https.to_string();
            client.args(["s_client", "-connect", &address, "-alpn", protocol]);
            client.args(["-servername", "mx.example.org"]);
            let output = output_of(&mut client, "Q\n");
            String::from_utf8_lossy(&output.stdout).contains("BEGIN CERTIFICATE")
        };
        assert!(asked("http/1.1"));
        assert!(!asked("acme-tls/1"));
    });
}

#[test]
fn a_certificate_is_ordered_by_records_of_the_name_server() {
    let settings = [
        ("acme.challenge", "\"dns-01\""),
        ("acme.dns_wait", "\"0s\""),
    ];
    order(&settings, true, |_, _, named| {
        if program("dig").is_none() {
            return;
        }
        wait_until("the removal of the records", || {
            ["mx", "mta-sts"].iter().all(|name| {
                let mut dig = Command::new("dig");
                dig.args(["@127.0.0.1", "-p", &named.address.port().to_string()]);
                dig.args([
                    "+short",
                    "TXT",
                    &format!("_acme-challenge.{name}.example.org"),
                ]);
                run(&mut dig).trim().is_empty()
            })
        });
    });
}
