//! The process that listens on a port, found in `/proc`.

use std::fmt;
use std::fs;
use std::path::Path;

/// Sockets looked at in one file of `/proc/net`; a machine with more tells less.
const SOCKETS_MAX: usize = 1_000_000;
/// `TCP_LISTEN` in the kernel's table.
const STATE_LISTEN: &str = "0A";

/// The process that listens on a port, as far as visible to this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortOwner {
    /// A process whose descriptors are readable for this process.
    Process {
        /// The port.
        port: u16,
        /// Its id.
        pid: u32,
        /// The name, as shown by `ps`.
        name: String,
    },
    /// A process of another user.
    User {
        /// The port.
        port: u16,
        /// The user's number.
        uid: u32,
    },
    /// No listening socket was found: the socket was closed in the meantime, or is in another
    /// namespace.
    Unknown {
        /// The port.
        port: u16,
    },
}

impl fmt::Display for PortOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process { port, pid, name } => {
                write!(f, "port {port} is taken by {name} (process {pid})")
            }
            Self::User { port, uid } => {
                write!(f, "port {port} is taken by a process of user {uid}")
            }
            Self::Unknown { port } => write!(f, "port {port} is taken"),
        }
    }
}

impl PortOwner {
    /// Looks for the owner of `port`; takes some milliseconds on a busy machine.
    #[must_use]
    pub fn of(port: u16) -> Self {
        let mut user = None;
        for table in ["/proc/net/tcp6", "/proc/net/tcp"] {
            let text = fs::read_to_string(table).unwrap_or_default();
            for (uid, inode) in listeners(&text, port) {
                user = Some(uid);
                if let Some((pid, name)) = holder(inode) {
                    return Self::Process { port, pid, name };
                }
            }
        }
        user.map_or(Self::Unknown { port }, |uid| Self::User { port, uid })
    }
}

/// User and inode of the sockets that listen on `port`, from the text of `/proc/net/tcp`.
///
/// A line is `sl local rem st tx:rx tr:when retrnsmt uid timeout inode ...`, addresses are
/// `HEX:PORT` (proc(5)).
fn listeners(table: &str, port: u16) -> impl Iterator<Item = (u32, u64)> {
    let suffix = format!(":{port:04X}");
    table
        .lines()
        .skip(1)
        .take(SOCKETS_MAX)
        .filter_map(move |line| {
            let mut fields = line.split_ascii_whitespace();
            let local = fields.nth(1)?;
            let state = fields.nth(1)?;
            let uid = fields.nth(3)?.parse().ok()?;
            let inode = fields.nth(1)?.parse().ok()?;
            (local.ends_with(&suffix) && state == STATE_LISTEN).then_some((uid, inode))
        })
}

/// The process that has the socket open.
fn holder(inode: u64) -> Option<(u32, String)> {
    let wanted = format!("socket:[{inode}]");
    let processes = fs::read_dir("/proc").ok()?;
    for process in processes.flatten() {
        let Some(pid) = process
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        if holds(&process.path(), &wanted) {
            let name = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            return Some((pid, printable(name.trim_end())));
        }
    }
    None
}

fn holds(process: &Path, wanted: &str) -> bool {
    let Ok(descriptors) = fs::read_dir(process.join("fd")) else {
        return false;
    };
    descriptors
        .flatten()
        .any(|fd| fs::read_link(fd.path()).is_ok_and(|target| target.as_os_str() == wanted))
}

/// A process chooses its own name: control characters in the name must not reach a terminal.
fn printable(name: &str) -> String {
    name.chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::listeners;

    #[test]
    fn the_kernel_table_is_read() {
        let table = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:09DD 00000000:0000 0A 00000000:00000000 00:00000000 00000000   105        0 4711 1 0
   1: 0100007F:09DD 0100007F:C001 01 00000000:00000000 00:00000000 00000000   105        0 4712 1 0
   2: 0100007F:0A1B 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4713 1 0
   garbage
";
        assert_eq!(listeners(table, 2525).collect::<Vec<_>>(), [(105, 4711)]);
        assert_eq!(listeners(table, 25).collect::<Vec<_>>(), []);
        assert_eq!(listeners("", 25).collect::<Vec<_>>(), []);
    }
}
