//! A running system.

use std::fs::File;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;

use super::{
    Child, Options, PATIENCE, Session, cpu_wait, free_address, output_of, read_all, run,
    run_with_input, signal, vere, wait_for, wait_until, wait_within,
};

/// A running system with one local domain `example.org` and the accounts alice and bob (password
/// `secret`).
#[derive(Debug)]
pub(crate) struct System {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) smtp: SocketAddr,
    pub(crate) submission: SocketAddr,
    pub(crate) submissions: SocketAddr,
    pub(crate) config: PathBuf,
    pub(crate) nodes: [SocketAddr; 2],
    serve: Child,
}

impl System {
    /// Starts a system and waits until the system accepts mail.
    pub(crate) fn start(options: &Options) -> Self {
        Self::start_in(tempfile::tempdir().expect("a temporary directory"), options)
    }

    /// Starts a system in a directory and waits until the system accepts mail.
    pub(crate) fn start_in(directory: tempfile::TempDir, options: &Options) -> Self {
        Self::start_as(directory, options, |_, _| {})
    }

    /// Starts a system in a directory, with a command changed for its SMTP address, and waits until the system
    /// accepts mail.
    pub(crate) fn start_as(
        directory: tempfile::TempDir,
        options: &Options,
        change: impl FnOnce(&mut Command, SocketAddr),
    ) -> Self {
        let mut system = Self::spawn(directory, options, change);
        system.wait_ready();
        system
    }

