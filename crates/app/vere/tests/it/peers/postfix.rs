//! Debian's Postfix with a configuration, a queue and a separate mailbox.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::unistd::geteuid;
use vere_bench::peer::{NOBODY, write_postfix};

use crate::harness::{
    Child, free_address, program, quiet, read_all, run_with_input, skip, wait_for,
};

/// A running Postfix; mail for `example.com` goes to its mailbox.
pub(crate) struct Postfix {
    pub(crate) address: SocketAddr,
    program: PathBuf,
    folder: tempfile::TempDir,
    process: Child,
}

impl Postfix {
    /// Starts Postfix with further lines of `main.cf`; prints a note and returns `None` where the machine cannot.
    pub(crate) fn start(lines: &str) -> Option<Self> {
        let program = program("postfix")?;
        if !geteuid().is_root() {
            skip("Postfix", "its master starts only as root");
            return None;
        }
        let folder = tempfile::tempdir().expect("a temporary directory");
        let address = free_address();
        write_files(folder.path(), address, lines);
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
    pub(crate) fn sendmail(&self, from: &str, to: &str, text: &str) {
        let sendmail = program("sendmail").expect("Postfix has it");
        let mut command = Command::new(sendmail);
        command
            .arg("-C")
            .arg(self.folder.path().join("conf"))
            .args(["-f", from, to]);
        run_with_input(&mut command, text);
    }

    /// The mail in the mailbox.
    pub(crate) fn mail(&self) -> Vec<String> {
        read_all(&self.folder.path().join("mail/box/new"))
    }

    /// The text of the log.
    pub(crate) fn log(&self) -> String {
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

fn write_files(folder: &Path, address: SocketAddr, lines: &str) {
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).expect("its mode");
    let lines = format!(
        "smtpd_peername_lookup = no\n\
         virtual_mailbox_domains = example.com\n\
         virtual_mailbox_base = {}/mail\n\
         virtual_mailbox_maps = static:box/\n\
         virtual_uid_maps = static:{NOBODY}\n\
         virtual_gid_maps = static:{NOBODY}\n\
         minimal_backoff_time = 1s\n\
         {lines}",
        folder.display(),
    );
    write_postfix(folder, address, "postfix.example.net", &lines).expect("files of Postfix");
}
