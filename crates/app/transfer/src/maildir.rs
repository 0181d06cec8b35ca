//! Maildir with the directories of Maildir++: flags from the names of files, dates from their times.

use std::fs::{self, File, FileTimes};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use vere_imap::date::Moment;

use super::message::{Hash, Item, LineEnds, Message, PIECE, Writer};
use super::names::{self, Folder};
use super::outcome::Put;
use vere_process::failure::Failure;

/// Flags by their letters (Maildir++, and Dovecot for forwarded messages).
const LETTERS: [(char, &str); 6] = [
    ('D', "\\Draft"),
    ('F', "\\Flagged"),
    ('P', "$Forwarded"),
    ('R', "\\Answered"),
    ('S', "\\Seen"),
    ('T', "\\Deleted"),
];

/// The file of Dovecot with the keywords of small letters: lines of a number and a name.
const KEYWORDS: &str = "dovecot-keywords";

/// Number of searches for a message whose file was renamed: mail clients set flags one at a time.
const RENAMES_MAX: usize = 3;

/// Limit of the keywords with letters.
const KEYWORDS_MAX: usize = 26;

/// A Maildir to read.
#[derive(Debug)]
pub(super) struct Source {
    root: PathBuf,
    folders: Vec<PathBuf>,
    /// The files of the open directory.
    files: Vec<PathBuf>,
}

impl Source {
    pub(super) fn new(root: PathBuf) -> Self {
        Self {
            root,
            folders: Vec::new(),
            files: Vec::new(),
        }
    }

    /// # Errors
    /// When the directory is no Maildir.
    pub(super) fn folders(&mut self) -> Result<Vec<Folder>, Failure> {
        let mut found = vec![(names::inbox(), self.root.clone())];
        let entries = fs::read_dir(&self.root)
            .map_err(|error| Failure::new(format!("{}: {error}", self.root.display())))?;
        for entry in entries {
            let path = entry?.path();
            let name = path.file_name().map(|name| name.to_string_lossy());
            if let Some(name) = name.filter(|name| name.starts_with('.'))
                && path.join("cur").is_dir()
            {
                found.push((names::from_maildir(&name), path.clone()));
            }
        }
        found.sort();
        let mut folders = Vec::new();
        for (number, (path, place)) in found.into_iter().enumerate() {
            folders.push(Folder {
                path,
                special_use: None,
                subscribed: None,
                number,
            });
            self.folders.push(place);
        }
        Ok(folders)
    }

    /// # Errors
    /// When the folder cannot be read.
    pub(super) fn open(&mut self, folder: &Folder) -> Result<Vec<Item>, Failure> {
        let place = &self.folders[folder.number];
        let keywords = keywords(place);
        let mut files = Vec::new();
        for part in ["new", "cur"] {
            let entries = match fs::read_dir(place.join(part)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                entries => entries?,
            };
            for entry in entries {
                let path = entry?.path();
                let name = path.file_name().map(|name| name.to_string_lossy());
                if name.is_some_and(|name| !name.starts_with('.')) {
                    files.push((fs::metadata(&path)?, path));
                }
            }
        }
        // In the order of arrival, which is the order of their UIDs.
        files.sort_by_key(|(about, path)| (about.modified().ok(), path.clone()));
        let mut items = Vec::new();
        self.files.clear();
        for (about, path) in files {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let (base, flags) = name.split_once(":2,").unwrap_or((&name, ""));
            items.push(Item {
                key: base.to_owned(),
                flags: flags.chars().filter_map(|c| flag(c, &keywords)).collect(),
                date: about.modified().ok().map(|time| date(time).into()),
                size: about.len(),
                at: self.files.len() as u64,
            });
            self.files.push(path);
        }
        Ok(items)
    }

    /// The message, if still present. Other programs may rename the file for other flags meanwhile, or move the file
    /// from `new` to `cur`: the function searches for the new name.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(super) fn read(&self, item: &Item) -> Result<Option<Message>, Failure> {
        let path = &self.files[usize::try_from(item.at)?];
        let mut found = open(path)?;
        for _ in 0..RENAMES_MAX {
            if found.is_some() {
                break;
            }
            let Some(path) = renamed(path, &item.key)? else {
                break;
            };
            found = open(&path)?;
        }
        found.map(|file| copy(file, LineEnds::Found)).transpose()
    }
}

