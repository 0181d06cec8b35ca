//! Courier, unpacked: a Maildir of one account, as whose owner every connection is authenticated. So no password
//! daemon is needed.
//!
//! Courier does not sync acknowledged messages, and the time to add a message grows with the mailbox. So messages are
//! put into the Maildir as files, and adding is not compared.

use std::path::Path;

use super::prepared::{Files, Ports, Prepared, folder_of_nobody};
use super::unpacked::Unpacked;
use crate::peer::PeerError;

/// The listener, in the package.
const LISTENER: &str = "usr/sbin/couriertcpd";

/// Settings of Courier's own `/etc/courier/imapd`, as far as a session reads the settings.
const ENVIRONMENT: [&str; 6] = [
    "AUTHENTICATED=reader",
    "IMAP_CAPABILITY=IMAP4rev1 UIDPLUS CHILDREN NAMESPACE SORT IDLE",
    "IMAP_KEYWORDS=1",
    "IMAP_USELOCKS=0",
    "IMAP_OBSOLETE_CLIENT=0",
    "IMAP_MAILBOX_SANITY_CHECK=1",
];

/// Prepares Courier.
pub(super) fn prepare(
    name: &'static str,
    folder: &Path,
    ports: Ports,
) -> Result<Prepared, PeerError> {
    let package = Unpacked::find(name, "courier", LISTENER)?;
    let maildir = folder.join("mail");
    for part in ["", "cur", "new", "tmp"] {
        folder_of_nobody(&maildir.join(part))?;
    }
    let mut command = package.command(LISTENER);
    // Variables stand behind `env` and before the program.
    let variables = ENVIRONMENT.iter().map(Into::into);
    let place = format!("MAILDIR={}", maildir.display());
    command.splice(2..2, variables.chain([place.into()]));
    command.extend(
        [
            "-address=127.0.0.1",
            "-nodnslookup",
            "-noidentlookup",
            "-maxprocs=1000",
        ]
        .map(Into::into),
    );
    command.extend(
        [
            "-maxperip=1000",
            "-maxperc=1000",
            "-user=nobody",
            "-group=nogroup",
        ]
        .map(Into::into),
    );
    command.push(ports.imap.port().to_string().into());
    command.push(package.path("usr/bin/imapd").into());
    command.push(maildir.clone().into());
    Ok(Prepared {
        command,
        mail: vec![maildir.clone()],
        files: Some(Files::Maildir(maildir)),
        ..Prepared::default()
    })
}
