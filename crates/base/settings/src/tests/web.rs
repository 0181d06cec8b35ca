//! The section of the web server.

use super::parse;
use crate::web::StsMode;

const CERTIFICATE: &str = "[tls]\ncertificate = \"c\"\nkey = \"k\"\n";

#[test]
fn an_empty_section_serves_the_standard_ports_under_the_host_name() {
    let settings = parse(&format!("{CERTIFICATE}[web]\n")).unwrap();
    let web = settings.web.unwrap();
    assert_eq!(web.https, ["[::]:443".parse().unwrap()]);
    assert_eq!(web.http, ["[::]:80".parse().unwrap()]);
    assert_eq!(web.host, "mx.example.org");
    assert_eq!(web.mx, ["mx.example.org"]);
    assert_eq!(web.mta_sts, Some(StsMode::Testing));
    assert_eq!(web.mta_sts_max_age.as_millis(), 604_800_000);
    assert!(parse(CERTIFICATE).unwrap().web.is_none());
}

#[test]
fn port_80_is_that_of_the_gateway_only_without_a_web_server() {
    let listen = |rest: &str| {
        let settings = parse(&format!("[acme]\n{rest}")).unwrap();
        settings.acme.unwrap().listen
    };
    let all = "[::]:80".parse().unwrap();
    assert_eq!(listen(""), [all]);
    assert_eq!(listen("[web]\n"), []);
    assert_eq!(listen("[web]\nhttp = []\n"), [all]);
    let own = listen("listen = [\"127.0.0.1:81\"]\n[web]\n");
    assert_eq!(own, ["127.0.0.1:81".parse().unwrap()]);
}

#[test]
fn https_needs_a_certificate_and_the_section_an_address() {
    let error = |text: &str| parse(text).unwrap_err().to_string();
    assert!(error("[web]\n").contains("web.https: needs a certificate"));
    assert!(parse("[web]\nhttps = []\n").is_ok());
    let none = error("[web]\nhttps = []\nhttp = []\n");
    assert!(none.contains("expected an address"), "{none}");
    let twice = error(&format!(
        "{CERTIFICATE}[metrics]\nweb = \"[::]:443\"\n[web]\n"
    ));
    assert!(twice.contains("is listened on twice"), "{twice}");
    let long = error(&format!("{CERTIFICATE}[web]\nmta_sts_max_age = \"400d\"\n"));
    assert!(long.contains("web.mta_sts_max_age"), "{long}");
}
