//! Border, critical extensions, loops, times, traces.

use std::time::Duration;

use vere_x400::*;

use super::sample::*;
use crate::*;

fn to_c() -> Message {
    message(&[user("x", "C")])
}

fn with_terms(change: impl FnOnce(&mut Terms, &mut Terms)) -> Mta {
    let mut mta = middle();
    let mut a = mta.peers.get("a").unwrap().clone();
    let mut c = mta.peers.get("c").unwrap().clone();
    change(&mut a, &mut c);
    let others = mta.peers.iter().filter(|one| one.name == "b2").cloned();
    mta.peers = Peers::new(others.chain([a, c]).collect()).unwrap();
    mta
}

#[test]
fn a_message_goes_on_with_a_trace() {
    let outcome = from_a(&middle(), to_c());
    assert_eq!(parts(&outcome), [("peer:c".to_owned(), vec![0])]);
    assert_eq!(outcome.report, None);
    let envelope = envelope(&outcome);
    let [first, own] = envelope.trace_information.0.as_slice() else {
        panic!("two elements")
    };
    assert_eq!(first.global_domain_identifier, domain("A"));
    assert_eq!(*own, TraceInformationElement::relayed(domain("B"), time(0)));
    assert_eq!(envelope.internal_trace().unwrap().0, [internal("mta-b")]);
}

#[test]
fn a_border_stops_what_is_not_agreed() {
    type Change = fn(&mut Border);
    let cases: [(Change, Cause); 5] = [
        (
            |border| border.content_octets_max = Some(10),
            Cause::ContentTooLong,
        ),
        (
            |border| border.content_types = Some(vec![ContentType::P22]),
            Cause::ContentType,
        ),
        (
            |border| border.priorities = Some(vec![Priority::Urgent]),
            Cause::Grade,
        ),
        (
            |border| border.originators = AddressRange::new(&["C=DE"], &[]).unwrap(),
            Cause::Originator,
        ),
        (
            |border| border.recipients = AddressRange::new(&[], &["C=GB"]).unwrap(),
            Cause::Recipient,
        ),
    ];
    for (change, cause) in cases {
        let inbound = with_terms(|a, _| change(&mut a.inbound));
        assert_failed(&from_a(&inbound, to_c()), cause);
        let outbound = with_terms(|_, c| change(&mut c.outbound));
        assert_failed(&from_a(&outbound, to_c()), cause);
        // What is agreed with one peer does not concern another.
        let other = with_terms(|a, c| {
            change(&mut a.outbound);
            change(&mut c.inbound);
        });
        assert_eq!(from_a(&other, to_c()).report, None);
    }
}

#[test]
fn a_border_lets_pass_what_is_just_agreed() {
    let mta = with_terms(|a, _| {
        a.inbound = Border {
            originators: AddressRange::new(&["P=A;A=Carrier;C=GB"], &[]).unwrap(),
            recipients: AddressRange::new(&["P=C;A=Carrier;C=GB"], &[]).unwrap(),
            content_types: Some(vec![ContentType::P2]),
            priorities: Some(vec![Priority::Normal]),
            content_octets_max: Some(11),
        };
    });
    assert_eq!(from_a(&mta, to_c()).report, None);
}

#[test]
fn the_border_comes_before_critical_extensions_and_loops() {
    let mut message = to_c();
    let own = TraceInformationElement::relayed(domain("B"), time(0));
    message.envelope.push_trace(own);
    assert_failed(&from_a(&middle(), message.clone()), Cause::Loop);
    let critical = unknown_extension(Criticality::FOR_TRANSFER);
    message.envelope.extensions.0.push(critical);
    assert_failed(
        &from_a(&middle(), message.clone()),
        Cause::CriticalExtension,
    );
    let small = with_terms(|a, _| a.inbound.content_octets_max = Some(1));
    assert_failed(&from_a(&small, message), Cause::ContentTooLong);
}

#[test]
fn unknown_extensions_are_critical_where_they_say_so() {
    let cases = [
        (Criticality::FOR_SUBMISSION, false, false),
        (Criticality::FOR_TRANSFER, true, true),
        (Criticality::FOR_DELIVERY, false, true),
    ];
    for (criticality, transfer, delivery) in cases {
        for (to, stops) in [(user("x", "C"), transfer), (user("smith", "B"), delivery)] {
            let mut whole = message(std::slice::from_ref(&to));
            whole
                .envelope
                .extensions
                .0
                .push(unknown_extension(criticality));
            let mut single = message(&[to]);
            let fields = &mut single.envelope.per_recipient_fields[0];
            fields.extensions.0.push(unknown_extension(criticality));
            for message in [whole, single] {
                let outcome = from_a(&middle(), message.clone());
                if stops {
                    assert_failed(&outcome, Cause::CriticalExtension);
                    continue;
                }
                let sent = envelope(&outcome);
                let kept = |extensions: &Extensions| extensions.0.first().cloned();
                assert_eq!(
                    kept(&sent.per_recipient_fields[0].extensions),
                    kept(&message.envelope.per_recipient_fields[0].extensions)
                );
                assert!(
                    message
                        .envelope
                        .extensions
                        .0
                        .iter()
                        .all(|field| sent.extensions.0.contains(field))
                );
            }
        }
    }
}

