//! Sockets in the file system.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

/// Permissions of a new directory: every permitted client must be able to reach the socket.
const FOLDER_MODE: u32 = 0o755;

/// Listens on `path`, with these permissions for the socket's file: write permission allows a client to
/// connect.
///
/// The socket of a process that has ended is replaced; a socket with a listener, and a file of another
/// kind, are not replaced. The socket is non-blocking, as tokio requires.
///
/// # Errors
/// Another process listens there already ([`ErrorKind::AddrInUse`]), or the operating system refuses.
pub fn bind_local(path: &Path, mode: u32) -> io::Result<UnixListener> {
    if let Some(folder) = path.parent().filter(|folder| !folder.exists()) {
        DirBuilder::new()
            .recursive(true)
            .mode(FOLDER_MODE)
            .create(folder)?;
        // The umask of the process must not lock out clients.
        fs::set_permissions(folder, Permissions::from_mode(FOLDER_MODE))?;
    }
    remove_left_over(path)?;
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, Permissions::from_mode(mode))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

fn remove_left_over(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(there) if !there.file_type().is_socket() => {
            return Err(ErrorKind::AlreadyExists.into());
        }
        Ok(_) => {}
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(_) => Err(ErrorKind::AddrInUse.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_left_over_socket_is_replaced_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("deep/run/x.sock");
        let first = bind_local(&path, 0o666).expect("bound");
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o666);
        assert_eq!(mode(path.parent().expect("a folder")), 0o755);
        let taken = bind_local(&path, 0o666).expect_err("somebody listens");
        assert_eq!(taken.kind(), ErrorKind::AddrInUse);
        drop(first);
        let second = bind_local(&path, 0o600).expect("nobody listens any more");
        assert_eq!(mode(&path), 0o600);
        drop(second);
        fs::remove_file(&path).expect("removed");
        fs::write(&path, "precious").expect("written");
        assert!(bind_local(&path, 0o600).is_err());
        assert_eq!(fs::read(&path).expect("kept"), b"precious");
    }
}
