//! A stream of files in the format `ustar` (IEEE Std 1003.1, `pax`).

use std::io::{self, Write};

use vere_units::Timestamp;

const BLOCK: usize = 512;
/// The greatest size of a file: eleven octal digits.
pub(super) const SIZE_MAX: u64 = (1 << 33) - 1;

/// Writes the head of a file; its octets follow, and then [`pad`].
pub(super) fn head(name: &str, size: u64, at: Timestamp, out: &mut dyn Write) -> io::Result<()> {
    let mut block = [0; BLOCK];
    let seconds = (at.as_millis() / 1_000).min(SIZE_MAX);
    let fields: [(usize, &[u8]); 8] = [
        (0, name.as_bytes().get(..100).unwrap_or(name.as_bytes())),
        (100, b"0000640\0"),
        (108, b"0000000\0"),
        (116, b"0000000\0"),
        (124, &octal(size)),
        (136, &octal(seconds)),
        (148, b"        0"),
        (257, b"ustar\x0000"),
    ];
    for (at, octets) in fields {
        for (place, octet) in block.iter_mut().skip(at).zip(octets) {
            *place = *octet;
        }
    }
    let sum: u32 = block.iter().map(|octet| u32::from(*octet)).sum();
    for (place, octet) in block
        .iter_mut()
        .skip(148)
        .zip(format!("{sum:06o}\0 ").bytes())
    {
        *place = octet;
    }
    out.write_all(&block)
}

/// Fills the last block of a file.
pub(super) fn pad(size: u64, out: &mut dyn Write) -> io::Result<()> {
    let over = (size % BLOCK as u64) as usize;
    let missing = if over == 0 { 0 } else { BLOCK - over };
    out.write_all([0; BLOCK].get(..missing).unwrap_or_default())
}

/// Ends the stream.
pub(super) fn end(out: &mut dyn Write) -> io::Result<()> {
    out.write_all(&[0; 2 * BLOCK])
}

/// Eleven octal digits and a space.
fn octal(number: u64) -> Vec<u8> {
    format!("{number:011o} ").into_bytes()
}
