//! The two directions.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::answers::{Answer, Attached, Deliver, Refused, Submitted};
use crate::requests::{Ask, Attach, Done, Probe, Submit};

/// A frame of one direction.
pub(crate) trait Frame: DeserializeOwned + Serialize {
    /// The kinds.
    const KINDS: &'static [&'static str];
}

/// A frame of a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    Attach(Attach),
    Done(Done),
    Submit(Submit),
    Probe(Probe),
    Ask(Ask),
}

impl Frame for Request {
    const KINDS: &'static [&'static str] = &["attach", "done", "submit", "probe", "ask"];
}

impl Request {
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Attach(_) => "attach",
            Self::Done(_) => "done",
            Self::Submit(_) => "submit",
            Self::Probe(_) => "probe",
            Self::Ask(_) => "ask",
        }
    }
}

/// A frame of the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reply {
    Attached(Attached),
    Refused(Refused),
    Deliver(Deliver),
    Submitted(Submitted),
    Answer(Answer),
}

impl Frame for Reply {
    const KINDS: &'static [&'static str] =
        &["attached", "refused", "deliver", "submitted", "answer"];
}

impl Reply {
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Attached(_) => "attached",
            Self::Refused(_) => "refused",
            Self::Deliver(_) => "deliver",
            Self::Submitted(_) => "submitted",
            Self::Answer(_) => "answer",
        }
    }
}
