//! Every setting with type, unit, default, range and text, and the checked snapshot parsed from a
//! TOML file.
//!
//! The table in `table` is the only place where an option exists: the check of a file, the
//! defaults, the answer to "what can be changed without a restart" and the reference manual
//! ([`reference()`]) are all derived from it. [`Settings::parse`] turns the text of a file into an
//! immutable [`Settings`], or into [`ConfigErrors`], which lists all errors of the file, each with
//! its line. A running system replaces the whole snapshot or keeps the old one;
//! [`Settings::changes`] returns the changed keys that need a restart.
//!
//! Not covered: reading the file, checking the existence of named files, and domains, accounts and
//! aliases, which are data in the directory instead of settings.
//!
//! ```
//! use vere_settings::Settings;
//!
//! let text = "version = 1\nhostname = \"mx.example.org\"\ndata = \"var\"\n";
//! let settings = Settings::parse(text, "/etc/vere/vere.toml")?;
//! assert_eq!(settings.data.to_str(), Some("/etc/vere/var"));
//! assert_eq!(settings.limits.message_size_max.to_string(), "50 MiB");
//!
//! let wrong = Settings::parse("version = 1\nhostnam = \"mx.example.org\"\n", "vere.toml");
//! let text = wrong.map_err(|errors| errors.to_string()).unwrap_err();
//! assert!(text.contains("vere.toml:2: hostnam: unknown key, the nearest known one is hostname"));
//! # Ok::<(), vere_settings::ConfigErrors>(())
//! ```

mod acme;
mod answers;
mod assemble;
mod changes;
mod cross;
mod directory_store;
mod dnsbl;
mod document;
mod errors;
mod filters;
mod folders;
mod judging;
mod kind;
mod levels;
mod lists;
mod mail_store;
mod manual;
mod model;
mod name;
mod nearest;
mod network;
mod outgoing;
mod quota;
mod redaction;
mod reference;
mod sending;
mod services;
mod spool_accounts;
mod table;
mod value;
mod volume;
mod watching;
mod web;
mod x400;

pub use acme::{Acme, AcmeChallenge, AcmeDns};
pub use answers::AnswerPattern;
pub use changes::Changes;
pub use directory_store::DirectoryStore;
pub use dnsbl::{DATA_FORMATS, Dnsbl, DnsblData, DnsblRate, DnsblZone};
pub use document::KeyLines;
pub use errors::{ConfigError, ConfigErrors, Problem};
pub use filters::{FilterAddress, FilterKind, FilterSettings, FilteredMail};
pub use judging::{
    AttachmentRule, FilterTerms, Judging, QUARANTINE_KEEP, RecipientPolicy, Rule, RuleWeights,
    StructureLimits, Threshold, Thresholds, Verdict,
};
pub use lists::{BlockList, BlockLists, ListMaps, ListTreatment};
pub use mail_store::{BodySharing, MailStore, NewMailbox};
pub use manual::manual;
pub use model::{
    Auth, CertificateFiles, Cluster, Directory, Durability, Etcd, Gateway, Limits, LineTls, Listen,
    LogBy, Priority, PriorityPolicy, Register, Resolver, Settings, Sni, Spool, SpoolNode, SpoolTls,
    Tls,
};
pub use name::name as checked_name;
pub use nearest::nearest;
pub use network::{IpNetwork, Networks, ParseNetworkError};
pub use outgoing::{
    Delivery, DestinationLimits, DestinationPriority, DestinationScope, LocalDelivery, NextHop,
    Protocol, Rate, Route, RoutePattern, Source, TlsMode,
};
pub use quota::{AccountQuota, OverQuota, Quota};
pub use redaction::{Redaction, blanked, is_key, redacted};
pub use reference::reference;
pub use sending::{AccountSending, OverSending, Senders, Sending};
pub use services::{
    CallAhead, Dkim, Front, RecordSink, Records, Reports, Sendmail, SpfTreatment, WhenUnavailable,
};
pub use spool_accounts::{DEFAULT_SPOOL_ACCOUNT, SpoolAccount, SpoolQueue};
pub use table::File;
pub use volume::{AccountSecret, Volume, VolumeAccount};
pub use watching::{Backup, Control, Log, LogFormat, LogLevel, Metrics};
pub use web::{StsMode, Web};
pub use x400::{
    GROUP_PREFIX, X400, X400Border, X400Expire, X400Gateway, X400Password, X400Peer, X400Route,
    X400User,
};

#[cfg(test)]
mod tests;
