//! The destination of a recipient under the present name, and the obstacles on the way.

use vere_x400::{
    BuiltInEncodedInformationTypes, Criticality, EncodedInformationTypes, OrName,
    PerMessageIndicators, PerRecipientMessageTransferFields,
};

use super::Mta;
use super::legacy::Legacy;
use crate::cause::Cause;
use crate::destination::Destination;
use crate::peers::{Profile, lacks};
use crate::site::User;
use crate::subject::Subject;

/// The next step for a recipient.
pub(super) enum Step {
    /// To a destination.
    To(Destination),
    /// To the address of the user's redirection.
    Moved(Box<OrName>),
}

/// The end for a recipient under the present name.
pub(super) struct Stop {
    pub(super) cause: Cause,
    /// Whether a local domain has no user with the address.
    pub(super) unknown_here: bool,
}

impl From<Cause> for Stop {
    fn from(cause: Cause) -> Self {
        Self {
            cause,
            unknown_here: false,
        }
    }
}

/// The MTA, and a message without recipients.
pub(super) struct Router<'a> {
    pub(super) mta: &'a Mta,
    pub(super) subject: &'a Subject,
    legacy: Legacy,
}

impl<'a> Router<'a> {
    pub(super) fn new(mta: &'a Mta, subject: &'a Subject) -> Self {
        Self {
            mta,
            subject,
            legacy: Legacy::default(),
        }
    }

    /// The step for the present name of the recipient.
    pub(super) fn step(
        &self,
        recipient: &PerRecipientMessageTransferFields,
        may_move: bool,
    ) -> Result<Step, Stop> {
        let key = recipient
            .recipient_name
            .address
            .key()
            .map_err(|_| Cause::ProtocolViolation)?;
        let row = self.mta.routes.find(&key);
        let Some(destination) = row.and_then(|row| row.to.as_ref()) else {
            return Err(Stop {
                cause: Cause::UnknownRecipient,
                unknown_here: row.is_some(),
            });
        };
        let user = destination
            .user()
            .and_then(|name| self.mta.site.users.get(name));
        if let Some(other) = user.and_then(|user| user.redirect_to.as_ref()) {
            return if may_move {
                Ok(Step::Moved(Box::new(other.clone().into())))
            } else {
                Err(Cause::ReassignmentProhibited.into())
            };
        }
        match self.against(destination, user, recipient) {
            Some(cause) => Err(cause.into()),
            None => Ok(Step::To(destination.clone())),
        }
    }

    fn against(
        &self,
        destination: &Destination,
        user: Option<&User>,
        recipient: &PerRecipientMessageTransferFields,
    ) -> Option<Cause> {
        match destination {
            Destination::Peer(name) => self.against_peer(name, recipient),
            Destination::File(_) | Destination::Store(_) => self
                .against_delivery(recipient)
                .or_else(|| against_user(self.subject, user?)),
            Destination::Gateway(_) => None,
        }
    }

    fn against_peer(
        &self,
        name: &str,
        recipient: &PerRecipientMessageTransferFields,
    ) -> Option<Cause> {
        let Some(terms) = self.mta.peers.get(name) else {
            return Some(Cause::TransferFailed);
        };
        let address = &recipient.recipient_name.address;
        let border = terms.outbound.stops(self.subject.crossing());
        border
            .or_else(|| terms.outbound.stops_recipient(address))
            .or_else(|| {
                let unable =
                    terms.profile == Profile::Y1984 && !self.legacy.fits(self.subject, recipient);
                unable.then_some(Cause::Downgrade)
            })
    }

    /// The obstacle to any local delivery.
    fn against_delivery(&self, recipient: &PerRecipientMessageTransferFields) -> Option<Cause> {
        let critical = Criticality::FOR_DELIVERY;
        let message = &self.subject.envelope.extensions;
        let unknown = message
            .unknown_critical(critical)
            .or_else(|| recipient.extensions.unknown_critical(critical));
        if unknown.is_some() {
            return Some(Cause::CriticalExtension);
        }
        recipient
            .explicit_conversion
            .map(|_| Cause::ConversionImpractical)
    }
}

/// The obstacle to a delivery to a user.
fn against_user(subject: &Subject, user: &User) -> Option<Cause> {
    let most = user.content_octets_max;
    if most.is_some_and(|most| subject.content_octets() > most) {
        return Some(Cause::ContentTooLong);
    }
    if lacks(user.content_types.as_ref(), &subject.envelope.content_type) {
        return Some(Cause::ContentType);
    }
    if covers(user.types.as_ref()?, subject.types()?) {
        return None;
    }
    let indicators = subject.envelope.per_message_indicators;
    if indicators.contains(PerMessageIndicators::IMPLICIT_CONVERSION_PROHIBITED) {
        Some(Cause::ConversionProhibited)
    } else {
        Some(Cause::InformationTypes)
    }
}

/// Whether the accepted types contain the offered types. The type `unknown` accepts all types.
fn covers(accepted: &EncodedInformationTypes, offered: &EncodedInformationTypes) -> bool {
    if accepted
        .built_in
        .contains(BuiltInEncodedInformationTypes::UNKNOWN)
    {
        return true;
    }
    let mut extended = offered.extended.iter().flatten();
    accepted.built_in.contains(offered.built_in)
        && extended.all(|one| accepted.extended.iter().flatten().any(|other| other == one))
}
