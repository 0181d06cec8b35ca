//! Which reports are due (X.411 clauses 8.2.1.1.1.21 and 12.2.1.1.1: report requests of the originator and of its MTA).

use vere_x400::{PerRecipientIndicators, PerRecipientMessageTransferFields};

use super::fate::Fate;
use crate::subject::Subject;

/// Whether a report is due.
///
/// The MTA of the originator requests reports for itself, at least about failures; an envelope without any such request comes
/// from a broken sender. Deviates: a failure is reported then too, so that no message is lost in silence. A probe asks for
/// nothing else than a report.
pub(super) fn is_due(
    subject: &Subject,
    fields: &PerRecipientMessageTransferFields,
    fate: &Fate,
) -> bool {
    let has = |bit| fields.per_recipient_indicators.contains(bit);
    match fate {
        Fate::Failed { .. } => true,
        Fate::Delivered { .. } => {
            subject.is_probe()
                || has(PerRecipientIndicators::ORIGINATING_MTA_REPORT)
                || has(PerRecipientIndicators::ORIGINATOR_REPORT)
        }
    }
}

/// Whether the trace of the message goes into the report.
pub(super) const fn is_audited(fields: &PerRecipientMessageTransferFields) -> bool {
    let both = PerRecipientIndicators::ORIGINATING_MTA_REPORT
        .with(PerRecipientIndicators::ORIGINATING_MTA_NON_DELIVERY_REPORT);
    fields.per_recipient_indicators.contains(both)
}
