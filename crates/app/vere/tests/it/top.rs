//! `vere queue top`: at a pseudo terminal, without one, and as text.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use nix::pty::{Winsize, openpty};
use nix::sys::signal::Signal;
use nix::sys::termios::{LocalFlags, tcgetattr};

use crate::harness::{
    Child, Options, System, assert_has, free_address, program, signal, skip, wait_for, wait_until,
};

/// A system with a message for a next hop without a listener, and the name of the queue.
fn with_a_queue() -> (System, String) {
    let address = free_address();
    let options = Options::to(address).set("delivery.retry", "[\"1h\"]");
    let system = System::start(&options);
    system.submit("alice@example.org", &["x@example.com"], "A: b\r\n\r\nc");
    (system, format!("relay:{address}"))
}

/// The program at a pseudo-terminal.
struct AtTerminal {
    process: Child,
    keys: File,
    terminal: OwnedFd,
    seen: Arc<Mutex<Vec<u8>>>,
}

impl AtTerminal {
    /// `None`: the machine lacks a program that provides a terminal.
    fn start(system: &System) -> Option<Self> {
        let Some(setsid) = program("setsid") else {
            skip("vere queue top at a terminal", "setsid is missing");
            return None;
        };
        let size = Winsize {
            ws_row: 24,
            ws_col: 80,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let pair = openpty(Some(&size), None).expect("a pseudo terminal");
        let end = || Stdio::from(pair.slave.try_clone().expect("a descriptor"));
        let mut command = Command::new(setsid);
        command
            .args(["--ctty", env!("CARGO_BIN_EXE_vere")])
            .args(["queue", "top", "--interval", "200ms", "--config"])
            .arg(&system.config)
            .env("TERM", "xterm")
            .stdin(end())
            .stdout(end())
            .stderr(end());
        let process = Child::spawn(&mut command);
        let keys = File::from(pair.master);
        let mut screen = keys.try_clone().expect("a descriptor");
        let seen = Arc::<Mutex<Vec<u8>>>::default();
        let all = Arc::clone(&seen);
        std::thread::spawn(move || {
            let mut octets = [0; 4096];
            // The reader ends when the last descriptor of the other end is closed.
            while let Ok(count @ 1..) = screen.read(&mut octets) {
                all.lock()
                    .expect("no panic")
                    .extend_from_slice(&octets[..count]);
            }
        });
        Some(Self {
            process,
            keys,
            terminal: pair.slave,
            seen,
        })
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("a terminal");
    }

    /// Waits until the output contains a text.
    fn wait(&self, what: &str) {
        wait_until(what, || {
            let seen = self.seen.lock().expect("no panic");
            String::from_utf8_lossy(&seen).contains(what)
        });
    }

    /// Whether lines are edited and keys echoed, as a shell left it.
    fn is_as_before(&self) -> bool {
        let state = tcgetattr(&self.terminal).expect("a terminal");
        let wanted = LocalFlags::ICANON | LocalFlags::ECHO;
        state.local_flags.contains(wanted)
    }

    /// Ends with success, with the terminal restored.
    fn ended(&mut self) {
        let status = wait_for("its end", || self.process.ended());
        assert!(status.success(), "{status}");
        assert!(self.is_as_before());
        // Back to the first screen.
        self.wait("\x1b[?1049l");
    }
}

#[test]
fn at_a_terminal_a_queue_is_shown_held_and_released_by_keys() {
    let (system, destination) = with_a_queue();
    let Some(mut top) = AtTerminal::start(&system) else {
        return;
    };
    top.wait(&destination);
    assert!(!top.is_as_before());
    let held = || {
        let queues = system.queues();
        let mut queues = queues.iter();
        queues.any(|queue| queue["held_until"] == "taken back")
    };
    top.press("hy");
    wait_until("the hold", held);
    top.press("ry");
    wait_until("its end", || !held());
    // A larger terminal has space for the replies of hosts.
    let stty = Command::new("stty")
        .args(["rows", "40", "cols", "160"])
        .stdin(top.terminal.try_clone().expect("a descriptor"))
        .status();
    assert!(stty.expect("stty is everywhere").success());
    top.wait("COMPLAINT");
    top.press("q");
    top.ended();
}

#[test]
fn a_signal_leaves_the_terminal_as_it_was() {
    let (system, destination) = with_a_queue();
    let Some(mut top) = AtTerminal::start(&system) else {
        return;
    };
    top.wait(&destination);
    assert!(signal(top.process.id(), Signal::SIGTERM));
    top.ended();
}

#[test]
fn without_a_terminal_it_names_what_prints_the_same() {
    let (system, destination) = with_a_queue();
    let said = system.refused(&["queue", "top"]);
    assert!(said.contains("vere queue list --json"), "{said}");
    let frame = system.command(&["queue", "top", "--once", "--interval", "200ms"]);
    assert_has(&frame, &["intake open", "replica "]);
    let mut lines = frame.lines();
    let line = lines.find(|line| line.starts_with(&destination));
    let fields: Vec<_> = line.expect("the queue").split_whitespace().collect();
    assert_eq!(fields[1], "1", "one message is queued: {frame}");
    let all = system.json(&["queue", "top", "--once", "--interval", "200ms"]);
    assert_eq!(all["totals"]["messages"], 1, "{all}");
    assert_eq!(all["rates"]["came"], 0.0, "{all}");
    assert!(all["budgets"][0]["max"].is_u64(), "{all}");
    assert_eq!(all["replicas"].as_array().map(Vec::len), Some(2), "{all}");
    let queue = &all["queues"][0];
    assert_eq!(queue["destination"], destination.as_str(), "{all}");
    assert_eq!(
        (&queue["messages"], &queue["rates"]["left"]),
        (&1.into(), &0.0.into())
    );
    let (code, said) = system.failing_command(&["queue", "top", "--json"]);
    assert!(code == Some(2) && said.contains("--once"), "{said}");
    let none = ["queue", "top", "--once", "--filter", "nowhere"];
    let frame = system.command(&none);
    assert!(!frame.contains(&destination), "{frame}");
}
