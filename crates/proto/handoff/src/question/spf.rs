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

            const fn number(self) -> u8 {
                match self {
                    $(Self::$variant => $number,)+
                }
            }

            const fn of_number(number: u8) -> Option<Self> {
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

/// The results of SPF for one transaction: two identities, each with a own (RFC 7208 sections 2.3 and 2.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpfResults {
    /// The result for the reverse-path; for the null one, that of the HELO name (section 2.4).
    pub sender: Spf,
    /// The result for the HELO name beside a reverse-path; `None` where it was not asked.
    pub helo: Option<Spf>,
}

impl From<Spf> for SpfResults {
    fn from(sender: Spf) -> Self {
        Self { sender, helo: None }
    }
}

/// Bits of the sender's part of an octet; the part for HELO is above.
const SENDER_BITS: u32 = 3;
const SENDER_MASK: u8 = (1 << SENDER_BITS) - 1;

impl SpfResults {
    /// Returns the result that decides about the transaction: "fail" of the HELO name, else the result of the sender. Nothing else of
    /// the HELO name decides: a "pass" says nothing about the sender, and other results say nothing certain.
    #[must_use]
    pub const fn decisive(self) -> Spf {
        match self.helo {
            Some(Spf::Fail) => Spf::Fail,
            _ => self.sender,
        }
    }

    /// Returns the octet of results, or of none: 0 where SPF was not asked. Bits 0 to 2 have the number of the sender's result and 1,
    /// bits 3 to 5 the number of the HELO name's and 1, or 0.
    #[must_use]
    pub const fn octet(results: Option<Self>) -> u8 {
        match results {
            None => 0,
            Some(results) => part(Some(results.sender)) | part(results.helo) << SENDER_BITS,
        }
    }

    /// Returns the results of an octet, or none; `None` for an octet that stands for neither.
    #[must_use]
    pub const fn of_octet(octet: u8) -> Option<Option<Self>> {
        let (sender, helo) = (octet & SENDER_MASK, octet >> SENDER_BITS);
        match (of_part(sender), of_part(helo)) {
            (Some(None), Some(None)) => Some(None),
            (Some(Some(sender)), Some(helo)) => Some(Some(Self { sender, helo })),
            _ => None,
        }
    }
}

const fn part(result: Option<Spf>) -> u8 {
    match result {
        None => 0,
        Some(result) => result.number().saturating_add(1),
    }
}

const fn of_part(part: u8) -> Option<Option<Spf>> {
    match part.checked_sub(1) {
        None => Some(None),
        Some(number) => match Spf::of_number(number) {
            None => None,
            known => Some(known),
        },
    }
}
