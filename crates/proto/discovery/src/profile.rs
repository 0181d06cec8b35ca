//! The configuration profile of Apple's systems: a property list with one mail account (payload `com.apple.mail.managed`).

use std::fmt::Write as _;
use std::io;

use sha2::{Digest as _, Sha256};

use crate::address::Address;
use crate::services::{Access, Services};
use crate::xml::{Xml, empty, of_type, text, within};

/// The media type of a profile.
pub const MEDIA_TYPE: &str = "application/x-apple-aspen-config";
/// The name of the file for browsers.
pub const FILE_NAME: &str = "mail.mobileconfig";

const DOCUMENT_TYPE: &str = "plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\"";

/// Writes the profile for a user; `None` where mail can be read or sent by no port. The password is asked for by the system.
#[must_use]
pub fn write(user: &Address, services: &Services) -> Option<String> {
    let (imap, smtp) = (services.imap.first()?, services.smtp.first()?);
    let domain = user.domain().as_str();
    let identifier: Vec<&str> = domain.rsplit('.').collect();
    let identifier = format!("{}.mail", identifier.join("."));
    let uuid = |label: &str| uuid(&[label, &services.host, user.as_str()]);
    Some(of_type(
        Some(DOCUMENT_TYPE),
        "plist",
        &[("version", "1.0")],
        |xml| {
            within(xml, "dict", &[], |xml| {
                text(xml, "key", "PayloadContent")?;
                within(xml, "array", &[], |xml| {
                    within(xml, "dict", &[], |xml| {
                        account(xml, user)?;
                        side(xml, "Incoming", (user, &services.host), imap)?;
                        side(xml, "Outgoing", (user, &services.host), smtp)?;
                        truth(xml, "OutgoingPasswordSameAsIncomingPassword")?;
                        let identifier = format!("{identifier}.account");
                        payload(xml, "com.apple.mail.managed", &identifier, &uuid("account"))
                    })
                })?;
                string(xml, "PayloadDisplayName", &format!("Mail of {domain}"))?;
                string(xml, "PayloadOrganization", domain)?;
                let note = format!("Sets up the mail account {user}.");
                string(xml, "PayloadDescription", &note)?;
                payload(xml, "Configuration", &identifier, &uuid("profile"))
            })
        },
    ))
}

fn account(xml: &mut Xml, user: &Address) -> io::Result<()> {
    string(xml, "EmailAccountType", "EmailTypeIMAP")?;
    string(xml, "EmailAccountDescription", user.as_str())?;
    string(xml, "EmailAddress", user.as_str())
}

fn side(
    xml: &mut Xml,
    side: &str,
    (user, host): (&Address, &str),
    access: &Access,
) -> io::Result<()> {
    let key = |name: &str| format!("{side}MailServer{name}");
    string(xml, &key("Authentication"), "EmailAuthPassword")?;
    string(xml, &key("HostName"), host)?;
    text(xml, "key", &key("PortNumber"))?;
    text(xml, "integer", &access.port.to_string())?;
    // The system finds out whether TLS begins at once.
    truth(xml, &key("UseSSL"))?;
    string(xml, &key("Username"), user.as_str())
}

fn payload(xml: &mut Xml, kind: &str, identifier: &str, uuid: &str) -> io::Result<()> {
    string(xml, "PayloadType", kind)?;
    string(xml, "PayloadIdentifier", identifier)?;
    string(xml, "PayloadUUID", uuid)?;
    text(xml, "key", "PayloadVersion")?;
    text(xml, "integer", "1")
}

fn string(xml: &mut Xml, key: &str, value: &str) -> io::Result<()> {
    text(xml, "key", key)?;
    text(xml, "string", value)
}

fn truth(xml: &mut Xml, key: &str) -> io::Result<()> {
    text(xml, "key", key)?;
    empty(xml, "true")
}

/// An identifier of version 8 (RFC 9562 section 5.8) out of texts: the same account replaces its profile instead of adding another.
fn uuid(of: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in of {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    let hash: [u8; 32] = hash.finalize().into();
    let mut text = String::new();
    for (place, octet) in hash.iter().take(16).enumerate() {
        if matches!(place, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        let octet = match place {
            6 => octet & 0x0f | 0x80,
            8 => octet & 0x3f | 0x80,
            _ => *octet,
        };
        // Writing to a string cannot fail.
        let _ = write!(text, "{octet:02X}");
    }
    text
}
