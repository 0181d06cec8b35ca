//! The files of a demo system: settings, certificates, accounts.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use vere_directory::Directory;
use vere_ports::directory::{AccountName, DomainName};
use vere_settings::Settings;
use vere_units::Secret;

use crate::account::new_credentials;
use crate::quickstart::files::write_file;
use vere_process::failure::Failure;

/// The domain of the demo's own mailboxes.
pub(super) const DOMAIN: &str = "demo.test";
/// The users of the demo.
pub(super) const USERS: [&str; 2] = ["alice", "bob"];
/// The password of both.
pub(super) const PASSWORD: &str = "demo";

/// Names and addresses in the demo's certificate.
const CERTIFICATE_NAMES: [&str; 8] = [
    "mx.demo.test",
    "demo.test",
    "mta-sts.demo.test",
    "autoconfig.demo.test",
    "autodiscover.demo.test",
    "localhost",
    "127.0.0.1",
    "::1",
];

/// Ports before the offset, in the order of [`config_text`].
const PORTS: [u16; 15] = [
    2525, 2587, 2465, 2143, 2993, 2424, 2053, 2102, 2443, 2480, 2080, 2081, 2600, 2601, 2526,
];

/// The demo's block list.
const BLOCK_LIST: &str = "\
# A list in the format ip4set of rbldnsd. Others: docs/reference/config.md, [[dnsbl.zone]].
:127.0.0.2:Listed for the demo: $
192.0.2.0/25
198.51.100.7
";

/// Where the sink keeps mail.
pub(super) fn sink_folder(dir: &Path) -> PathBuf {
    dir.join("sink")
}

/// Writes missing settings and certificates below `dir`; returns the path of the settings.
///
/// # Errors
/// When a file cannot be written, or a port plus `offset` is out of range.
pub(super) fn write(dir: &Path, offset: u16) -> Result<PathBuf, Failure> {
    fs::create_dir_all(dir).map_err(|error| failed(dir, &error))?;
    let dir = dir.canonicalize().map_err(|error| failed(dir, &error))?;
    let config = dir.join("vere.toml");
    if !config.exists() {
        write_file(&config, &config_text(offset)?, 0o644)?;
    }
    let list = dir.join("block-list");
    if !list.exists() {
        write_file(&list, BLOCK_LIST, 0o644)?;
    }
    if !dir.join("server.pem").exists() || !dir.join("ca.pem").exists() {
        write_certificates(&dir)?;
    }
    Ok(config)
}

fn failed(path: &Path, error: &dyn std::error::Error) -> Failure {
    Failure::new(format!("cannot write {}: {error}", path.display()))
}

fn ports(offset: u16) -> Result<[u16; PORTS.len()], Failure> {
    let mut ports = PORTS;
    for port in &mut ports {
        *port = port
            .checked_add(offset)
            .ok_or_else(|| Failure::new(format!("port {port} plus {offset} is no port")))?;
    }
    Ok(ports)
}

/// The sections of the server of block lists, at this port.
fn list_text(port: u16) -> String {
    format!(
        r#"# A block list: dig @127.0.0.1 -p {port} 7.2.0.192.bl.demo.test A
[dnsbl]
listen = ["127.0.0.1:{port}"]
[[dnsbl.zone]]
name = "bl.demo.test"
data = ["ip4set:block-list"]

"#
    )
}

/// The section of the web server, at these ports.
fn web_text(https: u16, http: u16) -> String {
    format!(
        r#"# Settings of mail programs and the MTA-STS policy: https://autoconfig.demo.test, https://mta-sts.demo.test
[web]
https = ["127.0.0.1:{https}"]
http = ["127.0.0.1:{http}"]

"#
    )
}

/// The section of the MTA of X.400, at this port.
fn mta_text(port: u16) -> String {
    format!(
        r#"# An MTA of X.400: vere x400 send --to 'S=Alice; P=Demo; A=Test; C=GB'
[x400]
listen = ["127.0.0.1:{port}"]
mta_name = "demo"
domain = "C=GB; A=Test; P=Demo"
[[x400.route]]
address = "S=Alice; P=Demo; A=Test; C=GB"
to = "store:alice@demo.test"
[[x400.route]]
address = "S=Bob; P=Demo; A=Test; C=GB"
to = "file:bob"                      # data/x400/users/bob
[[x400.route]]
address = "P=Demo; A=Test; C=GB"
to = "unknown"

"#
    )
}

