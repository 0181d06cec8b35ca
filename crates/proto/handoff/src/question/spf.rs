//! SPF: whether the domain of a sender allows the client (RFC 7208).

use std::net::IpAddr;

use super::wire::{ADDRESS_OCTETS_MAX, Content, WireError, decode_client, encode_client};

/// Maximum octets of a HELO name (RFC 5321 section 4.5.3.1.2).
pub const HELO_OCTETS_MAX: usize = 255;

/// The session that SPF is asked about. The texts are what the client has said, within bounds, otherwise unchecked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sender<'a> {
    client: IpAddr,
    helo: &'a str,
    reverse_path: &'a str,
}

impl<'a> Sender<'a> {
    /// Makes the content of a question: the client's address, its HELO name, and its reverse-path without angle brackets,
    /// empty for the null one.
    ///
    /// # Errors
    /// [`WireError::Address`] for an overlong text.
    pub const fn new(
        client: IpAddr,
        helo: &'a str,
        reverse_path: &'a str,
    ) -> Result<Self, WireError> {
        if helo.len() > HELO_OCTETS_MAX {
            return Err(WireError::Address(helo.len()));
        }
        if reverse_path.len() > ADDRESS_OCTETS_MAX {
            return Err(WireError::Address(reverse_path.len()));
        }
        Ok(Self {
            client,
            helo,
            reverse_path,
        })
    }

    /// Returns the address of the client.
    #[must_use]
    pub const fn client(self) -> IpAddr {
        self.client
    }

    /// Returns the HELO name.
    #[must_use]
    pub const fn helo(self) -> &'a str {
        self.helo
    }

    /// Returns the reverse-path.
    #[must_use]
    pub const fn reverse_path(self) -> &'a str {
        self.reverse_path
    }

    pub(super) fn encode(self, out: &mut Vec<u8>) {
        encode_client(self.client, out);
        out.push(u8::try_from(self.helo.len()).unwrap_or(u8::MAX));
        out.extend_from_slice(self.helo.as_bytes());
        let octets = u16::try_from(self.reverse_path.len()).unwrap_or(u16::MAX);
        out.extend_from_slice(&octets.to_le_bytes());
        out.extend_from_slice(self.reverse_path.as_bytes());
    }

    pub(super) fn decode(content: &mut Content<'a>) -> Result<Self, WireError> {
        let client = decode_client(content)?;
        let [octets] = content.array()?;
        let helo = content.text(octets.into())?;
        let octets = u16::from_le_bytes(content.array()?);
        Self::new(client, helo, content.text(octets.into())?)
    }
}

macro_rules! results {
    ($($(#[$doc:meta])+ $variant:ident = $number:literal, $word:literal;)+) => {
        /// Results of SPF (RFC 7208 section 2.6).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Spf {
            $($(#[$doc])+ $variant,)+
        }

        impl Spf {
            /// Every result.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Returns the word of the RFC.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// Returns the octet of a result, or of none: 0, or the number of the result and 1.
            #[must_use]
            pub const fn octet(result: Option<Self>) -> u8 {
                match result {
                    None => 0,
                    Some(result) => result.number().saturating_add(1),
                }
            }

            /// Returns the result of an octet, or none; `None` for an octet that stands for neither.
            #[must_use]
            pub const fn of_octet(octet: u8) -> Option<Option<Self>> {
                match octet {
                    0 => Some(None),
                    $(octet if octet == $number + 1 => Some(Some(Self::$variant)),)+
                    _ => None,
                }
            }

            pub(super) const fn number(self) -> u8 {
                match self {
                    $(Self::$variant => $number,)+
                }
            }

            pub(super) const fn of_number(number: u8) -> Option<Self> {
                match number {
                    $($number => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }
    };
}

results! {
    /// The domain has no policy, or there is no domain.
    None = 0, "none";
    /// The policy makes no statement about the client.
    Neutral = 1, "neutral";
    /// The policy allows the client.
    Pass = 2, "pass";
    /// The policy does not allow the client.
    Fail = 3, "fail";
    /// The policy probably does not allow the client.
    SoftFail = 4, "softfail";
    /// The DNS did not answer, or the broker has too much to do.
    TempError = 5, "temperror";
    /// The policy cannot be understood.
    PermError = 6, "permerror";
}
