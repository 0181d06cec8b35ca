//! The supervisor's end of the readiness protocol.
//!
//! Children speak `sd_notify(3)`: datagrams of `NAME=value` lines to the socket in `NOTIFY_SOCKET`. A
//! single socket serves all children; the kernel attaches the sender's process id (`SO_PASSCRED`), so
//! that no child can speak for another child, and no stranger for any child.

use std::fs;
use std::io::{self, IoSliceMut};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, UnixAddr, UnixCredentials, recvmsg, setsockopt, sockopt,
};

/// Longest datagram read; a longer datagram is cut, with the loss of a status text at most.
const DATAGRAM_LENGTH_MAX: usize = 4096;

/// The notices of a child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Notice {
    /// `READY=1`: start-up or reload is finished.
    Ready,
    /// `WATCHDOG=1`: still alive.
    Watchdog,
    /// `WATCHDOG=trigger`: the child itself asks to be replaced.
    WatchdogTrigger,
    /// `STATUS=`: the work of the child, or the reason why the child keeps earlier settings.
    Status(String),
    /// Any further datagram: a sign of life during a long start.
    Other,
}

/// Longest path of a socket on every kernel (`sun_path` has 108 octets, including the final NUL).
const SOCKET_PATH_LENGTH_MAX: usize = 107;

/// The datagram socket for notices of children. Dropping the socket removes the file.
#[derive(Debug)]
pub(super) struct NotifySocket {
    socket: UnixDatagram,
    path: PathBuf,
}

impl NotifySocket {
    /// Opens a socket in `folder`, writable by the system's user only, or, if the path is too long, in the
    /// directory for temporary files.
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        let mut path = folder.join("notify.sock");
        if path.as_os_str().len() > SOCKET_PATH_LENGTH_MAX {
            path = std::env::temp_dir().join(format!("vere-notify-{}.sock", std::process::id()));
        }
        // Left over from a killed supervisor.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let socket = UnixDatagram::bind(&path)?;
        setsockopt(&socket, sockopt::PassCred, &true)?;
        Ok(Self { socket, path })
    }

    /// The value of `NOTIFY_SOCKET` for children.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// A handle for the receiving thread.
    pub(super) fn receiver(&self) -> io::Result<Receiver> {
        Ok(Receiver(self.socket.try_clone()?))
    }
}

impl Drop for NotifySocket {
    fn drop(&mut self) {
        // On failure, the next start removes the file.
        let _ = fs::remove_file(&self.path);
    }
}

/// The receiving end.
#[derive(Debug)]
pub(super) struct Receiver(UnixDatagram);

impl Receiver {
    /// Waits for a datagram; returns the sender's process id and the notices.
    pub(super) fn receive(&self) -> io::Result<(u32, Vec<Notice>)> {
        let mut bytes = [0_u8; DATAGRAM_LENGTH_MAX];
        let mut control = nix::cmsg_space!(UnixCredentials);
        let mut buffers = [IoSliceMut::new(&mut bytes)];
        let message = recvmsg::<UnixAddr>(
            self.0.as_raw_fd(),
            &mut buffers,
            Some(&mut control),
            MsgFlags::MSG_CMSG_CLOEXEC,
        )?;
        let sender = message.cmsgs()?.find_map(|control| match control {
            ControlMessageOwned::ScmCredentials(credentials) => {
                u32::try_from(credentials.pid()).ok()
            }
            _ => None,
        });
        let length = message.bytes;
        Ok((
            sender.unwrap_or(0),
            parse(bytes.get(..length).unwrap_or_default()),
        ))
    }
}

/// Reads the lines of a datagram.
fn parse(datagram: &[u8]) -> Vec<Notice> {
    datagram
        .split(|octet| *octet == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| match line {
            b"READY=1" => Notice::Ready,
            b"WATCHDOG=1" => Notice::Watchdog,
            b"WATCHDOG=trigger" => Notice::WatchdogTrigger,
            _ => match line.strip_prefix(b"STATUS=") {
                Some(text) => Notice::Status(String::from_utf8_lossy(text).into_owned()),
                None => Notice::Other,
            },
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_notices() {
        assert_eq!(
            parse(b"READY=1\nSTATUS=serving\nWATCHDOG=1\n"),
            [
                Notice::Ready,
                Notice::Status("serving".to_owned()),
                Notice::Watchdog
            ]
        );
        assert_eq!(parse(b"WATCHDOG=trigger"), [Notice::WatchdogTrigger]);
        assert_eq!(parse(b""), []);
        assert_eq!(parse(b"READY=10\n\xff\xfe"), [Notice::Other, Notice::Other]);
    }

    #[test]
    fn the_kernel_names_the_sender() {
        let folder = tempfile::tempdir().unwrap();
        let ours = NotifySocket::open(folder.path()).unwrap();
        let theirs = UnixDatagram::unbound().unwrap();
        theirs.send_to(b"READY=1\n", ours.path()).unwrap();
        let received = ours.receiver().unwrap().receive().unwrap();
        assert_eq!(received, (std::process::id(), vec![Notice::Ready]));
    }

    #[test]
    fn a_long_folder_is_no_hindrance_and_nothing_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let long = folder.path().join("x".repeat(120));
        let socket = NotifySocket::open(&long).unwrap();
        let path = socket.path().to_owned();
        assert!(path.exists());
        drop(socket);
        assert!(!path.exists());
    }
}