    /// Starts a system without waiting: the system may never accept mail.
    pub(crate) fn start_shut(options: &Options) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        Self::spawn(directory, options, |_, _| {})
    }

    fn spawn(
        directory: tempfile::TempDir,
        options: &Options,
        change: impl FnOnce(&mut Command, SocketAddr),
    ) -> Self {
        let config = directory.path().join("vere.toml");
        let mut prepared = Prepared {
            smtp: free_address(),
            submission: free_address(),
            submissions: free_address(),
            nodes: [free_address(), free_address()],
        };
        give_accounts(&directory.path().join("data"));
        prepared.write(options, directory.path());
        let mut command = serve_command(&config, directory.path());
        change(&mut command, prepared.smtp);
        let serve = Child::spawn(&mut command);
        // The command may hold descriptors that now belong to the daemon only.
        drop(command);
        let Prepared {
            smtp,
            submission,
            submissions,
            nodes,
        } = prepared;
        Self {
            directory,
            smtp,
            submission,
            submissions,
            config,
            nodes,
            serve,
        }
    }

    /// Writes the file of a system without starting the system, and returns the path.
    pub(crate) fn write_config(directory: &Path, options: &Options) -> PathBuf {
        give_accounts(&directory.join("data"));
        let mut prepared = Prepared {
            smtp: free_address(),
            submission: free_address(),
            submissions: free_address(),
            nodes: [free_address(), free_address()],
        };
        prepared.write(options, directory);
        directory.join("vere.toml")
    }

    /// Starts a system with fatal settings; returns its exit status and log.
    pub(crate) fn failing_start(options: &Options) -> (ExitStatus, String) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let config = Self::write_config(directory.path(), options);
        let mut serve = Child::spawn(&mut serve_command(&config, directory.path()));
        let status = wait_for("the end of vere serve", || serve.ended());
        let log = std::fs::read(directory.path().join("log")).expect("the log");
        (status, String::from_utf8_lossy(&log).into_owned())
    }

    /// Waits until the system accepts mail.
    pub(crate) fn wait_ready(&mut self) {
        wait_for("the greeting", || {
            if let Some(status) = self.serve.ended() {
                panic!("vere serve ended with {status}; log:\n{}", self.log());
            }
            Session::try_connect(self.smtp).ok().map(drop)
        });
    }

    /// Writes other settings to the file, which apply after [`System::reload`] or a restart.
    pub(crate) fn configure(&self, options: &Options) {
        let mut prepared = Prepared {
            smtp: self.smtp,
            submission: self.submission,
            submissions: self.submissions,
            nodes: self.nodes,
        };
        prepared.write(options, self.directory.path());
    }

    /// Writes other settings to the file and asks the system to read the file.
    pub(crate) fn reconfigure(&self, options: &Options) {
        self.configure(options);
        self.reload();
    }

    /// Asks the system to read its settings again.
    pub(crate) fn reload(&self) {
        self.signal(Signal::SIGHUP);
    }

    /// Stops the system and starts it again with the present settings of the file.
    pub(crate) fn restart(&mut self) {
        self.end();
        self.serve = Child::spawn(&mut serve_command(&self.config, self.directory.path()));
        self.wait_ready();
    }

    /// Kills all processes at once, starts the system again, and waits until the system accepts mail.
    pub(crate) fn crash(&mut self) {
        self.crash_without_waiting();
        self.wait_ready();
    }

    /// Kills all processes at once and starts the system again.
    pub(crate) fn crash_without_waiting(&mut self) {
        self.kill();
        self.start_again();
    }

    /// Starts the system after [`System::kill`].
    pub(crate) fn start_again(&mut self) {
        self.serve = Child::spawn(&mut serve_command(&self.config, self.directory.path()));
    }

    /// Kills all processes at once and waits until no process is left.
    pub(crate) fn kill(&mut self) {
        self.signal(Signal::SIGKILL);
        wait_for("the end of vere serve", || self.serve.ended());
        wait_until("the end of its roles", || self.roles_left() == 0);
        // An ending process loses its command line before closing its sockets.
        let mut addresses = vec![self.smtp, self.submission];
        addresses.extend(self.nodes);
        wait_until("the ports to be free", || {
            let free = |address: &SocketAddr| TcpListener::bind(address).is_ok();
            addresses.iter().all(free)
        });
    }

    fn roles_left(&self) -> usize {
        let roles = ["gateway", "spool", "store", "signer"];
        roles.iter().map(|role| self.role_pids(role).len()).sum()
    }

    /// Where the mail of a local account lies.
    pub(crate) fn maildir(&self, name: &str) -> PathBuf {
        let maildirs = self.directory.path().join("data/maildir/example.org");
        maildirs.join(name).join("new")
    }

    /// The mail of an account so far.
    pub(crate) fn mail(&self, name: &str) -> Vec<String> {
        read_all(&self.maildir(name))
    }

    /// Waits until an account has exactly `count` messages and gives their texts.
    pub(crate) fn wait_mail(&self, name: &str, count: usize) -> Vec<String> {
        wait_for(&format!("{count} messages for {name}"), || {
            let texts = self.mail(name);
            (texts.len() == count).then_some(texts)
        })
    }

    /// Runs a command against the system and returns its output.
    pub(crate) fn command(&self, arguments: &[&str]) -> String {
        run(vere().args(arguments).arg("-c").arg(&self.config))
    }

    /// Runs a command against the system with `--json` and returns the output.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let text = self.command(&[arguments, &["--json"]].concat());
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("JSON: {text}"))
    }

    /// Starts a command without waiting for its end.
    pub(crate) fn start_command(&self, arguments: &[&str]) -> Child {
        let mut command = vere();
        command.args(arguments).arg("-c").arg(&self.config);
        Child::spawn(command.stdout(Stdio::null()))
    }

    /// Runs a command that fails and returns its exit code and output.
    pub(crate) fn failing_command(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let mut command = vere();
        command.args(arguments).arg("-c").arg(&self.config);
        let output = output_of(&mut command, "");
        assert!(!output.status.success(), "{command:?} succeeds");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), text)
    }

    /// Adds the domain and the accounts of the scripts.
    pub(crate) fn add_script_accounts(&self) {
        self.command(&["domain", "add", "demo.test"]);
        for name in ["alice", "bob", "postmaster"] {
            let mut add = vere();
            let address = format!("{name}@demo.test");
            add.args(["account", "add", &address, "--password-stdin", "-c"])
                .arg(&self.config);
            run_with_input(&mut add, "demo\n");
        }
    }

    /// Adds an account with the password `secret`.
    pub(crate) fn add_account(&self, address: &str) {
        add_account(&self.config, address);
    }

    /// The queues as `vere queue list --json` prints the queues.
    pub(crate) fn queues(&self) -> Vec<Value> {
        let queues = self.json(&["queue", "list"]);
        queues.as_array().expect("a list").clone()
    }

    /// Waits until the last reply of some queue contains `part`, and returns the reply.
    pub(crate) fn wait_last_reply(&self, part: &str) -> String {
        wait_for("a failed attempt", || {
            let queues = self.queues();
            let mut replies = queues.iter().filter_map(|row| row["last_reply"].as_str());
            replies
                .find(|reply| reply.contains(part))
                .map(str::to_owned)
        })
    }

    /// How many messages wait in all queues.
    pub(crate) fn queued(&self) -> u64 {
        let queues = self.queues();
        let messages = queues.iter().map(|queue| queue["messages"].as_u64());
        messages.map(|count| count.expect("a number")).sum()
    }

    /// How many messages wait, if a gateway answers.
    pub(crate) fn queued_if_up(&self) -> Option<u64> {
        let mut command = vere();
        command.args(["queue", "list", "--json", "-c"]);
        let output = output_of(command.arg(&self.config), "");
        let queues: Value = serde_json::from_slice(&output.stdout).ok()?;
        let messages = queues
            .as_array()?
            .iter()
            .map(|queue| queue["messages"].as_u64());
        messages.sum()
    }

    /// Waits until no message is queued.
    pub(crate) fn wait_empty(&self) {
        wait_until("empty queues", || self.queued() == 0);
    }

    /// The process ids of a role, by their command lines; `spool a` is one node, `spool` all nodes.
    pub(crate) fn role_pids(&self, role: &str) -> Vec<u32> {
        let (role, node) = role.split_once(' ').unwrap_or((role, ""));
        let config = self.config.to_string_lossy().into_owned();
        let processes = std::fs::read_dir("/proc").expect("/proc");
        let pids = processes
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter(|pid: &u32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let words: Vec<_> = line.split(|&octet| octet == 0).collect();
            words
                .windows(2)
                .any(|two| two == [b"role", role.as_bytes()])
                && words.contains(&config.as_bytes())
                && (node.is_empty() || words.contains(&node.as_bytes()))
        })
        .collect()
    }

    /// Sends a signal to a role's processes and gives how many there were.
    pub(crate) fn signal_role(&self, role: &str, sent: Signal) -> usize {
        let pids = self.role_pids(role);
        pids.iter().filter(|pid| signal(**pid, sent)).count()
    }

    /// Stops the only process of a role, and the supervisor, which would replace the process.
    pub(crate) fn halt(&self, role: &str) {
        self.signal(Signal::SIGSTOP);
        assert_eq!(self.signal_role(role, Signal::SIGSTOP), 1);
    }

    /// Continues after [`System::halt`].
    pub(crate) fn go_on(&self, role: &str) {
        assert_eq!(self.signal_role(role, Signal::SIGCONT), 1);
        self.signal(Signal::SIGCONT);
    }

    /// Kills a role's processes with SIGKILL and waits for new processes.
    pub(crate) fn kill_and_wait(&self, role: &str) {
        let before = self.role_pids(role);
        self.signal_role(role, Signal::SIGKILL);
        wait_until("a new process", || {
            let pids = self.role_pids(role);
            !pids.is_empty() && pids.iter().all(|pid| !before.contains(pid))
        });
    }

    /// Submits a message in a session of its own and returns the queue id.
    pub(crate) fn submit(&self, from: &str, to: &[&str], text: &str) -> String {
        Session::greeted(self.smtp).submit(from, to, text)
    }

    /// Connects, and gives how long the greeting took without what all had to wait for a CPU.
    pub(crate) fn time_greeting(&self, gateway: u32) -> (Session, Duration) {
        let waits = || cpu_wait(Some(gateway)) + cpu_wait(None);
        let (began, waited) = (Instant::now(), waits());
        let session = Session::connect(self.smtp);
        let took = began.elapsed();
        (session, took.saturating_sub(waits().saturating_sub(waited)))
    }

    /// Connects and sends octets that arrive before the gateway's greeting.
    pub(crate) fn speak_early(&self, octets: &[u8]) -> Session {
        self.signal_role("gateway", Signal::SIGSTOP);
        let mut session = Session::open(self.smtp).expect("a connection");
        session.send(octets);
        self.signal_role("gateway", Signal::SIGCONT);
        session
    }

    /// Sends a signal to the supervisor.
    pub(crate) fn signal(&self, sent: Signal) {
        assert!(signal(self.serve.id(), sent), "it runs");
    }

    /// The log of the system so far.
    pub(crate) fn log(&self) -> String {
        let octets = std::fs::read(self.directory.path().join("log")).unwrap_or_default();
        String::from_utf8_lossy(&octets).into_owned()
    }

    /// Waits until the log has a line with all of `parts` and returns the line.
    pub(crate) fn wait_log(&self, parts: &[&str]) -> String {
        wait_for(&format!("a line with {parts:?} in the log"), || {
            let log = self.log();
            let mut lines = log.lines();
            let line = lines.find(|line| parts.iter().all(|part| line.contains(part)));
            line.map(str::to_owned)
        })
    }

    /// Stops the system as an operator would; the exit must be clean.
    pub(crate) fn stop(mut self) {
        self.end();
    }

    /// Sends a signal to the supervisor and waits for its end.
    pub(crate) fn end_by(self, sent: Signal) -> ExitStatus {
        self.signal(sent);
        self.wait_end()
    }

    /// Waits for the end of the supervisor, which was told to stop.
    pub(crate) fn wait_end(mut self) -> ExitStatus {
        wait_for("the end of vere serve", || self.serve.ended())
    }

    /// Stops the system as an operator would, for another start.
    pub(crate) fn end(&mut self) {
        let status = self.serve.stop(PATIENCE);
        assert!(status.success(), "exit {status}; log:\n{}", self.log());
        assert_eq!(self.roles_left(), 0, "roles outlive the supervisor");
    }
}

