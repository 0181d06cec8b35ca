//! The mounts over SFTP: sshfs, and rclone with two modes of its cache.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::distance::{Distance, Traffic};
use super::fuse::Fuse;
use super::plan::Part;
use super::sshd::Sshd;
use super::system::System;
use crate::error::BenchError;
use crate::peer::{PeerError, folder};
use crate::process::guard;

pub(super) const SSHFS: &str = "sshfs";
pub(super) const RCLONE_WRITES: &str = "rclone writes";
pub(super) const RCLONE_FULL: &str = "rclone full";

/// How long an upload may send nothing: rclone gives up some uploads, and says so in its log alone.
const STALL: Duration = Duration::from_secs(10);

/// How often an upload is looked for: the error of its time.
const POLL: Duration = Duration::from_millis(1);

/// A mount of a folder of the SFTP server.
#[derive(Debug)]
pub(super) struct Sftp {
    name: &'static str,
    fuse: Fuse,
    distance: Distance,
    /// The mounted folder, as the server sees it.
    served: PathBuf,
    /// The cache on the local disk.
    cache: Option<PathBuf>,
    /// When uploads begin.
    upload: &'static str,
    _folder: TempDir,
}

/// Whether a program of the search path is there.
fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).exists())
}

fn missing(name: &'static str, programs: &[&str]) -> Result<(), PeerError> {
    match programs.iter().find(|program| !is_installed(program)) {
        Some(program) => {
            let reason = format!("{program} is not installed");
            Err(PeerError::unavailable(name, reason))
        }
        None => Ok(()),
    }
}

/// The options of sshfs, beyond host, port and key. The cipher is the fastest of OpenSSH on processors with AES.
const SSHFS_OPTIONS: &str = "Ciphers=aes128-gcm@openssh.com,Compression=no";

/// When uploads of rclone begin: at the close of a file in rows that wait for them, since the default delays each by five
/// seconds; by the default in rows of programs, since an upload at the close loses files that are renamed meanwhile.
const AT_CLOSE: &str = "0s";
const BY_DEFAULT: &str = "5s";

/// The options of rclone, beyond its remote and the beginning of uploads.
const RCLONE_OPTIONS: [&str; 2] = ["--log-level", "ERROR"];

impl Sftp {
    /// The options in a line for the results.
    pub(super) fn options(name: &str) -> String {
        match name {
            SSHFS => format!("sshfs: -f -o {SSHFS_OPTIONS}, else defaults"),
            _ => format!(
                "{name}: sftp remote with disable_hashcheck, --vfs-cache-mode {} {}, --vfs-write-back {AT_CLOSE} \
                 ({BY_DEFAULT}, the default, for office, sqlite, git, postmark), else defaults",
                mode(name),
                RCLONE_OPTIONS.join(" ")
            ),
        }
    }

    pub(super) fn new(
        name: &'static str,
        sshd: &Sshd,
        round_trip: Duration,
        base: &Path,
    ) -> Result<Self, BenchError> {
        let program = if name == SSHFS { "sshfs" } else { "rclone" };
        missing(name, &[program, "fusermount3", "ssh"])?;
        let folder = folder(base, "vere-bench-mount-").map_err(PeerError::from)?;
        let own = folder.path();
        let served = sshd.export(name)?;
        let distance =
            Distance::to(sshd.address, round_trip).map_err(BenchError::io("start the relay"))?;
        let point = own.join("mnt");
        let port = distance.address().port();
        let (command, cache) = if name == SSHFS {
            (sshfs(sshd, port, &served, &point), None)
        } else {
            let cache = own.join("cache");
            // The last word is the beginning of uploads.
            let command = rclone(name, sshd, port, &served, &point, own);
            (
                command.map_err(BenchError::io("write settings"))?,
                Some(cache),
            )
        };
        let fuse = Fuse::new(command, own.join("output"), point)?;
        Ok(Self {
            name,
            fuse,
            distance,
            served,
            cache,
            upload: AT_CLOSE,
            _folder: folder,
        })
    }

