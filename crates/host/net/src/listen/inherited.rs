//! Sockets the process was started with: `sd_listen_fds(3)`, and the supervisor's in the same way.

use std::env;
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;

use listenfd::ListenFd;
use nix::libc;
use socket2::SockRef;

use crate::packets::PacketSocket;

use super::{ListenError, ListenOptions, bind};

/// The supervisor's names, separated by `:`; for the same descriptors these names override
/// systemd's names.
const SUPERVISOR_NAMES: &str = "VERE_LISTEN_FDNAMES";
const SYSTEMD_NAMES: &str = "LISTEN_FDNAMES";

/// The listening sockets the process was started with, by name.
///
/// `LISTEN_FDS` says how many there are, from descriptor 3 on; `LISTEN_PID`, when set, must be this
/// process; `VERE_LISTEN_FDNAMES` or else `LISTEN_FDNAMES` names them.
#[derive(Default)]
pub struct Inherited {
    sockets: Vec<(String, TcpListener)>,
    local: Vec<(String, UnixListener)>,
    datagrams: Vec<(String, UdpSocket)>,
    channels: Vec<(String, PacketSocket)>,
}

impl fmt::Debug for Inherited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

impl Inherited {
    /// Takes the sockets over. To be called once, at the start of the process and before threads
    /// are started: the variables are removed, so that child processes do not see the variables.
    ///
    /// # Errors
    /// A descriptor is not a listening socket, or the names do not fit the descriptors.
    pub fn from_env() -> Result<Self, ListenError> {
        let supervisor = env::var(SUPERVISOR_NAMES)
            .ok()
            .filter(|names| !names.is_empty());
        let systemd = env::var(SYSTEMD_NAMES).ok();
        let mut descriptors = ListenFd::from_env();
        let count = descriptors.len();
        let names: Vec<String> = match supervisor.or(systemd) {
            Some(names) => names.split(':').map(str::to_owned).collect(),
            // sd_listen_fds_with_names(3) calls sockets without a name so.
            None => vec!["unknown".to_owned(); count],
        };
        if count == 0 && env::var_os(SUPERVISOR_NAMES).is_none_or(|names| names.is_empty()) {
            return Ok(Self::default());
        }
        if names.len() != count {
            return Err(ListenError::Environment {
                descriptors: count,
                names: names.len(),
            });
        }
        let mut inherited = Self::default();
        for (index, name) in names.into_iter().enumerate() {
            if let Err(source) = inherited.take_over(&mut descriptors, index, &name) {
                return Err(ListenError::Inherited { name, source });
            }
        }
        Ok(inherited)
    }

    fn take_over(&mut self, from: &mut ListenFd, index: usize, name: &str) -> io::Result<()> {
        // A socket of another family is left alone.
        match from.take_tcp_listener(index) {
            Ok(socket) => {
                let socket = checked(socket)?;
                socket.set_nonblocking(true)?;
                self.sockets.push((name.to_owned(), socket));
            }
            Err(not_tcp) => {
                if let Ok(Some(socket)) = from.take_udp_socket(index) {
                    self.datagrams.push((name.to_owned(), socket));
                    return Ok(());
                }
                if let Ok(Some(socket)) = from.take_custom::<OwnedFd>(
                    index,
                    libc::AF_UNIX,
                    libc::SOCK_SEQPACKET,
                    "socket of packets",
                ) {
                    self.channels.push((name.to_owned(), socket.into()));
                    return Ok(());
                }
                let taken = from.take_unix_listener(index).map_err(|_| not_tcp)?;
                let socket = checked(taken)?;
                socket.set_nonblocking(true)?;
                self.local.push((name.to_owned(), socket));
            }
        }
        Ok(())
    }

    /// The names not taken yet, without duplicates.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let internet = self.sockets.iter().map(|(name, _)| name.as_str());
        let local = self.local.iter().map(|(name, _)| name.as_str());
        let datagrams = self.datagrams.iter().map(|(name, _)| name.as_str());
        let channels = self.channels.iter().map(|(name, _)| name.as_str());
        let mut names: Vec<&str> = internet
            .chain(local)
            .chain(datagrams)
            .chain(channels)
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Takes all sockets of a name, in order; the list is empty for an unknown name.
    pub fn take(&mut self, name: &str) -> Vec<TcpListener> {
        let (taken, left) = std::mem::take(&mut self.sockets)
            .into_iter()
            .partition(|(own, _)| own == name);
        self.sockets = left;
        let taken: Vec<(String, TcpListener)> = taken;
        taken.into_iter().map(|(_, socket)| socket).collect()
    }

    /// Takes the file system socket of a name, if present.
    pub fn take_local(&mut self, name: &str) -> Option<UnixListener> {
        let place = self.local.iter().position(|(own, _)| own == name)?;
        Some(self.local.swap_remove(place).1)
    }

    /// Takes the socket of packets of a name, whose other end another process of this system has, if present.
    pub fn take_channel(&mut self, name: &str) -> Option<PacketSocket> {
        let place = self.channels.iter().position(|(own, _)| own == name)?;
        Some(self.channels.swap_remove(place).1)
    }

    /// Takes all UDP sockets of a name, in order; the list is empty for an unknown name.
    pub fn take_datagrams(&mut self, name: &str) -> Vec<UdpSocket> {
        let own = self.datagrams.extract_if(.., |(own, _)| own == name);
        own.map(|(_, socket)| socket).collect()
    }

    /// Takes the sockets of a name, or binds `addresses` when the name has no sockets.
    ///
    /// # Errors
    /// As [`bind`].
    pub fn take_or_bind(
        &mut self,
        name: &str,
        addresses: &[SocketAddr],
        options: ListenOptions,
    ) -> Result<Vec<TcpListener>, ListenError> {
        let taken = self.take(name);
        if taken.is_empty() {
            bind(addresses, options)
        } else {
            Ok(taken)
        }
    }
}

fn checked<S: AsFd>(socket: Option<S>) -> io::Result<S> {
    let socket = socket.ok_or_else(|| io::Error::other("the socket was taken already"))?;
    if !SockRef::from(&socket).is_listener()? {
        return Err(io::Error::other("the socket does not listen"));
    }
    Ok(socket)
}
