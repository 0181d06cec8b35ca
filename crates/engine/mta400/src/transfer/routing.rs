//! The way of each recipient (X.411 clause 14.3, routing and conversion decision).

use vere_x400::{Criticality, PerRecipientMessageTransferFields};

use super::arrival::Arrived;
use super::redirection::Redirecting;
use super::step::Router;
use super::{Mta, Sender};
use crate::cause::Cause;
use crate::destination::Destination;
use crate::subject::{Subject, is_responsible};

/// The way of a recipient.
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

impl Mta {
    /// Decides about each recipient. Redirected recipients get new names.
    pub(super) fn route(
        &self,
        subject: &mut Subject,
        from: Sender<'_>,
        arrived: &Arrived,
    ) -> Vec<Way> {
        let mut recipients = std::mem::take(&mut subject.envelope.per_recipient_fields);
        let router = Router::new(self, subject);
        let ways = recipients
            .iter_mut()
            .map(|recipient| match arrived.stopped {
                _ if !is_responsible(recipient) => Way::NotOurs,
                Some(cause) => Way::Failed(cause),
                None => way(&router, recipient, from),
            })
            .collect();
        subject.envelope.per_recipient_fields = recipients;
        ways
    }
}

/// The border and the extensions of a recipient, then the destination.
fn way(
    router: &Router<'_>,
    recipient: &mut PerRecipientMessageTransferFields,
    from: Sender<'_>,
) -> Way {
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
    let mut redirecting = Redirecting::new(router, recipient, from.arrival.at);
    match redirecting.run() {
        Ok(destination) => Way::To {
            destination,
            redirected: redirecting.has_redirected(),
        },
        Err(cause) => Way::Failed(cause),
    }
}
