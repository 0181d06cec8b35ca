//! A certificate for clients of port 25.

use super::content::{Content, text};
use super::error::WireError;

/// SHA-256 of a certificate in DER.
pub type Fingerprint = [u8; 32];

/// The most certificates of a chain.
pub const CHAIN_MAX: usize = 16;
/// The most schemes of a key.
pub const SCHEMES_MAX: usize = 32;

/// A certificate chain, and the schemes of the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// The server name, or `*.` and a domain, for which clients see the chain; at most 255 octets of ASCII. Empty: the default.
    pub name: String,
    /// The fingerprint of the server's own certificate, named in requests for signatures.
    pub fingerprint: Fingerprint,
    /// The schemes of signatures, best first (RFC 8446 section 4.2.3).
    pub schemes: Vec<u16>,
    /// The chain in DER, the server's own certificate first.
    pub chain: Vec<Vec<u8>>,
}

impl Certificate {
    /// Appends the octets. Schemes beyond [`SCHEMES_MAX`] and certificates beyond [`CHAIN_MAX`] are left out.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        text(out, &self.name);
        out.extend_from_slice(&self.fingerprint);
        let schemes = self.schemes.iter().take(SCHEMES_MAX);
        count(out, schemes.len());
        for scheme in schemes {
            out.extend_from_slice(&scheme.to_le_bytes());
        }
        let chain = self.chain.iter().take(CHAIN_MAX);
        count(out, chain.len());
        for certificate in chain {
            let length = u32::try_from(certificate.len()).unwrap_or(u32::MAX);
            out.extend_from_slice(&length.to_le_bytes());
            out.extend_from_slice(certificate);
        }
    }

    pub(super) fn decode(content: &mut Content<'_>) -> Result<Self, WireError> {
        let name = content.text()?.to_owned();
        let fingerprint = content.array()?;
        let schemes = (0..counted(content, SCHEMES_MAX)?)
            .map(|_| content.array().map(u16::from_le_bytes))
            .collect::<Result<_, _>>()?;
        let chain = (0..counted(content, CHAIN_MAX)?)
            .map(|_| {
                let length = u32::from_le_bytes(content.array()?);
                let length = usize::try_from(length).map_err(|_| WireError::Content)?;
                content.take(length).map(<[u8]>::to_vec)
            })
            .collect::<Result<_, _>>()?;
        Ok(Self {
            name,
            fingerprint,
            schemes,
            chain,
        })
    }
}

fn count(out: &mut Vec<u8>, count: usize) {
    out.push(u8::try_from(count).unwrap_or(u8::MAX));
}

fn counted(content: &mut Content<'_>, most: usize) -> Result<usize, WireError> {
    let count = usize::from(content.octet()?);
    match count <= most {
        true => Ok(count),
        false => Err(WireError::Content),
    }
}
