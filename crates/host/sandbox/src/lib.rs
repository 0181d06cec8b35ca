//! What a process gives up before it reads what strangers sent.
//!
//! A [`Sandbox`] has several layers that do not depend on each other: limits (setrlimit(2)), another user (setresuid(2)),
//! no new privileges (prctl(2)), rights to files, ports and signals (landlock(7)), and the list of system calls (seccomp(2)).
//! [`Sandbox::enter`] tries each layer; a kernel without one of them gives the others, and [`Standing`] says which layers
//! hold and why the others do not. `docs/internals/sandbox.md` says what each layer refuses.
//!
//! ```no_run
//! use vere_sandbox::{Layer, Sandbox, calls};
//!
//! let sandbox = Sandbox { files: 0, calls: &[calls::ORDINARY, calls::STREAM], refused: calls::LOOKING };
//! let standing = sandbox.enter();
//! if !standing.held.contains(Layer::Calls) {
//!     eprintln!("{standing}");
//! }
//! ```

pub mod calls;
mod filter;
mod layers;
mod rights;
mod service;
mod user;

pub use layers::{Layer, Layers, Missing, Standing};
pub use service::Service;

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::resource::{Resource, setrlimit};

use calls::Call;

/// What a process may do after [`Sandbox::enter`].
#[derive(Debug, Clone, Copy)]
pub struct Sandbox<'a> {
    /// Descriptors that may be open at once. Descriptors that are open stay open, also above this number.
    pub files: u64,
    /// The system calls that are carried out. Any other call ends the process by SIGSYS.
    pub calls: &'a [&'a [Call]],
    /// The system calls that return an error to the process.
    pub refused: &'a [Call],
}

impl Sandbox<'_> {
    /// Enters the sandbox, for good. Threads that run already keep their rights to files, ports and signals, so that a
    /// process has to enter before its first thread.
    pub fn enter(&self) -> Standing {
        let mut standing = Standing::default();
        standing.note(Layer::User, user::become_nobody());
        standing.note(
            Layer::Privileges,
            prctl::set_no_new_privs().map_err(Missing::Refused),
        );
        rights::give_up(&mut standing, &[]);
        // The rights are described by a descriptor.
        standing.note(Layer::Limits, self.limit());
        // Last, because the calls of the other layers are in no list.
        standing.note(Layer::Calls, filter::load(self.calls, self.refused));
        standing
    }

    /// Neither a dump of the memory, nor another process, nor further descriptors.
    fn limit(&self) -> Result<(), Missing> {
        let limit = |resource, most| setrlimit(resource, most, most).map_err(Missing::Refused);
        limit(Resource::RLIMIT_CORE, 0)?;
        limit(Resource::RLIMIT_NPROC, 0)?;
        limit(Resource::RLIMIT_NOFILE, self.files)
    }
}

impl From<Errno> for Missing {
    fn from(errno: Errno) -> Self {
        Self::Refused(errno)
    }
}

#[cfg(test)]
mod tests;
