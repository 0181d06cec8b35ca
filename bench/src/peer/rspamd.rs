//! rspamd with its own settings, data and ports. Debian's files in `/etc/rspamd` are read, and nothing is written there.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use super::{PeerError, await_ready, folder, free_address, spawn};
use crate::process::{CpuAccount, Daemon, Process};

const NAME: &str = "rspamd";

/// The user of Debian's package.
const USER: &str = "_rspamd";

/// Longest time from the start to the first connection: rspamd compiles its patterns first.
const START_MAX: Duration = Duration::from_secs(240);

const STOP_MAX: Duration = Duration::from_secs(10);

/// The folder for compiled patterns: a kept folder lets the next benchmark start sooner.
const CACHE_VARIABLE: &str = "VERE_BENCH_RSPAMD_CACHE";

/// The mark in the log before the verdict about a message.
const VERDICT: &str = "verdict|";

/// How rspamd is configured.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RspamdSetup<'a> {
    /// SPF, DKIM, DMARC and these lists of clients alone. Two workers speak milter and look at messages.
    Checks(&'a [&'a str]),
    /// The modules and scores of Debian's package, without those for Redis and the Internet. One worker speaks milter, another speaks
    /// HTTP and looks at the messages of both.
    AsShipped,
}

/// A folder for the compiled patterns of several rspamds, the compilation of which takes a minute on a busy machine.
#[derive(Debug)]
pub(crate) enum PatternCache {
    /// Of this benchmark.
    Own(TempDir),
    /// Of all.
    Kept(PathBuf),
}

impl PatternCache {
    /// The folder of the environment, else one below `base`.
    pub(crate) fn new(base: &Path) -> io::Result<Self> {
        match std::env::var_os(CACHE_VARIABLE) {
            Some(path) => {
                fs::create_dir_all(&path)?;
                Ok(Self::Kept(path.into()))
            }
            None => Ok(Self::Own(folder(base, "vere-bench-patterns-")?)),
        }
    }

    fn path(&self) -> &Path {
        match self {
            Self::Own(folder) => folder.path(),
            Self::Kept(path) => path,
        }
    }
}

/// A running rspamd.
#[derive(Debug)]
pub(crate) struct Rspamd {
    milter: SocketAddr,
    http: SocketAddr,
    daemon: Daemon,
    // Removed after the daemon, which still writes to the directory.
    folder: TempDir,
}

impl Rspamd {
    /// Starts rspamd in a folder below `base`, with one name server.
    ///
    /// # Errors
    ///
    /// [`PeerError::Unavailable`] without rspamd or without root, else the failure of the start.
    pub(crate) fn start(
        setup: RspamdSetup<'_>,
        name_server: SocketAddr,
        cache: &PatternCache,
        base: &Path,
    ) -> Result<Self, PeerError> {
        let unavailable = |reason: &str| PeerError::unavailable(NAME, reason);
        let program = ["/usr/bin/rspamd", "/usr/local/bin/rspamd"];
        let program = program.iter().map(PathBuf::from).find(|path| path.exists());
        let program = program.ok_or_else(|| {
            unavailable("not installed (apt-get install -y --no-install-recommends rspamd)")
        })?;
        if !nix::unistd::geteuid().is_root() {
            return Err(unavailable("it starts only as root"));
        }
        let user = nix::unistd::User::from_name(USER).map_err(io::Error::from)?;
        let user = user.ok_or_else(|| unavailable("no user called _rspamd"))?;
        let folder = folder(base, "vere-bench-rspamd-")?;
        let (milter, http) = (free_address()?, free_address()?);
        let files = Files {
            folder: folder.path(),
            milter,
            http,
            options: format!(
                "hs_cache_dir = \"{}/\"; dns_max_requests = 10000; dns {{ nameserver = [\"{name_server}\"]; timeout = 1s; sockets = 16; retransmits = 5; }}",
                cache.path().display()
            ),
        };
        let settings = files.write(setup)?;
        let own = ["", "db", "run", "log"].map(|name| folder.path().join(name));
        for path in own.iter().map(PathBuf::as_path).chain([cache.path()]) {
            chown(path, Some(user.uid.as_raw()), Some(user.gid.as_raw()))?;
        }
        let daemon = spawn(&command(&program, &settings, folder.path()), folder.path())?;
        let ready = || TcpStream::connect(milter).is_ok() && files.has_http(setup);
        await_ready(NAME, &daemon, START_MAX, ready)?;
        Ok(Self {
            milter,
            http,
            daemon,
            folder,
        })
    }