    /// Waits until no upload is left, or no upload goes on.
    fn settle(&self) -> Result<(), BenchError> {
        let Some(cached) = self.cache.as_ref().map(|cache| cache.join("vfsMeta")) else {
            return Ok(());
        };
        let (mut sent, mut moved) = (self.traffic().up, Instant::now());
        while self.is_mounted() && is_dirty(&cached) {
            if self.traffic().up != sent {
                (sent, moved) = (self.traffic().up, Instant::now());
            }
            if moved.elapsed() > STALL || guard::is_stopped() {
                let text = format!("{}: expected the end of uploads; found none", self.name);
                return Err(BenchError::protocol(text));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

/// Whether rclone's records of cached files name one that is still to be uploaded.
fn is_dirty(cached: &Path) -> bool {
    let files = super::system::files(cached).unwrap_or_default();
    let is_dirty = |file: &PathBuf| {
        let text = fs::read_to_string(file).unwrap_or_default();
        text.contains("\"Dirty\": true") || text.contains("\"Dirty\":true")
    };
    files.iter().any(is_dirty)
}

/// The mode of rclone's cache.
fn mode(name: &str) -> &str {
    name.trim_start_matches("rclone ")
}

fn sshfs(sshd: &Sshd, port: u16, served: &Path, point: &Path) -> Vec<OsString> {
    let key = sshd.key();
    let options = format!(
        "IdentityFile={},IdentitiesOnly=yes,StrictHostKeyChecking=no,UserKnownHostsFile=/dev/null,{SSHFS_OPTIONS}",
        key.display()
    );
    let remote = format!("{}@127.0.0.1:{}", sshd.user, served.display());
    let mut command: Vec<OsString> = ["sshfs", "-f", "-F", "/dev/null", "-p"]
        .map(Into::into)
        .into();
    command.extend([port.to_string().into(), "-o".into(), options.into()]);
    command.extend([remote.into(), point.into()]);
    command
}

fn rclone(
    name: &str,
    sshd: &Sshd,
    port: u16,
    served: &Path,
    point: &Path,
    own: &Path,
) -> std::io::Result<Vec<OsString>> {
    let file = own.join("rclone.conf");
    let text = format!(
        "[bench]\ntype = sftp\nhost = 127.0.0.1\nport = {port}\nuser = {}\nkey_file = {}\nshell_type = unix\n\
         disable_hashcheck = true\n",
        sshd.user,
        sshd.key().display()
    );
    fs::write(&file, text)?;
    let remote = format!("bench:{}", served.display());
    let mut command: Vec<OsString> = vec!["rclone".into(), "mount".into(), remote.into()];
    command.extend([point.into(), "--config".into(), file.into()]);
    command.extend(["--cache-dir".into(), own.join("cache").into()]);
    command.extend(["--vfs-cache-mode", mode(name)].map(OsString::from));
    command.extend(RCLONE_OPTIONS.map(OsString::from));
    command.extend(["--vfs-write-back", AT_CLOSE].map(OsString::from));
    Ok(command)
}

impl System for Sftp {
    fn name(&self) -> &'static str {
        self.name
    }

    fn root(&self) -> &Path {
        self.fuse.point()
    }

    fn is_mounted(&self) -> bool {
        self.fuse.is_mounted()
    }

    fn mount(&mut self) -> Result<Duration, BenchError> {
        self.fuse.mount()
    }

    fn prepare(&mut self, part: Part) -> Result<(), BenchError> {
        let upload = match part.runs_programs() {
            true => BY_DEFAULT,
            false => AT_CLOSE,
        };
        if self.cache.is_none() || self.upload == upload {
            return Ok(());
        }
        self.unmount()?;
        self.upload = upload;
        self.fuse.replace_last(upload.into());
        Ok(())
    }

    fn unmount(&mut self) -> Result<(), BenchError> {
        let settled = self.settle();
        self.fuse.unmount()?;
        settled
    }

    fn forget(&mut self) -> Result<(), BenchError> {
        match self.cache.as_ref().filter(|cache| cache.exists()) {
            Some(cache) => fs::remove_dir_all(cache).map_err(BenchError::io("remove a cache")),
            None => Ok(()),
        }
    }

    fn arrive(&mut self, file: &Path, octets: u64) -> Result<(), BenchError> {
        if !self.is_late() {
            return Ok(());
        }
        let name = file.strip_prefix(self.root()).unwrap_or(file);
        let served = self.served.join(name);
        let (mut sent, mut moved) = (self.traffic().up, Instant::now());
        while !fs::metadata(&served).is_ok_and(|found| found.len() >= octets) {
            if self.traffic().up != sent {
                (sent, moved) = (self.traffic().up, Instant::now());
            }
            if moved.elapsed() > STALL || guard::is_stopped() {
                let text = format!("{}: expected the arrival of a file; found none", self.name);
                return Err(BenchError::protocol(text));
            }
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    /// Removes the files on the server, which costs no round trips; no later name is equal.
    fn clear(&mut self, folder: &Path) -> Result<(), BenchError> {
        let settled = self.settle();
        if settled.is_err() {
            // An upload without an end would occupy later rows.
            self.fuse.unmount()?;
            self.forget()?;
        }
        let name = folder.strip_prefix(self.root()).unwrap_or(folder);
        let served = self.served.join(name);
        let removed = fs::remove_dir_all(served);
        removed.map_err(BenchError::io("remove files"))?;
        settled
    }

    fn is_late(&self) -> bool {
        self.cache.is_some()
    }

    fn traffic(&self) -> Traffic {
        self.distance.traffic()
    }

    fn processes(&self) -> Vec<u32> {
        self.fuse.processes()
    }
}
