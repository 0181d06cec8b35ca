//! Disks under the nodes: a disk that fails to sync, and a power cut of all disks.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::signal::Signal;
use nix::unistd::geteuid;

use crate::harness::{
    Counted, FailingSync, System, in_soak, output_of, probe, program, rounds, run, skip, wait_for,
    wait_until,
};
use crate::replicas::{keepers, states, wait_states};

/// ext4 at a power cut: no further octet reaches the disk.
const CUT: &str = "import fcntl, os, struct, sys\n\
                   disk = os.open(sys.argv[1], os.O_RDONLY)\n\
                   fcntl.ioctl(disk, 0x8004587d, struct.pack('I', 2))\n";

/// A file system in a file, whose power can be cut.
struct Disk {
    image: PathBuf,
    mounted: PathBuf,
}

impl Disk {
    /// Creates and mounts the file system; prints a note where the machine cannot.
    fn mount(image: PathBuf, mounted: &Path) -> Option<Self> {
        let skipped = |why: &str| {
            skip("a power cut", why);
            None
        };
        if !geteuid().is_root() {
            return skipped("only root may mount a disk");
        }
        program("mkfs.ext4")?;
        program("python3")?;
        let file = File::create(&image).expect("the image");
        file.set_len(256 << 20).expect("its size");
        run(Command::new("mkfs.ext4").arg("-q").arg(&image));
        std::fs::create_dir_all(mounted).expect("a folder");
        let disk = Self {
            image,
            mounted: mounted.to_owned(),
        };
        if !disk.try_mount() {
            return skipped("no image may be mounted here");
        }
        Some(disk)
    }

    fn try_mount(&self) -> bool {
        let mut mount = Command::new("mount");
        mount.args(["-o", "loop"]).arg(&self.image);
        let output = output_of(mount.arg(&self.mounted), "");
        output.status.success()
    }

    /// After this call the disk takes no octet.
    fn cut_power(&self) {
        run(Command::new("python3").args(["-c", CUT]).arg(&self.mounted));
    }

    /// The content after the cut, once the file system is unused.
    fn mount_again(&self) {
        // A killed process closes its files a moment after losing its command line.
        wait_until("the disk to be free", || {
            let output = output_of(Command::new("umount").arg(&self.mounted), "");
            output.status.success()
        });
        assert!(self.try_mount(), "it can be mounted again");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let mut umount = Command::new("umount");
        let _ = umount.arg("--lazy").arg(&self.mounted).status();
    }
}

#[test]
fn every_acknowledged_message_arrives_after_a_power_cut_of_all_nodes() {
    if !in_soak() {
        return;
    }
    let cuts = 2 * rounds();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().join("data");
    let Some(disk) = Disk::mount(directory.path().join("disk"), &data) else {
        return;
    };
    let sink = Counted::start();
    let mut system = System::start_in(directory, &sink.options());
    let smtp = system.smtp;
    // The test wrote the file, not the system.
    let accounts = File::open(data.join("directory.toml"));
    accounts.and_then(|file| file.sync_all()).expect("a sync");
    sink.run(smtp, cuts, |_| {
        disk.cut_power();
        system.kill();
        disk.mount_again();
        system.start_again();
    });
    wait_states(&system, ["sync", "sync"]);
    system.wait_empty();
}

#[test]
fn mail_goes_on_without_a_node_whose_disk_fails() {
    if !in_soak() {
        return;
    }
    // With a log at each node, and with the only log at the failing node.
    for log in ["node", "machine"] {
        keepers_disks_fail(log);
    }
}

fn keepers_disks_fail(log: &str) {
    let sink = Counted::start();
    let options = sink.options().set("spool.log", &format!("{log:?}"));
    let system = System::start(&options);
    wait_states(&system, ["sync", "sync"]);
    let mut skipped = false;
    sink.run(system.smtp, rounds(), |_| {
        let keeper = wait_for("a node that keeps a log", || keepers(&system).pop());
        let role = format!("spool {keeper}");
        let [fails, other] = if keeper == "a" { [0, 1] } else { [1, 0] };
        let pids = system.role_pids(&role);
        let Some(failing) = FailingSync::begin(pids[0]) else {
            skipped = true;
            return;
        };
        wait_until("the end of the node's membership", || {
            states(&system)[fails].1 != "sync"
        });
        probe(system.smtp);
        assert_eq!(states(&system)[other].1, "sync");
        failing.end();
        // Unsynced records must never count as synced: the node restarts from its disk.
        system.signal_role(&role, Signal::SIGKILL);
        wait_states(&system, ["sync", "sync"]);
    });
    if !skipped {
        system.wait_log(&["the group goes on without this spool node"]);
    }
    system.wait_empty();
}
