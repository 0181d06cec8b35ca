//! The values of frames from the server.

use serde::{Deserialize, Serialize};

use crate::message::{Priority, is_default};

/// `attached`: the MTA agrees to an `attach`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attached {
    /// The version of the protocol.
    pub version: u32,
    /// The name of the MTA in its domain.
    pub mta: String,
    /// The management domain: `/PRMD=Acme/ADMD=Carrier/C=GB/`.
    pub domain: String,
    /// Octets behind a line of the client, at most.
    pub octets_max: u64,
    /// Tags without an answer, at most; further frames wait.
    pub tags_max: u64,
}

/// `refused`: with a tag, a submission or question is refused and the connection goes on. Without a tag, the connection
/// ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The tag of the refused frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Whether the same frame may be accepted later.
    #[serde(default, skip_serializing_if = "is_default")]
    pub temporary: bool,
    /// The reason, for people.
    pub error: String,
}

/// The kinds of protocol data units.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnitKind {
    /// `message`
    #[default]
    Message,
    /// `report`
    Report,
    /// `probe`
    Probe,
}

/// A recipient of a delivery.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recipient {
    /// The place in the envelope, from 0; a report has place 0.
    pub place: u32,
    /// The O/R address, `G=John;S=Smith;P=Acme;A=Carrier;C=GB`.
    pub address: String,
}

/// `deliver`: a message, report or probe for the gateway. The octets behind the line are the APDU of P1, in which the
/// recipients of the frame have the responsibility bit and no others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deliver {
    /// The id for the answer, unique on the connection.
    pub id: String,
    /// The id of the message in this MTA, the same at each attempt and for all parts of the message.
    pub trace: String,
    /// The kind.
    pub kind: UnitKind,
    /// The MTS identifier: `[/PRMD=Acme/ADMD=Carrier/C=GB/;local]`.
    pub identifier: String,
    /// The identifier of the subject of a report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// The O/R address of the originator; a report has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub originator: Option<String>,
    /// The recipients.
    pub recipients: Vec<Recipient>,
    /// The type of the content: a number of a built-in type, or an object identifier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// The grade of delivery.
    #[serde(default, skip_serializing_if = "is_default")]
    pub priority: Priority,
    /// Octets behind the line.
    pub octets: u64,
}

/// `submitted`: the message is safe, and the MTA has the responsibility.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submitted {
    /// The tag of the submission.
    pub tag: String,
    /// The MTS identifier.
    pub identifier: String,
    /// The id of the message in this MTA, for `vere trace`.
    pub id: String,
}

/// `answer`: the answer to `ask`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The tag of the question.
    pub tag: String,
    /// The peers in the order of their names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peers: Option<Vec<PeerRow>>,
    /// Whether there are further peers: ask again, with `after` as the last name.
    #[serde(default, skip_serializing_if = "is_default")]
    pub more: bool,
}

/// What the MTA does with a peer now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PeerState {
    /// `open`: an association at least.
    Open,
    /// `idle`: no association, and nothing to send.
    #[default]
    Idle,
    /// `waiting`: messages, and no association yet.
    Waiting,
    /// `failing`: the last attempt to reach the peer failed.
    Failing,
    /// `held`: an operator holds the queue.
    Held,
    /// A state of a newer version.
    #[serde(other)]
    Other,
}

/// A peer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PeerRow {
    /// The name in the settings.
    pub name: String,
    /// The state.
    pub state: PeerState,
    /// Associations that the peer opened.
    pub associations_in: u32,
    /// Associations that the MTA opened.
    pub associations_out: u32,
    /// Messages in the queue.
    pub queued: u64,
    /// The age of the oldest message of the queue, in seconds.
    pub oldest_s: Option<u64>,
    /// The time until the next attempt, in seconds.
    pub next_attempt_s: Option<u64>,
    /// The last fault on the way to the peer.
    pub last_error: Option<String>,
    /// The age of that fault, in seconds.
    pub last_error_s: Option<u64>,
}
