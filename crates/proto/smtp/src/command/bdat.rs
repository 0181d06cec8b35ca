//! BDAT: a piece of the message with its length (RFC 3030 section 2).

use super::CommandError;

/// The arguments of BDAT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bdat {
    /// Octets of the chunk behind the command's CRLF.
    pub size: u64,
    /// Whether the chunk is the last of the message.
    pub last: bool,
}

impl Bdat {
    /// Parses the text behind `BDAT` and a space.
    ///
    /// ```text
    /// bdat-cmd   = "BDAT" SP chunk-size [ SP end-marker ] CR LF
    /// chunk-size = 1*DIGIT
    /// end-marker = "LAST"
    /// ```
    ///
    /// # Errors
    ///
    /// [`CommandError::ChunkSize`], also for a size beyond 64 bits: the beginning of the next
    /// command is then unknown.
    pub fn parse(argument: &str) -> Result<Self, CommandError> {
        let (size, marker) = match argument.split_once(' ') {
            Some((size, marker)) => (size, Some(marker)),
            None => (argument, None),
        };
        let last = match marker {
            None => false,
            Some(marker) if marker.eq_ignore_ascii_case("LAST") => true,
            Some(_) => return Err(CommandError::ChunkSize),
        };
        if !size.bytes().all(|octet| octet.is_ascii_digit()) {
            return Err(CommandError::ChunkSize);
        }
        let size = size.parse().map_err(|_| CommandError::ChunkSize)?;
        Ok(Self { size, last })
    }
}