impl Drop for System {
    fn drop(&mut self) {
        // Roles end with their supervisor, also when the test failed.
        if self.serve.ended().is_none() {
            signal(self.serve.id(), Signal::SIGKILL);
            wait_within(PATIENCE, "the end", || self.serve.ended());
        }
        if std::thread::panicking() {
            let log = self.log();
            let start = log.len().saturating_sub(20_000);
            let tail = log.as_bytes().get(start..).unwrap_or_default();
            eprintln!("log of the system:\n{}", String::from_utf8_lossy(tail));
        }
    }
}

/// The addresses of a system.
struct Prepared {
    smtp: SocketAddr,
    submission: SocketAddr,
    submissions: SocketAddr,
    nodes: [SocketAddr; 2],
}

impl Prepared {
    fn write(&mut self, options: &Options, directory: &Path) {
        let listen = |address: SocketAddr| format!("[\"{address}\"]");
        let mut text = String::new();
        let mut options = options
            .clone()
            .set("smtp.listen", &listen(self.smtp))
            .set("submission.listen", &listen(self.submission));
        if options.has_certificate() {
            options = options.set("submissions.listen", &listen(self.submissions));
        }
        text.push_str(&options.render(directory));
        for (name, address) in ["a", "b"].iter().zip(self.nodes) {
            text.push_str(&options.node_section(name, address));
            if options.encrypts_spool() {
                text.push_str("tls = \"required\"\n");
            }
        }
        std::fs::write(directory.join("vere.toml"), text).expect("the configuration");
    }
}

