//! The section of certificates from a certificate authority.

use super::parse;
use crate::acme::AcmeChallenge;

#[test]
fn the_challenge_decides_which_ports_are_opened() {
    let acme = |rest: &str| parse(&format!("[acme]\n{rest}")).unwrap().acme.unwrap();
    let http = acme("");
    assert_eq!(http.challenge, AcmeChallenge::Http01);
    assert_eq!(
        (http.listen.len(), http.tls_listen.len()),
        (1, 0),
        "{http:?}"
    );
    let tls = acme("challenge = \"tls-alpn-01\"\n");
    assert_eq!(tls.tls_listen, ["[::]:443".parse().unwrap()]);
    assert_eq!(tls.listen, []);
    // The web server shows the certificates of challenges at its own port.
    let web = acme("challenge = \"tls-alpn-01\"\n[web]\n");
    assert_eq!(web.tls_listen, []);
    let web = acme("challenge = \"tls-alpn-01\"\n[web]\nhttps = [\"[::]:8443\"]\n");
    assert_eq!(web.tls_listen, ["[::]:443".parse().unwrap()]);
    let dns = acme("challenge = \"dns-01\"\ndns_server = \"192.0.2.53:53\"\ndns_key = \"key\"\n");
    assert_eq!((dns.listen.len(), dns.tls_listen.len()), (0, 0));
    assert_eq!(dns.dns.server, Some("192.0.2.53:53".parse().unwrap()));
    assert_eq!(dns.dns.wait.as_millis(), 10_000);
}

#[test]
fn records_have_one_publisher_and_the_web_server_has_its_port_alone() {
    let error = |rest: &str| parse(&format!("[acme]\n{rest}")).unwrap_err().to_string();
    for (rest, expected) in [
        (
            "challenge = \"dns-01\"\n",
            "needs acme.dns_server or acme.dns_hook",
        ),
        (
            "dns_server = \"192.0.2.53:53\"\ndns_hook = \"/bin/hook\"\n",
            "found both",
        ),
        ("dns_key = \"key\"\n", "acme.dns_key: needs acme.dns_server"),
        (
            "dns_zone = \"a.b\"\n",
            "acme.dns_zone: needs acme.dns_server",
        ),
        (
            "challenge = \"tls-alpn-01\"\ntls_listen = [\"[::]:443\"]\n[web]\n",
            "is listened on twice",
        ),
    ] {
        let error = error(rest);
        assert!(error.contains(expected), "{expected} in {error}");
    }
}
