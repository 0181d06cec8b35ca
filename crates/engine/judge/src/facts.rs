//! Facts about a message.

mod bounds;

use std::net::IpAddr;

use vere_settings::Verdict;
use vere_units::Score;

pub(crate) use bounds::is_word;
pub use bounds::{
    ADDRESS_OCTETS_MAX, ATTACHMENTS_MAX, AUTHORS_MAX, DOMAIN_OCTETS_MAX, FILTERS_MAX, LISTINGS_MAX,
    NAME_OCTETS_MAX, SIGNATURES_MAX, SYMBOL_SCORE_MAX, SYMBOLS_MAX, VIRUSES_MAX, WEIGHT_MAX,
    WORD_OCTETS_MAX,
};

/// Everything that rules look at. A fact that nobody looked for is absent, and no rule about it counts.
///
/// Texts come from strangers. [`Facts::bounded`] cuts them, and only the judgement shows them, escaped.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    /// The address of the client.
    pub client: Option<IpAddr>,
    /// The account as which the client has logged in.
    pub login: Option<String>,
    /// The reverse-path without angle brackets; empty for the null reverse-path.
    pub reverse_path: Option<String>,
    /// The number of recipients.
    pub recipients: u32,
    /// The form of the HELO name.
    pub helo: Option<HeloForm>,
    /// The result of iprev (RFC 8601 section 3): whether the names of the client's address lead back to the address. None: the address has no
    /// name.
    pub iprev: Option<AuthResult>,
    /// The result of SPF for the reverse-path.
    pub spf: Option<AuthResult>,
    /// The result of SPF for the HELO name.
    pub spf_helo: Option<AuthResult>,
    /// The DKIM signatures, in the order of the header; `None` where nobody verified them.
    pub dkim: Option<Vec<Signature>>,
    /// The result of DMARC.
    pub dmarc: Option<Dmarc>,
    /// The result of ARC.
    pub arc: Option<Arc>,
    /// Lists in the DNS that have the client.
    pub listings: Vec<Listing>,
    /// The state of the greylist.
    pub greylist: Option<Greylist>,
    /// The authors in the header.
    pub author: Option<Author>,
    /// The structure of the message.
    pub structure: Option<Structure>,
    /// Results of filters.
    pub filters: Vec<Filter>,
    /// Viruses that were found.
    pub viruses: Vec<Virus>,
    /// Whether the author is on the list of learned senders, for the recipients of the message.
    pub learned: bool,
    /// Whether facts were removed or shortened because of the bounds.
    pub cut: bool,
}

macro_rules! numbered {
    ($(#[$about:meta])+ $type:ident { $($(#[$doc:meta])+ $variant:ident = $number:literal, $word:literal;)+ }) => {
        $(#[$about])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $type {
            $($(#[$doc])+ $variant,)+
        }

        impl $type {
            /// Every value.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Returns the word in explanations.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            pub(crate) const fn number(self) -> u8 {
                match self {
                    $(Self::$variant => $number,)+
                }
            }

            pub(crate) const fn of_number(number: u8) -> Option<Self> {
                match number {
                    $($number => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }
    };
}

numbered! {
    /// Results of a method of authentication, by the words of RFC 8601 section 2.7.
    AuthResult {
        /// There is nothing to check.
        None = 1, "none";
        /// The domain makes no statement.
        Neutral = 2, "neutral";
        /// The check passed.
        Pass = 3, "pass";
        /// The check failed.
        Fail = 4, "fail";
        /// The check probably failed.
        SoftFail = 5, "softfail";
        /// The DNS did not answer.
        TempError = 6, "temperror";
        /// A record or signature cannot be understood.
        PermError = 7, "permerror";
    }
}

numbered! {
    /// Forms of HELO names.
    HeloForm {
        /// A name with a dot.
        Domain = 1, "domain";
        /// A name without a dot.
        Unqualified = 2, "unqualified";
        /// An address in brackets.
        Literal = 3, "literal";
        /// An address without brackets.
        BareAddress = 4, "bare address";
        /// A name or address of this system.
        Ours = 5, "ours";
        /// No name.
        Missing = 6, "missing";
    }
}

numbered! {
    /// States of the greylist.
    Greylist {
        /// Client, sender and recipient are new.
        New = 1, "new";
        /// The client came again after the delay.
        Passed = 2, "passed";
        /// The greylist does not apply.
        Exempt = 3, "exempt";
        /// The client has passed often and no longer waits.
        Known = 4, "known client";
    }
}

numbered! {
    /// What the domain of the author asks for (RFC 9989, tag `p`).
    DmarcPolicy {
        /// Nothing.
        None = 1, "none";
        /// Suspicion.
        Quarantine = 2, "quarantine";
        /// Rejection.
        Reject = 3, "reject";
    }
}

/// A DKIM signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// The domain that signs.
    pub domain: String,
    /// The result.
    pub result: AuthResult,
}

/// The result of DMARC, with the alignments, which also matter for domains without a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dmarc {
    /// The domain of the author.
    pub domain: String,
    /// The result.
    pub result: AuthResult,
    /// The policy of the domain.
    pub policy: DmarcPolicy,
    /// Whether SPF passed for a domain that is aligned with the author's.
    pub spf_aligned: bool,
    /// Whether a DKIM signature of an aligned domain is valid.
    pub dkim_aligned: bool,
}

/// The result of ARC (RFC 8617).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arc {
    /// The result of the whole chain.
    pub result: AuthResult,
    /// The domain of the last sealer.
    pub sealer: String,
    /// Whether the results that the last sealer states have a pass of DMARC.
    pub dmarc_passed: bool,
}

/// An entry on a list in the DNS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// The name of the list, a word.
    pub list: String,
    /// The weight of the list, below zero in favour of the client.
    pub weight: i16,
}

/// The authors in the header.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Author {
    /// The number of From fields.
    pub fields: u32,
    /// The number of addresses in all of them.
    pub total: u32,
    /// The first addresses; domains as A-labels.
    pub addresses: Vec<String>,
}

/// The number of attachments of a message whose parts cannot be counted: too long to be looked at, or taken apart differently by different readers.
pub const UNCOUNTED: u32 = u32::MAX;

/// The structure of a message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Structure {
    /// The deepest nesting of parts; 1 for a message of one part.
    pub depth: u32,
    /// The number of parts.
    pub parts: u32,
    /// Octets of the header.
    pub header_octets: u64,
    /// The number of attachments; [`UNCOUNTED`] where readers disagree.
    pub total: u32,
    /// Names and types of the first attachments.
    pub attachments: Vec<Attachment>,
}

/// A name and type of an attachment. A part with two different names has two entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// The name, decoded; empty without a name.
    pub name: String,
    /// The media type, lower case.
    pub media_type: String,
}

/// The result of a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// The name of the filter, a word.
    pub name: String,
    /// What the filter asks for.
    pub action: Option<Verdict>,
    /// What the filter found.
    pub symbols: Vec<Symbol>,
}

/// A finding of a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// The name, a word.
    pub name: String,
    /// The score.
    pub score: Score,
}

/// A virus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Virus {
    /// The filter that found the virus, a word.
    pub filter: String,
    /// The name of the virus.
    pub name: String,
}
