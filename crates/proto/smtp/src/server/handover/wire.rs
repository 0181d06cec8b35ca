//! The encoder and the decoder of a hand-over; the format is drawn in the [module above](super).

use crate::address::DomainOrLiteral;
use crate::command::{Command, CommandError, MailFrom, RcptTo, Workarounds, parse_helo};
use crate::server::config::{Peer, TlsInfo};
use crate::server::session::{Counts, Forwarded};

use super::error::HandoverError;
use super::octets::{
    ACCOUNT, LOGIN, NAME, Reader, TLS_CIPHER, TLS_SERVER_NAME, TLS_VERSION, command_line,
    put_address, put_bool, put_command, put_count, put_octets, put_option, put_text,
};
use super::{Handover, RECIPIENTS_MAX, REPLIES_OCTETS_MAX};

/// The version of the format.
const VERSION: u8 = 2;

const PEER: &str = "permissions of the client";
const HELO: &str = "HELO";
const FORWARDED: &str = "XCLIENT";
const FORWARDED_HELO: &str = "XCLIENT HELO";
const FORWARDED_PROTOCOL: &str = "XCLIENT PROTO";
const MAIL: &str = "MAIL command";
const RCPT: &str = "RCPT command";
const RECIPIENTS: &str = "number of recipients";
const REPLIES: &str = "replies";

const RELAY: u8 = 1;
const AUTH_IN_CLEAR: u8 = 2;
const PRIORITISE: u8 = 4;
const XCLIENT: u8 = 8;
const START_TLS: u8 = 16;
const PERMISSIONS: u8 = RELAY | AUTH_IN_CLEAR | PRIORITISE | XCLIENT | START_TLS;

impl Handover {
    /// Appends the octets.
    pub fn encode(&self, to: &mut Vec<u8>) {
        to.push(VERSION);
        put_peer(to, &self.peer);
        put_text(to, &self.helo.to_string());
        put_bool(to, self.esmtp);
        put_option(to, self.account.as_deref(), put_text);
        put_option(to, self.forwarded.as_deref(), put_forwarded);
        for count in [
            self.counts.errors,
            self.counts.idle_commands,
            self.counts.auth_failures,
            self.counts.transactions,
            self.counts.refusals,
        ] {
            put_count(to, count);
        }
        put_command(to, |line| self.mail.encode(line));
        put_count(to, self.recipients_refused);
        to.push(self.note);
        put_recipients(to, &self.recipients);
        put_octets(to, &self.replies);
    }

    /// Decodes the octets of a hand-over, of which none may be left.
    ///
    /// Memory is taken in proportion to the octets only, and after each length is checked.
    ///
    /// # Errors
    ///
    /// [`HandoverError`] for octets that no machine of this version has written.
    pub fn decode(octets: &[u8]) -> Result<Self, HandoverError> {
        let mut reader = Reader(octets);
        match reader.octet("version")? {
            VERSION => {}
            found => {
                return Err(HandoverError::Version {
                    expected: VERSION,
                    found,
                });
            }
        }
        let handover = Self {
            peer: peer(&mut reader)?,
            helo: helo(&mut reader)?,
            esmtp: reader.bool("EHLO")?,
            account: reader.option(ACCOUNT, |reader| reader.owned(ACCOUNT))?,
            forwarded: reader.option(FORWARDED, forwarded)?.map(Box::new),
            counts: Counts {
                errors: reader.count("number of errors")?,
                idle_commands: reader.count("number of idle commands")?,
                auth_failures: reader.count("number of failed authentications")?,
                transactions: reader.count("number of transactions")?,
                refusals: reader.count("number of refusals")?,
            },
            mail: mail(&mut reader)?,
            recipients_refused: reader.count("number of refused recipients")?,
            note: reader.octet("note")?,
            recipients: recipients(&mut reader)?,
            replies: replies(&mut reader)?,
        };
        reader.end()?;
        match handover.contradiction() {
            Some(text) => Err(HandoverError::Contradiction(text)),
            None => Ok(handover),
        }
    }
}

fn put_peer(to: &mut Vec<u8>, peer: &Peer) {
    let permissions = [
        (peer.may_relay, RELAY),
        (peer.may_auth_in_clear, AUTH_IN_CLEAR),
        (peer.may_prioritise, PRIORITISE),
        (peer.may_xclient, XCLIENT),
        (peer.tls_available, START_TLS),
    ];
    let given = permissions.into_iter().filter(|(given, _)| *given);
    to.push(given.fold(0, |bits, (_, bit)| bits | bit));
    put_address(to, peer.address);
    put_address(to, peer.local);
    put_option(to, peer.name.as_deref(), put_text);
    put_option(to, peer.tls.as_ref(), put_tls);
}

pub(super) fn put_tls(to: &mut Vec<u8>, tls: &TlsInfo) {
    put_text(to, &tls.version);
    put_text(to, &tls.cipher);
    put_option(to, tls.sni.as_deref(), put_text);
}

pub(super) fn put_recipients(to: &mut Vec<u8>, recipients: &[RcptTo]) {
    let number = u16::try_from(recipients.len()).unwrap_or(u16::MAX);
    to.extend_from_slice(&number.to_le_bytes());
    for rcpt in recipients {
        put_command(to, |line| rcpt.encode(line));
    }
}

