//! A failing disk.

use std::process::Command;

use super::{Child, PATIENCE, program, skip, wait_for};

/// Lets every sync of a process fail until the end of this.
pub(crate) struct FailingSync(Child);

impl FailingSync {
    /// Begins to fail; prints a reason where the machine cannot.
    pub(crate) fn begin(pid: u32) -> Option<Self> {
        program("strace")?;
        let mut strace = Command::new("strace");
        strace
            .args(["-f", "-qq", "-o", "/dev/null"])
            .args(["-e", "trace=fsync,fdatasync"])
            .args(["-e", "inject=fsync,fdatasync:error=EIO", "-p"])
            .arg(pid.to_string());
        let mut strace = Child::spawn_quiet(&mut strace);
        let traced = wait_for("the tracer", || {
            let ended = strace.ended().map(|_| false);
            ended.or_else(|| is_traced(pid).then_some(true))
        });
        if !traced {
            skip("a disk that fails", "no process may be traced here");
            return None;
        }
        Some(Self(strace))
    }

    /// Ends the failure.
    pub(crate) fn end(mut self) {
        self.0.stop(PATIENCE);
    }
}

/// Whether all threads of a process have a tracer.
fn is_traced(pid: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task"));
    threads.expect("its threads").flatten().all(|thread| {
        let status = std::fs::read_to_string(thread.path().join("status"));
        let status = status.unwrap_or_default();
        let tracer = status
            .lines()
            .find_map(|line| line.strip_prefix("TracerPid:"));
        tracer.is_some_and(|tracer| tracer.trim() != "0")
    })
}
