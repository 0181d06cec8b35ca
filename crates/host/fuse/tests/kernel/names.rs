//! Names: links, renames, nodes, limits.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, symlink};

use rustix::fs::{CWD, FileType, Mode, RenameFlags};
use rustix::io::Errno;
use vere_ports::files::{Call, RenameMode};

use crate::fixture::{Fixture, possible};

#[test]
fn folders_and_links() {
    if !possible() {
        return;
    }
    let fixture = Fixture::new();
    fs::create_dir(fixture.path("folder")).unwrap();
    fs::write(fixture.path("folder/file"), b"content").unwrap();
    fs::hard_link(fixture.path("folder/file"), fixture.path("second")).unwrap();
    assert_eq!(fs::metadata(fixture.path("second")).unwrap().nlink(), 2);
    assert_eq!(fs::read(fixture.path("second")).unwrap(), b"content");
    symlink("folder/file", fixture.path("link")).unwrap();
    assert_eq!(
        fs::read_link(fixture.path("link")).unwrap().to_str(),
        Some("folder/file")
    );
    assert_eq!(fs::read(fixture.path("link")).unwrap(), b"content");
    let full = fs::remove_dir(fixture.path("folder")).unwrap_err();
    assert_eq!(full.raw_os_error(), Some(Errno::NOTEMPTY.raw_os_error()));
    fs::remove_file(fixture.path("folder/file")).unwrap();
    fs::remove_dir(fixture.path("folder")).unwrap();
    assert!(!fixture.path("folder").exists());
    fixture.end();
}

#[test]
fn renames_with_flags() {
    if !possible() {
        return;
    }
    let fixture = Fixture::new();
    let (a, b) = (fixture.path("a"), fixture.path("b"));
    fs::write(&a, b"a").unwrap();
    fs::write(&b, b"b").unwrap();
    let rename = |flags| rustix::fs::renameat_with(CWD, &a, CWD, &b, flags);
    assert_eq!(rename(RenameFlags::NOREPLACE), Err(Errno::EXIST));
    rename(RenameFlags::EXCHANGE).unwrap();
    assert_eq!(
        (fs::read(&a).unwrap(), fs::read(&b).unwrap()),
        (b"b".to_vec(), b"a".to_vec())
    );
    assert_eq!(rename(RenameFlags::WHITEOUT), Err(Errno::INVAL));
    rename(RenameFlags::empty()).unwrap();
    assert!(!a.exists());
    assert_eq!(fs::read(&b).unwrap(), b"b");
    let modes: Vec<_> = fixture
        .take_seen()
        .into_iter()
        .filter_map(|call| match call {
            Call::Rename { mode, .. } => Some(mode),
            _ => None,
        })
        .collect();
    assert!(modes.ends_with(&[RenameMode::Exchange, RenameMode::Replace]));
    fixture.end();
}

#[test]
fn nodes_of_every_kind() {
    if !possible() {
        return;
    }
    let fixture = Fixture::new();
    let make = |name: &str, kind, device| {
        let path = fixture.path(name);
        rustix::fs::mknodat(CWD, &path, kind, Mode::from_raw_mode(0o640), device).unwrap();
        fs::metadata(path).unwrap()
    };
    assert!(make("fifo", FileType::Fifo, 0).file_type().is_fifo());
    assert!(make("socket", FileType::Socket, 0).file_type().is_socket());
    let device = rustix::fs::makedev(1, 3);
    let null = make("null", FileType::CharacterDevice, device);
    assert!(null.file_type().is_char_device());
    assert_eq!((null.rdev(), null.mode() & 0o7777), (device, 0o640));
    assert!(
        make("disk", FileType::BlockDevice, rustix::fs::makedev(259, 300))
            .file_type()
            .is_block_device()
    );
    assert_eq!(
        fs::metadata(fixture.path("disk")).unwrap().rdev(),
        rustix::fs::makedev(259, 300)
    );
    fixture.end();
}

#[test]
fn names_have_255_octets_at_most() {
    if !possible() {
        return;
    }
    let fixture = Fixture::new();
    fs::write(fixture.path(&"n".repeat(255)), b"").unwrap();
    let error = fs::write(fixture.path(&"n".repeat(256)), b"").unwrap_err();
    assert_eq!(
        error.raw_os_error(),
        Some(Errno::NAMETOOLONG.raw_os_error())
    );
    fixture.end();
}