#[test]
fn an_own_element_is_a_loop_unless_recipients_changed_after_it() {
    let loops = |elements: Vec<TraceInformationElement>| {
        let mut message = to_c();
        message.envelope.trace_information.0 = elements;
        from_a(&middle(), message).report.is_some()
    };
    let element = |private: &str, action, other| {
        let mut element = TraceInformationElement::relayed(domain(private), time(0));
        element.domain_supplied_information.routing_action = action;
        element.domain_supplied_information.other_actions = other;
        element
    };
    let none = OtherActions::default();
    let relayed = |private| element(private, RoutingAction::Relayed, none);
    assert!(loops(vec![relayed("A"), relayed("B"), relayed("A")]));
    assert!(!loops(vec![relayed("A"), relayed("C"), relayed("A")]));
    // The name of a domain is compared as addresses are.
    let mut spelt = relayed("b");
    spelt.global_domain_identifier.country_name = CountryName::new("234").unwrap();
    assert!(loops(vec![spelt, relayed("A")]));
    for action in [OtherActions::REDIRECTED, OtherActions::DL_OPERATION] {
        let changed = |private| element(private, RoutingAction::Relayed, action);
        assert!(!loops(vec![relayed("B"), changed("A")]));
        assert!(!loops(vec![changed("B"), relayed("A")]));
        assert!(loops(vec![
            changed("B"),
            relayed("A"),
            relayed("B"),
            relayed("A")
        ]));
    }
    let rerouted = element("B", RoutingAction::Rerouted, none);
    assert!(!loops(vec![rerouted, relayed("A")]));
}

#[test]
fn hops_are_bounded() {
    let mut mta = middle();
    mta.site.hops_max = 3;
    let mut message = to_c();
    let other = || TraceInformationElement::relayed(domain("D"), time(0));
    message.envelope.push_trace(other());
    assert_eq!(from_a(&mta, message.clone()).report, None);
    message.envelope.push_trace(other());
    assert_failed(&from_a(&mta, message), Cause::Loop);
}

/// A message from another MTA of the domain.
fn from_inside(mta: &Mta, change: impl FnOnce(&mut MessageTransferEnvelope)) -> Outcome {
    let mut message = to_c();
    let own = TraceInformationElement::relayed(domain("B"), time(0));
    message.envelope.push_trace(own);
    change(&mut message.envelope);
    mta.transfer(Apdu::Message(message), arrival(Source::Peer("b2")))
        .unwrap()
}

#[test]
fn the_domain_has_one_element_and_each_mta_its_own() {
    let outcome = from_inside(&middle(), |envelope| {
        envelope.push_internal_trace(internal("mta-b2")).unwrap();
    });
    assert_eq!(outcome.report, None);
    let envelope = envelope(&outcome);
    assert_eq!(envelope.trace_information.0.len(), 2);
    assert_eq!(
        envelope.internal_trace().unwrap().0,
        [internal("mta-b2"), internal("mta-b")]
    );
    // An MTA of the domain that forgot the element.
    let forgotten = from_inside(&middle(), |envelope| {
        envelope.trace_information.0.pop();
    });
    assert_eq!(
        super::sample::envelope(&forgotten)
            .trace_information
            .0
            .len(),
        2
    );
}

#[test]
fn an_mta_finds_itself_in_the_internal_trace() {
    let mut redirected = internal("mta-b2");
    redirected.mta_supplied_information.other_actions = OtherActions::REDIRECTED;
    let mut rerouted = internal("mta-b");
    rerouted.mta_supplied_information.routing_action = RoutingAction::Rerouted;
    let mut elsewhere = internal("mta-b");
    elsewhere.global_domain_identifier = domain("D");
    for (elements, loops) in [
        (vec![internal("MTA-B"), internal("mta-b2")], true),
        (vec![internal("mta-b2"), internal("mta-b2")], false),
        (vec![internal("mta-b"), redirected], false),
        (vec![rerouted], false),
        (vec![elsewhere], false),
    ] {
        let outcome = from_inside(&middle(), |envelope| {
            for element in &elements {
                envelope.push_internal_trace(element.clone()).unwrap();
            }
        });
        assert_eq!(outcome.report.is_some(), loops, "{elements:?}");
    }
    let mut mta = middle();
    mta.site.hops_max = 3;
    for (count, loops) in [(2, false), (3, true)] {
        let outcome = from_inside(&mta, |envelope| {
            for _ in 0..count {
                envelope.push_internal_trace(internal("mta-b2")).unwrap();
            }
        });
        assert_eq!(outcome.report.is_some(), loops);
    }
    let outcome = from_inside(&middle(), |envelope| {
        let kind = StandardExtension::InternalTraceInformation;
        envelope.extensions.0.push(broken(kind));
    });
    assert_failed(&outcome, Cause::ProtocolViolation);
}

