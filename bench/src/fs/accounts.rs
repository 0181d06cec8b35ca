//! Dovecot with the accounts of a file system, run by a user without rights, from a folder of its own.
//!
//! Acknowledged mail is synced (`mail_fsync = optimized`), the quota plugin counts, and each account may have as many
//! connections as a client wants. Mail lies in mdbox, the fastest format for APPEND on the machine of the first figures:
//! pipelined mails of 512 KB over 8 connections arrived at 309 MB/s, with sdbox at 166, with Maildir at 120.

use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::unistd::{Gid, Group, Uid, User};
use tempfile::TempDir;

use crate::peer::{PeerError, await_ready, folder, free_address, spawn};
use crate::process::Daemon;
use crate::store::imap::{Imap, ImapError};

/// The name of the server among the systems.
pub(super) const DOVECOT: &str = "dovecot";

/// Accounts of the thesis's stripe.
pub(super) const ACCOUNTS: usize = 8;

/// The password of every account.
pub(super) const PASSWORD: &str = "secret";

/// Room of an account, in KiB: above everything the benchmark stores.
const QUOTA_KIB: u64 = 64 * 1024 * 1024;

const PROGRAM: &str = "/usr/sbin/dovecot";

const START_MAX: Duration = Duration::from_secs(60);
const STOP_MAX: Duration = Duration::from_secs(20);

/// The format of mailboxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// A file for each mail beside an index.
    Sdbox,
    /// Many mails in a file beside an index.
    Mdbox,
    /// A file for each mail, named by its flags.
    Maildir,
}

impl Format {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Sdbox => "sdbox",
            Self::Mdbox => "mdbox",
            Self::Maildir => "maildir",
        }
    }
}

/// A running Dovecot.
#[derive(Debug)]
pub(super) struct Accounts {
    pub(super) address: SocketAddr,
    /// The options that decide figures, for the results.
    pub(super) options: String,
    daemon: Daemon,
    // Removed after the daemon, which still writes to the folder.
    _folder: TempDir,
}

impl Accounts {
    pub(super) fn start(format: Format, base: &Path) -> Result<Self, PeerError> {
        let missing = "not installed (apt-get install dovecot-imapd)";
        if !Path::new(PROGRAM).exists() || !Path::new("/usr/lib/dovecot/imap").exists() {
            return Err(PeerError::unavailable(DOVECOT, missing));
        }
        let folder = folder(base, "vere-bench-accounts-")?;
        let owner = Owner::of_process()?;
        let address = free_address()?;
        for name in ["run", "state", "mail"] {
            let path = folder.path().join(name);
            fs::create_dir(&path)?;
            owner.give(&path)?;
        }
        owner.give(folder.path())?;
        let file = folder.path().join("dovecot.conf");
        fs::write(&file, owner.configuration(format, folder.path(), address))?;
        let mut command = owner.becoming();
        command.extend([PROGRAM, "-F", "-c"].map(OsString::from));
        command.push(file.into());
        let daemon = spawn(&command, folder.path())?;
        let greets = || Imap::connect(address).is_ok();
        await_ready(DOVECOT, &daemon, START_MAX, greets)?;
        let options = format!(
            "dovecot: {ACCOUNTS} accounts, {}, user {}, mail_fsync=optimized, quota=count, plain connections",
            format.word(),
            owner.user
        );
        Ok(Self {
            address,
            options,
            daemon,
            _folder: folder,
        })
    }

    /// A new connection through `way`, logged in to an account.
    pub(super) fn login(way: SocketAddr, account: usize) -> Result<Imap, ImapError> {
        let mut imap = Imap::connect(way)?;
        imap.ok(&format!("LOGIN {} {PASSWORD}", user(account)))?;
        Ok(imap)
    }
}

impl Drop for Accounts {
    fn drop(&mut self) {
        self.daemon.stop(STOP_MAX);
    }
}

/// The user name of an account.
pub(super) fn user(account: usize) -> String {
    format!("fs{account}@bench.test")
}

/// The user of the server.
struct Owner {
    user: String,
    group: String,
    uid: Uid,
    gid: Gid,
}

impl Owner {
    /// `nobody` in place of root, else the user of the benchmark.
    fn of_process() -> Result<Self, PeerError> {
        let user = match Uid::effective().is_root() {
            true => User::from_name("nobody"),
            false => User::from_uid(Uid::effective()),
        };
        let unknown = || PeerError::unavailable(DOVECOT, "the user without rights has no name");
        let user = user.ok().flatten().ok_or_else(unknown)?;
        let group = Group::from_gid(user.gid).ok().flatten();
        Ok(Self {
            group: group.ok_or_else(unknown)?.name,
            user: user.name,
            uid: user.uid,
            gid: user.gid,
        })
    }

    fn give(&self, path: &Path) -> Result<(), PeerError> {
        let (uid, gid) = (self.uid.as_raw(), self.gid.as_raw());
        Ok(std::os::unix::fs::chown(path, Some(uid), Some(gid))?)
    }

    /// The beginning of a command that gives up the rights of root.
    fn becoming(&self) -> Vec<OsString> {
        if !Uid::effective().is_root() {
            return Vec::new();
        }
        let (uid, gid) = (self.uid, self.gid);
        vec![
            PathBuf::from("/usr/bin/setpriv").into(),
            format!("--reuid={uid}").into(),
            format!("--regid={gid}").into(),
            "--clear-groups".into(),
        ]
    }

    fn configuration(&self, format: Format, folder: &Path, address: SocketAddr) -> String {
        let (own, user, group, format) = (folder.display(), &self.user, &self.group, format.word());
        let (uid, gid, port) = (self.uid, self.gid, address.port());
        format!(
            "base_dir = {own}/run\n\
             state_dir = {own}/state\n\
             log_path = {own}/log\n\
             protocols = imap\n\
             listen = 127.0.0.1\n\
             ssl = no\n\
             disable_plaintext_auth = no\n\
             default_internal_user = {user}\n\
             default_internal_group = {group}\n\
             default_login_user = {user}\n\
             mail_location = {format}:{own}/mail/%u\n\
             mail_fsync = optimized\n\
             mail_max_userip_connections = 1000\n\
             mail_plugins = quota\n\
             first_valid_uid = 1\n\
             first_valid_gid = 1\n\
             passdb {{\n  driver = static\n  args = password={PASSWORD}\n}}\n\
             userdb {{\n  driver = static\n  args = uid={uid} gid={gid} home={own}/mail/home/%u\n}}\n\
             plugin {{\n  quota = count:User quota\n  quota_vsizes = yes\n  \
             quota_rule = *:storage={QUOTA_KIB}K\n  quota_max_mail_size = 0\n}}\n\
             protocol imap {{\n  mail_plugins = quota imap_quota\n}}\n\
             service imap-login {{\n  chroot =\n  service_count = 0\n  inet_listener imap {{\n    \
             address = 127.0.0.1\n    port = {port}\n  }}\n  inet_listener imaps {{\n    port = 0\n  }}\n}}\n\
             service imap {{\n  process_limit = 1000\n}}\n\
             service anvil {{\n  chroot =\n}}\n\
             service stats {{\n  chroot =\n}}\n"
        )
    }
}