    /// Where the milter listens.
    pub(crate) const fn milter(&self) -> SocketAddr {
        self.milter
    }

    /// Where the worker "normal" listens, with [`RspamdSetup::AsShipped`].
    pub(crate) const fn http(&self) -> SocketAddr {
        self.http
    }

    /// The account of all processes.
    pub(crate) fn account(&self) -> CpuAccount {
        self.daemon.account()
    }

    /// CPU time of the workers for milters.
    ///
    /// # Errors
    ///
    /// `/proc` cannot be read.
    pub(crate) fn milter_cpu(&self) -> io::Result<Duration> {
        let mut sum = Duration::ZERO;
        for process in Process::tree(self.daemon.id())? {
            if process.command.contains("rspamd_proxy") {
                sum += process.cpu()?;
            }
        }
        Ok(sum)
    }

    /// The verdicts in the log so far, with [`RspamdSetup::AsShipped`], and the senders of the messages.
    ///
    /// # Errors
    ///
    /// The log cannot be read.
    pub(crate) fn verdicts(&self) -> io::Result<Vec<(String, RspamdVerdict)>> {
        let log = fs::read(self.folder.path().join("log/rspamd.log"))?;
        let log = String::from_utf8_lossy(&log);
        Ok(log.lines().filter_map(verdict).collect())
    }
}

impl Drop for Rspamd {
    fn drop(&mut self) {
        self.daemon.stop(STOP_MAX);
    }
}

/// The verdict of rspamd about a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RspamdVerdict {
    /// The action, such as `add header`.
    pub(crate) action: String,
    /// The names of all symbols.
    pub(crate) symbols: Vec<String>,
}

/// The sender and the verdict of a line of the log.
fn verdict(line: &str) -> Option<(String, RspamdVerdict)> {
    let (_, fields) = line.split_once(VERDICT)?;
    let mut fields = fields.split('|');
    let (sender, action) = (fields.next()?.to_owned(), fields.next()?.to_owned());
    let symbols = fields.nth(1)?.split(',').map(str::to_owned).collect();
    Some((sender, RspamdVerdict { action, symbols }))
}

fn command(program: &Path, settings: &Path, folder: &Path) -> Vec<OsString> {
    let mut command: Vec<OsString> = vec![program.into(), "-f".into()];
    command.extend(["-u", USER, "-g", USER, "-c"].map(OsString::from));
    command.push(settings.into());
    for (name, part) in [
        ("LOCAL_CONFDIR", "local"),
        ("DBDIR", "db"),
        ("RUNDIR", "run"),
        ("LOGDIR", "log"),
    ] {
        command.push("--var".into());
        command.push(format!("{name}={}", folder.join(part).display()).into());
    }
    command
}

/// Addresses and options in the files of settings.
struct Files<'a> {
    folder: &'a Path,
    milter: SocketAddr,
    http: SocketAddr,
    /// Folder of patterns and name server. An answer of the benchmark's server is never late. As shipped, the 64th question about a message
    /// is the last one, and chance decides which questions come first: one mail system would differ from itself.
    options: String,
}