#[test]
fn a_loop_through_other_domains_is_found_from_inside_too() {
    let outcome = from_inside(&middle(), |envelope| {
        let own = TraceInformationElement::relayed(domain("B"), time(0));
        envelope.trace_information.0.insert(0, own);
    });
    assert_failed(&outcome, Cause::Loop);
}

#[test]
fn the_internal_trace_of_another_domain_is_removed() {
    let mut message = to_c();
    message
        .envelope
        .push_internal_trace(internal("mta-b"))
        .unwrap();
    let outcome = from_a(&middle(), message);
    assert_eq!(outcome.report, None);
    let trace = envelope(&outcome).internal_trace().unwrap();
    assert_eq!(trace.0, [internal("mta-b")]);
}

#[test]
fn deferred_messages_wait_where_they_enter_the_domain() {
    let later = Some(time(600));
    let mut message = to_c();
    message.envelope.deferred_delivery_time = later;
    let outcome = from_a(&middle(), message.clone());
    assert_eq!(outcome.onward[0].not_before, later);
    let day = Duration::from_secs(24 * 3_600);
    assert_eq!(
        outcome.onward[0].expires,
        Time::from(time(600).timestamp() + day)
    );
    let envelope = envelope(&outcome);
    assert_eq!(envelope.deferred_delivery_time, later);
    let own = &envelope.trace_information.0[1].domain_supplied_information;
    assert_eq!(own.deferred_time, later);
    let internal = envelope.internal_trace().unwrap();
    assert_eq!(internal.0[0].mta_supplied_information.deferred_time, later);
    // Another MTA of the domain has waited already.
    let inside = from_inside(&middle(), |envelope| {
        envelope.deferred_delivery_time = later
    });
    assert_eq!(inside.onward[0].not_before, None);
    // The time is over.
    message.envelope.deferred_delivery_time = Some(time(0));
    assert_eq!(from_a(&middle(), message).onward[0].not_before, None);
}

#[test]
fn attempts_end_by_grade_or_at_the_latest_delivery_time() {
    let mta = middle();
    let hours = |hours: u64| time(hours * 3_600);
    for (priority, grade, number) in [
        (Priority::Urgent, 4, 4),
        (Priority::Normal, 24, 0),
        (Priority::NonUrgent, 36, -4),
        (Priority::Other(7), 24, 0),
    ] {
        let mut message = to_c();
        message.envelope.priority = priority;
        let part = &from_a(&mta, message).onward[0];
        assert_eq!((part.expires, part.priority), (hours(grade), priority));
        assert_eq!(part.mt_priority(), number);
    }
    let latest = |latest, deferred| {
        let mut message = to_c();
        let value = ExtensionValue::LatestDeliveryTime(latest);
        message.envelope.extensions.set(&value);
        message.envelope.deferred_delivery_time = deferred;
        from_a(&mta, message)
    };
    assert_eq!(latest(hours(1), None).onward[0].expires, hours(1));
    assert_eq!(latest(hours(30), None).onward[0].expires, hours(24));
    assert_eq!(latest(hours(2), Some(hours(1))).onward[0].expires, hours(2));
    assert_failed(&latest(time(0), None), Cause::Expired);
    assert_failed(&latest(hours(1), Some(hours(1))), Cause::Expired);
    let mut message = to_c();
    let kind = StandardExtension::LatestDeliveryTime;
    message.envelope.extensions.0.push(broken(kind));
    assert_failed(&from_a(&mta, message), Cause::ProtocolViolation);
}

#[test]
fn responsibility_is_refused_where_nobody_could_be_told() {
    let mut mta = middle();
    mta.site.recipients_max = 2;
    let refused = |message: Message, source| {
        let outcome = mta.transfer(Apdu::Message(message), arrival(source));
        outcome.unwrap_err().to_string()
    };
    let three = message(&[user("x", "C"), user("y", "C"), user("z", "C")]);
    assert_eq!(
        refused(three, FROM_A),
        "expected at most 2 recipients; found 3"
    );
    assert_eq!(
        refused(message(&[]), FROM_A),
        "expected a recipient; found none"
    );
    assert_eq!(
        refused(to_c(), Source::Peer("z")),
        "expected a peer of the settings; found z"
    );
    assert!(
        mta.transfer(
            Apdu::Message(message(&[user("x", "C"), user("y", "C")])),
            arrival(FROM_A)
        )
        .is_ok()
    );
}

#[test]
fn submissions_and_gateways_come_from_outside_the_domain() {
    for source in [Source::Local, Source::Gateway("aftn")] {
        let mut message = to_c();
        message.envelope.trace_information.0.clear();
        message.envelope.deferred_delivery_time = Some(time(60));
        let outcome = middle()
            .transfer(Apdu::Message(message), arrival(source))
            .unwrap();
        assert_eq!(outcome.onward[0].not_before, Some(time(60)));
        assert_eq!(envelope(&outcome).trace_information.0.len(), 1);
    }
}
