//! The sandbox of a server with threads and files of its own.

use std::path::PathBuf;

use nix::sys::prctl;
use nix::sys::resource::{Resource, setrlimit};

use crate::calls::Call;
use crate::layers::{Layer, Missing, Standing};
use crate::{filter, rights};

/// What a server may do that answers strangers from files which are read again when they change.
///
/// Such a process gives up its rights in two steps: [`Service::give_up`] before its first thread, [`Service::close`] when
/// all sockets are open and all threads run. It keeps its user, to whom the files belong.
#[derive(Debug, Clone, Copy)]
pub struct Service<'a> {
    /// The folders whose files may be read.
    pub readable: &'a [PathBuf],
    /// The system calls that are carried out. Any other call ends the process by SIGSYS.
    pub calls: &'a [&'a [Call]],
    /// The system calls that return an error to the process.
    pub refused: &'a [Call],
}

impl Service<'_> {
    /// Gives up privileges, dumps of memory, ports, other processes, and all files but those to read. Threads that run
    /// already keep their rights.
    #[must_use]
    pub fn give_up(&self) -> Standing {
        let mut standing = Standing::default();
        let privileges = prctl::set_no_new_privs().map_err(Missing::Refused);
        standing.note(Layer::Privileges, privileges);
        rights::give_up(&mut standing, self.readable);
        let limits = setrlimit(Resource::RLIMIT_CORE, 0, 0).map_err(Missing::Refused);
        standing.note(Layer::Limits, limits);
        standing
    }

    /// Gives up the system calls outside the lists, in all threads.
    pub fn close(&self, standing: &mut Standing) {
        standing.note(Layer::Calls, filter::load(self.calls, self.refused));
    }
}
