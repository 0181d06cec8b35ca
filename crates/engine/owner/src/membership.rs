//! The membership record of a group in the register: its owner and its members.
//!
//! ```json
//! {"version":1,"epoch":3,"owner":1234,"members":[{"node":"a","incarnation":77,"state":"full"}]}
//! ```
//! The owner reads and replaces the record as a whole, by compare-and-set, and only for changes of
//! the membership: never for a message.

use serde::{Deserialize, Serialize};
use vere_spoolwire::Incarnation;

/// Format version of written records.
const VERSION: u32 = 1;

/// Maximum number of members of a group.
pub const MEMBERS_MAX: usize = 16;

/// Owner and members of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Membership {
    version: u32,
    /// Grows with every takeover; a node rejects owners of lower epochs.
    pub epoch: u64,
    /// The life of the owner's memory.
    pub owner: u64,
    /// Members in no particular order; at most [`MEMBERS_MAX`].
    pub members: Vec<Member>,
}

/// A node that holds a group or is being filled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// The node's name in the settings.
    pub node: String,
    /// Incarnation of the node's memory. Another incarnation holds nothing of the group.
    pub incarnation: u64,
    /// State of the member.
    pub state: MemberState,
}

/// State of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemberState {
    /// Holds everything acknowledged.
    Full,
    /// In rebuild.
    Syncing,
}

/// The value in the register is no membership record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("membership record: {0}")]
pub struct MembershipError(String);

impl Membership {
    /// Creates the record of a group without members.
    #[must_use]
    pub const fn new(epoch: u64, owner: u64) -> Self {
        Self {
            version: VERSION,
            epoch,
            owner,
            members: Vec::new(),
        }
    }

    /// Returns a record with these members, the next epoch and another owner.
    #[must_use]
    pub fn claimed_by(&self, owner: u64) -> Self {
        Self {
            epoch: self.epoch.saturating_add(1),
            owner,
            ..self.clone()
        }
    }

    /// Returns the entry of a node.
    #[must_use]
    pub fn member(&self, node: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.node == node)
    }

    /// Returns a record without the node.
    #[must_use]
    pub fn without(&self, node: &str) -> Self {
        let mut record = self.clone();
        record.members.retain(|member| member.node != node);
        record
    }

    /// Returns a record with the node in state `state`, replacing the node's former entry.
    #[must_use]
    pub fn with(&self, node: &str, incarnation: Incarnation, state: MemberState) -> Self {
        let mut record = self.without(node);
        record.members.push(Member {
            node: node.to_owned(),
            incarnation: incarnation.0,
            state,
        });
        record
    }

    /// Counts the members that hold everything acknowledged.
    #[must_use]
    pub fn full(&self) -> usize {
        let full = |member: &&Member| member.state == MemberState::Full;
        self.members.iter().filter(full).count()
    }

    /// Encodes the record for the register.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        // A record of numbers and strings cannot fail to serialize.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Decodes a record from the register.
    ///
    /// # Errors
    ///
    /// For another format version, for invalid JSON, for a node listed twice, and for more than
    /// [`MEMBERS_MAX`] members.
    pub fn decode(octets: &[u8]) -> Result<Self, MembershipError> {
        let error = |text: String| MembershipError(text);
        let record: Self = serde_json::from_slice(octets).map_err(|e| error(e.to_string()))?;
        if record.version != VERSION {
            return Err(error(format!(
                "version {} is not read here",
                record.version
            )));
        }
        let mut names: Vec<&str> = record.members.iter().map(|m| m.node.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        if names.len() != record.members.len() || names.len() > MEMBERS_MAX {
            return Err(error("members are listed twice, or too many".to_owned()));
        }
        Ok(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_back_and_nothing_else() {
        let record = Membership::new(3, 9)
            .with("a", Incarnation(u64::MAX), MemberState::Full)
            .with("b", Incarnation(1), MemberState::Full)
            .with("b", Incarnation(2), MemberState::Syncing);
        assert_eq!(record.full(), 1);
        assert_eq!(Membership::decode(&record.encode()), Ok(record.clone()));
        assert_eq!(record.member("b").unwrap().incarnation, 2);
        let text = String::from_utf8(record.encode()).unwrap();
        for bad in [
            String::new(),
            text.replace("\"version\":1", "\"version\":2"),
            text.replace("\"b\"", "\"a\""),
            text.replace("full", "half"),
            text.replace("epoch", "epoche"),
            format!("{text} "),
        ] {
            let whole = bad.trim_end() == text;
            assert_eq!(Membership::decode(bad.as_bytes()).is_ok(), whole, "{bad}");
        }
    }

    #[test]
    fn a_takeover_raises_the_epoch_and_keeps_the_members() {
        let record = Membership::new(1, 5).with("a", Incarnation(1), MemberState::Full);
        let claimed = record.claimed_by(6);
        assert_eq!((claimed.epoch, claimed.owner), (2, 6));
        assert_eq!(claimed.members, record.members);
        assert!(claimed.without("a").members.is_empty());
    }
}
