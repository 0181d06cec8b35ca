//! A received message as octets: another process than the one that has received the message takes it.
//!
//! Format version 1; the types are those of the [module above](super). The text of the message follows the head and
//! has no length of its own.
//!
//! ```text
//! u8       version = 1
//! opt str  argument of HELO or EHLO, in lower case
//! sock     address of the client
//! sock     our address
//! opt str  name in the DNS
//! opt      TLS: str version, str cipher suite, opt str server name
//! opt str  account
//! u8       protocol: 1 ESMTP, 2 SMTPUTF8, 4 TLS, 8 authenticated
//! str      MAIL command without CRLF
//! u16      number of recipients, from 1 to 1,000, each:
//! str        RCPT command without CRLF
//! ```

use super::error::HandoverError;
use super::octets::{ACCOUNT, NAME, Reader, put_address, put_command, put_option, put_text};
use super::wire::{helo, mail, put_recipients, put_tls, recipients, tls};
use crate::server::message::{Message, Protocol, SessionInfo};

const VERSION: u8 = 1;
const PROTOCOL: &str = "protocol";

const ESMTP: u8 = 1;
const SMTPUTF8: u8 = 2;
const TLS: u8 = 4;
const AUTH: u8 = 8;

impl Message {
    /// Appends the head: all but the text.
    pub fn encode_head(&self, to: &mut Vec<u8>) {
        let session = &self.session;
        to.push(VERSION);
        let helo = session.helo.as_ref().map(ToString::to_string);
        put_option(to, helo.as_deref(), put_text);
        put_address(to, session.address);
        put_address(to, session.local);
        put_option(to, session.name.as_deref(), put_text);
        put_option(to, session.tls.as_ref(), put_tls);
        put_option(to, session.account.as_deref(), put_text);
        let protocol = session.protocol;
        let parts = [
            (protocol.esmtp, ESMTP),
            (protocol.smtputf8, SMTPUTF8),
            (protocol.tls, TLS),
            (protocol.auth, AUTH),
        ];
        let given = parts.into_iter().filter(|(given, _)| *given);
        to.push(given.fold(0, |bits, (_, bit)| bits | bit));
        put_command(to, |line| self.reverse_path.encode(line));
        put_recipients(to, &self.recipients);
    }

    /// Decodes a head, of which no octet may be left, and gives it the text. Nothing of the message is
    /// [aside](Message::aside).
    ///
    /// # Errors
    ///
    /// [`HandoverError`] for octets that no encoder of this version has written.
    pub fn decode(head: &[u8], body: Vec<u8>) -> Result<Self, HandoverError> {
        let mut reader = Reader(head);
        match reader.octet("version")? {
            VERSION => {}
            found => {
                return Err(HandoverError::Version {
                    expected: VERSION,
                    found,
                });
            }
        }
        let mut session = SessionInfo {
            helo: reader.option("HELO", helo)?,
            address: reader.address("address of the client")?,
            local: reader.address("local address")?,
            name: reader.option(NAME, |reader| reader.owned(NAME))?,
            tls: reader.option("TLS", tls)?,
            account: reader.option(ACCOUNT, |reader| reader.owned(ACCOUNT))?,
            protocol: protocol(&mut reader)?,
            priority: None,
        };
        let reverse_path = mail(&mut reader)?;
        session.priority = reverse_path.priority;
        let recipients = recipients(&mut reader)?;
        reader.end()?;
        Ok(Self {
            reverse_path,
            recipients,
            aside: 0,
            body,
            session,
        })
    }
}

fn protocol(reader: &mut Reader<'_>) -> Result<Protocol, HandoverError> {
    let parts = reader.octet(PROTOCOL)?;
    if parts & !(ESMTP | SMTPUTF8 | TLS | AUTH) != 0 {
        return Err(HandoverError::Tag {
            field: PROTOCOL,
            expected: "a sum of 1, 2, 4 and 8",
            found: parts,
        });
    }
    let has = |part| parts & part != 0;
    Ok(Protocol {
        esmtp: has(ESMTP),
        smtputf8: has(SMTPUTF8),
        tls: has(TLS),
        auth: has(AUTH),
    })
}
