//! A running system.

use std::fmt::Display;
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
    run_with_input, signal, stands_still, vere, wait_for, wait_until, wait_within,
};

/// A running system with one local domain `example.org` and the accounts alice and bob (password `secret`).
///
/// It ends with the test, as an operator would end it: the exit must be clean.
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
        let own = Addresses::free();
        give_accounts(&directory.path().join("data"));
        let config = own.write(options, directory.path());
        let mut command = serve_command(&config, directory.path());
        change(&mut command, own.smtp);
        let serve = Child::spawn(&mut command);
        // The command may hold descriptors that now belong to the daemon only.
        drop(command);
        Self {
            directory,
            smtp: own.smtp,
            submission: own.submission,
            submissions: own.submissions,
            config,
            nodes: own.nodes,
            serve,
        }
    }

    /// Writes the file of a system without starting the system, and returns the path.
    pub(crate) fn write_config(directory: &Path, options: &Options) -> PathBuf {
        give_accounts(&directory.join("data"));
        Addresses::free().write(options, directory)
    }

    /// Starts a system with fatal settings; returns its exit status and log.
    pub(crate) fn failing_start(options: &Options) -> (ExitStatus, String) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let config = Self::write_config(directory.path(), options);
        let mut serve = Child::spawn(&mut serve_command(&config, directory.path()));
        let status = wait_for("the end of vere serve", || serve.ended());
        (status, log(directory.path()))
    }

    /// Waits until the system accepts mail.
    pub(crate) fn wait_ready(&mut self) {
        let directory = self.directory.path();
        self.serve.wait_greeting(self.smtp, || log(directory));
    }

    /// Writes other settings to the file, which apply after [`System::reload`] or a restart.
    pub(crate) fn configure(&self, options: &Options) {
        let own = Addresses {
            smtp: self.smtp,
            submission: self.submission,
            submissions: self.submissions,
            nodes: self.nodes,
        };
        own.write(options, self.directory.path());
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
        self.start_again();
    }

    /// Kills all processes at once, starts the system again, and waits until the system accepts mail.
    pub(crate) fn crash(&mut self) {
        self.kill();
        self.start_again();
    }

    /// Kills all processes at once and starts the system again.
    pub(crate) fn crash_without_waiting(&mut self) {
        self.kill();
        self.serve = Child::spawn(&mut serve_command(&self.config, self.directory.path()));
    }

    /// Starts the system after [`System::kill`], and waits until the system accepts mail.
    pub(crate) fn start_again(&mut self) {
        self.serve = Child::spawn(&mut serve_command(&self.config, self.directory.path()));
        self.wait_ready();
    }

    /// Kills all processes at once and waits until no process is left and all ports are free.
    pub(crate) fn kill(&mut self) {
        self.signal(Signal::SIGKILL);
        wait_for("the end of vere serve", || self.serve.ended());
        wait_until("the end of its roles", || self.roles_left() == 0);
        // An ending process loses its command line before closing its sockets.
        let config = std::fs::read_to_string(&self.config).expect("the configuration");
        let lists = config.lines().filter_map(|line| {
            let list = line.strip_prefix("listen = [")?.trim_end_matches(']');
            list.trim_matches('"').parse().ok()
        });
        let addresses: Vec<SocketAddr> = lists.chain(self.nodes).collect();
        wait_until("the ports to be free", || {
            let free = |address: &SocketAddr| TcpListener::bind(address).is_ok();
            addresses.iter().all(free)
        });
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

    /// Runs a command with `--json` that prints a list.
    pub(crate) fn rows(&self, arguments: &[&str]) -> Vec<Value> {
        let rows = self.json(arguments);
        rows.as_array().expect("a list").clone()
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

    /// Runs a command that fails with exit code 1 and returns its output.
    pub(crate) fn refused(&self, arguments: &[&str]) -> String {
        let (code, said) = self.failing_command(arguments);
        assert_eq!(code, Some(1), "{arguments:?}: {said}");
        said
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
        self.rows(&["queue", "list"])
    }

    /// Waits for a queue that fits.
    pub(crate) fn wait_queue(&self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        wait_for(what, || self.queues().into_iter().find(&fits))
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

    /// Submits a message in a separate session and returns the queue id.
    pub(crate) fn submit(&self, from: &str, to: &[&str], text: &str) -> String {
        Session::greeted(self.smtp).submit(from, to, text)
    }

    /// Sends a short message with a subject in a separate session and returns the queue id.
    pub(crate) fn submit_about(&self, from: &str, to: &[&str], subject: impl Display) -> String {
        Session::greeted(self.smtp).submit_about(from, to, subject)
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
        log(self.directory.path())
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

    /// Ends the system before the end of the test.
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
        let has_failed = std::thread::panicking();
        match self.serve.ended() {
            Some(_) => {}
            // A halted supervisor hears of nothing but its end.
            None if has_failed || stands_still(self.serve.id()) => {
                signal(self.serve.id(), Signal::SIGKILL);
                wait_within(PATIENCE, "the end", || self.serve.ended());
            }
            None => self.end(),
        }
        if has_failed {
            let log = self.log();
            let start = log.len().saturating_sub(20_000);
            let tail = log.as_bytes().get(start..).unwrap_or_default();
            eprintln!("log of the system:\n{}", String::from_utf8_lossy(tail));
        }
    }
}

/// The addresses of a system.
struct Addresses {
    smtp: SocketAddr,
    submission: SocketAddr,
    submissions: SocketAddr,
    nodes: [SocketAddr; 2],
}

impl Addresses {
    fn free() -> Self {
        Self {
            smtp: free_address(),
            submission: free_address(),
            submissions: free_address(),
            nodes: [free_address(), free_address()],
        }
    }

    fn write(&self, options: &Options, directory: &Path) -> PathBuf {
        let listen = |address: SocketAddr| format!("[\"{address}\"]");
        let mut options = options
            .clone()
            .set("smtp.listen", &listen(self.smtp))
            .set("submission.listen", &listen(self.submission));
        if options.has_certificate() {
            options = options.set("submissions.listen", &listen(self.submissions));
        }
        let mut text = options.render(directory);
        for (name, address) in ["a", "b"].iter().zip(self.nodes) {
            text.push_str(&options.node_section(name, address));
            if options.encrypts_spool() {
                text.push_str("tls = \"required\"\n");
            }
        }
        let config = directory.join("vere.toml");
        std::fs::write(&config, text).expect("the configuration");
        config
    }
}

fn log(directory: &Path) -> String {
    let octets = std::fs::read(directory.join("log")).unwrap_or_default();
    String::from_utf8_lossy(&octets).into_owned()
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
        let config = Options::write_smallest(directory.path(), "");
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
