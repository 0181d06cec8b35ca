//! The figures of the process.

use vere_mta400::UnitKind;
use vere_telemetry::metrics::{DeliveryResult, Gauge, Metrics, X400Bind, X400Side, X400Unit};
use vere_telemetry::trace::EventKind;

/// The figures.
#[derive(Debug)]
pub(crate) struct Figures {
    pub(crate) all: Metrics,
}

/// A connection that counts until it is dropped.
#[derive(Debug)]
pub(crate) struct Open(Gauge);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Figures {
    pub(crate) const fn new(all: Metrics) -> Self {
        Self { all }
    }

    /// Counts a connection of a caller until the value is dropped.
    pub(crate) fn connection(&self) -> Open {
        let gauge = self.all.x400.connections.clone();
        gauge.inc();
        Open(gauge)
    }

    /// Counts a connection beyond the bound.
    pub(crate) fn turned_away(&self) {
        self.all.x400.connections_refused.inc();
    }

    /// Counts a bind of a caller.
    pub(crate) fn bound(&self, accepted: bool) {
        let result = if accepted {
            X400Bind::Accepted
        } else {
            X400Bind::Refused
        };
        self.all.x400.binds.get_or_create(&result).inc();
    }

    /// Changes the number of associations that peers have opened.
    pub(crate) fn associations_in(&self, by: i64) {
        self.all
            .x400
            .associations
            .get_or_create(&X400Side::In)
            .inc_by(by);
    }

    /// Counts a unit that is safe.
    pub(crate) fn received(&self, kind: UnitKind, octets: u64) {
        let kind = match kind {
            UnitKind::Message => X400Unit::Message,
            UnitKind::Probe => X400Unit::Probe,
            UnitKind::Report => X400Unit::Report,
        };
        self.all.x400.received.get_or_create(&kind).inc();
        self.all.x400.received_bytes.inc_by(octets);
    }

    /// Counts a refused transfer.
    pub(crate) fn refused(&self) {
        self.all.x400.refused.inc();
    }

    /// Counts a recipient that ended at the arrival.
    pub(crate) fn failed(&self) {
        self.settled(EventKind::Bounced);
    }

    /// Counts the result of an attempt for a recipient.
    pub(crate) fn settled(&self, kind: EventKind) {
        let result = match kind {
            EventKind::Delivered => DeliveryResult::Relayed,
            EventKind::Bounced => DeliveryResult::Bounced,
            EventKind::Expired => DeliveryResult::Expired,
            _ => DeliveryResult::Deferred,
        };
        self.all.delivery.recipients.get_or_create(&result).inc();
    }

    /// Counts a report of this MTA.
    pub(crate) fn reported(&self) {
        self.all.x400.reports.inc();
    }
}
