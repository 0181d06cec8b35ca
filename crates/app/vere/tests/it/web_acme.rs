//! Certificates by ACME where a web server has port 80: pebble as the CA, BIND as its name server.

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

/// A CA that looks for challenges at a port whatever the name.
struct Ca {
    child: Child,
    address: SocketAddr,
}

impl Ca {
    fn start(program: &Path, authority: &Authority, http: SocketAddr, names: SocketAddr) -> Self {
        let own = authority.sign("pebble", &["127.0.0.1"]);
        let address = free_address();
        let config = json!({"pebble": {
            "listenAddress": address.to_string(),
            "certificate": own.certificate,
            "privateKey": own.key,
            "httpPort": http.port(),
            "tlsPort": free_address().port(),
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
    let ca = Ca::start(&pebble, &authority, http, named.address);
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
