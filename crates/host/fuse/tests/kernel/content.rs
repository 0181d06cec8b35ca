//! Content of files: reads, writes, holes, copies, maps.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::process::Command;

use rustix::fs::{FallocateFlags, FlockOperation};
use rustix::io::Errno;
use vere_ports::files::{Call, OpenFlags};

use crate::fixture::{Fixture, possible};

#[test]
fn files_are_written_and_read() {
    if !possible() {
        return;
    }
    let fixture = Fixture::new();
    let path = fixture.path("file");
    fs::write(&path, b"first").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"first");
    let mut file = OpenOptions::new()
        .append(true)
        .read(true)
        .open(&path)
        .unwrap();
    file.write_all(b" second").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"first second");
    file.set_len(3).unwrap();
    file.sync_all().unwrap();
    file.sync_data().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"fir");
    fs::remove_file(&path).unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    let mut left = String::new();
    file.read_to_string(&mut left).unwrap();
    assert_eq!(left, "fir");
    drop(file);
    let seen = fixture.take_seen();
    let has = |wanted: &dyn Fn(&Call) -> bool| seen.iter().any(wanted);
    assert!(has(&|call| matches!(
        call,
        Call::Fsync {
            data_only: false,
            ..
        }
    )));
    assert!(has(&|call| matches!(
        call,
        Call::Fsync {
            data_only: true,
            ..
        }
    )));
    assert!(has(&|call| matches!(call, Call::Flush { .. })));
    assert!(has(&|call| matches!(
        call,
        Call::Open {
            flags: OpenFlags { append: true, .. },
            ..
        }
    )));
    fixture.end();
}

#[test]
fn flags_of_an_open_arrive() {
    if !possible() {
        return;
    }
    let fixture = Fixture::new();
    let path = fixture.path("file");
    fs::write(&path, b"content").unwrap();
    fixture.take_seen();
    let mut options = OpenOptions::new();
    options
        .write(true)
        .truncate(true)
        .custom_flags(nix::libc::O_SYNC);
    drop(options.open(&path).unwrap());
    assert_eq!(fs::metadata(&path).unwrap().len(), 0);
    let flags = fixture.take_seen().into_iter().find_map(|call| match call {
        Call::Open { flags, .. } => Some(flags),
        _ => None,
    });
    let expected = OpenFlags {
        write: true,
        truncate: true,
        sync: true,
        ..OpenFlags::default()
    };
    assert_eq!(flags, Some(expected));
    fixture.end();
}

#[test]
fn large_calls_are_of_1_mib() {
    if !possible() {
        return;
    }
    let fixture = Fixture::new();
    let path = fixture.path("large");
    let content: Vec<u8> = (0..8_u32 << 20).map(|at| (at % 251) as u8).collect();
    fs::write(&path, &content).unwrap();
    let longest = fixture
        .take_seen()
        .into_iter()
        .filter_map(|call| match call {
            Call::Write { data, .. } => Some(data.len()),
            _ => None,
        });
    assert_eq!(longest.max(), Some(1 << 20));
    // Pages of the writer must not serve the read.
    let inode = fs::metadata(&path).unwrap().ino();
    fixture
        .mount
        .invalidate(vere_ports::files::Invalidate::Inode(
            vere_ports::files::Inode(inode),
        ));
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert!(fs::read(&path).unwrap() == content);
    let longest = fixture
        .take_seen()
        .into_iter()
        .filter_map(|call| match call {
            Call::Read { size, .. } => Some(size),
            _ => None,
        });
    assert_eq!(longest.max(), Some(1 << 20));
    fixture.end();
}

