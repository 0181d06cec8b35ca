//! The list of a backup: every file with the file's pieces.

use serde::{Deserialize, Serialize};
use vere_process::failure::Failure;

/// The version of the list.
pub(crate) const VERSION: u32 = 1;
/// The beginning of the first line.
const HEAD: &str = "vere-backup-manifest";
/// The longest accepted list: some ten terabytes of mail.
pub(crate) const OCTETS_MAX: u64 = 1024 * 1024 * 1024;

/// Octets of a piece; the last piece of a file may be shorter.
pub(crate) const PIECE_OCTETS: usize = 4 * 1024 * 1024;

/// A piece of a file: the content of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Piece(
    /// The number of octets.
    pub(crate) u64,
    /// The name of the object, in hexadecimal digits.
    pub(crate) String,
);

impl Piece {
    /// Whether a piece of a list is of a possible length, and names an object: a path would lead elsewhere.
    pub(crate) fn is_valid(&self) -> bool {
        let Self(octets, name) = self;
        let digits = name.bytes().all(|digit| digit.is_ascii_hexdigit());
        *octets <= PIECE_OCTETS as u64 && name.len() == 64 && digits
    }
}

/// The identity of a read file on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Mark {
    /// The number of the file on the file system.
    pub(crate) inode: u64,
    /// Creation time of the file, in nanoseconds since 1970, if known to the file system.
    pub(crate) born: Option<i128>,
    /// Times of the last change of content (`modified`) and of metadata (`changed`), in nanoseconds since 1970.
    pub(crate) modified: i128,
    pub(crate) changed: i128,
}

/// A file of the mail store's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LogFile {
    pub(crate) name: String,
    pub(crate) mark: Mark,
    /// The BLAKE3 hash of the last octets, at most [`TAIL`](crate::sources::log::TAIL).
    pub(crate) tail: String,
    pub(crate) pieces: Vec<Piece>,
}

/// The mail store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Log {
    /// The id of the log, in hexadecimal digits.
    pub(crate) id: String,
    /// All content before this position is in the backup.
    pub(crate) synced: u64,
    pub(crate) files: Vec<LogFile>,
}

/// Where a file belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Root {
    /// In the data directory; the path is relative to the data directory.
    Data,
    /// In the data directory, and of no use on a different machine: the register of spool groups names logs outside of
    /// every backup. A restore puts the register aside.
    Aside,
    /// Elsewhere; the path is absolute.
    Outside,
}

/// Another file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Plain {
    pub(crate) root: Root,
    pub(crate) path: String,
    /// The permissions.
    pub(crate) mode: u32,
    pub(crate) octets: u64,
    pub(crate) mark: Mark,
    pub(crate) pieces: Vec<Piece>,
}

/// Messages waiting for delivery, outside of every backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Queues {
    /// Always false: the spool's records are short-lived, and lie on several nodes.
    pub(crate) included: bool,
    /// How many waited; unknown if no gateway answered.
    pub(crate) messages: Option<u64>,
}

/// A backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) version: u32,
    /// Counts the backups of a place, from 1.
    pub(crate) number: u64,
    /// The time of the backup's point, in milliseconds since 1970.
    pub(crate) made: u64,
    /// The version of the program.
    pub(crate) program: String,
    /// The host name of the system.
    pub(crate) host: String,
    /// The data directory, and the settings, of the system.
    pub(crate) data: String,
    pub(crate) config: String,
    /// Absent for a system without a mail store.
    pub(crate) log: Option<Log>,
    pub(crate) files: Vec<Plain>,
    pub(crate) queues: Queues,
}

impl Manifest {
    /// The text of the list: a line with a checksum, and JSON.
    ///
    /// # Errors
    /// Never for values of this type.
    pub(crate) fn encode(&self) -> Result<Vec<u8>, Failure> {
        let text = serde_json::to_string(self)?;
        let hash = blake3::hash(text.as_bytes()).to_hex();
        Ok(format!("{HEAD} {VERSION} {hash}\n{text}\n").into_bytes())
    }

    /// Reads the text of a list.
    ///
    /// # Errors
    /// When the list is damaged or of another version.
    pub(crate) fn decode(octets: &[u8]) -> Result<Self, Failure> {
        let text = std::str::from_utf8(octets).ok();
        let (head, text) = text
            .and_then(|text| text.split_once('\n'))
            .ok_or_else(|| Failure::new("the list is damaged"))?;
        let mut words = head.split(' ');
        let version = (words.next(), words.next(), words.next());
        let (Some(HEAD), Some(version), Some(hash)) = version else {
            return Err(Failure::new("the list is damaged"));
        };
        if version != VERSION.to_string() {
            return Err(Failure::new(format!(
                "expected a list of version {VERSION}; found version {version}"
            )));
        }
        let text = text.trim_end_matches('\n');
        if blake3::hash(text.as_bytes()).to_hex().as_str() != hash {
            return Err(Failure::new("the list is damaged"));
        }
        let manifest: Self = serde_json::from_str(text)?;
        let is_valid = manifest.pieces().all(Piece::is_valid);
        match is_valid {
            true => Ok(manifest),
            false => Err(Failure::new("the list is damaged")),
        }
    }

    /// All pieces of all files.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = &Piece> {
        let log = self.log.iter().flat_map(|log| &log.files);
        let log = log.flat_map(|file| &file.pieces);
        log.chain(self.files.iter().flat_map(|file| &file.pieces))
    }

    /// The octets of all files.
    pub(crate) fn octets(&self) -> u64 {
        self.pieces().map(|piece| piece.0).sum()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn small(number: u64, object: &str) -> Manifest {
        Manifest {
            version: VERSION,
            number,
            made: 7,
            program: "0".to_owned(),
            host: "mx.example.org".to_owned(),
            data: "/data".to_owned(),
            config: "/vere.toml".to_owned(),
            log: None,
            files: vec![Plain {
                root: Root::Data,
                path: "a".to_owned(),
                mode: 0o600,
                octets: 1,
                mark: Mark::default(),
                pieces: vec![Piece(1, object.to_owned())],
            }],
            queues: Queues {
                included: false,
                messages: None,
            },
        }
    }

    #[test]
    fn pieces_that_cannot_be_are_refused() {
        let name = "ab".repeat(32);
        Manifest::decode(&small(1, &name).encode().unwrap()).unwrap();
        let mut long = small(1, &name);
        long.files[0].pieces[0].0 = u64::MAX;
        for wrong in [
            long,
            small(1, "../../etc/passwd"),
            small(1, &"é".repeat(32)),
        ] {
            assert!(Manifest::decode(&wrong.encode().unwrap()).is_err());
        }
    }

    #[test]
    fn a_list_comes_back_and_damage_shows() {
        let manifest = small(3, &"ab".repeat(32));
        let octets = manifest.encode().unwrap();
        assert_eq!(Manifest::decode(&octets).unwrap(), manifest);
        for at in 0..octets.len() - 1 {
            let mut damaged = octets.clone();
            damaged[at] ^= 1;
            assert!(Manifest::decode(&damaged).is_err(), "octet {at}");
            assert!(Manifest::decode(&octets[..at]).is_err(), "up to {at}");
        }
    }
}
