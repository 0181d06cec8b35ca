//! The trace of a message (X.411 clauses 12.2.1.1.1.1 and 12.3): its domains and MTAs.

use vere_ber::{Ia5String, Tag, bits, choice, codes, list, record};

use crate::content::EncodedInformationTypes;
use crate::domain::GlobalDomainIdentifier;
use crate::time::Time;

/// Elements of a trace, at most (`ub-transfers`).
pub const TRANSFERS_MAX: usize = 512;

codes! {
    /// `RoutingAction`
    pub enum RoutingAction [Tag::ENUMERATED] {
        Relayed = 0, "relayed";
        Rerouted = 1, "rerouted";
    }
}

bits! {
    /// `OtherActions`
    pub struct OtherActions [Tag::BIT_STRING] {
        REDIRECTED = 0, "redirected";
        DL_OPERATION = 1, "dl-operation";
    }
}

record! {
    /// `DomainSuppliedInformation`
    pub struct DomainSuppliedInformation [Tag::SET] {
        /// `arrival-time`
        arrival_time: required @0 Time,
        /// `routing-action`
        routing_action: required @2 RoutingAction,
        /// `attempted-domain`: the domain to which a transfer failed before the message was rerouted.
        attempted_domain: optional GlobalDomainIdentifier,
        /// `deferred-time`
        deferred_time: optional @1 Time,
        /// `converted-encoded-information-types`
        converted_encoded_information_types: optional EncodedInformationTypes,
        /// `other-actions`
        other_actions: default @3 OtherActions,
    }
}

record! {
    /// `TraceInformationElement`: the actions of a domain.
    pub struct TraceInformationElement [Tag::SEQUENCE] {
        /// `global-domain-identifier`
        global_domain_identifier: required GlobalDomainIdentifier,
        /// `domain-supplied-information`
        domain_supplied_information: required DomainSuppliedInformation,
    }
}

impl TraceInformationElement {
    /// A domain that relays a message after this time of arrival.
    #[must_use]
    pub fn relayed(domain: GlobalDomainIdentifier, arrival_time: Time) -> Self {
        let information = DomainSuppliedInformation {
            arrival_time,
            ..Default::default()
        };
        Self {
            global_domain_identifier: domain,
            domain_supplied_information: information,
            ..Self::default()
        }
    }
}

list! {
    /// `TraceInformation`, oldest element first.
    pub struct TraceInformation [Tag::application(9)] of TraceInformationElement
}

choice! {
    /// The place of a failed transfer before rerouting.
    pub enum Attempted {
        /// `mta`
        Mta: Ia5String,
        /// `domain`
        Domain: GlobalDomainIdentifier,
    }
}

record! {
    /// `MTASuppliedInformation`
    pub struct MtaSuppliedInformation [Tag::SET] {
        /// `arrival-time`
        arrival_time: required @0 Time,
        /// `routing-action`
        routing_action: required @2 RoutingAction,
        /// `attempted`
        attempted: optional Attempted,
        /// `deferred-time`
        deferred_time: optional @1 Time,
        /// `converted-encoded-information-types`
        converted_encoded_information_types: optional EncodedInformationTypes,
        /// `other-actions`
        other_actions: default @3 OtherActions,
    }
}

record! {
    /// `InternalTraceInformationElement`: the actions of an MTA.
    pub struct InternalTraceInformationElement [Tag::SEQUENCE] {
        /// `global-domain-identifier`
        global_domain_identifier: required GlobalDomainIdentifier,
        /// `mta-name`
        mta_name: required Ia5String,
        /// `mta-supplied-information`
        mta_supplied_information: required MtaSuppliedInformation,
    }
}

impl InternalTraceInformationElement {
    /// An MTA that relays a message after this time of arrival.
    #[must_use]
    pub fn relayed(
        domain: GlobalDomainIdentifier,
        mta_name: Ia5String,
        arrival_time: Time,
    ) -> Self {
        let information = MtaSuppliedInformation {
            arrival_time,
            ..Default::default()
        };
        Self {
            global_domain_identifier: domain,
            mta_name,
            mta_supplied_information: information,
            ..Self::default()
        }
    }
}

list! {
    /// `InternalTraceInformation`, oldest element first.
    pub struct InternalTraceInformation [Tag::SEQUENCE] of InternalTraceInformationElement
}
