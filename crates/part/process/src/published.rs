//! What the gateway writes for the web server, which must not read the directory of accounts: the list of local domains.
//!
//! ```text
//! vere-domains 1 LF
//! *( domain LF )
//! "end of list" LF
//! ```

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use vere_net::aside::write_private;
use vere_ports::directory::DomainName;

const HEAD: &str = "vere-domains 1";
const END: &str = "end of list";
/// Octets of a list that are read: a million domains of usual length.
const OCTETS_MAX: u64 = 32 << 20;

/// Distinguishes contents of a file without reading the file.
pub type Stamp = (u64, i64, i64, u64);

/// The stamp of a file; `None` for a missing file.
#[must_use]
pub fn stamp(path: &Path) -> Option<Stamp> {
    let found = fs::metadata(path).ok()?;
    Some((found.ino(), found.mtime(), found.mtime_nsec(), found.len()))
}

/// Replaces the list whole, unless the file has the same list.
///
/// # Errors
/// When the file cannot be written; the earlier list stays.
pub fn write<'a>(path: &Path, domains: impl IntoIterator<Item = &'a DomainName>) -> io::Result<()> {
    let mut text = format!("{HEAD}\n");
    for domain in domains {
        text.push_str(domain.as_str());
        text.push('\n');
    }
    text.push_str(END);
    text.push('\n');
    if fs::read(path).is_ok_and(|there| there == text.as_bytes()) {
        return Ok(());
    }
    fs::rename(write_private(path, text.as_bytes())?, path)
}

/// Reads the list.
///
/// # Errors
/// When the file cannot be read, is too long, or is none of ours; a file that was cut has no end.
pub fn read(path: &Path) -> io::Result<Vec<DomainName>> {
    let wrong = |text: &str| io::Error::new(ErrorKind::InvalidData, text.to_owned());
    if fs::metadata(path)?.len() > OCTETS_MAX {
        return Err(wrong(
            "expected a list of domains; the file is longer than one",
        ));
    }
    let text = fs::read_to_string(path)?;
    let mut lines = text.lines();
    if lines.next() != Some(HEAD) {
        return Err(wrong("expected the line vere-domains 1"));
    }
    let mut domains = Vec::new();
    for line in lines {
        if line == END {
            return Ok(domains);
        }
        let domain = DomainName::parse(line);
        domains.push(domain.map_err(|error| wrong(&error.to_string()))?);
    }
    Err(wrong(
        "expected a list of domains to its end; the file was cut",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_comes_back_and_a_cut_list_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("domains");
        assert_eq!(stamp(&path), None);
        let domains = ["example.org", "xn--bcher-kva.example"];
        let [org, book] = &domains.map(|name| DomainName::parse(name).unwrap());
        write(&path, [org, book]).unwrap();
        assert_eq!(read(&path).unwrap(), [org.clone(), book.clone()]);
        // An equal list leaves the file alone.
        let before = stamp(&path);
        write(&path, [org, book]).unwrap();
        assert_eq!(stamp(&path), before);
        write(&path, [org]).unwrap();
        assert_ne!(stamp(&path), before);
        let whole = fs::read_to_string(&path).unwrap();
        for length in 0..whole.len() - 1 {
            fs::write(&path, &whole[..length]).unwrap();
            assert!(read(&path).is_err(), "{length}");
        }
        fs::write(&path, format!("{HEAD}\n../x\n{END}\n")).unwrap();
        assert!(read(&path).is_err());
    }
}
