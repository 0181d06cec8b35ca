//! Deliveries to a gateway.

use bytes::Bytes;

use super::{Server, State};
use crate::answers::{Deliver, Recipient};
use crate::frame::Reply;
use crate::output::encode;
use crate::text::cut_in_place;
use crate::{ADDRESS_OCTETS_MAX, RECIPIENTS_MAX, RECIPIENTS_OCTETS_MAX};

/// The reason why a delivery cannot be given to a client now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DeliverError {
    /// The client is not attached as a gateway, or the connection has ended.
    #[error("expected an attached gateway")]
    NotAttached,
    /// All of the window is in use.
    #[error("expected room in the window of the gateway")]
    WindowFull,
    /// The id is in use.
    #[error("expected a new id for the delivery")]
    Id,
    /// The recipients do not fit in a frame: see [`Deliver::fitting`].
    #[error(
        "expected at most {RECIPIENTS_MAX} recipients and {RECIPIENTS_OCTETS_MAX} octets of addresses"
    )]
    Recipients,
}

impl Server {
    /// Gives a message to a gateway. The number of octets is that of the pieces.
    ///
    /// # Errors
    /// [`DeliverError`]; nothing is written.
    pub fn deliver(&mut self, mut deliver: Deliver, apdu: Vec<Bytes>) -> Result<(), DeliverError> {
        match self.state {
            State::Open { window } if window > 0 => (),
            _ => return Err(DeliverError::NotAttached),
        }
        if self.room() == 0 {
            return Err(DeliverError::WindowFull);
        }
        if self.deliveries.contains_key(&deliver.id) {
            return Err(DeliverError::Id);
        }
        if Deliver::fitting(&deliver.recipients) < deliver.recipients.len() {
            return Err(DeliverError::Recipients);
        }
        deliver.bound();
        let octets = apdu.iter().map(Bytes::len).fold(0, usize::saturating_add);
        deliver.octets = u64::try_from(octets).unwrap_or(u64::MAX);
        let places = deliver.recipients.iter().map(|recipient| recipient.place);
        self.deliveries.insert(deliver.id.clone(), places.collect());
        self.output.piece(encode(&Reply::Deliver(deliver)).into());
        apdu.into_iter().for_each(|piece| self.output.piece(piece));
        Ok(())
    }
}

impl Deliver {
    /// How many of the first recipients fit in one frame. The others come in further frames, with APDUs of their own. One
    /// recipient always fits.
    #[must_use]
    pub fn fitting(recipients: &[Recipient]) -> usize {
        let mut octets = 0_usize;
        let fits = recipients
            .iter()
            .take(RECIPIENTS_MAX)
            .take_while(|recipient| {
                let mut recipient = (*recipient).clone();
                cut_in_place(&mut recipient.address, ADDRESS_OCTETS_MAX);
                octets = octets.saturating_add(encode(&recipient).len());
                octets <= RECIPIENTS_OCTETS_MAX
            });
        fits.count()
    }

    /// Cuts texts that a stranger chose.
    fn bound(&mut self) {
        let addresses = self.recipients.iter_mut().map(|one| &mut one.address);
        let texts = addresses
            .chain(&mut self.originator)
            .chain(&mut self.about)
            .chain(&mut self.content_type)
            .chain([&mut self.identifier, &mut self.trace]);
        texts.for_each(|text| cut_in_place(text, ADDRESS_OCTETS_MAX));
    }
}