impl Files<'_> {
    /// Writes the files; returns the path of the first.
    fn write(&self, setup: RspamdSetup<'_>) -> io::Result<PathBuf> {
        for name in [
            "db",
            "run",
            "log",
            "local",
            "local/local.d",
            "local/override.d",
        ] {
            fs::create_dir(self.folder.join(name))?;
        }
        match setup {
            RspamdSetup::Checks(lists) => {
                let file = self.folder.join("rspamd.conf");
                fs::write(&file, self.checks(lists))?;
                Ok(file)
            }
            RspamdSetup::AsShipped => {
                for (name, text) in self.overrides() {
                    let name = format!("local/override.d/{name}");
                    fs::write(self.folder.join(name), text)?;
                }
                Ok("/etc/rspamd/rspamd.conf".into())
            }
        }
    }

    fn has_http(&self, setup: RspamdSetup<'_>) -> bool {
        matches!(setup, RspamdSetup::Checks(_)) || TcpStream::connect(self.http).is_ok()
    }

    /// A whole file: Debian's scores and actions, and the sections of these checks.
    fn checks(&self, lists: &[&str]) -> String {
        let rbls: String = lists
            .iter()
            .enumerate()
            .map(|(number, zone)| {
                format!(
                    "  list{number} {{ symbol = \"LIST{number}\"; rbl = \"{zone}\"; checks = [\"from\"]; }}\n"
                )
            })
            .collect();
        let Self {
            milter, options, ..
        } = self;
        format!(
            "options {{ pidfile = \"$RUNDIR/pid\"; control_socket = \"$RUNDIR/control mode=0600\"; tempdir = \"$RUNDIR\";\n\
             filters = \"dkim\"; url_tld = \"${{SHAREDIR}}/effective_tld_names.dat\"; {options} }}\n\
             logging {{ type = \"file\"; filename = \"$LOGDIR/rspamd.log\"; level = \"info\"; }}\n\
             .include \"$CONFDIR/metrics.conf\"\n.include \"$CONFDIR/actions.conf\"\n.include \"$CONFDIR/groups.conf\"\n\
             modules {{ path = \"${{PLUGINSDIR}}\"; }}\n\
             worker \"rspamd_proxy\" {{ bind_socket = \"{milter}\"; milter = yes; timeout = 120s; count = 2;\n\
             upstream \"local\" {{ default = yes; self_scan = yes; }} }}\n\
             spf {{ }}\n.include \"$CONFDIR/modules.d/dkim.conf\"\ndmarc {{ }}\n\
             milter_headers {{ use = [\"authentication-results\", \"x-spam-status\"]; }}\n\
             rbl {{ default_exclude_users = true; default_unknown = true; rbls {{\n{rbls}}} }}\n"
        )
    }

    /// The differences from Debian's files.
    fn overrides(&self) -> Vec<(String, String)> {
        let Self {
            milter,
            http,
            options,
            ..
        } = self;
        let mut files = vec![
            (
                "worker-normal.inc".to_owned(),
                format!("bind_socket = \"{http}\"; count = 1;\n"),
            ),
            (
                "worker-proxy.inc".to_owned(),
                format!(
                    "bind_socket = \"{milter}\"; count = 1;\nupstream \"local\" {{ default = yes; hosts = \"{http}\"; }}\n"
                ),
            ),
            (
                "worker-controller.inc".to_owned(),
                "enabled = false;\n".to_owned(),
            ),
            ("options.inc".to_owned(), format!("{options}\n")),
            (
                "logging.inc".to_owned(),
                format!(
                    "log_format = \"{VERDICT}$if_smtp_from{{$}}|$action|$scores|$symbols|\";\n"
                ),
            ),
        ];
        let disabled = ["asn", "fuzzy_check", "rspamd_update"];
        files
            .extend(disabled.map(|name| (format!("{name}.conf"), "enabled = false;\n".to_owned())));
        files
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_log_have_senders_actions_and_symbols() {
        let line = "2026-01-01 #7(normal) <ab>; task; verdict|m1@a.test|add header|7.00/15.00|A,B|";
        let found = RspamdVerdict {
            action: "add header".to_owned(),
            symbols: vec!["A".to_owned(), "B".to_owned()],
        };
        assert_eq!(verdict(line), Some(("m1@a.test".to_owned(), found)));
        assert_eq!(verdict("2026-01-01 #7(normal) <ab>; task; other"), None);
    }
}