fn peer(reader: &mut Reader<'_>) -> Result<Peer, HandoverError> {
    let permissions = reader.octet(PEER)?;
    if permissions & !PERMISSIONS != 0 {
        return Err(HandoverError::Tag {
            field: PEER,
            expected: "a sum of 1, 2, 4, 8 and 16",
            found: permissions,
        });
    }
    let may = |permission| permissions & permission != 0;
    Ok(Peer {
        address: reader.address("address of the client")?,
        local: reader.address("local address")?,
        name: reader.option(NAME, |reader| reader.owned(NAME))?,
        tls: reader.option("TLS", tls)?,
        may_relay: may(RELAY),
        may_auth_in_clear: may(AUTH_IN_CLEAR),
        may_prioritise: may(PRIORITISE),
        may_xclient: may(XCLIENT),
        tls_available: may(START_TLS),
    })
}

pub(super) fn tls(reader: &mut Reader<'_>) -> Result<TlsInfo, HandoverError> {
    Ok(TlsInfo {
        version: reader.owned(TLS_VERSION)?,
        cipher: reader.owned(TLS_CIPHER)?,
        sni: reader.option(TLS_SERVER_NAME, |reader| reader.owned(TLS_SERVER_NAME))?,
    })
}

fn put_forwarded(to: &mut Vec<u8>, forwarded: &Forwarded) {
    put_option(to, forwarded.helo.as_ref(), |to, helo| {
        put_text(to, &helo.to_string());
    });
    put_option(to, forwarded.esmtp, put_bool);
    put_option(to, forwarded.login.as_deref(), put_text);
}

fn forwarded(reader: &mut Reader<'_>) -> Result<Forwarded, HandoverError> {
    Ok(Forwarded {
        helo: reader.option(FORWARDED_HELO, |reader| {
            let text = reader.text(FORWARDED_HELO)?;
            let parsed = DomainOrLiteral::parse(text).map_err(CommandError::Helo);
            name(FORWARDED_HELO, text, parsed)
        })?,
        esmtp: reader.option(FORWARDED_PROTOCOL, |reader| reader.bool(FORWARDED_PROTOCOL))?,
        login: reader.option(LOGIN, |reader| reader.owned(LOGIN))?,
    })
}

/// The name behind HELO or EHLO, parsed with the leniency that the configuration may have.
pub(super) fn helo(reader: &mut Reader<'_>) -> Result<DomainOrLiteral, HandoverError> {
    let lenient = Workarounds {
        underscore_in_helo: true,
        ..Workarounds::default()
    };
    let text = reader.text(HELO)?;
    name(HELO, text, parse_helo(text, lenient))
}

/// The parsed name if it encodes to the same text again.
fn name(
    field: &'static str,
    text: &str,
    parsed: Result<DomainOrLiteral, CommandError>,
) -> Result<DomainOrLiteral, HandoverError> {
    let name = parsed.map_err(|error| HandoverError::Command { field, error })?;
    match name.to_string() == text {
        true => Ok(name),
        false => Err(HandoverError::Form { field }),
    }
}

pub(super) fn mail(reader: &mut Reader<'_>) -> Result<MailFrom, HandoverError> {
    let line = reader.command(MAIL)?;
    match command(MAIL, line)? {
        Command::Mail(mail) if command_line(|line| mail.encode(line)) == line.as_bytes() => {
            Ok(mail)
        }
        _ => Err(HandoverError::Form { field: MAIL }),
    }
}

pub(super) fn recipients(reader: &mut Reader<'_>) -> Result<Vec<RcptTo>, HandoverError> {
    let number = reader.short(RECIPIENTS, RECIPIENTS_MAX)?;
    if number == 0 {
        return Err(HandoverError::NoRecipient);
    }
    // The octets may be fewer than the number says: memory is taken as they are read.
    let mut recipients = Vec::new();
    for _ in 0..number {
        recipients.push(rcpt(reader)?);
    }
    Ok(recipients)
}

fn rcpt(reader: &mut Reader<'_>) -> Result<RcptTo, HandoverError> {
    let line = reader.command(RCPT)?;
    match command(RCPT, line)? {
        Command::Rcpt(rcpt) if command_line(|line| rcpt.encode(line)) == line.as_bytes() => {
            Ok(rcpt)
        }
        _ => Err(HandoverError::Form { field: RCPT }),
    }
}

fn command(field: &'static str, line: &str) -> Result<Command, HandoverError> {
    Command::parse(line.as_bytes(), Workarounds::default())
        .map_err(|error| HandoverError::Command { field, error })
}

/// Octets up to the end of a reply. The last octet of a reply may be alone, its CR sent before.
fn replies(reader: &mut Reader<'_>) -> Result<Vec<u8>, HandoverError> {
    let replies = reader.octets(REPLIES, REPLIES_OCTETS_MAX)?;
    match replies {
        [] | [b'\n'] | [.., b'\r', b'\n'] => Ok(replies.to_vec()),
        _ => Err(HandoverError::Replies),
    }
}
