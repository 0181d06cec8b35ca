//! Requests of Outlook to the web server.

use vere_discovery::autodiscover::{REQUEST_OCTETS_MAX, address, answer, refusal};
use vere_discovery::{ADDRESS_OCTETS_MAX, Access, Security, Services};

/// Seeds of [`run`].
pub(crate) const SEEDS: &[&[u8]] = &[
    b"<Autodiscover><Request><EMailAddress>a@example.org</EMailAddress></Request></Autodiscover>",
    b"<?xml version=\"1.0\"?><a:Autodiscover xmlns:a=\"x\"><a:Request><a:EMailAddress>o&apos;n&#x40;example.org</a:EMailAddress>\
      <AcceptableResponseSchema>http://schemas.microsoft.com/exchange/autodiscover/outlook/responseschema/2006a\
      </AcceptableResponseSchema></a:Request></a:Autodiscover>",
    b"<!DOCTYPE a [<!ENTITY b \"c\">]><a><EMailAddress>&b;@example.org</EMailAddress></a>",
    b"<a><EMailAddress><![CDATA[a&b@example.org]]></EMailAddress></a>",
];

/// An address that was read is short, has no characters of control, and is read again out of the answer; an error has an answer.
pub(crate) fn run(octets: &[u8]) {
    let services = Services {
        host: "mail.example.org".to_owned(),
        imap: vec![Access {
            port: 993,
            security: Security::Tls,
        }],
        smtp: Vec::new(),
    };
    match address(octets) {
        Err(error) => assert!(refusal(&error).contains("<ErrorCode>60"), "{error}"),
        Ok(user) => {
            assert!(octets.len() <= REQUEST_OCTETS_MAX);
            assert!(user.as_str().len() <= ADDRESS_OCTETS_MAX);
            assert!(!user.as_str().chars().any(char::is_control));
            // The answer escapes the address, as a request has to.
            let text = answer(&user, &services);
            let text = text.replace("LoginName>", "EMailAddress>");
            assert_eq!(address(text.as_bytes()).as_ref(), Ok(&user), "{text}");
        }
    }
}
