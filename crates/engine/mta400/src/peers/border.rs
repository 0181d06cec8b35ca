//! Border control: which messages may cross the border to or from a peer.

use vere_x400::{AddressError, AddressKey, ContentType, OrAddress, Priority};

use crate::cause::Cause;

/// Addresses by their upper parts: those below a permitted part and not below a denied one. Of several parts the longest
/// counts; without permitted parts all addresses are permitted that are not denied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddressRange {
    permitted: Vec<AddressKey>,
    denied: Vec<AddressKey>,
}

impl AddressRange {
    /// Reads the parts, in a text form of addresses.
    ///
    /// # Errors
    /// [`AddressError`] for the first part that is no address.
    pub fn new(permitted: &[&str], denied: &[&str]) -> Result<Self, AddressError> {
        let read = |parts: &[&str]| -> Result<Vec<AddressKey>, AddressError> {
            parts.iter().map(|part| AddressKey::route(part)).collect()
        };
        Ok(Self {
            permitted: read(permitted)?,
            denied: read(denied)?,
        })
    }

    /// Whether the address is permitted. An address that cannot be read is permitted if all addresses are.
    #[must_use]
    pub fn permits(&self, address: &OrAddress) -> bool {
        if self.permitted.is_empty() && self.denied.is_empty() {
            return true;
        }
        address.key().is_ok_and(|key| self.permits_key(&key))
    }

    fn permits_key(&self, key: &AddressKey) -> bool {
        let longest = |parts: &[AddressKey]| {
            let below = parts.iter().filter(|part| key.starts_with(part));
            below.map(AddressKey::depth).max()
        };
        match (longest(&self.permitted), longest(&self.denied)) {
            (Some(permitted), Some(denied)) => permitted > denied,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => self.permitted.is_empty(),
        }
    }
}

/// What may cross; `None` is anything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Border {
    /// Originators.
    pub originators: AddressRange,
    /// Recipients.
    pub recipients: AddressRange,
    /// Content types.
    pub content_types: Option<Vec<ContentType>>,
    /// Grades of delivery.
    pub priorities: Option<Vec<Priority>>,
    /// Octets of a content, at most.
    pub content_octets_max: Option<u64>,
}

/// What the border sees of a message or a probe.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Crossing<'a> {
    pub(crate) originator: &'a OrAddress,
    pub(crate) content_type: &'a ContentType,
    pub(crate) priority: Priority,
    pub(crate) content_octets: u64,
}

impl Border {
    /// The cause for which no recipient of the message may cross: size, type, grade, then originator.
    pub(crate) fn stops(&self, crossing: Crossing<'_>) -> Option<Cause> {
        if self
            .content_octets_max
            .is_some_and(|most| crossing.content_octets > most)
        {
            return Some(Cause::ContentTooLong);
        }
        if lacks(self.content_types.as_ref(), crossing.content_type) {
            return Some(Cause::ContentType);
        }
        if lacks(self.priorities.as_ref(), &crossing.priority) {
            return Some(Cause::Grade);
        }
        (!self.originators.permits(crossing.originator)).then_some(Cause::Originator)
    }

    /// The cause for which one recipient may not cross.
    pub(crate) fn stops_recipient(&self, recipient: &OrAddress) -> Option<Cause> {
        (!self.recipients.permits(recipient)).then_some(Cause::Recipient)
    }
}

/// Whether a list is there and does not have the value.
pub(crate) fn lacks<T: PartialEq>(list: Option<&Vec<T>>, value: &T) -> bool {
    list.is_some_and(|list| !list.contains(value))
}
