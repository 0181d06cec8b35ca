//! Values of requests about the quarantine, and of their answers.

use serde::{Deserialize, Serialize};
use vere_units::TraceId;

/// Selects messages of the quarantine: messages that match every given field.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuarantineSelection {
    /// Ids of the messages; empty for all messages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<TraceId>,
    /// The address of a recipient, or its domain, with or without `@` in front.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipient: Option<String>,
    /// The reverse-path, or its domain; empty for the null reverse-path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender: Option<String>,
}

/// An action on messages of the quarantine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuarantineAction {
    /// The messages are counted.
    Count,
    /// The messages are delivered.
    Release,
    /// The messages are removed; nobody is told.
    Refuse,
}

/// The result of an action.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuarantineActed {
    /// Messages with a finished action, counted once per destination.
    pub messages: usize,
    /// Octets of the messages.
    pub octets: u64,
    /// Given ids without a message in the quarantine.
    pub missing: Vec<TraceId>,
    /// Messages learned by filters.
    #[serde(default)]
    pub taught: usize,
    /// Why a filter has not learned a message; the action goes on.
    #[serde(default)]
    pub untaught: Option<String>,
    /// Senders that the own list has learned by a release, or has forgotten by a refusal.
    #[serde(default)]
    pub senders: usize,
    /// Why the own list has not learned the sender of a message; the action goes on.
    #[serde(default)]
    pub unlearned: Option<String>,
    /// Why the action ended early.
    pub trouble: Option<String>,
}

/// A learned sender, as `vere quarantine senders list --json` prints it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SenderRow {
    /// The address of the sender.
    pub sender: String,
    /// The account or address for whose mail the sender counts.
    pub recipient: String,
    /// The day of the last noted use.
    pub used: String,
}

/// A field of a header, as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeaderField {
    /// The name.
    pub name: String,
    /// The value, with encoded words decoded; strangers choose the text.
    pub value: String,
}

/// A message in the quarantine of one destination, as `vere quarantine list --json` prints the message. Texts
/// are decoded, and strangers choose the texts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuarantineRow {
    /// The trace id of the message.
    pub id: String,
    /// The dead gateway of the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The name of the destination: a domain, `relay:HOST:PORT` or `local`.
    pub destination: String,
    /// The reverse-path, empty for the null reverse-path; absent when the spool does not answer.
    pub reverse_path: Option<String>,
    /// Addresses of the recipients.
    pub recipients: Vec<String>,
    /// The time of acceptance.
    pub since: String,
    /// The time of removal by age.
    pub until: String,
    /// Octets of the message.
    pub size: u32,
    /// The From field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The Subject field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The X-Spam-Score field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<String>,
    /// All fields of the header, when one message is shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub header: Vec<HeaderField>,
}

/// A piece of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuarantineText {
    /// The octets, each as the character with its number: JSON has no octets.
    text: String,
    /// Octets of the whole message.
    pub size: usize,
}

impl QuarantineText {
    /// Makes a piece of octets.
    #[must_use]
    pub fn new(octets: &[u8], size: usize) -> Self {
        let text = octets.iter().copied().map(char::from).collect();
        Self { text, size }
    }

    /// The octets; `None` if the text is no piece of octets.
    #[must_use]
    pub fn octets(&self) -> Option<Vec<u8>> {
        let octets = self.text.chars().map(u8::try_from);
        octets.collect::<Result<_, _>>().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_has_the_octets_of_the_message() {
        let all: Vec<u8> = (0..=255).collect();
        let text = serde_json::to_string(&QuarantineText::new(&all, 256)).unwrap();
        let read: QuarantineText = serde_json::from_str(&text).unwrap();
        assert_eq!(read.octets(), Some(all));
        let odd: QuarantineText = serde_json::from_str(r#"{"text":"é€","size":2}"#).unwrap();
        assert_eq!(odd.octets(), None);
    }
}
