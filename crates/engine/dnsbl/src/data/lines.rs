//! Lines of bounded length, without a copy where the reader's buffer has the whole line.

use std::io::{self, BufRead};

use super::error::{DataError, Reason};

/// Longest line in octets, without its end.
pub(super) const LINE_MAX: usize = 8192;

/// Hands each line to a function, without its end; ends at the first error that the function returns.
///
/// A last line without an end counts as a line. A carriage return before the end belongs to the end.
pub(super) fn each_line(
    file: &str,
    mut input: impl BufRead,
    mut each: impl FnMut(u64, &[u8]) -> Result<(), DataError>,
) -> Result<(), DataError> {
    let mut number = 0;
    let mut begun = Vec::new();
    let refused = |line, reason| DataError {
        file: file.into(),
        line,
        reason,
    };
    loop {
        let buffer = match input.fill_buf() {
            Ok(buffer) => buffer,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(refused(number, Reason::Read(error))),
        };
        if buffer.is_empty() {
            break;
        }
        let end = memchr::memchr(b'\n', buffer);
        let piece = &buffer[..end.unwrap_or(buffer.len())];
        if begun.len() + piece.len() > LINE_MAX {
            let found = "a longer line";
            let reason = Reason::bound(format!("at most {LINE_MAX} octets in a line"), found);
            return Err(refused(number + 1, reason));
        }
        let length = piece.len() + usize::from(end.is_some());
        if end.is_none() {
            begun.extend_from_slice(piece);
        } else {
            number += 1;
            if begun.is_empty() {
                each(number, without_return(piece))?;
            } else {
                begun.extend_from_slice(piece);
                each(number, without_return(&begun))?;
                begun.clear();
            }
        }
        input.consume(length);
    }
    if begun.is_empty() {
        return Ok(());
    }
    each(number + 1, without_return(&begun))
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}
