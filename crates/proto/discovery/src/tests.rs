//! The texts, and hostile requests.

use std::time::Duration;

use vere_ports::directory::DomainName;
use vere_units::Timestamp;

use super::names::{WebName, of_domain};
use super::page::{self, Page};
use super::policy::Policy;
use super::{Access, Address, RequestError, Security, Services};
use super::{autoconfig, autodiscover, profile, security};

fn services() -> Services {
    let of = |port, security| Access { port, security };
    Services {
        host: "mail.example.org".to_owned(),
        imap: vec![of(993, Security::Tls), of(143, Security::StartTls)],
        smtp: vec![of(465, Security::Tls)],
    }
}

fn domain() -> DomainName {
    DomainName::parse("example.org").unwrap()
}

fn request(inner: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?><Autodiscover xmlns=\"x\"><Request>{inner}</Request></Autodiscover>"
    )
}

#[test]
fn thunderbird_gets_each_port_and_its_encryption() {
    let text = autoconfig::write(&domain(), &services());
    let order: Vec<_> = ["<port>993</port>", "<port>143</port>", "<port>465</port>"]
        .iter()
        .map(|part| text.find(part).expect(part))
        .collect();
    assert!(order.is_sorted(), "{text}");
    assert!(text.contains("<emailProvider id=\"example.org\">"));
    assert!(text.contains("<socketType>STARTTLS</socketType>"));
    assert!(text.contains("<username>%EMAILADDRESS%</username>"));
}

#[test]
fn outlook_gets_the_address_that_it_gave() {
    let outlook = "http://schemas.microsoft.com/exchange/autodiscover/outlook/responseschema/2006a";
    let body = request(&format!(
        "<EMailAddress>o&apos;neill&#64;example.org</EMailAddress>\
         <AcceptableResponseSchema>{outlook}</AcceptableResponseSchema>"
    ));
    let user = autodiscover::address(body.as_bytes()).unwrap();
    assert_eq!(user.as_str(), "o'neill@example.org");
    let text = autodiscover::answer(&user, &services());
    assert!(text.contains("<Type>IMAP</Type>"), "{text}");
    assert!(
        text.contains("<LoginName>o&apos;neill@example.org</LoginName>"),
        "{text}"
    );
    // The schema is optional, and another one has an answer of its own.
    let bare = request("<EMailAddress>a@example.org</EMailAddress>");
    assert!(autodiscover::address(bare.as_bytes()).is_ok());
    let mobile = request(
        "<EMailAddress>a@example.org</EMailAddress><AcceptableResponseSchema>mobilesync</AcceptableResponseSchema>",
    );
    let error = autodiscover::address(mobile.as_bytes()).unwrap_err();
    assert_eq!(error, RequestError::Schema);
    assert!(autodiscover::refusal(&error).contains("<ErrorCode>601</ErrorCode>"));
}

#[test]
fn requests_with_bombs_or_without_an_address_are_refused() {
    let bomb = "<!DOCTYPE a [<!ENTITY b \"cc\"><!ENTITY d \"&b;&b;\">]><a>&d;</a>";
    assert_eq!(
        autodiscover::address(bomb.as_bytes()),
        Err(RequestError::DocumentType)
    );
    let deep = "<a>".repeat(1_000);
    assert_eq!(
        autodiscover::address(deep.as_bytes()),
        Err(RequestError::Deep(16))
    );
    let long = vec![b' '; autodiscover::REQUEST_OCTETS_MAX + 1];
    assert!(matches!(
        autodiscover::address(&long),
        Err(RequestError::Long(_))
    ));
    for inner in [
        "",
        "<EMailAddress>nobody</EMailAddress>",
        "<EMailAddress>@example.org</EMailAddress>",
        "<EMailAddress>a b@example.org</EMailAddress>",
    ] {
        let refused = autodiscover::address(request(inner).as_bytes());
        assert_eq!(refused, Err(RequestError::NoAddress), "{inner}");
    }
    for broken in ["", "{}", "<a>", "<a>&unknown;</a>", "<a></b>"] {
        assert!(
            autodiscover::address(broken.as_bytes()).is_err(),
            "{broken}"
        );
    }
}

