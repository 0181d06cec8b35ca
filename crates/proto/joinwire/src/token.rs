//! The token that an operator carries from the inviting machine to the joining one.
//!
//! `vere1-` and the base64url (RFC 4648 section 5) of:
//!
//! | octets | content |
//! |---|---|
//! | 1 | length of the address: 4 or 16 |
//! | 4 or 16 | IP address of the inviting machine |
//! | 2 | port, most significant octet first |
//! | 32 | SHA-256 of the CA certificate |
//! | 32 | the secret |
//! | 4 | CRC-32C of everything before, against typing errors |

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use vere_checksum::crc32c;
use vere_units::Secret;

/// The version, in front of every token.
const MARK: &str = "vere1-";
/// Characters of the longest token.
const TOKEN_MAX: usize = 128;
/// Octets of pin and secret.
const HASH: usize = 32;
/// Octets of the checksum.
const SUM: usize = 4;

/// An invitation in one word. The text form has the secret, and is for the operator alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Where the inviting machine listens.
    pub address: SocketAddr,
    /// The SHA-256 of the CA certificate in DER.
    pub pin: [u8; HASH],
    /// Proves that the joining machine was invited.
    pub secret: Secret<[u8; HASH]>,
}

/// Why a text is no token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Another text, or a token of another version.
    #[error("expected a token that begins with {MARK:?}, as `vere node invite` prints it")]
    Unmarked,
    /// Characters are missing or changed.
    #[error("the token is damaged: copy the whole line that `vere node invite` printed")]
    Damaged,
}

impl Token {
    /// The text for the operator.
    #[must_use]
    pub fn reveal(&self) -> String {
        let mut octets = Vec::with_capacity(TOKEN_MAX);
        match self.address.ip() {
            IpAddr::V4(ip) => {
                octets.push(4);
                octets.extend(ip.octets());
            }
            IpAddr::V6(ip) => {
                octets.push(16);
                octets.extend(ip.octets());
            }
        }
        octets.extend(self.address.port().to_be_bytes());
        octets.extend(self.pin);
        octets.extend(self.secret.expose());
        octets.extend(crc32c(&octets).to_be_bytes());
        format!("{MARK}{}", URL_SAFE_NO_PAD.encode(octets))
    }
}

impl FromStr for Token {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, TokenError> {
        let text = text.trim();
        let body = text.strip_prefix(MARK).ok_or(TokenError::Unmarked)?;
        if text.len() > TOKEN_MAX {
            return Err(TokenError::Damaged);
        }
        let octets = URL_SAFE_NO_PAD.decode(body).ok();
        octets
            .and_then(|octets| decode(&octets))
            .ok_or(TokenError::Damaged)
    }
}

fn decode(octets: &[u8]) -> Option<Token> {
    let (content, sum) = octets.split_at_checked(octets.len().checked_sub(SUM)?)?;
    if crc32c(content).to_be_bytes() != *sum {
        return None;
    }
    let (len, rest) = content.split_first()?;
    let (ip, rest) = rest.split_at_checked(usize::from(*len))?;
    let ip = match len {
        4 => IpAddr::from(<[u8; 4]>::try_from(ip).ok()?),
        16 => IpAddr::from(<[u8; 16]>::try_from(ip).ok()?),
        _ => return None,
    };
    let (port, rest) = rest.split_first_chunk::<2>()?;
    let (pin, secret) = rest.split_first_chunk::<HASH>()?;
    let secret = <[u8; HASH]>::try_from(secret).ok()?;
    Some(Token {
        address: SocketAddr::new(ip, u16::from_be_bytes(*port)),
        pin: *pin,
        secret: Secret::new(secret),
    })
}

impl fmt::Display for Token {
    /// The token without its secret, for logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a token of {}", self.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_as_it_was_written_and_damage_is_noticed() {
        for address in ["192.0.2.1:2610", "[2001:db8::1]:1"] {
            let token = Token {
                address: address.parse().unwrap(),
                pin: [7; 32],
                secret: Secret::new([9; 32]),
            };
            let text = token.reveal();
            assert_eq!(format!(" {text}\n").parse(), Ok(token.clone()));
            assert!(!format!("{token} {token:?}").contains(&text));
            for place in 0..text.len() {
                let mut damaged = text.clone().into_bytes();
                damaged[place] = if damaged[place] == b'A' { b'B' } else { b'A' };
                let damaged = String::from_utf8(damaged).unwrap();
                damaged.parse::<Token>().unwrap_err();
                text[..place].parse::<Token>().unwrap_err();
            }
        }
        assert_eq!("vere2-AAAA".parse::<Token>(), Err(TokenError::Unmarked));
        let long = format!("vere1-{}", "A".repeat(1 << 20));
        assert_eq!(long.parse::<Token>(), Err(TokenError::Damaged));
    }
}
