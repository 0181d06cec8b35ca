//! Fingerprints of commits: short enough to be typed, so that a new machine can tell whether accounts were set back.

use std::fmt;
use std::str::FromStr;

use crate::format::MailId;

/// Octets of the commit's id. An account cannot forge commits; it can only show older ones, and these have older generations.
const OCTETS: usize = 4;

/// The generation of a commit, and the beginning of the commit's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint {
    generation: u64,
    id: [u8; OCTETS],
}

/// A text that is no fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected a fingerprint as `vere fs status` prints it, such as 4711-9c1185a5; found another text"
)]
pub struct NoFingerprint;

impl Fingerprint {
    /// The fingerprint of a commit.
    #[must_use]
    pub fn of((mail, generation): (MailId, u64)) -> Self {
        let id = mail.0.first_chunk().copied().unwrap_or_default();
        Self { generation, id }
    }

    /// The generation.
    pub const fn generation(self) -> u64 {
        self.generation
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}-", self.generation)?;
        self.id
            .iter()
            .try_for_each(|octet| write!(out, "{octet:02x}"))
    }
}

impl FromStr for Fingerprint {
    type Err = NoFingerprint;

    fn from_str(text: &str) -> Result<Self, NoFingerprint> {
        let (generation, id) = text.split_once('-').ok_or(NoFingerprint)?;
        let is_number = |text: &str| text.bytes().all(|one| one.is_ascii_hexdigit());
        if id.len() != OCTETS.saturating_mul(2) || !is_number(id) {
            return Err(NoFingerprint);
        }
        let id = u32::from_str_radix(id, 16).map_err(|_| NoFingerprint)?;
        Ok(Self {
            generation: generation.parse().map_err(|_| NoFingerprint)?,
            id: id.to_be_bytes(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_text_and_back() {
        let mut id = [7; 16];
        id[..4].copy_from_slice(&[0x9c, 0x11, 0x85, 0xa5]);
        let own = Fingerprint::of((MailId(id), 4_711));
        assert_eq!(own.to_string(), "4711-9c1185a5");
        assert_eq!("4711-9c1185a5".parse(), Ok(own));
        assert_eq!("4711-9C1185A5".parse(), Ok(own));
        for wrong in [
            "",
            "4711",
            "4711-",
            "4711-9c1185a",
            "4711-9c1185a5a",
            "x-9c1185a5",
            "1-+c1185a5",
        ] {
            assert_eq!(wrong.parse::<Fingerprint>(), Err(NoFingerprint), "{wrong}");
        }
    }
}