fn config_text(offset: u16) -> Result<String, Failure> {
    let [
        smtp,
        submission,
        submissions,
        imap,
        imaps,
        lmtp,
        dnsbl,
        x400,
        https,
        http,
        metrics,
        metrics_front,
        node_a,
        node_b,
        sink,
    ] = ports(offset)?;
    let (list, web, mta) = (list_text(dnsbl), web_text(https, http), mta_text(x400));
    Ok(format!(
        r#"# The demo of `make run`. Change it as you like: it is written once. `./vere reload`
# puts most changes in force. docs/reference/config.md explains every key.
version = 1
hostname = "mx.demo.test"
data = "data"

[smtp]
listen = ["127.0.0.1:{smtp}"]
# A front answers there, and workers in a sandbox receive the messages.
[front]
# Messages of strangers are authenticated, scored and explained: vere explain ID
[judging]
[submission]
listen = ["127.0.0.1:{submission}"]
[submissions]
listen = ["127.0.0.1:{submissions}"]
[imap]
listen = ["127.0.0.1:{imap}"]
[imaps]
listen = ["127.0.0.1:{imaps}"]
[lmtp]
listen = ["127.0.0.1:{lmtp}"]

{list}{web}{mta}[delivery]
local = "store"                      # "maildir" files mail below data/maildir instead

[relay]
networks = ["127.0.0.0/8"]           # this machine may send anywhere, which here is the sink
[auth]
plaintext_networks = ["127.0.0.0/8"] # passwords without TLS, on this machine only
[tls]
certificate = "server.pem"
key = "server.key"

[metrics]
listen = "127.0.0.1:{metrics}"
front = "127.0.0.1:{metrics_front}"
# Every message is in the memory and the log of both before it is acknowledged.
[[spool.node]]
name = "a"
listen = "127.0.0.1:{node_a}"
[[spool.node]]
name = "b"
listen = "127.0.0.1:{node_b}"

# Mail for other domains goes into the sink's folder instead of the internet.
[[route]]
domain = "*"
next_hop = "127.0.0.1:{sink}"
tls = "off"
"#
    ))
}

/// Creates a CA, signs a certificate, and forgets the key of the CA: nobody can sign another certificate for the
/// users who trust the demo.
fn write_certificates(dir: &Path) -> Result<(), Failure> {
    let (year, wrong) = (this_year()?, |error: rcgen::Error| {
        Failure::new(error.to_string())
    });
    let dated = |names: &[&str]| -> Result<CertificateParams, Failure> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).map_err(wrong)?;
        params.not_before = date_time_ymd(year - 1, 1, 1);
        params.not_after = date_time_ymd(year + 10, 1, 1);
        Ok(params)
    };
    let mut authority = dated(&[])?;
    authority
        .distinguished_name
        .push(DnType::CommonName, "Veredarius demo CA");
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let authority_key = KeyPair::generate().map_err(wrong)?;
    let authority_certificate = authority.self_signed(&authority_key).map_err(wrong)?;
    let issuer = Issuer::new(authority, authority_key);

    let mut server = dated(&CERTIFICATE_NAMES)?;
    server
        .distinguished_name
        .push(DnType::CommonName, "mx.demo.test");
    server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    server.use_authority_key_identifier_extension = true;
    let server_key = KeyPair::generate().map_err(wrong)?;
    let certificate = server.signed_by(&server_key, &issuer).map_err(wrong)?;

    write_file(&dir.join("server.key"), &server_key.serialize_pem(), 0o600)?;
    write_file(&dir.join("server.pem"), &certificate.pem(), 0o644)?;
    write_file(&dir.join("ca.pem"), &authority_certificate.pem(), 0o644)
}

/// The year of the clock, by the mean length of a year: a day off does not matter.
fn this_year() -> Result<i32, Failure> {
    const SECONDS_PER_YEAR: u64 = 31_556_952;
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_err(|_| Failure::new("the clock of this machine stands before 1970"))?;
    i32::try_from(1970 + since.as_secs() / SECONDS_PER_YEAR)
        .ok()
        .filter(|year| *year < 9000)
        .ok_or_else(|| Failure::new("the clock of this machine is wrong"))
}

/// Adds the demo's domain and accounts, unless the domain has accounts already.
///
/// # Errors
/// When the directory cannot be read or changed.
pub(super) fn fill_directory(settings: &Settings) -> Result<(), Failure> {
    let store = vere_disk::directory::create(&settings.directory.store)?;
    let domain = DomainName::parse(DOMAIN)?;
    if store.count(&domain)?.0 > 0 {
        return Ok(());
    }
    let directory = Directory::new(store, settings.directory.subaddress_separator);
    if !directory.is_local_domain(DOMAIN)? {
        directory.add_domain(domain.clone(), None)?;
    }
    for user in USERS {
        let name = AccountName::new(user, domain.clone())?;
        let password = new_credentials(&Secret::new(PASSWORD.to_owned()))?;
        directory.add_account(name, Some(password))?;
    }
    Ok(())
}
