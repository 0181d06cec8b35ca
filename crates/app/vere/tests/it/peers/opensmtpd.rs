//! Debian's OpenSMTPD in a mount namespace: queue, socket and users have fixed paths, which the namespace replaces.
//! As a package OpenSMTPD conflicts with Postfix, so the package is only unpacked.

use std::net::SocketAddr;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::unistd::{User, geteuid};

use crate::harness::{Child, free_address, program, read_all, skip};

/// Where the package is unpacked.
const UNPACKED: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../target/test-tools/opensmtpd"
);

/// Creates the paths in the namespace, then runs the daemon. `$1`: the test's directory, `$2`: the package. Servers
/// are verified against the system's roots, which the namespace replaces by the roots of the test.
const ENTER: &str = "\
set -e
mount --make-rprivate /
for place in /run /var/spool /var/lib /usr/libexec; do mount -t tmpfs -o mode=755 tmpfs $place; done
mkdir -m 711 /var/spool/smtpd
mkdir -p /var/lib/opensmtpd/empty /usr/libexec/opensmtpd
mount --bind \"$2/usr/libexec/opensmtpd\" /usr/libexec/opensmtpd
mount --bind \"$1/passwd\" /etc/passwd
mount --bind \"$1/group\" /etc/group
mount --bind \"$1/hosts\" /etc/hosts
if [ -e \"$1/roots\" ]; then
    mount -t tmpfs -o mode=755 tmpfs /etc/ssl/certs
    cp \"$1/roots\" /etc/ssl/certs/ca-certificates.crt
fi
exec \"$2/usr/sbin/smtpd\" -d -f \"$1/smtpd.conf\"
";

/// The hosts it knows: itself, and us by the name in our certificate.
const HOSTS: &str = "127.0.0.1 localhost\n127.0.0.1 mx.example.org\n";

/// A running OpenSMTPD; mail for `example.com` goes to its mailbox, all other mail to its next hop.
pub(super) struct OpenSmtpd {
    pub(super) address: SocketAddr,
    folder: tempfile::TempDir,
    _process: Child,
}

/// The differences between the tests.
#[derive(Default)]
pub(super) struct OpenSmtpdOptions {
    /// Where all but `example.com` goes, as a URL.
    pub(super) next_hop: Option<String>,
    /// The CA certificates that the server trusts, in PEM.
    pub(super) roots: Option<PathBuf>,
}

impl OpenSmtpd {
    /// Starts the server; prints a note and returns `None` where the machine cannot.
    pub(super) fn start(options: &OpenSmtpdOptions) -> Option<Self> {
        let package = package()?;
        let folder = tempfile::tempdir().expect("a temporary directory");
        let address = free_address();
        write_files(folder.path(), address, options);
        let log = std::fs::File::create(folder.path().join("log")).expect("a log");
        let mut command = Command::new("unshare");
        command
            .args(["-m", "sh", "-c", ENTER, "sh"])
            .args([folder.path(), package.as_path()])
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a descriptor"))
            .stderr(log);
        let mut process = Child::spawn(&mut command);
        process.wait_greeting(address, || text_of_log(folder.path()));
        Some(Self {
            address,
            folder,
            _process: process,
        })
    }

    /// The mail in the mailbox.
    pub(super) fn mail(&self) -> Vec<String> {
        read_all(&self.folder.path().join("box/Maildir/new"))
    }

    /// The text of the log.
    pub(super) fn log(&self) -> String {
        text_of_log(self.folder.path())
    }
}

fn text_of_log(folder: &Path) -> String {
    let octets = std::fs::read(folder.join("log")).unwrap_or_default();
    String::from_utf8_lossy(&octets).into_owned()
}

impl Drop for OpenSmtpd {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("log of OpenSMTPD:\n{}", self.log());
        }
    }
}

/// The path of the package, if the server can run.
fn package() -> Option<PathBuf> {
    let package = Path::new(UNPACKED);
    let why = if !package.join("usr/sbin/smtpd").is_file() {
        "not unpacked; scripts/install-test-tools.sh does it"
    } else if !geteuid().is_root() {
        "it starts only as root"
    } else if program("unshare").is_none() || !may_unshare() {
        "no mount namespace can be had"
    } else {
        return package.canonicalize().ok();
    };
    skip("OpenSMTPD", why);
    None
}

fn may_unshare() -> bool {
    let tried = Command::new("unshare")
        .args(["-m", "mount", "--make-rprivate", "/"])
        .output();
    tried.is_ok_and(|output| output.status.success())
}

fn write_files(folder: &Path, address: SocketAddr, options: &OpenSmtpdOptions) {
    let mode = |path: &Path, mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(path, mode).expect("its mode");
    };
    mode(folder, 0o755);
    let nobody = User::from_name("nobody").expect("users").expect("nobody");
    let (uid, gid) = (nobody.uid.as_raw(), nobody.gid.as_raw());
    let mailbox = folder.join("box");
    std::fs::create_dir(&mailbox).expect("a folder");
    chown(&mailbox, Some(uid), Some(gid)).expect("its owner");
    let text = |path: &str| std::fs::read_to_string(path).expect("it can be read");
    let users = format!(
        "{}opensmtpd:x:64001:64001::/nonexistent:/bin/false\n\
         opensmtpq:x:64002:64002::/nonexistent:/bin/false\n\
         box:x:{uid}:{gid}::{}:/bin/sh\n",
        text("/etc/passwd"),
        mailbox.display()
    );
    let groups = format!(
        "{}opensmtpd:x:64001:\nopensmtpq:x:64002:\n",
        text("/etc/group")
    );
    let mut files = vec![
        ("passwd", users),
        ("group", groups),
        ("hosts", HOSTS.to_owned()),
        ("smtpd.conf", configuration(&mailbox, address, options)),
    ];
    if let Some(roots) = &options.roots {
        let roots = std::fs::read_to_string(roots).expect("the roots");
        files.push(("roots", roots));
    }
    for (name, text) in files {
        std::fs::write(folder.join(name), text).expect("a file");
        mode(&folder.join(name), 0o644);
    }
}

fn configuration(mailbox: &Path, address: SocketAddr, options: &OpenSmtpdOptions) -> String {
    let relay = options.next_hop.as_ref().map(|url| {
        format!(
            "action \"relay\" relay host \"{url}\" helo \"opensmtpd.example.net\"\n\
             match from any for any action \"relay\"\n"
        )
    });
    format!(
        "table users {{ \"@\" = box }}\n\
         listen on 127.0.0.1 port {port} hostname opensmtpd.example.net\n\
         action \"box\" maildir \"{mailbox}/Maildir\" virtual <users>\n\
         match from any for domain \"example.com\" action \"box\"\n\
         {relay}",
        port = address.port(),
        mailbox = mailbox.display(),
        relay = relay.unwrap_or_default(),
    )
}