#[test]
fn holes_are_found_and_made() {
    if !possible() {
        return;
    }
    let fixture = Fixture::new();
    let file = File::create_new(fixture.path("holes")).unwrap();
    file.write_all_at(&[1; 4096], 1 << 20).unwrap();
    let seek = |from: rustix::fs::SeekFrom| rustix::fs::seek(&file, from);
    assert_eq!(seek(rustix::fs::SeekFrom::Data(0)), Ok(1 << 20));
    assert_eq!(
        seek(rustix::fs::SeekFrom::Hole(1 << 20)),
        Ok((1 << 20) + 4096)
    );
    assert_eq!(seek(rustix::fs::SeekFrom::Data(1 << 30)), Err(Errno::NXIO));
    let allocate = |mode, at, length| rustix::fs::fallocate(&file, mode, at, length);
    let size = || file.metadata().unwrap().len();
    allocate(FallocateFlags::KEEP_SIZE, 0, 4 << 20).unwrap();
    assert_eq!(size(), (1 << 20) + 4096);
    allocate(FallocateFlags::empty(), 0, 4 << 20).unwrap();
    assert_eq!(size(), 4 << 20);
    allocate(
        FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
        1 << 20,
        4096,
    )
    .unwrap();
    assert_eq!(seek(rustix::fs::SeekFrom::Data(0)), Err(Errno::NXIO));
    allocate(FallocateFlags::ZERO_RANGE, 4 << 20, 4096).unwrap();
    assert_eq!(size(), (4 << 20) + 4096);
    allocate(
        FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE,
        8 << 20,
        4096,
    )
    .unwrap();
    assert_eq!(size(), (4 << 20) + 4096);
    assert_eq!(
        allocate(FallocateFlags::COLLAPSE_RANGE, 0, 4096),
        Err(Errno::OPNOTSUPP)
    );
    drop(file);
    fixture.end();
}

#[test]
fn ranges_are_copied_by_the_engine() {
    if !possible() {
        return;
    }
    let fixture = Fixture::new();
    fs::write(fixture.path("from"), b"0123456789").unwrap();
    let from = File::open(fixture.path("from")).unwrap();
    let to = File::create_new(fixture.path("to")).unwrap();
    let (mut at, mut into) = (2, 0);
    fixture.take_seen();
    let copied =
        rustix::fs::copy_file_range(&from, Some(&mut at), &to, Some(&mut into), 5).unwrap();
    assert_eq!((copied, at, into), (5, 7, 5));
    let seen = fixture.take_seen();
    assert!(
        seen.iter()
            .any(|call| matches!(call, Call::CopyRange { length: 5, .. }))
    );
    assert!(!seen.iter().any(|call| matches!(call, Call::Write { .. })));
    assert_eq!(fs::read(fixture.path("to")).unwrap(), b"23456");
    drop((from, to));
    fixture.end();
}

#[test]
fn maps_are_shared_and_written_back() {
    if !possible() {
        return;
    }
    let fixture = Fixture::new();
    let path = fixture.path("map");
    fs::write(&path, vec![b'.'; 8192]).unwrap();
    let program = "import mmap, sys\nf = open(sys.argv[1], 'r+b')\nm = mmap.mmap(f.fileno(), 0)\nm[4096:4101] = b'hello'\nm.flush()\nm.close()\n";
    let Ok(status) = Command::new("python3")
        .arg("-c")
        .arg(program)
        .arg(&path)
        .status()
    else {
        println!("skipped: a shared map needs python3");
        return;
    };
    assert!(status.success());
    let inode = fs::metadata(&path).unwrap().ino();
    let content = fixture.memory.lock().unwrap().nodes[&inode].content.clone();
    assert_eq!(&content[4094..4103], b"..hello..");
    fixture.end();
}

#[test]
fn locks_stay_with_the_kernel() {
    if !possible() {
        return;
    }
    let fixture = Fixture::new();
    let path = fixture.path("locked");
    let first = File::create_new(&path).unwrap();
    let second = File::open(&path).unwrap();
    rustix::fs::flock(&first, FlockOperation::NonBlockingLockExclusive).unwrap();
    let denied = rustix::fs::flock(&second, FlockOperation::NonBlockingLockExclusive);
    assert_eq!(denied, Err(Errno::WOULDBLOCK));
    drop((first, second));
    fixture.end();
}
