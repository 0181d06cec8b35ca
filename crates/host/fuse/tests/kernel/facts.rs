//! Facts of files: modes, owners, times, extended attributes, room.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, XattrFlags};
use rustix::io::Errno;
use vere_fuse::Options;
use vere_ports::files::Call;

use crate::fixture::{Fixture, possible};

/// The user nobody.
const NOBODY: u32 = 65534;

#[test]
fn modes_owners_and_times() {
    if !possible() {
        return;
    }
    let fixture = Fixture::new();
    let path = fixture.path("file");
    fs::write(&path, b"").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o6751)).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o6751);
    fixture.take_seen();
    chown(&path, Some(7), Some(8)).unwrap();
    let facts = fs::metadata(&path).unwrap();
    assert_eq!((facts.uid(), facts.gid()), (7, 8));
    let kept =
        |call: &Call| matches!(call, Call::SetAttributes { changes, .. } if !changes.kill_set_id);
    assert!(fixture.take_seen().iter().any(kept));
    for seconds in [0, 1, -1, -2, 1_800_000_000, -3_000_000_000] {
        let time = Timespec {
            tv_sec: seconds,
            tv_nsec: 123_456_789,
        };
        let times = Timestamps {
            last_access: time,
            last_modification: time,
        };
        rustix::fs::utimensat(CWD, &path, &times, AtFlags::empty()).unwrap();
        let facts = fs::metadata(&path).unwrap();
        assert_eq!((facts.mtime(), facts.mtime_nsec()), (seconds, 123_456_789));
        assert_eq!((facts.atime(), facts.atime_nsec()), (seconds, 123_456_789));
    }
    fixture.end();
}

#[test]
fn set_id_bits_end_with_a_write_of_another_user() {
    if !possible() {
        return;
    }
    let fixture = Fixture::with(&Options {
        allow_other: true,
        ..Options::default()
    });
    let path = fixture.path("file");
    fs::write(&path, b"").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o4777)).unwrap();
    let script = format!("truncate -s 1 '{0}' && echo more >> '{0}'", path.display());
    assert!(
        Command::new("sh")
            .arg("-c")
            .arg(script)
            .uid(NOBODY)
            .gid(NOBODY)
            .status()
            .unwrap()
            .success()
    );
    let killed = fixture.take_seen();
    let by_size =
        |call: &Call| matches!(call, Call::SetAttributes { changes, .. } if changes.kill_set_id);
    assert!(killed.iter().any(by_size));
    let by_write = |call: &Call| {
        matches!(
            call,
            Call::Write {
                kill_set_id: true,
                ..
            }
        )
    };
    assert!(killed.iter().any(by_write));
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o777);
    fixture.end();
}

#[test]
fn permissions_are_the_kernels() {
    if !possible() {
        return;
    }
    let fixture = Fixture::with(&Options {
        allow_other: true,
        ..Options::default()
    });
    fs::write(fixture.path("file"), b"secret").unwrap();
    fs::set_permissions(fixture.path("file"), fs::Permissions::from_mode(0o600)).unwrap();
    let read = |path| {
        Command::new("cat")
            .arg(path)
            .uid(NOBODY)
            .gid(NOBODY)
            .output()
            .unwrap()
    };
    assert!(!read(fixture.path("file")).status.success());
    fs::set_permissions(fixture.path("file"), fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(read(fixture.path("file")).stdout, b"secret");
    fixture.end();
}

#[test]
fn other_users_stay_out_by_default() {
    if !possible() {
        return;
    }
    let fixture = Fixture::new();
    let listed = Command::new("ls")
        .arg(fixture.mount.point())
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    assert!(!listed.status.success());
    fixture.end();
}

#[test]
fn extended_attributes() {
    if !possible() {
        return;
    }
    let fixture = Fixture::new();
    let file = File::create_new(fixture.path("file")).unwrap();
    let set = |name: &str, value: &[u8], flags| rustix::fs::fsetxattr(&file, name, value, flags);
    set("user.a", b"value", XattrFlags::CREATE).unwrap();
    assert_eq!(set("user.a", b"", XattrFlags::CREATE), Err(Errno::EXIST));
    assert_eq!(set("user.b", b"", XattrFlags::REPLACE), Err(Errno::NODATA));
    set("trusted.b", &[7; 60_000], XattrFlags::empty()).unwrap();
    let mut room = [0_u8; 64];
    assert_eq!(rustix::fs::fgetxattr(&file, "user.a", &mut room), Ok(5));
    assert_eq!(&room[..5], b"value");
    assert_eq!(
        rustix::fs::fgetxattr(&file, "trusted.b", &mut room),
        Err(Errno::RANGE)
    );
    assert_eq!(rustix::fs::fgetxattr_query(&file, "trusted.b"), Ok(60_000));
    assert_eq!(
        rustix::fs::fgetxattr(&file, "user.c", &mut room),
        Err(Errno::NODATA)
    );
    let length = rustix::fs::flistxattr(&file, &mut room).unwrap();
    assert_eq!(&room[..length], b"trusted.b\0user.a\0");
    rustix::fs::fremovexattr(&file, "user.a").unwrap();
    assert_eq!(
        rustix::fs::fremovexattr(&file, "user.a"),
        Err(Errno::NODATA)
    );
    drop(file);
    fixture.end();
}

#[test]
fn room_of_the_volume() {
    if !possible() {
        return;
    }
    let fixture = Fixture::new();
    let room = rustix::fs::statvfs(fixture.mount.point()).unwrap();
    assert_eq!(room.f_blocks * room.f_frsize, 1 << 30);
    assert_eq!(room.f_bavail * room.f_frsize, 1 << 29);
    assert_eq!(
        (room.f_files, room.f_ffree, room.f_namemax),
        (1000, 900, 255)
    );
    fixture.end();
}
