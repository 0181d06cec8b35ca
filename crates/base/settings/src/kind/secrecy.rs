//! The secret parts of values, by the kind of the option.

use super::Kind;

/// The secret part of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Secrecy {
    /// The value may be seen by helpers.
    Open,
    /// The whole value is a secret.
    Whole,
    /// The value names a file; the content of the file is a secret.
    File,
    /// The user, the password and the query of a URL.
    UrlUser,
    /// As [`UrlUser`](Self::UrlUser), and the path of the URL, by which web services often know the client.
    UrlPath,
    /// The labels before the last two: lists give customers names with a key.
    Labels,
    /// The words behind a program's name.
    Arguments,
}

impl Kind {
    /// The secret part of a value of the kind. The match has no rest: each new kind needs a decision.
    pub(crate) const fn secrecy(self) -> Secrecy {
        match self {
            Self::SecretText => Secrecy::Whole,
            Self::SecretFile => Secrecy::File,
            Self::SecretZone => Secrecy::Labels,
            Self::UrlHttp => Secrecy::UrlPath,
            Self::UrlHttps | Self::Urls(_) | Self::Account => Secrecy::UrlUser,
            Self::Command => Secrecy::Arguments,
            Self::Version
            | Self::HostName
            | Self::HostNames
            | Self::Name
            | Self::Names
            | Self::Mailboxes
            | Self::Separator
            | Self::Path
            | Self::MaildirTemplate
            | Self::Integer(..)
            | Self::Signed(..)
            | Self::Score(..)
            | Self::Threshold(_)
            | Self::Size(..)
            | Self::Span(..)
            | Self::Spans(..)
            | Self::Choice(_)
            | Self::Ipv4
            | Self::Ipv6
            | Self::Address
            | Self::Addresses
            | Self::FilterAddress
            | Self::NetworkList
            | Self::HeloPatterns
            | Self::SenderPatterns
            | Self::Recipients
            | Self::MailAddress
            | Self::NamePatterns
            | Self::MediaTypes
            | Self::Datasets
            | Self::AnswerPatterns
            | Self::Pattern
            | Self::NextHop
            | Self::Rate
            | Self::Store
            | Self::Word
            | Self::Words
            | Self::OrAddress
            | Self::OrAddresses
            | Self::Hosts
            | Self::IpAddresses => Secrecy::Open,
        }
    }
}
