//! The EXTERNAL around an APDU in normal mode.

use bytes::Bytes;
use vere_ber::BerError;
use vere_osi::association::Mode;
use vere_osi::rtse::{Unwrapper, wrapper};

/// The octets that travel for an APDU, and their number. Without a context the APDU travels as it is (X.410 mode).
pub(crate) fn wrapped<F: Extend<Bytes> + Default>(
    context: Option<i64>,
    apdu: &[Bytes],
) -> (F, u64) {
    let length = |pieces: &[Bytes]| {
        let lengths = pieces
            .iter()
            .map(|piece| u64::try_from(piece.len()).unwrap_or(u64::MAX));
        lengths.fold(0, u64::saturating_add)
    };
    let inner = length(apdu);
    let header: Vec<Bytes> = context
        .map(|context| wrapper(context, inner))
        .into_iter()
        .collect();
    let whole = inner.saturating_add(length(&header));
    let mut pieces = F::default();
    pieces.extend(header);
    pieces.extend(apdu.iter().filter(|piece| !piece.is_empty()).cloned());
    (pieces, whole)
}

/// The APDU in the octets of a transfer, as slices of them: in normal mode an EXTERNAL surrounds the APDU.
///
/// # Errors
///
/// [`BerError`] for octets that are not one EXTERNAL.
pub fn unwrapped(mode: Mode, octets: Vec<Bytes>) -> Result<Vec<Bytes>, BerError> {
    if let Mode::X410(_) = mode {
        return Ok(octets);
    }
    let mut unwrapper = Unwrapper::new();
    let mut apdu = Vec::with_capacity(octets.len());
    for piece in octets {
        unwrapper.push(piece);
        while let Some(octets) = unwrapper.read()? {
            apdu.push(octets);
        }
    }
    unwrapper.end()?;
    Ok(apdu)
}
