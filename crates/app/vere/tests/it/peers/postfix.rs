//! Debian's Postfix with a configuration, a queue and a mailbox of its own.

use std::net::SocketAddr;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::unistd::{User, geteuid};

use crate::harness::{
    Child, free_address, program, quiet, read_all, run_with_input, skip, wait_for,
};

/// The services of a relay with a mailbox; no service runs in a chroot, which would need copies of system files.
const SERVICES: &str = "\
pickup    unix  n       -       n       1       1       pickup
cleanup   unix  n       -       n       -       0       cleanup
qmgr      unix  n       -       n       1       1       qmgr
tlsmgr    unix  -       -       n       1000?   1       tlsmgr
rewrite   unix  -       -       n       -       -       trivial-rewrite
bounce    unix  -       -       n       -       0       bounce
defer     unix  -       -       n       -       0       bounce
trace     unix  -       -       n       -       0       bounce
verify    unix  -       -       n       -       1       verify
flush     unix  n       -       n       1000?   0       flush
proxymap  unix  -       -       n       -       -       proxymap
smtp      unix  -       -       n       -       -       smtp
relay     unix  -       -       n       -       -       smtp
error     unix  -       -       n       -       -       error
retry     unix  -       -       n       -       -       error
virtual   unix  -       n       n       -       -       virtual
anvil     unix  -       -       n       -       1       anvil
scache    unix  -       -       n       -       1       scache
postlog   unix-dgram n  -       n       -       1       postlogd
";

/// A running Postfix; mail for `example.com` goes to its mailbox.
pub(super) struct Postfix {
    pub(super) address: SocketAddr,
    program: PathBuf,
    folder: tempfile::TempDir,
    process: Child,
}

impl Postfix {
    /// Starts Postfix with further lines of `main.cf`; prints a note and returns `None` where the machine cannot.
    pub(super) fn start(lines: &str) -> Option<Self> {
        let program = program("postfix")?;
        if !geteuid().is_root() {
            skip("Postfix", "its master starts only as root");
            return None;
        }
        let folder = tempfile::tempdir().expect("a temporary directory");
        let address = free_address();
        write_files(&folder, address, lines);
        let mut start = Command::new(&program);
        start.arg("-c").arg(folder.path().join("conf"));
        let mut process = Child::spawn_quiet(start.arg("start-fg"));
        process.wait_greeting(address, || log(folder.path()));
        Some(Self {
            address,
            program,
            folder,
            process,
        })
    }

    /// Sends mail as a local user does.
    pub(super) fn sendmail(&self, from: &str, to: &str, text: &str) {
        let sendmail = program("sendmail").expect("Postfix has it");
        let mut command = Command::new(sendmail);
        command
            .arg("-C")
            .arg(self.folder.path().join("conf"))
            .args(["-f", from, to]);
        run_with_input(&mut command, text);
    }

    /// The mail in the mailbox.
    pub(super) fn mail(&self) -> Vec<String> {
        read_all(&self.folder.path().join("mail/box/new"))
    }

    /// The text of the log.
    pub(super) fn log(&self) -> String {
        log(self.folder.path())
    }
}

fn log(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("log")).unwrap_or_default()
}

impl Drop for Postfix {
    fn drop(&mut self) {
        // Postfix's script signals the right master, by the process id in the queue directory of the test.
        let mut stop = Command::new(&self.program);
        stop.arg("-c").arg(self.folder.path().join("conf"));
        let _ = quiet(stop.arg("stop")).status();
        wait_for("the end of Postfix", || self.process.ended());
        if std::thread::panicking() {
            eprintln!("log of Postfix:\n{}", self.log());
        }
    }
}

fn write_files(folder: &tempfile::TempDir, address: SocketAddr, lines: &str) {
    let path = folder.path();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("its mode");
    for name in ["conf", "queue", "data", "mail"] {
        std::fs::create_dir(path.join(name)).expect("a folder");
    }
    for (name, user) in [("data", "postfix"), ("mail", "nobody")] {
        let user = User::from_name(user).expect("users").expect("the user");
        let (uid, gid) = (user.uid.as_raw(), user.gid.as_raw());
        chown(path.join(name), Some(uid), Some(gid)).expect("its owner");
    }
    let nobody = User::from_name("nobody").expect("users").expect("nobody");
    let main = format!(
        "compatibility_level = 3.6\n\
         queue_directory = {folder}/queue\n\
         data_directory = {folder}/data\n\
         maillog_file = {folder}/log\n\
         maillog_file_prefixes = {folder}\n\
         myhostname = postfix.example.net\n\
         mydestination =\n\
         mynetworks = 127.0.0.0/8\n\
         inet_interfaces = 127.0.0.1\n\
         inet_protocols = ipv4\n\
         alias_maps =\n\
         alias_database =\n\
         smtpd_peername_lookup = no\n\
         virtual_mailbox_domains = example.com\n\
         virtual_mailbox_base = {folder}/mail\n\
         virtual_mailbox_maps = static:box/\n\
         virtual_uid_maps = static:{uid}\n\
         virtual_gid_maps = static:{gid}\n\
         minimal_backoff_time = 1s\n\
         {lines}\n",
        folder = path.display(),
        uid = nobody.uid,
        gid = nobody.gid,
    );
    std::fs::write(path.join("conf/main.cf"), main).expect("main.cf");
    let port = address.port();
    let master = format!("127.0.0.1:{port} inet n - n - - smtpd\n{SERVICES}");
    std::fs::write(path.join("conf/master.cf"), master).expect("master.cf");
}
