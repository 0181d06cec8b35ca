//! mount(2), directly or by fusermount3. fuser's own mount is not used: fuser unmounts the path once more at the end,
//! even when another mount lies there by then, and tells failures as text only.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSliceMut, Read as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use command_fds::{CommandFdExt as _, FdMapping};
use nix::errno::Errno;
use nix::mount::MsFlags;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};

use crate::error::MountError;
use crate::options::Options;

const DEVICE: &str = "/dev/fuse";
/// The type in the table of mounts.
pub(crate) const KIND: &str = "fuse.vere";
/// The helper with the right to mount, of the package fuse3.
pub(crate) const HELPER: &str = "fusermount3";
/// The variable with the number of the helper's socket.
const HELPER_SOCKET: &str = "_FUSE_COMMFD";
/// The number of the socket in the helper.
const HELPER_FD: i32 = 3;
/// The longest text of the helper, in octets.
const HELPER_TEXT_MAX: u64 = 4096;

/// Mounts, and gives the device with the calls. fusermount3 needs the right to the device too.
pub(crate) fn attach(point: &Path, options: &Options) -> Result<OwnedFd, MountError> {
    let device = open_device()?;
    match mount_itself(&device, point, options)? {
        Direct::Mounted => Ok(device.into()),
        Direct::NoRight => mount_by_helper(point, options),
    }
}

fn open_device() -> Result<File, MountError> {
    let opened = OpenOptions::new().read(true).write(true).open(DEVICE);
    opened.map_err(|error| match error.raw_os_error() {
        // The node exists without the module behind.
        Some(code) if code == Errno::ENODEV as i32 || code == Errno::ENXIO as i32 => {
            MountError::DeviceAbsent
        }
        _ => match error.kind() {
            io::ErrorKind::NotFound => MountError::DeviceAbsent,
            io::ErrorKind::PermissionDenied => MountError::DeviceClosed,
            _ => MountError::system(DEVICE, error),
        },
    })
}

enum Direct {
    Mounted,
    NoRight,
}

fn mount_itself(device: &File, point: &Path, options: &Options) -> Result<Direct, MountError> {
    let facts = fs::metadata(point)
        .map_err(|error| MountError::system(point.display().to_string(), error))?;
    let mut words = format!(
        "fd={},rootmode={:o},user_id={},group_id={},default_permissions",
        device.as_raw_fd(),
        facts.mode(),
        nix::unistd::getuid(),
        nix::unistd::getgid(),
    );
    if options.allow_other {
        words.push_str(",allow_other");
    }
    let mut flags = MsFlags::empty();
    flags.set(MsFlags::MS_NOSUID, !options.suid);
    flags.set(MsFlags::MS_NODEV, !options.devices);
    flags.set(MsFlags::MS_RDONLY, options.read_only);
    match nix::mount::mount(
        Some(source(options).as_str()),
        point,
        Some(KIND),
        flags,
        Some(words.as_str()),
    ) {
        Ok(()) => Ok(Direct::Mounted),
        Err(Errno::EPERM | Errno::EACCES) => Ok(Direct::NoRight),
        Err(Errno::ENODEV) => Err(MountError::DeviceAbsent),
        Err(errno) => Err(MountError::system(
            format!("mount at {}", point.display()),
            errno,
        )),
    }
}

/// The source as both ways of mounting can pass on.
fn source(options: &Options) -> String {
    source_of(&options.name)
}

/// The source of a name.
pub(crate) fn source_of(name: &str) -> String {
    let plain = |letter: char| {
        if letter == ',' || letter.is_control() {
            '_'
        } else {
            letter
        }
    };
    let name: String = name.chars().map(plain).collect();
    if name.is_empty() { "vere".into() } else { name }
}

fn mount_by_helper(point: &Path, options: &Options) -> Result<OwnedFd, MountError> {
    let failed = |what: &str| {
        let what = format!("{HELPER}: {what}");
        move |error: io::Error| MountError::system(what.clone(), error)
    };
    let mut words = format!(
        "default_permissions,subtype=vere,fsname={}",
        source(options)
    );
    for (word, wanted) in [
        ("allow_other", options.allow_other),
        ("ro", options.read_only),
        ("suid", options.suid),
        ("dev", options.devices),
    ] {
        if wanted {
            words.push(',');
            words.push_str(word);
        }
    }
    let (ours, theirs) = UnixStream::pair().map_err(failed("socket"))?;
    let mut command = Command::new(HELPER);
    command
        .arg("-o")
        .arg(words)
        .arg("--")
        .arg(point)
        .env(HELPER_SOCKET, HELPER_FD.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let passed = FdMapping {
        parent_fd: theirs.into(),
        child_fd: HELPER_FD,
    };
    command
        .fd_mappings(vec![passed])
        .map_err(|error| failed("descriptor")(io::Error::other(error)))?;
    let mut child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => MountError::Right(point.into()),
        _ => failed("start")(error),
    })?;
    // The command owns the helper's end; the end of the helper must end the socket.
    drop(command);
    let device = receive(&ours);
    let mut text = String::new();
    if let Some(errors) = child.stderr.take() {
        // Octets without text are not worth an error.
        let _shown = errors.take(HELPER_TEXT_MAX).read_to_string(&mut text);
    }
    let status = child.wait().map_err(failed("wait"))?;
    match device.map_err(failed("device"))? {
        Some(device) if status.success() => Ok(device),
        _ => Err(helper_error(point, &text)),
    }
}

pub(crate) fn helper_error(point: &Path, text: &str) -> MountError {
    let text = text.trim();
    if text.is_empty() {
        MountError::Right(point.into())
    } else {
        MountError::Helper(text.strip_prefix("fusermount3: ").unwrap_or(text).into())
    }
}

/// The device from the helper; `None` when the helper has failed.
fn receive(socket: &UnixStream) -> io::Result<Option<OwnedFd>> {
    let mut octet = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let parts = &mut [IoSliceMut::new(&mut octet)];
    let flags = RecvFlags::CMSG_CLOEXEC;
    rustix::io::retry_on_intr(|| rustix::net::recvmsg(socket, parts, &mut control, flags))?;
    let device = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    Ok(device)
}
