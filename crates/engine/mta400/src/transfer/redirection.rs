//! Alternate recipients (X.411 clause 14.3, error processing and redirection).
//!
//! A user's redirection comes first, unless the originator prohibits reassignment. A failure leads to the
//! alternate recipient of the originator, then to the alternate recipient of the domain.

use vere_x400::{
    AddressKey, ExtensionValue, IntendedRecipientName, OrName, PerMessageIndicators,
    PerRecipientMessageTransferFields, Redirection, RedirectionReason, StandardExtension, Switch,
    Time,
};

use super::step::{Router, Step, Stop};
use crate::cause::Cause;
use crate::destination::Destination;
use crate::history;

/// Redirections of a recipient in an MTA, at most.
const REDIRECTIONS_MAX: usize = 16;

/// A recipient on the way through alternate recipients.
pub(super) struct Redirecting<'a> {
    router: &'a Router<'a>,
    recipient: &'a mut PerRecipientMessageTransferFields,
    at: Time,
    count: usize,
}

impl<'a> Redirecting<'a> {
    pub(super) const fn new(
        router: &'a Router<'a>,
        recipient: &'a mut PerRecipientMessageTransferFields,
        at: Time,
    ) -> Self {
        Self {
            router,
            recipient,
            at,
            count: 0,
        }
    }

    pub(super) const fn has_redirected(&self) -> bool {
        self.count > 0
    }

    /// Follows the alternates to a destination.
    pub(super) fn run(&mut self) -> Result<Destination, Cause> {
        loop {
            let may_move = !self.is_reassignment_prohibited();
            let (to, reason) = match self.router.step(self.recipient, may_move) {
                Ok(Step::To(destination)) => return Ok(destination),
                Ok(Step::Moved(name)) => (
                    *name,
                    RedirectionReason::RecipientAssignedAlternateRecipient,
                ),
                Err(stop) => self.alternate(&stop)?.ok_or(stop.cause)?,
            };
            self.redirect(to, reason)?;
        }
    }

    /// The alternate recipient after a failure.
    fn alternate(&self, stop: &Stop) -> Result<Option<(OrName, RedirectionReason)>, Cause> {
        let requested = StandardExtension::OriginatorRequestedAlternateRecipient;
        match self.recipient.extensions.value(requested) {
            Ok(Some(ExtensionValue::OriginatorRequestedAlternateRecipient(name))) => {
                let reason = RedirectionReason::OriginatorRequestedAlternateRecipient;
                return Ok(Some((name, reason)));
            }
            Ok(_) => {}
            Err(_) => return Err(Cause::ProtocolViolation),
        }
        let envelope = &self.router.subject.envelope;
        let allowed = envelope
            .per_message_indicators
            .contains(PerMessageIndicators::ALTERNATE_RECIPIENT_ALLOWED);
        let assigned = self.router.mta.site.alternate.as_ref();
        let assigned =
            assigned.filter(|_| stop.unknown_here && allowed && !self.is_reassignment_prohibited());
        let reason = RedirectionReason::RecipientMdAssignedAlternateRecipient;
        Ok(assigned.map(|address| (address.clone().into(), reason)))
    }

    fn is_reassignment_prohibited(&self) -> bool {
        let extensions = &self.router.subject.envelope.extensions;
        let value = extensions.value(StandardExtension::RecipientReassignmentProhibited);
        matches!(
            value,
            Ok(Some(ExtensionValue::RecipientReassignmentProhibited(
                Switch::On
            )))
        )
    }

    fn redirect(&mut self, to: OrName, reason: RedirectionReason) -> Result<(), Cause> {
        let mut history = history::redirections(&self.recipient.extensions)?;
        history.push(Redirection {
            intended_recipient_name: IntendedRecipientName {
                intended_recipient: self.recipient.recipient_name.clone(),
                redirection_time: self.at,
                ..IntendedRecipientName::default()
            },
            redirection_reason: reason,
            ..Redirection::default()
        });
        let next = key(&to)?;
        let mut before = history
            .iter()
            .map(|one| key(&one.intended_recipient_name.intended_recipient));
        if self.count >= REDIRECTIONS_MAX || before.any(|one| one.is_ok_and(|one| one == next)) {
            return Err(Cause::RedirectionLoop);
        }
        let extensions = &mut self.recipient.extensions;
        extensions.set(&ExtensionValue::RedirectionHistory(history));
        if reason == RedirectionReason::OriginatorRequestedAlternateRecipient {
            extensions.remove(StandardExtension::OriginatorRequestedAlternateRecipient);
        }
        self.recipient.recipient_name = to;
        self.count += 1;
        Ok(())
    }
}

fn key(name: &OrName) -> Result<AddressKey, Cause> {
    name.address.key().map_err(|_| Cause::ProtocolViolation)
}
