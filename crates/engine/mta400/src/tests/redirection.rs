//! Alternate recipients.

use vere_x400::*;

use super::sample::*;
use crate::*;

const PROHIBITED: ExtensionValue = ExtensionValue::RecipientReassignmentProhibited(Switch::On);

/// The middle, where `smith` has redirected messages to this address.
fn redirected(to: OrAddress) -> Mta {
    let mut mta = middle();
    let user = mta.site.users.entry("smith".to_owned()).or_default();
    user.redirect_to = Some(to);
    mta
}

fn requested(mut message: Message, alternate: OrAddress) -> Message {
    let value = ExtensionValue::OriginatorRequestedAlternateRecipient(alternate.into());
    for fields in &mut message.envelope.per_recipient_fields {
        fields.extensions.set(&value);
    }
    message
}

fn history(outcome: &Outcome, place: usize) -> Vec<(String, RedirectionReason)> {
    let fields = &envelope(outcome).per_recipient_fields[place];
    let value = fields
        .extensions
        .value(StandardExtension::RedirectionHistory);
    match value.unwrap() {
        Some(ExtensionValue::RedirectionHistory(history)) => history
            .iter()
            .map(|one| {
                let name = &one.intended_recipient_name;
                assert_eq!(name.redirection_time, time(0));
                (name.intended_recipient.to_string(), one.redirection_reason)
            })
            .collect(),
        _ => Vec::new(),
    }
}

#[test]
fn a_users_redirection_is_followed() {
    let mta = redirected(user("x", "C"));
    let outcome = from_a(&mta, message(&[user("y", "C"), user("smith", "B")]));
    // Two parts for one destination: only one of them is redirected.
    let to_c = |places: &[u32]| ("peer:c".to_owned(), places.to_vec());
    assert_eq!(parts(&outcome), [to_c(&[0]), to_c(&[1])]);
    let name = &envelope(&outcome).per_recipient_fields[1].recipient_name;
    assert_eq!(name.address, user("x", "C"));
    let reason = RedirectionReason::RecipientAssignedAlternateRecipient;
    assert_eq!(
        history(&outcome, 1),
        [("S=smith;P=B;A=Carrier;C=GB".to_owned(), reason)]
    );
    assert_eq!(history(&outcome, 0), []);
    assert_eq!(
        outcome.facts.recipients[1].address,
        "S=smith;P=B;A=Carrier;C=GB"
    );
    let decision = &outcome.facts.recipients[1].decision;
    assert!(matches!(
        decision,
        Decision::Onward {
            redirected: true,
            ..
        }
    ));
}

#[test]
fn the_originator_can_prohibit_a_users_redirection() {
    let mta = redirected(user("x", "C"));
    let mut sent = message(&[user("smith", "B")]);
    sent.envelope.extensions.set(&PROHIBITED);
    assert_failed(&from_a(&mta, sent.clone()), Cause::ReassignmentProhibited);
    // The originator's own alternate recipient is not prohibited by that.
    let outcome = from_a(&mta, requested(sent.clone(), user("jones", "B")));
    assert_eq!(parts(&outcome), [("file:jones".to_owned(), vec![0])]);
    let allowed = ExtensionValue::RecipientReassignmentProhibited(Switch::Off);
    sent.envelope.extensions.set(&allowed);
    assert_eq!(from_a(&mta, sent).report, None);
}

#[test]
fn the_originators_alternate_gets_what_a_recipient_cannot() {
    let sent = requested(
        message(&[user("nobody", "B"), user("jones", "B")]),
        user("smith", "B"),
    );
    let outcome = from_a(&middle(), sent);
    assert_eq!(
        parts(&outcome),
        [
            ("file:jones".to_owned(), vec![1]),
            ("store:smith".to_owned(), vec![0])
        ]
    );
    let reason = RedirectionReason::OriginatorRequestedAlternateRecipient;
    assert_eq!(
        history(&outcome, 0),
        [("S=nobody;P=B;A=Carrier;C=GB".to_owned(), reason)]
    );
    let fields = &envelope(&outcome).per_recipient_fields;
    let kind = StandardExtension::OriginatorRequestedAlternateRecipient;
    assert!(fields[0].extensions.find(kind).is_none());
    assert!(fields[1].extensions.find(kind).is_some());
}

#[test]
fn an_alternate_that_fails_is_reported_with_the_intended_recipient() {
    let sent = requested(message(&[user("nobody", "B")]), user("noone", "B"));
    let outcome = from_a(&middle(), sent);
    assert_failed(&outcome, Cause::UnknownRecipient);
    let report = outcome.report.unwrap();
    let fields = &report.content.per_recipient_fields[0];
    assert_eq!(fields.actual_recipient_name.address, user("noone", "B"));
    let intended = fields.originally_intended_recipient_name.as_ref().unwrap();
    assert_eq!(intended.address, user("nobody", "B"));
    let kind = StandardExtension::RedirectionHistory;
    assert!(fields.extensions.find(kind).is_some());
}

