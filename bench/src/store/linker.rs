//! A delivery agent that keeps one file of a message and links the file into the Maildir of each recipient: the third
//! method of MFS Figures 10 and 11, which Postfix lacks.
//!
//! An LMTP server (RFC 2033) in the process of the benchmark, called by Postfix; a delivery costs no process and no
//! change of user, which flatters the method. The file is synced, once, before the answer.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tempfile::TempDir;

use crate::peer::folder;

/// The server; the server ends when dropped, and each connection when the client leaves.
#[derive(Debug)]
pub(crate) struct Linker {
    /// The address of the listener.
    pub(crate) address: SocketAddr,
    ends: Arc<AtomicBool>,
    /// Where the Maildirs are.
    _folder: TempDir,
}

impl Linker {
    /// Starts a server for these users, with Maildirs in a directory below `base`.
    pub(crate) fn start(users: &[String], base: &Path) -> io::Result<Self> {
        let folder = folder(base, "vere-bench-links-")?;
        fs::create_dir(folder.path().join("tmp"))?;
        for user in users {
            fs::create_dir_all(folder.path().join(user).join("new"))?;
        }
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let ends = Arc::new(AtomicBool::new(false));
        let (ended, root) = (Arc::clone(&ends), folder.path().to_owned());
        std::thread::spawn(move || {
            let next = Arc::new(AtomicU64::new(0));
            for stream in listener.incoming().map_while(Result::ok) {
                if ended.load(Ordering::Relaxed) {
                    break;
                }
                let (root, next) = (root.clone(), Arc::clone(&next));
                // The client reports missing answers; the server has nobody to tell.
                std::thread::spawn(move || drop(serve(&stream, &root, &next)));
            }
        });
        Ok(Self {
            address,
            ends,
            _folder: folder,
        })
    }
}

impl Drop for Linker {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        // Wakes the listener up.
        drop(TcpStream::connect(self.address));
    }
}

fn serve(stream: &TcpStream, root: &Path, next: &AtomicU64) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut reader, mut writer) = (BufReader::new(stream), stream);
    let mut recipients: Vec<PathBuf> = Vec::new();
    let mut line = String::new();
    writer.write_all(b"220 bench.test LMTP\r\n")?;
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let verb = line.get(..4).unwrap_or_default().to_ascii_uppercase();
        let reply = match &*verb {
            "LHLO" => "250-bench.test\r\n250-PIPELINING\r\n250 8BITMIME\r\n",
            "MAIL" | "RSET" => {
                recipients.clear();
                "250 ok\r\n"
            }
            "RCPT" => {
                let user = line
                    .split_once('<')
                    .and_then(|(_, rest)| rest.split_once('@'));
                let place = root.join(user.map_or("", |(user, _)| user)).join("new");
                if place.is_dir() {
                    recipients.push(place);
                    "250 ok\r\n"
                } else {
                    "550 no such mailbox\r\n"
                }
            }
            "DATA" => {
                writer.write_all(b"354 go on\r\n")?;
                let message = message(&mut reader)?;
                let name = next.fetch_add(1, Ordering::Relaxed).to_string();
                let reply = match link(root, &name, &message, &recipients) {
                    Ok(()) => "250 ok\r\n",
                    Err(_) => "451 not now\r\n",
                };
                writer.write_all(reply.repeat(recipients.len()).as_bytes())?;
                continue;
            }
            "QUIT" => return writer.write_all(b"221 bye\r\n"),
            _ => "502 what?\r\n",
        };
        writer.write_all(reply.as_bytes())?;
    }
}

/// Reads to the final dot, and undoes doubled dots.
fn message(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut message = Vec::new();
    loop {
        let start = message.len();
        if reader.read_until(b'\n', &mut message)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match message.get(start..) {
            Some(b".\r\n") => {
                message.truncate(start);
                return Ok(message);
            }
            Some([b'.', ..]) => drop(message.remove(start)),
            _ => {}
        }
    }
}

fn link(root: &Path, name: &str, message: &[u8], places: &[PathBuf]) -> io::Result<()> {
    let path = root.join("tmp").join(name);
    let mut file = File::create_new(&path)?;
    file.write_all(message)?;
    file.sync_all()?;
    for place in places {
        fs::hard_link(&path, place.join(name))?;
    }
    fs::remove_file(&path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::deliver::{Lane, Protocol};

    #[test]
    fn one_file_has_a_name_in_each_mailbox() {
        let base = tempfile::tempdir().unwrap();
        let users = ["a", "b", "c"].map(str::to_owned);
        let linker = Linker::start(&users, base.path()).unwrap();
        let mut lane = Lane::connect(linker.address, Protocol::Lmtp).unwrap();
        let to = ["a@x.test", "b@x.test"].map(str::to_owned);
        lane.deliver(&to, b"A: b\r\n\r\n.dot\r\n").unwrap();
        let nobody = ["nobody@x.test".to_owned()];
        assert!(lane.deliver(&nobody, b"A: b\r\n").is_err());
        let folder = fs::read_dir(base.path()).unwrap().next().unwrap().unwrap();
        let file = |user: &str| folder.path().join(user).join("new/0");
        assert_eq!(fs::read(file("a")).unwrap(), b"A: b\r\n\r\n.dot\r\n");
        use std::os::unix::fs::MetadataExt;
        assert_eq!(fs::metadata(file("b")).unwrap().nlink(), 2);
        assert!(!file("c").exists());
    }
}
