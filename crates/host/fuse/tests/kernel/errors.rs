//! Mounts that cannot be: the error names the remedy.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use vere_fuse::{Mount, MountError, Options, Refused, Sink, Strength, Unmounted, unmount};
use vere_ports::files::{Call, CallId, Caller};

use crate::fixture::{Fixture, possible};

/// The user nobody.
const NOBODY: u32 = 65534;
/// Tells a run of this program to mount there.
const MOUNT_AT: &str = "VERE_FUSE_TEST_MOUNT_AT";
/// How that run ends.
const MOUNT_END: &str = "VERE_FUSE_TEST_MOUNT_END";

struct Nobody;

impl Sink for Nobody {
    fn call(&self, _: CallId, _: Caller, _: Call) -> Result<(), Refused> {
        Err(Refused)
    }

    fn ended(&self) {}
}

fn mount_at(point: &Path) -> Result<Mount, MountError> {
    Mount::start(point, &Options::default(), Arc::new(Nobody))
}

#[test]
fn points_that_do_not_fit() {
    if !possible() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let error = |path: &Path| mount_at(path).unwrap_err().to_string();
    assert!(error(&folder.path().join("absent")).contains("mkdir -p"));
    assert!(error(&folder.path().join("absent/below")).contains("mkdir -p"));
    fs::write(folder.path().join("file"), b"").unwrap();
    assert!(error(&folder.path().join("file")).contains("expected a folder"));
    assert!(
        error(folder.path())
            .contains("expected an empty folder to mount at; found the entry \"file\"")
    );
    let fixture = Fixture::new();
    let busy = error(fixture.mount.point());
    assert!(
        busy.contains("found a mount of vere") && busy.contains("vere fs umount /"),
        "{busy}"
    );
    fixture.end();
    assert!(matches!(
        unmount(folder.path(), Strength::Soft),
        Err(MountError::NotMounted(_))
    ));
}

/// Not a test of its own: the work of a second process.
#[test]
fn second_process() {
    let Some(point) = std::env::var_os(MOUNT_AT) else {
        return;
    };
    let mount = mount_at(Path::new(&point)).unwrap_or_else(|error| panic!("{error}"));
    if std::env::var_os(MOUNT_END).is_some() {
        // Nobody unmounts.
        std::process::exit(0);
    }
    assert!(fs::metadata(mount.point()).is_err());
    assert_eq!(mount.unmount(Strength::Soft).unwrap(), Unmounted::Clean);
    assert!(mount.wait(Duration::from_secs(10)).is_some());
}

fn second(point: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "errors::second_process"])
        .env(MOUNT_AT, point);
    command
}

#[test]
fn a_mount_without_its_process_is_named_and_unmounted() {
    if !possible() {
        return;
    }
    let folder = TempDir::new().unwrap();
    assert!(
        second(folder.path())
            .env(MOUNT_END, "exit")
            .output()
            .unwrap()
            .status
            .success()
    );
    let error = mount_at(folder.path()).unwrap_err();
    assert!(matches!(error, MountError::PointStale(_)), "{error}");
    assert!(error.to_string().contains("vere fs umount /"));
    assert_eq!(
        unmount(folder.path(), Strength::Soft).unwrap(),
        Unmounted::Clean
    );
    assert!(mount_at(folder.path()).is_ok());
}

#[test]
fn users_mount_by_the_helper() {
    if !possible() {
        return;
    }
    let helper = fs::metadata("/usr/bin/fusermount3").map(|facts| facts.permissions().mode());
    if !helper.is_ok_and(|mode| mode & 0o4000 != 0) {
        println!("skipped: no /usr/bin/fusermount3 with the set-user-id bit");
        return;
    }
    if fs::metadata("/dev/fuse").unwrap().permissions().mode() & 0o006 != 0o006 {
        println!("skipped: /dev/fuse is closed to other users");
        return;
    }
    let folder = TempDir::new().unwrap();
    chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    let run = |program: &mut Command| program.uid(NOBODY).gid(NOBODY).output();
    let Ok(output) = run(&mut second(folder.path())) else {
        println!("skipped: the test program cannot be run by others");
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    // Without the helper the error says what is missing.
    let output = run(second(folder.path()).env("PATH", "/nowhere")).unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && text.contains("install the package fuse3"),
        "{text}"
    );
}
