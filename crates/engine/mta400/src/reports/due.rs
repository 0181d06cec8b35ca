//! Due reports (X.411 clauses 8.2.1.1.1.22 and 12.2.1.1.1: requests of the originator and of the originating MTA).

use vere_x400::{PerRecipientIndicators, PerRecipientMessageTransferFields};

use super::fate::Fate;
use crate::subject::Subject;

/// Whether a report is due.
///
/// An originating MTA requests at least reports about failures. Deviates: failures are reported even without a
/// request, which only a broken sender leaves out, so that no message disappears in silence. A probe always
/// causes a report.
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

/// Whether the report contains the trace of the subject.
pub(super) const fn is_audited(fields: &PerRecipientMessageTransferFields) -> bool {
    let both = PerRecipientIndicators::ORIGINATING_MTA_REPORT
        .with(PerRecipientIndicators::ORIGINATING_MTA_NON_DELIVERY_REPORT);
    fields.per_recipient_indicators.contains(both)
}
