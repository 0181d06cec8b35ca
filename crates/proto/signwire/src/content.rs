//! Values within a frame.

use super::error::WireError;

pub(super) fn text(out: &mut Vec<u8>, text: &str) {
    let octets = text.as_bytes();
    let kept = octets.get(..usize::from(u8::MAX)).unwrap_or(octets);
    out.push(u8::try_from(kept.len()).unwrap_or(u8::MAX));
    out.extend_from_slice(kept);
}

/// The unread content of a frame.
pub(super) struct Content<'a>(pub(super) &'a [u8]);

impl<'a> Content<'a> {
    pub(super) fn take(&mut self, octets: usize) -> Result<&'a [u8], WireError> {
        let (taken, rest) = self.0.split_at_checked(octets).ok_or(WireError::Content)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        self.take(N)?.try_into().map_err(|_| WireError::Content)
    }

    pub(super) fn octet(&mut self) -> Result<u8, WireError> {
        let [octet] = self.array()?;
        Ok(octet)
    }

    pub(super) fn text(&mut self) -> Result<&'a str, WireError> {
        let length = self.octet()?;
        let octets = self.take(usize::from(length))?;
        let text = std::str::from_utf8(octets).map_err(|_| WireError::Content)?;
        if text.is_ascii() {
            Ok(text)
        } else {
            Err(WireError::Content)
        }
    }

    pub(super) fn end(&self) -> Result<(), WireError> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(WireError::Content)
        }
    }
}