#[test]
fn version_2_leads_to_the_first_and_to_nothing_else() {
    let found = autodiscover::of_protocol("autodiscoverv1", "autodiscover.example.org");
    assert!(found.is_known);
    assert!(
        found
            .text
            .contains("https://autodiscover.example.org/autodiscover/autodiscover.xml")
    );
    let other = autodiscover::of_protocol("ActiveSync", "x");
    assert!(!other.is_known && other.text.contains("InvalidProtocol"));
}

#[test]
fn an_account_has_the_same_profile_each_time() {
    let user = Address::parse("a&b@example.org").unwrap();
    let text = profile::write(&user, &services()).unwrap();
    assert!(
        text.contains("<string>a&amp;b@example.org</string>"),
        "{text}"
    );
    assert!(text.contains("<integer>993</integer>") && text.contains("<integer>465</integer>"));
    assert!(text.contains("<string>org.example.mail</string>"));
    assert_eq!(profile::write(&user, &services()).unwrap(), text);
    let uuids: Vec<&str> = text.split("PayloadUUID</key>").skip(1).collect();
    assert_eq!(uuids.len(), 2);
    assert_ne!(uuids[0].get(..60), uuids[1].get(..60));
    let nothing = Services {
        smtp: Vec::new(),
        ..services()
    };
    assert_eq!(profile::write(&user, &nothing), None);
}

#[test]
fn the_policy_has_a_line_for_each_host() {
    let mx = ["mx.example.org".to_owned()];
    let policy = |mode| Policy {
        mode,
        max_age: Duration::from_secs(604_800),
        mx: &mx,
    };
    assert_eq!(
        policy("testing").write(),
        "version: STSv1\r\nmode: testing\r\nmx: mx.example.org\r\nmax_age: 604800\r\n"
    );
}

#[test]
fn security_txt_ends_at_midnight_in_90_days() {
    // 2026-11-30T10:00:00Z
    let now = Timestamp::from_millis(1_796_032_800_000);
    let text = security::write(
        "mail.example.org",
        &["mailto:s@example.org".to_owned()],
        now,
    );
    assert_eq!(
        text,
        "Contact: mailto:s@example.org\r\nExpires: 2027-02-28T00:00:00.000Z\r\n\
         Canonical: https://mail.example.org/.well-known/security.txt\r\n"
    );
}

#[test]
fn web_names_belong_to_a_local_domain_or_to_none() {
    let is_local =
        |name: &DomainName| matches!(name.as_str(), "example.org" | "autoconfig.example.net");
    let of = |host: &str| {
        let name = WebName::parse(host)?;
        name.domain(is_local).map(ToString::to_string)
    };
    assert_eq!(
        of("MTA-STS.example.org:443").as_deref(),
        Some("example.org")
    );
    assert_eq!(of("example.org").as_deref(), Some("example.org"));
    // A local domain may have such a name itself.
    assert_eq!(
        of("autoconfig.example.net").as_deref(),
        Some("autoconfig.example.net")
    );
    for host in [
        "other.example.org",
        "mta-sts.example.com",
        "127.0.0.1",
        "[::1]:443",
        "",
        "a b",
        "mta-sts.",
    ] {
        assert_eq!(of(host), None, "{host}");
    }
    assert_eq!(of_domain(&domain())[0], "mta-sts.example.org");
}

#[test]
fn the_page_has_no_script_and_escapes_its_title() {
    let services = services();
    let page = Page {
        title: "<x>",
        has_files: true,
        has_policy: true,
        services: &services,
    };
    let text = page::write(&page);
    assert!(
        text.contains("&lt;x&gt;") && !text.contains("<script"),
        "{text}"
    );
    assert!(text.contains("<td>993</td><td>SSL/TLS</td>"));
    let policy = page::content_security_policy();
    assert!(
        policy.starts_with("default-src 'none'; style-src 'sha256-"),
        "{policy}"
    );
}
