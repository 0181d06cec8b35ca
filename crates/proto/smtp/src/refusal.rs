//! Every refusal by policy or condition, with its reply, in one place.
//!
//! Engines give the reason; the digits of the reply are decided here and nowhere else.

use std::fmt;

use crate::reply::{EnhancedStatusCode, Reply, ReplyClass};

/// Why a client, sender, recipient or message is refused.
///
/// The first line of each variant is its meaning, the second the reply.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// Peer: the mailbox does not exist. `550 5.1.1`
    MailboxUnknown,
    /// Policy: the mailbox exists and takes no mail.
    /// `550 5.2.1`
    MailboxDisabled,
    /// Local: the mailbox is full, and may be emptied.
    /// `452 4.2.2`
    MailboxFull,
    /// Policy: the mailbox is full, and a retry is not wanted. `552 5.2.2`
    MailboxFullForGood,
    /// Peer: the message is larger than the mailbox ever takes.
    /// `552 5.2.3`
    MailboxSizeLimit,
    /// Policy: neither the client nor the recipient's domain is ours.
    /// `550 5.7.1`
    RelayDenied,
    /// Peer: the recipient's domain does not exist.
    /// `550 5.1.2`
    DomainUnknown,
    /// Peer: the recipient's domain accepts no mail, by a null MX (RFC 7505). `556 5.1.10`
    NullMx,
    /// Policy: the sender is not allowed to send to this server. `550 5.7.1`
    SenderRefused,
    /// Peer: the sender's domain does not exist.
    /// `550 5.1.8`
    SenderDomainUnknown,
    /// Policy: the account is not allowed to send under this address. `553 5.7.1`
    SenderNotOwned,
    /// Policy: the account is not allowed to name this author in From. `550 5.7.1`
    AuthorNotOwned,
    /// Policy: the client has to authenticate first.
    /// `530 5.7.0`
    AuthenticationRequired,
    /// Policy: the connection has to be encrypted first.
    /// `530 5.7.0`
    TlsRequired,
    /// Policy: the client is not allowed to send any mail. `554 5.7.1`
    ClientRefused,
    /// Policy: the content of the message is refused. `554 5.7.1`
    ContentRefused,
    /// Peer: the message exceeds the size limit of this server. `552 5.3.4`
    MessageTooBig,
    /// Peer: the message has passed too many servers, or has passed this server before. `554 5.4.6`
    RoutingLoop,
    /// Peer: an address needs SMTPUTF8, and the destination lacks SMTPUTF8. `553 5.6.7`
    Utf8NotSupported,
    /// Peer: the message cannot be converted to a form that the destination accepts. `554 5.6.3`
    ConversionNotSupported,
    /// Policy: too much from this client or account in too short a time.
    /// `450 4.7.1`
    RateLimited,
    /// Policy: the client should come back later (greylisting).
    /// `451 4.7.1`
    TryLater,
    /// Local: a name could not be looked up now.
    /// `451 4.4.3`
    LookupFailed,
    /// Local: an operator takes no mail for the destination for now.
    /// `450 4.3.2`
    DestinationRefused,
    /// Local: as much mail waits for the destination as may.
    /// `452 4.3.1`
    DestinationFull,
    /// Local: no room for the message now.
    /// `452 4.3.1`
    StorageFull,
    /// Local: too much to do now.
    /// `451 4.3.2`
    Busy,
    /// Local: something is broken here, and an operator has been told.
    /// `451 4.3.0`
    LocalError,
    /// Local: the service is going down or not up yet; the connection is closed.
    /// `421 4.3.2`
    ServiceUnavailable,
    /// Policy: the account that the client logged in to is gone, or has another password; the connection is closed.
    /// `421 4.7.0`
    LoginOver,
    /// Policy: by SPF, the sender's domain or the HELO name does not send from the client. `550 5.7.23` (RFC 7372)
    SpfFailed,
    /// Local: SPF has no result because the DNS does not answer. `451 4.7.24` (RFC 7372)
    SpfUnavailable,
    /// Peer: the SPF record of the sender's domain is wrong. `550 5.7.24` (RFC 7372)
    SpfMalformed,
    /// Local: the recipient is of another system, which does not say now whether the recipient exists. `450 4.4.1`
    RecipientUnverified,
    /// Policy: a rule of the site, with the site's own words.
    /// `550 5.7.1` or `450 4.7.1`
    Site {
        /// Whether trying again is of no use.
        permanent: bool,
        /// The text for the client, without codes.
        text: String,
    },
}

