//! A mount with the engine in memory behind.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;
use vere_fuse::{Mount, Options, Refused, Replies, Sink, Strength};
use vere_ports::files::{Call, CallId, Caller};

use crate::memory::Memory;

/// Whether this machine can mount; the reason is printed if not.
pub(crate) fn possible() -> bool {
    let root = nix::unistd::geteuid().is_root();
    let device = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/fuse");
    match (root, &device) {
        (true, Ok(_)) => true,
        (false, _) => {
            println!("skipped: mounting needs root");
            false
        }
        (_, Err(error)) => {
            println!("skipped: /dev/fuse: {error}");
            false
        }
    }
}

type Event = (CallId, Caller, Call);

/// Passes calls on, and keeps a copy of each.
pub(crate) struct Recorder {
    events: mpsc::Sender<Event>,
    seen: Arc<Mutex<Vec<(Caller, Call)>>>,
}

impl Sink for Recorder {
    fn call(&self, id: CallId, caller: Caller, call: Call) -> Result<(), Refused> {
        self.seen.lock().unwrap().push((caller, call.clone()));
        self.events.send((id, caller, call)).map_err(|_| Refused)
    }

    fn ended(&self) {}
}

pub(crate) struct Fixture {
    pub(crate) mount: Mount,
    pub(crate) memory: Arc<Mutex<Memory>>,
    pub(crate) seen: Arc<Mutex<Vec<(Caller, Call)>>>,
    _folder: TempDir,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self::with(&Options::default())
    }

    pub(crate) fn with(options: &Options) -> Self {
        let folder = TempDir::new().unwrap();
        let memory = Arc::new(Mutex::new(Memory::new()));
        let seen = Arc::default();
        let mount = start(folder.path(), options, &memory, &seen);
        Self {
            mount,
            memory,
            seen,
            _folder: folder,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.mount.point().join(name)
    }

    /// The calls so far, and none of them later.
    pub(crate) fn take_seen(&self) -> Vec<Call> {
        let seen = std::mem::take(&mut *self.seen.lock().unwrap());
        seen.into_iter().map(|(_, call)| call).collect()
    }

    pub(crate) fn end(self) {
        self.mount.unmount(Strength::Soft).unwrap();
        self.mount.wait(Duration::from_secs(10)).unwrap();
    }
}

fn start(
    point: &Path,
    options: &Options,
    memory: &Arc<Mutex<Memory>>,
    seen: &Arc<Mutex<Vec<(Caller, Call)>>>,
) -> Mount {
    let (events, calls) = mpsc::channel::<Event>();
    let (back, replies) = mpsc::channel::<Replies>();
    let engine = Arc::clone(memory);
    thread::spawn(move || {
        let Ok(replies) = replies.recv() else { return };
        while let Ok((id, caller, call)) = calls.recv() {
            if let Some(result) = engine.lock().unwrap().call(caller, call) {
                replies.reply(id, result);
            }
        }
    });
    let sink = Recorder {
        events,
        seen: Arc::clone(seen),
    };
    let mount = Mount::start(point, options, Arc::new(sink)).unwrap();
    back.send(mount.replies()).unwrap();
    mount
}
