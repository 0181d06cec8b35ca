//! The log of the mail store: held as of a single moment, read piece by piece, except for pieces of an earlier
//! backup.

use std::fs::{File, TryLockError};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use vere_control::{HeldFile, HeldLog, LogHold, store_socket};
use vere_process::data_lock;
use vere_process::failure::Failure;
use vere_process::owner::Owner;
use vere_role_store::copies::Resting;
use vere_settings::Settings;

use crate::fault::at;
use crate::manifest::{Log, LogFile, PIECE_OCTETS, Piece};
use crate::storing::Storing;

/// Octets compared at the end of the known part of a file before the part is taken for unchanged.
pub(crate) const TAIL: u64 = 4096;
/// How long the store may take to begin a hold: a large segment may be under work.
const HOLD_PATIENCE: Duration = Duration::from_secs(330);
/// Longest time for which a store that does not listen may be restarting.
const START_PATIENCE: Duration = Duration::from_secs(30);
const START_PAUSE: Duration = Duration::from_millis(200);
/// From this number of pieces a file is read again as a whole: many backups of a growing file made many pieces.
const PIECES_MAX: usize = 256;

/// The log as of a single moment, unchanged while held.
#[derive(Debug)]
pub(crate) struct Held {
    folder: PathBuf,
    log: HeldLog,
    hold: Hold,
}

#[derive(Debug)]
enum Hold {
    /// Of the running store, by a connection to the store.
    Running(LogHold),
    /// Of a stopped store, by the lock of the store and by the lock of the stopped system.
    Resting(OwnersStore, Option<File>),
}

/// A stopped store, opened and closed with the rights of the owner of the data directory: files of root would keep the
/// system of user `vere` from starting.
#[derive(Debug)]
struct OwnersStore {
    owner: Owner,
    store: Option<Box<Resting>>,
}

impl OwnersStore {
    fn open(settings: &Settings, owner: Owner) -> Result<(Self, HeldLog), Failure> {
        let store = owner.act(|| Resting::open(settings))?;
        let log = store.log()?;
        let store = Some(Box::new(store));
        Ok((Self { owner, store }, log))
    }
}

impl Drop for OwnersStore {
    fn drop(&mut self) {
        let store = self.store.take();
        self.owner.act(|| drop(store));
    }
}

impl Held {
    /// Holds the log of the running store, or of the store at rest; `None` where there is no store.
    ///
    /// # Errors
    /// When the store refuses or cannot be opened.
    pub(crate) fn take(settings: &Settings) -> Result<Option<Self>, Failure> {
        let folder = settings.data.join("store/log");
        let deadline = Instant::now() + START_PATIENCE;
        let owner = Owner::of(&settings.data).map_err(at(&settings.data))?;
        let system = loop {
            if let Some((hold, log)) = LogHold::take(&store_socket(settings), HOLD_PATIENCE)? {
                let hold = Hold::Running(hold);
                return Ok(Some(Self { folder, log, hold }));
            }
            if !folder.is_dir() {
                return Ok(None);
            }
            let system = stopped_system(settings, owner)?;
            if system.is_some() || Instant::now() > deadline {
                break system;
            }
            thread::sleep(START_PAUSE);
        };
        let (resting, log) = OwnersStore::open(settings, owner)?;
        let hold = Hold::Resting(resting, system);
        Ok(Some(Self { folder, log, hold }))
    }

    /// The octets of all files.
    pub(crate) fn octets(&self) -> u64 {
        self.log.files.iter().map(|file| file.octets).sum()
    }

    /// Stores all files.
    ///
    /// # Errors
    /// When a file cannot be read or stored, or the store has ended the hold.
    pub(crate) fn store(
        &mut self,
        storing: &mut Storing<'_>,
        before: Option<&Log>,
    ) -> Result<Log, Failure> {
        let before = before.filter(|before| before.id == self.log.log);
        let mut files = Vec::with_capacity(self.log.files.len());
        for held in &self.log.files {
            if let Hold::Running(hold) = &mut self.hold {
                hold.check()?;
            }
            let known = before.and_then(|log| {
                let place = log.files.binary_search_by(|file| file.name.cmp(&held.name));
                log.files.get(place.ok()?)
            });
            files.push(store_file(&self.folder, held, known, storing)?);
        }
        Ok(Log {
            id: self.log.log.clone(),
            synced: self.log.synced,
            files,
        })
    }

    /// Ends the hold.
    ///
    /// # Errors
    /// When the hold had ended before: the read files may be of different moments.
    pub(crate) fn release(self) -> Result<(), Failure> {
        match self.hold {
            Hold::Running(hold) => Ok(hold.release()?),
            Hold::Resting(resting, system) => {
                drop((resting, system));
                Ok(())
            }
        }
    }
}

