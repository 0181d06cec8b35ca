//! Envelopes for peers of 1984 (X.419 annex B).

use std::cell::OnceCell;

use vere_x400::ipm::InformationObject;
use vere_x400::{
    ContentType, MessageTransferEnvelope, PerRecipientMessageTransferFields, downgrade_message,
};

use crate::subject::{Body, Subject};

/// Whether a message fits systems of 1984, computed once for the first peer of 1984.
#[derive(Debug, Default)]
pub(super) struct Legacy {
    fits: OnceCell<bool>,
}

impl Legacy {
    /// Whether message and recipient fit. `subject` has no recipients.
    pub(super) fn fits(
        &self,
        subject: &Subject,
        recipient: &PerRecipientMessageTransferFields,
    ) -> bool {
        let whole = || downgrade_message(&subject.envelope, is_plain(subject)).is_ok();
        let alone = MessageTransferEnvelope {
            per_recipient_fields: vec![recipient.clone()],
            ..MessageTransferEnvelope::default()
        };
        *self.fits.get_or_init(whole) && downgrade_message(&alone, true).is_ok()
    }
}

/// Makes an envelope of 1984. Returns the places of the recipients left out.
pub(crate) fn downgraded(subject: &mut Subject) -> Vec<u32> {
    let mut numbered = subject.envelope.clone();
    // Numbers are not unique after an expansion; places are.
    for (place, fields) in (0..).zip(&mut numbered.per_recipient_fields) {
        fields.originally_specified_recipient_number = place;
    }
    let Ok(downgraded) = downgrade_message(&numbered, is_plain(subject)) else {
        let count = subject.envelope.per_recipient_fields.len();
        subject.envelope.per_recipient_fields.clear();
        return (0..).take(count).collect();
    };
    let old = std::mem::replace(&mut subject.envelope, downgraded.envelope);
    for fields in &mut subject.envelope.per_recipient_fields {
        let place = usize::try_from(fields.originally_specified_recipient_number);
        let before = place
            .ok()
            .and_then(|place| old.per_recipient_fields.get(place));
        if let Some(before) = before {
            fields.originally_specified_recipient_number =
                before.originally_specified_recipient_number;
        }
    }
    downgraded.unable.iter().map(|(place, _)| *place).collect()
}

/// Whether a content of 1988 has fields of 1984 only.
fn is_plain(subject: &Subject) -> bool {
    match &subject.body {
        Body::Length(_) => true,
        Body::Content(content) => {
            subject.envelope.content_type == ContentType::P22
                && InformationObject::decode(&content.to_bytes())
                    .is_ok_and(|object| object.is_1984())
        }
    }
}
