//! Trace and internal trace (X.411 clauses 12.2.1.1.1 and 12.3): loops, own elements, the border of the domain.
//!
//! The first MTA of a domain adds an element to the trace. Every MTA adds an element to the internal trace, which
//! remains in the domain.

use vere_x400::{
    ExtensionValue, Extensions, InternalTraceInformation, InternalTraceInformationElement,
    OtherActions, PerRecipientMessageTransferFields, RoutingAction, StandardExtension, Time,
    TraceInformation, TraceInformationElement,
};

use crate::cause::Cause;
use crate::history;
use crate::site::Site;

/// The facts for new elements.
pub(super) struct Passed<'a> {
    pub(super) site: &'a Site,
    /// Whether the sender is an MTA of the local domain.
    pub(super) inside: bool,
    pub(super) at: Time,
    pub(super) deferred: Option<Time>,
}

/// A loop, too many hops, or an unreadable internal trace.
pub(super) fn fault(
    site: &Site,
    trace: &TraceInformation,
    extensions: &Extensions,
    inside: bool,
) -> Option<Cause> {
    let mut elements = trace.0.as_slice();
    if let (true, [before @ .., last]) = (inside, elements)
        && site.is_own(&last.global_domain_identifier)
    {
        elements = before;
    }
    let is_own = |element: &TraceInformationElement| {
        site.is_own(&element.global_domain_identifier)
            && element.domain_supplied_information.routing_action == RoutingAction::Relayed
    };
    let renewed = |element: &TraceInformationElement| {
        is_renewed(element.domain_supplied_information.other_actions)
    };
    if trace.0.len() >= site.hops_max || since(elements, renewed).iter().any(is_own) {
        return Some(Cause::Loop);
    }
    if inside {
        internal_fault(site, extensions)
    } else {
        None
    }
}

fn internal_fault(site: &Site, extensions: &Extensions) -> Option<Cause> {
    let Ok(trace) = internal(extensions) else {
        return Some(Cause::ProtocolViolation);
    };
    let is_own = |element: &InternalTraceInformationElement| {
        is_own_mta(site, element)
            && element.mta_supplied_information.routing_action == RoutingAction::Relayed
    };
    let renewed = |element: &InternalTraceInformationElement| {
        is_renewed(element.mta_supplied_information.other_actions)
    };
    let loops = trace.0.len() >= site.hops_max || since(&trace.0, renewed).iter().any(is_own);
    loops.then_some(Cause::Loop)
}

/// Adds the elements of domain and MTA.
pub(super) fn add(trace: &mut TraceInformation, extensions: &mut Extensions, passed: &Passed<'_>) {
    let Passed {
        site,
        inside,
        at,
        deferred,
    } = *passed;
    let last = trace.0.last();
    let has_own = last.is_some_and(|last| site.is_own(&last.global_domain_identifier));
    if !(inside && has_own) {
        let mut element = TraceInformationElement::relayed(site.domain.clone(), at);
        element.domain_supplied_information.deferred_time = deferred;
        trace.0.push(element);
    }
    if !inside {
        extensions.remove(StandardExtension::InternalTraceInformation);
    }
    let name = site.mta_name.clone();
    let mut element = InternalTraceInformationElement::relayed(site.domain.clone(), name, at);
    element.mta_supplied_information.deferred_time = deferred;
    // An unreadable internal trace remains unchanged; the message ends here.
    if let Ok(mut internal) = internal(extensions) {
        internal.0.push(element);
        extensions.set(&ExtensionValue::InternalTraceInformation(internal));
    }
}

/// Removes the internal trace.
pub(crate) fn leave_domain(extensions: &mut Extensions) {
    extensions.remove(StandardExtension::InternalTraceInformation);
}

/// Marks the last elements as `redirected`, if this MTA has redirected a member of `recipients`.
pub(crate) fn mark_redirected<'a>(
    site: &Site,
    trace: &mut TraceInformation,
    extensions: &mut Extensions,
    recipients: impl Iterator<Item = &'a PerRecipientMessageTransferFields>,
) {
    let Ok(mut internal) = internal(extensions) else {
        return;
    };
    let Some(element) = internal.0.last_mut() else {
        return;
    };
    let information = &mut element.mta_supplied_information;
    let arrived = information.arrival_time;
    if !recipients
        .filter_map(|fields| history::last_redirection(&fields.extensions))
        .any(|time| time == arrived)
    {
        return;
    }
    let redirected = OtherActions::REDIRECTED;
    information.other_actions = information.other_actions.with(redirected);
    extensions.set(&ExtensionValue::InternalTraceInformation(internal));
    if let Some(last) = trace.0.last_mut()
        && site.is_own(&last.global_domain_identifier)
    {
        let information = &mut last.domain_supplied_information;
        information.other_actions = information.other_actions.with(redirected);
    }
}

fn internal(extensions: &Extensions) -> Result<InternalTraceInformation, ()> {
    match extensions.value(StandardExtension::InternalTraceInformation) {
        Ok(Some(ExtensionValue::InternalTraceInformation(trace))) => Ok(trace),
        Ok(_) => Ok(InternalTraceInformation::default()),
        Err(_) => Err(()),
    }
}

fn is_own_mta(site: &Site, element: &InternalTraceInformationElement) -> bool {
    let same = element
        .mta_name
        .text()
        .eq_ignore_ascii_case(&site.mta_name.text());
    same && site.is_own(&element.global_domain_identifier)
}

const fn is_renewed(actions: OtherActions) -> bool {
    actions.contains(OtherActions::REDIRECTED) || actions.contains(OtherActions::DL_OPERATION)
}

/// The elements after the last change of recipients, since a message may return after a change.
fn since<T>(elements: &[T], renewed: impl Fn(&T) -> bool) -> &[T] {
    let start = elements.iter().rposition(renewed);
    let start = start.map_or(0, |start| start + 1);
    elements.get(start..).unwrap_or_default()
}
