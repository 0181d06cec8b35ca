//! Where each recipient goes (X.411 clause 14.3, routing and conversion decision).

use vere_x400::{
    BuiltInEncodedInformationTypes, Criticality, EncodedInformationTypes, PerMessageIndicators,
    PerRecipientMessageTransferFields,
};

use super::arrival::Arrived;
use super::legacy::Legacy;
use super::redirection::Redirecting;
use super::{Mta, Sender};
use crate::cause::Cause;
use crate::destination::Destination;
use crate::peers::{Profile, lacks};
use crate::site::User;
use crate::subject::{Subject, is_responsible};

/// What becomes of a recipient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Way {
    /// Another MTA has the responsibility.
    NotOurs,
    /// The recipient goes to a destination.
    To {
        destination: Destination,
        redirected: bool,
    },
    /// The recipient is reported.
    Failed(Cause),
}

/// The next step for a recipient whose name may have changed.
pub(super) enum Step {
    /// It goes there.
    To(Destination),
    /// Its user has another address.
    Moved(Box<vere_x400::OrName>),
}

/// A recipient that goes nowhere.
pub(super) struct Stop {
    pub(super) cause: Cause,
    /// Whether the address is one of a local domain that has no such user.
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

/// What the decisions about one message need.
pub(super) struct Router<'a> {
    pub(super) mta: &'a Mta,
    /// The message, without its recipients.
    pub(super) subject: &'a Subject,
    legacy: Legacy,
}

impl Mta {
    /// Decides about each recipient, and gives redirected ones their new names.
    pub(super) fn route(
        &self,
        subject: &mut Subject,
        from: Sender<'_>,
        arrived: &Arrived,
    ) -> Vec<Way> {
        let mut recipients = std::mem::take(&mut subject.envelope.per_recipient_fields);
        let router = Router {
            mta: self,
            subject,
            legacy: Legacy::default(),
        };
        let ways = recipients
            .iter_mut()
            .map(|recipient| match arrived.stopped {
                _ if !is_responsible(recipient) => Way::NotOurs,
                Some(cause) => Way::Failed(cause),
                None => router.way(recipient, from),
            })
            .collect();
        subject.envelope.per_recipient_fields = recipients;
        ways
    }
}

impl Router<'_> {
    fn way(&self, recipient: &mut PerRecipientMessageTransferFields, from: Sender<'_>) -> Way {
        let border = from.terms.and_then(|terms| {
            terms
                .inbound
                .stops_recipient(&recipient.recipient_name.address)
        });
        let critical = recipient
            .extensions
            .unknown_critical(Criticality::FOR_TRANSFER)
            .map(|_| Cause::CriticalExtension);
        if let Some(cause) = border.or(critical) {
            return Way::Failed(cause);
        }
        let mut redirecting = Redirecting::new(self, recipient, from.arrival.at);
        match redirecting.run() {
            Ok(destination) => Way::To {
                destination,
                redirected: redirecting.has_redirected(),
            },
            Err(cause) => Way::Failed(cause),
        }
    }

    /// The row for the recipient's present name, and what stands against it.
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

    /// What stands against a delivery to anybody here.
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

/// What stands against a delivery to this user.
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

/// Whether a user who has these types can have all the others. An unspecified type is any type.
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
