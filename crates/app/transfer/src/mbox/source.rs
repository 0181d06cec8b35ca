//! mbox files to read.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use super::header::Fields;
use super::scan::{Lines, Place, scan};
use super::{Variant, arrival};
use crate::message::{Item, LineEnds, Message, Writer};
use crate::names::{self, Folder};
use vere_process::failure::Failure;

/// Depth of nested directories that are searched.
const DEPTH_MAX: usize = 32;

/// An mbox file, or a directory of mbox files.
#[derive(Debug)]
pub(crate) struct Source {
    root: PathBuf,
    variant: Variant,
    files: Vec<PathBuf>,
    open: Option<File>,
    places: Vec<Place>,
}

impl Source {
    pub(crate) fn new(root: PathBuf, variant: Variant) -> Self {
        Self {
            root,
            variant,
            files: Vec::new(),
            open: None,
            places: Vec::new(),
        }
    }

    /// # Errors
    /// When the folder cannot be read.
    pub(crate) fn folders(&mut self) -> Result<Vec<Folder>, Failure> {
        let mut found = Vec::new();
        if self.root.is_dir() {
            find(&self.root, &mut Vec::new(), &mut found)?;
        } else {
            found.push((names::inbox(), self.root.clone()));
        }
        found.sort();
        let mut folders = Vec::new();
        for (number, (path, file)) in found.into_iter().enumerate() {
            folders.push(Folder {
                path,
                special_use: None,
                subscribed: None,
                number,
            });
            self.files.push(file);
        }
        Ok(folders)
    }

    /// # Errors
    /// When the file cannot be read or is no mbox.
    pub(crate) fn open(&mut self, folder: &Folder) -> Result<Vec<Item>, Failure> {
        let path = &self.files[folder.number];
        let wrong = |error| Failure::new(format!("{}: {error}", path.display()));
        let file = File::open(path).map_err(wrong)?;
        self.places = scan(&file, self.variant).map_err(wrong)?;
        self.open = Some(file);
        let mut copies: HashMap<blake3::Hash, u32> = HashMap::new();
        let mut items = Vec::new();
        for (at, place) in self.places.iter().enumerate() {
            let (mut message, fields) = self.extract(*place)?;
            let date = match arrival::told(place.date) {
                Some(date) => Some(date.into()),
                None => arrival::of(&mut message)?,
            };
            // Other programs rewrite the whole file when a message is removed or read: the identity of a message is
            // its content, and the number of equal messages before, never its offset.
            let copy = copies.entry(message.hash).or_default();
            *copy += 1;
            items.push(Item {
                key: format!("{}.{copy}", message.hash.to_hex()),
                flags: fields.flags.into_iter().collect(),
                date,
                size: message.size,
                at: at as u64,
            });
        }
        Ok(items)
    }

    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn read(&self, item: &Item) -> Result<Option<Message>, Failure> {
        let place = self.places[usize::try_from(item.at)?];
        let (message, _) = self.extract(place)?;
        // Another program may have written the file anew.
        let same = item.key.starts_with(message.hash.to_hex().as_str());
        Ok(same.then_some(message))
    }

    /// The message without the file's fields, and the content of the fields.
    fn extract(&self, place: Place) -> Result<(Message, Fields), Failure> {
        let Some(mut file) = self.open.as_ref() else {
            return Err(Failure::new("no mbox is open"));
        };
        file.seek(SeekFrom::Start(place.begin))?;
        let mut lines = Lines::new(BufReader::new(file.take(place.end - place.begin)));
        let mut writer = Writer::new(LineEnds::Found);
        let mut header = Header::default();
        while lines.next()? {
            if header.leaves_out(&lines) {
                continue;
            }
            match lines.begins {
                true => writer.write(self.variant.unquoted(&lines.part, place.by_length))?,
                false => writer.write(&lines.part)?,
            }
        }
        Ok((writer.finish(), header.fields))
    }
}

/// Decides which lines of a header belong to the file and not to the message.
///
/// A program that begins a header with such fields, as Veredarius does, writes all its fields there, and later fields
/// belong to the message; other programs put their fields anywhere.
#[derive(Default)]
struct Header {
    fields: Fields,
    lines: usize,
    at_top: bool,
    ended: bool,
    leaving_out: bool,
}

impl Header {
    fn leaves_out<R: BufRead>(&mut self, lines: &Lines<R>) -> bool {
        if self.ended || !lines.begins {
            return self.leaving_out;
        }
        self.lines += 1;
        // A field includes its folded lines.
        let folded = matches!(lines.part.first(), Some(b' ' | b'\t'));
        if !(folded && self.leaving_out) {
            self.leaving_out = self.fields.take(lines.part.trim_ascii_end());
        }
        if self.lines == 1 {
            self.at_top = self.leaving_out;
        }
        self.ended = lines.is_empty_line() || self.at_top && !self.leaving_out;
        self.leaving_out
    }
}

/// Finds the mbox files below a folder. The names of Thunderbird, Apple Mail and others are understood:
/// `X.sbd/`, `X.mbox` and `X.mbox/mbox`.
fn find(
    folder: &Path,
    path: &mut Vec<String>,
    found: &mut Vec<(Vec<String>, PathBuf)>,
) -> Result<(), Failure> {
    if path.len() >= DEPTH_MAX {
        return Err(Failure::new(format!("{}: too deep", folder.display())));
    }
    for entry in fs::read_dir(folder)? {
        let place = entry?.path();
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with('.') {
            continue;
        }
        let level = [".sbd", ".mbox"]
            .iter()
            .find_map(|suffix| name.strip_suffix(suffix))
            .unwrap_or(&name);
        if place.is_dir() {
            path.push(level.to_owned());
            find(&place, path, found)?;
            path.pop();
        } else if is_mbox(&place) {
            let mut path = path.clone();
            if name != "mbox" || path.is_empty() {
                path.push(level.to_owned());
            }
            if let [first, ..] = path.as_mut_slice()
                && first.eq_ignore_ascii_case("INBOX")
            {
                "INBOX".clone_into(first);
            }
            found.push((path, place));
        }
    }
    Ok(())
}

fn is_mbox(path: &Path) -> bool {
    let mut begin = Vec::new();
    let read = File::open(path).and_then(|file| file.take(64).read_to_end(&mut begin));
    read.is_ok() && begin.trim_ascii_start().starts_with(b"From ")
}
