//! The envelope in the octets of an encoding, read without copying: lists of messages are made of it.

use super::{CodecError, In, LIST_MAX};
use crate::{Address, Envelope};

/// An envelope borrowed from encoded octets; [`Envelope`] documents the fields.
#[derive(Debug, Clone, Default)]
pub struct EnvelopeView<'a> {
    /// `Date`
    pub date: Option<&'a [u8]>,
    /// `Subject`
    pub subject: Option<&'a [u8]>,
    /// `In-Reply-To`
    pub in_reply_to: Option<&'a [u8]>,
    /// `Message-ID`
    pub message_id: Option<&'a [u8]>,
    /// `From`, `Sender`, `Reply-To`, `To`, `Cc`, `Bcc`
    pub lists: [AddressesView<'a>; 6],
}

/// A list of addresses borrowed from encoded octets.
#[derive(Debug, Clone, Default)]
pub struct AddressesView<'a>(List<'a>);

#[derive(Debug, Clone)]
enum List<'a> {
    Encoded { left: u64, octets: &'a [u8] },
    Decoded(std::slice::Iter<'a, Address>),
}

/// An address borrowed from encoded octets; [`Address`] documents the fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AddressView<'a> {
    /// The phrase.
    pub name: Option<&'a [u8]>,
    /// The source route.
    pub route: Option<&'a [u8]>,
    /// The local part.
    pub mailbox: Option<&'a [u8]>,
    /// The domain.
    pub host: Option<&'a [u8]>,
}

impl<'a> EnvelopeView<'a> {
    /// Finds the envelope of the message itself in what [`Parsed::encode`](crate::Parsed::encode) wrote.
    ///
    /// # Errors
    ///
    /// [`CodecError`].
    pub fn read(octets: &'a [u8]) -> Result<Self, CodecError> {
        In(octets).message_envelope().ok_or(CodecError)
    }
}

impl<'a> From<&'a Envelope> for EnvelopeView<'a> {
    fn from(envelope: &'a Envelope) -> Self {
        let list = |list: &'a [Address]| AddressesView(List::Decoded(list.iter()));
        Self {
            date: envelope.date.as_deref(),
            subject: envelope.subject.as_deref(),
            in_reply_to: envelope.in_reply_to.as_deref(),
            message_id: envelope.message_id.as_deref(),
            lists: [
                list(&envelope.from),
                list(&envelope.sender),
                list(&envelope.reply_to),
                list(&envelope.to),
                list(&envelope.cc),
                list(&envelope.bcc),
            ],
        }
    }
}

impl Default for List<'_> {
    fn default() -> Self {
        Self::Decoded([].iter())
    }
}

impl<'a> Iterator for AddressesView<'a> {
    type Item = AddressView<'a>;

    fn next(&mut self) -> Option<AddressView<'a>> {
        match &mut self.0 {
            List::Encoded { left, octets } => {
                *left = left.checked_sub(1)?;
                let mut rest = In(octets);
                let address = rest.address_view()?;
                *octets = rest.0;
                Some(address)
            }
            List::Decoded(addresses) => addresses.next().map(|address| AddressView {
                name: address.name.as_deref(),
                route: address.route.as_deref(),
                mailbox: address.mailbox.as_deref(),
                host: address.host.as_deref(),
            }),
        }
    }
}

impl<'a> In<'a> {
    fn message_envelope(&mut self) -> Option<EnvelopeView<'a>> {
        self.version()?;
        let references = self.size()?;
        self.take(references.checked_mul(8)?)?;
        self.borrowed()?;
        // Of the first part: its kind, parent, header, body and lines come before.
        self.number().filter(|parts| *parts > 0)?;
        self.octet()?;
        for _ in 0..6 {
            self.number()?;
        }
        self.optional(Self::envelope_view)?
    }

    fn envelope_view(&mut self) -> Option<EnvelopeView<'a>> {
        Some(EnvelopeView {
            date: self.optional(Self::borrowed)?,
            subject: self.optional(Self::borrowed)?,
            in_reply_to: self.optional(Self::borrowed)?,
            message_id: self.optional(Self::borrowed)?,
            lists: [
                self.addresses_view()?,
                self.addresses_view()?,
                self.addresses_view()?,
                self.addresses_view()?,
                self.addresses_view()?,
                self.addresses_view()?,
            ],
        })
    }

    /// Skips a list, and returns a view of the list.
    fn addresses_view(&mut self) -> Option<AddressesView<'a>> {
        let left = self.number().filter(|count| *count <= LIST_MAX)?;
        let octets = self.0;
        for _ in 0..left {
            self.address_view()?;
        }
        Some(AddressesView(List::Encoded { left, octets }))
    }

    fn address_view(&mut self) -> Option<AddressView<'a>> {
        Some(AddressView {
            name: self.optional(Self::borrowed)?,
            route: self.optional(Self::borrowed)?,
            mailbox: self.optional(Self::borrowed)?,
            host: self.optional(Self::borrowed)?,
        })
    }
}