/// Opens a file, if present.
fn open(path: &Path) -> Result<Option<File>, Failure> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::new(format!("{}: {error}", path.display()))),
    }
}

/// The file of a message by the beginning of its name, in the earlier directory or in `cur`.
fn renamed(before: &Path, key: &str) -> Result<Option<PathBuf>, Failure> {
    let Some(folder) = before.parent().and_then(Path::parent) else {
        return Ok(None);
    };
    for part in ["cur", "new"] {
        let entries = match fs::read_dir(folder.join(part)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.split(":2,").next() == Some(key) {
                return Ok(Some(path));
            }
        }
    }
    Ok(None)
}

/// Reads all of a file.
fn copy(mut file: File, ends: LineEnds) -> Result<Message, Failure> {
    let mut writer = Writer::new(ends);
    let mut buffer = vec![0; PIECE];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(writer.finish()),
            octets => writer.write(&buffer[..octets])?,
        }
    }
}

fn flag(letter: char, keywords: &[Option<String>]) -> Option<String> {
    if letter.is_ascii_lowercase() {
        let number = usize::try_from(u32::from(letter) - u32::from('a')).ok()?;
        return keywords.get(number)?.clone();
    }
    let known = LETTERS.iter().find(|(own, _)| *own == letter);
    known.map(|(_, flag)| (*flag).to_owned())
}

fn keywords(place: &Path) -> Vec<Option<String>> {
    let text = fs::read_to_string(place.join(KEYWORDS)).unwrap_or_default();
    let mut keywords = vec![None; KEYWORDS_MAX];
    for line in text.lines() {
        if let Some((number, name)) = line.split_once(' ')
            && let Ok(number) = number.parse::<usize>()
            && let Some(keyword) = keywords.get_mut(number)
        {
            *keyword = Some(name.to_owned());
        }
    }
    keywords
}

fn date(time: SystemTime) -> Moment {
    let seconds = |span: Duration| i64::try_from(span.as_secs()).unwrap_or(i64::MAX);
    Moment::from_seconds(match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => seconds(since),
        Err(before) => {
            let before = before.duration();
            let whole = i64::from(before.subsec_nanos() > 0);
            seconds(before).saturating_add(whole).saturating_neg()
        }
    })
}

/// The time of a file, as far as the system can represent the time.
fn file_time(seconds: i64) -> SystemTime {
    let span = Duration::from_secs(seconds.unsigned_abs());
    let time = match seconds < 0 {
        true => SystemTime::UNIX_EPOCH.checked_sub(span),
        false => SystemTime::UNIX_EPOCH.checked_add(span),
    };
    time.unwrap_or(SystemTime::UNIX_EPOCH)
}

/// A Maildir to write. A message's file is named by the identity of the message at its source, so that repeated
/// writes leave a single file.
#[derive(Debug)]
pub(super) struct Target {
    root: PathBuf,
    place: PathBuf,
    keywords: Vec<Option<String>>,
    /// The beginnings of the names of the present files.
    there: std::collections::HashSet<String>,
}

impl Target {
    pub(super) fn new(root: PathBuf) -> Self {
        Self {
            place: root.clone(),
            root,
            keywords: Vec::new(),
            there: std::collections::HashSet::new(),
        }
    }

    /// Creates a directory, if missing, as the target of further messages.
    ///
    /// # Errors
    /// When the directory cannot be created.
    pub(super) fn open(&mut self, folder: &Folder) -> Result<(), Failure> {
        self.place = match folder.path == names::inbox() {
            true => self.root.clone(),
            false => self.root.join(names::to_maildir(&folder.path)),
        };
        for part in ["tmp", "new", "cur"] {
            make_folder(&self.place.join(part))?;
        }
        if self.place != self.root {
            create(&self.place.join("maildirfolder"))?;
        }
        self.keywords = keywords(&self.place);
        self.there.clear();
        for part in ["new", "cur"] {
            for entry in fs::read_dir(self.place.join(part))? {
                let name = entry?.file_name();
                let name = name.to_string_lossy();
                let base = name.split(":2,").next().unwrap_or_default();
                self.there.insert(base.to_owned());
            }
        }
        Ok(())
    }

