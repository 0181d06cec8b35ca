//! The records of settings.

use super::*;

const SMALL: &str = "version = 1\nhostname = \"mail.example.org\"\n\
    [submission]\nlisten = [\"[::]:587\"]\n[submissions]\nlisten = [\"[::]:465\"]\n\
    [imaps]\nlisten = [\"[::]:993\"]\n[imap]\nlisten = [\"127.0.0.1:143\"]\n";

/// A certificate from a file, without which clients could not log in.
const TLS: &str = "[tls]\ncertificate = \"c\"\nkey = \"k\"\n";

fn lines_of(settings: &str, addresses: &[IpAddr], has_reports: bool) -> Vec<String> {
    let settings = Settings::parse(settings, "test").expect("settings");
    let place = Place {
        settings: &settings,
        domain: "example.org",
        addresses,
        keys: &[],
        has_reports,
        ttl: 300,
    };
    let spaced = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    place.block().lines().map(spaced).collect()
}

#[test]
fn the_block_is_a_zone_file_with_the_addresses_of_this_machine() {
    let addresses = ["198.51.100.7", "2001:db8::7"].map(|text| text.parse().expect("an address"));
    let settings = format!("{SMALL}[acme]\n");
    assert_eq!(
        lines_of(&settings, &addresses, true),
        [
            "mail.example.org. 300 IN A 198.51.100.7",
            "mail.example.org. 300 IN AAAA 2001:db8::7",
            "mail.example.org. 300 IN CAA 0 issue \"letsencrypt.org\"",
            "example.org. 300 IN MX 10 mail.example.org.",
            "example.org. 300 IN TXT \"v=spf1 mx -all\"",
            "_dmarc.example.org. 300 IN TXT \"v=DMARC1; p=none; rua=mailto:reports@example.org\"",
            "_smtp._tls.example.org. 300 IN TXT \"v=TLSRPTv1; rua=mailto:reports@example.org\"",
            "_submissions._tcp.example.org. 300 IN SRV 0 1 465 mail.example.org.",
            "_submission._tcp.example.org. 300 IN SRV 0 1 587 mail.example.org.",
            "_imaps._tcp.example.org. 300 IN SRV 0 1 993 mail.example.org.",
        ]
    );
}

#[test]
fn an_unknown_address_is_a_comment_and_nobody_is_asked_for_reports_that_nobody_reads() {
    let lines = lines_of(&format!("{SMALL}{TLS}"), &[], false);
    assert!(
        lines[0].starts_with("; mail.example.org. 300 IN A (the public"),
        "{lines:?}"
    );
    let text = lines.join("\n");
    assert!(text.contains("\"v=DMARC1; p=none\""), "{text}");
    for absent in ["CAA", "TLSRPT", "rua=", "mta-sts", "autoconfig"] {
        assert!(!text.contains(absent), "{absent} in {text}");
    }
}

#[test]
fn a_host_in_another_zone_is_a_comment_in_this_one() {
    let settings = format!("{SMALL}{TLS}").replace("mail.example.org", "mx.notexample.org");
    let address = "198.51.100.7".parse().expect("an address");
    let lines = lines_of(&settings, &[address], false);
    assert_eq!(
        lines[0],
        "; in another zone: mx.notexample.org. 300 IN A 198.51.100.7"
    );
    assert!(lines[1].starts_with("example.org. 300 IN MX 10 mx.notexample.org."));
}

#[test]
fn names_of_the_web_server_come_with_the_web_server() {
    let web = |rest: &str| {
        let settings = format!("{SMALL}{TLS}[web]\n{rest}");
        lines_of(&settings, &[], false).join("\n")
    };
    let text = web("");
    for expected in [
        "mta-sts.example.org. 300 IN CNAME mail.example.org.",
        "autoconfig.example.org. 300 IN CNAME mail.example.org.",
        "autodiscover.example.org. 300 IN CNAME mail.example.org.",
        "_autodiscover._tcp.example.org. 300 IN SRV 0 1 443 mail.example.org.",
        "_mta-sts.example.org. 300 IN TXT \"v=STSv1; id=",
    ] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
    assert_eq!(text, web(""), "the same policy has the same id");
    let id = |text: &str| text.split("id=").nth(1).map(str::to_owned);
    assert_ne!(id(&text), id(&web("mta_sts = \"enforce\"\n")));
    assert_ne!(id(&text), id(&web("mx = [\"mx2.example.org\"]\n")));
    assert!(!web("mta_sts = \"off\"\n").contains("mta-sts"));
    assert!(!web("https = []\n").contains("autoconfig"));
}
