//! Dovecot, with `mail_fsync = optimized`: delivered and appended messages are synced.

use std::fs;
use std::path::{Path, PathBuf};

use super::prepared::{NOBODY, PASSWORD, Ports, Prepared, folder_of_nobody};
use crate::peer::PeerError;

/// The path of Debian.
fn program() -> Option<PathBuf> {
    let installed = Path::new("/usr/lib/dovecot/imap").exists();
    let delivers = Path::new("/usr/lib/dovecot/lmtp").exists();
    let program = PathBuf::from("/usr/sbin/dovecot");
    (installed && delivers && program.exists()).then_some(program)
}

/// Prepares Dovecot with mail in a given format.
pub(super) fn prepare(
    name: &'static str,
    format: &str,
    folder: &Path,
    ports: Ports,
) -> Result<Prepared, PeerError> {
    let missing = "not installed (apt-get install dovecot-imapd dovecot-lmtpd)";
    let program = program().ok_or_else(|| PeerError::unavailable(name, missing))?;
    let file = folder.join("dovecot.conf");
    let mail = folder.join("mail");
    folder_of_nobody(&mail)
        .and_then(|()| fs::write(&file, configuration(format, folder, ports)))?;
    Ok(Prepared {
        command: vec![program.into(), "-F".into(), "-c".into(), file.into()],
        mail: vec![mail],
        ..Prepared::default()
    })
}

fn configuration(format: &str, folder: &Path, ports: Ports) -> String {
    let own = folder.display();
    format!(
        "base_dir = {own}/run\n\
         state_dir = {own}/state\n\
         log_path = {own}/log\n\
         protocols = imap lmtp\n\
         listen = 127.0.0.1\n\
         ssl = no\n\
         disable_plaintext_auth = no\n\
         mail_location = {format}:{own}/mail/%u\n\
         mail_fsync = optimized\n\
         mail_max_userip_connections = 100000\n\
         first_valid_uid = 1\n\
         first_valid_gid = 1\n\
         passdb {{\n  driver = static\n  args = password={PASSWORD}\n}}\n\
         userdb {{\n  driver = static\n  args = uid={NOBODY} gid={NOBODY} home={own}/mail/home/%u\n}}\n\
         service imap-login {{\n  service_count = 0\n  inet_listener imap {{\n    address = 127.0.0.1\n    \
         port = {}\n  }}\n  inet_listener imaps {{\n    port = 0\n  }}\n}}\n\
         service lmtp {{\n  inet_listener lmtp {{\n    address = 127.0.0.1\n    port = {}\n  }}\n}}\n\
         service imap {{\n  process_limit = 12000\n}}\n\
         protocol lmtp {{\n  postmaster_address = postmaster@bench.test\n}}\n",
        ports.imap.port(),
        ports.lmtp.port(),
    )
}