    /// Writes a message, unless present.
    ///
    /// # Errors
    /// When the message cannot be written.
    pub(super) fn put(&mut self, item: &Item, message: &mut Message) -> Result<Put, Failure> {
        let seconds = item.date.map_or(0, |date| date.moment().seconds());
        let base = base_name(&item.key, seconds, message.hash);
        if !self.there.insert(base.clone()) {
            return Ok(Put::Kept(None));
        }
        let temporary = self.place.join("tmp").join(&base);
        let mut file = create(&temporary)?;
        write_lf(message, &mut file)?;
        let time = file_time(seconds);
        file.set_times(FileTimes::new().set_modified(time))?;
        file.sync_all()?;
        let mut letters: Vec<char> = item
            .flags
            .iter()
            .filter_map(|flag| self.letter(flag))
            .collect();
        letters.sort_unstable();
        let letters: String = letters.into_iter().collect();
        let name = format!("{base}:2,{letters}");
        fs::rename(&temporary, self.place.join("cur").join(name))?;
        Ok(Put::Kept(None))
    }

    /// Syncs the messages written last.
    ///
    /// # Errors
    /// When the sync fails.
    pub(super) fn sync(&self) -> Result<(), Failure> {
        let mut text = String::new();
        for (number, keyword) in self.keywords.iter().enumerate() {
            if let Some(keyword) = keyword {
                text += &format!("{number} {keyword}\n");
            }
        }
        if !text.is_empty() {
            let temporary = self.place.join("tmp").join(KEYWORDS);
            let mut file = create(&temporary)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(temporary, self.place.join(KEYWORDS))?;
        }
        File::open(self.place.join("cur"))?.sync_all()?;
        Ok(())
    }

    /// The letter of a flag; keywords get free letters in the order of their use.
    fn letter(&mut self, flag: &str) -> Option<char> {
        let known = LETTERS
            .iter()
            .find(|(_, name)| name.eq_ignore_ascii_case(flag));
        if let Some((letter, _)) = known {
            return Some(*letter);
        }
        if flag.starts_with('\\') {
            return None;
        }
        let is = |keyword: &Option<String>| {
            keyword
                .as_ref()
                .is_some_and(|own| own.eq_ignore_ascii_case(flag))
        };
        let number = self.keywords.iter().position(is);
        let free = || self.keywords.iter().position(Option::is_none);
        let number = number.or_else(free)?;
        self.keywords[number].get_or_insert_with(|| flag.to_owned());
        char::from_digit(u32::try_from(number).ok()? + 10, 36)
    }
}

fn base_name(key: &str, seconds: i64, hash: Hash) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(key.as_bytes());
    hasher.update(hash.as_bytes());
    let id = hasher.finalize().to_hex();
    format!("{}.V{}.vere", seconds.max(0), &id[..24])
}

/// Writes a message with the line ends of files; a message that would not survive the conversion is written
/// unchanged.
pub(super) fn write_lf(message: &mut Message, to: &mut impl io::Write) -> io::Result<()> {
    if !message.plain_ends {
        return message.pieces(|piece| to.write_all(piece));
    }
    let mut held_cr = false;
    message.pieces(|piece| {
        let mut rest = piece;
        if std::mem::take(&mut held_cr) && rest.first() != Some(&b'\n') {
            to.write_all(b"\r")?;
        }
        while let Some(at) = memchr::memmem::find(rest, b"\r\n") {
            to.write_all(&rest[..at])?;
            to.write_all(b"\n")?;
            rest = &rest[at + 2..];
        }
        if rest.last() == Some(&b'\r') {
            held_cr = true;
            rest = &rest[..rest.len() - 1];
        }
        to.write_all(rest)
    })?;
    match held_cr {
        true => to.write_all(b"\r"),
        false => Ok(()),
    }
}