impl Refusal {
    /// The reply's code, the status code and the text.
    fn row(&self) -> (u16, EnhancedStatusCode, &str) {
        let row = |code, subject, detail, text| {
            let class = if code < 500 { 4 } else { 5 };
            (code, EnhancedStatusCode::new(class, subject, detail), text)
        };
        match self {
            Self::MailboxUnknown => row(550, 1, 1, "no such mailbox here"),
            Self::MailboxDisabled => row(550, 2, 1, "mailbox takes no mail"),
            Self::MailboxFull => row(452, 2, 2, "mailbox is full"),
            Self::MailboxFullForGood => row(552, 2, 2, "mailbox is full"),
            Self::MailboxSizeLimit => row(552, 2, 3, "message too big for this mailbox"),
            Self::RelayDenied => row(550, 7, 1, "relaying denied"),
            Self::DomainUnknown => row(550, 1, 2, "recipient's domain does not exist"),
            Self::NullMx => row(556, 1, 10, "recipient's domain takes no mail"),
            Self::SenderRefused => row(550, 7, 1, "sender refused"),
            Self::SenderDomainUnknown => row(550, 1, 8, "sender's domain does not exist"),
            Self::SenderNotOwned => row(553, 7, 1, "sender address does not belong to the account"),
            Self::AuthorNotOwned => {
                row(550, 7, 1, "address in From does not belong to the account")
            }
            Self::AuthenticationRequired => row(530, 7, 0, "authentication required"),
            Self::TlsRequired => row(530, 7, 0, "must issue a STARTTLS command first"),
            Self::ClientRefused => row(554, 7, 1, "client refused"),
            Self::ContentRefused => row(554, 7, 1, "message refused by its content"),
            Self::MessageTooBig => row(552, 3, 4, "message too big"),
            Self::RoutingLoop => row(554, 4, 6, "too many hops"),
            Self::Utf8NotSupported => row(553, 6, 7, "destination does not support SMTPUTF8"),
            Self::ConversionNotSupported => row(554, 6, 3, "destination cannot take such content"),
            Self::RateLimited => row(450, 7, 1, "too much mail, slow down"),
            Self::TryLater => row(451, 7, 1, "please try again later"),
            Self::LookupFailed => row(451, 4, 3, "temporary lookup failure"),
            Self::DestinationRefused => row(450, 3, 2, "no mail for this destination now"),
            Self::DestinationFull => row(452, 3, 1, "too much mail waits for this destination"),
            Self::StorageFull => row(452, 3, 1, "insufficient system storage"),
            Self::Busy => row(451, 3, 2, "system busy, try again later"),
            Self::LocalError => row(451, 3, 0, "local error in processing"),
            Self::ServiceUnavailable => row(421, 3, 2, "service not available, closing connection"),
            Self::LoginOver => row(
                421,
                7,
                0,
                "account or password changed, log in again, closing connection",
            ),
            Self::SpfFailed => row(
                550,
                7,
                23,
                "by SPF, the sender's domain or the HELO name does not send from this client",
            ),
            Self::SpfUnavailable => row(
                451,
                7,
                24,
                "SPF of the sender's domain cannot be looked up now",
            ),
            Self::SpfMalformed => row(550, 7, 24, "the SPF record of the sender's domain is wrong"),
            Self::RecipientUnverified => row(450, 4, 1, "recipient cannot be verified now"),
            Self::Site {
                permanent: true,
                text,
            } => row(550, 7, 1, text),
            Self::Site {
                permanent: false,
                text,
            } => row(450, 7, 1, text),
        }
    }

    /// The status code for reports (RFC 3463).
    #[must_use]
    pub fn status(&self) -> EnhancedStatusCode {
        self.row().1
    }

