//! The list of a backup: every file with the names of the file's pieces.
//!
//! Lists come from places that strangers may write to: a list is decoded within bounds, names of objects lead to no path, and
//! no [file](Plain::below) leads out of the directory of a restore. docs/internals/backup.md draws the format.

use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The version of the list.
pub const VERSION: u32 = 1;
/// The beginning of the first line.
const HEAD: &str = "vere-backup-manifest";
/// The longest accepted list: some ten terabytes of mail.
pub const OCTETS_MAX: u64 = 1024 * 1024 * 1024;

/// Octets of a piece; the last piece of a file may be shorter.
pub const PIECE_OCTETS: usize = 4 * 1024 * 1024;

/// A piece of a file: the content of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece(
    /// The number of octets.
    pub u64,
    /// The name of the object, in hexadecimal digits.
    pub String,
);

impl Piece {
    /// Whether a piece of a list is of a possible length, and names an object: a path would lead elsewhere.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        let Self(octets, name) = self;
        let digits = name.bytes().all(|digit| digit.is_ascii_hexdigit());
        *octets <= PIECE_OCTETS as u64 && name.len() == 64 && digits
    }
}

/// The identity of a read file on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Mark {
    /// The number of the file on the file system.
    pub inode: u64,
    /// Creation time of the file, in nanoseconds since 1970, if known to the file system.
    pub born: Option<i128>,
    /// Time of the last change of content, in nanoseconds since 1970.
    pub modified: i128,
    /// Time of the last change of metadata, in nanoseconds since 1970.
    pub changed: i128,
}

/// A file of the mail store's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogFile {
    /// The name in the folder of the log.
    pub name: String,
    /// The identity when the file was read.
    pub mark: Mark,
    /// The BLAKE3 hash of the last octets, 4096 at most.
    pub tail: String,
    /// The content.
    pub pieces: Vec<Piece>,
}

/// The mail store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Log {
    /// The id of the log, in hexadecimal digits.
    pub id: String,
    /// All content before this position is in the backup.
    pub synced: u64,
    /// The files, in the order of their names.
    pub files: Vec<LogFile>,
}

/// Where a file belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Root {
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
pub struct Plain {
    /// Where the file belongs.
    pub root: Root,
    /// The path, relative or absolute by the root.
    pub path: String,
    /// The permissions.
    pub mode: u32,
    /// The length.
    pub octets: u64,
    /// The identity when the file was read.
    pub mark: Mark,
    /// The content.
    pub pieces: Vec<Piece>,
}

impl Plain {
    /// The path of the file below the directory of a restore; files from outside of the data directory go below
    /// `outside`. `None` for a path that would lead elsewhere.
    #[must_use]
    pub fn below(&self, data: &Path, outside: &str) -> Option<PathBuf> {
        let below = Path::new(&self.path);
        let (root, below) = match self.root {
            Root::Data => (data.to_owned(), below),
            Root::Aside => (data.join(outside), below),
            Root::Outside => (data.join(outside), below.strip_prefix("/").unwrap_or(below)),
        };
        let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_));
        let is_below = below.components().all(is_plain) && below.components().next().is_some();
        is_below.then(|| root.join(below))
    }
}

/// Messages waiting for delivery, outside of every backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queues {
    /// Always false: the spool's records are short-lived, and lie on several nodes.
    pub included: bool,
    /// How many waited; unknown if no gateway answered.
    pub messages: Option<u64>,
}

/// Why octets are no list.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// The checksum is wrong, or a piece is none that can be.
    #[error("the list is damaged")]
    Damaged,
    /// Another version of the format.
    #[error("expected a list of version {VERSION}; found version {0}")]
    Version(String),
    /// The checksum is right, and the text is no list.
    #[error("the list is none of this program: {0}")]
    Form(#[from] serde_json::Error),
}

/// A backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Always [`VERSION`].
    pub version: u32,
    /// Counts the backups of a place, from 1.
    pub number: u64,
    /// The time of the backup's point, in milliseconds since 1970.
    pub made: u64,
    /// The version of the program.
    pub program: String,
    /// The host name of the system.
    pub host: String,
    /// The data directory of the system.
    pub data: String,
    /// The file of the settings.
    pub config: String,
    /// Absent for a system without a mail store.
    pub log: Option<Log>,
    /// All files beside the mail store.
    pub files: Vec<Plain>,
    /// The queues, which are not in the backup.
    pub queues: Queues,
}

impl Manifest {
    /// The text of the list: a line with a checksum, and JSON.
    ///
    /// # Errors
    /// Never for values of this type.
    pub fn encode(&self) -> Result<Vec<u8>, ListError> {
        let text = serde_json::to_string(self)?;
        let hash = blake3::hash(text.as_bytes()).to_hex();
        Ok(format!("{HEAD} {VERSION} {hash}\n{text}\n").into_bytes())
    }

    /// Reads the text of a list.
    ///
    /// # Errors
    /// When the list is damaged or of another version.
    pub fn decode(octets: &[u8]) -> Result<Self, ListError> {
        let text = std::str::from_utf8(octets).ok();
        let (head, text) = text
            .and_then(|text| text.split_once('\n'))
            .ok_or(ListError::Damaged)?;
        let mut words = head.split(' ');
        let version = (words.next(), words.next(), words.next());
        let (Some(HEAD), Some(version), Some(hash)) = version else {
            return Err(ListError::Damaged);
        };
        if version != VERSION.to_string() {
            return Err(ListError::Version(version.to_owned()));
        }
        let text = text.trim_end_matches('\n');
        if blake3::hash(text.as_bytes()).to_hex().as_str() != hash {
            return Err(ListError::Damaged);
        }
        let manifest: Self = serde_json::from_str(text)?;
        let is_valid = manifest.pieces().all(Piece::is_valid);
        match is_valid {
            true => Ok(manifest),
            false => Err(ListError::Damaged),
        }
    }

    /// All pieces of all files.
    pub fn pieces(&self) -> impl Iterator<Item = &Piece> {
        let log = self.log.iter().flat_map(|log| &log.files);
        let log = log.flat_map(|file| &file.pieces);
        log.chain(self.files.iter().flat_map(|file| &file.pieces))
    }

    /// The octets of all files.
    #[must_use]
    pub fn octets(&self) -> u64 {
        let octets = self.pieces().map(|piece| piece.0);
        octets.fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small(number: u64, object: &str) -> Manifest {
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

    #[test]
    fn paths_of_a_list_stay_below_the_directory() {
        let manifest = small(1, "aa");
        let of = |root, path: &str| {
            let file = Plain {
                root,
                path: path.to_owned(),
                ..manifest.files[0].clone()
            };
            file.below(Path::new("/data"), "restored")
        };
        let path = |text: &str| Some(PathBuf::from(text));
        assert_eq!(of(Root::Data, "dkim/a.pem"), path("/data/dkim/a.pem"));
        assert_eq!(
            of(Root::Outside, "/etc/vere.toml"),
            path("/data/restored/etc/vere.toml")
        );
        for wrong in ["", "../a", "a/../../b", "/etc/passwd", "."] {
            assert_eq!(of(Root::Data, wrong), None, "{wrong}");
        }
        for wrong in ["/", "/etc/../../a", "//../a"] {
            assert_eq!(of(Root::Outside, wrong), None, "{wrong}");
        }
    }
}
