//! The values of frames from clients.

use serde::{Deserialize, Serialize};

use crate::message::{Message, is_default};

/// `attach`: the first frame of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attach {
    /// The version of the protocol, [`VERSION`](crate::VERSION).
    pub version: u32,
    /// The gateway of the settings whose messages the client takes; without a name, the client only submits and asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Deliveries without an answer at once, from 1 to [`WINDOW_MAX`](crate::WINDOW_MAX); 1 if the field is absent.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub window: u32,
}

fn one() -> u32 {
    1
}

fn is_one(window: &u32) -> bool {
    *window == 1
}

/// The end of an attempt for a recipient.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// `delivered`: the gateway has the responsibility. Of a probe: the recipient could get a message.
    Delivered,
    /// `deferred`: the MTA tries again later.
    Deferred,
    /// `failed`: the MTA reports to the originator.
    Failed,
}

/// The result for a recipient.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecipientResult {
    /// The place of the recipient, as in `deliver`.
    pub place: u32,
    /// The end.
    pub result: Fate,
    /// The enhanced status code (RFC 3463), whose class fits the result: 2, 4 or 5. The MTA reports its X.400 reason and
    /// diagnostic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// A text for people, in logs and reports; at most [`SAID_OCTETS_MAX`](crate::SAID_OCTETS_MAX) octets count.
    #[serde(default, skip_serializing_if = "is_default")]
    pub said: String,
}

/// `done`: the answer to a delivery. `result`, `status` and `said` are of all recipients that `results` does not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// The id of the delivery.
    pub id: String,
    /// Results for single recipients.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<RecipientResult>,
    /// The result for all others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Fate>,
    /// As in [`RecipientResult::status`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// As in [`RecipientResult::said`].
    #[serde(default, skip_serializing_if = "is_default")]
    pub said: String,
    /// Whether the gateway submits the reports about deliveries itself, as another MTA does. Otherwise the MTA writes the
    /// reports that the originator asked for.
    #[serde(default, skip_serializing_if = "is_default")]
    pub own_reports: bool,
}

impl Done {
    /// One result for all recipients of a delivery.
    #[must_use]
    pub fn all(id: &str, result: Fate) -> Self {
        Self {
            id: id.to_owned(),
            results: Vec::new(),
            result: Some(result),
            status: None,
            said: String::new(),
            own_reports: false,
        }
    }
}

/// `submit`: a message. The octets behind the line are an APDU of P1 (a message, probe or report in BER), or with `message`
/// the text or content of a message that the MTA makes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submit {
    /// The tag that the answer repeats: 1 to [`TAG_OCTETS_MAX`](crate::TAG_OCTETS_MAX) octets.
    pub tag: String,
    /// The fields of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Message>,
    /// Octets behind the line.
    pub octets: u64,
}

/// `probe`: asks whether a message of type P22 in IA5 text would be delivered. Reports answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Probe {
    /// The tag, as in [`Submit::tag`].
    pub tag: String,
    /// The O/R address of the originator.
    pub originator: String,
    /// The O/R addresses of the recipients, 1 at least.
    pub recipients: Vec<String>,
    /// Octets of the content that the message would have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_octets: Option<u32>,
    /// Whether no MTA may convert the content.
    #[serde(skip_serializing_if = "is_default")]
    pub conversion_prohibited: bool,
    /// Whether the domain of a recipient may name an alternate recipient.
    #[serde(skip_serializing_if = "is_default")]
    pub alternate_recipient_allowed: bool,
    /// A text of at most 16 characters that reports repeat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_identifier: Option<String>,
}

/// `ask`: a question about the MTA.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// The tag, as in [`Submit::tag`].
    pub tag: String,
    /// Asks for the peers.
    #[serde(default, skip_serializing_if = "is_default")]
    pub peers: bool,
    /// Only peers whose names are behind this one, for the next part of a long answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}
