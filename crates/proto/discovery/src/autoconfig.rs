//! The configuration file of Thunderbird, which other programs read too.
//!
//! A program asks for `/mail/config-v1.1.xml` at `autoconfig.DOMAIN` and for `/.well-known/autoconfig/mail/config-v1.1.xml` at the
//! domain, each with the address of the user in `emailaddress=`.

use std::io;

use vere_ports::directory::DomainName;

use crate::services::{Access, Security, Services};
use crate::xml::{Xml, document, text, within};

/// The media type of the file.
pub const MEDIA_TYPE: &str = "application/xml; charset=utf-8";

/// Writes the file for a domain.
#[must_use]
pub fn write(domain: &DomainName, services: &Services) -> String {
    let domain = domain.as_str();
    document("clientConfig", &[("version", "1.1")], |xml| {
        within(xml, "emailProvider", &[("id", domain)], |xml| {
            text(xml, "domain", domain)?;
            text(xml, "displayName", domain)?;
            text(xml, "displayShortName", domain)?;
            for access in &services.imap {
                server(xml, ("incomingServer", "imap"), &services.host, access)?;
            }
            for access in &services.smtp {
                server(xml, ("outgoingServer", "smtp"), &services.host, access)?;
            }
            Ok(())
        })
    })
}

fn server(
    xml: &mut Xml,
    (name, kind): (&str, &str),
    host: &str,
    access: &Access,
) -> io::Result<()> {
    within(xml, name, &[("type", kind)], |xml| {
        text(xml, "hostname", host)?;
        text(xml, "port", &access.port.to_string())?;
        let socket = match access.security {
            Security::Tls => "SSL",
            Security::StartTls => "STARTTLS",
        };
        text(xml, "socketType", socket)?;
        // The password travels within TLS; any program can do so.
        text(xml, "authentication", "password-cleartext")?;
        // The program puts the address of the user in.
        text(xml, "username", "%EMAILADDRESS%")
    })
}
