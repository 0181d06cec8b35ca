//! Archives of one file: gzip (RFC 1952) and zip, with bounds on what comes out.
//!
//! Own code instead of the crate `zip`, whose reader takes a whole central directory into memory before the first file, supports
//! a dozen methods and ciphers, and adds five packages. A report is one file, stored or deflated; the inflater is flate2's.

use std::io::Read;

use flate2::read::{DeflateDecoder, GzDecoder};

use crate::bounds::{OCTETS_MAX, PACKED_OCTETS_MAX, ZIP_ENTRIES_MAX};
use crate::error::ReportError;

const GZIP: &str = "gzip";
const ZIP: &str = "zip";

/// The beginning of a gzip member.
const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];
/// Signatures of the three headers of a zip archive.
const ZIP_LOCAL: &[u8] = b"PK\x03\x04";
const ZIP_CENTRAL: &[u8] = b"PK\x01\x02";
const ZIP_END: &[u8] = b"PK\x05\x06";
/// Octets of the headers without names and comments.
const ZIP_LOCAL_OCTETS: usize = 30;
const ZIP_CENTRAL_OCTETS: usize = 46;
const ZIP_END_OCTETS: usize = 22;
/// The longest comment behind the end header.
const ZIP_COMMENT_MAX: usize = u16::MAX as usize;
/// The flag of an encrypted entry.
const ZIP_ENCRYPTED: u16 = 1;

/// Whether octets begin as an archive.
pub(crate) fn is_archive(octets: &[u8]) -> bool {
    octets.starts_with(GZIP_MAGIC) || octets.starts_with(ZIP_LOCAL)
}

/// The file in an archive; `None` where the octets are no archive.
///
/// # Errors
/// [`ReportError::Many`] beyond a bound, [`ReportError::Archive`] for a damaged or unsupported archive.
pub(crate) fn unpack(octets: &[u8]) -> Result<Option<Vec<u8>>, ReportError> {
    if !is_archive(octets) {
        return Ok(None);
    }
    if octets.len() > PACKED_OCTETS_MAX {
        return Err(ReportError::many("octets of an archive", PACKED_OCTETS_MAX));
    }
    if octets.starts_with(GZIP_MAGIC) {
        return bounded(GzDecoder::new(octets), GZIP).map(Some);
    }
    unzip(octets).map(Some)
}

/// Reads to the end, at most [`OCTETS_MAX`] octets. No size that the archive states is believed.
fn bounded(reader: impl Read, format: &'static str) -> Result<Vec<u8>, ReportError> {
    let mut out = Vec::new();
    let mut reader = reader.take((OCTETS_MAX as u64).saturating_add(1));
    reader
        .read_to_end(&mut out)
        .map_err(|error| ReportError::archive(format, error))?;
    if out.len() > OCTETS_MAX {
        return Err(ReportError::many("octets after decompression", OCTETS_MAX));
    }
    Ok(out)
}

/// An entry of the central directory.
struct Entry {
    flags: u16,
    method: u16,
    crc: u32,
    packed: u32,
    local: u32,
    is_folder: bool,
}

fn unzip(octets: &[u8]) -> Result<Vec<u8>, ReportError> {
    let cut = || ReportError::archive(ZIP, "an archive that is cut");
    let end = end_header(octets).ok_or_else(cut)?;
    let count = usize::from(u16_at(end, 10).ok_or_else(cut)?);
    let directory = usize_of(u32_at(end, 16).ok_or_else(cut)?);
    let mut rest = octets.get(directory..).ok_or_else(cut)?;
    for _ in 0..count.min(ZIP_ENTRIES_MAX) {
        let entry = entry(rest).ok_or_else(cut)?;
        if !entry.0.is_folder {
            return extract(octets, &entry.0);
        }
        rest = rest.get(entry.1..).ok_or_else(cut)?;
    }
    Err(ReportError::archive(ZIP, "no file in it"))
}

/// The end header, looked for from the end of the archive.
fn end_header(octets: &[u8]) -> Option<&[u8]> {
    let last = octets.len().checked_sub(ZIP_END_OCTETS)?;
    let first = last.saturating_sub(ZIP_COMMENT_MAX);
    let tail = octets.get(first..)?;
    let at = memchr::memmem::rfind(tail, ZIP_END)?;
    tail.get(at..).filter(|end| end.len() >= ZIP_END_OCTETS)
}

/// The first entry of a central directory, and its length.
fn entry(directory: &[u8]) -> Option<(Entry, usize)> {
    if !directory.starts_with(ZIP_CENTRAL) {
        return None;
    }
    let name = usize::from(u16_at(directory, 28)?);
    let extra = usize::from(u16_at(directory, 30)?);
    let comment = usize::from(u16_at(directory, 32)?);
    let behind_name = ZIP_CENTRAL_OCTETS.checked_add(name)?;
    let text = directory.get(ZIP_CENTRAL_OCTETS..behind_name)?;
    let entry = Entry {
        flags: u16_at(directory, 8)?,
        method: u16_at(directory, 10)?,
        crc: u32_at(directory, 16)?,
        packed: u32_at(directory, 20)?,
        local: u32_at(directory, 42)?,
        is_folder: text.ends_with(b"/"),
    };
    let length = behind_name.checked_add(extra)?.checked_add(comment)?;
    Some((entry, length))
}

fn extract(octets: &[u8], entry: &Entry) -> Result<Vec<u8>, ReportError> {
    if entry.flags & ZIP_ENCRYPTED != 0 {
        return Err(ReportError::archive(ZIP, "an encrypted file"));
    }
    let packed = content(octets, entry)
        .ok_or_else(|| ReportError::archive(ZIP, "a file that is cut, or in Zip64"))?;
    let out = match entry.method {
        0 => bounded(packed, ZIP)?,
        8 => bounded(DeflateDecoder::new(packed), ZIP)?,
        method => {
            return Err(ReportError::archive(
                ZIP,
                format!("compression method {method}, not 0 or 8"),
            ));
        }
    };
    if vere_checksum::crc32(&out) != entry.crc {
        return Err(ReportError::archive(ZIP, "a file with a wrong checksum"));
    }
    Ok(out)
}

/// The octets of an entry behind its local header.
fn content<'a>(octets: &'a [u8], entry: &Entry) -> Option<&'a [u8]> {
    let local = octets.get(usize_of(entry.local)..)?;
    if !local.starts_with(ZIP_LOCAL) {
        return None;
    }
    let name = usize::from(u16_at(local, 26)?);
    let extra = usize::from(u16_at(local, 28)?);
    let begin = ZIP_LOCAL_OCTETS.checked_add(name)?.checked_add(extra)?;
    let end = begin.checked_add(usize_of(entry.packed))?;
    local.get(begin..end)
}

fn u16_at(octets: &[u8], at: usize) -> Option<u16> {
    let octets = octets.get(at..)?.first_chunk::<2>()?;
    Some(u16::from_le_bytes(*octets))
}

fn u32_at(octets: &[u8], at: usize) -> Option<u32> {
    let octets = octets.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_le_bytes(*octets))
}

fn usize_of(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Compresses a file with gzip. The header has neither time nor name, so that equal files give equal octets.
pub(crate) fn gzip(octets: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    let mut encoder = flate2::bufread::GzEncoder::new(octets, flate2::Compression::default());
    // Memory as source and target does not fail.
    let _ = encoder.read_to_end(&mut packed);
    packed
}