fn serve_command(config: &Path, directory: &Path) -> Command {
    let log = File::options()
        .create(true)
        .append(true)
        .open(directory.join("log"))
        .expect("the log");
    let mut command = vere();
    command
        .arg("serve")
        .arg("-c")
        .arg(config)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log);
    command
}

/// Puts a directory with the usual accounts below `data`; it is made by the commands once for all
/// tests, since hashing passwords is slow on purpose.
fn give_accounts(data: &Path) {
    static MADE: OnceLock<String> = OnceLock::new();
    let text = MADE.get_or_init(|| {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let config = directory.path().join("vere.toml");
        let text = "version = 1\nhostname = \"mx.example.org\"\ndata = \"data\"\n";
        std::fs::write(&config, text).expect("the configuration");
        run(vere()
            .args(["domain", "add", "example.org", "-c"])
            .arg(&config));
        for name in ["alice", "bob"] {
            add_account(&config, &format!("{name}@example.org"));
        }
        let made = directory.path().join("data/directory.toml");
        std::fs::read_to_string(made).expect("the directory")
    });
    std::fs::create_dir_all(data).expect("the data folder");
    std::fs::write(data.join("directory.toml"), text).expect("the directory");
}

fn add_account(config: &Path, address: &str) {
    let mut add = vere();
    add.args(["account", "add", address, "--password-stdin", "-c"])
        .arg(config);
    run_with_input(&mut add, "secret\n");
}