#[test]
fn unknown_users_of_the_domain_have_an_alternate_if_allowed() {
    let mut mta = middle();
    mta.site.alternate = Some(user("jones", "B"));
    let mut sent = message(&[user("nobody", "B")]);
    assert_failed(&from_a(&mta, sent.clone()), Cause::UnknownRecipient);
    sent.envelope.per_message_indicators = PerMessageIndicators::ALTERNATE_RECIPIENT_ALLOWED;
    let outcome = from_a(&mta, sent.clone());
    assert_eq!(parts(&outcome), [("file:jones".to_owned(), vec![0])]);
    let reason = RedirectionReason::RecipientMdAssignedAlternateRecipient;
    assert_eq!(history(&outcome, 0)[0].1, reason);
    // The originator's alternate goes first.
    let outcome = from_a(&mta, requested(sent.clone(), user("smith", "B")));
    assert_eq!(parts(&outcome), [("store:smith".to_owned(), vec![0])]);
    // Only for addresses of local domains, and only for unknown ones.
    let mut far = sent.clone();
    far.envelope.per_recipient_fields[0].recipient_name = address("S=x;A=Far;C=US").into();
    assert_failed(&from_a(&mta, far), Cause::UnknownRecipient);
    let mut explicit = sent.clone();
    let fields = &mut explicit.envelope.per_recipient_fields[0];
    fields.recipient_name = user("smith", "B").into();
    fields.explicit_conversion = Some(ExplicitConversion::Ia5TextToTeletex);
    assert_failed(&from_a(&mta, explicit), Cause::ConversionImpractical);
    sent.envelope.extensions.set(&PROHIBITED);
    assert_failed(&from_a(&mta, sent), Cause::UnknownRecipient);
}

#[test]
fn circles_end() {
    assert_failed(
        &from_a(
            &redirected(user("smith", "B")),
            message(&[user("smith", "B")]),
        ),
        Cause::RedirectionLoop,
    );
    let mut mta = redirected(user("jones", "B"));
    let jones = mta.site.users.entry("jones".to_owned()).or_default();
    jones.redirect_to = Some(address("/C=GB/ADMD=carrier/PRMD=b/S=SMITH/"));
    assert_failed(
        &from_a(&mta, message(&[user("smith", "B")])),
        Cause::RedirectionLoop,
    );
    // A circle over other domains.
    let mta = redirected(user("x", "C"));
    let mut sent = message(&[user("smith", "B")]);
    let history = ExtensionValue::RedirectionHistory(vec![Redirection {
        intended_recipient_name: IntendedRecipientName {
            intended_recipient: user("x", "C").into(),
            redirection_time: time(0),
            ..Default::default()
        },
        ..Default::default()
    }]);
    sent.envelope.per_recipient_fields[0]
        .extensions
        .set(&history);
    assert_failed(&from_a(&mta, sent), Cause::RedirectionLoop);
}

#[test]
fn a_long_chain_ends() {
    let chain = |count: u32| {
        let mut rows = vec![route("P=B;A=Carrier;C=GB", "unknown")];
        let place = |number: u32| user(&format!("u{number}"), "B");
        for number in 0..=count {
            let text = place(number).to_string();
            rows.push(route(&text, &format!("store:u{number}")));
        }
        let mut mta = mta("B", "mta-b", vec![terms("a", "A")], &rows);
        for number in 0..count {
            let user = mta.site.users.entry(format!("u{number}")).or_default();
            user.redirect_to = Some(place(number + 1));
        }
        from_a(&mta, message(&[place(0)]))
    };
    assert_eq!(parts(&chain(16)), [("store:u16".to_owned(), vec![0])]);
    assert_failed(&chain(17), Cause::RedirectionLoop);
}

#[test]
fn what_cannot_be_read_is_a_violation() {
    for (kind, mta) in [
        (
            StandardExtension::OriginatorRequestedAlternateRecipient,
            middle(),
        ),
        (StandardExtension::RedirectionHistory, {
            let mut mta = middle();
            mta.site.alternate = Some(user("jones", "B"));
            mta
        }),
    ] {
        let mut sent = message(&[user("nobody", "B")]);
        sent.envelope.per_message_indicators = PerMessageIndicators::ALTERNATE_RECIPIENT_ALLOWED;
        sent.envelope.per_recipient_fields[0]
            .extensions
            .0
            .push(broken(kind));
        assert_failed(&from_a(&mta, sent), Cause::ProtocolViolation);
    }
}
