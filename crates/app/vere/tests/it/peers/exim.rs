//! Debian's Exim with a configuration, a spool and a separate mailbox, as root or as any user.
//!
//! Debian builds Exim for the user `Debian-exim`, which exists only where the package is installed; where the package
//! was only unpacked (Exim and Postfix cannot both be installed), `libnss_wrapper` provides such a user.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::unistd::{Group, User, getegid, geteuid};

use crate::harness::{Child, PATIENCE, free_address, read_all, run_with_input, skip};

/// Directory of unpacked packages that cannot be installed.
const UNPACKED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../target/test-tools");

/// A running Exim; mail for `example.com` goes to its mailbox, all other mail to its next hop.
pub(super) struct Exim {
    pub(super) address: SocketAddr,
    folder: tempfile::TempDir,
    process: Child,
}

/// The differences between the tests.
#[derive(Default)]
pub(super) struct EximOptions {
    /// Lines of the main section.
    pub(super) main: String,
    /// Where all but `example.com` goes.
    pub(super) next_hop: Option<SocketAddr>,
    /// Lines of the transport to there.
    pub(super) transport: String,
}

impl Exim {
    /// Starts the server; prints a note and returns `None` where Exim is missing.
    pub(super) fn start(options: &EximOptions) -> Option<Self> {
        let original = program()?;
        let folder = tempfile::tempdir().expect("a temporary directory");
        let path = folder.path();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("its mode");
        for name in ["spool", "mail", "log"] {
            std::fs::create_dir(path.join(name)).expect("a folder");
            let (uid, gid) = owner();
            chown(path.join(name), Some(uid), Some(gid)).expect("its owner");
        }
        // The copy is not set-user-id, so that library and user come from the test.
        std::fs::copy(original, path.join("exim")).expect("a copy");
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(path.join("exim"), mode).expect("its mode");
        write_users(path);
        let address = free_address();
        std::fs::write(
            path.join("exim.conf"),
            configuration(path, address, options),
        )
        .expect("exim.conf");
        let mut process = Child::spawn_quiet(command(path).args(["-bdf", "-q1s"]));
        process.wait_greeting(address, || log(path));
        Some(Self {
            address,
            folder,
            process,
        })
    }

    /// Sends mail as a local user does.
    pub(super) fn sendmail(&self, from: &str, to: &str, text: &str) {
        let mut command = command(self.folder.path());
        command.args(["-f", from, to]);
        run_with_input(&mut command, text);
    }

    /// The mail in the mailbox.
    pub(super) fn mail(&self) -> Vec<String> {
        read_all(&self.folder.path().join("mail/box/new"))
    }

    /// The text of the logs.
    pub(super) fn log(&self) -> String {
        log(self.folder.path())
    }
}

fn log(path: &Path) -> String {
    read_all(&path.join("log")).concat()
}

impl Drop for Exim {
    fn drop(&mut self) {
        self.process.stop(PATIENCE);
        if std::thread::panicking() {
            eprintln!("log of Exim:\n{}", self.log());
        }
    }
}

/// Exim's program, installed or unpacked.
fn program() -> Option<PathBuf> {
    let unpacked = Path::new(UNPACKED);
    let places = [
        unpacked.join("exim/usr/sbin/exim4"),
        unpacked.join("usr/sbin/exim4"),
        PathBuf::from("/usr/sbin/exim4"),
    ];
    let found = places.into_iter().find(|place| place.is_file());
    if found.is_none() {
        skip(
            "Exim",
            "it is neither installed nor unpacked (scripts/install-test-tools.sh does it)",
        );
        return None;
    }
    if !has_user() && wrapper().is_none() {
        skip("Exim", "it has no user here, and libnss_wrapper is missing");
        return None;
    }
    found
}

/// Whether Exim can be the user it is built for. Only root may become another user.
fn has_user() -> bool {
    geteuid().is_root() && matches!(User::from_name("Debian-exim"), Ok(Some(_)))
}

/// The library that gives a program other users.
fn wrapper() -> Option<PathBuf> {
    libraries()
        .into_iter()
        .map(|folder| folder.join("libnss_wrapper.so"))
        .find(|library| library.is_file())
}

