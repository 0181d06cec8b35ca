//! A mount ends in time under every fault of its provider, and the next mount shows what was accepted before.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::harness::{assert_has, run, wait_until};
use crate::mounts::{Volume, can_mount};
use crate::peers::Dovecot;

/// The longest end of a mount: 60 s for the last changes, and 15 s for the process.
const LONGEST: Duration = Duration::from_secs(75);
/// Faults at once.
const THREADS: usize = 3;

/// What a server says instead of each answer, by the number of the lie; empty for the truth.
const LIES: [&str; 5] = [
    "",
    "* BYE go away\r\n",
    "\0\u{1}((((((\r\nc1 OK c2 OK\r\n",
    "* OK still at work\r\n",
    "+ go ahead\r\n",
];

/// A relay to a server, which lies on demand.
struct Liar {
    address: SocketAddr,
    lie: Arc<AtomicUsize>,
}

impl Liar {
    fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let lie = Arc::new(AtomicUsize::new(0));
        let own = Arc::clone(&lie);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(target) else {
                    continue;
                };
                for (from, to, lie) in [
                    (&client, &server, None),
                    (&server, &client, Some(Arc::clone(&own))),
                ] {
                    let from = from.try_clone().expect("a descriptor");
                    let to = to.try_clone().expect("a descriptor");
                    std::thread::spawn(move || hand_on(from, to, lie.as_deref()));
                }
            }
        });
        Self { address, lie }
    }
}

/// Hands octets on, or says something else for ever.
fn hand_on(mut from: TcpStream, mut to: TcpStream, lie: Option<&AtomicUsize>) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let number = || lie.map_or(0, |lie| lie.load(Ordering::Relaxed));
        let mut octets = buffer[..count].to_vec();
        while number() > 0 {
            octets = LIES[number()].repeat(100).into_bytes();
            if to.write_all(&octets).is_err() {
                break;
            }
        }
        if to.write_all(&octets).is_err() {
            break;
        }
    }
    for socket in [from, to] {
        let _gone = socket.shutdown(Shutdown::Both);
    }
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// Octets vanish.
    Silent,
    /// The same, while a program waits for an fsync.
    SilentAndInUse,
    /// The server has ended.
    Ended,
    ReadOnly,
    /// All packs are gone.
    Deleted,
    /// The packs have other UIDs.
    Renumbered,
    Lie(usize),
}

const FAULTS: [Fault; 10] = [
    Fault::Silent,
    Fault::SilentAndInUse,
    Fault::Ended,
    Fault::ReadOnly,
    Fault::Deleted,
    Fault::Renumbered,
    Fault::Lie(1),
    Fault::Lie(2),
    Fault::Lie(3),
    Fault::Lie(4),
];

/// The Maildir folders of the volume, with those of packs alone if wanted.
fn folders(volume: &Volume, packs: bool) -> Vec<PathBuf> {
    let all = fs::read_dir(volume.dovecot.maildir("bob")).expect("a Maildir");
    let all = all.flatten().map(|entry| entry.path());
    let name = |path: &Path| {
        path.file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned()
    };
    all.filter(|path| name(path).starts_with(".VereFS."))
        .filter(|path| !packs || name(path).contains(".data-"))
        .collect()
}

fn permit(volume: &Volume, mode: u32) {
    for folder in folders(volume, false) {
        for of in ["", "cur", "new", "tmp"] {
            let path = folder.join(of);
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
        }
    }
}

fn delete(volume: &Volume) {
    for folder in folders(volume, true) {
        for of in ["cur", "new"] {
            for mail in fs::read_dir(folder.join(of)).expect("a folder").flatten() {
                fs::remove_file(mail.path()).expect("a mail");
            }
        }
    }
}

/// Dovecot numbers a mailbox anew whose list of UIDs is gone.
fn renumber(volume: &Volume) {
    for folder in folders(volume, true) {
        for file in fs::read_dir(&folder).expect("a folder").flatten() {
            if file.file_name().to_string_lossy().starts_with("dovecot") {
                fs::remove_file(file.path()).expect("a file");
            }
        }
    }
}

fn umount(volume: &Volume, words: &[&str]) -> Duration {
    let begun = Instant::now();
    let said = run(volume.fs(&["umount", "home"]).args(words));
    // A process that another thread begins has all files of this one for a moment.
    if said.contains("still use") {
        wait_until("the end of the mount", || has_ended(volume));
    }
    begun.elapsed()
}

