//! Arriving reports (X.411 clause 14.4): routed by report destination, never a cause of reports.

use vere_x400::{
    Apdu, Criticality, OrAddress, PerRecipientIndicators, Priority, Report, ReportType,
    downgrade_report,
};

use super::facts::{Decision, Facts};
use super::trace::{self, Passed};
use super::{Mta, Onward, Outcome, Sender};
use crate::cause::Cause;
use crate::destination::Destination;
use crate::peers::Profile;

impl Mta {
    /// Decides about a report. An undeliverable report ends here, with a cause for the audit log.
    pub(super) fn transfer_report(&self, mut report: Box<Report>, from: Sender<'_>) -> Outcome {
        let decision = match self.way_of_report(&report, from) {
            Err(cause) => Decision::Failed(cause),
            Ok(destination) if destination.user().is_some() && !keep_requested(&mut report) => {
                Decision::Consumed
            }
            Ok(destination) => Decision::Onward {
                destination,
                redirected: false,
            },
        };
        let facts = Facts::of_report(&report, decision.clone());
        let passed = Passed {
            site: &self.site,
            inside: self.is_inside(from),
            at: from.arrival.at,
            deferred: None,
        };
        let envelope = &mut report.envelope;
        trace::add(
            &mut envelope.trace_information,
            &mut envelope.extensions,
            &passed,
        );
        Outcome {
            apdu: Apdu::Report(report),
            onward: self.onward_report(decision, from),
            report: None,
            facts,
        }
    }

    fn onward_report(&self, decision: Decision, from: Sender<'_>) -> Vec<Onward> {
        let Decision::Onward { destination, .. } = decision else {
            return Vec::new();
        };
        vec![Onward {
            destination,
            recipients: vec![0],
            not_before: None,
            expires: self.site.expiry(Priority::Normal, from.arrival.at),
            priority: Priority::Normal,
        }]
    }

    fn way_of_report(&self, report: &Report, from: Sender<'_>) -> Result<Destination, Cause> {
        let envelope = &report.envelope;
        let address = &envelope.report_destination_name.address;
        let border = from
            .terms
            .and_then(|terms| terms.inbound.stops_recipient(address));
        let critical = envelope
            .extensions
            .unknown_critical(Criticality::FOR_TRANSFER)
            .map(|_| Cause::CriticalExtension);
        let (trace, extensions) = (&envelope.trace_information, &envelope.extensions);
        let looping = || trace::fault(&self.site, trace, extensions, self.is_inside(from));
        if let Some(cause) = border.or(critical).or_else(looping) {
            return Err(cause);
        }
        let key = address.key().map_err(|_| Cause::ProtocolViolation)?;
        let row = self.routes.find(&key);
        let destination = row.and_then(|row| row.to.as_ref());
        let destination = destination.ok_or(Cause::UnknownRecipient)?;
        self.report_fits(report, address, destination)?;
        Ok(destination.clone())
    }

    fn report_fits(
        &self,
        report: &Report,
        address: &OrAddress,
        destination: &Destination,
    ) -> Result<(), Cause> {
        let Some(name) = destination.peer() else {
            return Ok(());
        };
        let terms = self.peers.get(name).ok_or(Cause::TransferFailed)?;
        if let Some(cause) = terms.outbound.stops_recipient(address) {
            return Err(cause);
        }
        if terms.profile == Profile::Y1984 && downgrade_report(report).is_err() {
            return Err(Cause::Downgrade);
        }
        Ok(())
    }
}

/// Removes recipients without a request of the originator. Returns whether a recipient is left.
fn keep_requested(report: &mut Report) -> bool {
    let fields = &mut report.content.per_recipient_fields;
    fields.retain(|fields| {
        let asked = fields.per_recipient_indicators;
        let both = asked.contains(PerRecipientIndicators::ORIGINATOR_REPORT);
        let failures = asked.contains(PerRecipientIndicators::ORIGINATOR_NON_DELIVERY_REPORT);
        match fields.last_trace_information.report_type {
            ReportType::Delivery(_) => both,
            ReportType::NonDelivery(_) => both || failures,
        }
    });
    !fields.is_empty()
}