fn libraries() -> Vec<PathBuf> {
    let triple = format!("{}-linux-gnu", std::env::consts::ARCH);
    let roots = [
        Path::new(UNPACKED).join("exim"),
        PathBuf::from(UNPACKED),
        PathBuf::from("/"),
    ];
    let folders = roots.iter().map(|root| root.join("usr/lib").join(&triple));
    folders.collect()
}

/// The user of Exim: its own user where the user exists, else nobody, or the user of the tests.
fn owner() -> (u32, u32) {
    if !geteuid().is_root() {
        return (geteuid().as_raw(), getegid().as_raw());
    }
    let own = User::from_name("Debian-exim").expect("users");
    let nobody = || User::from_name("nobody").expect("users").expect("nobody");
    let user = own.unwrap_or_else(nobody);
    (user.uid.as_raw(), user.gid.as_raw())
}

/// Runs Exim with its own configuration and users.
fn command(path: &Path) -> Command {
    let mut command = Command::new(path.join("exim"));
    command.arg("-C").arg(path.join("exim.conf"));
    command.env(
        "LD_LIBRARY_PATH",
        std::env::join_paths(libraries()).expect("paths"),
    );
    if let (false, Some(wrapper)) = (has_user(), wrapper()) {
        command
            .env("LD_PRELOAD", wrapper)
            .env("NSS_WRAPPER_PASSWD", path.join("passwd"))
            .env("NSS_WRAPPER_GROUP", path.join("group"));
    }
    command
}

/// The users visible to Exim: the users of its processes, and its own.
fn write_users(path: &Path) {
    let (uid, gid) = owner();
    let mut passwd = String::from("root:x:0:0:root:/root:/bin/sh\n");
    let mut group = String::from("root:x:0:\n");
    if let Ok(Some(user)) = User::from_uid(geteuid())
        && !geteuid().is_root()
    {
        let _ = writeln!(
            passwd,
            "{}:x:{}:{}::/:/bin/sh",
            user.name, user.uid, user.gid
        );
    }
    if let Ok(Some(own)) = Group::from_gid(getegid())
        && own.gid.as_raw() != 0
    {
        let _ = writeln!(group, "{}:x:{}:", own.name, own.gid);
    }
    let _ = writeln!(passwd, "Debian-exim:x:{uid}:{gid}::/nonexistent:/bin/false");
    let _ = writeln!(group, "Debian-exim:x:{gid}:\nmail:x:8:");
    std::fs::write(path.join("passwd"), passwd).expect("passwd");
    std::fs::write(path.join("group"), group).expect("group");
}

fn configuration(path: &Path, address: SocketAddr, options: &EximOptions) -> String {
    let folder = path.display();
    let mut text = format!(
        "exim_path = {folder}/exim\n\
         primary_hostname = exim.example.net\n\
         spool_directory = {folder}/spool\n\
         log_file_path = {folder}/log/%slog\n\
         pid_file_path = {folder}/spool/exim.pid\n\
         keep_environment = LD_PRELOAD : LD_LIBRARY_PATH : NSS_WRAPPER_PASSWD : NSS_WRAPPER_GROUP\n\
         daemon_smtp_ports = {port}\n\
         local_interfaces = 127.0.0.1\n\
         disable_ipv6 = true\n\
         host_lookup =\n\
         never_users =\n\
         rfc1413_query_timeout = 0s\n\
         smtputf8_advertise_hosts = *\n\
         acl_smtp_rcpt = accept\n\
         log_selector = +tls_certificate_verified +tls_sni +smtp_connection\n\
         {main}\n\
         begin routers\n\
         mine:\n  driver = accept\n  domains = example.com\n  transport = box\n",
        port = address.port(),
        main = options.main,
    );
    if let Some(next_hop) = options.next_hop {
        let _ = write!(
            text,
            "relay:\n  driver = manualroute\n  route_list = * {}\n  self = send\n  \
             transport = onward\n\
             begin transports\n\
             onward:\n  driver = smtp\n  port = {}\n  hosts_try_fastopen =\n{}\n",
            next_hop.ip(),
            next_hop.port(),
            options.transport
        );
    } else {
        text.push_str("begin transports\n");
    }
    let _ = write!(
        text,
        "box:\n  driver = appendfile\n  directory = {folder}/mail/box\n  maildir_format\n  \
         user = {}\n  group = {}\n  envelope_to_add\n  return_path_add\n\
         begin retry\n* * F,1h,1s\n",
        owner().0,
        owner().1,
    );
    text
}
