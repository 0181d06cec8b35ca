//! The file: a tar archive, compressed, for its owner alone.

use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use flate2::Compression;
use flate2::write::GzEncoder;
use vere_process::failure::Failure;

/// The level of the compression.
const LEVEL: i32 = 9;

/// A file of the archive.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: &'static str,
    pub(super) text: String,
}

/// The compression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Zstd,
    Gzip,
}

impl Form {
    /// # Errors
    /// Another ending than `.tar.zst` and `.tar.gz`.
    pub(super) fn of(path: &Path) -> Result<Self, Failure> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match () {
            () if name.ends_with(".tar.zst") => Ok(Self::Zstd),
            () if name.ends_with(".tar.gz") => Ok(Self::Gzip),
            () => Err(Failure::new(format!(
                "expected a file that ends in .tar.zst or .tar.gz; found {}",
                path.display()
            ))),
        }
    }
}

/// Writes a temporary file, and renames the file at the end. Returns the size in octets.
///
/// # Errors
/// When the directory cannot be written to, or the file exists.
pub(super) fn write(path: &Path, form: Form, entries: &[Entry]) -> Result<u64, Failure> {
    let wrong =
        |error: io::Error| Failure::new(format!("cannot write {}: {error}", path.display()));
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let file = tempfile::Builder::new()
        .prefix(".vere-support-")
        .permissions(Permissions::from_mode(0o600))
        .tempfile_in(parent.unwrap_or(Path::new(".")))
        .map_err(wrong)?;
    compressed(form, entries, file.as_file()).map_err(wrong)?;
    let bytes = file.as_file().metadata().map_err(wrong)?.len();
    file.persist_noclobber(path)
        .map_err(|error| wrong(error.error))?;
    Ok(bytes)
}

fn compressed(form: Form, entries: &[Entry], to: impl Write) -> io::Result<()> {
    match form {
        Form::Zstd => {
            let encoder = zstd::Encoder::new(to, LEVEL)?;
            archive(entries, encoder)?.finish()?;
        }
        Form::Gzip => {
            let encoder = GzEncoder::new(to, Compression::default());
            archive(entries, encoder)?.finish()?;
        }
    }
    Ok(())
}

fn archive<W: Write>(entries: &[Entry], to: W) -> io::Result<W> {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let mut archive = tar::Builder::new(to);
    for entry in entries {
        let mut header = tar::Header::new_ustar();
        header.set_size(entry.text.len() as u64);
        header.set_mode(0o600);
        header.set_mtime(now.as_secs());
        header.set_entry_type(tar::EntryType::Regular);
        let name = format!("vere-support/{}", entry.name);
        archive.append_data(&mut header, name, entry.text.as_bytes())?;
    }
    archive.into_inner()
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn both_forms_are_private_and_unpack() {
        let folder = tempfile::tempdir().unwrap();
        let entries = [Entry {
            name: "a.txt",
            text: "text".to_owned(),
        }];
        for name in ["x.tar.zst", "x.tar.gz"] {
            let path = folder.path().join(name);
            let form = Form::of(&path).unwrap();
            write(&path, form, &entries).unwrap();
            let mode = path.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
            let again = write(&path, form, &entries).unwrap_err().to_string();
            assert!(again.contains("exists"), "{again}");
            let file = std::fs::File::open(&path).unwrap();
            let tar: Box<dyn io::Read> = match form {
                Form::Zstd => Box::new(zstd::Decoder::new(file).unwrap()),
                Form::Gzip => Box::new(flate2::read::GzDecoder::new(file)),
            };
            let mut archive = tar::Archive::new(tar);
            let mut entry = archive.entries().unwrap().next().unwrap().unwrap();
            assert_eq!(entry.path().unwrap(), Path::new("vere-support/a.txt"));
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            assert_eq!(text, "text");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
        assert!(Form::of(Path::new("x.zip")).is_err());
    }
}
