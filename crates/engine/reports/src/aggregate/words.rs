//! The words of aggregate reports.

use serde::{Deserialize, Serialize};

/// Defines an enumeration with the words that stand for its values.
macro_rules! words {
    ($(#[$outer:meta])* $name:ident { $($(#[$inner:meta])* $value:ident = $word:literal $(| $also:literal)*,)+ }) => {
        $(#[$outer])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$inner])* $value,)+
        }

        impl $name {
            /// All values, in the order of the standard.
            pub const ALL: &[Self] = &[$(Self::$value),+];

            /// The word of the standard.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$value => $word,)+
                }
            }

            /// The value of a word, in any case.
            #[must_use]
            pub fn of(word: &str) -> Option<Self> {
                $(if [$word $(, $also)*].iter().any(|own| own.eq_ignore_ascii_case(word)) {
                    return Some(Self::$value);
                })+
                None
            }
        }
    };
}

words! {
    /// A policy, or what was done by a policy.
    #[derive(Default)]
    Disposition {
        /// Nothing special.
        #[default]
        None = "none",
        /// DMARC passed, so that no policy applied: the word of RFC 9990 for such mail, as a disposition only.
        Pass = "pass",
        /// Into quarantine, such as a folder for spam.
        Quarantine = "quarantine",
        /// Refused.
        Reject = "reject",
    }
}

words! {
    /// How exactly a domain must match the domain in From.
    Alignment {
        /// The organizational domains are equal.
        Relaxed = "r" | "relaxed",
        /// The domains are equal.
        Strict = "s" | "strict",
    }
}

words! {
    /// How a policy was found.
    Discovery {
        /// With a list of public suffixes (RFC 7489).
        PublicSuffixes = "psl",
        /// By a walk up the DNS (RFC 9989).
        TreeWalk = "treewalk",
    }
}

words! {
    /// Why a policy was not followed (RFC 9990; the words of RFC 7489 are read as their successors).
    Override {
        /// A rule of the receiver.
        LocalPolicy = "local_policy",
        /// Mail of a mailing list.
        MailingList = "mailing_list",
        /// Anything else.
        Other = "other",
        /// The policy is tested only.
        PolicyTestMode = "policy_test_mode" | "sampled_out",
        /// A forwarder that the receiver trusts.
        TrustedForwarder = "trusted_forwarder" | "forwarded",
    }
}

words! {
    /// The result of a check of DKIM or SPF (RFC 8601 sections 2.7.1 and 2.7.2).
    AuthWord {
        /// Nothing to check.
        None = "none",
        /// Neither allowed nor forbidden.
        Neutral = "neutral",
        /// Passed.
        Pass = "pass",
        /// Failed.
        Fail = "fail" | "hardfail",
        /// Failed, by a domain that is not sure.
        SoftFail = "softfail",
        /// Valid, but of a form that the receiver does not accept.
        Policy = "policy",
        /// An error that may go away.
        TempError = "temperror" | "error",
        /// An error that stays.
        PermError = "permerror" | "unknown",
    }
}