/// Whether no process has the volume.
fn has_ended(volume: &Volume) -> bool {
    let all = fs::read_dir(volume.path("state").join("vere/fs")).expect("a folder");
    let mut locks = all.flatten().map(|entry| entry.path().join("lock"));
    let lock = locks.find(|path| path.exists()).expect("a lock");
    let lock = File::options().write(true).open(lock).expect("a file");
    lock.try_lock().is_ok()
}

/// Whether a thread waits in the kernel.
fn waits(thread: &Path) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(thread).join("stat"));
    let stat = stat.expect("a thread");
    // The state stands behind the name, which is in parentheses (proc(5)).
    let (_, behind) = stat.rsplit_once(") ").expect("a state");
    behind.starts_with(['S', 'D'])
}

/// Content in a pack of its own.
fn content(seed: u32) -> Vec<u8> {
    let octet = |at: u32| (at.wrapping_mul(2_654_435_761).wrapping_add(seed) >> 13) as u8;
    (0..200_000).map(octet).collect()
}

fn ends_in_time(fault: Fault) {
    let Some(dovecot) = Dovecot::start() else {
        return;
    };
    let relay = vere_faults::relay::Relay::to(dovecot.imap, Duration::ZERO);
    let liar = Liar::to(relay.address);
    let volume = Volume::on(dovecot, liar.address);
    volume.mount();
    let path = |name: &str| volume.point().join(name);
    fs::write(path("before"), content(1)).expect("a file");
    run(&mut volume.fs(&["sync", "home"]));
    match fault {
        Fault::Silent | Fault::SilentAndInUse => relay.silence(true),
        Fault::Ended => relay.refuse(true),
        Fault::ReadOnly => permit(&volume, 0o500),
        Fault::Deleted => delete(&volume),
        Fault::Renumbered => renumber(&volume),
        Fault::Lie(number) => liar.lie.store(number, Ordering::Relaxed),
    }
    fs::write(path("meanwhile"), content(2)).expect("the journal has room");
    let took = if fault == Fault::SilentAndInUse {
        let file = File::options().append(true).open(path("meanwhile"));
        let file = file.expect("a file");
        std::thread::scope(|scope| {
            let (sender, thread) = std::sync::mpsc::channel();
            let waiting = scope.spawn(move || {
                let own = fs::read_link("/proc/thread-self").expect("a link");
                sender.send(own).expect("the other thread");
                file.sync_all()
            });
            let thread = thread.recv().expect("a thread");
            wait_until("an fsync that waits", || waits(&thread));
            let took = umount(&volume, &["--force"]);
            let synced = waiting.join().expect("an end");
            assert!(synced.is_err(), "{synced:?}");
            took
        })
    } else {
        umount(&volume, &[])
    };
    assert!(took < LONGEST, "{fault:?}: {took:?}");
    assert!(!path("before").exists(), "{fault:?}");
    relay.silence(false);
    relay.refuse(false);
    liar.lie.store(0, Ordering::Relaxed);
    if fault == Fault::ReadOnly {
        permit(&volume, 0o700);
    }
    volume.mount();
    let kept = fs::read(path("meanwhile")).expect("a file");
    assert!(kept == content(2), "{fault:?}");
    // The chunk cache may have what the server has lost, and a check finds what has other UIDs.
    let is_displaced = matches!(fault, Fault::Deleted | Fault::Renumbered);
    let read = || fs::read(path("before")).map(|before| before == content(1));
    assert!(read().unwrap_or(is_displaced), "{fault:?}");
    if fault == Fault::Renumbered {
        // A mail that was stored since has told the new numbers already, or else the command fails by what was found.
        let repaired = volume.fs(&["check", "home", "--repair"]).output();
        repaired.expect("a check");
        assert_has(&run(&mut volume.fs(&["check", "home"])), &["clean: "]);
        assert!(read().unwrap_or(false), "{fault:?}");
    }
    run(&mut volume.fs(&["sync", "home"]));
    volume.umount();
}

#[test]
fn a_mount_ends_in_time_under_every_fault() {
    if !can_mount() {
        return;
    }
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(fault) = FAULTS.get(next.fetch_add(1, Ordering::Relaxed)) {
                    ends_in_time(*fault);
                }
            });
        }
    });
}
