//! The processes of a system, by their roles.

use nix::sys::signal::Signal;

use super::{System, signal, wait_until};

impl System {
    pub(super) fn roles_left(&self) -> usize {
        let roles = ["gateway", "courier", "spool", "store", "signer", "web"];
        roles.iter().map(|role| self.role_pids(role).len()).sum()
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
}