/// The lock of the data directory, if no system runs there. Without the lock, a restarting store would be taken for a
/// stopped store, and kept from starting.
fn stopped_system(settings: &Settings, owner: Owner) -> Result<Option<File>, Failure> {
    let path = settings.data.join(data_lock::FILE_NAME);
    let file = owner.act(|| data_lock::open(&settings.data));
    let file = file.map_err(at(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(at(&path)(error)),
    }
}

fn store_file(
    folder: &Path,
    held: &HeldFile,
    known: Option<&LogFile>,
    storing: &mut Storing<'_>,
) -> Result<LogFile, Failure> {
    let path = folder.join(&held.name);
    let wrong = |error| Failure::new(format!("{}: {error}", path.display()));
    let file = File::open(&path).map_err(wrong)?;
    let mark = super::mark(&file.metadata().map_err(wrong)?);
    let known = known.filter(|known| {
        let same = (known.mark.inode, known.mark.born) == (mark.inode, mark.born);
        same && known.pieces.len() < PIECES_MAX
    });
    let mut pieces = Vec::new();
    // A file of which an object is damaged is cut as before: each lost object, also a short one, is stored again.
    let mut cuts = Vec::new();
    if let Some(known) = known {
        let octets = known.pieces.iter().map(|piece| piece.0).sum::<u64>();
        let same =
            octets <= held.octets && tail(&file, octets, storing).map_err(wrong)? == known.tail;
        match same && storing.has_all(&known.pieces) {
            true => {
                storing.reuse(octets);
                pieces.clone_from(&known.pieces);
            }
            false if same => cuts.extend(known.pieces.iter().map(|piece| piece.0)),
            false => {}
        }
    }
    let mut from = pieces.iter().map(|piece: &Piece| piece.0).sum::<u64>();
    let mut cuts = cuts.into_iter();
    let mut buffer = Vec::new();
    while from < held.octets {
        let longest = cuts.next().unwrap_or(PIECE_OCTETS as u64);
        let octets = (held.octets - from).min(longest);
        buffer.resize(octets as usize, 0);
        let pace = storing.pace();
        let mut at = from;
        for part in buffer.chunks_mut(pace.step_octets()) {
            pace.step(|| file.read_exact_at(part, at)).map_err(wrong)?;
            at += part.len() as u64;
        }
        pieces.push(storing.piece(&buffer)?);
        from += octets;
    }
    Ok(LogFile {
        name: held.name.clone(),
        mark,
        tail: tail(&file, held.octets, storing).map_err(wrong)?,
        pieces,
    })
}

/// The hash of the last octets before a position of a file.
fn tail(file: &File, end: u64, storing: &mut Storing<'_>) -> std::io::Result<String> {
    let octets = end.min(TAIL);
    let mut buffer = vec![0; octets as usize];
    file.read_exact_at(&mut buffer, end - octets)?;
    storing.note_read(octets);
    Ok(blake3::hash(&buffer).to_hex().to_string())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::io::Write as _;

    use indicatif::ProgressBar;

    use super::*;
    use crate::pace::Pace;
    use crate::place::Use;
    use crate::repository::tests::open;

    /// Octets that differ from each other.
    fn octets(seed: u32, count: usize) -> Vec<u8> {
        let mut output = blake3::Hasher::new()
            .update(&seed.to_le_bytes())
            .finalize_xof();
        let mut octets = vec![0; count];
        output.fill(&mut octets);
        octets
    }

    #[test]
    fn a_file_that_grew_is_read_from_where_it_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let repository = open(&folder.path().join("place"), Use::Writing).unwrap();
        let name = "0000000000000040.log";
        let path = folder.path().join(name);
        let store = |known: Option<&LogFile>, octets: u64| {
            let bar = ProgressBar::hidden();
            let mut storing = Storing::new(&repository, &bar, Pace::new(None, true)).unwrap();
            let held = HeldFile {
                name: name.to_owned(),
                octets,
            };
            let file = store_file(folder.path(), &held, known, &mut storing).unwrap();
            let read: Vec<u8> = file
                .pieces
                .iter()
                .flat_map(|piece| repository.piece(piece).unwrap())
                .collect();
            assert_eq!(read, fs::read(&path).unwrap()[..octets as usize]);
            (file, storing.counts)
        };
        let first = octets(1, 9_000_000);
        fs::write(&path, &first).unwrap();
        // The end of the file was not safe yet.
        let (known, counts) = store(None, 8_999_000);
        assert!(counts.read >= 8_999_000 && known.pieces.len() == 3);
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"more").unwrap();
        let (again, counts) = store(Some(&known), 9_000_004);
        assert_eq!((counts.stored, counts.objects), (1_004, 1));
        assert!(
            counts.read < 10_000 && counts.reused == 8_999_000,
            "{counts:?}"
        );
        let (_, counts) = store(Some(&again), 9_000_004);
        assert_eq!((counts.stored, counts.reused), (0, 9_000_004));

        // Objects are lost, one of them short: each is stored again, also for the backups before.
        for lost in [0, 3] {
            repository.remove(&again.pieces[lost].1).unwrap();
            let (same, counts) = store(Some(&again), 9_000_004);
            assert!(counts.read > 9_000_000 && counts.objects == 1, "{counts:?}");
            assert_eq!(same.pieces, again.pieces);
        }

        // The file was cut at a start, and something else was appended.
        let mut other = first[..5_000_000].to_vec();
        other.extend(octets(2, 4_000_004));
        fs::write(&path, &other).unwrap();
        let (cut, counts) = store(Some(&again), 9_000_004);
        assert!(counts.reused == 0 && cut.pieces[0] == again.pieces[0]);

        // The segment was written again, under the same name and with the same length.
        let new = folder.path().join("new");
        fs::copy(&path, &new).unwrap();
        fs::rename(&new, &path).unwrap();
        let (_, counts) = store(Some(&cut), 9_000_004);
        assert_eq!((counts.reused, counts.stored), (0, 0));
    }
}
