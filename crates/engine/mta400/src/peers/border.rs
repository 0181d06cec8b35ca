//! Border control: the messages permitted from and to a peer.

use vere_x400::{AddressError, AddressKey, ContentType, OrAddress, Priority};

use crate::cause::Cause;

/// Addresses by permitted and denied upper parts. The longest matching part counts, and a denial counts before a
/// permission of equal length. Without permitted parts every address is permitted unless denied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddressRange {
    permitted: Vec<AddressKey>,
    denied: Vec<AddressKey>,
}

impl AddressRange {
    /// Reads the parts, in a text form of addresses.
    ///
    /// # Errors
    /// [`AddressError`] for the first wrong part.
    pub fn new(permitted: &[&str], denied: &[&str]) -> Result<Self, AddressError> {
        let read = |parts: &[&str]| -> Result<Vec<AddressKey>, AddressError> {
            parts.iter().map(|part| AddressKey::route(part)).collect()
        };
        Ok(Self {
            permitted: read(permitted)?,
            denied: read(denied)?,
        })
    }

    /// Whether the address is permitted. An unreadable address is permitted only by an empty range.
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

/// The permitted messages; `None` permits everything.
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

/// The fields of a message or a probe for border control.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Crossing<'a> {
    pub(crate) originator: &'a OrAddress,
    pub(crate) content_type: &'a ContentType,
    pub(crate) priority: Priority,
    pub(crate) content_octets: u64,
}

impl Border {
    /// The cause against the message: size, content type, grade, originator, in this order.
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

    /// The cause against a recipient.
    pub(crate) fn stops_recipient(&self, recipient: &OrAddress) -> Option<Cause> {
        (!self.recipients.permits(recipient)).then_some(Cause::Recipient)
    }
}

/// Whether there is a list without the value.
pub(crate) fn lacks<T: PartialEq>(list: Option<&Vec<T>>, value: &T) -> bool {
    list.is_some_and(|list| !list.contains(value))
}