/// Creates a directory with its parents, closed to other users.
///
/// # Errors
/// When the directory cannot be created, with its name: a file of the name may exist.
pub(super) fn make_folder(path: &Path) -> Result<(), Failure> {
    let mut builder = fs::DirBuilder::new();
    builder
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|error| {
            Failure::new(format!(
                "cannot make the folder {}: {error}; name a folder, or a path where nothing is yet",
                path.display()
            ))
        })
}

/// Creates a file that only its owner may read.
fn create(path: &Path) -> io::Result<File> {
    let mut options = fs::OpenOptions::new();
    options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> Message {
        let mut writer = Writer::new(LineEnds::Kept);
        writer.write(text.as_bytes()).expect("memory");
        writer.finish()
    }

    #[test]
    fn messages_whose_files_got_other_names_are_found() {
        let folder = tempfile::tempdir().expect("a folder");
        for part in ["cur", "new", "tmp"] {
            fs::create_dir(folder.path().join(part)).expect("room");
        }
        let file = |name: &str| folder.path().join(name);
        for name in ["new/1.a", "cur/2.b:2,", "cur/3.c:2,S", "cur/1.ab:2,"] {
            fs::write(file(name), name).expect("room");
        }
        let mut source = Source::new(folder.path().to_owned());
        let folders = source.folders().expect("a Maildir");
        let items = source.open(&folders[0]).expect("a folder");
        fs::rename(file("new/1.a"), file("cur/1.a:2,FS")).expect("a name");
        fs::rename(file("cur/2.b:2,"), file("cur/2.b:2,R")).expect("a name");
        fs::remove_file(file("cur/3.c:2,S")).expect("a file");
        let mut found: Vec<(String, Option<u64>)> = items
            .iter()
            .map(|item| {
                let message = source.read(item).expect("a Maildir");
                (item.key.clone(), message.map(|message| message.size))
            })
            .collect();
        found.sort();
        let wanted = [
            ("1.a", Some(7)),
            ("1.ab", Some(11)),
            ("2.b", Some(10)),
            ("3.c", None),
        ];
        assert_eq!(found, wanted.map(|(key, size)| (key.to_owned(), size)));
    }

    #[test]
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut target = Target::new(folder.path().to_owned());
        let place = Folder {
            path: vec!["a.b".to_owned(), "ü".to_owned()],
            special_use: None,
            subscribed: None,
            number: 0,
        };
        target.open(&place).expect("a folder");
        let flags = ["\\Seen", "$Forwarded", "work", "\\Draft"];
        let mut item = Item {
            key: "1".to_owned(),
            flags: flags.iter().map(|&flag| flag.to_owned()).collect(),
            date: Some(Moment::from_seconds(-315_586_800).into()),
            size: 0,
            at: 0,
        };
        let texts = ["a: b\r\n\r\nc\rd\r\n", "a: b\r\n\r\nodd\nends\r\n", "a"];
        for (number, text) in texts.iter().enumerate() {
            item.key = number.to_string();
            for _ in 0..2 {
                target.put(&item, &mut message(text)).expect("room");
            }
        }
        target.sync().expect("a disk");
        let mut source = Source::new(folder.path().to_owned());
        let folders = source.folders().expect("a Maildir");
        assert_eq!(folders.len(), 2);
        let opened = folders.iter().find(|folder| folder.path == place.path);
        let items = source.open(opened.expect("the folder")).expect("a folder");
        let mut found: Vec<String> = Vec::new();
        for item in &items {
            let mut flags = item.flags.clone();
            flags.sort();
            assert_eq!(flags, ["$Forwarded", "\\Draft", "\\Seen", "work"]);
            assert_eq!(
                item.date.map(|date| date.moment().seconds()),
                Some(-315_586_800)
            );
            let mut read = source.read(item).ok().flatten().expect("a message");
            let mut text = Vec::new();
            read.pieces(|piece| {
                text.extend_from_slice(piece);
                Ok(())
            })
            .expect("memory");
            found.push(String::from_utf8(text).expect("text"));
        }
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        for file in &source.files {
            assert_eq!(mode(file), 0o600);
        }
        assert_eq!(mode(source.files[0].parent().expect("a folder")), 0o700);
        found.sort();
        let mut wanted = texts;
        wanted.sort_unstable();
        assert_eq!(found, wanted);
    }
}