    /// Whether trying again is of no use.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        self.reply().class() == ReplyClass::Permanent
    }

    /// The reply for the client.
    #[must_use]
    pub fn reply(&self) -> Reply {
        let (code, status, text) = self.row();
        Reply::new(code, status, text)
    }
}

/// Makes both directions between refusals and numbers out of one table: a variant without a row does not compile.
macro_rules! numbers {
    ($($number:literal => $variant:ident,)*) => {
        impl Refusal {
            /// Returns the number by which processes of this program tell each other the refusal; `None` for
            /// [`Site`](Self::Site), whose text has no number.
            #[must_use]
            pub const fn number(&self) -> Option<u8> {
                match self {
                    $(Self::$variant => Some($number),)*
                    Self::Site { .. } => None,
                }
            }

            /// Returns the refusal of a number; `None` for a number that this version of the program does not know.
            #[must_use]
            pub const fn of_number(number: u8) -> Option<Self> {
                match number {
                    $($number => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

// Processes of two versions speak to each other during an upgrade: a number is never given to another refusal.
numbers! {
    1 => MailboxUnknown,
    2 => MailboxDisabled,
    3 => MailboxFull,
    4 => MailboxFullForGood,
    5 => MailboxSizeLimit,
    6 => RelayDenied,
    7 => DomainUnknown,
    8 => NullMx,
    9 => SenderRefused,
    10 => SenderDomainUnknown,
    11 => SenderNotOwned,
    12 => AuthenticationRequired,
    13 => TlsRequired,
    14 => ClientRefused,
    15 => ContentRefused,
    16 => MessageTooBig,
    17 => RoutingLoop,
    18 => Utf8NotSupported,
    19 => ConversionNotSupported,
    20 => RateLimited,
    21 => TryLater,
    22 => LookupFailed,
    23 => DestinationRefused,
    24 => DestinationFull,
    25 => StorageFull,
    26 => Busy,
    27 => LocalError,
    28 => ServiceUnavailable,
    29 => LoginOver,
    30 => SpfFailed,
    31 => SpfUnavailable,
    32 => SpfMalformed,
    33 => RecipientUnverified,
    34 => AuthorNotOwned,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row().2)
    }
}

impl std::error::Error for Refusal {}

#[cfg(test)]
mod tests {
    use super::Refusal;

    /// The table makes a variant without a number impossible, and the compiler warns of a number that stands twice.
    #[test]
    fn every_number_is_of_one_refusal_and_comes_back() {
        let refusals: Vec<Refusal> = (0..=u8::MAX).filter_map(Refusal::of_number).collect();
        assert_eq!(refusals.len(), 34);
        for (number, refusal) in (1..).zip(&refusals) {
            assert_eq!(refusal.number(), Some(number), "{refusal:?}");
            let same = refusals.iter().filter(|other| *other == refusal);
            assert_eq!(same.count(), 1, "{refusal:?}");
        }
        assert_eq!(Refusal::of_number(0), None);
        assert_eq!(Refusal::MailboxUnknown.number(), Some(1));
        assert_eq!(Refusal::LocalError.number(), Some(27));
        let text = String::new();
        let site = Refusal::Site {
            permanent: true,
            text,
        };
        assert_eq!(site.number(), None);
    }

    #[test]
    fn classes_of_both_codes_agree() {
        let site = |permanent| Refusal::Site {
            permanent,
            text: "come\r\nback".to_owned(),
        };
        for refusal in [
            Refusal::MailboxUnknown,
            Refusal::MailboxFull,
            Refusal::MailboxFullForGood,
            Refusal::NullMx,
            Refusal::ServiceUnavailable,
            Refusal::SpfFailed,
            Refusal::SpfUnavailable,
            Refusal::SpfMalformed,
            Refusal::StorageFull,
            Refusal::RecipientUnverified,
            site(true),
            site(false),
        ] {
            let reply = refusal.reply();
            assert_eq!(
                u16::from(refusal.status().class),
                reply.code / 100,
                "{refusal:?}"
            );
            assert_eq!(refusal.is_permanent(), reply.code >= 500, "{refusal:?}");
        }
        let mut wire = Vec::new();
        site(true).reply().encode(&mut wire);
        assert_eq!(wire, b"550 5.7.1 come??back\r\n");
    }
}
