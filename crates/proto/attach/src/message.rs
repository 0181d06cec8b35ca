//! A message from plain fields.

use serde::{Deserialize, Serialize};

/// The grade of delivery.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Priority {
    /// `urgent`
    Urgent,
    /// `normal`
    #[default]
    Normal,
    /// `non-urgent`
    NonUrgent,
}

/// The reports for the originator.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reports {
    /// `none`
    None,
    /// `failures`: about failures only.
    #[default]
    Failures,
    /// `all`: about deliveries too.
    All,
}

/// The fields of a message, from which the MTA makes the envelope. Without `content_type` the MTA makes a content of type
/// P22 of the octets, a text in UTF-8 with the characters of ISO 8859-1, whose lines end with LF or CRLF; with
/// `content_type` the octets are the content.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Message {
    /// The O/R address of the originator, in any text form.
    pub originator: String,
    /// The O/R addresses of the recipients, 1 at least.
    pub recipients: Vec<String>,
    /// The subject, at most 128 characters. Not for a message with `content_type`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The type of the content: `2`, `22`, `35` or another number of a built-in type, or an object identifier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// The grade of delivery.
    #[serde(skip_serializing_if = "is_default")]
    pub priority: Priority,
    /// The time before which nothing is delivered: `2026-11-29T12:00:00Z`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deferred_until: Option<String>,
    /// The time after which nothing is delivered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latest_delivery: Option<String>,
    /// The reports for the originator.
    #[serde(skip_serializing_if = "is_default")]
    pub reports: Reports,
    /// Whether a report about a failure returns the content.
    #[serde(skip_serializing_if = "is_default")]
    pub return_content: bool,
    /// Whether no MTA may convert the content.
    #[serde(skip_serializing_if = "is_default")]
    pub conversion_prohibited: bool,
    /// Whether the domain of a recipient may name an alternate recipient.
    #[serde(skip_serializing_if = "is_default")]
    pub alternate_recipient_allowed: bool,
    /// The alternate recipient of the originator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alternate_recipient: Option<String>,
    /// A text of at most 16 characters that reports repeat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_identifier: Option<String>,
}

pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
